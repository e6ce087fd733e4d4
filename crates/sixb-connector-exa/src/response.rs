//! What comes back. Every field is kept: those that are known under their names, all others in `extra`; one whose value
//! has another type than Exa documents stays in `extra` too, and spoils nothing else.

mod fields;

use serde_json::{Map, Value};

use crate::ExaError;
use fields::Fields;

/// The answer of `POST /search`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchResponse {
    /// What Exa's support asks for.
    pub request_id: Option<String>,
    /// The results, best first.
    pub results: Vec<SearchResult>,
    /// Results that are no objects or have no URL, as they came.
    pub malformed: Vec<Value>,
    /// How was searched: `resolvedSearchType`, else `searchType`.
    pub search_type: Option<String>,
    /// All contents as one text, if asked for.
    pub context: Option<String>,
    /// What Exa wrote itself, if asked for.
    pub output: Option<Value>,
    /// What it cost.
    pub cost_dollars: Option<CostDollars>,
    /// All other fields.
    pub extra: Map<String, Value>,
}

/// The answer of `POST /contents`.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ContentsResponse {
    /// What Exa's support asks for.
    pub request_id: Option<String>,
    /// The pages that could be had.
    pub results: Vec<SearchResult>,
    /// Results that are no objects or have no URL, as they came.
    pub malformed: Vec<Value>,
    /// How it went, for each URL that was asked for.
    pub statuses: Vec<UrlStatus>,
    /// All contents as one text, if asked for.
    pub context: Option<String>,
    /// What it cost.
    pub cost_dollars: Option<CostDollars>,
    /// All other fields.
    pub extra: Map<String, Value>,
}

/// A page.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchResult {
    /// Exa's name of it: mostly the URL that was asked for.
    pub id: Option<String>,
    /// Where it is. Exa does not promise that it is well-formed.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// When it was published, as far as Exa can tell; ISO 8601.
    pub published_date: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// How well it fits.
    pub score: Option<f64>,
    /// An image of it.
    pub image: Option<String>,
    /// The icon of its site.
    pub favicon: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// Passages of it.
    pub highlights: Vec<String>,
    /// How well each passage fits. Empty where some of the passages made no sense.
    pub highlight_scores: Vec<f64>,
    /// A summary of it.
    pub summary: Option<String>,
    /// Pages below it.
    pub subpages: Vec<SearchResult>,
    /// Its links and images.
    pub extras: Map<String, Value>,
    /// Companies and people on it.
    pub entities: Vec<Value>,
    /// All other fields.
    pub extra: Map<String, Value>,
}

/// How it went with one URL.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct UrlStatus {
    /// The URL that was asked for.
    pub id: String,
    /// `success` or `error`.
    pub status: Option<String>,
    /// Where it came from: `cached`, `crawled`.
    pub source: Option<String>,
    /// The name of the error: `CRAWL_NOT_FOUND`, `CRAWL_TIMEOUT`, `SOURCE_NOT_AVAILABLE`, ….
    pub error_tag: Option<String>,
    /// The status of the page itself, as Exa saw it.
    pub http_status: Option<u16>,
    /// All other fields.
    pub extra: Map<String, Value>,
}

/// What a request cost, in US dollars.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct CostDollars {
    /// All in all.
    pub total: Option<f64>,
    /// What for.
    pub extra: Map<String, Value>,
}

/// Where the best text of a result comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextSource {
    /// Its text.
    Text,
    /// Its passages.
    Highlights,
    /// Its summary.
    Summary,
}

impl SearchResult {
    /// The best text there is: text, else passages, else the summary. A field that was not asked for never comes, so a
    /// result may have none.
    pub fn best_text(&self) -> Option<(TextSource, String)> {
        self.texts().next()
    }

    /// All its texts, best first.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (TextSource, String)> {
        let there = |text: &Option<String>| text.clone().unwrap_or_default();
        let passages = self.highlights.iter().map(|passage| passage.trim());
        let passages: Vec<&str> = passages.filter(|passage| !passage.is_empty()).collect();
        let all = [
            (TextSource::Text, there(&self.text)),
            (TextSource::Highlights, passages.join("\n\n")),
            (TextSource::Summary, there(&self.summary)),
        ];
        all.into_iter().filter(|(_, text)| !text.trim().is_empty())
    }

    /// `Err` gives back what is no page.
    fn read(value: Value) -> Result<Self, Value> {
        let Value::Object(map) = value else {
            return Err(value);
        };
        let mut fields = Fields(map);
        let Some(url) = fields.text("url").filter(|url| !url.trim().is_empty()) else {
            return Err(Value::Object(fields.0));
        };
        let (subpages, rest) = pages(fields.list("subpages"));
        // One that is no page goes back to where it was.
        if !rest.is_empty() {
            fields.0.insert("subpages".into(), Value::Array(rest));
        }
        let highlights = fields.texts("highlights");
        // The scores go with the passages one by one: without one of those, they say nothing.
        let highlight_scores = match fields.0.contains_key("highlights") {
            true => Vec::new(),
            false => fields.numbers("highlightScores"),
        };
        Ok(Self {
            url,
            highlights,
            highlight_scores,
            id: fields.text("id"),
            title: fields.text("title"),
            published_date: fields.text("publishedDate"),
            author: fields.text("author"),
            score: fields.number("score"),
            image: fields.text("image"),
            favicon: fields.text("favicon"),
            text: fields.text("text"),
            summary: fields.text("summary"),
            subpages,
            extras: fields.object("extras"),
            entities: fields.list("entities"),
            extra: fields.0,
        })
    }
}

impl UrlStatus {
    fn read(value: Value) -> Option<Self> {
        let Value::Object(map) = value else {
            return None;
        };
        let mut fields = Fields(map);
        let mut error = Fields(fields.object("error"));
        let status = Self {
            id: fields.text("id")?,
            status: fields.text("status"),
            source: fields.text("source"),
            error_tag: error.text("tag"),
            http_status: error
                .number("httpStatusCode")
                .filter(|code| (100.0..1000.0).contains(code))
                .map(|code| code as u16),
            extra: fields.0,
        };
        Some(status.with_rest_of_error(error.0))
    }

    fn with_rest_of_error(mut self, rest: Map<String, Value>) -> Self {
        if !rest.is_empty() {
            self.extra.insert("error".into(), Value::Object(rest));
        }
        self
    }

    /// Whether the page could not be had.
    pub fn is_error(&self) -> bool {
        self.error_tag.is_some()
            || self
                .status
                .as_deref()
                .is_some_and(|status| status != "success")
    }
}

impl CostDollars {
    fn take(fields: &mut Fields) -> Option<Self> {
        let Some(Value::Object(_)) = fields.0.get("costDollars") else {
            return None;
        };
        let mut cost = Fields(fields.object("costDollars"));
        Some(Self {
            total: cost.number("total"),
            extra: cost.0,
        })
    }
}

/// The pages of an answer, and what is none.
fn pages(list: Vec<Value>) -> (Vec<SearchResult>, Vec<Value>) {
    let mut pages = Vec::new();
    let mut malformed = Vec::new();
    for value in list {
        match SearchResult::read(value) {
            Ok(page) => pages.push(page),
            Err(value) => malformed.push(value),
        }
    }
    (pages, malformed)
}

impl SearchResponse {
    pub(crate) fn read(answer: Value) -> Result<Self, ExaError> {
        let mut fields = Fields::answer(answer)?;
        if !matches!(fields.0.get("results"), Some(Value::Array(_))) {
            return Err(ExaError::Malformed {
                problem: "has no list of results",
            });
        }
        let (results, malformed) = pages(fields.list("results"));
        let resolved = fields.text("resolvedSearchType");
        Ok(Self {
            results,
            malformed,
            request_id: fields.text("requestId"),
            search_type: resolved.or_else(|| fields.text("searchType")),
            context: fields.text("context"),
            output: fields.0.remove("output").filter(|value| !value.is_null()),
            cost_dollars: CostDollars::take(&mut fields),
            extra: fields.0,
        })
    }
}

impl ContentsResponse {
    /// `only` is the URL that was asked for, where it was a single one: a status that names none can mean no other.
    pub(crate) fn read(answer: Value, only: Option<&str>) -> Result<Self, ExaError> {
        let mut fields = Fields::answer(answer)?;
        if !matches!(
            fields.0.get("results"),
            None | Some(Value::Array(_) | Value::Null)
        ) {
            return Err(ExaError::Malformed {
                problem: "has no list of results",
            });
        }
        let (results, malformed) = pages(fields.list("results"));
        let mut statuses = fields.list("statuses");
        if let (Some(url), [Value::Object(status)]) = (only, &mut statuses[..])
            && status.get("id").is_none_or(Value::is_null)
        {
            status.insert("id".into(), url.into());
        }
        let (statuses, broken): (Vec<_>, Vec<_>) = statuses
            .into_iter()
            .partition(|status| status["id"].is_string());
        if !broken.is_empty() {
            fields.0.insert("statuses".into(), Value::Array(broken));
        }
        Ok(Self {
            results,
            malformed,
            request_id: fields.text("requestId"),
            statuses: statuses.into_iter().filter_map(UrlStatus::read).collect(),
            context: fields.text("context"),
            cost_dollars: CostDollars::take(&mut fields),
            extra: fields.0,
        })
    }
}

#[cfg(test)]
mod tests;
