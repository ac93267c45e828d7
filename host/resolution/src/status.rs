//! The status of a Resolution. The clock comes in as an argument.

use std::collections::BTreeMap;

use chandler_api::{
    BundleDeployment, CatalogInUse, ConditionType as Type, DecisionSummary, HeldBack, NewCondition, PendingDecision,
    Reason, Resolution, ResolutionStatus, ResolvedMember,
    conditions::{remove_condition, whole_seconds},
    find_condition, set_condition,
};
use chandler_core::text;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Condition, jiff::Timestamp};

use crate::{Plan, PlannedMember, names::deployment_name, shown::shown};

/// The most lines of an explanation.
const EXPLANATION: usize = 50;
/// The most names of bundles in one text.
const BUNDLES: usize = 21;
/// The most notes.
const NOTES: usize = 20;

/// What a reconcile found.
#[derive(Clone, Debug, Default)]
pub struct Found<'a> {
    /// The answer.
    pub answer: Answer,
    /// The catalogs that were read.
    pub catalogs: Vec<CatalogInUse>,
    /// The set that is installed or being installed, if the output is a ResolveSet.
    pub set: Option<Set<'a>>,
    /// The reason of the condition Ready of each BundleDeployment that has a member, by name; those outside of the set among them.
    pub states: BTreeMap<String, String>,
    /// The decision that waits.
    pub pending: Option<PendingDecision>,
    /// What would be chosen if a part of the spec were different.
    pub alternatives: Vec<String>,
    /// What the deletion waits for before it begins.
    pub held: Option<String>,
}

/// The answer to the question of the spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Answer {
    /// There is none yet.
    #[default]
    None,
    /// Nothing new is decided, since the spec says so.
    Suspended,
    /// Nothing new is decided, since the spec names an earlier decision.
    RolledBack(i64),
    /// What is to be installed now.
    Plan(Plan),
    /// The packages cannot be installed together.
    Refused {
        /// Why, in one text.
        message: String,
        /// Why, a line each.
        explanation: Vec<String>,
    },
    /// The question could not be asked, or the decision not be put into effect.
    Failed {
        /// The reason of the condition.
        reason: Reason,
        /// Why.
        message: String,
    },
}

/// The set that is installed or being installed.
#[derive(Clone, Debug, Default)]
pub struct Set<'a> {
    /// The number of the decision.
    pub number: i64,
    /// The name of its BundleDeployment.
    pub deployment: String,
    /// Whether a later decision failed, and this one was installed again instead.
    pub rolled_back: bool,
    /// Its BundleDeployment, if it exists and has the decision.
    pub observed: Option<&'a BundleDeployment>,
    /// Its members.
    pub members: Vec<PlannedMember>,
    /// The decisions that are kept.
    pub history: Vec<DecisionSummary>,
}

/// The status after a reconcile.
pub fn derive(resolution: &Resolution, found: &Found<'_>, now: Timestamp) -> ResolutionStatus {
    let mut status = resolution.status.clone().unwrap_or_default();
    let generation = resolution.metadata.generation;
    status.observed_generation = generation;
    status.decision = found.set.as_ref().map(|set| set.number);
    status.bundle_deployment = found.set.as_ref().map(|set| set.deployment.clone());
    status.history = found.set.as_ref().map(|set| set.history.clone()).unwrap_or_default();
    status.pending.clone_from(&found.pending);
    if !matches!(found.answer, Answer::Suspended | Answer::RolledBack(_)) {
        status.alternatives.clone_from(&found.alternatives);
        status.catalogs.clone_from(&found.catalogs);
    }
    (status.explanation, status.notes) = match &found.answer {
        Answer::Refused { explanation, .. } => (lines(explanation, EXPLANATION), Vec::new()),
        Answer::Plan(plan) => (Vec::new(), lines(&[&plan.waiting[..], &plan.notes].concat(), NOTES)),
        _ => (Vec::new(), Vec::new()),
    };
    if !matches!(found.answer, Answer::Suspended | Answer::RolledBack(_)) {
        status.left_out = match &found.answer {
            Answer::Plan(plan) => plan.left_out.clone(),
            _ => Vec::new(),
        };
    }
    if let Some(members) = members(found) {
        status.members = members;
        status.bundles = bundles(&status.members);
    }
    let mut set = |condition: Option<NewCondition>, kind: Type| match condition {
        Some(condition) => {
            set_condition(&mut status.conditions, condition, generation, whole_seconds(now));
        }
        None => drop(remove_condition(&mut status.conditions, kind)),
    };
    if let Some(condition) = resolved(&found.answer) {
        set(Some(condition), Type::Resolved);
    }
    let installed = found.set.as_ref().map(|set| mirrored(Type::Installed, set));
    let healthy = found.set.as_ref().map(|set| mirrored(Type::Healthy, set));
    set(installed.clone(), Type::Installed);
    set(healthy, Type::Healthy);
    set_ready(&mut status, ready(resolution, found), generation, now);
    shown(status)
}

/// The status after a reconcile that ended with a failed request to the API server: earlier results stay, except that the Resolution is not
/// ready.
pub fn interrupted(resolution: &Resolution, reason: Reason, message: &str, now: Timestamp) -> ResolutionStatus {
    let mut status = resolution.status.clone().unwrap_or_default();
    let generation = resolution.metadata.generation;
    status.observed_generation = generation;
    set_ready(&mut status, NewCondition::is_false(Type::Ready, reason, message), generation, now);
    status
}

/// Sets Ready, and the conditions of kstatus that follow from it.
fn set_ready(status: &mut ResolutionStatus, ready: NewCondition, generation: Option<i64>, now: Timestamp) {
    let is_ready = ready.status == chandler_api::ConditionStatus::True;
    let time_may_help = ready.reason.remedy().time_may_help();
    for (kind, wanted) in [(Type::Reconciling, time_may_help), (Type::Stalled, !time_may_help)] {
        if !is_ready && wanted {
            let condition = NewCondition::is_true(kind, ready.reason, ready.message.clone());
            set_condition(&mut status.conditions, condition, generation, whole_seconds(now));
        } else {
            remove_condition(&mut status.conditions, kind);
        }
    }
    set_condition(&mut status.conditions, ready, generation, whole_seconds(now));
}

/// The lines, at most `most`, of which the last says how many are left out.
pub(crate) fn lines(all: &[String], most: usize) -> Vec<String> {
    if all.len() <= most {
        return all.to_vec();
    }
    let kept = most.saturating_sub(1);
    let mut lines: Vec<String> = all.iter().take(kept).cloned().collect();
    lines.push(format!("and {} more", all.len() - kept));
    lines
}

/// The members for the status, or `None` if the last reported ones stay.
fn members(found: &Found<'_>) -> Option<Vec<ResolvedMember>> {
    let members: Vec<&PlannedMember> = match (&found.answer, &found.set) {
        (Answer::Plan(plan), Some(set)) if set.rolled_back || found.pending.is_some() => {
            // What waits is listed apart; what others have does not wait.
            let is_new = |it: &&PlannedMember| !set.members.iter().any(|member| member.package == it.package);
            let elsewhere = plan.members.iter().filter(|it| it.elsewhere.is_some()).filter(is_new);
            let mut members: Vec<&PlannedMember> = set.members.iter().chain(elsewhere).collect();
            members.sort_by(|one, other| one.package.cmp(&other.package));
            members
        }
        (Answer::Plan(plan), _) => plan.members.iter().collect(),
        (_, Some(set)) => set.members.iter().collect(),
        _ => return None,
    };
    // The plan knows it even if the members still belong to the previous set.
    let held_back = |package: &str| match &found.answer {
        Answer::Plan(plan) => plan.members.iter().find(|it| it.package == package)?.held_back.as_ref(),
        _ => None,
    };
    let reported = |member: &PlannedMember| {
        let own = found.set.as_ref().map(|set| {
            let in_set = set.members.iter().find(|it| it.package == member.package);
            in_set.map_or_else(|| deployment_name(&member.package), PlannedMember::deployment_name)
        });
        let deployment = member.elsewhere.clone().or(own);
        ResolvedMember {
            package: member.package.clone(),
            bundle: member.bundle.clone(),
            version: member.version.clone(),
            catalog: member.catalog.clone(),
            channel: member.channel.clone(),
            image: member.image.clone(),
            path: member.path.clone(),
            reasons: member.reasons.clone(),
            state: deployment.as_ref().and_then(|name| found.states.get(name).cloned()),
            bundle_deployment: deployment,
            deprecated: member.deprecated.clone(),
            held_back: held_back(&member.package)
                .map(|it| HeldBack { version: it.version.clone(), explanation: it.by.clone() }),
        }
    };
    Some(members.into_iter().map(reported).collect())
}

/// The names of the bundles in one text.
fn bundles(members: &[ResolvedMember]) -> String {
    let names: Vec<String> = members.iter().map(|member| member.bundle.clone()).collect();
    lines(&names, BUNDLES).join(", ")
}

fn resolved(answer: &Answer) -> Option<NewCondition> {
    let kind = Type::Resolved;
    Some(match answer {
        Answer::Plan(plan) => {
            let packages = text::count(plan.members.len(), "package");
            let left_out = match plan.left_out.len() {
                0 => String::new(),
                some => format!("; {} left out", text::count(some, "optional package")),
            };
            NewCondition::is_true(kind, Reason::PackagesResolved, format!("the decision has {packages}{left_out}"))
        }
        Answer::Refused { message, .. } => NewCondition::is_false(kind, Reason::NotSatisfiable, message.clone()),
        Answer::Failed { reason, message } => NewCondition::is_unknown(kind, *reason, message.clone()),
        // Earlier results stay.
        Answer::None | Answer::Suspended | Answer::RolledBack(_) => return None,
    })
}

/// A condition of the BundleDeployment of the set, as one of the Resolution.
fn mirrored(kind: Type, set: &Set<'_>) -> NewCondition {
    let name = &set.deployment;
    match observed(set, kind) {
        Some(condition) => {
            let reason = Reason::from_name(&condition.reason).unwrap_or(Reason::Installing);
            let status = match condition.status.as_str() {
                "True" => chandler_api::ConditionStatus::True,
                "False" => chandler_api::ConditionStatus::False,
                _ => chandler_api::ConditionStatus::Unknown,
            };
            let message = if status == chandler_api::ConditionStatus::True {
                format!("BundleDeployment {name} has {}", text::count(set.members.len(), "member"))
            } else {
                format!("BundleDeployment {name}: {}", condition.message)
            };
            NewCondition { kind, status, reason, message }
        }
        None => NewCondition::is_unknown(
            kind,
            Reason::Installing,
            format!("BundleDeployment {name} has no such condition yet"),
        ),
    }
}

/// A condition that the BundleDeployment of the set has for its current spec.
fn observed<'a>(set: &Set<'a>, kind: Type) -> Option<&'a Condition> {
    let deployment = set.observed?;
    let status = deployment.status.as_ref()?;
    let condition = find_condition(&status.conditions, kind)?;
    (condition.observed_generation == deployment.metadata.generation).then_some(condition)
}

fn ready(resolution: &Resolution, found: &Found<'_>) -> NewCondition {
    let kind = Type::Ready;
    if resolution.metadata.deletion_timestamp.is_some() {
        if let Some(held) = &found.held {
            return NewCondition::is_false(kind, Reason::Deleting, held.clone());
        }
        let what = found.set.as_ref().map(|set| match observed(set, Type::Ready) {
            Some(condition) => format!("BundleDeployment {}: {}", set.deployment, condition.message),
            None => format!("BundleDeployment {} is being deleted", set.deployment),
        });
        return NewCondition::is_false(kind, Reason::Deleting, what.unwrap_or_else(|| "nothing is left".to_owned()));
    }
    match &found.answer {
        Answer::Failed { reason, message } => return NewCondition::is_false(kind, *reason, message.clone()),
        Answer::Refused { message, .. } => {
            return NewCondition::is_false(kind, Reason::NotSatisfiable, message.clone());
        }
        _ => {}
    }
    if let Some(pending) = &found.pending {
        let reason = Reason::from_name(&pending.reason).unwrap_or(Reason::RollingOut);
        return NewCondition::is_false(kind, reason, pending.message.clone());
    }
    let Some(set) = &found.set else {
        return match &found.answer {
            Answer::Plan(plan) => {
                let packages = text::count(plan.members.len(), "package");
                NewCondition::is_true(
                    kind,
                    Reason::Succeeded,
                    format!("the decision has {packages}, and none is to be installed"),
                )
            }
            Answer::Suspended => {
                NewCondition::is_false(kind, Reason::Suspended, "spec.suspend is true, and nothing was decided before")
            }
            _ => NewCondition::is_false(kind, Reason::RollingOut, "nothing is decided yet"),
        };
    };
    match observed(set, Type::Ready) {
        None => NewCondition::is_false(
            kind,
            Reason::RollingOut,
            format!("BundleDeployment {} is being created or changed", set.deployment),
        ),
        Some(condition) if condition.status != "True" => {
            let reason = Reason::from_name(&condition.reason).unwrap_or(Reason::RollingOut);
            NewCondition::is_false(kind, reason, format!("BundleDeployment {}: {}", set.deployment, condition.message))
        }
        Some(_) => complete(found, set),
    }
}

/// The set is installed and healthy.
fn complete(found: &Found<'_>, set: &Set<'_>) -> NewCondition {
    let kind = Type::Ready;
    let packages = text::count(set.members.len(), "package");
    match &found.answer {
        Answer::Plan(plan) => {
            let more = plan.set().filter(|member| member.path.len() > 1).map(|member| member.package.as_str());
            let more: Vec<&str> = more.collect();
            match (plan.waiting.first(), more.is_empty()) {
                (Some(waits), _) => NewCondition::is_false(kind, Reason::MembersNotHealthy, waits.clone()),
                (None, false) => {
                    let message = format!("further upgrades follow: {}", more.join(", "));
                    NewCondition::is_false(kind, Reason::RollingOut, message)
                }
                (None, true) => {
                    let message = format!("decision {}: {packages} installed and healthy", set.number);
                    NewCondition::is_true(kind, Reason::Succeeded, message)
                }
            }
        }
        Answer::RolledBack(number) => {
            let message = format!("decision {number}, which the spec names, is installed and healthy");
            NewCondition::is_true(kind, Reason::RolledBack, message)
        }
        _ => NewCondition::is_true(
            kind,
            Reason::Suspended,
            format!("decision {} stays: spec.suspend is true", set.number),
        ),
    }
}
