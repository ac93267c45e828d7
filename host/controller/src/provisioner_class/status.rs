//! Derives the status of a ProvisionerClass. Pure: the clock comes in as an argument.

use chandler_api::{
    ConditionStatus, ConditionType as Type, NewCondition, ProvisionerClass, ProvisionerClassStatus, Reason,
    conditions::{remove_condition, whole_seconds},
    find_condition,
    names::REQUESTED_AT_ANNOTATION,
    set_condition,
};
use chandler_decisions::class_uses;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;

use super::{
    load::{LoadOutcome, LoadStep},
    uses::Uses,
};

/// What `Verified` says if no signature is demanded.
const UNVERIFIED: &str = "no signature was verified, since neither spec.verification nor a rule of the administrator demands one, and the \
                          controller runs with --allow-unsigned. The component matches its digest, so it is the one that the registry \
                          named";
/// What `Verified` says if the demanded signatures are verified.
const VERIFIED: &str = "the component is signed as required";
/// The message of a suspended class that has a component.
const SUSPENDED: &str = "the class can be used; while spec.suspend is set, no newer component is loaded, and no BundleDeployment is updated";
/// The message of a class without a component that is being loaded.
const LOADING: &str = "its component is being loaded";

/// The status after a reconcile. `is_verified` says whether signatures are demanded, so that they are verified once that step is past.
/// `users` are the BundleDeployments that a deleted class waits for.
pub(super) fn derive(
    class: &ProvisionerClass,
    outcome: &LoadOutcome,
    is_verified: bool,
    users: &[String],
    now: Timestamp,
) -> ProvisionerClassStatus {
    let mut status = class.status.clone().unwrap_or_default();
    let generation = class.metadata.generation;
    status.observed_generation = generation;
    let now = whole_seconds(now);
    let mut set = |condition| {
        set_condition(&mut status.conditions, condition, generation, now.clone());
    };
    for (step, kind, reason, message) in [
        (LoadStep::Resolve, Type::Resolved, Reason::ImageResolved, "the image is resolved to a digest"),
        (LoadStep::Verify, Type::Verified, Reason::SignaturesVerified, VERIFIED),
        (
            LoadStep::Check,
            Type::Compatible,
            Reason::ContractSupported,
            "the component implements a supported version of the contract",
        ),
        (LoadStep::Compile, Type::Compiled, Reason::CompilationSucceeded, "the component is compiled"),
    ] {
        match outcome {
            LoadOutcome::Failed { step: failed, problem, .. } if *failed == step => {
                set(NewCondition::is_false(kind, problem.reason, problem.message.clone()));
            }
            LoadOutcome::Failed { step: failed, problem, .. } if *failed < step => {
                set(NewCondition::is_unknown(kind, problem.reason, "an earlier step failed"));
            }
            LoadOutcome::Loading => set(NewCondition::is_unknown(kind, Reason::ProvisionerNotReady, LOADING)),
            // The digest matches, but no signature of the component was verified.
            _ if step == LoadStep::Verify && !is_verified => {
                set(NewCondition::is_false(kind, Reason::NotRequired, UNVERIFIED));
            }
            _ => set(NewCondition::is_true(kind, reason, message)),
        }
    }
    match outcome {
        LoadOutcome::Loaded(component) => {
            set(NewCondition::is_true(Type::Ready, Reason::ProvisionerReady, ready(class, users)));
            status.component = Some(component.clone());
        }
        LoadOutcome::Quarantined(component, message) => {
            set(NewCondition::is_false(Type::Ready, Reason::ProvisionerQuarantined, message.clone()));
            status.component = Some(component.clone());
        }
        LoadOutcome::Failed { problem, in_use: Some(component), .. } => {
            let message = format!("the earlier component stays in use: {}", problem.message);
            set(NewCondition::is_true(Type::Ready, Reason::UpdateFailed, message));
            status.component = Some(component.clone());
        }
        LoadOutcome::Failed { problem, in_use: None, .. } => {
            set(NewCondition::is_false(Type::Ready, problem.reason, problem.message.clone()));
            status.component = None;
        }
        LoadOutcome::Loading => {
            set(NewCondition::is_false(Type::Ready, Reason::ProvisionerNotReady, LOADING));
            status.component = None;
        }
    }
    // What kstatus reads: a class that loads again later is in progress, one that needs a change is stalled.
    let unusable = match outcome {
        LoadOutcome::Failed { problem, in_use: None, .. } => {
            Some((problem.terminal, problem.reason, problem.message.as_str()))
        }
        LoadOutcome::Loading => Some((false, Reason::ProvisionerNotReady, LOADING)),
        LoadOutcome::Quarantined(_, message) => Some((false, Reason::ProvisionerQuarantined, message.as_str())),
        _ => None,
    };
    for (kind, terminal) in [(Type::Reconciling, false), (Type::Stalled, true)] {
        match unusable.filter(|(is_terminal, ..)| *is_terminal == terminal) {
            Some((_, reason, message)) => {
                let condition = NewCondition::is_true(kind, reason, message);
                set_condition(&mut status.conditions, condition, generation, now.clone());
            }
            None => drop(remove_condition(&mut status.conditions, kind)),
        }
    }
    status
}

/// Adds what those that use the class do with its component.
pub(super) fn set_uses(status: &mut ProvisionerClassStatus, class: &ProvisionerClass, uses: &Uses, now: Timestamp) {
    let policy = class.spec.update_policy.unwrap_or_default();
    status.uses = Some(uses.counts);
    match class_uses::condition(&uses.counts, policy, uses.stopped).filter(|_| status.component.is_some()) {
        Some(condition) => {
            set_condition(&mut status.conditions, condition, class.metadata.generation, whole_seconds(now));
        }
        None => drop(remove_condition(&mut status.conditions, Type::Updated)),
    }
}

/// The status after a reconcile that a request to the API server ended. A component in use stays in use; nothing else is known about the
/// class.
pub(super) fn interrupted(
    class: &ProvisionerClass,
    reason: Reason,
    message: &str,
    now: Timestamp,
) -> ProvisionerClassStatus {
    let mut status = class.status.clone().unwrap_or_default();
    let (generation, now) = (class.metadata.generation, whole_seconds(now));
    status.observed_generation = generation;
    set_condition(
        &mut status.conditions,
        NewCondition::is_true(Type::Reconciling, reason, message),
        generation,
        now.clone(),
    );
    remove_condition(&mut status.conditions, Type::Stalled);
    if status.component.is_none() {
        set_condition(&mut status.conditions, NewCondition::is_false(Type::Ready, reason, message), generation, now);
    }
    status
}

/// The request for a reconcile that the controller has not handled yet.
pub(super) fn request(class: &ProvisionerClass) -> Option<&str> {
    let asked = class.annotations().get(REQUESTED_AT_ANNOTATION)?.as_str();
    let handled = class.status.as_ref().and_then(|status| status.last_handled_reconcile_at.as_deref());
    (handled != Some(asked)).then_some(asked)
}

/// Whether the status of a class, which an earlier process of the controller may have written, says nothing yet or that the class can be
/// used.
pub(super) fn promises_a_component(class: &ProvisionerClass) -> bool {
    let conditions = class.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    find_condition(conditions, Type::Ready).is_none_or(|ready| ready.status == ConditionStatus::True.as_str())
}

/// The maximum number of BundleDeployments that a message names.
const NAMED: usize = 5;

fn ready(class: &ProvisionerClass, users: &[String]) -> String {
    if users.is_empty() {
        return if class.spec.suspend { SUSPENDED } else { "the class can be used" }.to_owned();
    }
    let named = users.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = users.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "the class is deleted when no BundleDeployment uses it any more: {named}{more}. To delete it now, set \
         spec.deletion.whileInUse to Stop"
    )
}

#[cfg(test)]
mod tests {
    use chandler_api::{ClassUses, Component};
    use chandler_decisions::problem::Problem;

    use super::*;

    fn reasons(outcome: &LoadOutcome) -> Vec<String> {
        let status = derive(&ProvisionerClass::default(), outcome, false, &[], Timestamp::UNIX_EPOCH);
        let line = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            format!("{}={}/{}", condition.type_, condition.status, condition.reason)
        };
        status.conditions.iter().map(line).collect()
    }

    #[test]
    fn a_refused_request_is_reported_and_a_component_stays_in_use() {
        let reported = |status: ProvisionerClassStatus| {
            let class = ProvisionerClass { status: Some(status), ..ProvisionerClass::default() };
            let status = interrupted(&class, Reason::Forbidden, "may not write finalizers", Timestamp::UNIX_EPOCH);
            let line = |it: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
                format!("{}={}/{}", it.type_, it.status, it.reason)
            };
            status.conditions.iter().map(line).collect::<Vec<_>>()
        };
        let without = reported(ProvisionerClassStatus::default());
        assert_eq!(without, ["Reconciling=True/Forbidden", "Ready=False/Forbidden"]);
        let component = Some(Component::default());
        let with = reported(ProvisionerClassStatus { component, ..ProvisionerClassStatus::default() });
        assert_eq!(with, ["Reconciling=True/Forbidden"]);
    }

    #[test]
    fn the_failed_step_is_reported_and_later_ones_are_unknown() {
        let problem = Problem::terminal(Reason::MissingImports, "imports wasi:http");
        let failed = |in_use| LoadOutcome::Failed { step: LoadStep::Check, problem: problem.clone(), in_use };
        assert_eq!(
            reasons(&failed(None)),
            [
                "Resolved=True/ImageResolved",
                "Verified=False/NotRequired",
                "Compatible=False/MissingImports",
                "Compiled=Unknown/MissingImports",
                "Ready=False/MissingImports",
                "Stalled=True/MissingImports",
            ]
        );
        let away = Problem::transient(Reason::ImageNotResolved, "away");
        let away = LoadOutcome::Failed { step: LoadStep::Resolve, problem: away, in_use: None };
        assert_eq!(reasons(&away).last().map(String::as_str), Some("Reconciling=True/ImageNotResolved"));
        assert_eq!(
            reasons(&failed(Some(Component::default()))).last().map(String::as_str),
            Some("Ready=True/UpdateFailed")
        );
        assert_eq!(
            reasons(&LoadOutcome::Loaded(Component::default())).last().map(String::as_str),
            Some("Ready=True/ProvisionerReady")
        );
    }

    #[test]
    fn verified_is_true_only_after_demanded_signatures_were_verified() {
        let verified = |outcome: &LoadOutcome, is_verified| {
            let status = derive(&ProvisionerClass::default(), outcome, is_verified, &[], Timestamp::UNIX_EPOCH);
            let found = find_condition(&status.conditions, Type::Verified).expect("the condition");
            format!("{}/{}", found.status, found.reason)
        };
        let failed = |step, reason| LoadOutcome::Failed { step, problem: Problem::transient(reason, ""), in_use: None };
        let loaded = LoadOutcome::Loaded(Component::default());
        assert_eq!(verified(&loaded, true), "True/SignaturesVerified");
        assert_eq!(verified(&loaded, false), "False/NotRequired");
        let checked = failed(LoadStep::Check, Reason::MissingImports);
        assert_eq!(verified(&checked, true), "True/SignaturesVerified");
        let refused = failed(LoadStep::Verify, Reason::NoMatchingSignature);
        assert_eq!(verified(&refused, true), "False/NoMatchingSignature");
        assert_eq!(verified(&failed(LoadStep::Resolve, Reason::ImageNotResolved), true), "Unknown/ImageNotResolved");
        assert_eq!(verified(&LoadOutcome::Loading, true), "Unknown/ProvisionerNotReady");
    }

    /// The status of an earlier process of the controller may be about another component, or the process may have loaded none.
    #[test]
    fn the_status_names_the_component_in_use_whatever_it_said_before() {
        let component = |digest: &str| Component { digest: digest.to_owned(), ..Component::default() };
        let loaded =
            |digest| derive(&class(None), &LoadOutcome::Loaded(component(digest)), false, &[], Timestamp::UNIX_EPOCH);
        let before = class(Some(loaded("new")));
        let after = |outcome: &LoadOutcome| derive(&before, outcome, false, &[], Timestamp::UNIX_EPOCH);
        let problem = Problem::transient(Reason::ImageNotResolved, "away");
        let in_use = Some(component("old"));
        let failed = after(&LoadOutcome::Failed { step: LoadStep::Resolve, problem, in_use });
        assert_eq!(failed.component.map(|component| component.digest).as_deref(), Some("old"));
        let loading = after(&LoadOutcome::Loading);
        let ready = find_condition(&loading.conditions, Type::Ready).map(|it| (it.status.as_str(), it.reason.as_str()));
        assert_eq!((ready, loading.component), (Some(("False", "ProvisionerNotReady")), None));
        assert!(promises_a_component(&before) && promises_a_component(&class(None)));
        let loading = derive(&before, &LoadOutcome::Loading, false, &[], Timestamp::UNIX_EPOCH);
        assert!(!promises_a_component(&class(Some(loading))), "it is reported once");
    }

    #[test]
    fn the_condition_updated_is_there_while_the_class_is_used() {
        let loaded = LoadOutcome::Loaded(Component::default());
        let mut status = derive(&class(None), &loaded, false, &[], Timestamp::UNIX_EPOCH);
        let of = |total, updated| {
            let counts = ClassUses { total, updated, ..ClassUses::default() };
            Uses { counts, stopped: 0, admitted: 0 }
        };
        let updated = |status: &ProvisionerClassStatus| {
            find_condition(&status.conditions, Type::Updated).map(|it| format!("{}/{}", it.status, it.reason))
        };
        set_uses(&mut status, &class(None), &of(2, 1), Timestamp::UNIX_EPOCH);
        assert_eq!(updated(&status).as_deref(), Some("False/UpdateInProgress"));
        set_uses(&mut status, &class(None), &of(2, 2), Timestamp::UNIX_EPOCH);
        assert_eq!(updated(&status).as_deref(), Some("True/UpdateComplete"));
        set_uses(&mut status, &class(None), &of(0, 0), Timestamp::UNIX_EPOCH);
        assert_eq!((updated(&status), status.uses), (None, Some(ClassUses::default())));
    }

    #[test]
    fn a_quarantined_component_is_loaded_and_the_class_is_not_ready() {
        let component = || Component { digest: "one".to_owned(), ..Component::default() };
        let quarantined = LoadOutcome::Quarantined(component(), "not called".to_owned());
        let status = derive(&class(None), &quarantined, true, &[], Timestamp::UNIX_EPOCH);
        let line = |kind| find_condition(&status.conditions, kind).map(|it| format!("{}/{}", it.status, it.reason));
        assert_eq!(line(Type::Compiled).as_deref(), Some("True/CompilationSucceeded"));
        assert_eq!(line(Type::Ready).as_deref(), Some("False/ProvisionerQuarantined"));
        assert_eq!(line(Type::Reconciling).as_deref(), Some("True/ProvisionerQuarantined"));
        assert_eq!(status.component, Some(component()));
        let again = derive(&class(Some(status.clone())), &quarantined, true, &[], Timestamp::MAX);
        assert_eq!(again, status, "it does not change with each look");
    }

    #[test]
    fn a_request_is_handled_once() {
        let mut class = class(None);
        assert_eq!(request(&class), None);
        class.metadata.annotations = Some([(REQUESTED_AT_ANNOTATION.to_owned(), "now".to_owned())].into());
        assert_eq!(request(&class), Some("now"));
        let handled = Some("now".to_owned());
        class.status = Some(ProvisionerClassStatus { last_handled_reconcile_at: handled, ..Default::default() });
        assert_eq!(request(&class), None);
    }

    fn class(status: Option<ProvisionerClassStatus>) -> ProvisionerClass {
        ProvisionerClass { status, ..ProvisionerClass::default() }
    }
}
