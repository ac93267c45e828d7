//! What is said of an object.

use std::fmt;

/// In what state an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It does what it is for, says nothing about itself, or is at rest because its spec says so.
    Healthy,
    /// It is on its way there, as far as anybody can tell.
    Progressing,
    /// It does not do what it is for.
    Degraded {
        /// Whether it stays so until somebody changes something.
        permanent: bool,
    },
    /// It cannot be told.
    Unknown,
}

/// The verdict on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// In what state it is.
    pub state: State,
    /// What is the case, as a sentence fragment without a full stop; empty where it is healthy and there is nothing to say.
    pub message: String,
    /// What would help.
    pub help: Option<String>,
}

impl Health {
    fn new(state: State, message: impl Into<String>) -> Self {
        Self { state, message: message.into(), help: None }
    }

    /// It works.
    pub fn healthy() -> Self {
        Self::new(State::Healthy, "")
    }

    /// It is at rest, as its spec says.
    pub fn at_rest(message: impl Into<String>) -> Self {
        Self::new(State::Healthy, message)
    }

    /// It is on its way.
    pub fn progressing(message: impl Into<String>) -> Self {
        Self::new(State::Progressing, message)
    }

    /// It does not work; it may mend itself.
    pub fn degraded(message: impl Into<String>) -> Self {
        Self::new(State::Degraded { permanent: false }, message)
    }

    /// It does not work and stays so until somebody changes something.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(State::Degraded { permanent: true }, message)
    }

    /// Nobody can tell.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::new(State::Unknown, message)
    }

    /// The same with what would help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Whether it works.
    pub fn is_healthy(&self) -> bool {
        self.state == State::Healthy
    }

    /// Whether it stays broken until somebody changes something.
    pub fn is_permanent(&self) -> bool {
        self.state == State::Degraded { permanent: true }
    }
}

impl fmt::Display for Health {
    /// What is the case, and what would help in parentheses.
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
