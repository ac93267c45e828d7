//! Errors of parsing and execution.

use crate::{FunctionError, Limit, literal::quote};

/// Why templates could not be parsed or executed. Displayed as Go displays it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A template cannot be parsed: `template: NAME:LINE: MESSAGE`.
    #[error("template: {name}:{line}: {message}")]
    Parse {
        /// The name of the template.
        name: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A template could not be executed.
    #[error("template: {name}:{line}:{column}: executing {} at <{node}>: {cause}", quote(template.as_bytes()))]
    Execution {
        /// The name of the text in which the failing node is.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The column in bytes, from 0.
        column: usize,
        /// The template that was executed.
        template: String,
        /// The failing node, shortened.
        node: String,
        /// Why it failed.
        cause: Cause,
    },
    /// An error without a position in a template: no template of a name.
    #[error("{0}")]
    Plain(String),
    /// A limit is exceeded.
    #[error(transparent)]
    Limit(#[from] Limit),
}

/// Why a node failed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// A rule of the language is broken.
    #[error("{0}")]
    Message(String),
    /// A function returned an error.
    #[error("error calling {function}: {error}")]
    Function {
        /// The name of the function.
        function: String,
        /// Its error.
        error: FunctionError,
    },
}
