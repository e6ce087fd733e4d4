//! `web_search`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sixb_tools::{AgentTool, ConnectorHandle, Tool, ToolContext, ToolError, ToolErrorKind};

use super::{
    MAX_TEXT_CHARACTERS, UNTRUSTED, WebBudget, WebToolError, ask, refusals, scope, text, within,
};
use crate::{
    DomainPolicy, Exa, SearchRequest, WebUrl,
    policy::InvalidUrl,
    request::{ContentOptions, Switch, TextOptions},
    response::{SearchResponse, SearchResult, TextSource},
};

/// Longest query, in characters.
const MAX_QUERY: usize = 2_000;
/// Most results of a call.
const MAX_RESULTS: usize = 20;
/// Longest title, in characters; other short fields are half as long.
const MAX_TITLE: usize = 300;
const NO_TEXT: &str = "(no text of this page is available)";

/// What `web_search` does besides searching.
#[derive(Debug, Clone)]
#[must_use]
pub struct WebSearchOptions {
    policy: DomainPolicy,
    num_results: usize,
    max_characters: usize,
    max_total_characters: usize,
    strict: bool,
    search_type: Option<String>,
    category: Option<String>,
    user_location: Option<String>,
    max_age_hours: Option<i64>,
    budget: WebBudget,
}

impl Default for WebSearchOptions {
    fn default() -> Self {
        Self {
            policy: DomainPolicy::default(),
            num_results: 5,
            max_characters: 2_000,
            max_total_characters: 10_000,
            strict: false,
            search_type: None,
            category: None,
            user_location: None,
            max_age_hours: None,
            budget: WebBudget::default(),
        }
    }
}

impl WebSearchOptions {
    /// Sets which pages may be shown. Default: every public host.
    pub fn policy(mut self, policy: DomainPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how many results there are at most, 1 to 20. Default: 5.
    pub fn num_results(mut self, results: usize) -> Self {
        self.num_results = results;
        self
    }

    /// Sets how many characters of each page are shown, 1 to 40 000. Default: 2 000.
    pub fn max_characters(mut self, characters: usize) -> Self {
        self.max_characters = characters;
        self
    }

    /// Sets how many characters of all pages are shown together, 1 to 40 000. Default: 10 000.
    pub fn max_total_characters(mut self, characters: usize) -> Self {
        self.max_total_characters = characters;
        self
    }

    /// Sets whether a result that the policy refuses, or whose address it cannot read, ends the call with an error. Default:
    /// it is left out and counted.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Sets how is searched: `auto`, `fast`, …. Default: as Exa thinks best.
    pub fn search_type(mut self, search_type: impl Into<String>) -> Self {
        self.search_type = Some(search_type.into());
        self
    }

    /// Sets what kind of page is looked for: `news`, `research paper`, …. Default: any.
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Sets the user's country in two letters. Default: unknown.
    pub fn user_location(mut self, country: impl Into<String>) -> Self {
        self.user_location = Some(country.into());
        self
    }

    /// Sets how old text that Exa kept may be, in hours. Default: as Exa thinks best.
    pub fn max_age_hours(mut self, hours: i64) -> Self {
        self.max_age_hours = Some(hours);
        self
    }

    /// Sets what a run may spend. Default: anything.
    pub fn budget(mut self, budget: WebBudget) -> Self {
        self.budget = budget;
        self
    }

    fn check(&self) -> Result<(), WebToolError> {
        within("num_results", self.num_results, MAX_RESULTS)?;
        within("max_characters", self.max_characters, MAX_TEXT_CHARACTERS)?;
        within(
            "max_total_characters",
            self.max_total_characters,
            MAX_TEXT_CHARACTERS,
        )?;
        match self.budget.problem() {
            None => Ok(()),
            Some(problem) => Err(WebToolError::Option {
                option: "max_cost_dollars",
                problem: problem.to_owned(),
            }),
        }
    }

    /// Exa refuses to exclude domains from such searches; the denials are applied to what comes back.
    fn takes_no_exclusions(&self) -> bool {
        matches!(self.category.as_deref(), Some("company" | "people"))
    }

    /// One more character than is shown is asked for: so it is known whether there is more.
    fn request(&self, query: String) -> SearchRequest {
        let characters = self.max_characters.min(self.max_total_characters) + 1;
        let text = TextOptions {
            max_characters: u32::try_from(characters).ok(),
            ..TextOptions::default()
        };
        let include = self.policy.include_filters();
        SearchRequest {
            query,
            search_type: self.search_type.clone(),
            category: self.category.clone(),
            user_location: self.user_location.clone(),
            num_results: u32::try_from(self.num_results).ok(),
            // Exa takes one list or the other. Within what is included, denials are applied to what comes back.
            exclude_domains: match include.is_empty() && !self.takes_no_exclusions() {
                true => self.policy.exclude_filters(),
                false => Vec::new(),
            },
            include_domains: include,
            contents: Some(ContentOptions {
                text: Some(Switch::With(text)),
                max_age_hours: self.max_age_hours,
                ..ContentOptions::default()
            }),
            ..SearchRequest::default()
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchInput {
    /// What to look for, in plain words.
    #[schemars(length(min = 1, max = 2000))]
    query: String,
}

/// The tool `web_search`: input `{query}`, output `{results: [{title, url, publishedDate?, author?, score?, text, textSource?,
/// truncated?}], dropped, costDollars?, untrusted: true}`.
///
/// - `text` is the page's text, else its passages, else its summary (`textSource` then says so), else a note that there is
///   none.
/// - `dropped` counts results that the policy refused or that made no sense.
/// - One request a call, none where the policy allows nothing.
///
/// ```
/// use sixb_connector_exa::{DomainPolicy, EXA, WebSearchOptions, exa_web_search};
///
/// let policy = DomainPolicy::default().allow(["docs.rs", "*.rust-lang.org"])?;
/// let tool = exa_web_search(&EXA, WebSearchOptions::default().policy(policy).num_results(3))?;
/// assert_eq!(tool.spec().name.as_str(), "web_search");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An option that is out of its bounds.
pub fn exa_web_search(
    connector: &ConnectorHandle<Exa>,
    options: WebSearchOptions,
) -> Result<Arc<dyn Tool>, WebToolError> {
    options.check()?;
    let tool = AgentTool::new("web_search")
        .title("Search the web")
        .description(format!(
            "Searches the web and returns pages with title, URL and the beginning of their text. Read a whole page with \
             web_fetch where that is at hand.{} {UNTRUSTED}",
            scope(&options.policy)
        ));
    let shared = Arc::new((connector.clone(), options));
    let tool = tool.run(move |cx: ToolContext, input: SearchInput| {
        let shared = shared.clone();
        async move { search(&cx, input.query, &shared.0, &shared.1).await }
    })?;
    Ok(tool)
}

async fn search(
    cx: &ToolContext,
    query: String,
    connector: &ConnectorHandle<Exa>,
    options: &WebSearchOptions,
) -> Result<Value, ToolError> {
    if query.trim().is_empty() || query.chars().count() > MAX_QUERY {
        return Err(ToolError::invalid_input(format!(
            "`query` must have from 1 to {MAX_QUERY} characters."
        )));
    }
    if options.policy.allowed().is_some_and(<[_]>::is_empty) {
        return Err(ToolError::new(
            ToolErrorKind::PolicyDenied,
            "No web page may be read here.",
        ));
    }
    let exa = cx.connector(connector).await?;
    let mut charge = options.budget.begin(&cx.run().run_id)?;
    cx.note("searching the web");
    let response = match ask(cx, exa.search(&options.request(query))).await {
        Ok(response) => response,
        Err(error) => {
            charge.failed(&error);
            return Err(error);
        }
    };
    charge.cost(response.cost_dollars.as_ref().and_then(|cost| cost.total));
    output(response, options)
}

fn output(response: SearchResponse, options: &WebSearchOptions) -> Result<Value, ToolError> {
    let mut dropped = response.malformed.len();
    let mut left = options.max_total_characters;
    let mut results = Vec::new();
    for result in response.results {
        // A provider may send more than it was asked for.
        if results.len() == options.num_results {
            break;
        }
        let url = match WebUrl::parse(&result.url) {
            Ok(url) => url,
            // What is no URL at all leads nowhere.
            Err(error) if options.strict && error != InvalidUrl::NoUrl => {
                return Err(refusals::unreadable(error));
            }
            Err(_) => {
                dropped += 1;
                continue;
            }
        };
        match options.policy.check(&url) {
            Ok(()) => results.push(shown(&url, &result, options.max_characters, &mut left)),
            Err(refusal) if options.strict => return Err(refusals::off_policy(&url, refusal)),
            Err(_) => dropped += 1,
        }
    }
    let mut output = json!({"results": results, "dropped": dropped, "untrusted": true});
    if let Some(total) = response.cost_dollars.and_then(|cost| cost.total) {
        output["costDollars"] = json!(total);
    }
    Ok(output)
}

fn shown(url: &WebUrl, result: &SearchResult, most: usize, left: &mut usize) -> Value {
    let title = text::line(result.title.as_deref().unwrap_or_default(), MAX_TITLE);
    let mut shown = json!({"title": title, "url": url.as_str()});
    let short = |text: &Option<String>, most| {
        let line = text::line(text.as_deref()?, most);
        (!line.is_empty()).then_some(line)
    };
    for (name, value) in [
        (
            "publishedDate",
            short(&result.published_date, MAX_TITLE / 2),
        ),
        ("author", short(&result.author, MAX_TITLE / 2)),
    ] {
        if let Some(value) = value {
            shown[name] = value.into();
        }
    }
    if let Some(score) = result.score {
        shown["score"] = json!(score);
    }
    let Some((source, block)) = text::best(result, most.min(*left)) else {
        shown["text"] = NO_TEXT.into();
        return shown;
    };
    *left -= block.text.chars().count().min(*left);
    if let Some(source) = match source {
        TextSource::Text => None,
        TextSource::Highlights => Some("highlights"),
        TextSource::Summary => Some("summary"),
    } {
        shown["textSource"] = source.into();
    }
    shown["text"] = block.text.into();
    if block.truncated {
        shown["truncated"] = true.into();
    }
    shown
}
