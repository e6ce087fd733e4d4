//! Files that a tool call keeps, with errors in the words of tools.

use sixb_artifacts::store::{Artifact, ArtifactError, Body, CallArtifacts};

use crate::{ToolContext, ToolError, ToolErrorKind};

/// Where a tool call keeps files; see [`ToolContext::artifacts`].
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use sixb_tools::{AgentTool, ToolContext, ToolError, ToolOutput};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Nothing {}
///
/// let table = AgentTool::new("make_table")
///     .description("Makes a table.")
///     .run(|cx: ToolContext, _: Nothing| async move {
///         let table = cx.artifacts()?.put("a,b\n1,2\n", "table.csv", None).await?;
///         Ok::<_, ToolError>(ToolOutput::file(table.file))
///     })?;
/// # let _ = table;
/// # Ok::<(), sixb_tools::ToolBuildError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Artifacts<'a> {
    call: &'a CallArtifacts,
}

impl<'a> Artifacts<'a> {
    /// Keeps a file: it is stored durably, written into the sandbox (whose boot this awaits), and one of the run's files.
    ///
    /// `file_name` is one safe name, without `/`. The media type is what the bytes show, else `media_type`, else by the name.
    /// At most 25 MiB a file and 100 MiB a run. Ends early when the call is cancelled; nothing is charged then.
    ///
    /// # Errors
    /// `invalid_input` for a name or media type that is none, or one that the bytes contradict; `limit_exceeded`;
    /// `cancelled`; `provider` when the store or the sandbox failed.
    pub async fn put(
        &self,
        body: impl Into<Body>,
        file_name: &str,
        media_type: Option<&str>,
    ) -> Result<Artifact, ToolError> {
        let kept = self.call.put(body, file_name, media_type).await;
        kept.map_err(tool_error)
    }

    /// The call as the store knows it.
    pub fn call(&self) -> &'a CallArtifacts {
        self.call
    }
}

pub(crate) fn artifacts(cx: &ToolContext) -> Result<Artifacts<'_>, ToolError> {
    match cx.extension::<CallArtifacts>() {
        Some(call) => Ok(Artifacts { call }),
        None => Err(ToolError::new(
            ToolErrorKind::NotFound,
            "this run keeps no files",
        )),
    }
}

/// An artifact's error, in the words a model may read.
pub(super) fn tool_error(error: ArtifactError) -> ToolError {
    use ToolErrorKind as Kind;
    let kind = match &error {
        ArtifactError::Cancelled => return ToolError::of(Kind::Cancelled).with_source(error),
        ArtifactError::FileName(_)
        | ArtifactError::MediaType(_)
        | ArtifactError::Contradiction(_) => Kind::InvalidInput,
        ArtifactError::Budget(_) => Kind::LimitExceeded,
        // What a store says may name the host.
        _ => {
            let text = "The file could not be kept: the store or the sandbox failed.";
            return ToolError::new(Kind::Provider, text).with_source(error);
        }
    };
    ToolError::new(kind, error.to_string()).with_source(error)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sixb_artifacts::{
        Budget, BudgetLimits, RunFiles,
        store::{ArtifactStore, BlobStore, BoxError, CancellationToken, Materialise},
    };

    use super::*;

    #[derive(Debug)]
    struct Broken;

    #[async_trait::async_trait]
    impl Materialise for Broken {
        async fn materialise(&self, _: &str, _: bytes::Bytes) -> Result<String, BoxError> {
            Err("connect /run/secret.sock".into())
        }
    }

    #[tokio::test]
    async fn each_failure_has_its_kind_and_no_host_path() {
        let run = ArtifactStore::new(
            BlobStore::memory(),
            Budget::new(BudgetLimits::new(10, 10)),
            RunFiles::default(),
            Arc::new(Broken),
        );
        let cancel = CancellationToken::new();
        let cx = |cancel: &CancellationToken| {
            ToolContext::builder("c")
                .extension(run.call("c", cancel.clone()))
                .build()
        };
        let fine = cx(&cancel);
        let artifacts = fine.artifacts().expect("lent");
        for (body, name, media_type, kind, part) in [
            ("x", "a/b", None, ToolErrorKind::InvalidInput, "a/b"),
            ("x", "b", Some("text"), ToolErrorKind::InvalidInput, "text"),
            (
                "x",
                "b",
                Some("image/png"),
                ToolErrorKind::InvalidInput,
                "image/png",
            ),
            (
                "more than ten",
                "b",
                None,
                ToolErrorKind::LimitExceeded,
                "10",
            ),
            ("x", "b", None, ToolErrorKind::Provider, "could not be kept"),
        ] {
            let error = artifacts.put(body, name, media_type).await.expect_err(part);
            assert_eq!(error.kind(), kind, "{error:?}");
            assert!(error.model_text().contains(part), "{error:?}");
            assert!(!error.model_text().contains("secret"), "{error:?}");
        }
        cancel.cancel();
        let error = artifacts.put("x", "b", None).await.expect_err("cancelled");
        assert_eq!(error.kind(), ToolErrorKind::Cancelled);
        let none = ToolContext::builder("c").build();
        assert_eq!(
            none.artifacts().expect_err("none").kind(),
            ToolErrorKind::NotFound
        );
    }
}
