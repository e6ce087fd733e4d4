//! What an agent is: a model, instructions, granted tools and limits.

use std::{sync::Arc, time::Duration};

use sixb_tools::{Tool, ToolRegistry, ToolSpec};

use crate::{
    model::{Model, ModelLabel},
    project::{BuildError, check_id},
};

/// Steps of a run, unless the agent says otherwise.
pub const DEFAULT_MAX_STEPS: u32 = 25;
/// Time of a run, unless the agent or the request says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// Bytes of conversation sent to a model, unless the agent says otherwise: 1 MiB.
pub const DEFAULT_MAX_CONTEXT: usize = 1 << 20;

/// An agent of a built project.
#[derive(Debug, Clone)]
pub struct Agent {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) instructions: String,
    pub(crate) groups: Vec<String>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) tools: ToolRegistry,
    pub(crate) specs: Arc<[ToolSpec]>,
    pub(crate) max_steps: u32,
    pub(crate) timeout: Duration,
    pub(crate) max_context: usize,
}

impl Agent {
    /// Begins an agent. The id names it in requests, paths and transcripts: a letter or digit, then up to 63 letters,
    /// digits, `_` or `-`.
    pub fn builder(id: impl Into<String>) -> AgentBuilder {
        AgentBuilder {
            id: id.into(),
            name: None,
            instructions: String::new(),
            groups: Vec::new(),
            model: None,
            tools: Vec::new(),
            sandbox_tools: true,
            max_steps: DEFAULT_MAX_STEPS,
            timeout: DEFAULT_TIMEOUT,
            max_context: DEFAULT_MAX_CONTEXT,
        }
    }

    /// Names it in requests.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The groups whose rights it has in the project API.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Which model it asks.
    pub fn model(&self) -> ModelLabel {
        ModelLabel::of(&*self.model)
    }

    /// The tools granted to it, `bash`, `read` and `view_file` included.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.specs
    }
}

/// Builds an [`Agent`]; checked when the project is built.
#[derive(Debug)]
#[must_use]
pub struct AgentBuilder {
    id: String,
    name: Option<String>,
    instructions: String,
    groups: Vec<String>,
    model: Option<Arc<dyn Model>>,
    tools: Vec<Arc<dyn Tool>>,
    sandbox_tools: bool,
    max_steps: u32,
    timeout: Duration,
    max_context: usize,
}

impl AgentBuilder {
    /// What people call it. Default: the id.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The model it asks. Required.
    pub fn model(mut self, model: impl Model) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// What it is for and how it should work: part of the system prompt.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = instructions.into();
        self
    }

    /// Adds it to groups, whose rights it has in the project API. Their names follow the same rule as its id.
    pub fn groups<G: Into<String>>(mut self, groups: impl IntoIterator<Item = G>) -> Self {
        self.groups.extend(groups.into_iter().map(Into::into));
        self
    }

    /// Grants a tool.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Grants tools.
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Takes `bash`, `read` and `view_file` away, which every agent has otherwise.
    pub fn without_sandbox_tools(mut self) -> Self {
        self.sandbox_tools = false;
        self
    }

    /// How many times a run asks the model, at least 1. In the last step it is told to finish. Default: 25.
    pub fn max_steps(mut self, steps: u32) -> Self {
        self.max_steps = steps;
        self
    }

    /// How long a run may take, up to the collection of its outputs. Default: 5 minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How many bytes of conversation are sent to the model; older tool results are left out first. Default: 1 MiB.
    pub fn max_context_bytes(mut self, bytes: usize) -> Self {
        self.max_context = bytes;
        self
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn build(self) -> Result<Agent, BuildError> {
        let agent = self.id;
        let model = self.model.ok_or_else(|| BuildError::NoModel {
            agent: agent.clone(),
        })?;
        let limit = |what, problem| BuildError::Limit {
            agent: agent.clone(),
            what,
            problem,
        };
        if self.max_steps == 0 {
            return Err(limit("max_steps", "is 0: an agent needs at least one step"));
        }
        if self.timeout.is_zero() {
            return Err(limit("timeout", "is 0: an agent needs some time"));
        }
        let mut groups = self.groups;
        for group in &groups {
            check_id("group", group)?;
        }
        groups.sort_unstable();
        groups.dedup();
        let builtin = if self.sandbox_tools {
            sixb_tools::sandbox_tools()
        } else {
            Vec::new()
        };
        let tools = ToolRegistry::builder()
            .tools(builtin.into_iter().chain(self.tools))
            .build()
            .map_err(|source| BuildError::Tools {
                agent: agent.clone(),
                source,
            })?;
        Ok(Agent {
            name: self.name.unwrap_or_else(|| agent.clone()),
            id: agent,
            instructions: self.instructions,
            groups,
            model,
            specs: tools.specs().cloned().collect(),
            tools,
            max_steps: self.max_steps,
            timeout: self.timeout,
            max_context: self.max_context,
        })
    }
}
