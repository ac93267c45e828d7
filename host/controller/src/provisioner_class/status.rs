//! Derives the status of a ProvisionerClass. Pure: the clock comes in as an argument.

use chandler_api::{
    Component, ConditionType as Type, NewCondition, ProvisionerClass, ProvisionerClassStatus, Reason, set_condition,
};
use chandler_engine::LoadError;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use crate::problem::Problem;

/// The step at which a class failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    /// Reading the specification, resolving and pulling the image.
    Resolve,
    /// Checking who vouches for the component.
    Verify,
    /// Holding its imports and exports against the contract.
    Check,
    /// Making code of it.
    Compile,
}

impl Step {
    /// The step at which loading failed.
    pub(crate) fn of(error: &LoadError) -> Self {
        if error.reason() == Reason::CompileFailed { Self::Compile } else { Self::Check }
    }
}

/// What one pass over a class found.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    /// The component is in use.
    Loaded(Component),
    /// It could not be had.
    Failed {
        /// At which step.
        step: Step,
        /// Why.
        problem: Problem,
        /// Whether an earlier component stays in use.
        in_use: bool,
    },
}

/// The status after a pass. A class that is deleted and still there waits for its users.
pub(crate) fn derive(
    class: &ProvisionerClass,
    found: &Found,
    users: &[String],
    now: Timestamp,
) -> ProvisionerClassStatus {
    let mut status = class.status.clone().unwrap_or_default();
    let generation = class.metadata.generation;
    status.observed_generation = generation;
    // The API server keeps whole seconds.
    let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
    let mut set = |condition| {
        set_condition(&mut status.conditions, condition, generation, now.clone());
    };
    for (step, kind, reason, message) in [
        (Step::Resolve, Type::Resolved, Reason::ImageResolved, "the image is known by digest and was pulled"),
        (Step::Verify, Type::Verified, Reason::DigestVerified, "the digest matches; no signature was asked for"),
        (Step::Check, Type::Compatible, Reason::ContractSupported, "the component speaks a supported contract"),
        (Step::Compile, Type::Compiled, Reason::CompilationSucceeded, "the component is compiled"),
    ] {
        match found {
            Found::Failed { step: failed, problem, .. } if *failed == step => {
                set(NewCondition::is_false(kind, problem.reason, problem.message.clone()));
            }
            Found::Failed { step: failed, problem, .. } if *failed < step => {
                set(NewCondition::is_unknown(kind, problem.reason, "an earlier step failed"));
            }
            _ => set(NewCondition::is_true(kind, reason, message)),
        }
    }
    match found {
        Found::Loaded(component) => {
            set(NewCondition::is_true(Type::Ready, Reason::ProvisionerReady, ready(users)));
            status.component = Some(component.clone());
        }
        Found::Failed { problem, in_use: true, .. } => {
            let message = format!("the component before stays in use: {}", problem.message);
            set(NewCondition::is_true(Type::Ready, Reason::UpdateFailed, message));
        }
        Found::Failed { problem, in_use: false, .. } => {
            set(NewCondition::is_false(Type::Ready, problem.reason, problem.message.clone()));
            status.component = None;
        }
    }
    status
}

/// How many BundleDeployments a message names.
const NAMED: usize = 5;

fn ready(users: &[String]) -> String {
    if users.is_empty() {
        return "the class can be used".to_owned();
    }
    let named = users.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = users.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!(
        "the class is deleted as soon as no BundleDeployment names it: {named}{more}. To delete it now, set \
         spec.deletion.whileInUse to Stop"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(found: &Found) -> Vec<String> {
        let status = derive(&ProvisionerClass::default(), found, &[], Timestamp::UNIX_EPOCH);
        let line = |condition: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
            format!("{}={}/{}", condition.type_, condition.status, condition.reason)
        };
        status.conditions.iter().map(line).collect()
    }

    #[test]
    fn the_step_that_failed_is_named_and_later_ones_are_unknown() {
        let problem = Problem::terminal(Reason::MissingImports, "imports wasi:http");
        let failed = |in_use| Found::Failed { step: Step::Check, problem: problem.clone(), in_use };
        assert_eq!(
            reasons(&failed(false)),
            [
                "Resolved=True/ImageResolved",
                "Verified=True/DigestVerified",
                "Compatible=False/MissingImports",
                "Compiled=Unknown/MissingImports",
                "Ready=False/MissingImports",
            ]
        );
        assert_eq!(reasons(&failed(true)).last().map(String::as_str), Some("Ready=True/UpdateFailed"));
        assert_eq!(
            reasons(&Found::Loaded(Component::default())).last().map(String::as_str),
            Some("Ready=True/ProvisionerReady")
        );
    }
}
