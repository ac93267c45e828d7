//! Why an expression has no value.

use cel::ExecutionError;

/// The longest message of the library that is kept, in characters: its messages show whole values.
const LONGEST: usize = 512;

/// An expression has no value. The texts are those of cel-go, which kube-apiserver shows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// It would cost more than its budget.
    #[error("operation cancelled: actual cost limit exceeded")]
    Exhausted,
    /// A map has no such key, or a value that is no map was asked for one.
    #[error("no such key: {0}")]
    NoSuchKey(String),
    /// A list is shorter.
    #[error("index out of bounds: {0}")]
    OutOfBounds(String),
    /// An operator or a function does not take values of these types.
    #[error("no such overload")]
    NoSuchOverload,
    /// There is no such variable.
    #[error("no such attribute(s): {0}")]
    NoSuchAttribute(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl EvaluationError {
    /// Any other error.
    pub fn other(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }
}

impl From<ExecutionError> for EvaluationError {
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::NoSuchKey(key) => Self::NoSuchKey(key.to_string()),
            ExecutionError::NoSuchOverload
            | ExecutionError::UnsupportedBinaryOperator(..)
            | ExecutionError::UnexpectedType { .. }
            | ExecutionError::UnsupportedTargetType { .. }
            | ExecutionError::InvalidArgumentCount { .. }
            | ExecutionError::MissingArgumentOrTarget => Self::NoSuchOverload,
            ExecutionError::UndeclaredReference(name) => Self::NoSuchAttribute(name.to_string()),
            ExecutionError::DivisionByZero(_) => Self::other("division by zero"),
            ExecutionError::RemainderByZero(_) => Self::other("modulus by zero"),
            ExecutionError::Overflow(..) => Self::other("integer overflow"),
            ExecutionError::FunctionError { message, .. } => Self::Other(shortened(&message)),
            other => Self::Other(shortened(&other.to_string())),
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}
