//! What the user can do next.

use chandler_api::{ConditionType, Reason, find_condition};

use super::{
    super::{advice::advice, conditions, overview::Overview, resolution_progress},
    Found, Package,
};

/// The most suggested actions.
const ACTIONS: usize = 6;

/// Suggested actions: about the members that are not ready, else about the Resolution.
pub(super) fn actions(found: &Found, packages: &[Package]) -> Vec<String> {
    let mut actions: Vec<String> = Vec::new();
    let mut add = |action: Option<String>| {
        if let Some(action) = action.filter(|action| !actions.contains(action)) {
            actions.push(action);
        }
    };
    let pending = found.resolution.as_ref().and_then(|it| it.status.as_ref()?.pending.as_ref());
    if let Some(pending) = pending {
        let name = found.resolution.as_ref().and_then(|it| it.metadata.name.clone()).unwrap_or_default();
        let is_suspended = found.resolution.as_ref().is_some_and(|it| it.spec.suspend);
        let reason = Reason::from_name(&pending.reason);
        add(reason.and_then(|reason| resolution_progress::advice(reason, &name, is_suspended)));
    }
    if found.left_out().is_some_and(|it| it.reason == Reason::PreflightFailed.as_str()) {
        add(advice(Reason::PreflightFailed, ""));
    }
    for name in packages.iter().filter_map(|package| package.bundle_deployment.as_ref()) {
        let deployment = found.deployments.get(name);
        if deployment.is_some_and(|deployment| Overview::of(deployment).pinned.is_some()) {
            add(Some(format!("to roll out the spec again: `chandler rollback {name} --cancel`")));
        }
        let drifted = deployment.and_then(|it| find_condition(&it.status.as_ref()?.conditions, ConditionType::Drifted));
        let drifted = drifted.filter(|drifted| drifted.status == "True");
        add(drifted.and_then(|it| Reason::from_name(&it.reason)).and_then(|reason| advice(reason, name)));
    }
    for package in packages.iter().filter(|package| !package.ready) {
        let Some(name) = &package.bundle_deployment else { continue };
        let Some(status) = found.deployments.get(name).and_then(|it| it.status.as_ref()) else { continue };
        for reason in conditions::causes(&status.conditions) {
            add(advice(reason, name));
        }
    }
    if let Some(resolution) = &found.resolution
        && pending.is_none()
    {
        let name = format!("resolution/{}", resolution.metadata.name.as_deref().unwrap_or_default());
        let status = resolution.status.clone().unwrap_or_default();
        let to_decision = resolution.spec.output.as_ref().and_then(|it| it.resolve_set.as_ref()?.to_decision);
        if to_decision.is_some() {
            add(Some(format!("to follow the catalogs again: `chandler rollback {name} --undo`")));
        }
        if resolution.spec.suspend {
            add(advice(Reason::Suspended, &name));
        }
        let resolved = find_condition(&status.conditions, ConditionType::Resolved).filter(|it| it.status != "True");
        add(resolved.and_then(|it| Reason::from_name(&it.reason)).and_then(|reason| advice(reason, &name)));
        let ready = find_condition(&status.conditions, ConditionType::Ready).filter(|it| it.status != "True");
        let ready = ready.and_then(|it| Reason::from_name(&it.reason));
        add(ready.and_then(|reason| match reason {
            Reason::ObjectCollision | Reason::InvalidSpec => advice(reason, &name),
            // The members have the causes of everything else.
            _ => {
                let name = resolution.metadata.name.as_deref().unwrap_or_default();
                resolution_progress::advice(reason, name, resolution.spec.suspend)
            }
        }));
    }
    actions.truncate(ACTIONS);
    actions
}
