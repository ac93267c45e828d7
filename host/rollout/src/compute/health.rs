//! Determines which objects of a release are unhealthy, within bounds.

use chandler_core::{Budget as Steps, ObjectKey, Stop};
use chandler_health::{Probes, probe::Budget};
use serde_json::Value;

use crate::{
    compute::cpu,
    pure::{dependencies::ReleaseDependencies, error::RolloutError, health::assess_object, report::Unhealthy},
};

/// The unhealthy objects. Rules in CEL about large objects take seconds, and are then evaluated on a thread of their own.
#[tracing::instrument(target = "chandler::trace", name = "probes", skip_all)]
pub(crate) async fn unhealthy(
    probes: Probes,
    dependencies: ReleaseDependencies,
    keys: Vec<ObjectKey>,
    live: Vec<Option<Value>>,
) -> Result<Vec<Unhealthy>, RolloutError> {
    // The rules have a budget of their own; this one only cancels.
    let steps = Steps::new(u64::MAX);
    let elsewhere = !probes.is_empty() && cpu::is_large(live.iter().flatten());
    let cancelled = |_: Stop| RolloutError::Cancelled;
    let found = if elsewhere {
        let cancel = steps.clone();
        cpu::run(&steps, move || assess_all(&probes, &dependencies, keys, &live, &cancel)).await.map_err(cancelled)?
    } else {
        assess_all(&probes, &dependencies, keys, &live, &steps)
    };
    found.map_err(cancelled)
}

fn assess_all(
    probes: &Probes,
    dependencies: &ReleaseDependencies,
    keys: Vec<ObjectKey>,
    live: &[Option<Value>],
    steps: &Steps,
) -> Result<Vec<Unhealthy>, Stop> {
    let mut unhealthy = Vec::new();
    let mut budget = Budget::default();
    for (object, live) in keys.into_iter().zip(live) {
        steps.step()?;
        let health = assess_object(probes, &object, live.as_ref(), dependencies.all(), &mut budget);
        if !health.is_healthy() {
            unhealthy.push(Unhealthy { object, health });
        }
    }
    Ok(unhealthy)
}
