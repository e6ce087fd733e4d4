//! The command line, as types. What a value means is in `values`; what a command does is in `commands`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::sandbox_args::SandboxArgs;

/// Lines of at most 78 columns: a narrower terminal is wrapped, none is wrapped twice.
const AFTER_HELP: &str = "\
Exit codes:
    0  done
    1  failed: the message says what, where and what to do next
    2  wrong flags or sixb.toml; nothing was started
  130  cancelled by Ctrl-C or a signal
  141  nobody reads the output
`sixb exec` passes the command's own code on: 128 + N for signal N, and 124
when --timeout passed.

Data goes to stdout, everything for people to stderr. NO_COLOR takes the
colour away. Sandboxes and transcripts are kept in $XDG_STATE_HOME/sixb, by
default ~/.local/state/sixb.";

/// Gives AI agents a sandbox, tools and files.
#[derive(Debug, Parser)]
#[command(name = "sixb", version, after_help = AFTER_HELP, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Settings to use instead of ./sixb.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what sixb does: a scripted turn on real data, in a real sandbox
    Demo(DemoArgs),
    /// Let an agent do a task
    Run(RunArgs),
    /// Run one command in a sandbox of its own
    Exec(ExecArgs),
    /// List, show and resume runs
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Call a tool as an agent would
    Tool(ToolArgs),
    /// Tell what works on this machine, and how to get what does not
    Doctor(JsonArgs),
    /// List or clean up sandboxes
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Write a commented sixb.toml
    Init(InitArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Save the report below this folder
    #[arg(long, value_name = "DIR", default_value = "sixb-out")]
    pub(crate) out: PathBuf,

    /// Keep the transcript below this folder [default: runs/ of the state folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) transcripts: Option<PathBuf>,

    /// Write each request to the model into this folder, as an OpenAI-compatible server would get it
    #[arg(long, value_name = "DIR")]
    pub(crate) dump_requests: Option<PathBuf>,

    /// Print the run's events as JSON lines to stdout
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) blobs: BlobArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What to do
    pub(crate) task: String,

    /// Which agent of sixb.toml does it
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Go on with this conversation, or begin it: any name
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,

    /// Attach a file: the model reads or sees it, and it lies in the sandbox; may be given several times
    #[arg(long = "file", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) blobs: BlobArgs,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

/// Who answers.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Ask this model, such as openai/gpt-5.5; the environment names its server (see `sixb doctor`)
    #[arg(long, value_name = "MODEL", conflicts_with = "script")]
    pub(crate) model: Option<String>,

    /// How hard the model should think: low, medium, high, or what its server knows
    #[arg(long, value_name = "EFFORT", conflicts_with = "script")]
    pub(crate) effort: Option<String>,

    /// Play this JSON script in the place of a model
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
}

/// Where files are kept.
#[derive(Debug, Default, Args)]
pub(crate) struct BlobArgs {
    /// Keep files of runs in this store: file:///DIR, s3://BUCKET/…, gs://…, az://… [default: blobs/ of the state folder]
    ///
    /// What a store needs to be opened comes from the environment, such as AWS_ACCESS_KEY_ID.
    #[arg(long, value_name = "URL")]
    pub(crate) blobs: Option<String>,
}

/// Where results go.
#[derive(Debug, Args)]
pub(crate) struct OutputArgs {
    /// Save the run's files below this folder, in one named like the run
    #[arg(long, value_name = "DIR", default_value = "sixb-out")]
    pub(crate) out: PathBuf,

    /// Keep the transcript below this folder, in one named like the run [default: runs/ of the state folder]
    ///
    /// It may not lie in a folder that the sandbox may write to.
    #[arg(long, value_name = "DIR")]
    pub(crate) transcripts: Option<PathBuf>,

    /// Write each request to the model into this folder, as an OpenAI-compatible server would get it
    ///
    /// It may not lie in a folder that the sandbox may write to.
    #[arg(long, value_name = "DIR")]
    pub(crate) dump_requests: Option<PathBuf>,

    /// Print the run's events as JSON lines to stdout, in the place of the answer
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first
    List(RunsListArgs),
    /// Show what was said and done in a run
    Show(RunsShowArgs),
    /// Go on with a run that did not complete, in a new sandbox
    Resume(Box<RunsResumeArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct RunsListArgs {
    /// Show at most so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,

    /// The folder of transcripts [default: runs/ of the state folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) transcripts: Option<PathBuf>,

    /// Print JSON lines to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunsShowArgs {
    /// The run: its id or the end of it
    pub(crate) run: String,

    /// The folder of transcripts [default: runs/ of the state folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) transcripts: Option<PathBuf>,

    /// Print the records of its transcript as JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunsResumeArgs {
    /// The run: its id or the end of it
    pub(crate) run: String,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) blobs: BlobArgs,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The program and its arguments; all that follows it is its own
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ToolArgs {
    /// The tool: see --list
    #[arg(required_unless_present_any = ["batch", "list"], conflicts_with_all = ["batch", "list"])]
    pub(crate) name: Option<String>,

    /// Its input, a JSON object; `-` reads it from stdin
    #[arg(required_unless_present_any = ["batch", "list"], value_name = "JSON")]
    pub(crate) input: Option<String>,

    /// Answer lines {"id"?, "tool", "input"} of stdin, in order, all in one sandbox
    #[arg(long, conflicts_with = "list")]
    pub(crate) batch: bool,

    /// List the tools
    #[arg(long)]
    pub(crate) list: bool,

    /// With --list: names, descriptions and input schemas as JSON
    #[arg(long, requires = "list")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) blobs: BlobArgs,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

#[derive(Debug, Args)]
pub(crate) struct JsonArgs {
    /// Print JSON to stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// List the sandboxes of this user, also those whose owner died
    List(JsonArgs),
    /// End and remove what dead owners left
    Sweep(JsonArgs),
    /// Install what a provider needs into the data folder of this user
    Install(InstallArgs),
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// What to install
    #[arg(value_parser = ["smolvm"])]
    pub(crate) what: String,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The folder to write it to
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        super::Cli::command().debug_assert();
    }

    #[test]
    fn the_end_of_the_help_is_not_wrapped_on_a_terminal_of_80_columns() {
        for line in super::AFTER_HELP.lines() {
            assert!(line.chars().count() <= 78, "{line}");
        }
    }
}
