//! Typed tools: a closure over a Rust input type.

use std::{any::Any, fmt, marker::PhantomData, sync::Arc};

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Tool, ToolBuildError, ToolContext, ToolError, ToolOutput, ToolSpec, bound, schema, validate,
};

/// Builds a tool from a closure. Its input type gives the schema; doc comments of the fields are what the model reads.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use serde_json::json;
/// use sixb_tools::{AgentTool, ToolContext, ToolError};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     /// First summand.
///     a: i64,
///     /// Second summand.
///     b: i64,
/// }
///
/// let add = AgentTool::new("add")
///     .description("Adds two integers.")
///     .run(|_cx: ToolContext, input: Add| async move { Ok::<_, ToolError>(json!({"sum": input.a + input.b})) })?;
/// assert_eq!(add.spec().input_schema["required"], json!(["a", "b"]));
/// # Ok::<(), sixb_tools::ToolBuildError>(())
/// ```
#[derive(Debug, Clone)]
pub struct AgentTool {
    name: String,
    title: Option<String>,
    description: String,
}

impl AgentTool {
    /// Begins a tool with the name that the model calls.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: String::new(),
        }
    }

    /// Sets what people call it.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets what it does and when to use it.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = description.into();
        self
    }

    /// Sets what it does. The closure gives any value that can be serialised, or a [`ToolOutput`]: at most
    /// [`MAX_RESULT_BYTES`](crate::MAX_RESULT_BYTES) of JSON, and no `NaN` or infinity in it.
    ///
    /// # Errors
    /// A bad name, a blank description, or an input type that is no struct with named fields only (a flattened map has
    /// others) or contains itself.
    pub fn run<I, O, H, F>(self, handler: H) -> Result<Arc<dyn Tool>, ToolBuildError>
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + Send + 'static,
        H: Fn(ToolContext, I) -> F + Send + Sync + 'static,
        F: Future<Output = Result<O, ToolError>> + Send + 'static,
    {
        let schema = schema::of::<I>().map_err(|source| ToolBuildError::Schema {
            tool: self.name.clone(),
            source,
        })?;
        let mut spec = ToolSpec::new(&self.name, self.description, schema)?;
        spec.title = self.title;
        Ok(Arc::new(Typed {
            spec,
            handler: move |cx, input| -> BoxFuture<'static, _> { Box::pin(handler(cx, input)) },
            types: PhantomData,
        }))
    }
}

struct Typed<I, O, H> {
    spec: ToolSpec,
    handler: H,
    types: PhantomData<fn(I) -> O>,
}

impl<I, O, H> fmt::Debug for Typed<I, O, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentTool")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl<I, O, H> Tool for Typed<I, O, H>
where
    I: DeserializeOwned + Send + 'static,
    O: Serialize + Send + 'static,
    H: Fn(ToolContext, I) -> BoxFuture<'static, Result<O, ToolError>> + Send + Sync + 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: ToolContext, input: Value) -> Result<ToolOutput, ToolError> {
        let input = validate::typed(&input)?;
        let mut value = Some((self.handler)(cx, input).await?);
        // A `ToolOutput` is passed on as it is, so that rich content stays rich.
        if let Some(output) = (&mut value as &mut dyn Any).downcast_mut::<Option<ToolOutput>>()
            && let Some(output) = output.take()
        {
            return Ok(output);
        }
        Ok(ToolOutput::Json(bound::to_finite_json(&value)?))
    }
}
