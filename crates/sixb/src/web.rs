//! The web tools that `sixb.toml` sets up, and the connector behind them.

use std::sync::Arc;

use anyhow::Result;
use sixb_connector_exa::{
    DomainPolicy, EXA, Exa, ExaOptions, SecretString, WebBudget, WebFetchOptions, WebSearchOptions,
    exa_connector, exa_web_fetch, exa_web_search, tools::WebToolError,
};
use sixb_tools::{Connector, Tool};

use crate::{
    config::{
        Config,
        web::{self, Domain, WebFetch, WebSearch},
    },
    failure::usage,
};

/// What an agent names to get one.
pub(crate) const NAMES: [&str; 2] = ["web_search", "web_fetch"];

/// The tool of this name; `None` when it is none of these. `key` is where the agent names it.
pub(crate) fn tool(config: &Config, name: &str, key: &str) -> Result<Option<Arc<dyn Tool>>> {
    if !NAMES.contains(&name) {
        return Ok(None);
    }
    if config.connectors.exa.is_none() {
        return Err(usage(format!(
            "{key}: {name} needs the connector exa; add [connectors.exa] with api_key = \"env:EXA_API_KEY\""
        )));
    }
    let built = match name {
        "web_search" => search(config, &config.tools.web_search),
        _ => fetch(config, &config.tools.web_fetch),
    };
    built.map(Some)
}

/// The connector of the file, with the key that the environment holds now.
pub(crate) fn connector(config: &Config) -> Result<Connector> {
    let options = options(config, |name| std::env::var(name).ok())?;
    Ok(exa_connector(&EXA, options))
}

/// Checks what a run would use. It connects to nothing.
pub(crate) fn options(
    config: &Config,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<ExaOptions> {
    let key = |name: &str| config.key(&format!("connectors.exa.{name}"));
    let none = web::Exa::default();
    let settings = config.connectors.exa.as_ref().unwrap_or(&none);
    let Some(web::FromEnv(name)) = &settings.api_key else {
        return Err(usage(format!(
            "{} is missing; write api_key = \"env:EXA_API_KEY\"",
            key("api_key")
        )));
    };
    // A file that came with a folder must not pick any secret of this user and the place where it goes.
    if settings.base_url.is_some() && !name.starts_with("EXA_") {
        return Err(usage(format!(
            "{}: with a base_url only variables whose names begin with EXA_ are sent; rename {name}",
            key("api_key")
        )));
    }
    let secret = variable(name)
        .map(|value| value.trim().to_owned())
        .filter(|value| !value.is_empty());
    let Some(secret) = secret else {
        return Err(usage(format!(
            "{}: the variable {name} is not set; export {name} with a key of https://exa.ai",
            key("api_key")
        )));
    };
    let mut options = ExaOptions::new(SecretString::from(secret));
    if let Some(base_url) = &settings.base_url {
        options = options.base_url(base_url);
    }
    Exa::new(options.clone()).map_err(|error| usage(format!("{}: {error}", key("base_url"))))?;
    Ok(options)
}

fn search(config: &Config, settings: &WebSearch) -> Result<Arc<dyn Tool>> {
    let table = config.key("tools.web_search");
    let policy = policy(
        &table,
        settings.allowed_domains.as_deref(),
        &settings.denied_domains,
    )?;
    let mut options = WebSearchOptions::default()
        .policy(policy)
        .strict(settings.strict)
        .budget(budget(settings.max_calls, settings.max_cost_dollars));
    if let Some(results) = settings.num_results {
        options = options.num_results(results);
    }
    if let Some(characters) = settings.max_characters {
        options = options.max_characters(characters);
    }
    if let Some(characters) = settings.max_total_characters {
        options = options.max_total_characters(characters);
    }
    if let Some(hours) = settings.max_age_hours {
        options = options.max_age_hours(hours);
    }
    if let Some(search_type) = &settings.search_type {
        options = options.search_type(search_type);
    }
    if let Some(category) = &settings.category {
        options = options.category(category);
    }
    if let Some(country) = &settings.user_location {
        options = options.user_location(country);
    }
    exa_web_search(&EXA, options).map_err(|error| wrong(&table, &error))
}

fn fetch(config: &Config, settings: &WebFetch) -> Result<Arc<dyn Tool>> {
    let table = config.key("tools.web_fetch");
    let policy = policy(
        &table,
        settings.allowed_domains.as_deref(),
        &settings.denied_domains,
    )?;
    let mut options = WebFetchOptions::default()
        .policy(policy)
        .budget(budget(settings.max_calls, settings.max_cost_dollars));
    if let Some(characters) = settings.max_characters {
        options = options.max_characters(characters);
    }
    if let Some(hours) = settings.max_age_hours {
        options = options.max_age_hours(hours);
    }
    exa_web_fetch(&EXA, options).map_err(|error| wrong(&table, &error))
}

fn policy(table: &str, allowed: Option<&[Domain]>, denied: &[Domain]) -> Result<DomainPolicy> {
    if allowed.is_some_and(<[_]>::is_empty) {
        return Err(usage(format!(
            "{table}.allowed_domains is empty, so that nothing could be read; name domains, or take the line out to allow every \
             public one"
        )));
    }
    let rules = |domains: &[Domain]| domains.iter().map(|domain| domain.0.clone()).collect();
    Ok(DomainPolicy::new(allowed.map(rules), rules(denied)))
}

fn budget(calls: Option<u32>, dollars: Option<f64>) -> WebBudget {
    let mut budget = WebBudget::default();
    if let Some(calls) = calls {
        budget = budget.max_calls(calls);
    }
    if let Some(dollars) = dollars {
        budget = budget.max_cost_dollars(dollars);
    }
    budget
}

fn wrong(table: &str, error: &WebToolError) -> anyhow::Error {
    match error {
        WebToolError::Option { .. } => usage(format!("{table}.{error}")),
        _ => usage(format!("{table}: {error}")),
    }
}
