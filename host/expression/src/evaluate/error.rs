//! Why an expression has no value.

use std::fmt::{self, Write as _};

use cel::ExecutionError;

/// The longest message of the library that is kept, in characters: its messages show whole values.
const LONGEST: usize = 512;

/// An expression has no value. The messages are cel-go's, which kube-apiserver shows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// It would cost more than its budget.
    #[error("operation cancelled: actual cost limit exceeded")]
    Exhausted,
    /// Its values would take more memory than they may.
    #[error("operation cancelled: values take more than {limit} bytes of memory")]
    OutOfMemory {
        /// The limit, in bytes.
        limit: usize,
    },
    /// A map has no such key, or the value is not a map.
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
    /// A function does not accept the values that it is given.
    #[error("{message}")]
    Function {
        /// The name of the function.
        name: String,
        /// What the function says; it may show values.
        message: String,
    },
    /// A number is divided by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The remainder of a division by zero.
    #[error("modulus by zero")]
    RemainderByZero,
    /// A number is too large.
    #[error("integer overflow")]
    Overflow,
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl EvaluationError {
    /// Any other error.
    pub fn other(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }

    /// Whether a budget is exceeded, so that nothing is evaluated any more.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Exhausted | Self::OutOfMemory { .. })
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
            ExecutionError::DivisionByZero(_) => Self::DivisionByZero,
            ExecutionError::RemainderByZero(_) => Self::RemainderByZero,
            ExecutionError::Overflow(..) => Self::Overflow,
            ExecutionError::FunctionError { function, message } => {
                Self::Function { name: shortened(&function), message: shortened(&message) }
            }
            other => Self::Other(shortened(&other)),
        }
    }
}

/// The beginning of a text, which is not written any further: it may show values that share their parts.
fn shortened(text: &dyn fmt::Display) -> String {
    struct Beginning(String, usize);
    impl fmt::Write for Beginning {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for character in text.chars() {
                self.1 = self.1.checked_sub(1).ok_or(fmt::Error)?;
                self.0.push(character);
            }
            Ok(())
        }
    }
    let mut beginning = Beginning(String::new(), LONGEST);
    let _ = write!(beginning, "{text}");
    beginning.0
}
