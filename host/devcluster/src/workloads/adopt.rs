//! Taking in what matches a workload's selector and has no controller (`ControllerRefManager`).

use serde_json::{Value, json};

use super::{
    action::Decision,
    fields::{controller_reference, labels, list, text},
    kind::Kind,
    labels::selects,
    world::World,
};
use crate::metadata;

/// Adopts matching objects and releases others. Returns whether anything must be changed.
pub(super) fn adopt(world: &World<'_>, kind: Kind, owner: &Value, of: Kind, decision: &mut Decision) -> bool {
    adopt_named(world, kind, owner, of, |_| true, decision)
}

/// As [`adopt`], of those whose names fit.
pub(super) fn adopt_named(
    world: &World<'_>,
    kind: Kind,
    owner: &Value,
    of: Kind,
    fits: impl Fn(&str) -> bool,
    decision: &mut Decision,
) -> bool {
    let selector = owner.pointer("/spec/selector");
    let before = decision.actions.len();
    // A selector that selects everything is a mistake.
    let is_empty = selector.and_then(Value::as_object).is_none_or(serde_json::Map::is_empty);
    if !is_empty {
        let orphans = world.orphans(of, metadata::namespace(owner));
        for orphan in orphans.filter(|orphan| selects(selector, labels(orphan)) && fits(metadata::name(orphan))) {
            let mut references = list(orphan, "/metadata/ownerReferences").to_vec();
            references.push(controller_reference(kind, owner));
            decision.change(of, orphan, json!({"metadata": {"ownerReferences": references}}));
        }
    }
    for owned in world.living(of, owner).into_iter().filter(|owned| !selects(selector, labels(owned))) {
        let mut references = list(owned, "/metadata/ownerReferences").to_vec();
        references.retain(|reference| text(reference, "/uid") != metadata::uid(owner));
        decision.change(of, owned, json!({"metadata": {"ownerReferences": references}}));
    }
    decision.actions.len() > before
}
