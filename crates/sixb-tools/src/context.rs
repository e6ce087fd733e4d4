//! What a tool call knows about its run, and what the host lends it.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::Arc,
    time::Instant,
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Level;

use crate::{ProgressStream, RunInfo, RunKind, ToolProgress};

/// The context of one tool call. Cheap to clone.
///
/// What the host lends its tools (a sandbox, connectors, an artifact store) travels as extensions, one per type.
#[derive(Clone)]
pub struct ToolContext(Arc<Inner>);

struct Inner {
    tool_call_id: String,
    run: Arc<RunInfo>,
    cancel: CancellationToken,
    deadline: Option<Instant>,
    extensions: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
    progress: Option<mpsc::Sender<ToolProgress>>,
}

impl ToolContext {
    /// Begins the context of the call `tool_call_id`.
    pub fn builder(tool_call_id: impl Into<String>) -> ToolContextBuilder {
        ToolContextBuilder {
            inner: Inner {
                tool_call_id: tool_call_id.into(),
                run: Arc::new(RunInfo::new("", "", RunKind::Cli)),
                cancel: CancellationToken::new(),
                deadline: None,
                extensions: HashMap::new(),
                progress: None,
            },
        }
    }

    /// Names this call, uniquely in its run.
    pub fn tool_call_id(&self) -> &str {
        &self.0.tool_call_id
    }

    /// Names this call among all calls of all runs: `<run id>/<call id>`. A service that takes idempotency keys acts once
    /// on it, whatever happens to this process. The runtime itself makes no call twice, also not when a run is resumed.
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.0.run.run_id, self.0.tool_call_id)
    }

    /// The run it belongs to.
    pub fn run(&self) -> &RunInfo {
        &self.0.run
    }

    /// Fires when the call is to end.
    pub fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// When the call must have ended.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.deadline
    }

    /// What the host lends under this type.
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.extensions.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Logs a line: a tracing event in the run's span, and kept on the run ([`RunInfo::log_lines`]).
    pub fn log(&self, level: Level, text: impl AsRef<str>) {
        let text = text.as_ref();
        macro_rules! event {
            ($level:expr) => {
                tracing::event!(
                    target: "sixb_tools::log",
                    $level,
                    run_id = %self.run().run_id,
                    tool_call_id = %self.tool_call_id(),
                    "{text}"
                )
            };
        }
        match level {
            Level::ERROR => event!(Level::ERROR),
            Level::WARN => event!(Level::WARN),
            Level::INFO => event!(Level::INFO),
            Level::DEBUG => event!(Level::DEBUG),
            Level::TRACE => event!(Level::TRACE),
        }
        self.run().keep(level, self.tool_call_id(), text);
    }

    /// Shows a line to whoever watches. Never waits: it is lost when nobody reads fast enough.
    pub fn note(&self, text: impl Into<String>) {
        self.send(|tool_call_id| ToolProgress::Note {
            tool_call_id,
            text: text.into(),
        });
    }

    /// Shows output to whoever watches, as [`note`](Self::note) does.
    pub fn output(&self, stream: ProgressStream, text: impl Into<String>) {
        self.send(|tool_call_id| ToolProgress::Output {
            tool_call_id,
            stream,
            text: text.into(),
        });
    }

    fn send(&self, event: impl FnOnce(String) -> ToolProgress) {
        if let Some(progress) = &self.0.progress {
            let _ = progress.try_send(event(self.0.tool_call_id.clone()));
        }
    }

    /// Whether someone watches.
    pub fn watched(&self) -> bool {
        self.0
            .progress
            .as_ref()
            .is_some_and(|progress| !progress.is_closed())
    }
}

#[cfg(feature = "sandbox-tools")]
impl ToolContext {
    /// The run's sandbox; the first use awaits its boot. The host lends it as a [`LazySandbox`](sixb_sandbox::LazySandbox)
    /// extension.
    ///
    /// # Errors
    /// `not_found` when this run has no sandbox; `policy_denied` when the machine cannot give the isolation asked for;
    /// `cancelled`, `timeout` or `provider` when the boot ended so. The text tells that no command ran.
    pub async fn sandbox(&self) -> Result<Arc<dyn sixb_sandbox::Sandbox>, crate::ToolError> {
        crate::sandbox::booted(self).await
    }

    /// Where this call keeps files: they are stored durably, lie in the sandbox, and may stand in the result. The host lends
    /// it as a [`CallArtifacts`](sixb_artifacts::store::CallArtifacts) extension, with the run's
    /// [`RunFiles`](sixb_artifacts::RunFiles) beside it.
    ///
    /// # Errors
    /// `not_found` when this run keeps no files.
    pub fn artifacts(&self) -> Result<crate::Artifacts<'_>, crate::ToolError> {
        crate::sandbox::artifacts(self)
    }
}

impl fmt::Debug for ToolContext {
    /// Extensions may hold secrets: only their number is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("tool_call_id", &self.0.tool_call_id)
            .field("run_id", &self.0.run.run_id)
            .field("deadline", &self.0.deadline)
            .field("extensions", &self.0.extensions.len())
            .finish_non_exhaustive()
    }
}

/// Builds a [`ToolContext`].
pub struct ToolContextBuilder {
    inner: Inner,
}

impl fmt::Debug for ToolContextBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContextBuilder").finish_non_exhaustive()
    }
}

impl ToolContextBuilder {
    /// Sets the run. Default: a nameless run of the command line.
    pub fn run(mut self, run: Arc<RunInfo>) -> Self {
        self.inner.run = run;
        self
    }

    /// Sets the token that ends the call: best a child of the run's.
    pub fn cancel(mut self, token: CancellationToken) -> Self {
        self.inner.cancel = token;
        self
    }

    /// Sets when the call must have ended. Default: never.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.inner.deadline = Some(deadline);
        self
    }

    /// Lends a value to the tools, found again by its type. A second one of the same type replaces the first.
    pub fn extension<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.inner
            .extensions
            .insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// Sets who watches. A full channel drops events.
    pub fn progress(mut self, events: mpsc::Sender<ToolProgress>) -> Self {
        self.inner.progress = Some(events);
        self
    }

    /// The context.
    pub fn build(self) -> ToolContext {
        ToolContext(Arc::new(self.inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_are_found_by_type() {
        let cx = ToolContext::builder("c")
            .extension(7_u8)
            .extension("text".to_owned())
            .build();
        assert_eq!(cx.extension::<u8>(), Some(&7));
        assert_eq!(cx.extension::<String>().map(String::as_str), Some("text"));
        assert_eq!(cx.extension::<u16>(), None);
    }

    #[test]
    fn a_log_line_is_kept_on_the_run() {
        let run = Arc::new(RunInfo::new("r1", "a", RunKind::Conversation));
        let cx = ToolContext::builder("c1").run(run.clone()).build();
        assert_eq!(cx.idempotency_key(), "r1/c1");
        cx.log(Level::WARN, "careful");
        let lines = run.log_lines();
        assert_eq!(
            (
                lines[0].level,
                lines[0].tool_call_id.as_str(),
                lines[0].text.as_str()
            ),
            (Level::WARN, "c1", "careful")
        );
    }

    #[test]
    fn a_full_channel_never_blocks() {
        let (sender, mut receiver) = mpsc::channel(1);
        let cx = ToolContext::builder("c").progress(sender).build();
        cx.note("one");
        cx.note("lost");
        let first = receiver.try_recv().expect("event");
        assert!(matches!(first, ToolProgress::Note { text, .. } if text == "one"));
        assert!(receiver.try_recv().is_err());
    }
}
