//! The status of a PlatformOperator. The clock comes in as an argument.
//!
//! The condition `Installed` has the reasons of OpenShift's controller: `SourceFailed`, `UnpackPending`, `InstallPending`, `InstallFailed`,
//! the reasons of the BundleDeployment, and `InstallSuccessful`.

use chandler_api::{
    ActiveBundleDeployment, BundleDeployment, ConditionStatus, ConditionType as Type, NewCondition, PlatformOperator,
    PlatformOperatorStatus, Reason, Resolution, ResolutionStatus, ResolvedMember, conditions::whole_seconds,
    find_condition, set_condition,
};
use chandler_resolver::version::{VersionRelease, masterminds::Range};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};
use kube::ResourceExt as _;

use super::{InForce, InvalidPolicy, resolution};

const UNPACK_PENDING: &str = "Waiting for the bundle to be unpacked";
const INSTALL_PENDING: &str = "Waiting for the bundle to be installed";

/// The message of the provisioner of registry+v1 for a bundle that cannot watch all namespaces, if the configuration names none.
const NO_TARGETS: &str = "required field \"watchNamespace";

/// What became of a PlatformOperator.
#[derive(Clone, Debug)]
pub enum Outcome<'a> {
    /// It takes no part in the resolution.
    Refused(String),
    /// An object that it needs could not be created.
    Failed(String),
    /// It is part of the question of a Resolution.
    Asked {
        /// The Resolution, if its spec is as it is to be.
        resolution: Option<&'a Resolution>,
        /// The BundleDeployment that has the package.
        deployment: Option<&'a BundleDeployment>,
        /// The policy for all PlatformOperators.
        policy: &'a InForce,
    },
    /// It is being deleted.
    Deleting {
        /// The BundleDeployment that is still there.
        deployment: Option<&'a BundleDeployment>,
        /// The policy that cannot be read, so that nothing is uninstalled.
        invalid: Option<&'a InvalidPolicy>,
    },
}

/// The status after a reconcile.
pub fn derive(operator: &PlatformOperator, outcome: &Outcome<'_>, now: Timestamp) -> PlatformOperatorStatus {
    let mut status = operator.status.clone().unwrap_or_default();
    let condition = match outcome {
        Outcome::Refused(message) => {
            (status.version, status.active_bundle_deployment) = (None, None);
            Some(unmet(message.clone()))
        }
        Outcome::Failed(message) => Some(NewCondition::is_false(Type::Installed, Reason::InstallFailed, message)),
        Outcome::Asked { resolution, deployment, policy } => {
            let namespace = resolution.and_then(|it| resolution::namespace(it, &operator.spec.package.name));
            // A package that another set has is where that set installed it.
            let elsewhere = deployment.map(|it| it.spec.install_namespace.clone());
            status.namespace = namespace.cloned().or(elsewhere).or(status.namespace);
            let answered = resolution.and_then(answered);
            let Some((resolution, answer)) = answered else {
                // Until there is an answer to the current question, the last answer is reported.
                if status.conditions.is_empty() {
                    set(&mut status, operator, pending(Reason::UnpackPending, UNPACK_PENDING), now);
                }
                return status;
            };
            let member = answer.members.iter().find(|member| member.package == operator.spec.package.name);
            status.version = member.map(|member| member.version.clone());
            status.active_bundle_deployment =
                deployment.filter(|_| member.is_some()).map(|it| ActiveBundleDeployment { name: it.name_any() });
            let condition = installed(operator, resolution, answer, member, *deployment);
            Some(noting(condition, answer, policy))
        }
        Outcome::Deleting { invalid: Some(invalid), .. } => {
            Some(NewCondition::is_false(Type::Installed, Reason::InvalidPolicy, invalid.to_string()))
        }
        Outcome::Deleting { deployment, invalid: None } => {
            let ready = deployment.and_then(|it| condition_of(it, Type::Ready)).filter(|ready| ready.status == "False");
            ready.map(copied)
        }
    };
    if let Some(condition) = condition {
        set(&mut status, operator, condition, now);
    }
    status
}

fn set(status: &mut PlatformOperatorStatus, operator: &PlatformOperator, condition: NewCondition, now: Timestamp) {
    let generation = operator.metadata.generation;
    status.observed_generation = generation;
    set_condition(&mut status.conditions, condition, generation, whole_seconds(now));
}

/// A Resolution with its status, if that describes its spec.
fn answered(resolution: &Resolution) -> Option<(&Resolution, &ResolutionStatus)> {
    let status = resolution.status.as_ref()?;
    let is_current = status.observed_generation == resolution.metadata.generation;
    (is_current && resolution.metadata.deletion_timestamp.is_none()).then_some((resolution, status))
}

fn installed(
    operator: &PlatformOperator,
    resolution: &Resolution,
    answer: &ResolutionStatus,
    member: Option<&ResolvedMember>,
    deployment: Option<&BundleDeployment>,
) -> NewCondition {
    let meets = |member: &ResolvedMember| meets(&member.version, operator.spec.version.as_deref());
    if let Some(left_out) = answer.left_out.iter().find(|it| it.package == operator.spec.package.name) {
        let message = left_out.explanation.join("; ");
        if left_out.reason != Reason::PreflightFailed.as_str() {
            return unmet(no_candidate(&left_out.package, &message));
        }
        if member.is_none() && message.contains(NO_TARGETS) {
            return NewCondition::is_false(Type::Installed, Reason::UnpackFailed, not_all_namespaces(&message));
        }
        let running = deployment.filter(|_| member.is_some_and(meets)).map(progress);
        return match running.filter(|running| running.status == ConditionStatus::True) {
            Some(running) => NewCondition {
                message: format!("{}; the checks refuse its upgrade: {message}", running.message),
                ..running
            },
            None => NewCondition::is_false(Type::Installed, Reason::InstallFailed, message),
        };
    }
    let unresolved = find_condition(&answer.conditions, Type::Resolved).filter(|resolved| resolved.status != "True");
    match (member, unresolved) {
        // Without an answer, what is installed stays.
        (member, Some(unresolved)) if !member.is_some_and(meets) => {
            let name = resolution.name_any();
            unmet(format!("Resolution {name} has no answer: {}", unresolved.message))
        }
        // What waits is not among the members yet.
        (None, _) if answer.pending.is_some() => not_created(answer),
        (None, _) => pending(Reason::UnpackPending, UNPACK_PENDING),
        (Some(_), _) => match deployment {
            Some(deployment) => progress(deployment),
            None => not_created(answer),
        },
    }
}

/// The message for an installed package while a policy stops everything new.
fn noting(condition: NewCondition, answer: &ResolutionStatus, policy: &InForce) -> NewCondition {
    let stopped = match policy {
        Ok(None) => return condition,
        Ok(Some(policy)) => Some(Reason::NotSatisfiable).filter(|_| !policy.constraints.is_empty()),
        Err(_) => Some(Reason::InvalidPolicy),
    };
    let unresolved = find_condition(&answer.conditions, Type::Resolved)
        .filter(|it| it.status != "True" && stopped.is_some_and(|stopped| it.reason == stopped.as_str()));
    match unresolved.filter(|_| condition.status == ConditionStatus::True) {
        Some(unresolved) => {
            let message = format!("{}; nothing new is decided: {}", condition.message, unresolved.message);
            NewCondition { message, ..condition }
        }
        None => condition,
    }
}

/// No bundle of the package fits. The message begins like OpenShift's.
fn no_candidate(package: &str, why: &str) -> String {
    format!("failed to find candidate olm.bundles from the {package} package: {why}")
}

/// The bundle does not support the install mode that platform operators have without a configuration. The message begins like OpenShift's.
fn not_all_namespaces(why: &str) -> String {
    format!(
        "convert registry+v1 bundle to plain+v0 bundle: AllNamespace install mode must be enabled, or spec.config must name the namespaces that \
         the operator watches: {why}"
    )
}

/// Whether a version is in a range.
fn meets(version: &str, range: Option<&str>) -> bool {
    let Some(range) = range.filter(|range| !range.is_empty()) else { return true };
    match (Range::parse(range), VersionRelease::parse(version, None)) {
        (Ok(range), Ok(version)) => range.matches(version.version()),
        _ => false,
    }
}

/// There is no BundleDeployment yet: the set creates it.
fn not_created(answer: &ResolutionStatus) -> NewCondition {
    if let Some(waits) = &answer.pending {
        if waits.reason == Reason::PreflightFailed.as_str() {
            return NewCondition::is_false(Type::Installed, Reason::InstallFailed, waits.message.clone());
        }
        return pending(Reason::InstallPending, &format!("{INSTALL_PENDING}: {}", waits.message));
    }
    let set = find_condition(&answer.conditions, Type::Installed).filter(|installed| installed.status == "False");
    match set.filter(|set| set.reason != Reason::Installing.as_str()) {
        Some(failed) => NewCondition::is_false(Type::Installed, Reason::InstallFailed, failed.message.clone()),
        None => pending(Reason::UnpackPending, UNPACK_PENDING),
    }
}

/// What the BundleDeployment says. While an upgrade is rolled out, the old version runs.
fn progress(deployment: &BundleDeployment) -> NewCondition {
    let name = deployment.name_any();
    let condition = |kind| condition_of(deployment, kind);
    if deployment.metadata.deletion_timestamp.is_some() {
        return pending(Reason::InstallPending, INSTALL_PENDING);
    }
    if condition(Type::Installed).is_some_and(|installed| installed.status == "True") {
        let message = format!("Successfully applied the {name} BundleDeployment resource");
        return NewCondition::is_true(Type::Installed, Reason::InstallSuccessful, message);
    }
    let mut failed = [Type::Unpacked, Type::HasValidBundle].into_iter().filter_map(condition);
    if let Some(failed) = failed.find(|it| it.status == "False" && it.reason != Reason::Unpacking.as_str()) {
        return copied(failed);
    }
    if condition(Type::HasValidBundle).is_none_or(|valid| valid.status != "True") {
        return pending(Reason::UnpackPending, UNPACK_PENDING);
    }
    match condition(Type::Installed).filter(|installed| installed.status == "False") {
        Some(installed) => copied(installed),
        None => pending(Reason::InstallPending, INSTALL_PENDING),
    }
}

fn condition_of(deployment: &BundleDeployment, kind: Type) -> Option<&Condition> {
    find_condition(&deployment.status.as_ref()?.conditions, kind)
}

/// The condition of a BundleDeployment as one of the PlatformOperator.
fn copied(condition: &Condition) -> NewCondition {
    let reason = Reason::from_name(&condition.reason).unwrap_or(Reason::InstallFailed);
    NewCondition::is_false(Type::Installed, reason, condition.message.clone())
}

fn unmet(message: String) -> NewCondition {
    NewCondition::is_false(Type::Installed, Reason::SourceFailed, message)
}

fn pending(reason: Reason, message: &str) -> NewCondition {
    NewCondition::is_false(Type::Installed, reason, message)
}

#[cfg(test)]
mod tests;
