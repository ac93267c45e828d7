//! The situation of every object of a release, within bounds.

use std::sync::Arc;

use chandler_core::{Budget, Stop};
use serde_json::Value;

use crate::{
    cpu,
    desired::Desired,
    error::{ComparisonTooLarge, RolloutError},
    owner::Owner,
    plan::Situation,
};

/// How many steps comparing one object may take in one pass: some hundred times as many as the largest object has values.
const STEPS: u64 = 50_000_000;

/// What there is to an object: what it should be, and what is there.
type Pair = (Desired, Option<Value>);

/// Lays what is left to others over what is desired of the objects that exist, and tells the situation of each. Large objects
/// are compared on threads for that, one after the other.
pub(crate) async fn of_all(
    owner: &Owner,
    desired: Vec<Desired>,
    live: Vec<Option<Value>>,
) -> Result<(Vec<Desired>, Vec<Option<Value>>, Vec<Situation>), RolloutError> {
    let mut shared = None;
    let (mut all_desired, mut all_live) = (Vec::with_capacity(desired.len()), Vec::with_capacity(live.len()));
    let mut situations = Vec::with_capacity(desired.len());
    for (desired, live) in desired.into_iter().zip(live) {
        let budget = Budget::new(STEPS);
        let key = desired.key.clone();
        let stopped = |stop: Stop| match stop {
            Stop::Exhausted { limit } => RolloutError::ComparisonTooLarge(ComparisonTooLarge { object: key, limit }),
            Stop::Cancelled => RolloutError::OwnerGone(format!("{} {}", owner.kind, owner.name)),
        };
        let large = cpu::is_large([&desired.value].into_iter().chain(&live));
        let (pair, found) = if large {
            let owner = Arc::clone(shared.get_or_insert_with(|| Arc::new(owner.clone())));
            let steps = budget.clone();
            match cpu::run(&budget, move || of(&owner, (desired, live), &steps)).await {
                Ok(compared) => compared,
                Err(stop) => return Err(stopped(stop)),
            }
        } else {
            of(owner, (desired, live), &budget)
        };
        situations.push(found.map_err(stopped)?);
        all_desired.push(pair.0);
        all_live.push(pair.1);
    }
    Ok((all_desired, all_live, situations))
}

/// The pair comes back: it may have been on another thread.
fn of(owner: &Owner, (mut desired, live): Pair, budget: &Budget) -> (Pair, Result<Situation, Stop>) {
    let mut laid_over = Ok(());
    if let Some(live) = &live {
        if owner.ledger.is_none() {
            desired.keep_seal(live);
        }
        laid_over = owner.ignored.lay_over(&mut desired, live, budget);
    }
    let found = laid_over.and_then(|()| Situation::of(&desired, live.as_ref(), owner, budget));
    ((desired, live), found)
}
