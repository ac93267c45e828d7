//! The checks that every provisioner must pass, and their report.

mod detection;
mod hostility;
mod positions;
mod schemas;

use chandler_engine::{CallError, Facts, InvalidOutput, LimitKind, Limits, Provisioner};
use serde::Serialize;

use crate::{Case, bundles::Files};

/// At most this number of problems of a check is kept.
const PROBLEMS: usize = 10;

/// Whether a provisioner passed a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// It passed.
    Passed,
    /// It failed.
    Failed,
    /// The check does not apply, for example since no case was given.
    Skipped,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Its stable name.
    pub name: &'static str,
    /// What every provisioner must do.
    pub requirement: &'static str,
    /// The verdict.
    pub verdict: Verdict,
    /// How many inputs were tried.
    pub tried: usize,
    /// What the provisioner did instead, for the first ten inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// How many more problems there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

/// The verdict on a provisioner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The digest of the component.
    pub component: String,
    /// What the component declares.
    pub facts: Facts,
    /// The checks.
    pub checks: Vec<Check>,
}

impl Report {
    /// How many checks passed.
    pub fn passed(&self) -> usize {
        self.count(Verdict::Passed)
    }

    /// How many checks failed.
    pub fn failed(&self) -> usize {
        self.count(Verdict::Failed)
    }

    /// How many checks do not apply.
    pub fn skipped(&self) -> usize {
        self.count(Verdict::Skipped)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }
}

impl Check {
    fn new(name: &'static str, requirement: &'static str) -> Self {
        Self { name, requirement, verdict: Verdict::Skipped, tried: 0, problems: Vec::new(), omitted: 0 }
    }

    /// Records one input, and what is wrong with what the provisioner did.
    fn record(&mut self, problem: Option<String>) {
        self.tried += 1;
        match problem {
            Some(problem) => {
                self.verdict = Verdict::Failed;
                if self.problems.len() < PROBLEMS {
                    self.problems.push(problem);
                } else {
                    self.omitted += 1;
                }
            }
            None if self.verdict == Verdict::Skipped => self.verdict = Verdict::Passed,
            None => {}
        }
    }
}

/// Runs all checks on a provisioner. `cases` are bundles that it must render; without one, only bundles that it does not recognise are
/// tried. `step` gets the name of each group of checks before it begins.
pub async fn check(provisioner: &Provisioner, cases: &[Case], limits: &Limits, step: impl Fn(&str)) -> Report {
    let mut checks = vec![declared(provisioner.facts())];
    step("rendering the cases");
    checks.extend(rendered(provisioner, cases, limits).await);
    step("detection");
    checks.extend(detection::check(provisioner, cases, limits).await);
    step("configuration schema");
    checks.extend(schemas::check(provisioner, cases, limits).await);
    step("hostile bundles");
    checks.extend(hostility::check(provisioner, cases, limits).await);
    Report { component: provisioner.digest().to_string(), facts: provisioner.facts().clone(), checks }
}

fn declared(facts: &Facts) -> Check {
    let mut check = Check::new("facts", "declares its name, its version and the formats that it detects");
    for (missing, what) in [
        (facts.name.is_empty(), "the component declares no name"),
        (facts.version.is_empty(), "the component declares no version"),
        (facts.formats.is_empty(), "the component declares no format, so that it is never detected"),
    ] {
        check.record(missing.then(|| what.to_owned()));
    }
    check
}

/// Each case is rendered, and rendered again to the same result.
async fn rendered(provisioner: &Provisioner, cases: &[Case], limits: &Limits) -> [Check; 2] {
    let mut renders = Check::new("renders", "renders the bundles that it is for");
    let mut same =
        Check::new("determinism", "returns the same for the same inputs, also after its schema was asked for");
    for case in cases {
        let first = provisioner.provision(&case.request, case.content.clone(), limits).await;
        renders.record(first.as_ref().err().map(|error| format!("{}: {error}", case.name)));
        let schemas = [
            provisioner.config_schema(case.content.clone(), limits).await,
            provisioner.config_schema(case.content.clone(), limits).await,
        ];
        let [one, two] = schemas.map(|schema| schema.map_err(|error| error.to_string()));
        same.record(
            (one != two).then(|| format!("{}: two calls of config-schema returned different schemas", case.name)),
        );
        for _ in 0..2 {
            let again = provisioner.provision(&case.request, case.content.clone(), limits).await;
            let is_same = crate::Rendering::of(None, &first) == crate::Rendering::of(None, &again);
            same.record(
                (!is_same).then(|| format!("{}: two calls of provision returned different results", case.name)),
            );
        }
    }
    [renders, same]
}

/// Says how a failure for content that may be invalid breaks the rules: `None` if the provisioner refused it, or the host does for a reason that
/// names the object.
fn careless(error: &CallError) -> Option<String> {
    match error {
        CallError::InvalidContent(_) | CallError::InvalidConfiguration(_) | CallError::UnsupportedContent(_) => None,
        CallError::LimitExceeded(exceeded) => match exceeded.kind {
            // The bundle has too many, and the message of the host says so.
            LimitKind::Objects
            | LimitKind::ObjectBytes
            | LimitKind::OutputBytes
            | LimitKind::OutputValues
            | LimitKind::Probes
            | LimitKind::ProbeBytes => None,
            _ => Some(error.to_string()),
        },
        CallError::InvalidOutput(output) => match output.as_ref() {
            InvalidOutput::Object { object, .. } | InvalidOutput::Duplicate { object, .. }
                if object.origin.is_some() =>
            {
                None
            }
            InvalidOutput::Object { .. } | InvalidOutput::Duplicate { .. } => {
                Some(format!("{error}; its origin is not set, so that users do not learn which file it is from"))
            }
            _ => Some(error.to_string()),
        },
        CallError::Failed { .. } => Some(format!(
            "{error}; the host retries this for ever: return `invalid-content` for content that is invalid"
        )),
        _ => Some(error.to_string()),
    }
}

/// The bundle of a case with further files that have nothing to do with its format.
fn with_ballast(case: &Case) -> Files {
    let mut files = Files::of(case.content.as_ref());
    for number in 0..2_000 {
        files = files.with(format!("zz-ballast/{number}.txt"), "ballast\n");
    }
    files.with(
        "zz-ballast/large.bin",
        vec![0; usize::try_from(case.content.total_bytes()).unwrap_or(0).clamp(16 << 20, 64 << 20)],
    )
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to skip_serializing_if")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use chandler_core::{Diagnostic, Severity};

    use super::*;

    #[test]
    fn a_check_without_input_is_skipped_and_one_problem_fails_it() {
        let mut check = Check::new("x", "does x");
        assert_eq!(check.verdict, Verdict::Skipped);
        check.record(None);
        assert_eq!(check.verdict, Verdict::Passed);
        for number in 0..12 {
            check.record(Some(number.to_string()));
        }
        check.record(None);
        assert_eq!((check.verdict, check.tried, check.problems.len(), check.omitted), (Verdict::Failed, 14, 10, 2));
    }

    #[test]
    fn refusals_of_the_content_are_careful_and_crashes_are_not() {
        let finding = || vec![Diagnostic::new(Severity::Error, "Bad", "it is bad")];
        assert_eq!(careless(&CallError::InvalidContent(finding())), None);
        assert_eq!(careless(&CallError::UnsupportedContent(finding())), None);
        let internal = careless(&CallError::Failed { reason: None, findings: finding() }).unwrap();
        assert!(internal.contains("return `invalid-content`"), "{internal}");
        assert!(careless(&CallError::OutOfMemory { limit: 1 << 20 }).is_some());
        let invalid = CallError::InvalidOutput(Box::new(InvalidOutput::Contract("no findings".into())));
        assert!(careless(&invalid).is_some());
    }
}
