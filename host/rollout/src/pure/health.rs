//! The health of an object of a release. Pure.

use chandler_core::ObjectKey;
use chandler_health::{Dependencies, Health, Probes, assess, probe::Budget};
use serde_json::Value;

/// The health of an object of the release, by the rules of its kind and by the health rules that apply to it.
pub(crate) fn assess_object(
    probes: &Probes,
    key: &ObjectKey,
    live: Option<&Value>,
    dependencies: &Dependencies,
    budget: &mut Budget,
) -> Health {
    let Some(live) = live else { return Health::progressing("does not exist") };
    let health = assess(live, dependencies);
    if health.is_healthy() { probes.assess(key, live, budget) } else { health }
}
