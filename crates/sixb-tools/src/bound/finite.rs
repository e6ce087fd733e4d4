//! Walks a value as serde sees it and finds floats that JSON cannot say.

use std::fmt::Display;

use serde::{Serialize, Serializer, ser};

use crate::{ToolError, ToolErrorKind};

/// Fails at the first `NaN` or infinity, naming where it is.
pub(super) fn check(value: &(impl Serialize + ?Sized)) -> Result<(), ToolError> {
    match value.serialize(Walk {
        path: &mut Vec::new(),
    }) {
        Err(Stop::NotFinite { value, path }) => Err(ToolError::new(
            ToolErrorKind::Internal,
            format!("The tool's result holds {value} at `{path}`: JSON has no such number."),
        )),
        // What else fails here fails again, with serde_json's own words, when it is written.
        Ok(()) | Err(Stop::Other) => Ok(()),
    }
}

#[derive(Debug)]
enum Stop {
    NotFinite { value: f64, path: String },
    Other,
}

impl Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not finite")
    }
}

impl std::error::Error for Stop {}

impl ser::Error for Stop {
    fn custom<T: Display>(_: T) -> Self {
        Self::Other
    }
}

/// Keys and indices down to where the walk is.
struct Walk<'a> {
    path: &'a mut Vec<String>,
}

/// Inside a list or an object.
struct Inside<'a> {
    path: &'a mut Vec<String>,
    next: usize,
}

impl<'a> Walk<'a> {
    fn inside(self) -> Inside<'a> {
        Inside {
            path: self.path,
            next: 0,
        }
    }

    fn float(self, value: f64) -> Result<(), Stop> {
        if value.is_finite() {
            return Ok(());
        }
        Err(Stop::NotFinite {
            value,
            path: self.path.iter().map(|part| format!("/{part}")).collect(),
        })
    }
}

impl Inside<'_> {
    fn at(
        &mut self,
        key: impl Into<String>,
        value: &(impl Serialize + ?Sized),
    ) -> Result<(), Stop> {
        self.path.push(key.into());
        value.serialize(Walk { path: self.path })?;
        self.path.pop();
        Ok(())
    }

    fn element(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Stop> {
        self.next += 1;
        self.at((self.next - 1).to_string(), value)
    }
}

macro_rules! harmless {
    ($($method:ident: $kind:ty),* $(,)?) => {
        $(fn $method(self, _: $kind) -> Result<(), Stop> { Ok(()) })*
    };
}

impl<'a> Serializer for Walk<'a> {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Inside<'a>;
    type SerializeTuple = Inside<'a>;
    type SerializeTupleStruct = Inside<'a>;
    type SerializeTupleVariant = Inside<'a>;
    type SerializeMap = Inside<'a>;
    type SerializeStruct = Inside<'a>;
    type SerializeStructVariant = Inside<'a>;

    harmless!(
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128,
        serialize_unit_struct: &'static str,
    );

    fn serialize_f32(self, value: f32) -> Result<(), Stop> {
        self.float(value.into())
    }
    fn serialize_f64(self, value: f64) -> Result<(), Stop> {
        self.float(value)
    }
    fn serialize_none(self) -> Result<(), Stop> {
        Ok(())
    }
    fn serialize_unit(self) -> Result<(), Stop> {
        Ok(())
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Stop> {
        value.serialize(self)
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Stop> {
        Ok(())
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Stop> {
        self.inside().at(variant, value)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Inside<'a>, Stop> {
        Ok(self.inside())
    }
    fn serialize_tuple(self, _: usize) -> Result<Inside<'a>, Stop> {
        Ok(self.inside())
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Stop> {
        Ok(self.inside())
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Stop> {
        Ok(self.inside())
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Inside<'a>, Stop> {
        Ok(self.inside())
    }
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside<'a>, Stop> {
        Ok(self.inside())
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Inside<'a>, Stop> {
        Ok(self.inside())
    }
}

macro_rules! list {
    ($($kind:ident: $method:ident),*) => {
        $(impl ser::$kind for Inside<'_> {
            type Ok = ();
            type Error = Stop;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
                self.element(value)
            }
            fn end(self) -> Result<(), Stop> {
                Ok(())
            }
        })*
    };
}

list!(
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
);

macro_rules! fields {
    ($($kind:ident),*) => {
        $(impl ser::$kind for Inside<'_> {
            type Ok = ();
            type Error = Stop;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), Stop> {
                self.at(key, value)
            }
            fn end(self) -> Result<(), Stop> {
                Ok(())
            }
        })*
    };
}

fields!(SerializeStruct, SerializeStructVariant);

impl ser::SerializeMap for Inside<'_> {
    type Ok = ();
    type Error = Stop;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Stop> {
        // The key stays on the path until its value is done.
        let name = serde_json::to_value(key)
            .ok()
            .and_then(|key| key.as_str().map(str::to_owned));
        self.path.push(name.unwrap_or_else(|| "?".into()));
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Stop> {
        value.serialize(Walk { path: self.path })?;
        self.path.pop();
        Ok(())
    }

    fn end(self) -> Result<(), Stop> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_first_bad_number_is_named() {
        #[derive(Serialize)]
        struct Point {
            x: f64,
            more: BTreeMap<&'static str, Vec<Option<f32>>>,
        }
        let point = |x, y| Point {
            x,
            more: [("y", vec![Some(0.0), None, Some(y)])].into(),
        };
        assert!(check(&point(1.0, 2.0)).is_ok());
        assert!(
            check(&point(f64::INFINITY, 2.0))
                .expect_err("infinite")
                .model_text()
                .contains("inf at `/x`")
        );
        assert!(
            check(&point(1.0, f32::NAN))
                .expect_err("nan")
                .model_text()
                .contains("NaN at `/more/y/2`")
        );
    }
}
