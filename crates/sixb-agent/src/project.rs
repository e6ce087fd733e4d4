//! A project: its agents and where their commands run.

use std::{collections::BTreeMap, fmt, sync::Arc};

use sixb_artifacts::store::BlobStore;
use sixb_sandbox::SandboxFactory;
use sixb_tools::{Connector, Connectors, ToolBuildError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    agent::{Agent, AgentBuilder},
    run::{self, Run, RunError, RunRequest},
    workspace::state_folder,
};

/// A project that can run its agents. Cheap to clone.
#[derive(Clone)]
pub struct Sixb(Arc<Inner>);

struct Inner {
    project_id: String,
    sandboxes: Arc<dyn SandboxFactory>,
    connectors: Connectors,
    blobs: BlobStore,
    agents: BTreeMap<String, Arc<Agent>>,
    runs: TaskTracker,
    closing: CancellationToken,
}

impl Sixb {
    /// Begins a project. The id follows the same rule as an agent's.
    pub fn builder(project_id: impl Into<String>) -> SixbBuilder {
        SixbBuilder {
            project_id: project_id.into(),
            sandboxes: None,
            connectors: Vec::new(),
            blobs: None,
            agents: Vec::new(),
        }
    }

    /// Names the project.
    pub fn project_id(&self) -> &str {
        &self.0.project_id
    }

    /// Its agents, by id.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.0.agents.values().map(|agent| &**agent)
    }

    /// An agent by id.
    pub fn agent(&self, id: &str) -> Option<&Agent> {
        self.0.agents.get(id).map(|agent| &**agent)
    }

    /// Starts a run on the current tokio runtime and returns at once; see [`Run`] for how to follow and end it.
    ///
    /// # Errors
    /// An unknown agent, a blank or too long task, a project that is closed, a transcript that cannot be begun. What
    /// goes wrong later is in the [`Outcome`](crate::Outcome).
    pub async fn run(&self, request: RunRequest) -> Result<Run, RunError> {
        let project = &*self.0;
        // Counted before the check, so that `close` either is seen here or waits for this run.
        let _counted = project.runs.token();
        if project.closing.is_cancelled() {
            return Err(RunError::Closed);
        }
        let Some(agent) = project.agents.get(&request.agent) else {
            return Err(RunError::UnknownAgent {
                agent: request.agent,
                known: project.agents.keys().cloned().collect(),
            });
        };
        let job = run::Job {
            project_id: project.project_id.clone(),
            agent: agent.clone(),
            sandboxes: project.sandboxes.clone(),
            connectors: project.connectors.clone(),
            blobs: project.blobs.clone(),
            closing: project.closing.clone(),
            request,
        };
        run::start(job, &project.runs).await
    }

    /// Cancels all runs and waits until each has ended and its sandbox is gone. Idempotent; later runs are refused.
    pub async fn close(&self) {
        self.0.closing.cancel();
        self.0.runs.close();
        self.0.runs.wait().await;
    }
}

impl fmt::Debug for Sixb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sixb")
            .field("project_id", &self.0.project_id)
            .field("sandboxes", &self.0.sandboxes)
            .field("connectors", &self.0.connectors)
            .field("agents", &self.0.agents.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// Builds a [`Sixb`].
#[derive(Debug)]
#[must_use]
pub struct SixbBuilder {
    project_id: String,
    sandboxes: Option<Arc<dyn SandboxFactory>>,
    connectors: Vec<Connector>,
    blobs: Option<BlobStore>,
    agents: Vec<AgentBuilder>,
}

impl SixbBuilder {
    /// Sets where commands run. Required.
    pub fn sandboxes(self, factory: impl SandboxFactory) -> Self {
        self.shared_sandboxes(Arc::new(factory))
    }

    /// [`sandboxes`](Self::sandboxes) for a factory that is shared already.
    pub fn shared_sandboxes(mut self, factory: Arc<dyn SandboxFactory>) -> Self {
        self.sandboxes = Some(factory);
        self
    }

    /// Sets where files are kept: attachments, what tools make, outputs. Default: the [`state_folder`](crate::state_folder),
    /// or memory where there is none. A local folder may not lie in a workspace that a guest writes to.
    pub fn blobs(mut self, store: BlobStore) -> Self {
        self.blobs = Some(store);
        self
    }

    /// Adds a connector. Tools of any agent reach its client by
    /// [`ToolContext::connector`](sixb_tools::ToolContext::connector), all the same one.
    pub fn connector(mut self, connector: Connector) -> Self {
        self.connectors.push(connector);
        self
    }

    /// Adds an agent.
    pub fn agent(mut self, agent: AgentBuilder) -> Self {
        self.agents.push(agent);
        self
    }

    /// Checks everything and builds the project.
    ///
    /// # Errors
    /// No sandbox factory, no agent, ids that are malformed or taken twice, and what is wrong with an agent.
    pub fn build(self) -> Result<Sixb, BuildError> {
        check_id("project", &self.project_id)?;
        let sandboxes = self.sandboxes.ok_or(BuildError::NoSandboxFactory)?;
        if self.agents.is_empty() {
            return Err(BuildError::NoAgents);
        }
        let connectors =
            Connectors::new(self.connectors).map_err(|error| BuildError::DuplicateConnector {
                connector: error.name,
            })?;
        let mut agents = BTreeMap::new();
        for agent in self.agents {
            check_id("agent", agent.id())?;
            if agents.contains_key(agent.id()) {
                return Err(BuildError::DuplicateAgent {
                    agent: agent.id().to_owned(),
                });
            }
            let agent = agent.build()?;
            agents.insert(agent.id.clone(), Arc::new(agent));
        }
        Ok(Sixb(Arc::new(Inner {
            project_id: self.project_id,
            sandboxes,
            connectors,
            blobs: self.blobs.unwrap_or_else(default_blobs),
            agents,
            runs: TaskTracker::new(),
            closing: CancellationToken::new(),
        })))
    }
}

/// Durable where this user has a place for it.
fn default_blobs() -> BlobStore {
    let local = state_folder().and_then(|folder| match BlobStore::local(folder) {
        Ok(store) => Some(store),
        Err(error) => {
            tracing::warn!("files of runs are kept in memory only: {error}");
            None
        }
    });
    local.unwrap_or_else(BlobStore::memory)
}

/// Ids become folder names, variables and URL segments: one narrow rule fits them all.
pub(crate) fn check_id(what: &'static str, id: &str) -> Result<(), BuildError> {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let first = id
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if first && id.len() <= 64 && id.bytes().all(rest) {
        return Ok(());
    }
    Err(BuildError::InvalidId {
        what,
        id: id.chars().take(80).collect(),
    })
}

/// A project cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Commands would have nowhere to run.
    #[error(
        "the project has no sandbox factory: call `sandboxes(…)` with a factory of sixb-sandbox-local (Linux namespaces, nothing \
         to install) or sixb-sandbox-smolvm (microVMs)"
    )]
    NoSandboxFactory,
    /// There is nothing to run.
    #[error("the project has no agent: call `agent(Agent::builder(…)…)`")]
    NoAgents,
    /// An id breaks the rule.
    #[error("{what} id {id:?}: use a letter or digit, then up to 63 letters, digits, `_` or `-`")]
    InvalidId {
        /// `project`, `agent` or `group`.
        what: &'static str,
        /// The id.
        id: String,
    },
    /// Two agents share an id.
    #[error("two agents have the id `{agent}`: rename one")]
    DuplicateAgent {
        /// The id.
        agent: String,
    },
    /// Two connectors share a name.
    #[error("two connectors are called `{connector}`: rename one")]
    DuplicateConnector {
        /// The name.
        connector: String,
    },
    /// An agent has nobody to ask.
    #[error("agent `{agent}` has no model: call `model(…)`")]
    NoModel {
        /// The agent.
        agent: String,
    },
    /// A limit makes no sense.
    #[error("agent `{agent}`: {what} {problem}")]
    Limit {
        /// The agent.
        agent: String,
        /// The limit.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The tools of an agent do not go together.
    #[error("agent `{agent}`: {source}")]
    Tools {
        /// The agent.
        agent: String,
        /// What is wrong.
        source: ToolBuildError,
    },
}
