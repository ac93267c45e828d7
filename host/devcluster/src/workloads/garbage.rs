//! Deletes orphaned dependants on servers without a garbage collector.

use serde_json::Value;

use super::{
    action::Decision,
    fields::{controller, text},
    kind::{Key, Kind},
    world::World,
};
use crate::metadata;

/// Whether the controller of an object is one of the simulation's and is gone.
pub(super) fn is_left_behind(world: &World<'_>, object: &Value) -> bool {
    let Some(reference) = controller(object).filter(|_| !metadata::is_deleting(object)) else { return false };
    let Some(kind) = Kind::of_reference(reference) else { return false };
    let owner = world.cache.get(&Key::new(kind, metadata::namespace(object), text(reference, "/name")));
    owner.is_none_or(|owner| metadata::uid(owner) != text(reference, "/uid"))
}

pub(super) fn delete(kind: Kind, object: &Value) -> Decision {
    let mut decision = Decision::default();
    decision.delete(kind, object, None);
    decision
}
