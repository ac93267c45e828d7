//! PodDisruptionBudgets: how many Pods may go.

use serde_json::Value;

use super::{
    action::Decision,
    conditions::Conditions,
    fields::{Status, generation, labels, scaled},
    kind::Kind,
    labels::selects,
    pods,
    world::World,
};
use crate::metadata;

pub(super) fn reconcile(world: &World<'_>, budget: &Value) -> Decision {
    let mut decision = Decision::default();
    if metadata::is_deleting(budget) {
        return decision;
    }
    let selector = budget.pointer("/spec/selector");
    let all = world.cache.namespace(Kind::Pod, metadata::namespace(budget));
    let selected: Vec<&Value> =
        all.map(AsRef::as_ref).filter(|pod| pods::is_active(pod) && selects(selector, labels(pod))).collect();
    let counted = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let expected = counted(selected.len());
    let healthy = counted(selected.iter().filter(|pod| pods::is_ready(pod)).count());
    let wanted = match (budget.pointer("/spec/maxUnavailable"), budget.pointer("/spec/minAvailable")) {
        (Some(unavailable), _) => (expected - scaled(Some(unavailable), expected, true)).max(0),
        (None, least) => scaled(least, expected, true),
    };
    let allowed = if expected == 0 { 0 } else { (healthy - wanted).max(0) };
    let mut conditions = Conditions::of(budget, &world.timestamp(), None);
    let (status, reason) = if allowed > 0 { ("True", "SufficientPods") } else { ("False", "InsufficientPods") };
    conditions.set("DisruptionAllowed", status, reason, "");
    if let Some(mut condition) = conditions.get("DisruptionAllowed").cloned() {
        let fields = metadata::as_map(&mut condition);
        fields.insert("message".to_owned(), "".into());
        fields.insert("observedGeneration".to_owned(), generation(budget).into());
        conditions.put(condition);
    }
    let status = Status::observed(budget)
        // All four are required.
        .set("currentHealthy", healthy)
        .set("desiredHealthy", wanted)
        .set("disruptionsAllowed", allowed)
        .set("expectedPods", expected)
        .set_some("disruptedPods", budget.pointer("/status/disruptedPods").cloned())
        .set_some("conditions", conditions.build());
    decision.status(Kind::PodDisruptionBudget, budget, &status.build());
    decision
}
