//! The agents of `sixb.toml`, as a project that can run them.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use sixb_agent::{Agent, Model, OpenAiModel, ScriptedModel, Sixb};
use sixb_tools::{Tool, ToolRegistry, sandbox_tools};

use crate::{
    blobs,
    cli::{BlobArgs, ModelArgs},
    config::{self, Config},
    factory,
    failure::usage,
    host,
    values::Provider,
    web,
};

/// The agent of a folder that defines none.
const DEFAULT_AGENT: &str = "assistant";
/// The project of a folder that names none.
const DEFAULT_PROJECT: &str = "sixb";
/// Before the file of a script, in the place of a model's name.
const SCRIPT: &str = "script:";

/// Builds the project with the one agent that runs, and names it.
pub(crate) fn project(
    config: &Config,
    agent: Option<&str>,
    flags: &ModelArgs,
    blobs: &BlobArgs,
    provider: Provider,
) -> Result<(Sixb, String)> {
    let (id, settings) = choose(config, agent)?;
    let key = |name: &str| config.key(&format!("agents.{id}.{name}"));
    let mut builder = Agent::builder(&id)
        .model(model(config, &settings, &id, flags)?)
        .without_sandbox_tools();
    let tools = granted(config, settings.tools.as_deref(), &key("tools"))?;
    let reads_the_web = tools
        .iter()
        .any(|tool| web::NAMES.contains(&tool.spec().name.as_str()));
    builder = builder.tools(tools);
    if let Some(name) = settings.name {
        builder = builder.name(name);
    }
    if let Some(instructions) = settings.instructions {
        builder = builder.instructions(instructions);
    }
    if let Some(groups) = settings.groups {
        builder = builder.groups(groups);
    }
    if let Some(steps) = settings.max_steps {
        builder = builder.max_steps(steps.get());
    }
    if let Some(timeout) = settings.timeout.or(config.sandbox.timeout) {
        builder = builder.timeout(timeout.0);
    }
    let mut project = Sixb::builder(config.project.id.as_deref().unwrap_or(DEFAULT_PROJECT))
        .shared_sandboxes(factory::of(provider))
        .blobs(blobs::store(blobs, config)?)
        .agent(builder);
    if reads_the_web {
        project = project.connector(web::connector(config)?);
    }
    let project = project
        .build()
        .map_err(|error| usage(config.key(&error.to_string())))?;
    Ok((project, id))
}

/// Builds the tools of all agents, as a run of each would, and the web tools that no agent names yet.
pub(crate) fn check_tools(config: &Config) -> Result<()> {
    for name in web::NAMES {
        web::tool(config, name, &config.key("connectors.exa"))?;
    }
    for (id, agent) in &config.agents {
        let key = config.key(&format!("agents.{id}.tools"));
        let tools = granted(config, agent.tools.as_deref(), &key)?;
        let registry = ToolRegistry::builder().tools(tools);
        registry
            .build()
            .map_err(|error| usage(format!("{key}: {error}")))?;
    }
    Ok(())
}

/// The agent that was asked for, or the only one there is.
fn choose(config: &Config, agent: Option<&str>) -> Result<(String, config::Agent)> {
    let names: Vec<&str> = config.agents.keys().map(String::as_str).collect();
    let name = match (agent, &names[..]) {
        (Some(name), _) => name,
        (None, []) => return Ok((DEFAULT_AGENT.into(), config::Agent::default())),
        (None, [only]) => only,
        (None, _) => {
            return Err(usage(format!(
                "--agent is missing and {} has several; name one of: {}",
                config.key("agents"),
                names.join(", ")
            )));
        }
    };
    match config.agents.get(name) {
        Some(settings) => Ok((name.to_owned(), settings.clone())),
        None if names.is_empty() => Err(usage(format!(
            "--agent {name}: no agent is defined here; `sixb init` writes a sixb.toml with one, or leave --agent out"
        ))),
        None => {
            let likely = config::closest(name, names.iter().copied());
            let remedy = match likely {
                Some(likely) => format!("did you mean {likely}?"),
                None => format!("name one of: {}", names.join(", ")),
            };
            Err(usage(format!(
                "--agent {name}: {} has no such agent; {remedy}",
                config.key("agents")
            )))
        }
    }
}

/// The model of the flags, else of the agent.
fn model(
    config: &Config,
    settings: &config::Agent,
    agent: &str,
    flags: &ModelArgs,
) -> Result<Arc<dyn Model>> {
    let key = |name: &str| config.key(&format!("agents.{agent}.{name}"));
    if let Some(path) = &flags.script {
        return script("--script", path);
    }
    let (name, model) = match (&flags.model, &settings.model) {
        (Some(model), _) => ("--model".to_owned(), model),
        (None, Some(model)) => (key("model"), model),
        (None, None) => {
            return Err(usage(format!(
                "--model is missing: name a model such as openai/gpt-5.5, set {}, or play a script with --script FILE (`sixb demo` \
                 shows one at work)",
                key("model")
            )));
        }
    };
    if let Some(path) = model.strip_prefix(SCRIPT) {
        let path = match &flags.model {
            Some(_) => path.into(),
            None => config.beside(path),
        };
        return script(&name, &path);
    }
    let mut builder = OpenAiModel::builder(model);
    if let Some(effort) = flags.effort.as_ref().or(settings.reasoning_effort.as_ref()) {
        builder = builder.reasoning_effort(effort);
    }
    let model = builder
        .build()
        .map_err(|error| usage(format!("{name} {model:?}: {error}")))?;
    Ok(Arc::new(model))
}

fn script(name: &str, path: &Path) -> Result<Arc<dyn Model>> {
    let shown = path.display();
    let text = host::read_text(path).map_err(|error| {
        usage(format!(
            "{name} {shown}: {error}; name a JSON script that you can read"
        ))
    })?;
    let file = path
        .file_name()
        .map(|file| file.to_string_lossy().into_owned())
        .unwrap_or_default();
    let model = ScriptedModel::from_json(&text)
        .map_err(|error| usage(format!("{name} {shown}: {error}; correct the script there")))?;
    Ok(Arc::new(model.named(file)))
}

/// The tools that a list of names grants; those of the sandbox without a list.
fn granted(config: &Config, names: Option<&[String]>, key: &str) -> Result<Vec<Arc<dyn Tool>>> {
    let all = sandbox_tools();
    let Some(names) = names else { return Ok(all) };
    let grant = |name: &String| {
        let found = all.iter().find(|tool| tool.spec().name.as_str() == name);
        if let Some(tool) = found.cloned().or(web::tool(config, name, key)?) {
            return Ok(tool);
        }
        let known = all.iter().map(|tool| tool.spec().name.as_str());
        let known: Vec<&str> = known.chain(web::NAMES).collect();
        Err(usage(format!(
            "{key}: there is no tool {name:?}; use any of: {}",
            known.join(", ")
        )))
    };
    names.iter().map(grant).collect()
}
