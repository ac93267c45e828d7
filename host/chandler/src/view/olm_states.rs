//! The states that a Subscription, an InstallPlan and a ClusterServiceVersion of OLM v0 would have, in place of what is in the cluster.
//!
//! Each state means what OLM's architecture document says: a Subscription follows a package, an InstallPlan is a set of changes that are
//! made together, and a ClusterServiceVersion is one version in the cluster. docs/coming-from-olm.md has the table.

use std::fmt;

use chandler_api::{
    BundleDeployment, BundleDeploymentStatus, ConditionType, LeftOut, Outcome, PendingDecision, Reason, Remedy,
    Resolution, ResolvedMember, find_condition,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Serialize, Serializer};

use super::overview::{Health, Overview};

/// Declares the states of a kind, with OLM's names as their text.
macro_rules! states {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => stringify!($variant),)+ })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

states! {
    /// The state of a Subscription, `status.state`.
    Subscription {
        /// A catalog has a version to install or to upgrade to, and nothing is in the set for it yet, or another package holds it back.
        UpgradeAvailable,
        /// The set has a version that is not installed yet, or a change of it waits for an approval.
        UpgradePending,
        /// The best version that fits is installed.
        AtLatestKnown,
    }
}

states! {
    /// The phase of an InstallPlan, `status.phase`.
    InstallPlan {
        /// The packages have no answer yet, or the members are being fetched and checked.
        Planning,
        /// The change waits for an approval.
        RequiresApproval,
        /// The members are being installed.
        Installing,
        /// Every member is installed.
        Complete,
        /// A member cannot be fetched or installed.
        Failed,
    }
}

states! {
    /// The phase of a ClusterServiceVersion, `status.phase`.
    Csv {
        /// The bundle's requirements are not met, or it is being fetched.
        Pending,
        /// All checks passed, and nothing is written yet.
        InstallReady,
        /// Objects are being created, or are not healthy yet.
        Installing,
        /// Every object is installed and healthy.
        Succeeded,
        /// It could not be installed, or an installed object is broken.
        Failed,
        /// It runs while a newer version is being installed in its place.
        Replacing,
        /// It is being removed.
        Deleting,
    }
}

/// A version in the cluster with its phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CsvState {
    /// The name of the bundle, which the ClusterServiceVersion would have; if it is unknown, the version.
    pub name: String,
    /// The phase.
    pub phase: Csv,
}

/// What is known of one package of a Resolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Followed<'a> {
    /// The version that is installed.
    pub installed: Option<&'a str>,
    /// The version that the set has.
    pub in_set: Option<&'a str>,
    /// The best version on the upgrade path, or `None` if the set already has it.
    pub best: Option<&'a str>,
    /// The reason for which a change of this package is not in the set yet.
    pub waits: Option<Reason>,
    /// Whether a newer version is known that does not fit with other packages.
    pub is_held_back: bool,
    /// Whether it is not known what is best: nothing was decided for the spec as it is.
    pub is_undecided: bool,
}

/// The state of the Subscription of a package; none before there is anything to install.
pub fn subscription(package: &Followed<'_>) -> Option<Subscription> {
    if package.waits == Some(Reason::ApprovalRequired) {
        return Some(Subscription::UpgradePending);
    }
    if package.waits.is_some() {
        return Some(Subscription::UpgradeAvailable);
    }
    let in_set = package.in_set?;
    if package.installed != Some(in_set) {
        return Some(Subscription::UpgradePending);
    }
    if package.is_held_back || package.best.is_some_and(|best| best != in_set) {
        return Some(Subscription::UpgradeAvailable);
    }
    (!package.is_undecided).then_some(Subscription::AtLatestKnown)
}

/// What a Resolution knows of one of its packages.
pub fn followed<'a>(member: &'a ResolvedMember, installed: Option<&'a str>, resolution: &Resolution) -> Followed<'a> {
    let status = resolution.status.as_ref();
    let pending = status.and_then(|status| status.pending.as_ref());
    let resolved = status.and_then(|status| find_condition(&status.conditions, ConditionType::Resolved));
    let set = resolution.spec.output.as_ref().and_then(|output| output.resolve_set.as_ref());
    let concerns = |pending: &&PendingDecision| {
        pending.changes.iter().any(|it| it.split([' ', '/']).any(|it| it == member.package))
    };
    Followed {
        installed,
        in_set: member.bundle_deployment.is_some().then_some(member.version.as_str()),
        best: member.path.last().map(String::as_str),
        waits: pending.filter(concerns).and_then(|pending| Reason::from_name(&pending.reason)),
        is_held_back: member.held_back.is_some()
            || status.is_some_and(|status| status.left_out.iter().any(|it| it.package == member.package)),
        is_undecided: set.is_some_and(|set| set.to_decision.is_some())
            || resolved.is_some_and(|condition| condition.status != "True"),
    }
}

/// The phase of the InstallPlan of the current decision, or `None` if there is nothing to install: OLM reports packages that do not fit in
/// a condition of the Subscription, and creates no InstallPlan.
pub fn install_plan(resolution: &Resolution) -> Option<InstallPlan> {
    let output = resolution.spec.output.as_ref().filter(|output| output.kind == chandler_api::OutputType::ResolveSet);
    output?;
    let Some(status) = &resolution.status else { return Some(InstallPlan::Planning) };
    match status.pending.as_ref().and_then(|pending| Reason::from_name(&pending.reason)) {
        Some(Reason::ApprovalRequired) => return Some(InstallPlan::RequiresApproval),
        Some(Reason::Preflighting) => return Some(InstallPlan::Planning),
        Some(Reason::PreflightFailed) => return Some(InstallPlan::Failed),
        _ => {}
    }
    if status.decision.is_none() {
        let resolved = find_condition(&status.conditions, ConditionType::Resolved);
        let is_refused = resolved.is_some_and(|it| it.status == "False");
        return (!is_refused).then_some(InstallPlan::Planning);
    }
    let installed = find_condition(&status.conditions, ConditionType::Installed);
    if installed.is_some_and(|it| it.status == "True") {
        return Some(InstallPlan::Complete);
    }
    let reasons = status.members.iter().filter_map(|member| Reason::from_name(member.state.as_deref()?));
    let is_failed = reasons.into_iter().any(|reason| !matches!(reason.remedy(), Remedy::Nothing | Remedy::Time));
    Some(if is_failed { InstallPlan::Failed } else { InstallPlan::Installing })
}

/// The phase of the InstallPlan of a package that a set is without: OLM creates one only if the package fits.
pub fn install_plan_without(left_out: &LeftOut) -> Option<InstallPlan> {
    (left_out.reason == Reason::PreflightFailed.as_str()).then_some(InstallPlan::Failed)
}

/// The phase of the InstallPlan that a BundleDeployment without a Resolution would have.
pub fn install_plan_of(deployment: &BundleDeployment) -> InstallPlan {
    match phase(deployment) {
        // Nothing is wrong while it is suspended, or its files are awaited.
        Csv::Pending
            if reason(deployment).is_none_or(|reason| {
                reason.remedy() == Remedy::Time || matches!(reason, Reason::Suspended | Reason::UploadPending)
            }) =>
        {
            InstallPlan::Planning
        }
        Csv::InstallReady => InstallPlan::RequiresApproval,
        Csv::Installing => InstallPlan::Installing,
        Csv::Pending | Csv::Failed if !is_true(deployment, ConditionType::Installed) => InstallPlan::Failed,
        // A bundle that was installed completely and broke later is a failed ClusterServiceVersion, not a failed plan.
        _ => InstallPlan::Complete,
    }
}

/// The ClusterServiceVersions that a BundleDeployment would have: what runs, and what takes its place. Without the BundleDeployment of a
/// member, its bundle waits for what it needs.
pub fn csvs(deployment: Option<&BundleDeployment>, bundle: &str) -> Vec<CsvState> {
    let one = |name: &str, phase| CsvState { name: name.to_owned(), phase };
    let Some(deployment) = deployment else { return vec![one(bundle, Csv::Pending)] };
    let status = deployment.status.clone().unwrap_or_default();
    let installed = status.bundle.as_ref().and_then(|it| it.name.clone().or_else(|| it.version.clone()));
    if deployment.metadata.deletion_timestamp.is_some() {
        return vec![one(installed.as_deref().unwrap_or(bundle), Csv::Deleting)];
    }
    let next = status.candidate.as_ref().and_then(|it| it.name.clone().or_else(|| it.version.clone()));
    let succeeded = status.history.iter().any(|revision| revision.outcome == Outcome::Succeeded);
    let phase = phase(deployment);
    match (installed, next) {
        (Some(old), Some(new)) if succeeded && old != new => {
            let is_replaced = matches!(phase, Csv::Installing);
            vec![one(&old, if is_replaced { Csv::Replacing } else { running(deployment) }), one(&new, phase)]
        }
        (_, Some(new)) => vec![one(&new, phase)],
        (Some(name), None) => match rolled_out(&status, &name) {
            Some((old, new)) => vec![one(&old, Csv::Replacing), one(&new, phase)],
            // The next version is not known yet; the current one keeps running.
            None if runs_complete(&status) && phase != Csv::Installing => vec![one(&name, running(deployment))],
            None => vec![one(&name, phase)],
        },
        (None, None) => vec![one(bundle, phase)],
    }
}

/// Whether the current revision is complete.
fn runs_complete(status: &BundleDeploymentStatus) -> bool {
    status.history.last().is_some_and(|current| current.outcome == Outcome::Succeeded)
}

/// The names of the bundle that is being replaced and of the one that is being rolled out. `described` is the name in the status: of the new
/// one once its first object is written, and of the old one until then.
fn rolled_out(status: &BundleDeploymentStatus, described: &str) -> Option<(String, String)> {
    let (current, before) = status.history.split_last()?;
    let succeeded = before.iter().rev().find(|revision| revision.outcome == Outcome::Succeeded)?;
    let (old, new) = (succeeded.version.as_ref()?, current.version.as_ref()?);
    if current.outcome != Outcome::RollingOut || old == new {
        return None;
    }
    // A revision has no name; bundle names end with the version.
    let with =
        |from: &str, to: &String| described.strip_suffix(from).map_or_else(|| to.clone(), |stem| format!("{stem}{to}"));
    let is_old = status.bundle.as_ref().and_then(|bundle| bundle.version.as_ref()) == Some(old);
    Some(if is_old { (described.to_owned(), with(old, new)) } else { (with(new, old), described.to_owned()) })
}

/// The phase of what is being installed, or, once that is done, of what is installed.
fn phase(deployment: &BundleDeployment) -> Csv {
    if deployment.metadata.deletion_timestamp.is_some() {
        return Csv::Deleting;
    }
    let Some(reason) = reason(deployment) else { return Csv::Pending };
    match reason {
        Reason::Succeeded | Reason::Suspended | Reason::RolledBack => running(deployment),
        Reason::ApprovalRequired => Csv::InstallReady,
        Reason::RollingOut | Reason::Installing => Csv::Installing,
        Reason::Deleting | Reason::CustomResourcesExist => Csv::Deleting,
        Reason::Unpacking | Reason::UnpackPending => Csv::Pending,
        Reason::Unhealthy => Csv::Failed,
        _ if reason.remedy() == Remedy::Requirement => Csv::Pending,
        _ if reason.remedy() == Remedy::Time => Csv::Pending,
        _ => Csv::Failed,
    }
}

/// The phase of what runs.
fn running(deployment: &BundleDeployment) -> Csv {
    match Overview::of(deployment).health() {
        Some(Health::Healthy) => Csv::Succeeded,
        Some(Health::Unhealthy(_)) => Csv::Failed,
        Some(Health::Unknown(_)) if is_true(deployment, ConditionType::Installed) => Csv::Failed,
        _ => Csv::Pending,
    }
}

/// Why the BundleDeployment is as it is: the reason of `Progressing` of the current spec.
fn reason(deployment: &BundleDeployment) -> Option<Reason> {
    let progressing = condition(deployment, ConditionType::Progressing)?;
    let is_current = progressing.observed_generation >= deployment.metadata.generation;
    Reason::from_name(&progressing.reason).filter(|_| is_current)
}

fn is_true(deployment: &BundleDeployment, kind: ConditionType) -> bool {
    condition(deployment, kind).is_some_and(|condition| condition.status == "True")
}

fn condition(deployment: &BundleDeployment, kind: ConditionType) -> Option<&Condition> {
    find_condition(&deployment.status.as_ref()?.conditions, kind)
}

#[cfg(test)]
mod tests;
