//! The progress of a Resolution: whether its set is complete and healthy, still on its way, or waits for a user.

use chandler_api::{ConditionType, Reason, Resolution, find_condition};

use super::{overview::Decision, progress_reporter::RolloutState};

/// The state of a Resolution.
pub fn state(resolution: &Resolution) -> RolloutState {
    let waiting = |message: &str, reason: Option<&str>| RolloutState::Waiting {
        message: message.to_owned(),
        reason: reason.map(str::to_owned),
    };
    let Some(status) = &resolution.status else { return waiting("the controller", None) };
    if status.observed_generation < resolution.metadata.generation {
        return waiting("the controller has not observed the current spec yet", None);
    }
    let Some(ready) = find_condition(&status.conditions, ConditionType::Ready) else {
        return waiting("the controller", None);
    };
    if ready.status == "True" {
        return RolloutState::Healthy;
    }
    let stalled = find_condition(&status.conditions, ConditionType::Stalled).filter(|stalled| stalled.status == "True");
    let decision = stalled.and_then(|stalled| match Reason::from_name(&stalled.reason) {
        Some(Reason::ApprovalRequired) => Some(Decision::Approve),
        Some(Reason::Suspended) => Some(Decision::Resume),
        _ => None,
    });
    match stalled {
        Some(stalled) if let Some(decision) = decision => {
            RolloutState::Paused { decision, message: stalled.message.clone() }
        }
        Some(stalled) => {
            let (reason, message) = (stalled.reason.clone(), stalled.message.clone());
            RolloutState::Failed { reason, message, runs: None, is_retried: false }
        }
        None => waiting(&ready.message, Some(&ready.reason)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(generation: i64, conditions: &[(&str, &str, &str)]) -> RolloutState {
        let one = |(kind, status, reason): &(&str, &str, &str)| {
            json!({"type": kind, "status": status, "reason": reason, "message": "m", "observedGeneration": 1,
                   "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let conditions: Value = conditions.iter().map(one).collect();
        let resolution = json!({
            "apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution",
            "metadata": {"name": "shop", "generation": generation}, "spec": {"packages": []},
            "status": {"observedGeneration": 1, "conditions": conditions},
        });
        state(&serde_json::from_value(resolution).unwrap())
    }

    #[test]
    fn a_resolution_is_settled_once_it_is_ready_or_waits_for_a_user() {
        assert_eq!(of(1, &[("Ready", "True", "Succeeded")]), RolloutState::Healthy);
        assert!(matches!(of(2, &[("Ready", "True", "Succeeded")]), RolloutState::Waiting { .. }), "an older spec");
        assert!(matches!(of(1, &[("Ready", "False", "RollingOut")]), RolloutState::Waiting { reason: Some(_), .. }));
        let refused = of(1, &[("Ready", "False", "NotSatisfiable"), ("Stalled", "True", "NotSatisfiable")]);
        assert!(matches!(refused, RolloutState::Failed { reason, .. } if reason == "NotSatisfiable"));
        let waits = of(1, &[("Ready", "False", "ApprovalRequired"), ("Stalled", "True", "ApprovalRequired")]);
        assert!(matches!(waits, RolloutState::Paused { decision: Decision::Approve, .. }));
    }
}
