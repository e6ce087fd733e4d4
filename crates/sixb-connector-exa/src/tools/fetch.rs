//! `web_fetch`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sixb_tools::{AgentTool, ConnectorHandle, Tool, ToolContext, ToolError, ToolErrorKind};

use super::{
    MAX_TEXT_CHARACTERS, UNTRUSTED, WebBudget, WebToolError, ask, refusals, scope, text, within,
};
use crate::{
    ContentsRequest, DomainPolicy, Exa, WebUrl,
    request::{ContentOptions, Switch, TextOptions},
    response::{ContentsResponse, SearchResult, UrlStatus},
};

/// Longest title, in characters.
const MAX_TITLE: usize = 300;

/// What `web_fetch` does besides fetching.
#[derive(Debug, Clone)]
#[must_use]
pub struct WebFetchOptions {
    policy: DomainPolicy,
    max_characters: usize,
    max_age_hours: Option<i64>,
    budget: WebBudget,
}

impl Default for WebFetchOptions {
    fn default() -> Self {
        Self {
            policy: DomainPolicy::default(),
            max_characters: 10_000,
            max_age_hours: None,
            budget: WebBudget::default(),
        }
    }
}

impl WebFetchOptions {
    /// Sets which pages may be read. Default: every public host.
    pub fn policy(mut self, policy: DomainPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets how many characters of a page are shown, 1 to 40 000. Default: 10 000.
    pub fn max_characters(mut self, characters: usize) -> Self {
        self.max_characters = characters;
        self
    }

    /// Sets how old text that Exa kept may be, in hours; 0 fetches each time. Default: as Exa thinks best.
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
        within("max_characters", self.max_characters, MAX_TEXT_CHARACTERS)?;
        match self.budget.problem() {
            None => Ok(()),
            Some(problem) => Err(WebToolError::Option {
                option: "max_cost_dollars",
                problem: problem.to_owned(),
            }),
        }
    }

    /// One more character than is shown is asked for: so it is known whether there is more.
    fn request(&self, url: &WebUrl) -> ContentsRequest {
        let text = TextOptions {
            max_characters: u32::try_from(self.max_characters + 1).ok(),
            ..TextOptions::default()
        };
        ContentsRequest {
            urls: vec![url.as_str().to_owned()],
            compliance: None,
            contents: ContentOptions {
                text: Some(Switch::With(text)),
                max_age_hours: self.max_age_hours,
                subpages: Some(0),
                ..ContentOptions::default()
            },
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FetchInput {
    /// The page: an absolute http or https URL of at most 2048 characters.
    #[schemars(length(min = 1))]
    url: String,
}

/// The tool `web_fetch`: input `{url}`, output `{url, requestedUrl, redirected, title?, text, truncated, costDollars?,
/// untrusted: true}`.
///
/// - The policy is asked twice: about the URL that is requested, before anything is sent, and about the one that comes back.
/// - `redirected` says that the page that came is not the one that was asked for.
///
/// ```
/// use sixb_connector_exa::{DomainPolicy, EXA, WebFetchOptions, exa_web_fetch};
///
/// let policy = DomainPolicy::default().deny(["*.ads.test"])?;
/// let tool = exa_web_fetch(&EXA, WebFetchOptions::default().policy(policy))?;
/// assert_eq!(tool.spec().name.as_str(), "web_fetch");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// An option that is out of its bounds.
pub fn exa_web_fetch(
    connector: &ConnectorHandle<Exa>,
    options: WebFetchOptions,
) -> Result<Arc<dyn Tool>, WebToolError> {
    options.check()?;
    let tool = AgentTool::new("web_fetch")
        .title("Read a web page")
        .description(format!(
            "Reads one public web page and returns its text.{} {UNTRUSTED}",
            scope(&options.policy)
        ));
    let shared = Arc::new((connector.clone(), options));
    let tool = tool.run(move |cx: ToolContext, input: FetchInput| {
        let shared = shared.clone();
        async move { fetch(&cx, &input.url, &shared.0, &shared.1).await }
    })?;
    Ok(tool)
}

async fn fetch(
    cx: &ToolContext,
    url: &str,
    connector: &ConnectorHandle<Exa>,
    options: &WebFetchOptions,
) -> Result<Value, ToolError> {
    let url = WebUrl::parse(url).map_err(|error| refusals::invalid(&error))?;
    let may = options.policy.check(&url);
    may.map_err(|refusal| refusals::refused(&url, refusal))?;
    let exa = cx.connector(connector).await?;
    let mut charge = options.budget.begin(&cx.run().run_id)?;
    cx.note(format!("reading {}", url.host()));
    let response = match ask(cx, exa.contents(&options.request(&url))).await {
        Ok(response) => response,
        Err(error) => {
            charge.failed(&error);
            return Err(error);
        }
    };
    let cost = response.cost_dollars.as_ref().and_then(|cost| cost.total);
    charge.cost(cost);
    let (page, found) = page(&url, response)?;
    let may = options.policy.check(&found);
    may.map_err(|refusal| match found.host() == url.host() {
        true => refusals::refused(&found, refusal),
        false => refusals::led_astray(&found, refusal),
    })?;
    let Some((_, block)) = text::best(&page, options.max_characters) else {
        return Err(ToolError::new(
            ToolErrorKind::NotFound,
            "No text of this page is available.",
        ));
    };
    let mut output = json!({
        "url": found.as_str(),
        "requestedUrl": url.as_str(),
        "redirected": found != url,
        "text": block.text,
        "truncated": block.truncated,
        "untrusted": true,
    });
    let title = text::line(page.title.as_deref().unwrap_or_default(), MAX_TITLE);
    if !title.is_empty() {
        output["title"] = title.into();
    }
    if let Some(cost) = cost {
        output["costDollars"] = json!(cost);
    }
    Ok(output)
}

/// The page that was asked for: the one with its URL, else the only one there is.
fn page(url: &WebUrl, response: ContentsResponse) -> Result<(SearchResult, WebUrl), ToolError> {
    let is_it = |text: &str| WebUrl::parse(text).is_ok_and(|found| found == *url);
    let failed = |status: &&UrlStatus| status.is_error() && is_it(&status.id);
    if let Some(status) = response.statuses.iter().find(failed) {
        return Err(not_had(status));
    }
    let at = response.results.iter().position(|page| is_it(&page.url));
    let by_id = |page: &SearchResult| page.id.as_deref().is_some_and(is_it);
    let at = at.or_else(|| response.results.iter().position(by_id));
    let at = at.or((response.results.len() == 1).then_some(0));
    let Some(at) = at else {
        return Err(
            match response.statuses.iter().find(|status| status.is_error()) {
                // One URL was asked for, so the one status is its.
                Some(status) if response.results.is_empty() => not_had(status),
                _ => ToolError::new(
                    ToolErrorKind::Provider,
                    "The web service did not return this page.",
                ),
            },
        );
    };
    let page = response.results.into_iter().nth(at).unwrap_or_default();
    let found = WebUrl::parse(&page.url).map_err(|error| {
        ToolError::new(
            ToolErrorKind::Provider,
            "The web service returned a page without a valid address.",
        )
        .with_source(error)
    })?;
    Ok((page, found))
}

/// Why a page could not be had, by the provider's tag and the status it saw.
fn not_had(status: &UrlStatus) -> ToolError {
    let tag = status.error_tag.as_deref().unwrap_or_default();
    let (kind, text) = match (tag, status.http_status) {
        (tag, _) if tag.contains("TIMEOUT") => {
            (ToolErrorKind::Timeout, "This page did not load in time.")
        }
        ("CRAWL_NOT_FOUND", _) | (_, Some(404 | 410)) => {
            (ToolErrorKind::NotFound, "There is no page at this address.")
        }
        ("SOURCE_NOT_AVAILABLE", _) | (_, Some(401 | 403 | 451)) => (
            ToolErrorKind::PermissionDenied,
            "The site does not give this page out.",
        ),
        ("UNSUPPORTED_URL" | "INVALID_URL", _) => {
            (ToolErrorKind::InvalidInput, "This address cannot be read.")
        }
        _ => (ToolErrorKind::Provider, "The page could not be read."),
    };
    let seen = crate::redact::token(tag, 64).unwrap_or_else(|| "no tag".to_owned());
    ToolError::new(kind, text).operator(match status.http_status {
        Some(status) => format!("{seen}, HTTP {status}"),
        None => seen,
    })
}
