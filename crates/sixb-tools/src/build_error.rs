//! What is wrong with a tool or a set of tools, found before any call.

use crate::{InvalidToolName, schema::SchemaError};

/// A tool or a registry cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolBuildError {
    /// The name does not follow the pattern.
    #[error(transparent)]
    Name(#[from] InvalidToolName),
    /// The model would not know what the tool is for.
    #[error("tool `{tool}` has no description: say in a sentence what it does and when to use it")]
    BlankDescription {
        /// The tool.
        tool: String,
    },
    /// The input schema cannot be shown to a model.
    #[error("tool `{tool}`: input schema{at}: {problem}", at = .source.place(), problem = .source)]
    Schema {
        /// The tool.
        tool: String,
        /// What is wrong, and where.
        source: SchemaError,
    },
    /// Two tools of one registry share a name.
    #[error("two tools are called `{name}`: {first} and {second}; rename one")]
    Duplicate {
        /// The shared name.
        name: String,
        /// The first tool: place in the list and title or description.
        first: String,
        /// The second tool.
        second: String,
    },
    /// A custom tool carries the name of a tool of this crate.
    #[error("`{name}` is reserved for {builtin}, but {custom} uses it; rename the custom tool")]
    Reserved {
        /// The reserved name.
        name: String,
        /// The tool that owns the name.
        builtin: String,
        /// The tool that took it: place in the list and title or description.
        custom: String,
    },
}
