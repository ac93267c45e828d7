//! The results of the tests of a bundle.

use std::fmt::Write as _;

use serde::Serialize;

/// The results of a run.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestReport {
    /// The BundleDeployment.
    pub name: String,
    /// The namespace in which the tests run.
    pub namespace: String,
    /// The tests, in the order in which they ran.
    pub tests: Vec<TestResult>,
}

/// The result of a test.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// The kind of its object.
    pub kind: String,
    /// The name of its object.
    pub object: String,
    /// How it ended.
    pub outcome: TestOutcome,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// The ends of the logs of its containers.
    pub logs: Vec<ContainerLog>,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TestOutcome {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It had not ended when the time was over.
    TimedOut,
    /// It did not run: a dry run.
    NotRun,
}

impl TestOutcome {
    const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::NotRun => "not run",
        }
    }
}

/// The end of the log of a container.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerLog {
    /// The Pod.
    pub pod: String,
    /// The container.
    pub container: String,
    /// The text, or why it could not be read.
    pub text: String,
}

impl TestResult {
    /// The result for people, with a line for each line of the logs.
    pub fn text(&self) -> String {
        let seconds = self.milliseconds / 1000;
        let tenths = self.milliseconds % 1000 / 100;
        let mut text = format!("{} {} {} after {seconds}.{tenths} s", self.kind, self.object, self.outcome.word());
        if let Some(message) = &self.message {
            // Writing to a String does not fail.
            let _ = write!(text, ": {message}");
        }
        text.push('\n');
        for log in &self.logs {
            let of =
                if log.pod == self.object { log.container.clone() } else { format!("{}/{}", log.pod, log.container) };
            for line in log.text.lines() {
                let _ = writeln!(text, "  {of} | {line}");
            }
        }
        text
    }
}

impl TestReport {
    /// How many tests ended in this way.
    pub fn count(&self, outcome: TestOutcome) -> usize {
        self.tests.iter().filter(|test| test.outcome == outcome).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_has_the_logs_of_its_containers() {
        let log = |pod: &str, text: &str| ContainerLog { pod: pod.into(), container: "curl".into(), text: text.into() };
        let mut result = TestResult {
            kind: "Job".into(),
            object: "web-test".into(),
            outcome: TestOutcome::Failed,
            message: Some("BackoffLimitExceeded".into()),
            milliseconds: 61_250,
            logs: vec![log("web-test-x2k4", "connecting\nno answer\n")],
        };
        insta::assert_snapshot!(result.text(), @r"
        Job web-test failed after 61.2 s: BackoffLimitExceeded
          web-test-x2k4/curl | connecting
          web-test-x2k4/curl | no answer
        ");
        result = TestResult { kind: "Pod".into(), outcome: TestOutcome::Succeeded, message: None, ..result };
        result.logs = vec![log("web-test", "done")];
        insta::assert_snapshot!(result.text(), @r"
        Pod web-test succeeded after 61.2 s
          curl | done
        ");
    }
}
