//! The files of runs, in a real sandbox: kept, shown to the model, handed on, there again in the next turn.
#![expect(
    clippy::disallowed_methods,
    reason = "the test looks at the host's side"
)]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use futures::stream::BoxStream;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sixb_agent::{
    Agent, AgentBuilder, Attachment, CancellationToken, Model, ModelError, Outcome, RunError,
    RunRequest, ScriptedModel, Sixb,
    model::{Message, ModelEvent, ModelRequest},
    transcript::{self, Replay},
};
use sixb_artifacts::{Provenance, store::BlobStore};
use sixb_sandbox_local::LocalSandboxFactory;
use sixb_tools::{AgentTool, ToolContext, ToolError, ToolOutput};

use crate::agent_lab::{bash, codes, in_folder};

/// A scripted model that keeps its requests.
#[derive(Debug, Clone)]
struct Watched {
    inner: Arc<ScriptedModel>,
    sees: bool,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl std::fmt::Display for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Model for Watched {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn takes_images(&self) -> bool {
        self.sees
    }
    fn stream(
        &self,
        request: ModelRequest,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        self.asked.lock().expect("requests").push(request.clone());
        self.inner.stream(request, cancel)
    }
}

#[derive(Deserialize, JsonSchema)]
struct Make {
    /// What the file holds.
    text: String,
    name: String,
    /// Whether the file stands in the result; else only its path.
    shown: bool,
}

/// Keeps a text, or, for the text `PNG`, a small image.
fn make() -> Arc<dyn sixb_tools::Tool> {
    AgentTool::new("make")
        .description("Makes a file.")
        .run(|cx: ToolContext, input: Make| async move {
            let bytes = match input.text.strip_prefix("PNG") {
                Some(shade) => png(shade.parse().unwrap_or(0)),
                None => input.text.into_bytes(),
            };
            let kept = cx.artifacts()?.put(bytes, &input.name, None).await?;
            Ok::<_, ToolError>(match input.shown {
                true => ToolOutput::file(kept.file),
                false => ToolOutput::Json(json!({"path": kept.path})),
            })
        })
        .expect("tool")
}

/// A PNG of one grey pixel, made by hand: its checksums are right.
fn png(shade: u8) -> Vec<u8> {
    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0_u32, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                (crc >> 1) ^ (0xedb8_8320 * (crc & 1))
            })
        })
    }
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let adler = {
        let a = 1 + u32::from(shade);
        ((1 + a) << 16) | a
    };
    let mut data = vec![0x78, 1, 1, 2, 0, 0xfd, 0xff, 0, shade];
    data.extend(adler.to_be_bytes());
    for (name, body) in [
        (b"IHDR", vec![0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0]),
        (b"IDAT", data),
        (b"IEND", vec![]),
    ] {
        png.extend(u32::try_from(body.len()).expect("short").to_be_bytes());
        let chunk = [name.as_slice(), &body].concat();
        png.extend(&chunk);
        png.extend(crc(&chunk).to_be_bytes());
    }
    png
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"id": id, "name": name, "arguments": arguments})
}

struct FilesLab {
    sixb: Sixb,
    blobs: BlobStore,
    out: tempfile::TempDir,
    asked: Arc<Mutex<Vec<ModelRequest>>>,
}

impl FilesLab {
    fn new(steps: Value) -> Self {
        Self::with(steps, true, BlobStore::memory(), |agent| agent)
    }

    fn with(
        steps: Value,
        sees: bool,
        blobs: BlobStore,
        change: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        let script = ScriptedModel::from_json(&json!({"steps": steps}).to_string());
        let asked = Arc::default();
        let model = Watched {
            inner: Arc::new(script.expect("script")),
            sees,
            asked: Arc::clone(&asked),
        };
        let sixb = Sixb::builder("acme")
            .sandboxes(LocalSandboxFactory::default())
            .blobs(blobs.clone())
            .agent(change(Agent::builder("a").model(model).tool(make())))
            .build();
        Self {
            sixb: sixb.expect("project"),
            blobs,
            out: tempfile::tempdir().expect("folder"),
            asked,
        }
    }

    fn request(&self) -> RunRequest {
        RunRequest::new("a", "do it")
            .outputs(self.out.path())
            .transcripts(self.out.path().join("transcripts"))
            .state(self.out.path().join("state"))
    }

    async fn play(&self, request: RunRequest) -> Outcome {
        let run = self.sixb.run(request).await.expect("run");
        let end = tokio::time::timeout(std::time::Duration::from_secs(60), run.finish()).await;
        end.expect("no run hangs").expect("outcome")
    }

    /// The user messages with images of each request: their text, and how many images.
    fn shown(&self) -> Vec<Vec<(String, usize)>> {
        let requests = self.asked.lock().expect("requests");
        let of = |request: &ModelRequest| {
            let messages = request.messages.iter().filter_map(|message| match message {
                Message::User { text, images } if !images.is_empty() => {
                    Some((text.clone(), images.len()))
                }
                _ => None,
            });
            messages.collect()
        };
        requests.iter().map(of).collect()
    }

    /// All that the model read in its last request.
    fn read(&self) -> String {
        let requests = self.asked.lock().expect("requests");
        let messages = requests.last().expect("asked").messages.iter();
        let text = messages.map(|message| match message {
            Message::User { text, .. } | Message::Assistant { text, .. } => text.clone(),
            Message::Tool(result) => result.model_text(),
            other => format!("{other:?}"),
        });
        text.collect::<Vec<_>>().join("\n")
    }

    fn transcript(&self, outcome: &Outcome) -> String {
        std::fs::read_to_string(outcome.transcript.as_ref().expect("kept")).expect("transcript")
    }
}

fn saved(outcome: &Outcome) -> BTreeMap<&str, Provenance> {
    let files = outcome.files.iter();
    files
        .map(|file| (file.path.as_str(), file.provenance))
        .collect()
}

#[tokio::test]
async fn an_image_that_is_viewed_twice_is_kept_once_and_shown_once() {
    let lab = FilesLab::new(json!([
        {"toolCalls": [call("make", "make", json!({"text": "PNG7", "name": "chart.png", "shown": false}))]},
        {"toolCalls": [
            call("v1", "view_file", json!({"path": "${calls.make.result.path}"})),
            call("v2", "view_file", json!({"path": "${calls.make.result.path}"})),
            call("csv", "bash", json!({"command": "echo a,b > $SIXB_OUTPUT_DIR/t.csv; cp '${calls.make.result.path}' $SIXB_OUTPUT_DIR/copy.png"}))]},
        {"toolCalls": [call("on", "bash", json!({"command": "echo on"}))]},
        {"text": "done"},
    ]));
    let outcome = lab.play(lab.request()).await;
    assert!(outcome.completed(), "{outcome:?}");
    let shown = lab.shown();
    let counts: Vec<usize> = shown.iter().map(Vec::len).collect();
    assert_eq!(
        counts,
        [0, 0, 1, 0],
        "one message, in the request after the step, and nowhere else"
    );
    let (text, images) = &shown[2][0];
    assert_eq!(*images, 1);
    assert!(
        text.starts_with("<sixb_tool_files toolCallIds=\"v1,v2\">"),
        "{text}"
    );
    // The tool's file is an attachment; the copy is the same file, and the viewed one is none.
    assert_eq!(
        saved(&outcome),
        BTreeMap::from([
            ("chart.png", Provenance::Created),
            ("t.csv", Provenance::Output)
        ])
    );
    assert_eq!(codes(&outcome), []);
    for file in &outcome.files {
        let kept = lab
            .blobs
            .read(file.file_ref.as_ref().expect("kept"))
            .await
            .expect("bytes");
        assert_eq!(
            kept,
            std::fs::read(file.host_path.as_ref().expect("saved")).expect("file")
        );
    }
    let transcript = lab.transcript(&outcome);
    assert!(
        !transcript.contains("base64") && !transcript.contains("iVBOR"),
        "no image is persisted"
    );
    assert!(
        !transcript.contains("sixb_tool_files"),
        "the message is not persisted"
    );
    assert_eq!(
        transcript.matches("\"provenance\":\"created\"").count(),
        2,
        "{transcript}"
    );
}

#[tokio::test]
async fn each_image_of_a_step_is_shown_in_call_order_and_a_broken_one_says_so() {
    let lab = FilesLab::new(json!([
        {"toolCalls": [
            call("m1", "make", json!({"text": "PNG1", "name": "one.png", "shown": true})),
            call("m2", "make", json!({"text": "PNG2", "name": "two.png", "shown": true})),
            call("m3", "make", json!({"text": "PNG1", "name": "same.png", "shown": true})),
            call("cut", "bash", json!({"command": "printf '\\211PNG\\r\\n\\032\\n\\0\\0\\0\\rIHDR' > cut.png"}))]},
        {"toolCalls": [call("v", "view_file", json!({"path": "cut.png"}))]},
        {"text": "done"},
    ]));
    let outcome = lab.play(lab.request()).await;
    assert!(outcome.completed(), "{outcome:?}");
    let shown = lab.shown();
    assert_eq!(shown[1].len(), 1);
    let (text, images) = &shown[1][0];
    assert_eq!(*images, 2, "equal content once: {text}");
    let place = |name: &str| text.find(name).unwrap_or_else(|| panic!("{name}: {text}"));
    assert!(place("one.png") < place("two.png") && place("two.png") < place("same.png"));
    assert_eq!(shown[2], [], "case 59: nothing to see");
    let read = lab.read();
    assert!(read.contains("do not guess"), "case 59: {read}");
    let names: Vec<_> = saved(&outcome).into_keys().collect();
    assert_eq!(
        names,
        ["one.png", "same.png", "two.png"],
        "each name is kept"
    );
}

#[tokio::test]
async fn a_model_without_images_gets_the_path() {
    let steps = json!([
        {"toolCalls": [call("m", "make", json!({"text": "PNG1", "name": "one.png", "shown": true}))]},
        {"text": "done"},
    ]);
    let lab = FilesLab::with(steps, false, BlobStore::memory(), |agent| agent);
    assert!(lab.play(lab.request()).await.completed());
    assert!(lab.shown().iter().all(Vec::is_empty));
    let read = lab.read();
    assert!(
        read.contains("/workspace/.sixb/agent/artifacts/") && read.contains("takes no images"),
        "{read}"
    );
}

#[tokio::test]
async fn text_of_a_file_is_shown_escaped_and_bounded() {
    let long = "</file><script>\n".repeat(20_000);
    let lab = FilesLab::new(json!([
        {"toolCalls": [call("m", "make", json!({"text": long, "name": "a<b>.txt", "shown": true}))]},
        {"text": "done"},
    ]));
    let outcome = lab.play(lab.request()).await;
    let read = lab.read();
    assert!(
        !read.contains("<script>") && read.contains("a&lt;b&gt;.txt"),
        "escaped"
    );
    assert!(
        read.contains("[shown: the first 2000 lines") && read.len() < 120_000,
        "{}",
        read.len()
    );
    assert!(
        lab.transcript(&outcome).len() < 400_000,
        "the text itself is in the arguments only"
    );
}

#[tokio::test]
async fn a_forged_reference_and_what_is_too_much_are_errors_of_the_call() {
    let forge = AgentTool::new("forge")
        .description("Makes a reference up.")
        .run(|_: ToolContext, _: Value2| async {
            Ok::<_, ToolError>(ToolOutput::file(sixb_artifacts::FileRef::of(
                b"of another run",
            )))
        })
        .expect("tool");
    let steps = json!([
        {"toolCalls": [
            call("f", "forge", json!({})),
            call("big", "bash", json!({"command": "truncate -s 26214401 big"}))]},
        {"toolCalls": [call("v", "view_file", json!({"path": "big"}))]},
        {"text": "${calls.f.error.kind} ${calls.f.error.message} ${calls.v.error.kind}"},
    ]);
    let lab = FilesLab::with(steps, true, BlobStore::memory(), |agent| agent.tool(forge));
    let outcome = lab.play(lab.request()).await;
    assert!(
        outcome.text.starts_with("internal ") && outcome.text.contains("no file of this run"),
        "{}",
        outcome.text
    );
    assert!(outcome.text.ends_with("limit_exceeded"), "{}", outcome.text);
    assert!(outcome.files.is_empty());
}

#[derive(Deserialize, JsonSchema)]
struct Value2 {}

#[tokio::test]
async fn two_outputs_of_equal_bytes_keep_both_names() {
    let lab = FilesLab::new(json!([
        bash("c", "cd $SIXB_OUTPUT_DIR; echo same > a.txt; echo same > b.txt; mkdir d; echo same > d/a.txt"),
        {"text": "done"},
    ]));
    let outcome = lab.play(lab.request()).await;
    let names: Vec<_> = saved(&outcome).into_keys().collect();
    assert_eq!(names, ["a.txt", "b.txt", "d/a.txt"]);
}

#[tokio::test]
async fn an_output_keeps_its_name_and_a_tools_file_of_that_name_gets_a_number() {
    let lab = FilesLab::new(json!([
        {"toolCalls": [
            call("m", "make", json!({"text": "of the tool", "name": "a.txt", "shown": false})),
            call("c", "bash", json!({"command": "echo output > $SIXB_OUTPUT_DIR/a.txt"}))]},
        {"text": "done"},
    ]));
    let outcome = lab.play(lab.request()).await;
    assert_eq!(
        saved(&outcome),
        BTreeMap::from([
            ("a-2.txt", Provenance::Created),
            ("a.txt", Provenance::Output)
        ])
    );
    let folder = lab.out.path().join(&outcome.run_id);
    assert_eq!(
        std::fs::read_to_string(folder.join("a-2.txt")).expect("file"),
        "of the tool"
    );
}

#[tokio::test]
async fn attachments_are_read_seen_and_in_the_sandbox() {
    let lab = FilesLab::new(json!([
        bash("look", "cat .sixb/agent/attachments/*/*-orders.csv; cat $SIXB_ATTACHMENTS; wc -c < .sixb/agent/attachments/*/*-raw.bin"),
        {"text": "${calls.look.result.stdout}"},
    ]));
    let request = lab
        .request()
        .attach(Attachment::new("orders.csv", "id,amount\n1,9.50\n"))
        .attach(Attachment::new("pixel.png", png(3)))
        .attach(Attachment::new("raw.bin", &b"\xff\0\xff"[..]))
        .attach(Attachment::new("broken.png", &b"\x89PNG\r\n\x1a\n"[..]));
    let outcome = lab.play(request).await;
    assert!(outcome.completed(), "{outcome:?}");
    assert_eq!(
        lab.shown().iter().map(Vec::len).collect::<Vec<_>>(),
        [1, 1],
        "an attachment stays in the conversation"
    );
    let (text, images) = lab.shown()[0][0].clone();
    assert_eq!(images, 1);
    for part in [
        "do it",
        "<sixb_attachments>",
        "1,9.50",
        "raw.bin",
        "do not guess",
        "path=\".sixb/agent/attachments/",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (csv, rest) = outcome.text.split_at("id,amount\n1,9.50\n".len());
    assert_eq!(csv, "id,amount\n1,9.50\n");
    let (manifest, size) = rest.rsplit_once("]\n").expect("manifest");
    assert_eq!(size.trim(), "3");
    let manifest: Value = serde_json::from_str(&format!("{manifest}]")).expect("JSON");
    assert_eq!(manifest.as_array().map(Vec::len), Some(4));
    assert_eq!(
        (&manifest[0]["fileName"], &manifest[0]["from"]),
        (&json!("orders.csv"), &json!("user"))
    );
    assert!(
        manifest[0]["path"]
            .as_str()
            .is_some_and(|path| path.starts_with("/workspace/.sixb/"))
    );
    assert!(outcome.files.is_empty(), "an attachment is no result");
}

#[tokio::test]
async fn an_attachment_that_cannot_be_is_named() {
    let lab = FilesLab::new(json!([{"text": "never"}]));
    for (attachment, part) in [
        (Attachment::new("a/b", "x"), "\"a/b\""),
        (
            Attachment::new("a.txt", vec![0; (25 << 20) + 1]),
            "26214401 bytes",
        ),
        (
            Attachment::new("a.png", "text").media_type("image/png"),
            "image/png",
        ),
        (
            Attachment::new("a.png", "text").media_type("image"),
            "image",
        ),
    ] {
        let error = lab
            .sixb
            .run(lab.request().attach(attachment))
            .await
            .expect_err(part);
        assert!(matches!(error, RunError::Attachment { .. }), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let many = (0..5).fold(lab.request(), |request, n: u8| {
        request.attach(Attachment::new(format!("{n}.bin"), vec![n; 24 << 20]))
    });
    let error = lab.sixb.run(many).await.expect_err("too much").to_string();
    assert!(
        error.contains("4.bin") && error.contains("104857600"),
        "{error}"
    );
}

#[tokio::test]
async fn files_are_there_again_in_the_next_turn() {
    let blobs = tempfile::tempdir().expect("folder");
    let store = || BlobStore::local(blobs.path()).expect("store");
    let first = FilesLab::with(
        json!([
            {"toolCalls": [
                call("m", "make", json!({"text": "of the tool", "name": "tool.txt", "shown": true})),
                call("c", "bash", json!({"command": "echo output > $SIXB_OUTPUT_DIR/out.txt; echo looked at > seen.txt"}))]},
            {"toolCalls": [call("v", "view_file", json!({"path": "seen.txt"}))]},
            {"text": "done"},
        ]),
        true,
        store(),
        |agent| agent,
    );
    let transcripts = first.out.path().join("transcripts");
    let request = first
        .request()
        .thread("t")
        .attach(Attachment::new("given.txt", "of the user"));
    let outcome = first.play(request).await;
    assert!(outcome.completed(), "{outcome:?}");

    // Another process: nothing but transcripts and blobs goes over.
    let second = FilesLab::with(
        json!([
            // Ids of calls are unique in a run, and the script is played on from the steps of the history.
            {"text": ""}, {"text": ""}, {"text": ""},
            bash("look", "cd .sixb/agent/attachments; for f in */*; do echo \"${f##*-}: $(cat $f)\"; done | sort"),
            {"text": "${calls.look.result.stdout}"},
        ]),
        true,
        store(),
        |agent| agent,
    );
    let past = transcript::thread(&transcripts, "t", None).expect("thread");
    assert_eq!(past.files.len(), 4, "{past:?}");
    let request = RunRequest::conversation("a", "And now?", "t", past)
        .outputs(second.out.path())
        .transcripts(&transcripts);
    let again = second.play(request).await;
    assert_eq!(
        again.text,
        "given.txt: of the user\nout.txt: output\nseen.txt: looked at\ntool.txt: of the tool\n"
    );
    let read = second.read();
    for part in [
        "<sixb_earlier_files>",
        "given.txt",
        "from=\"tool\"",
        "from=\"output\"",
        &outcome.run_id,
    ] {
        assert!(read.contains(part), "{part}: {read}");
    }
    assert!(
        again.files.is_empty(),
        "what earlier turns made is not made again: {again:?}"
    );
}

#[tokio::test]
async fn a_resumed_run_has_its_files() {
    let script = |last: &str| {
        json!([
            {"toolCalls": [call("m", "make", json!({"text": "of the tool", "name": "tool.txt", "shown": false}))]},
            {"toolCalls": [call("c", "bash", json!({"command": last}))]},
            {"text": "${calls.c.result.stdout}"},
        ])
    };
    let blobs = BlobStore::memory();
    let first = FilesLab::with(script("sleep 60"), true, blobs.clone(), |agent| agent);
    let transcripts = first.out.path().join("transcripts");
    let cancel = CancellationToken::new();
    let request = first
        .request()
        .cancel(cancel.clone())
        .attach(Attachment::new("given.txt", "of the user"));
    let run = first.sixb.run(request).await.expect("run");
    let id = run.id().to_owned();
    let mut run = Box::pin(run);
    while let Some(event) = futures::StreamExt::next(&mut run).await {
        if matches!(&event, sixb_agent::RunEvent::ToolCallStarted { name, .. } if name == "bash") {
            cancel.cancel();
        }
    }
    let past = Replay::read(&transcripts, &id).expect("replay");
    assert_eq!(past.status.as_deref(), Some("cancelled"));
    let known: Vec<_> = past.run_files.iter().map(|file| file.provenance).collect();
    assert_eq!(known, [Provenance::Attached, Provenance::Created]);

    let steps = json!([
        {"text": ""}, {"text": ""},
        {"toolCalls": [call("again", "bash", json!({"command": "cat .sixb/agent/attachments/*/*-given.txt .sixb/agent/artifacts/*/*-tool.txt"}))]},
        {"text": "${calls.again.result.stdout}"},
    ]);
    let second = FilesLab::with(steps, true, blobs, |agent| agent);
    let request = RunRequest::resume(&past, &transcripts).outputs(second.out.path());
    let outcome = second.play(request).await;
    assert_eq!(outcome.text, "of the userof the tool", "{outcome:?}");
    assert!(
        second.read().contains("of the user"),
        "what was attached is shown again"
    );
}

#[tokio::test]
async fn a_store_in_the_guests_hands_is_refused() {
    let work = tempfile::tempdir().expect("folder");
    let blobs = BlobStore::local(work.path().join("blobs")).expect("store");
    let lab = FilesLab::with(json!([{"text": "never"}]), true, blobs, |agent| agent);
    let request = lab.request().sandbox(in_folder(work.path(), false));
    let error = lab.sixb.run(request).await.expect_err("exposed");
    assert!(
        matches!(error, RunError::Exposed { what: "blobs", .. }),
        "{error:?}"
    );
    let request = lab.request().sandbox(in_folder(work.path(), true));
    assert!(
        lab.play(request).await.completed(),
        "a guest that may only read cannot change it"
    );
}

#[tokio::test]
async fn what_is_kept_on_the_host_is_not_in_the_guests_hands() {
    let root = tempfile::tempdir().expect("folder");
    let (work, store) = (root.path().join("work"), root.path().join("store"));
    for folder in [&work, &store, &store.join("blobs")] {
        std::fs::create_dir_all(folder).expect("folder");
    }
    let lab = |blobs| FilesLab::with(json!([{"text": "never"}]), true, blobs, |agent| agent);
    // A workspace that is the store, though the store does not lie in it.
    let blobs = BlobStore::local(&store).expect("store");
    let request = lab(blobs.clone())
        .request()
        .sandbox(in_folder(&store.join("blobs"), false));
    let error = lab(blobs).sixb.run(request).await.expect_err("exposed");
    assert!(
        matches!(error, RunError::Exposed { what: "blobs", .. }),
        "{error:?}"
    );
    // Requests are written by the host: never where the guest could lead them elsewhere.
    let lab = lab(BlobStore::memory());
    let request = lab
        .request()
        .sandbox(in_folder(&work, false))
        .dump_requests(work.join("d"));
    let error = lab.sixb.run(request).await.expect_err("exposed");
    assert!(
        matches!(error, RunError::Exposed { what, .. } if what.starts_with("requests")),
        "{error:?}"
    );
    // A link that an earlier guest left.
    std::os::unix::fs::symlink(&work, root.path().join("store/blobs/sha256")).expect("link");
    assert!(BlobStore::local(&store).is_err(), "it would lead elsewhere");
}

#[tokio::test]
async fn a_read_only_workspace_gets_no_files_and_the_model_is_told() {
    let work = tempfile::tempdir().expect("folder");
    let lab = FilesLab::new(json!([bash("c", "ls -A"), {"text": "[${calls.c.result.stdout}]"}]));
    let request = lab
        .request()
        .attach(Attachment::new("given.txt", "of the user"))
        .sandbox(in_folder(work.path(), true));
    let outcome = lab.play(request).await;
    assert_eq!(outcome.text, "[]");
    let read = lab.read();
    assert!(
        read.contains("of the user") && read.contains("they are not in the sandbox"),
        "{read}"
    );
    assert!(!read.contains("path="), "{read}");
}

#[tokio::test]
async fn a_file_that_is_lost_is_said_to_the_model_too() {
    let blobs = tempfile::tempdir().expect("folder");
    let store = || BlobStore::local(blobs.path()).expect("store");
    let first = FilesLab::with(json!([{"text": "done"}]), true, store(), |agent| agent);
    let transcripts = first.out.path().join("transcripts");
    let request = first
        .request()
        .thread("t")
        .attach(Attachment::new("gone.txt", "gone"))
        .attach(Attachment::new("bad.txt", "bad!"));
    assert!(first.play(request).await.completed());
    let past = transcript::thread(&transcripts, "t", None).expect("thread");
    let blob = |at: usize| {
        blobs
            .path()
            .join("blobs/sha256")
            .join(past.files[at].file.digest().hex())
    };
    std::fs::remove_file(blob(0)).expect("removed");
    std::fs::write(blob(1), "BAD!").expect("damaged");

    let second = FilesLab::with(
        json!([{"text": ""}, bash("c", "cat .sixb/agent/context/attachments.json"), {"text": "${calls.c.result.stdout}"}]),
        true,
        store(),
        |agent| agent,
    );
    let request = RunRequest::conversation("a", "And now?", "t", past).outputs(second.out.path());
    let outcome = second.play(request).await;
    assert_eq!(outcome.text.trim(), "[]", "neither is there: {outcome:?}");
    let codes: Vec<_> = codes(&outcome).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["attachment_lost", "attachment_lost"]);
    let read = second.read();
    assert!(
        read.contains("gone.txt") && read.contains("You do not have it: do not guess"),
        "{read}"
    );
}

#[tokio::test]
async fn a_resumed_run_sees_the_image_that_it_asked_for() {
    let steps = |tail: Value| {
        let mut steps = vec![
            json!({"toolCalls": [call("m", "make", json!({"text": "PNG9", "name": "a.png", "shown": true}))]}),
        ];
        steps.extend(tail.as_array().cloned().unwrap_or_default());
        Value::Array(steps)
    };
    let blobs = BlobStore::memory();
    // The process ends, in effect, while the model is asked what it sees.
    let first = FilesLab::with(
        steps(json!([{"text": "late", "delayMs": 60000}])),
        true,
        blobs.clone(),
        |agent| agent,
    );
    let transcripts = first.out.path().join("transcripts");
    let cancel = CancellationToken::new();
    let run = first
        .sixb
        .run(first.request().cancel(cancel.clone()))
        .await
        .expect("run");
    let id = run.id().to_owned();
    let mut run = Box::pin(run);
    while let Some(event) = futures::StreamExt::next(&mut run).await {
        if matches!(&event, sixb_agent::RunEvent::ToolCallFinished { .. }) {
            cancel.cancel();
        }
    }
    let past = Replay::read(&transcripts, &id).expect("replay");
    let second = FilesLab::with(steps(json!([{"text": "seen"}])), true, blobs, |agent| agent);
    let request = RunRequest::resume(&past, &transcripts)
        .attach(Attachment::new("late.txt", "came later"))
        .outputs(second.out.path());
    let outcome = second.play(request).await;
    assert_eq!(outcome.text, "seen", "{outcome:?}");
    assert_eq!(second.shown()[0].len(), 1, "the image is shown");
    let recorded = Replay::read(&transcripts, &id).expect("replay").run_files;
    assert_eq!(
        recorded.len(),
        2,
        "what was attached to the resumed run is recorded: {recorded:?}"
    );
}

#[tokio::test]
async fn cancelling_ends_the_intake_and_nothing_is_left() {
    let lab = FilesLab::new(json!([{"text": "never"}]));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let request = lab
        .request()
        .cancel(cancel)
        .attach(Attachment::new("a.txt", "x"));
    let error = lab.sixb.run(request).await.expect_err("cancelled");
    assert!(matches!(error, RunError::Cancelled), "{error:?}");
    let wrong = lab.request().attach(Attachment::new("a/b", "x"));
    assert!(lab.sixb.run(wrong).await.is_err());
    let runs = transcript::runs(lab.out.path().join("transcripts")).expect("runs");
    assert_eq!(runs, [""; 0], "no transcript of a run that never began");
}

#[tokio::test]
async fn names_that_are_no_text_do_not_break_the_record() {
    let lab = FilesLab::new(json!([
        bash("c", "printf x > $SIXB_OUTPUT_DIR/$'\\xff.bin'"),
        {"text": "done"},
    ]));
    let outcome = lab.play(lab.request()).await;
    assert_eq!((outcome.files.len(), codes(&outcome)), (1, vec![]));
    assert!(serde_json::to_string(&outcome).is_ok());
    let past = Replay::read(lab.out.path().join("transcripts"), &outcome.run_id).expect("replay");
    assert_eq!(past.files.len(), 1);
}

#[tokio::test]
async fn a_damaged_record_of_a_file_costs_that_file_alone() {
    let lab = FilesLab::new(json!([{"text": "done"}]));
    let outcome = lab
        .play(
            lab.request()
                .thread("t")
                .attach(Attachment::new("a.txt", "x")),
        )
        .await;
    let path = outcome.transcript.as_ref().expect("kept");
    let text = std::fs::read_to_string(path).expect("transcript");
    for damage in [
        ("\"attached\"", "\"of-the-future\""),
        ("sha256:", "sha256:zz"),
    ] {
        std::fs::write(path, text.replace(damage.0, damage.1)).expect("written");
        let past =
            transcript::thread(lab.out.path().join("transcripts"), "t", None).expect("thread");
        assert_eq!(
            (past.messages.len(), past.files.len()),
            (2, 0),
            "{damage:?}"
        );
        assert_eq!(past.problems.len(), 1, "{past:?}");
    }
    std::fs::write(path, text.replace("\"user\"", "\"usr\"")).expect("written");
    let past = transcript::thread(lab.out.path().join("transcripts"), "t", None).expect("thread");
    assert!(
        past.messages.is_empty() && past.problems[0].contains("a turn is passed over"),
        "{past:?}"
    );
}

#[tokio::test]
async fn a_workspace_that_outlives_the_run_is_left_as_it_was() {
    for before in ["", ".sixb/agent/attachments/other"] {
        let work = tempfile::tempdir().expect("folder");
        std::fs::create_dir_all(work.path().join(before)).expect("folder");
        let lab = FilesLab::new(json!([
            {"toolCalls": [call("m", "make", json!({"text": "x", "name": "a.txt", "shown": true}))]},
            {"text": "done"},
        ]));
        let request = lab
            .request()
            .attach(Attachment::new("given.txt", "of the user"))
            .sandbox(in_folder(work.path(), false));
        let outcome = lab.play(request).await;
        assert_eq!(saved(&outcome).len(), 1, "{outcome:?}");
        let left = std::fs::read_dir(work.path().join(before).join("..")).expect("folder");
        let left: Vec<_> = left
            .flatten()
            .map(|entry| entry.file_name())
            .filter(|name| name != "other")
            .collect();
        if !before.is_empty() {
            assert!(left.is_empty(), "{left:?}");
        } else {
            assert_eq!(std::fs::read_dir(work.path()).expect("folder").count(), 0);
        }
    }
}
