//! The flags of every command that starts a sandbox, completed by `[sandbox]` of `sixb.toml`.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::Result;
use clap::Args;
use sixb_sandbox::{CreateOptions, ResourceLimits, Workspace};

use crate::{
    config::Config,
    failure::usage,
    host,
    values::{MemorySize, Network, Provider, Timeout},
};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct SandboxArgs {
    /// What makes the sandbox: local (namespaces) or smolvm (a microVM of its own) [default: local]
    #[arg(long, value_name = "PROVIDER")]
    pub(crate) sandbox: Option<Provider>,

    /// What it may reach: none, all, or origins with commas between [default: none]
    #[arg(long, value_name = "none|all|ORIGIN,…")]
    pub(crate) net: Option<Network>,

    /// Memory of all its processes together: 512M, 2G
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true)]
    pub(crate) mem: Option<MemorySize>,

    /// Longest time the command, call or run may take: 500ms, 30s, 2m
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) timeout: Option<Timeout>,

    /// The folder that becomes the working directory, without changes if `:ro` stands behind it
    ///
    /// Without it the working directory is an empty one that is removed at the end. A folder whose own name ends in `:ro`
    /// is written with a slash behind it.
    #[arg(long, value_name = "DIR[:ro]")]
    pub(crate) workspace: Option<PathBuf>,
}

/// What the flags and the file say together.
pub(crate) struct SandboxChoice {
    pub(crate) provider: Provider,
    pub(crate) options: CreateOptions,
    /// With what to call it in a message: the flag or the key.
    pub(crate) timeout: Option<(String, Timeout)>,
    asked: String,
}

impl SandboxArgs {
    /// Flags first, then the file; names what a value came from when it is wrong.
    pub(crate) fn resolve(self, config: &Config) -> Result<SandboxChoice> {
        let file = &config.sandbox;
        let provider = self.sandbox.or(file.provider).unwrap_or(Provider::Local);
        let mut options = CreateOptions::default();
        let mut asked = Vec::new();
        if let Some((name, network)) = first("--net", self.net, config, "net", file.net.clone()) {
            asked.push(format!("{name} {network}"));
            options = options.network(network.0);
        }
        if let Some((name, size)) = first("--mem", self.mem, config, "memory", file.memory) {
            asked.push(format!("{name} {size}"));
            options = options.limits(ResourceLimits::default().memory_bytes(size.0));
        }
        let in_file = file.workspace.as_ref().map(PathBuf::from);
        let is_flag = self.workspace.is_some();
        if let Some((name, written)) =
            first("--workspace", self.workspace, config, "workspace", in_file)
        {
            let path = if is_flag {
                written.clone()
            } else {
                config.beside(&written)
            };
            options = options.workspace(folder(&name, path, &written)?);
            asked.push(format!("{name} {}", written.display()));
        }
        let timeout = first("--timeout", self.timeout, config, "timeout", file.timeout);
        Ok(SandboxChoice {
            provider,
            options,
            asked: asked.join(", "),
            timeout,
        })
    }
}

impl SandboxChoice {
    /// What failed when the sandbox does not start: names the flags and keys that it may be due to.
    pub(crate) fn starting(&self) -> String {
        match self.asked.as_str() {
            "" => "starting the sandbox".into(),
            asked => format!("starting the sandbox with {asked}"),
        }
    }
}

/// The flag, else the key of `[sandbox]`, with its name.
fn first<T>(
    flag: &str,
    given: Option<T>,
    config: &Config,
    key: &str,
    in_file: Option<T>,
) -> Option<(String, T)> {
    match given {
        Some(value) => Some((flag.to_owned(), value)),
        None => in_file.map(|value| (config.key(&format!("sandbox.{key}")), value)),
    }
}

/// Checks the folder now, while the flag can still be named.
fn folder(name: &str, path: PathBuf, written: &Path) -> Result<Workspace> {
    let written = written.display();
    let wrong = |problem: String| usage(format!("{name} {written}: {problem}"));
    if path.as_os_str().is_empty() {
        return Err(wrong(
            "is empty; name a folder, such as `.` for this one".into(),
        ));
    }
    // The mark is taken off whatever folders there are: what is read-only must not hang on what else lies beside it.
    let (path, read_only) = match path.to_str().and_then(|text| text.strip_suffix(":ro")) {
        Some(rest) if !rest.is_empty() => (PathBuf::from(rest), true),
        _ => (path, false),
    };
    match host::is_folder(&path) {
        Ok(true) => {}
        Ok(false) => return Err(wrong("is a file; name the folder that it lies in".into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut marked = path.clone().into_os_string();
            marked.push(":ro");
            let remedy = if read_only && host::is_folder(Path::new(&marked)).unwrap_or(false) {
                format!(
                    "a folder whose own name ends in `:ro` is written with a slash: {}/",
                    Path::new(&marked).display()
                )
            } else {
                "make it, or name a folder that exists".into()
            };
            return Err(wrong(format!(
                "there is no folder {}; {remedy}",
                path.display()
            )));
        }
        Err(error) => return Err(wrong(format!("{error}; name a folder that you can open"))),
    }
    let path = std::path::absolute(&path)
        .map_err(|error| wrong(format!("{error}; give an absolute path")))?;
    if path.parent().is_none() {
        return Err(wrong(
            "would show the whole machine to the sandbox; name a folder of it".into(),
        ));
    }
    Ok(Workspace::HostFolder { path, read_only })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn check(path: &Path, expect: Result<(&Path, bool), &str>) {
        let got = folder("--workspace", path.to_owned(), path);
        match (got, expect) {
            (Ok(Workspace::HostFolder { path, read_only }), Ok(expect)) => {
                assert_eq!((path.as_path(), read_only), expect)
            }
            (Err(error), Err(part)) => {
                let error = error.to_string();
                assert!(
                    error.contains("--workspace") && error.contains(part),
                    "{error}"
                );
            }
            (got, expect) => panic!("{}: {got:?} is not {expect:?}", path.display()),
        }
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "makes the folders that the flag names"
    )]
    fn the_mark_is_a_suffix_and_nothing_else() {
        let root = tempfile::tempdir().expect("tempdir");
        let at = |name: &str| root.path().join(name);
        for name in ["data", "odd:ro", "a:ro.d", "both", "both:ro"] {
            std::fs::create_dir(at(name)).expect("folder");
        }
        host::write_new(&at("file"), "").expect("file");
        check(&at("data"), Ok((&at("data"), false)));
        check(&at("data:ro"), Ok((&at("data"), true)));
        check(&at("a:ro.d"), Ok((&at("a:ro.d"), false)));
        check(&at("odd:ro"), Err("with a slash"));
        check(&at("odd:ro/"), Ok((&at("odd:ro/"), false)));
        check(&at("odd:ro:ro"), Ok((&at("odd:ro"), true)));
        check(&at("both:ro"), Ok((&at("both"), true)));
        check(&at("missing"), Err("make it"));
        check(&at("missing:ro"), Err("make it"));
        check(
            &at("file"),
            Err("is a file; name the folder that it lies in"),
        );
        check(Path::new("/"), Err("whole machine"));
        check(Path::new(""), Err("is empty"));
    }

    #[test]
    fn flags_win_over_the_file_key_by_key() {
        let config = Config::parse("[sandbox]\ntimeout = \"1m\"\nmemory = \"1G\"\nnet = \"all\"")
            .expect("config");
        let args = SandboxArgs {
            timeout: Some("2s".parse().expect("time")),
            ..SandboxArgs::default()
        };
        let choice = args.resolve(&config).expect("choice");
        assert_eq!(
            choice.starting(),
            "starting the sandbox with sandbox.net all, sandbox.memory 1G"
        );
        assert_eq!(
            choice.timeout,
            Some(("--timeout".into(), Timeout(Duration::from_secs(2))))
        );
        assert_eq!(choice.options.limits.memory_bytes, Some(1 << 30));
        assert_eq!(
            choice.options.network,
            Some(sixb_sandbox::NetworkPolicy::All)
        );
    }
}
