//! What the user can do next.

use chandler_api::{ConditionType, Reason, Remedy, ReportingKind, find_condition};

use super::{
    super::{
        advice::{advice, deployment_advice, is_copied},
        conditions,
        overview::Overview,
        subject::Subject,
    },
    Found, Package,
};

/// The most suggested actions.
const ACTIONS: usize = 6;

/// Suggested actions: about the members that are not ready, else about the Resolution.
pub(super) fn actions(found: &Found, packages: &[Package]) -> Vec<String> {
    let mut actions: Vec<String> = Vec::new();
    let subject = found.resolution.as_ref().map(Subject::resolution);
    let of_resolution = |reason: Option<Reason>| advice(reason?, subject.as_ref()?);
    let pending = found.resolution.as_ref().and_then(|it| it.status.as_ref()?.pending.as_ref());
    if let Some(pending) = pending {
        add(&mut actions, of_resolution(Reason::from_name(&pending.reason)));
    }
    if found.left_out().is_some_and(|it| it.reason == Reason::PreflightFailed.as_str()) {
        add(&mut actions, of_resolution(Some(Reason::PreflightFailed)));
    }
    for name in packages.iter().filter_map(|package| package.bundle_deployment.as_ref()) {
        let deployment = found.deployments.get(name);
        if deployment.is_some_and(|deployment| Overview::of(deployment).pinned.is_some()) {
            add(&mut actions, Some(format!("to roll out the spec again: `chandler rollback {name} --cancel`")));
        }
        let drifted = deployment.and_then(|it| find_condition(&it.status.as_ref()?.conditions, ConditionType::Drifted));
        let drifted = drifted.filter(|drifted| drifted.status == "True");
        let reason = drifted.and_then(|it| Reason::from_name(&it.reason));
        add(&mut actions, reason.and_then(|reason| advice(reason, &Subject::deployment(name))));
    }
    for package in packages.iter().filter(|package| !package.ready) {
        let Some(name) = &package.bundle_deployment else { continue };
        let Some(deployment) = found.deployments.get(name) else { continue };
        let Some(status) = &deployment.status else { continue };
        let overview = Overview::of(deployment);
        for reason in conditions::causes(&status.conditions) {
            add(&mut actions, deployment_advice(reason, &overview));
        }
    }
    if let (Some(resolution), Some(subject), None) = (&found.resolution, &subject, pending) {
        let status = resolution.status.clone().unwrap_or_default();
        let to_decision = resolution.spec.output.as_ref().and_then(|it| it.resolve_set.as_ref()?.to_decision);
        if to_decision.is_some() {
            add(&mut actions, Some(format!("to follow the catalogs again: `chandler rollback {subject} --undo`")));
        }
        if resolution.spec.suspend {
            add(&mut actions, advice(Reason::Suspended, subject));
        }
        let reason_of = |kind| {
            let condition = find_condition(&status.conditions, kind).filter(|it| it.status != "True");
            condition.and_then(|it| Reason::from_name(&it.reason))
        };
        add(&mut actions, of_resolution(reason_of(ConditionType::Resolved)));
        match reason_of(ConditionType::Ready) {
            // The members have the cause, or else the set has it.
            Some(reason) if is_copied(reason, ReportingKind::Resolution) => {
                let set = status.bundle_deployment.as_deref().filter(|_| actions.is_empty());
                add(&mut actions, set.and_then(|set| advice(reason, &Subject::deployment(set))));
            }
            Some(reason) if reason.remedy() == Remedy::Time && !actions.is_empty() => {}
            reason => add(&mut actions, of_resolution(reason)),
        }
    }
    actions.truncate(ACTIONS);
    actions
}

/// Adds an action, once.
fn add(actions: &mut Vec<String>, action: Option<String>) {
    if let Some(action) = action.filter(|action| !actions.contains(action)) {
        actions.push(action);
    }
}
