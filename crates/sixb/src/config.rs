//! `sixb.toml`: what a folder says about its agents and sandboxes. Flags win over it.

mod keys;
pub(crate) mod web;

pub(crate) use keys::closest;

use std::{
    collections::BTreeMap,
    io,
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use anyhow::{Result, anyhow};
use serde::Deserialize;
use toml::de::DeTable;

use crate::{
    failure::usage,
    host,
    values::{MemorySize, Network, Provider, Timeout},
};

/// The name of the file that is looked for in the current folder.
pub(crate) const FILE_NAME: &str = "sixb.toml";

/// What `sixb init` writes. It says what holds anyway, so that changing a line changes something.
pub(crate) const TEMPLATE: &str = include_str!("config/template.toml");

/// The whole file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) project: Project,
    pub(crate) sandbox: Sandbox,
    pub(crate) blobs: Blobs,
    pub(crate) agents: BTreeMap<String, Agent>,
    pub(crate) connectors: web::Connectors,
    pub(crate) tools: web::Tools,
    /// Where it was read; `None` when there is no file.
    #[serde(skip)]
    pub(crate) path: Option<PathBuf>,
}

/// `[project]`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Project {
    pub(crate) id: Option<String>,
}

/// `[sandbox]`: the flags of the same names.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Sandbox {
    pub(crate) provider: Option<Provider>,
    pub(crate) net: Option<Network>,
    pub(crate) memory: Option<MemorySize>,
    pub(crate) timeout: Option<Timeout>,
    pub(crate) workspace: Option<String>,
}

/// `[blobs]`: where files of runs are kept.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Blobs {
    pub(crate) url: Option<String>,
}

/// `[agents.NAME]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Agent {
    pub(crate) name: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) reasoning_effort: Option<String>,
    pub(crate) groups: Option<Vec<String>>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) max_steps: Option<NonZeroU32>,
    pub(crate) timeout: Option<Timeout>,
}

impl Config {
    /// Reads `--config FILE`, or `sixb.toml` of the current folder if there is one.
    pub(crate) fn load(flag: Option<&Path>) -> Result<Self> {
        let path = flag.unwrap_or(Path::new(FILE_NAME));
        let text = match host::read_text(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && flag.is_none() => {
                return Ok(Self::default());
            }
            Err(error) => {
                let named = if flag.is_some() { "--config " } else { "" };
                return Err(usage(format!(
                    "{named}{}: {error}; name a file that `sixb init` could have written",
                    path.display()
                )));
            }
        };
        let mut config =
            Self::parse(&text).map_err(|problem| usage(format!("{}:{problem}", path.display())))?;
        config.path = Some(path.to_owned());
        Ok(config)
    }

    /// Parses a file. The error begins with the line: `7: sandbox.memory: …`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let line = |offset: usize| {
            text[..text.floor_char_boundary(offset)]
                .matches('\n')
                .count()
                + 1
        };
        let table = DeTable::parse(text).map_err(|error| {
            let at = line(error.span().map_or(0, |span| span.start));
            anyhow!(
                "{at}: {}; correct the TOML there",
                error.message().replace('\n', "; ")
            )
        })?;
        if let Some(unknown) = keys::unknown(table.get_ref()) {
            return Err(anyhow!("{}: {}", line(unknown.offset), unknown.problem()));
        }
        toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            let key = keys::at(table.get_ref(), offset).unwrap_or_default();
            let message = error.message().replace('\n', "; ");
            let remedy = remedy(&key, &message);
            // Such a message quotes the value, which here may be a key that stands in the wrong place.
            let message = match message.starts_with("invalid type") && !keys::may_be_quoted(&key) {
                true => "the value has the wrong type".to_owned(),
                false => message,
            };
            anyhow!("{}: {key}: {message}{remedy}", line(offset))
        })
    }

    /// How to name a key of this file in a message.
    pub(crate) fn key(&self, key: &str) -> String {
        match &self.path {
            Some(path) => format!("{}: {key}", path.display()),
            None => key.to_owned(),
        }
    }

    /// A path of the file, which is relative to the folder that the file lies in.
    pub(crate) fn beside(&self, path: impl AsRef<Path>) -> PathBuf {
        match self.path.as_deref().and_then(Path::parent) {
            Some(folder) => folder.join(path),
            None => path.as_ref().to_owned(),
        }
    }
}

/// What to write in the place of a value of the wrong type, which the parser does not say.
fn remedy(key: &str, message: &str) -> String {
    if !message.starts_with("invalid type") {
        return String::new();
    }
    let name = key.rsplit('.').next().unwrap_or(key);
    let example = match name {
        "memory" => "\"512M\"",
        "timeout" => "\"2m\"",
        "net" => "\"none\"",
        "provider" => "\"local\"",
        "workspace" => "\"data:ro\"",
        "model" => "\"script:turn.json\"",
        "tools" => "[\"bash\"]",
        "max_steps" => "25",
        "allowed_domains" | "denied_domains" => "[\"docs.rs\", \"*.rust-lang.org\"]",
        "num_results" => "5",
        "max_characters" | "max_total_characters" => "10000",
        "max_age_hours" => "24",
        "max_calls" => "20",
        "max_cost_dollars" => "0.25",
        "strict" => "true",
        "base_url" => "\"http://127.0.0.1:8080\"",
        "search_type" => "\"auto\"",
        "category" => "\"news\"",
        "user_location" => "\"DE\"",
        "id" | "name" | "instructions" => "\"some text\"",
        _ => return format!("; write it as a table: [{key}]"),
    };
    format!("; write {name} = {example}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, parts: &[&str]) {
        let error = Config::parse(text).expect_err(text).to_string();
        for part in parts {
            assert!(error.contains(part), "{part:?} is missing in: {error}");
        }
        assert!(!error.contains('\n'), "one line: {error}");
    }

    #[test]
    fn the_template_says_the_defaults() {
        let config = Config::parse(TEMPLATE).expect("template");
        assert_eq!(config.project.id.as_deref(), Some("my-project"));
        assert_eq!(config.sandbox.provider, Some(Provider::Local));
        assert_eq!(config.agents.keys().collect::<Vec<_>>(), ["assistant"]);
    }

    #[test]
    fn every_commented_line_of_the_template_parses_too() {
        let all: String = TEMPLATE
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line))
            .flat_map(|line| [line, "\n"])
            .collect();
        let config = Config::parse(&all).expect("uncommented");
        assert!(config.sandbox.memory.is_some() && config.sandbox.workspace.is_some());
        assert!(config.agents["assistant"].model.is_some());
        assert!(
            config
                .connectors
                .exa
                .is_some_and(|exa| exa.api_key.is_some())
        );
        assert!(config.tools.web_search.allowed_domains.is_some());
        let researcher = &config.agents["researcher"];
        assert!(
            researcher
                .tools
                .as_ref()
                .is_some_and(|tools| tools.len() == 2)
        );
    }

    #[test]
    fn errors_name_line_key_value_and_remedy() {
        check(
            "[sandbox]\nmemroy = \"1G\"\n",
            &["2: ", "sandbox.memroy", "did you mean `memory`"],
        );
        check("[sandbx]\n", &["1: ", "sandbx", "did you mean `sandbox`"]);
        check(
            "[agents.a]\nzzz = 1\n",
            &["2: ", "agents.a.zzz", "name, instructions, model"],
        );
        check(
            "[sandbox]\n\nmemory = \"5 apples\"",
            &["3: ", "sandbox.memory", "5 apples", "512M"],
        );
        check(
            "[sandbox]\nnet = \"https://*.a.test\"",
            &["2: ", "sandbox.net", "https://www.a.test"],
        );
        check(
            "[sandbox]\nprovider = \"docker\"",
            &["2: ", "sandbox.provider", "docker", "local or smolvm"],
        );
        check(
            "[sandbox]\ntimeout = 30",
            &["2: ", "sandbox.timeout", "30", "write timeout = \"2m\""],
        );
        check(
            "[agents.a]\nmax_steps = 0",
            &["2: ", "agents.a.max_steps", "0"],
        );
        check(
            "[sandbox]\nmemory = 12",
            &["2: ", "sandbox.memory", "12", "write memory = \"512M\""],
        );
        check("sandbox = 3", &["1: ", "sandbox", "[sandbox]"]);
        check("agents = { a = 3 }", &["1: ", "agents.a"]);
        check("[sandbox\n", &["1: ", "correct the TOML"]);
    }

    #[test]
    fn the_tables_of_the_web_are_checked_like_the_others() {
        check(
            "[connectors.exo]\n",
            &["1: ", "connectors.exo", "did you mean `exa`"],
        );
        check(
            "[connectors.exa]\napi_keys = \"env:A\"",
            &["2: ", "did you mean `api_key`"],
        );
        check("[tools.web_serch]\n", &["1: ", "did you mean `web_search`"]);
        check(
            "[tools.web_fetch]\nnum_results = 3",
            &["2: ", "tools.web_fetch.num_results", "the keys here are"],
        );
        check(
            "[tools.web_search]\nallowed_domains = [\"a.test\", \"*\"]",
            &[
                "2: ",
                "tools.web_search.allowed_domains",
                "leave the list out",
            ],
        );
        check(
            "[tools.web_search]\nallowed_domains = \"a.test\"",
            &["2: ", "write allowed_domains = [\"docs.rs\""],
        );
        check(
            "[tools.web_search]\nnum_results = -1",
            &["2: ", "tools.web_search.num_results", "-1"],
        );
        check(
            "[tools.web_search]\nmax_cost_dollars = \"1\"",
            &["2: ", "write max_cost_dollars = 0.25"],
        );
    }

    #[test]
    fn a_key_in_the_file_is_refused_and_not_shown() {
        for key in [
            "\"sk-planted-000\"",
            "\"env:sk-planted-000\"",
            "\"env:\"",
            "1234567890",
            "[\"sk-planted-000\"]",
            "{ key = \"sk-planted-000\" }",
        ] {
            let text = format!("[connectors.exa]\napi_key = {key}\n");
            check(&text, &["2: ", "connectors.exa", "env:EXA_API_KEY"]);
            let error = format!("{:?}", Config::parse(&text).expect_err(key));
            assert!(
                !error.contains("planted") && !error.contains("1234"),
                "{error}"
            );
        }
        for (text, line) in [
            ("[connectors]\nexa = \"sk-planted-000\"", "2: "),
            ("connectors = \"sk-planted-000\"", "1: "),
            ("connectors = [\"sk-planted-000\"]", "1: "),
            ("tools = \"sk-planted-000\"", "1: "),
            ("[tools]\nweb_search = \"sk-planted-000\"", "2: "),
            ("[tools.web_search]\nstrict = \"sk-planted-000\"", "2: "),
            ("[connectors.exa]\n\"sk-planted-000\" = 1", "2: "),
            ("[connectors.exa]\n\"api_key=sk-planted-000\" = 1", "2: "),
            ("[connectors]\n\"sk-planted-000\" = { a = 1 }", "2: "),
            ("[connectors.sk-planted-000]", "1: "),
            ("[tools]\nsk-planted-000 = 1", "2: "),
        ] {
            check(text, &[line]);
            let error = format!("{:?}", Config::parse(text).expect_err(text));
            assert!(!error.contains("planted"), "{error}");
        }
        check("connectors = \"x\"", &["write it as a table: [connectors]"]);
        let unquoted =
            Config::parse("[connectors.exa]\napi_key = sk-planted-000").expect_err("TOML");
        assert!(!format!("{unquoted:?}").contains("planted"), "{unquoted:?}");
        let config = Config::parse("[connectors.exa]\napi_key = \"env:MY_KEY\"").expect("name");
        let key = config.connectors.exa.and_then(|exa| exa.api_key);
        assert_eq!(key.map(|key| key.0).as_deref(), Some("MY_KEY"));
    }
}
