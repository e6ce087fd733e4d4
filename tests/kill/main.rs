//! Runs whose process is killed at random moments, and that go on afterwards.
//!
//! The test starts its own binary again as the process to kill: a scripted run whose tool writes its call id to a file,
//! once per effect. After each kill the transcript has to be readable, and the run, resumed here, has to complete
//! without doing again what had a result.

use std::{
    collections::BTreeMap,
    fmt,
    fs::OpenOptions,
    io::Write,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use sixb_agent::{
    Agent, RunRequest, RunStatus, ScriptedModel, Sixb,
    transcript::{self, Reader, RecordBody, Replay},
};
use sixb_sandbox::{
    Capabilities, CreateOptions, Sandbox, SandboxError, SandboxFactory, SandboxRecord,
};
use sixb_tools::{AgentTool, Tool, ToolContext, ToolError, schemars};

/// Names the folder in which the child runs.
const CHILD: &str = "SIXB_KILL_TEST_FOLDER";
const KILLS: u32 = 100;
const STEPS: usize = 6;
/// The test may take so long on a machine that does nothing else.
const BUDGET: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct NoSandboxes;

impl fmt::Display for NoSandboxes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("none")
    }
}

#[sixb_tools::async_trait]
impl SandboxFactory for NoSandboxes {
    fn provider(&self) -> &'static str {
        "none"
    }

    async fn create(&self, options: CreateOptions) -> sixb_sandbox::Result<Arc<dyn Sandbox>> {
        options.cancel.cancelled().await;
        Err(SandboxError::Cancelled { op: "create" })
    }

    async fn probe(&self) -> sixb_sandbox::Result<Capabilities> {
        Err(SandboxError::provider("probe", "none", None))
    }

    async fn list(&self) -> sixb_sandbox::Result<Vec<SandboxRecord>> {
        Ok(Vec::new())
    }

    async fn sweep(&self) -> sixb_sandbox::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Note {
    /// How long it takes, in milliseconds.
    ms: u64,
}

/// Has an effect outside the run: a line with its call id.
fn note(folder: &Path) -> Arc<dyn Tool> {
    let effects = folder.join("effects");
    AgentTool::new("note")
        .description("Notes its call.")
        .run(move |cx: ToolContext, input: Note| {
            let effects = effects.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(input.ms)).await;
                let mut file = open(&effects)?;
                file.write_all(format!("{}\n", cx.tool_call_id()).as_bytes())?;
                Ok::<_, ToolError>("x".repeat(5_000))
            }
        })
        .expect("tool")
}

#[expect(clippy::disallowed_methods, reason = "the effect that the test counts")]
fn open(effects: &Path) -> std::io::Result<std::fs::File> {
    OpenOptions::new().append(true).create(true).open(effects)
}

fn script() -> String {
    let step = |step: usize| {
        let call = |n: usize| json!({"id": format!("s{step}c{n}"), "name": "note", "arguments": {"ms": n}});
        json!({"text": format!("Step {step}. "), "toolCalls": (0..3).map(call).collect::<Vec<Value>>()})
    };
    let mut steps: Vec<Value> = (0..STEPS).map(step).collect();
    steps.push(json!({"text": "Done."}));
    json!({"steps": steps}).to_string()
}

fn project(folder: &Path) -> Sixb {
    let model = ScriptedModel::from_json(&script()).expect("script");
    let agent = Agent::builder("a")
        .model(model)
        .tool(note(folder))
        .without_sandbox_tools();
    Sixb::builder("p")
        .sandboxes(NoSandboxes)
        .blobs(sixb_artifacts::store::BlobStore::memory())
        .agent(agent)
        .build()
        .expect("project")
}

/// The process that is killed.
fn child(folder: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("runtime");
    runtime.block_on(async {
        let request = RunRequest::new("a", "Note.").transcripts(folder);
        let outcome = project(folder)
            .run(request)
            .await
            .expect("run")
            .finish()
            .await
            .expect("outcome");
        assert_eq!(outcome.status, RunStatus::Completed);
    });
}

/// xorshift: enough to spread moments, and a seed repeats them.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

/// Starts the child; with `kill` it is killed that long after its transcript began. Whether it was.
#[expect(clippy::disallowed_methods, reason = "the test kills its own binary")]
fn play(folder: &Path, kill: Option<Duration>) -> bool {
    let mut child = Command::new(std::env::current_exe().expect("binary"))
        .args([
            "--exact",
            "killed_at_any_moment_a_run_goes_on",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(CHILD, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("child");
    if let Some(after) = kill {
        let begun = Instant::now();
        while transcript::runs(folder).expect("runs").is_empty()
            && begun.elapsed() < Duration::from_secs(20)
        {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(after);
        child.kill().expect("kill");
    }
    let status = child.wait().expect("wait");
    assert!(status.success() || status.signal() == Some(9), "{status}");
    !status.success()
}

/// Calls with a result in the transcript, by id, with how often.
fn results(path: &Path) -> BTreeMap<String, u32> {
    let mut results = BTreeMap::new();
    for record in Reader::open(path).expect("transcript") {
        let record = record.expect("no damage, only a torn end");
        if let RecordBody::ToolResult { call_id, .. } = record.body {
            *results.entry(call_id).or_default() += 1;
        }
    }
    results
}

#[expect(clippy::disallowed_methods, reason = "the effect that the test counts")]
fn effects(folder: &Path) -> BTreeMap<String, u32> {
    let text = std::fs::read_to_string(folder.join("effects")).unwrap_or_default();
    let mut effects = BTreeMap::new();
    for line in text.lines() {
        *effects.entry(line.to_owned()).or_default() += 1;
    }
    effects
}

#[test]
fn killed_at_any_moment_a_run_goes_on() {
    if let Some(folder) = std::env::var_os(CHILD) {
        return child(Path::new(&folder));
    }
    let seed = std::env::var("SIXB_KILL_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .expect("clock");
        now.as_nanos() as u64 | 1
    });
    println!("seed {seed}: repeat with SIXB_KILL_SEED={seed}");
    let mut dice = Dice(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("runtime");
    let begun = Instant::now();

    let folder = tempfile::tempdir().expect("folder");
    let first = Instant::now();
    play(folder.path(), None);
    // Start-up and end included: some kills come too late, and those runs are whole.
    let whole = first.elapsed().max(Duration::from_millis(20));

    let (mut killed, mut torn, mut interrupted, mut early) = (0, 0, 0, 0);
    for round in 0..KILLS {
        if begun.elapsed() > BUDGET {
            println!("{round} of {KILLS} kills in the time there is");
            assert!(
                round >= KILLS / 5,
                "the machine is too slow to tell anything"
            );
            break;
        }
        let folder = tempfile::tempdir().expect("folder");
        let moment = Duration::from_micros(dice.below(whole.as_micros() as u64));
        if !play(folder.path(), Some(moment)) {
            continue;
        }
        killed += 1;
        let runs = transcript::runs(folder.path()).expect("runs");
        let path: PathBuf = folder.path().join(&runs[0]).join(transcript::FILE_NAME);
        let Ok(past) = Replay::read(folder.path(), &runs[0]) else {
            // Killed before the first record was whole: nothing was done.
            early += 1;
            assert!(
                effects(folder.path()).is_empty(),
                "seed {seed}, round {round}"
            );
            continue;
        };
        torn += u32::from(past.torn);
        interrupted += past.interrupted.len();
        let (finished, before) = (results(&path), effects(folder.path()));
        if past.completed() {
            continue;
        }
        let outcome = runtime.block_on(async {
            let request = RunRequest::resume(&past, folder.path());
            project(folder.path())
                .run(request)
                .await
                .expect("resumed")
                .finish()
                .await
                .expect("outcome")
        });
        let context = format!("seed {seed}, round {round}, {moment:?}");
        assert_eq!(outcome.status, RunStatus::Completed, "{context}");
        assert_eq!(outcome.text, "Done.", "{context}");
        let after = effects(folder.path());
        for id in finished.keys() {
            assert_eq!(
                after.get(id),
                before.get(id),
                "{context}: {id} was repeated"
            );
        }
        let whole = results(&path);
        assert_eq!(
            whole.len(),
            STEPS * 3,
            "{context}: each call has a result: {whole:?}"
        );
        assert!(
            whole.values().all(|count| *count == 1),
            "{context}: {whole:?}"
        );
        assert!(
            after.values().all(|count| *count == 1),
            "{context}: {after:?}"
        );
    }
    println!(
        "{killed} killed ({early} before the first record, {torn} with a torn line, {interrupted} calls interrupted) in {:?}",
        begun.elapsed()
    );
    assert!(killed > 10, "{killed} of {KILLS} kills came in time");
}
