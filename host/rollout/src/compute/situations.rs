//! Determines the situation of every object of a release, within bounds.

use std::sync::Arc;

use chandler_core::{Budget, Stop};
use serde_json::Value;

use crate::{
    compute::cpu,
    pure::{
        desired::Desired,
        error::{ComparisonTooLarge, RolloutError},
        owner::Owner,
        situation::Situation,
    },
};

/// The number of steps for comparing one object in one reconcile: several hundred times the number of values in the largest
/// object.
const STEPS: u64 = 50_000_000;

/// The desired and the live state of an object.
type Pair = (Desired, Option<Value>);

/// Calls [`within`] with the default number of steps.
pub(crate) async fn of_all(
    owner: &Owner,
    desired: Vec<Desired>,
    live: Vec<Option<Value>>,
) -> Result<Compared, RolloutError> {
    within(STEPS, owner, desired, live).await
}

/// The desired objects, the live objects, and the situation of each.
type Compared = (Vec<Desired>, Vec<Option<Value>>, Vec<Situation>);

/// Replaces ignored fields of the desired objects by their live values, and determines the situation of each object. Large
/// objects are compared on threads of their own, one after the other.
async fn within(
    steps: u64,
    owner: &Owner,
    desired: Vec<Desired>,
    live: Vec<Option<Value>>,
) -> Result<Compared, RolloutError> {
    let mut shared = None;
    let (mut all_desired, mut all_live) = (Vec::with_capacity(desired.len()), Vec::with_capacity(live.len()));
    let mut situations = Vec::with_capacity(desired.len());
    for (desired, live) in desired.into_iter().zip(live) {
        let budget = Budget::new(steps);
        let key = desired.key.clone();
        let stopped = |stop: Stop| match stop {
            Stop::Exhausted { limit } => {
                RolloutError::ComparisonTooLarge(Box::new(ComparisonTooLarge { object: key, limit }))
            }
            Stop::Cancelled => RolloutError::Cancelled,
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

/// Returns the pair, which may have been moved to another thread.
fn of(owner: &Owner, (mut desired, live): Pair, budget: &Budget) -> (Pair, Result<Situation, Stop>) {
    let mut overlaid = Ok(());
    if let Some(live) = &live {
        desired.keep_seal(live, owner);
        overlaid = owner.ignored.overlay(&mut desired, live, budget);
    } else {
        desired.seal_again(owner);
    }
    let found = overlaid.and_then(|()| Situation::of(&desired, live.as_ref(), owner, budget));
    ((desired, live), found)
}

#[cfg(test)]
mod tests {
    use chandler_core::Reason;
    use serde_json::{Map, json};

    use super::*;
    use crate::pure::{
        desired::APPLIED,
        ignored::{Ignored, IgnoredFields},
        live::tests::owner,
    };

    fn desired(members: usize) -> Desired {
        let data: Map<String, Value> = (0..members).map(|number| (format!("a{number}"), json!("released"))).collect();
        let value =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}, "data": data});
        crate::pure::desired::tests::desired(&value, true)
    }

    fn ignoring(pointer: &str) -> Owner {
        let fields = IgnoredFields { json_pointers: vec![pointer.to_owned()], ..IgnoredFields::default() };
        Owner { ignored: Ignored::new([fields]).unwrap(), ..owner() }
    }

    /// Small objects are compared in place and large ones on a thread; the results are the same.
    #[tokio::test]
    async fn an_object_that_takes_too_many_steps_is_named() {
        for members in [10, 20_000] {
            let desired = desired(members);
            let mut live = desired.value.clone();
            live["metadata"]["annotations"] = json!({APPLIED: desired.digest});
            live["data"]["a0"] = json!("edited");
            let owner = ignoring("/data/*");
            let compare = |steps| within(steps, &owner, vec![desired.clone()], vec![Some(live.clone())]);
            let error = compare(5).await.err().unwrap();
            assert_eq!(error.reason(), Reason::ComparisonTooLarge);
            assert!(error.concerns(&desired.key) && !error.is_transient());
            let message = format!(
                "{} cannot be compared with the cluster in 5 steps: use fewer pointers in \
                 spec.ignoreDifferences, or make the object smaller",
                desired.key
            );
            assert_eq!(error.to_string(), message);
            let (compared, _, situations) = compare(STEPS).await.unwrap();
            assert_eq!(compared[0].value["data"]["a0"], "edited", "what is ignored is laid over");
            assert_eq!(situations, [Situation::SeemsChanged("/metadata/managedFields".to_owned())]);
        }
    }
}
