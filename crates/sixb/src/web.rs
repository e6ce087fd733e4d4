//! The web tools that `sixb.toml` sets up, and the connector behind them.

use std::sync::Arc;

use anyhow::Result;
use sixb_connector_exa::{
    DEFAULT_BASE_URL, DomainPolicy, EXA, Exa, ExaOptions, SecretString, WebBudget, WebFetchOptions,
    WebSearchOptions, exa_connector, exa_web_fetch, exa_web_search, tools::WebToolError,
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

/// The variable with the address of another service that speaks as Exa does. It wins over the file.
pub(crate) const BASE_URL: &str = "EXA_BASE_URL";

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
    // A file that came with a folder must not pick any secret of this user for the place where it goes.
    if settings.base_url.is_some() && !name.starts_with("EXA_") {
        return Err(usage(format!(
            "{}: with a base_url only variables whose names begin with EXA_ are sent; rename {name}",
            key("api_key")
        )));
    }
    let given = |name: &str| {
        let value = variable(name)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    };
    let Some(secret) = given(name) else {
        return Err(usage(format!(
            "{}: the variable {name} is not set; export {name} with a key of https://exa.ai",
            key("api_key")
        )));
    };
    // A header could hold some others, but no key has them: something else was exported.
    if !secret.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(usage(format!(
            "{}: the variable {name} holds characters that no key has; export {name} with a key of https://exa.ai",
            key("api_key")
        )));
    }
    let options = ExaOptions::new(SecretString::from(secret));
    if let Some(base_url) = given(BASE_URL) {
        let options = options.base_url(base_url);
        Exa::new(options.clone())
            .map_err(|error| usage(format!("{BASE_URL}: {error}; correct the variable")))?;
        return Ok(options);
    }
    let Some(base_url) = &settings.base_url else {
        return Ok(options);
    };
    let options = options.base_url(base_url);
    let wrong = |problem: String| usage(format!("{}: {problem}", key("base_url")));
    let exa = Exa::new(options.clone()).map_err(|error| wrong(error.to_string()))?;
    // The key is the user's. A file that came with a folder must not send it to another machine.
    if exa.is_loopback() || base_url.trim_end_matches('/') == DEFAULT_BASE_URL {
        return Ok(options);
    }
    Err(wrong(format!(
        "an address on another machine does not belong into this file, for it gets the key; put it into the variable {BASE_URL}"
    )))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(file: &str, environment: &[(&str, &str)]) -> Result<ExaOptions> {
        let config = Config::parse(&format!("[connectors.exa]\n{file}"))?;
        options(&config, |name| {
            let found = environment.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_file_sends_the_key_to_no_other_machine() {
        let file = |url: &str| format!("api_key = \"env:EXA_KEY\"\nbase_url = \"{url}\"");
        let key = ("EXA_KEY", "sk-planted-000");
        for url in [
            "http://127.0.0.1:9",
            "http://[::1]:9/x",
            "https://localhost",
            "https://api.exa.ai",
            "https://api.exa.ai/",
        ] {
            assert!(checked(&file(url), &[key]).is_ok(), "{url}");
        }
        for url in [
            "https://thief.test",
            "https://api.exa.ai.thief.test",
            "https://api.exa.ai@thief.test",
            "https://localhost.thief.test",
            "https://127.0.0.1.thief.test",
            "http://10.0.0.1",
        ] {
            let error = checked(&file(url), &[key]).expect_err(url).to_string();
            assert!(error.contains("connectors.exa.base_url"), "{error}");
        }
        let error = checked(&file("https://thief.test"), &[key]).expect_err("thief");
        assert!(error.to_string().contains("EXA_BASE_URL"), "{error}");
        // The user's own word is taken, and wins.
        let own = ("EXA_BASE_URL", " https://gateway.test/v1 ");
        assert!(checked("api_key = \"env:EXA_KEY\"", &[key, own]).is_ok());
        assert!(checked(&file("https://thief.test"), &[key, own]).is_ok());
        let options = checked(&file("http://127.0.0.1:9"), &[key, own]).expect("options");
        let exa = Exa::new(options).expect("client");
        assert!(format!("{exa:?}").contains("gateway.test"), "{exa:?}");
        let plain = ("EXA_BASE_URL", "http://gateway.test");
        let error = checked("api_key = \"env:EXA_KEY\"", &[key, plain]).expect_err("http");
        let text = error.to_string();
        assert!(
            text.starts_with("EXA_BASE_URL: ") && text.contains("use https"),
            "{text}"
        );
    }

    #[test]
    fn a_key_that_is_none_is_told_and_not_shown() {
        for value in [
            "sk-planted 000",
            "sk-planted\n000",
            "sk-planted\u{200b}",
            "sk-planted\u{e9}",
        ] {
            let error = checked("api_key = \"env:EXA_KEY\"", &[("EXA_KEY", value)]);
            let text = format!("{:?}", error.expect_err(value));
            assert!(text.contains("characters that no key has"), "{text}");
            assert!(!text.contains("planted"), "{text}");
        }
        assert!(checked("api_key = \"env:EXA_KEY\"", &[("EXA_KEY", " sk-x\n")]).is_ok());
    }
}
