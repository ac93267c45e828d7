//! Derives the status of a ProvisionerClass. Pure: the clock comes in as an argument.

use chandler_api::{
    ConditionType as Type, NewCondition, ProvisionerClass, ProvisionerClassStatus, Reason,
    conditions::{remove_condition, whole_seconds},
    set_condition,
};
use k8s_openapi::jiff::Timestamp;

use super::load::{LoadOutcome, LoadStep};

/// The status after a reconcile. `users` are the BundleDeployments that a deleted class waits for.
pub(super) fn derive(
    class: &ProvisionerClass,
    outcome: &LoadOutcome,
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
        (LoadStep::Resolve, Type::Resolved, Reason::ImageResolved, "the image is resolved to a digest and was pulled"),
        (LoadStep::Verify, Type::Verified, Reason::DigestVerified, "the digest matches; no signature is required"),
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
            _ => set(NewCondition::is_true(kind, reason, message)),
        }
    }
    match outcome {
        LoadOutcome::Loaded(component) => {
            set(NewCondition::is_true(Type::Ready, Reason::ProvisionerReady, ready(users)));
            status.component = Some(component.clone());
        }
        LoadOutcome::Failed { problem, in_use: true, .. } => {
            let message = format!("the earlier component stays in use: {}", problem.message);
            set(NewCondition::is_true(Type::Ready, Reason::UpdateFailed, message));
        }
        LoadOutcome::Failed { problem, in_use: false, .. } => {
            set(NewCondition::is_false(Type::Ready, problem.reason, problem.message.clone()));
            status.component = None;
        }
    }
    // What kstatus reads: a class that loads again later is at work, one that only a change helps is stalled.
    let unusable = match outcome {
        LoadOutcome::Failed { problem, in_use: false, .. } => Some(problem),
        _ => None,
    };
    for (kind, terminal) in [(Type::Reconciling, false), (Type::Stalled, true)] {
        match unusable.filter(|problem| problem.terminal == terminal) {
            Some(problem) => {
                let condition = NewCondition::is_true(kind, problem.reason, problem.message.clone());
                set_condition(&mut status.conditions, condition, generation, now.clone());
            }
            None => drop(remove_condition(&mut status.conditions, kind)),
        }
    }
    status
}

/// The number of BundleDeployments that a message names.
const NAMED: usize = 5;

fn ready(users: &[String]) -> String {
    if users.is_empty() {
        return "the class can be used".to_owned();
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
    use chandler_api::Component;

    use super::*;
    use crate::problem::Problem;

    fn reasons(outcome: &LoadOutcome) -> Vec<String> {
        let status = derive(&ProvisionerClass::default(), outcome, &[], Timestamp::UNIX_EPOCH);
        let line = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            format!("{}={}/{}", condition.type_, condition.status, condition.reason)
        };
        status.conditions.iter().map(line).collect()
    }

    #[test]
    fn the_failed_step_is_reported_and_later_ones_are_unknown() {
        let problem = Problem::terminal(Reason::MissingImports, "imports wasi:http");
        let failed = |in_use| LoadOutcome::Failed { step: LoadStep::Check, problem: problem.clone(), in_use };
        assert_eq!(
            reasons(&failed(false)),
            [
                "Resolved=True/ImageResolved",
                "Verified=True/DigestVerified",
                "Compatible=False/MissingImports",
                "Compiled=Unknown/MissingImports",
                "Ready=False/MissingImports",
                "Stalled=True/MissingImports",
            ]
        );
        let away = Problem::transient(Reason::ImageNotResolved, "away");
        let away = LoadOutcome::Failed { step: LoadStep::Resolve, problem: away, in_use: false };
        assert_eq!(reasons(&away).last().map(String::as_str), Some("Reconciling=True/ImageNotResolved"));
        assert_eq!(reasons(&failed(true)).last().map(String::as_str), Some("Ready=True/UpdateFailed"));
        assert_eq!(
            reasons(&LoadOutcome::Loaded(Component::default())).last().map(String::as_str),
            Some("Ready=True/ProvisionerReady")
        );
    }
}
