//! What is asked: one type per endpoint, because they nest the same options differently.
//!
//! Every option that Exa documents is here under its present name. Names that Exa has given up cannot be said:
//! `useAutoprompt`, `numSentences`, `highlightsPerUrl`, `livecrawl` (say [`max_age_hours`](ContentOptions::max_age_hours))
//! and `ids` (say [`urls`](ContentsRequest::urls)). Streaming is left out.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::ExaError;

/// The body of `POST /search`. What a field means is [Exa's affair](https://exa.ai/docs/reference/search); a field that is
/// not set is not sent.
///
/// ```
/// use sixb_connector_exa::request::{ContentOptions, SearchRequest, Switch, TextOptions};
///
/// let mut text = TextOptions::default();
/// text.max_characters = Some(2_000);
/// let mut contents = ContentOptions::default();
/// contents.text = Some(Switch::With(text));
///
/// let mut request = SearchRequest::new("papers about agents");
/// request.include_domains = vec!["arxiv.org".into()];
/// request.contents = Some(contents);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SearchRequest {
    /// What to look for.
    pub query: String,
    /// How: `auto`, `fast`, `instant`, `neural`, `deep`, …; Exa adds to the list.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub search_type: Option<String>,
    /// What kind of page: `company`, `news`, `research paper`, `people`, ….
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// The user's country in two letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_location: Option<String>,
    /// Most results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_results: Option<u32>,
    /// Only these: `host`, `*.host`, `host/path`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include_domains: Vec<String>,
    /// None of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_domains: Vec<String>,
    /// Found by Exa after this time, in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_crawl_date: Option<String>,
    /// Found by Exa before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_crawl_date: Option<String>,
    /// Published after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_published_date: Option<String>,
    /// Published before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_published_date: Option<String>,
    /// Words that the page has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include_text: Vec<String>,
    /// Words that the page does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_text: Vec<String>,
    /// Whether unsafe results are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moderation: Option<bool>,
    /// A rule of the account, such as `hipaa`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compliance: Option<String>,
    /// Other ways to say the query, for deep searches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_queries: Vec<String>,
    /// Guides what Exa writes itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// A JSON schema of what Exa writes itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What of each page comes with its result. Here it is nested; without it, only titles and URLs come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<ContentOptions>,
}

/// The body of `POST /contents`. Here the options of contents stand at the top.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContentsRequest {
    /// The pages.
    pub urls: Vec<String>,
    /// A rule of the account, such as `hipaa`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compliance: Option<String>,
    /// What of each page comes.
    #[serde(flatten)]
    pub contents: ContentOptions,
}

/// What of a page comes. A field that is not asked for never comes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContentOptions {
    /// The page's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Switch<TextOptions>>,
    /// Passages that matter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highlights: Option<Switch<HighlightOptions>>,
    /// A summary that Exa writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Switch<SummaryOptions>>,
    /// How long Exa may fetch a page live, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub livecrawl_timeout: Option<u64>,
    /// How old what Exa kept may be, in hours: 0 always fetches, -1 never does. Unset: it fetches what it has not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_hours: Option<i64>,
    /// Pages below each page that come too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subpages: Option<u32>,
    /// Words that such pages have in their address.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subpage_target: Vec<String>,
    /// Links and images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extras: Option<ExtraOptions>,
    /// All contents as one text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Switch<ContextOptions>>,
}

/// Something with Exa's own settings (`true` on the wire), or with some of one's own.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Switch<T> {
    /// As Exa thinks best.
    On,
    /// With settings.
    With(T),
}

impl<T: Serialize> Serialize for Switch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::On => serializer.serialize_bool(true),
            Self::With(options) => options.serialize(serializer),
        }
    }
}

/// How text comes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextOptions {
    /// Most characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_characters: Option<u32>,
    /// Whether HTML tags stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_html_tags: Option<bool>,
    /// `compact`, `standard` or `full`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verbosity: Option<String>,
    /// Only these parts of a page: `header`, `body`, ….
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include_sections: Vec<String>,
    /// None of these parts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude_sections: Vec<String>,
}

/// How passages are chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct HighlightOptions {
    /// What they should be about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Most characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_characters: Option<u32>,
}

/// How a summary is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SummaryOptions {
    /// What it should be about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// A JSON schema of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
}

/// How many links and images of a page come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExtraOptions {
    /// Links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<u32>,
    /// Links of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_links: Option<u32>,
    /// Links with their texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rich_links: Option<u32>,
    /// Links of images with their texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rich_image_links: Option<u32>,
    /// Blocks of code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_blocks: Option<u32>,
}

/// How all contents become one text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ContextOptions {
    /// Most characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_characters: Option<u32>,
}

impl SearchRequest {
    /// Asks for pages that fit `query`.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            ..Self::default()
        }
    }

    pub(crate) fn check(&self) -> Result<(), ExaError> {
        let problem = match (self.query.trim().is_empty(), self.num_results) {
            (true, _) => "has a blank query",
            (_, Some(0)) => "asks for no results",
            _ => return Ok(()),
        };
        Err(ExaError::Request { problem })
    }
}

impl ContentsRequest {
    /// Asks for these pages; what of them, say in [`contents`](Self::contents).
    pub fn new(urls: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            urls: urls.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn check(&self) -> Result<(), ExaError> {
        let problem = match &self.urls[..] {
            [] => "names no page",
            urls if urls.iter().any(|url| url.trim().is_empty()) => "has a blank URL",
            _ => return Ok(()),
        };
        Err(ExaError::Request { problem })
    }
}

#[cfg(test)]
mod tests;
