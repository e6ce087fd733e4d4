//! Takes known fields out of an object, one by one; what does not fit stays.

use serde_json::{Map, Value};

use crate::ExaError;

pub(super) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    pub(super) fn answer(value: Value) -> Result<Self, ExaError> {
        match value {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(ExaError::Malformed {
                problem: "is no JSON object",
            }),
        }
    }

    /// Takes the field if `fits` makes something of it. `null` says nothing, so it goes.
    fn take<T>(&mut self, name: &str, fits: impl FnOnce(Value) -> Result<T, Value>) -> Option<T> {
        match fits(self.0.remove(name)?) {
            Ok(found) => Some(found),
            Err(Value::Null) => None,
            Err(other) => {
                self.0.insert(name.to_owned(), other);
                None
            }
        }
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.take(name, |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    pub(super) fn number(&mut self, name: &str) -> Option<f64> {
        self.take(name, |value| finite(&value).ok_or(value))
    }

    pub(super) fn list(&mut self, name: &str) -> Vec<Value> {
        let list = self.take(name, |value| match value {
            Value::Array(items) => Ok(items),
            other => Err(other),
        });
        list.unwrap_or_default()
    }

    pub(super) fn object(&mut self, name: &str) -> Map<String, Value> {
        let object = self.take(name, |value| match value {
            Value::Object(map) => Ok(map),
            other => Err(other),
        });
        object.unwrap_or_default()
    }

    /// The texts of a list. Items that are none stay, and spoil no others.
    pub(super) fn texts(&mut self, name: &str) -> Vec<String> {
        let (texts, rest): (Vec<_>, Vec<_>) =
            self.list(name).into_iter().partition(Value::is_string);
        if !rest.is_empty() {
            self.0.insert(name.to_owned(), Value::Array(rest));
        }
        let text = |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        };
        texts.into_iter().filter_map(text).collect()
    }

    /// A list of which every item is a number: one alone says nothing without its place.
    pub(super) fn numbers(&mut self, name: &str) -> Vec<f64> {
        let list = self.take(name, |value| {
            let items = value.as_array();
            let numbers = items.and_then(|items| items.iter().map(finite).collect());
            numbers.ok_or(value)
        });
        list.unwrap_or_default()
    }
}

/// With arbitrary precision (a feature of serde_json) a number may be too large for an `f64`.
fn finite(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}
