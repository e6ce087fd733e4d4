//! What a custom result may be: JSON without `NaN`, and not too large.

mod finite;

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::{ToolError, ToolErrorKind, ToolOutput};

/// Largest result of a custom tool, in bytes of compact JSON: 256 KiB.
pub const MAX_RESULT_BYTES: usize = 256 << 10;

/// Serialises a result, refusing the numbers that JSON cannot say (serde_json would write `null`).
pub(crate) fn to_finite_json(value: &impl Serialize) -> Result<Value, ToolError> {
    finite::check(value)?;
    serde_json::to_value(value).map_err(|error| {
        ToolError::new(
            ToolErrorKind::Internal,
            "The tool's result is not valid JSON.",
        )
        .with_source(error)
    })
}

/// Refuses results that are too large for a conversation, and rich results without content.
pub(crate) fn check_result(output: &ToolOutput) -> Result<(), ToolError> {
    if matches!(output, ToolOutput::Rich(parts) if parts.is_empty()) {
        return Err(ToolError::new(
            ToolErrorKind::Internal,
            "The tool returned rich content without any part.",
        ));
    }
    let size = json_size(output);
    if size > MAX_RESULT_BYTES as u64 {
        return Err(ToolError::new(
            ToolErrorKind::LimitExceeded,
            format!(
                "The result is {size} bytes of JSON, more than the {MAX_RESULT_BYTES} that fit in a conversation. \
                 Ask for less, or let the tool write it to an artifact or a file and return that."
            ),
        ));
    }
    Ok(())
}

/// Bytes of compact JSON, counted without building them.
fn json_size(value: &impl Serialize) -> u64 {
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A `Value` always serialises, and counting never fails.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_of_the_limit_fits_and_one_byte_more_does_not() {
        let of = |len: usize| check_result(&ToolOutput::Json(json!("x".repeat(len))));
        assert!(of(MAX_RESULT_BYTES - 2).is_ok());
        let error = of(MAX_RESULT_BYTES - 1).expect_err("too large");
        assert_eq!(error.kind(), ToolErrorKind::LimitExceeded);
        assert!(
            error.model_text().contains("262145") && error.model_text().contains("artifact"),
            "{error}"
        );
    }

    #[test]
    fn rich_content_has_a_part() {
        assert!(check_result(&ToolOutput::Rich(vec![])).is_err());
    }
}
