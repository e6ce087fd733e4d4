//! Input schemas: made flat once, rendered for each provider in one place.

mod flatten;
mod gemini;
mod strict;
mod walk;
mod wire;

pub use flatten::{SchemaError, flatten};
pub use strict::NotStrict;
pub(crate) use walk::child_schemas_mut;
pub use wire::{anthropic, gemini, mcp, openai, openai_strict, without_strict_nulls};

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

/// The flat schema of a Rust type.
///
/// # Errors
/// When the type is no struct with named fields, or is recursive.
pub fn of<T: JsonSchema>() -> Result<Value, SchemaError> {
    let settings = SchemaSettings::draft2020_12()
        .for_deserialize()
        .with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
    flatten(
        settings
            .into_generator()
            .into_root_schema_for::<T>()
            .to_value(),
    )
}

#[cfg(test)]
mod tests;
