//! The keys of `sixb.toml`: which there are, and where in the text one stands.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// What may stand under a key.
enum Keys {
    Value,
    Table(&'static [(&'static str, Keys)]),
    /// A table whose keys are names that the user chose.
    Named(&'static [(&'static str, Keys)]),
}

const ROOT: &[(&str, Keys)] = &[
    ("project", Keys::Table(&[("id", Keys::Value)])),
    (
        "sandbox",
        Keys::Table(&[
            ("provider", Keys::Value),
            ("net", Keys::Value),
            ("memory", Keys::Value),
            ("timeout", Keys::Value),
            ("workspace", Keys::Value),
        ]),
    ),
    ("blobs", Keys::Table(&[("url", Keys::Value)])),
    (
        "agents",
        Keys::Named(&[
            ("name", Keys::Value),
            ("instructions", Keys::Value),
            ("model", Keys::Value),
            ("reasoning_effort", Keys::Value),
            ("groups", Keys::Value),
            ("tools", Keys::Value),
            ("max_steps", Keys::Value),
            ("timeout", Keys::Value),
        ]),
    ),
    (
        "connectors",
        Keys::Table(&[(
            "exa",
            Keys::Table(&[("api_key", Keys::Value), ("base_url", Keys::Value)]),
        )]),
    ),
    (
        "tools",
        Keys::Table(&[
            (
                "web_search",
                Keys::Table(&[
                    ("allowed_domains", Keys::Value),
                    ("denied_domains", Keys::Value),
                    ("num_results", Keys::Value),
                    ("max_characters", Keys::Value),
                    ("max_total_characters", Keys::Value),
                    ("max_age_hours", Keys::Value),
                    ("search_type", Keys::Value),
                    ("category", Keys::Value),
                    ("user_location", Keys::Value),
                    ("strict", Keys::Value),
                    ("max_calls", Keys::Value),
                    ("max_cost_dollars", Keys::Value),
                ]),
            ),
            (
                "web_fetch",
                Keys::Table(&[
                    ("allowed_domains", Keys::Value),
                    ("denied_domains", Keys::Value),
                    ("max_characters", Keys::Value),
                    ("max_age_hours", Keys::Value),
                    ("max_calls", Keys::Value),
                    ("max_cost_dollars", Keys::Value),
                ]),
            ),
        ]),
    ),
];

/// A key that means nothing here.
pub(super) struct Unknown {
    /// Where it stands, in bytes.
    pub(super) offset: usize,
    path: String,
    key: String,
    known: Vec<&'static str>,
}

impl Unknown {
    /// What is wrong, with the key that was probably meant.
    pub(super) fn problem(&self) -> String {
        let likely = closest(&self.key, self.known.iter().copied());
        let remedy = match likely {
            Some(likely) => format!("did you mean `{likely}`?"),
            None => format!("the keys here are {}", self.known.join(", ")),
        };
        let known_tables = self.path.strip_suffix(&self.key).unwrap_or_default();
        let known_tables = known_tables.trim_end_matches('.');
        // A slip of the pen may be shown. Anything longer may be a key that stands left of the `=`.
        let slip = likely.is_some_and(|likely| self.key.len() <= likely.len() + 2);
        let near_keys =
            known_tables == "tools" || known_tables.split('.').next() == Some("connectors");
        if near_keys && !slip {
            return format!("{known_tables}: unknown key; {remedy}");
        }
        format!("{}: unknown key `{}`; {remedy}", self.path, self.key)
    }
}

/// Whether a message may quote the value of a key of the file: not where keys of accounts are expected nearby.
pub(super) fn may_be_quoted(key: &str) -> bool {
    matches!(
        key.split('.').next(),
        Some("project" | "sandbox" | "blobs" | "agents")
    )
}

/// The known text that `text` was probably meant to be.
pub(crate) fn closest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = |word: &&str| strsim::jaro_winkler(text, word) > 0.8;
    known
        .into_iter()
        .filter(close)
        .max_by(|a, b| strsim::jaro_winkler(text, a).total_cmp(&strsim::jaro_winkler(text, b)))
}

/// The first unknown key of a file.
pub(super) fn unknown(table: &DeTable<'_>) -> Option<Unknown> {
    unknown_in(table, ROOT, "")
}

fn unknown_in(
    table: &DeTable<'_>,
    known: &'static [(&'static str, Keys)],
    parent: &str,
) -> Option<Unknown> {
    // The table is sorted by name; people correct a file from the top.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter().find_map(|(key, value)| {
        let path = below(parent, key.get_ref());
        let inner = |value: &Spanned<DeValue<'_>>, known, path: &str| match value.get_ref() {
            DeValue::Table(table) => unknown_in(table, known, path),
            _ => None, // The type is checked when the values are read.
        };
        match known.iter().find(|(name, _)| *name == key.get_ref()) {
            None => Some(Unknown {
                offset: key.span().start,
                path,
                key: key.get_ref().to_string(),
                known: known.iter().map(|(name, _)| *name).collect(),
            }),
            Some((_, Keys::Value)) => None,
            Some((_, Keys::Table(known))) => inner(value, known, &path),
            Some((_, Keys::Named(known))) => match value.get_ref() {
                DeValue::Table(named) => named
                    .iter()
                    .find_map(|(name, value)| inner(value, known, &below(&path, name.get_ref()))),
                _ => None,
            },
        }
    })
}

fn below(parent: &str, key: &str) -> String {
    if parent.is_empty() {
        key.to_owned()
    } else {
        format!("{parent}.{key}")
    }
}

/// The path of the innermost key whose value covers a place of the text.
pub(super) fn at(table: &DeTable<'_>, offset: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let inner = match value.get_ref() {
            DeValue::Table(table) => at(table, offset),
            _ => None,
        };
        match inner {
            Some(inner) => Some(below(key.get_ref(), &inner)),
            None => value
                .span()
                .contains(&offset)
                .then(|| key.get_ref().to_string()),
        }
    })
}
