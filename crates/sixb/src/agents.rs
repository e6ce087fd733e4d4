//! The agents of `sixb.toml`, as a project that can run them.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use sixb_agent::{Agent, Model, ScriptedModel, Sixb};
use sixb_tools::{Tool, sandbox_tools};

use crate::{
    config::{self, Config},
    factory,
    failure::usage,
    host,
    values::Provider,
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
    script: Option<&Path>,
    provider: Provider,
) -> Result<(Sixb, String)> {
    let (id, settings) = choose(config, agent)?;
    let key = |name: &str| config.key(&format!("agents.{id}.{name}"));
    let mut builder = Agent::builder(&id)
        .model(model(config, &settings, &key("model"), script)?)
        .without_sandbox_tools();
    builder = builder.tools(granted(settings.tools.as_deref(), &key("tools"))?);
    if let Some(name) = settings.name {
        builder = builder.name(name);
    }
    if let Some(instructions) = settings.instructions {
        builder = builder.instructions(instructions);
    }
    if let Some(steps) = settings.max_steps {
        builder = builder.max_steps(steps.get());
    }
    if let Some(timeout) = settings.timeout.or(config.sandbox.timeout) {
        builder = builder.timeout(timeout.0);
    }
    let project = Sixb::builder(config.project.id.as_deref().unwrap_or(DEFAULT_PROJECT))
        .shared_sandboxes(factory::of(provider))
        .agent(builder)
        .build()
        .map_err(|error| usage(config.key(&error.to_string())))?;
    Ok((project, id))
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

fn model(
    config: &Config,
    settings: &config::Agent,
    key: &str,
    flag: Option<&Path>,
) -> Result<Arc<dyn Model>> {
    let (name, path) = match (flag, settings.model.as_deref()) {
        (Some(path), _) => ("--script".to_owned(), path.to_owned()),
        (None, Some(model)) => match model.strip_prefix(SCRIPT).filter(|path| !path.is_empty()) {
            Some(path) => (key.to_owned(), config.beside(path)),
            None => {
                return Err(usage(format!(
                    "{key}: {model:?} cannot be asked yet: this version plays only scripts; write \"{SCRIPT}FILE\", or use --script FILE"
                )));
            }
        },
        (None, None) => {
            return Err(usage(format!(
                "--script is missing and there is no model to ask: this version plays only scripts; give --script FILE, or \
                 set {key} to \"{SCRIPT}FILE\" (`sixb demo` shows a script at work)"
            )));
        }
    };
    let shown = path.display();
    let text = host::read_text(&path).map_err(|error| {
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

/// The tools that a list of names grants; all of them without a list.
fn granted(names: Option<&[String]>, key: &str) -> Result<Vec<Arc<dyn Tool>>> {
    let all = sandbox_tools();
    let Some(names) = names else { return Ok(all) };
    names
        .iter()
        .map(|name| {
            all.iter()
                .find(|tool| tool.spec().name.as_str() == name)
                .cloned()
                .ok_or_else(|| {
                    let known: Vec<&str> =
                        all.iter().map(|tool| tool.spec().name.as_str()).collect();
                    usage(format!(
                        "{key}: there is no tool {name:?}; use any of: {}",
                        known.join(", ")
                    ))
                })
        })
        .collect()
}
