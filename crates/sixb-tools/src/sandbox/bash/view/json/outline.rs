//! Checks a document in one pass and says what its root is, without keeping the rest.

use std::fmt;

use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Keys longer than this together, in characters of JSON, are counted only.
const KEYS: usize = 3_000;

/// The root of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Root {
    Array {
        count: u64,
    },
    /// `keys` are the first ones.
    Object {
        count: u64,
        keys: Vec<String>,
    },
}

/// How much of a document a text is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outline {
    Whole(Root),
    /// Valid as far as it goes. The last element or key that is counted may have only begun.
    Start(Root),
}

/// The root of a text that is JSON, or the start of it, and an array or an object.
pub(super) fn outline(text: &str) -> Option<Outline> {
    let mut root = match text.as_bytes().first()? {
        b'[' => Root::Array { count: 0 },
        b'{' => Root::Object {
            count: 0,
            keys: Vec::new(),
        },
        _ => return None,
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let read = json.deserialize_any(Fill(&mut root));
    match read.and_then(|()| json.end()) {
        Ok(()) => Some(Outline::Whole(root)),
        Err(error) if error.is_eof() => Some(Outline::Start(root)),
        Err(_) => None,
    }
}

/// Fills in what is met, so that it is there also when the text ends too early.
struct Fill<'a>(&'a mut Root);

impl<'de> Visitor<'de> for Fill<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array or an object")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Root::Array { count } = self.0 else {
            return Err(A::Error::custom("an array"));
        };
        while seq.next_element::<IgnoredAny>()?.is_some() {
            *count += 1;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Root::Object { count, keys } = self.0 else {
            return Err(A::Error::custom("an object"));
        };
        let mut room = KEYS;
        while let Some(key) = map.next_key::<String>()? {
            let cost = serde_json::to_string(&key).map_err(A::Error::custom)?.len() + 1;
            if keys.len() as u64 == *count && cost <= room {
                room -= cost;
                keys.push(key);
            }
            *count += 1;
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}
