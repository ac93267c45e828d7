//! The error of a command: a kind with an exit code, a message, causes, hints and findings.

use std::{error::Error, fmt, io, process::ExitCode};

use chandler_api::{Reason, ReportingKind};
use chandler_core::descriptors_exhausted;
use chandler_rollout::RolloutError;

pub use super::failure::FailureKind;
use super::{
    api_error,
    diagnostics::{self, Finding},
    subject::Subject,
    terminal::Terminal,
    text::{one_line, printable},
};

/// The one error type of the commands.
#[derive(Debug)]
pub struct CommandError {
    kind: FailureKind,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    findings: Vec<Finding>,
}

impl CommandError {
    fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), causes: Vec::new(), hints: Vec::new(), findings: Vec::new() }
    }

    /// An operation that failed: `message` names it.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Failed, message)
    }

    /// The object, package or revision that the command is about does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(FailureKind::NotFound, message)
    }

    /// A permission, a policy or a check does not let the change through, and nothing was written.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Refused, message)
    }

    /// A rollout that ended with this reason of a condition.
    pub fn rollout(reason: &str, message: impl Into<String>) -> Self {
        Self::new(Reason::from_name(reason).map_or(FailureKind::Failed, FailureKind::of_reason), message)
    }

    /// Arguments that are invalid, contradict each other, or name a file or an option that does not exist.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// A timeout that expired.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Timeout, message)
    }

    /// A question to the resolver that no set of bundles answers.
    pub fn unsatisfiable(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Unsatisfiable, message)
    }

    /// A rollout that waits for a decision of a user. It is not reported as an error.
    pub fn decision(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Decision, message)
    }

    /// The command received a signal.
    pub fn interrupted() -> Self {
        Self::new(FailureKind::Interrupted, "interrupted")
    }

    /// The command received a signal while it followed what the controller does with an object, which continues without it. `waiting` is
    /// what it last waited for.
    pub fn interrupted_rollout(subject: &Subject<'_>, waiting: &str) -> Self {
        let name = subject.name();
        let undo = match subject.kind() {
            ReportingKind::BundleDeployment => {
                format!("`chandler rollback {name}` after an upgrade, `chandler delete {name}` after an installation")
            }
            ReportingKind::Resolution => {
                format!(
                    "`chandler rollback {subject}` after a new decision, `kubectl delete {subject}` after its creation"
                )
            }
            ReportingKind::PlatformOperator => format!("`kubectl delete {subject}` after its creation"),
            ReportingKind::Catalog
            | ReportingKind::ProvisionerClass
            | ReportingKind::PlatformPolicy
            | ReportingKind::Receiver
            | ReportingKind::Alert => String::new(),
        };
        let message = if undo.is_empty() {
            format!("interrupted; the controller continues to work on {subject}")
        } else {
            format!("interrupted; the rollout of {subject} continues in the cluster")
        };
        let error = Self::interrupted_while(message, waiting);
        let error = error.hint(format!("`chandler status {subject} --watch` follows it"));
        if undo.is_empty() { error } else { error.hint(format!("to undo it: {undo}")) }
    }

    /// The command received a signal before the controller had handled a request to reconcile an object.
    pub fn interrupted_request(subject: &Subject<'_>) -> Self {
        let message = format!("interrupted; the controller still handles the request to reconcile {subject}");
        let error = Self::interrupted_while(message, "the controller to handle the request")
            .hint(format!("`chandler status {subject} --watch` follows it"));
        match subject.kind() {
            ReportingKind::BundleDeployment | ReportingKind::Resolution => {
                error.hint(format!("to undo what it changes: `chandler rollback {subject}`"))
            }
            _ => error,
        }
    }

    /// The command received a signal while it followed a deletion, which continues without it.
    pub fn interrupted_deletion(subject: &Subject<'_>, waiting: &str) -> Self {
        Self::interrupted_while(format!("interrupted; the deletion of {subject} continues in the cluster"), waiting)
            .hint(format!("`chandler status {subject}` shows its progress; a deletion cannot be undone"))
    }

    /// The command received a signal while it uninstalled the controller. `command` continues.
    pub fn interrupted_uninstallation(command: &str, waiting: &str) -> Self {
        let message = "interrupted; the deletions that were requested continue in the cluster, and new objects of Chandler are refused";
        Self::interrupted_while(message.to_owned(), waiting).hint(format!("`{command}` continues")).with_lock_hint()
    }

    /// Adds how to keep Chandler after an uninstallation that has not ended: new objects are still refused.
    #[must_use]
    pub fn with_lock_hint(self) -> Self {
        self.hint(
            "to keep Chandler, and accept new objects again: `kubectl delete validatingadmissionpolicybinding,validatingadmissionpolicy \
             chandler-uninstall`",
        )
    }

    fn interrupted_while(message: String, waiting: &str) -> Self {
        let error = Self::new(FailureKind::Interrupted, message);
        if waiting.is_empty() { error } else { error.cause(format!("it was waiting for: {waiting}")) }
    }

    /// Standard output could not be written.
    pub fn output(error: &io::Error) -> Self {
        let closed = error.kind() == io::ErrorKind::BrokenPipe;
        let kind = if closed { FailureKind::Closed } else { FailureKind::Failed };
        Self::new(kind, "failed to write the output").because(error)
    }

    /// Adds the cause, and the causes of the cause. The answer of an API server also says whether the operation was refused, or its object
    /// is missing.
    #[must_use]
    pub fn because(mut self, error: &(dyn Error + 'static)) -> Self {
        if let Some(exhausted) = descriptors_exhausted(error) {
            self.add_cause(&exhausted.to_string());
            return self;
        }
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(explained) = api_error::explain(error) {
                if let Some(status) = api_error::status(error).filter(|_| self.kind == FailureKind::Failed) {
                    self.kind = FailureKind::of_status(status);
                }
                self.add_cause(&explained.cause);
                self.hints.extend(explained.hint.filter(|hint| !self.hints.contains(hint)));
                return self;
            }
            self.add_cause(api_error::without_code(&error.to_string()));
            // It has the words of the API server, and not its answer.
            if error.downcast_ref::<RolloutError>().is_some_and(RolloutError::is_forbidden) {
                self.forbidden();
            }
            next = error.source();
        }
        self
    }

    /// A permission is missing.
    fn forbidden(&mut self) {
        if self.kind == FailureKind::Failed {
            self.kind = FailureKind::Refused;
        }
        self.hints.extend(Some(api_error::ASK.to_owned()).filter(|hint| !self.hints.contains(hint)));
    }

    /// A `transparent` error, or one that repeats its source in its own message, adds nothing.
    fn add_cause(&mut self, text: &str) {
        if !text.is_empty() && !self.causes.last().is_some_and(|last| last.contains(text)) {
            self.causes.push(text.to_owned());
        }
    }

    /// Adds a cause in words.
    #[must_use]
    pub fn cause(mut self, text: impl Into<String>) -> Self {
        self.causes.push(text.into());
        self
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds findings.
    #[must_use]
    pub fn with_findings(mut self, findings: impl IntoIterator<Item = Finding>) -> Self {
        self.findings.extend(findings);
        self
    }

    /// Prints the error on standard error, and returns its exit code.
    pub fn report(&self, terminal: &Terminal) -> ExitCode {
        if self.kind != FailureKind::Closed {
            terminal.write(diagnostics::render(&self.findings, terminal));
            terminal.line(self.to_string());
        }
        ExitCode::from(self.kind.exit_code())
    }

    /// The kind.
    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    /// What failed, without causes and hints.
    pub fn summary(&self) -> &str {
        &self.message
    }

    /// What failed, and why, on one line.
    pub fn explained(&self) -> String {
        let parts: Vec<&str> =
            std::iter::once(self.message.as_str()).chain(self.causes.iter().map(String::as_str)).collect();
        one_line(&parts.join(": "))
    }

    /// The findings.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

impl fmt::Display for CommandError {
    /// `error: …`, the causes and the hints, each on its own line. [`CommandError::report`] prints the findings.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let label = if self.kind == FailureKind::Decision { "" } else { "error: " };
        write!(f, "{label}{}", indented(&self.message))?;
        for cause in &self.causes {
            write!(f, "\n  cause: {}", indented(cause))?;
        }
        for hint in &self.hints {
            write!(f, "\n  hint: {}", indented(hint))?;
        }
        Ok(())
    }
}

/// Indents the lines after the first.
fn indented(text: &str) -> String {
    printable(text.trim_end()).replace('\n', "\n    ")
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
    fn a_cause_that_the_error_already_names_is_not_repeated() {
        let error = Read { path: "a.yaml", source: io::Error::other("disk gone") };
        let error = CommandError::failed("failed to render ./bundle").because(&error).hint("try again\nor later");
        insta::assert_snapshot!(error, @r"
        error: failed to render ./bundle
          cause: failed to read a.yaml: disk gone
          hint: try again
            or later
        ");
    }

    #[test]
    fn no_text_forges_an_error_or_a_hint() {
        let forged = "a\nerror: forged\n  hint: `forged`\u{202e}";
        let error = CommandError::failed(forged).cause(forged).hint(forged);
        insta::assert_snapshot!(error, @r"
        error: a
            error: forged
              hint: `forged`\u{202E}
          cause: a
            error: forged
              hint: `forged`\u{202E}
          hint: a
            error: forged
              hint: `forged`\u{202E}
        ");
    }

    #[test]
    fn an_interruption_says_that_the_rollout_continues_and_how_to_undo_it() {
        let long = "Deployment.apps harbour-system/pilot: 0 of 1 is available: ImagePullBackOff: registry.example.com/harbour/pilot: not found";
        let error = CommandError::interrupted_rollout(&Subject::deployment("harbour"), long);
        assert_eq!(error.kind().exit_code(), 130);
        insta::assert_snapshot!(error, @r"
        error: interrupted; the rollout of harbour continues in the cluster
          cause: it was waiting for: Deployment.apps harbour-system/pilot: 0 of 1 is available: ImagePullBackOff: registry.example.com/harbour/pilot: not found
          hint: `chandler status harbour --watch` follows it
          hint: to undo it: `chandler rollback harbour` after an upgrade, `chandler delete harbour` after an installation
        ");
        let of = |kind, name| CommandError::interrupted_rollout(&Subject::new(kind, name), "").to_string();
        insta::assert_snapshot!(of(ReportingKind::Resolution, "shop"), @r"
        error: interrupted; the rollout of resolution/shop continues in the cluster
          hint: `chandler status resolution/shop --watch` follows it
          hint: to undo it: `chandler rollback resolution/shop` after a new decision, `kubectl delete resolution/shop` after its creation
        ");
        insta::assert_snapshot!(of(ReportingKind::Catalog, "ours"), @r"
        error: interrupted; the controller continues to work on catalog/ours
          hint: `chandler status catalog/ours --watch` follows it
        ");
        insta::assert_snapshot!(CommandError::interrupted_deletion(&Subject::deployment("shop"), "2 objects"), @r"
        error: interrupted; the deletion of shop continues in the cluster
          cause: it was waiting for: 2 objects
          hint: `chandler status shop` shows its progress; a deletion cannot be undone
        ");
        let of = |kind| CommandError::interrupted_request(&Subject::new(kind, "shop")).to_string();
        insta::assert_snapshot!(of(ReportingKind::BundleDeployment) + "\n" + &of(ReportingKind::ProvisionerClass), @r"
        error: interrupted; the controller still handles the request to reconcile shop
          cause: it was waiting for: the controller to handle the request
          hint: `chandler status shop --watch` follows it
          hint: to undo what it changes: `chandler rollback shop`
        error: interrupted; the controller still handles the request to reconcile provisionerclass/shop
          cause: it was waiting for: the controller to handle the request
          hint: `chandler status provisionerclass/shop --watch` follows it
        ");
    }

    #[test]
    fn a_wait_for_a_decision_is_not_an_error() {
        let waits = CommandError::decision("harbour waits").hint("decide");
        assert_eq!((waits.to_string().as_str(), waits.kind().exit_code()), ("harbour waits\n  hint: decide", 6));
    }

    #[test]
    fn a_closed_pipe_exits_with_0() {
        assert_eq!(CommandError::output(&io::ErrorKind::BrokenPipe.into()).kind().exit_code(), 0);
        assert_eq!(CommandError::output(&io::Error::other("disk full")).kind().exit_code(), 1);
    }
}
