//! The result of a health check.

use std::fmt;

/// The state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It works, reports nothing about itself, or is at rest because its spec says so.
    Healthy,
    /// It is becoming healthy, as far as known.
    Progressing,
    /// It does not work.
    Degraded {
        /// Whether it stays so until a user changes something.
        permanent: bool,
    },
    /// Its state cannot be determined.
    Unknown,
}

/// The health of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The state.
    pub state: State,
    /// The cause, as a sentence fragment without a full stop; empty for a healthy object with nothing to report.
    pub message: String,
    /// A hint for the user.
    pub help: Option<String>,
}

impl Health {
    fn new(state: State, message: impl Into<String>) -> Self {
        Self { state, message: message.into(), help: None }
    }

    /// A healthy object.
    pub fn healthy() -> Self {
        Self::new(State::Healthy, "")
    }

    /// A healthy object at rest, as its spec says.
    pub fn at_rest(message: impl Into<String>) -> Self {
        Self::new(State::Healthy, message)
    }

    /// An object that is becoming healthy.
    pub fn progressing(message: impl Into<String>) -> Self {
        Self::new(State::Progressing, message)
    }

    /// An unhealthy object that may recover by itself.
    pub fn degraded(message: impl Into<String>) -> Self {
        Self::new(State::Degraded { permanent: false }, message)
    }

    /// An unhealthy object that stays so until a user changes something.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(State::Degraded { permanent: true }, message)
    }

    /// An object whose state cannot be determined.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(State::Unknown, message)
    }

    /// Adds a hint for the user.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// This state with the cause that was found below the object. Only a permanent failure keeps its own message, since it is more
    /// specific.
    #[must_use]
    pub fn because(self, cause: &str) -> Self {
        if self.is_permanent() {
            return Self { message: format!("{}: {cause}", self.message), ..self };
        }
        Self { message: cause.to_owned(), help: None, ..self }
    }

    /// Whether the object is healthy.
    pub fn is_healthy(&self) -> bool {
        self.state == State::Healthy
    }

    /// Whether the object stays unhealthy until a user changes something.
    pub fn is_permanent(&self) -> bool {
        self.state == State::Degraded { permanent: true }
    }
}

impl fmt::Display for Health {
    /// The message, and the hint in parentheses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match (self.message.as_str(), self.state) {
            ("", State::Healthy) => "is healthy",
            ("", State::Progressing) => "is not ready yet",
            ("", State::Degraded { .. }) => "has failed",
            ("", State::Unknown) => "is in an unknown state",
            (message, _) => message,
        };
        f.write_str(message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}
