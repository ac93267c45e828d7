//! How a command fails: a kind that decides the exit code, a message, hints, and findings with positions.

use std::{error::Error, fmt, io, process::ExitCode};

use crate::{
    diagnostics::{self, Finding},
    terminal::Terminal,
};

/// Why a command failed, as far as a script must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The bundle, the configuration, the registry or the cluster refused.
    Failed,
    /// The command was called in a way that cannot work.
    Usage,
    /// What was waited for did not happen in time.
    Timeout,
    /// A signal ended the command.
    Interrupted,
    /// Whoever read the output went away; nothing is wrong.
    Closed,
}

impl Kind {
    /// The exit code of a command that fails in this way.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Timeout => 3,
            Self::Interrupted => 130,
            Self::Closed => 0,
        }
    }
}

/// The one error type of the commands.
#[derive(Debug)]
pub struct CommandError {
    kind: Kind,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    findings: Vec<Finding>,
}

impl CommandError {
    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), causes: Vec::new(), hints: Vec::new(), findings: Vec::new() }
    }

    /// Something refused; `message` says what could not be done.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Kind::Failed, message)
    }

    /// The arguments do not make sense together, or name what is not there.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// What was waited for did not happen in time.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(Kind::Timeout, message)
    }

    /// A signal ended the command.
    pub fn interrupted() -> Self {
        Self::new(Kind::Interrupted, "interrupted")
    }

    /// Output could not be written.
    pub fn output(error: &io::Error) -> Self {
        let kind = if error.kind() == io::ErrorKind::BrokenPipe { Kind::Closed } else { Kind::Failed };
        Self::new(kind, "failed to write the output").because(error)
    }

    /// Adds the error that led to this one, and what led to that.
    #[must_use]
    pub fn because(mut self, error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            // Of the whole status, what the API server says to people.
            let said = match error.downcast_ref::<kube::Error>() {
                Some(kube::Error::Api(status)) => Some(&status.message).filter(|message| !message.is_empty()),
                _ => None,
            };
            let text = said.cloned().unwrap_or_else(|| error.to_string());
            // An error that is `transparent`, or that repeats its source in its own message, says nothing new.
            if !text.is_empty() && !self.causes.last().is_some_and(|last| last.contains(&text)) {
                self.causes.push(text);
            }
            next = if said.is_some() { None } else { error.source() };
        }
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds findings with positions.
    #[must_use]
    pub fn with_findings(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        self.findings.extend(findings);
        self
    }

    /// Tells the user on standard error, and gives the exit code.
    pub fn report(&self, terminal: &Terminal) -> ExitCode {
        if self.kind != Kind::Closed {
            terminal.write(diagnostics::render(&self.findings, terminal));
            terminal.line(self.to_string());
        }
        ExitCode::from(self.kind.exit_code())
    }

    /// Why it failed.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The findings with positions.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl fmt::Display for CommandError {
    /// `error: …`, its causes and hints, one line each; findings are printed apart.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", crate::text::printable(&self.message))?;
        for cause in &self.causes {
            write!(f, "\n  cause: {}", indented(cause))?;
        }
        for hint in &self.hints {
            write!(f, "\n  hint: {}", indented(hint))?;
        }
        Ok(())
    }
}

/// Lines after the first stand under it.
fn indented(text: &str) -> String {
    crate::text::printable(text.trim_end()).replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("failed to read {path}: {source}")]
    struct Read {
        path: &'static str,
        source: io::Error,
    }

    #[test]
    fn a_cause_that_its_error_already_names_is_not_repeated() {
        let error = Read { path: "a.yaml", source: io::Error::other("disk gone") };
        let error = CommandError::failed("failed to render ./bundle").because(&error).hint("try again\nor not");
        insta::assert_snapshot!(error, @r"
        error: failed to render ./bundle
          cause: failed to read a.yaml: disk gone
          hint: try again
            or not
        ");
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        assert_eq!(CommandError::output(&io::ErrorKind::BrokenPipe.into()).kind().exit_code(), 0);
        assert_eq!(CommandError::output(&io::Error::other("disk full")).kind().exit_code(), 1);
    }
}
