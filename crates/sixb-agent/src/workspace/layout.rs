//! Which files and variables a run has in its sandbox. Pure: guest paths in, files and variables out.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sixb_sandbox::{FileWrite, SandboxPath};

/// Everything a run puts into its workspace lies below.
pub(crate) const CONTEXT: &str = ".sixb/agent";
pub(crate) const RUN_JSON: &str = ".sixb/agent/context/run.json";
pub(crate) const ATTACHMENTS_JSON: &str = ".sixb/agent/context/attachments.json";
pub(crate) const ATTACHMENTS: &str = ".sixb/agent/attachments";
pub(crate) const ARTIFACTS: &str = sixb_artifacts::ARTIFACTS_DIR;
pub(crate) const SKILLS: &str = ".sixb/agent/skills";
pub(crate) const OUTPUTS_PARENT: &str = ".sixb/agent/outputs";
pub(crate) const OUTPUTS: &str = ".sixb/agent/outputs/published";
pub(crate) const STAGING: &str = ".sixb/agent/outputs/staging";

/// What a run makes in its workspace, parents first.
const MADE: &[&str] = &[
    ".sixb",
    CONTEXT,
    ".sixb/agent/context",
    RUN_JSON,
    ATTACHMENTS_JSON,
    ATTACHMENTS,
    ".sixb/agent/attachments/.keep",
    ARTIFACTS,
    SKILLS,
    ".sixb/agent/skills/.keep",
    OUTPUTS_PARENT,
    OUTPUTS,
    ".sixb/agent/outputs/published/.keep",
    STAGING,
    ".sixb/agent/outputs/staging/.keep",
];

/// Who runs.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) project_id: String,
    pub(crate) agent_id: String,
    pub(crate) run_id: String,
    pub(crate) thread_id: Option<String>,
    /// Where the gateway is, as the sandbox sees it. `None` without a gateway.
    pub(crate) api_base_url: Option<String>,
}

/// A path of this module, which are all well-formed.
pub(crate) fn path(constant: &str) -> SandboxPath {
    SandboxPath::parse(constant).unwrap_or_default()
}

/// The paths to look for before anything is made, parents first.
pub(crate) fn made() -> impl Iterator<Item = SandboxPath> {
    MADE.iter().map(|constant| path(constant))
}

/// What to remove at the end: all that was not there at the start, as few paths as possible.
pub(crate) fn to_remove(missing: &[SandboxPath]) -> Vec<SandboxPath> {
    let mut roots: Vec<SandboxPath> = Vec::new();
    for path in missing {
        if !roots.iter().any(|root| path.starts_with(root)) {
            roots.push(path.clone());
        }
    }
    roots
}

/// The files that are there before any tool touches the sandbox, besides those that the run brings.
pub(crate) fn files(identity: &Identity, working_directory: &str) -> Vec<FileWrite> {
    let guest = |constant: &str| Value::String(absolute(working_directory, constant));
    let mut run = Map::new();
    run.insert("projectId".into(), identity.project_id.clone().into());
    run.insert("agentId".into(), identity.agent_id.clone().into());
    if let Some(thread) = &identity.thread_id {
        run.insert("threadId".into(), thread.clone().into());
    }
    run.insert("runId".into(), identity.run_id.clone().into());
    if let Some(url) = &identity.api_base_url {
        run.insert("apiBaseUrl".into(), url.clone().into());
    }
    run.insert("attachmentsManifestPath".into(), guest(ATTACHMENTS_JSON));
    run.insert("attachmentsDir".into(), guest(ATTACHMENTS));
    run.insert("outputDir".into(), guest(OUTPUTS));
    run.insert("outputStagingDir".into(), guest(STAGING));
    let run = format!("{:#}\n", Value::Object(run));
    let keep = [ATTACHMENTS, SKILLS, OUTPUTS, STAGING]
        .map(|dir| FileWrite::new(path(&format!("{dir}/.keep")), ""));
    std::iter::once(FileWrite::new(path(RUN_JSON), run))
        .chain(keep)
        .collect()
}

/// The variables of the run's commands. Without `files` (a read-only workspace) only the names of things.
pub(crate) fn environment(
    identity: &Identity,
    working_directory: &str,
    files: bool,
) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let mut set = |key: &str, value: String| env.insert(key.to_owned(), value);
    set("SIXB_PROJECT_ID", identity.project_id.clone());
    set("SIXB_AGENT_ID", identity.agent_id.clone());
    set("SIXB_RUN_ID", identity.run_id.clone());
    if let Some(thread) = &identity.thread_id {
        set("SIXB_THREAD_ID", thread.clone());
    }
    if let Some(url) = &identity.api_base_url {
        set("SIXB_API_BASE_URL", url.clone());
    }
    if files {
        for (key, constant) in [
            ("SIXB_CONTEXT_DIR", CONTEXT),
            ("SIXB_SKILLS_DIR", SKILLS),
            ("SIXB_RUN_CONTEXT", RUN_JSON),
            ("SIXB_ATTACHMENTS", ATTACHMENTS_JSON),
            ("SIXB_ATTACHMENT_DIR", ATTACHMENTS),
            ("SIXB_OUTPUT_DIR", OUTPUTS),
            ("SIXB_OUTPUT_STAGING_DIR", STAGING),
        ] {
            set(key, absolute(working_directory, constant));
        }
    }
    env
}

pub(crate) fn absolute(working_directory: &str, constant: &str) -> String {
    format!("{}/{constant}", working_directory.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            project_id: "acme".into(),
            agent_id: "a".into(),
            run_id: "run_1".into(),
            thread_id: None,
            api_base_url: None,
        }
    }

    #[test]
    fn run_json_has_absolute_guest_paths_and_only_what_there_is() {
        let text = |identity: &Identity| match &files(identity, "/workspace")[0].contents {
            sixb_sandbox::FileContents::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("{other:?}"),
        };
        insta::assert_snapshot!(text(&identity()));
        let full = Identity {
            thread_id: Some("t1".into()),
            api_base_url: Some("http://gateway.sixb.internal/x".into()),
            ..identity()
        };
        let full = text(&full);
        assert!(
            full.contains("\"threadId\": \"t1\"") && full.contains("\"apiBaseUrl\""),
            "{full}"
        );
    }

    #[test]
    fn variables() {
        insta::assert_debug_snapshot!(environment(&identity(), "/workspace/", true));
        let bare = environment(&identity(), "/workspace", false);
        assert_eq!(
            bare.keys().collect::<Vec<_>>(),
            ["SIXB_AGENT_ID", "SIXB_PROJECT_ID", "SIXB_RUN_ID"]
        );
    }

    #[test]
    fn every_file_of_the_batch_is_known_to_the_clean_up() {
        let made: Vec<_> = made().collect();
        assert!(
            made.iter().all(|path| !path.is_root()),
            "the workspace itself is never removed"
        );
        for file in files(&identity(), "/workspace") {
            assert!(made.contains(&file.path), "{}", file.path);
            assert!(
                made.contains(&file.path.parent().expect("parent")),
                "{}",
                file.path
            );
        }
    }

    #[test]
    fn only_what_was_missing_is_removed() {
        let all: Vec<_> = made().collect();
        assert_eq!(to_remove(&all), [path(".sixb")]);
        let below: Vec<_> = made().skip(1).collect();
        assert_eq!(to_remove(&below), [path(CONTEXT)]);
        let files = [
            path(RUN_JSON),
            path(STAGING),
            path(".sixb/agent/outputs/staging/.keep"),
        ];
        assert_eq!(to_remove(&files), [path(RUN_JSON), path(STAGING)]);
        assert_eq!(to_remove(&[]), []);
    }
}
