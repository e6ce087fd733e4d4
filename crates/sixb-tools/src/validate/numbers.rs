//! What JSON Schema leaves open about numbers: there `1.0` is an integer, and a format like `int32` binds nobody. A Rust
//! type takes neither (and makes `1e400` infinite), and nothing is coerced, so it is said here, where path and expectation
//! are known.

use jsonschema::{Draft, Keyword, ValidationError, Validator};
use serde_json::{Map, Number, Value};

use super::quote;
use crate::schema::child_schemas_mut;

/// Marks where Rust numbers are meant, in a copy of the schema that no model sees.
const KEYWORD: &str = "sixb:number";

/// Compiles a schema whose numbers are those of Rust.
pub(super) fn compile(schema: &Value) -> Result<Validator, String> {
    let mut schema = schema.clone();
    mark(&mut schema);
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_keyword(KEYWORD, |schema, kind, _| {
            Ok(Box::new(if kind == "integer" {
                Takes::integer(schema)
            } else {
                Takes::float(schema)
            }))
        })
        .build(&schema)
        .map_err(|error| error.to_string())
}

fn mark(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    let takes = |name: &str| match object.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        kind => kind.is_some_and(|kind| kind == name),
    };
    // Where both will do, an integer need not be written as one.
    match ["number", "integer"].into_iter().find(|kind| takes(kind)) {
        Some(kind) => object.insert(KEYWORD.into(), kind.into()),
        None => object.shift_remove(KEYWORD),
    };
    child_schemas_mut(object).for_each(|(_, child)| mark(child));
}

/// The numbers that a schema takes.
#[derive(Debug, Clone, Copy)]
enum Takes {
    Integer {
        range: Option<(i128, u128)>,
        /// The schema's own bounds are as tight: it reports what is beyond them.
        own_min: bool,
        own_max: bool,
    },
    /// Without a format of its own a number is kept digit by digit, and any will do.
    Float { bits: Option<u32> },
}

impl Takes {
    fn integer(schema: &Map<String, Value>) -> Self {
        let range = format(schema).and_then(range);
        let own = |keyword| schema.get(keyword).and_then(Value::as_number);
        let own_min = own("minimum").and_then(Number::as_i128);
        let own_max = own("maximum").and_then(Number::as_u128);
        Self::Integer {
            range,
            own_min: own_min.is_some_and(|own| range.is_some_and(|(min, _)| own >= min)),
            own_max: own_max.is_some_and(|own| range.is_some_and(|(_, max)| own <= max)),
        }
    }

    fn float(schema: &Map<String, Value>) -> Self {
        let bits = match format(schema) {
            Some("float") => Some(32),
            Some("double") => Some(64),
            _ => None,
        };
        Self::Float { bits }
    }

    fn problem(&self, number: &Number) -> Option<String> {
        let text = number.as_str();
        match *self {
            Self::Float { bits } => {
                let bits = bits?;
                let fine = match bits {
                    32 => text.parse().is_ok_and(f32::is_finite),
                    _ => text.parse().is_ok_and(f64::is_finite),
                };
                (!fine).then(|| {
                    format!("is out of range: expected a number that a float of {bits} bits holds")
                })
            }
            Self::Integer { .. } if text.contains(['.', 'e', 'E']) => {
                // A fraction, or what no float holds, is no integer for JSON Schema either.
                let whole = number.as_f64().is_some_and(|float| float.fract() == 0.0);
                whole.then(|| {
                    "is not written as an integer: expected digits without fraction or exponent"
                        .to_owned()
                })
            }
            Self::Integer {
                range,
                own_min,
                own_max,
            } => {
                let (min, max) = range?;
                let fine = match text.strip_prefix('-') {
                    // No unsigned type reads it.
                    Some("0") => min < 0,
                    Some(_) => own_min || text.parse().is_ok_and(|value: i128| value >= min),
                    None => own_max || text.parse().is_ok_and(|value: u128| value <= max),
                };
                (!fine).then(|| format!("is out of range: expected an integer from {min} to {max}"))
            }
        }
    }
}

fn format(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("format").and_then(Value::as_str)
}

impl<'i> Keyword<'i> for Takes {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        match instance.as_number().and_then(|number| self.problem(number)) {
            Some(problem) => Err(ValidationError::custom(format!(
                "{} {problem}",
                quote(instance)
            ))),
            None => Ok(()),
        }
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        instance
            .as_number()
            .is_none_or(|number| self.problem(number).is_none())
    }
}

/// What a format of schemars holds.
fn range(format: &str) -> Option<(i128, u128)> {
    let (signed, bits) = match format.strip_prefix('u') {
        Some(rest) => (false, rest.strip_prefix("int")?),
        None => (true, format.strip_prefix("int")?),
    };
    let bits: u32 = match bits {
        // Those of a pointer.
        "" => usize::BITS,
        "8" => 8,
        "16" => 16,
        "32" => 32,
        "64" => 64,
        "128" => 128,
        _ => return None,
    };
    Some(if signed {
        let min = i128::MIN >> (128 - bits);
        (min, min.unsigned_abs() - 1)
    } else {
        (0, u128::MAX >> (128 - bits))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_format_has_the_range_of_its_type() {
        for (format, expect) in [
            ("int8", Some((i8::MIN.into(), i8::MAX as u128))),
            ("uint8", Some((0, u8::MAX.into()))),
            ("int16", Some((i16::MIN.into(), i16::MAX as u128))),
            ("int32", Some((i32::MIN.into(), i32::MAX as u128))),
            ("uint32", Some((0, u32::MAX.into()))),
            ("int64", Some((i64::MIN.into(), i64::MAX as u128))),
            ("uint64", Some((0, u64::MAX.into()))),
            ("int", Some((isize::MIN as i128, isize::MAX as u128))),
            ("uint", Some((0, usize::MAX as u128))),
            ("int128", Some((i128::MIN, i128::MAX as u128))),
            ("uint128", Some((0, u128::MAX))),
            ("int7", None),
            ("date", None),
            ("uuid", None),
        ] {
            assert_eq!(range(format), expect, "{format}");
        }
    }

    #[test]
    fn both_ends_of_a_range_fit_and_no_more() {
        let check = |schema: Value, number: &str, fits: bool| {
            let validator = compile(&schema).expect("schema");
            let number: Value = serde_json::from_str(number).expect("number");
            assert_eq!(validator.is_valid(&number), fits, "{schema} {number}");
            let count = validator.iter_errors(&number).count();
            assert_eq!(count, usize::from(!fits), "{schema} {number}");
        };
        let of = |format: &str| json!({"type": ["integer", "null"], "format": format});
        for (format, min, max) in [
            ("int8", "-128", "127"),
            ("int64", "-9223372036854775808", "9223372036854775807"),
            ("uint64", "0", "18446744073709551615"),
            ("uint128", "0", "340282366920938463463374607431768211455"),
        ] {
            check(of(format), min, true);
            check(of(format), max, true);
        }
        for (format, number) in [
            ("int8", "-129"),
            ("int8", "128"),
            ("int64", "-9223372036854775809"),
            ("int64", "9223372036854775808"),
            ("uint64", "-1"),
            ("uint64", "18446744073709551616"),
            ("uint128", "340282366920938463463374607431768211456"),
            ("uint8", "-0"),
            ("uint8", "1.0"),
            ("uint8", "1.5"),
            ("uint8", "1e400"),
            ("other", "1E2"),
        ] {
            check(of(format), number, false);
        }
        check(of("other"), "99999999999999999999", true);
        check(of("int8"), "null", true);
        // A number may be written as it likes, if its type can hold it.
        let float = |format: &str| json!({"type": "number", "format": format});
        check(float("double"), "1e300", true);
        check(float("double"), "1e400", false);
        check(float("float"), "1e30", true);
        check(float("float"), "1e300", false);
        check(json!({"type": "number"}), "1.0", true);
        check(
            json!({"type": ["integer", "number"], "format": "int8"}),
            "500.0",
            true,
        );
        // The schema's own bounds speak for themselves, once.
        let own = json!({"type": "integer", "format": "uint8", "minimum": 0, "maximum": 255});
        check(own.clone(), "256", false);
        check(own, "-1", false);
        let wide = json!({"type": "integer", "format": "int8", "minimum": -500, "maximum": 500});
        check(wide.clone(), "128", false);
        check(wide, "-129", false);
    }
}
