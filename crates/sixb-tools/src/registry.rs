//! The tools of an agent, and the one way to call them.

use std::{any::Any, collections::HashMap, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures::FutureExt;
use serde_json::Value;
use sixb_artifacts::RunFiles;
use tracing::Instrument;

use crate::{
    Tool, ToolBuildError, ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolSpec, bound,
    schema::SchemaError, validate::InputCheck,
};

/// A set of tools with unique names. Cheap to clone; the same one serves conversations, workflows, the command line and
/// MCP.
#[derive(Debug, Clone)]
pub struct ToolRegistry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    entries: Vec<Entry>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct Entry {
    tool: Arc<dyn Tool>,
    input: InputCheck,
    builtin: bool,
}

impl Entry {
    /// For messages: where in the list, and what people call it.
    fn label(&self, place: usize) -> String {
        let spec = self.tool.spec();
        let what = spec.title.as_deref().unwrap_or(&spec.description);
        let what: String = what
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(60)
            .collect();
        format!("tool {} of the list ({what:?})", place + 1)
    }
}

impl ToolRegistry {
    /// Begins a set.
    pub fn builder() -> ToolRegistryBuilder {
        ToolRegistryBuilder { tools: Vec::new() }
    }

    /// The descriptions, in the order the tools were added.
    pub fn specs(&self) -> impl ExactSizeIterator<Item = &ToolSpec> {
        self.0.entries.iter().map(|entry| entry.tool.spec())
    }

    /// A tool by name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.0
            .by_name
            .get(name)
            .map(|index| &self.0.entries[*index])
    }

    /// Calls a tool: checks the input, runs the handler within the context's deadline and cancellation, and bounds the
    /// result.
    ///
    /// Dropping the future ends the call.
    ///
    /// # Errors
    /// `not_found` for an unknown tool, `invalid_input` when the schema does not accept `arguments`, `timeout` and
    /// `cancelled` as the context says, `internal` for a panic and for rich content that is not valid or names a file that
    /// the run does not know, `limit_exceeded` for a result that is too large, and whatever the tool itself returns.
    pub async fn call(
        &self,
        name: &str,
        cx: ToolContext,
        arguments: Value,
    ) -> Result<ToolOutput, ToolError> {
        let entry = self.entry(name).ok_or_else(|| self.unknown(name))?;
        entry.input.check(&arguments)?;
        let span = tracing::info_span!("tool_call", tool = name, tool_call_id = cx.tool_call_id(), run_id = %cx.run().run_id);
        let files = cx.extension::<RunFiles>().cloned();
        let result = supervise(&*entry.tool, cx, arguments)
            .instrument(span.clone())
            .await;
        let result = match result {
            // The built-in tools have their own, tighter bounds on what a model reads.
            Ok(output) if !entry.builtin => output.settle().and_then(|output| {
                bound::check_result(&output)?;
                check_files(&output, files.as_ref())?;
                Ok(output)
            }),
            result => result,
        };
        if let Err(error) = &result {
            span.in_scope(|| tracing::debug!(kind = %error.kind(), "tool call failed: {}", error.operator_text()));
        }
        result
    }

    /// [`call`](Self::call) with the arguments as a model wrote them. Blank arguments are an empty object.
    ///
    /// # Errors
    /// `invalid_input`, naming line and column, when `arguments` is no JSON.
    pub async fn call_json(
        &self,
        name: &str,
        cx: ToolContext,
        arguments: &str,
    ) -> Result<ToolOutput, ToolError> {
        if arguments.trim().is_empty() {
            return self.call(name, cx, Value::Object(Default::default())).await;
        }
        let arguments = serde_json::from_str(arguments).map_err(|error| {
            ToolError::invalid_input(format!(
                "the arguments of `{}` are not valid JSON: {error} (of {} bytes)",
                shown(name),
                arguments.len()
            ))
        })?;
        self.call(name, cx, arguments).await
    }

    fn unknown(&self, name: &str) -> ToolError {
        let known: Vec<&str> = self.specs().map(|spec| spec.name.as_str()).collect();
        let known = if known.is_empty() {
            "there are no tools".into()
        } else {
            format!("use one of: {}", known.join(", "))
        };
        ToolError::new(
            ToolErrorKind::NotFound,
            format!("no tool is called `{}`; {known}", shown(name)),
        )
    }
}

fn shown(name: &str) -> String {
    name.chars().take(80).collect()
}

/// A file that the run neither published nor was given: its reference is made up, and could name any file of the store.
fn check_files(output: &ToolOutput, known: Option<&RunFiles>) -> Result<(), ToolError> {
    let none = RunFiles::default();
    let known = known.unwrap_or(&none);
    for file in output.files() {
        known.check(file).map_err(|forged| {
            let text = format!("The tool returned a file that is none of this run: {forged}.");
            ToolError::new(ToolErrorKind::Internal, text).with_source(forged)
        })?;
    }
    Ok(())
}

/// Runs a handler so that neither a panic nor a handler that never ends harms the run.
async fn supervise(
    tool: &dyn Tool,
    cx: ToolContext,
    input: Value,
) -> Result<ToolOutput, ToolError> {
    let (cancel, deadline, grace) = (cx.cancel().clone(), cx.deadline(), tool.cancel_grace());
    let cancelled = || ToolError::of(ToolErrorKind::Cancelled);
    let late = || {
        ToolError::new(
            ToolErrorKind::Timeout,
            "The call did not finish before the deadline of the run.",
        )
    };
    if cancel.is_cancelled() {
        return Err(cancelled());
    }
    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
        return Err(late());
    }
    let call = async move { tool.call(cx, input).await };
    let mut call = std::pin::pin!(AssertUnwindSafe(call).catch_unwind());
    let deadline = async {
        match deadline {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    };
    let stopped = tokio::select! {
        biased;
        result = &mut call => return result.unwrap_or_else(|panic| Err(panicked(&*panic))),
        () = cancel.cancelled() => cancelled(),
        () = deadline => late(),
    };
    match tokio::time::timeout(grace, call).await {
        Ok(result) => result.unwrap_or_else(|panic| Err(panicked(&*panic))),
        Err(_) => Err(stopped),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    ToolError::of(ToolErrorKind::Internal).operator(format!(
        "the handler panicked: {}",
        text.unwrap_or("(no text)")
    ))
}

/// Collects the tools of a [`ToolRegistry`].
#[derive(Debug)]
pub struct ToolRegistryBuilder {
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolRegistryBuilder {
    /// Adds a tool.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Checks names and schemas.
    ///
    /// # Errors
    /// Two tools of one name, a custom tool with a reserved name, or a schema that is not flat.
    pub fn build(self) -> Result<ToolRegistry, ToolBuildError> {
        let mut inner = Inner {
            entries: Vec::new(),
            by_name: HashMap::new(),
        };
        for (place, tool) in self.tools.into_iter().enumerate() {
            let entry = Entry {
                input: checked_schema(tool.spec())?,
                builtin: is_builtin(&*tool),
                tool,
            };
            let name = entry.tool.spec().name.to_string();
            if entry.tool.spec().name.is_reserved() && !entry.builtin {
                let owner = inner
                    .by_name
                    .get(&name)
                    .map(|first| inner.entries[*first].label(*first));
                return Err(ToolBuildError::Reserved {
                    builtin: owner.unwrap_or_else(|| format!("the `{name}` of sixb-tools")),
                    custom: entry.label(place),
                    name,
                });
            }
            if let Some(first) = inner.by_name.insert(name.clone(), place) {
                return Err(ToolBuildError::Duplicate {
                    name,
                    first: inner.entries[first].label(first),
                    second: entry.label(place),
                });
            }
            inner.entries.push(entry);
        }
        Ok(ToolRegistry(Arc::new(inner)))
    }
}

/// A tool written by hand may hold any schema: it must be flat already.
fn checked_schema(spec: &ToolSpec) -> Result<InputCheck, ToolBuildError> {
    let refuse = |source| ToolBuildError::Schema {
        tool: spec.name.to_string(),
        source,
    };
    if spec.description.trim().is_empty() {
        return Err(ToolBuildError::BlankDescription {
            tool: spec.name.to_string(),
        });
    }
    let flat = crate::schema::flatten(spec.input_schema.clone()).map_err(refuse)?;
    if flat != spec.input_schema {
        return Err(refuse(SchemaError::new(
            "",
            "is not flat: build the spec by `ToolSpec::new`",
        )));
    }
    InputCheck::compile(&flat).map_err(|problem| refuse(SchemaError::new("", problem)))
}

/// Whether the tool is one of this crate, which may carry a reserved name and has its own bounds.
fn is_builtin(tool: &dyn Tool) -> bool {
    #[cfg(feature = "sandbox-tools")]
    return crate::sandbox::is_builtin(tool);
    #[cfg(not(feature = "sandbox-tools"))]
    {
        let _ = tool;
        false
    }
}

#[cfg(test)]
mod tests;
