//! Checks a document in one pass and says what its root is, without keeping the rest.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Keys longer than this together, in characters of JSON, are counted only.
const KEYS: usize = 3_000;

/// The root of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outline {
    Array {
        count: u64,
    },
    /// `keys` are the first ones.
    Object {
        count: u64,
        keys: Vec<String>,
    },
}

/// The root of valid JSON that is an array or an object.
pub(super) fn outline(text: &str) -> Option<Outline> {
    if !text.starts_with(['[', '{']) {
        return None;
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let outline = json.deserialize_any(Root).ok()?;
    json.end().ok()?;
    Some(outline)
}

struct Root;

impl<'de> Visitor<'de> for Root {
    type Value = Outline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Outline, A::Error> {
        let mut count = 0;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Outline::Array { count })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outline, A::Error> {
        let (mut count, mut room, mut keys) = (0, KEYS, Vec::new());
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<IgnoredAny>()?;
            let cost = serde_json::to_string(&key).map_err(A::Error::custom)?.len() + 1;
            if keys.len() as u64 == count && cost <= room {
                room -= cost;
                keys.push(key);
            }
            count += 1;
        }
        Ok(Outline::Object { count, keys })
    }
}
