//! The results of `chandler plugin test`.

use chandler_engine::Provisioner;
use serde::Serialize;

use super::{
    line_difference,
    terminal::{Look, Tone},
    text::one_line,
};

/// The results of all cases.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestReport {
    /// The digest of the component.
    pub component: String,
    /// The cases, by name.
    pub cases: Vec<CaseReport>,
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
}

/// The result of a case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseReport {
    name: String,
    result: CaseResult,
    /// Lines with `-` are expected, lines with `+` were returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    difference: Vec<String>,
}

/// What a case led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CaseResult {
    /// The provisioner returned what was expected.
    Passed,
    /// It returned something else.
    Different,
    /// The case does not say what to expect.
    NoExpectation,
    /// Two calls returned different results.
    NotDeterministic,
    /// What it returned is now expected.
    Written,
}

impl CaseResult {
    fn is_failure(self) -> bool {
        match self {
            Self::Passed | Self::Written => false,
            Self::Different | Self::NoExpectation | Self::NotDeterministic => true,
        }
    }
}

impl CaseReport {
    /// The result of a case, with the texts that differ.
    pub fn new(name: String, result: CaseResult, before: &str, after: &str) -> Self {
        Self { name, result, difference: line_difference::lines(before, after) }
    }

    fn text(&self, look: Look) -> String {
        let (sign, tone) = if self.result.is_failure() { ("FAILED", Tone::Bad) } else { ("ok", Tone::Good) };
        let about = match self.result {
            CaseResult::Passed => "",
            CaseResult::Different => ": the provisioner returned (+) something else than expected (-)",
            CaseResult::NoExpectation => ": expected.yaml does not exist; the provisioner returned",
            CaseResult::NotDeterministic => ": two calls with the same inputs returned different results",
            CaseResult::Written => ": expected.yaml was written",
        };
        let head = format!("{}  {}{about}\n", look.paint(tone, &format!("{sign:<6}")), one_line(&self.name));
        head + &line_difference::text(&self.difference, "          ", look)
    }
}

impl TestReport {
    /// The results of these cases.
    pub fn new(provisioner: &Provisioner, cases: Vec<CaseReport>) -> Self {
        let failed = cases.iter().filter(|case| case.result.is_failure()).count();
        Self { component: provisioner.digest().to_string(), passed: cases.len() - failed, failed, cases }
    }

    /// A line for each case, and the lines that differ.
    pub fn text(&self, look: Look) -> String {
        self.cases.iter().map(|case| case.text(look)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_fails_shows_what_differs() {
        let of = |result, before: &str, after: &str| {
            CaseReport::new("labels".into(), result, before, after).text(Look::Plain)
        };
        let texts = [
            of(CaseResult::Passed, "", ""),
            of(CaseResult::Different, "---\na: 1\n", "---\na: 2\n"),
            of(CaseResult::NoExpectation, "", "---\na: 1\n"),
            of(CaseResult::NotDeterministic, "---\na: 1\n", "---\na: 2\n"),
            of(CaseResult::Written, "---\na: 1\n", "---\na: 2\n"),
        ];
        insta::assert_snapshot!(texts.concat(), @"
        ok      labels
        FAILED  labels: the provisioner returned (+) something else than expected (-)
                   ---
                  -a: 1
                  +a: 2
        FAILED  labels: expected.yaml does not exist; the provisioner returned
                  +---
                  +a: 1
        FAILED  labels: two calls with the same inputs returned different results
                   ---
                  -a: 1
                  +a: 2
        ok      labels: expected.yaml was written
                   ---
                  -a: 1
                  +a: 2
        ");
    }
}
