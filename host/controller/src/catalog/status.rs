//! Derives the status of a Catalog. Pure: the clock comes in as an argument.

use chandler_api::{
    Catalog, CatalogContents, CatalogStatus, ConditionType as Type, NewCondition, Reason,
    conditions::{remove_condition, whole_seconds},
    names::REQUESTED_AT_ANNOTATION,
    set_condition,
};
use chandler_core::text;
use chandler_decisions::problem::Problem;
use chandler_source::describe;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use super::states::InUse;

/// The step at which content was not put into use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The source is resolved.
    Resolve,
    /// The content is fetched and unpacked.
    Unpack,
    /// The index is built, and the catalog is checked.
    Check,
}

/// Why content was not put into use.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failed {
    /// The step that failed.
    pub(super) step: Step,
    /// Why.
    pub(super) problem: Problem,
}

/// What a reconcile found.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// The source was not resolved, since the spec suspends that.
    Suspended,
    /// The content that the source names now is in use, or why it is not.
    Polled(Result<(), Failed>),
}

/// The request for a reconcile that the controller has not handled yet.
pub(super) fn request(catalog: &Catalog) -> Option<&str> {
    let asked = catalog.annotations().get(REQUESTED_AT_ANNOTATION)?.as_str();
    let handled = catalog.status.as_ref().and_then(|status| status.last_handled_reconcile_at.as_deref());
    (handled != Some(asked)).then_some(asked)
}

/// The status after a reconcile.
pub(super) fn derive(catalog: &Catalog, outcome: &Outcome, in_use: Option<&InUse>, now: Timestamp) -> CatalogStatus {
    let mut status = catalog.status.clone().unwrap_or_default();
    let generation = catalog.metadata.generation;
    status.observed_generation = generation;
    status.resolved_source = in_use.map(|content| content.resolved_source.clone());
    status.digest = in_use.map(|content| content.digest.clone());
    status.contents = in_use.map(|content| content.contents);
    status.last_unpacked = in_use.map(|content| whole_seconds(content.unpacked));
    if let Some(request) = request(catalog) {
        status.last_handled_reconcile_at = Some(request.to_owned());
    }
    // Earlier findings remain valid while the source is not resolved.
    if let Outcome::Polled(found) = outcome {
        for condition in steps(found.as_ref().err(), in_use) {
            set_condition(&mut status.conditions, condition, generation, whole_seconds(now));
        }
    }
    set_condition(&mut status.conditions, ready(outcome, in_use), generation, whole_seconds(now));
    // What kstatus reads: a Catalog that a retry may fix is in progress. A Catalog that needs a change, here or on the server, is stalled;
    // the controller tries again nevertheless if the server may answer differently.
    let unusable = match outcome {
        Outcome::Polled(Err(failed)) if in_use.is_none() => Some(&failed.problem),
        _ => None,
    };
    let is_stalled = |problem: &Problem| problem.terminal || problem.refusal.is_some();
    for (kind, stalled) in [(Type::Reconciling, false), (Type::Stalled, true)] {
        match unusable.filter(|problem| is_stalled(problem) == stalled) {
            Some(problem) => {
                let condition = NewCondition::is_true(kind, problem.reason, problem.message.clone());
                set_condition(&mut status.conditions, condition, generation, whole_seconds(now));
            }
            None => drop(remove_condition(&mut status.conditions, kind)),
        }
    }
    status
}

/// The conditions of the steps.
fn steps(failed: Option<&Failed>, in_use: Option<&InUse>) -> [NewCondition; 3] {
    let source = in_use.map(|content| describe(&content.resolved_source)).unwrap_or_default();
    let contents = in_use.map(|content| counted(content.contents)).unwrap_or_default();
    [
        (Step::Resolve, Type::Resolved, Reason::SourceResolved, format!("the source resolves to {source}")),
        (Step::Unpack, Type::Unpacked, Reason::UnpackSuccessful, "the files are fetched and unpacked".to_owned()),
        (Step::Check, Type::Valid, Reason::CatalogValid, format!("the catalog has {contents}")),
    ]
    .map(|(step, kind, reason, message)| match failed {
        Some(failed) if failed.step == step => {
            NewCondition::is_false(kind, failed.problem.reason, failed.problem.message.clone())
        }
        Some(failed) if failed.step < step => {
            NewCondition::is_unknown(kind, failed.problem.reason, "an earlier step failed")
        }
        // The index in use belongs to other content.
        Some(_) => NewCondition::is_true(kind, reason, "the step succeeded"),
        None => NewCondition::is_true(kind, reason, message),
    })
}

fn ready(outcome: &Outcome, in_use: Option<&InUse>) -> NewCondition {
    let kind = Type::Ready;
    match (outcome, in_use) {
        (Outcome::Polled(Ok(())), _) => {
            let contents = in_use.map(|content| counted(content.contents)).unwrap_or_default();
            NewCondition::is_true(kind, Reason::CatalogReady, format!("{contents} can be installed from it"))
        }
        (Outcome::Polled(Err(failed)), Some(content)) => {
            let message = format!("{}: {}", stays(content), failed.problem.message);
            NewCondition::is_true(kind, Reason::CatalogStale, message)
        }
        (Outcome::Polled(Err(failed)), None) => {
            NewCondition::is_false(kind, failed.problem.reason, failed.problem.message.clone())
        }
        (Outcome::Suspended, Some(content)) => {
            let message = format!("{}: spec.suspend is true", stays(content));
            NewCondition::is_true(kind, Reason::Suspended, message)
        }
        (Outcome::Suspended, None) => {
            NewCondition::is_false(kind, Reason::Suspended, "spec.suspend is true, and no index was built before")
        }
    }
}

fn stays(content: &InUse) -> String {
    format!(
        "the index of {} stays in use, unpacked {}",
        describe(&content.resolved_source),
        whole_seconds(content.unpacked).0
    )
}

fn counted(contents: CatalogContents) -> String {
    let count = |number: i64, noun: &str| text::count(usize::try_from(number).unwrap_or_default(), noun);
    let CatalogContents { packages, channels, bundles } = contents;
    format!("{} with {} and {}", count(packages, "package"), count(channels, "channel"), count(bundles, "bundle"))
}

#[cfg(test)]
mod tests {
    use chandler_api::{BundleSource, ImageSource};
    use chandler_decisions::problem::Refusal;

    use super::*;

    fn in_use() -> InUse {
        let reference = "quay.io/example/catalog@sha256:1".to_owned();
        InUse {
            digest: "sha256:2".to_owned(),
            resolved_source: BundleSource::image(ImageSource { reference, ..ImageSource::default() }),
            contents: CatalogContents { packages: 1, channels: 2, bundles: 3 },
            unpacked: Timestamp::UNIX_EPOCH,
        }
    }

    fn failed(step: Step, problem: Problem) -> Outcome {
        Outcome::Polled(Err(Failed { step, problem }))
    }

    fn lines(outcome: &Outcome, in_use: Option<&InUse>) -> String {
        let status = derive(&Catalog::default(), outcome, in_use, Timestamp::UNIX_EPOCH);
        let lines =
            status.conditions.iter().map(|it| format!("{}={}/{}: {}", it.type_, it.status, it.reason, it.message));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn conditions_describe_what_the_source_names_and_what_is_in_use() {
        let broken = || failed(Step::Check, Problem::terminal(Reason::CatalogInvalid, "a.yaml:3: no"));
        let away = || failed(Step::Resolve, Problem::transient(Reason::SourceNotResolved, "no answer"));
        let refused =
            Problem { refusal: Some(Refusal::Source), ..Problem::transient(Reason::SourceNotResolved, "no such tag") };
        let cases = [
            ("current", Outcome::Polled(Ok(())), Some(in_use())),
            ("broken", broken(), None),
            ("broken, with an index", broken(), Some(in_use())),
            ("away", away(), None),
            ("away, with an index", away(), Some(in_use())),
            ("refused", failed(Step::Resolve, refused), None),
            ("suspended", Outcome::Suspended, None),
            ("suspended, with an index", Outcome::Suspended, Some(in_use())),
        ];
        let text = cases.map(|(title, outcome, in_use)| format!("# {title}\n{}", lines(&outcome, in_use.as_ref())));
        insta::assert_snapshot!(text.join("\n\n"));
    }

    #[test]
    fn a_request_is_handled_once() {
        let mut catalog = Catalog::default();
        assert_eq!(request(&catalog), None);
        catalog.annotations_mut().insert(REQUESTED_AT_ANNOTATION.to_owned(), "now".to_owned());
        assert_eq!(request(&catalog), Some("now"));
        let status = derive(&catalog, &Outcome::Suspended, None, Timestamp::UNIX_EPOCH);
        assert_eq!(status.last_handled_reconcile_at.as_deref(), Some("now"));
        catalog.status = Some(status);
        assert_eq!(request(&catalog), None, "it was handled");
        catalog.annotations_mut().insert(REQUESTED_AT_ANNOTATION.to_owned(), "later".to_owned());
        assert_eq!(request(&catalog), Some("later"));
    }

    #[test]
    fn the_fields_describe_what_is_in_use() {
        let status = derive(&Catalog::default(), &Outcome::Suspended, Some(&in_use()), Timestamp::UNIX_EPOCH);
        assert_eq!(status.digest.as_deref(), Some("sha256:2"));
        let catalog = Catalog { status: Some(status.clone()), ..Catalog::default() };
        assert_eq!(derive(&catalog, &Outcome::Suspended, Some(&in_use()), Timestamp::UNIX_EPOCH), status, "no change");
        let without = derive(&catalog, &Outcome::Suspended, None, Timestamp::UNIX_EPOCH);
        assert_eq!((without.digest, without.contents, without.resolved_source), (None, None, None));
    }
}
