//! Health by the conditions of an object, for any kind.

use crate::{
    health::Health,
    reader::{Condition, Reader},
};

/// Rules for every kind: the observed generation, and the conditions of kstatus itself.
pub(crate) fn of_any_kind(object: Reader<'_>, kind: &str) -> Option<Health> {
    let generation = object.number("/metadata/generation");
    // kstatus compares for equality. An object that was restored from a backup may have a larger observed generation.
    if let (Some(generation), Some(observed)) = (generation, object.number("/status/observedGeneration"))
        && observed < generation
    {
        return Some(Health::progressing(format!(
            "its controller has observed generation {observed} of {generation} of this {kind}"
        )));
    }
    object.conditions().find_map(|condition| match (condition.kind, condition.status) {
        ("Reconciling", "True") => Some(Health::progressing(condition.text())),
        ("Stalled", "True") => Some(Health::failed(condition.text())),
        _ => None,
    })
}

/// A kind whose controller always sets the condition `Ready` sooner or later.
pub(crate) fn must_be_ready(object: Reader<'_>) -> Health {
    match object.condition("Ready") {
        Some(ready) => by_condition(object, ready),
        None => Health::progressing("has no condition Ready yet"),
    }
}

/// An unknown kind: `Ready` counts, else `Available` and `Degraded`. Without these conditions there is nothing to wait for.
pub(crate) fn of_custom_kind(object: Reader<'_>) -> Health {
    if let Some(ready) = object.condition("Ready") {
        return by_condition(object, ready);
    }
    if let Some(degraded) = object.conditions().find(|condition| condition.is("Degraded", "True")) {
        return Health::degraded(degraded.text());
    }
    object.condition("Available").map_or_else(Health::healthy, |available| by_condition(object, available))
}

/// A condition that should be `True` for the current generation.
fn by_condition(object: Reader<'_>, condition: Condition<'_>) -> Health {
    if let (Some(generation), Some(observed)) = (object.number("/metadata/generation"), condition.observed_generation)
        && observed < generation
    {
        let kind = condition.kind;
        return Health::progressing(format!("condition {kind} was set for generation {observed} of {generation}"));
    }
    if condition.status == "True" { Health::healthy() } else { Health::progressing(condition.text()) }
}
