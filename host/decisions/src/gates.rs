//! What a rollout waits for beyond the health rules of kinds, and when the health of a complete release is reported.

use std::time::Duration;

use chandler_api::{BundleDeployment, ConditionStatus, ConditionType, Probe, Reason, find_condition};
use chandler_core::ProbeSelector;
use chandler_health::{
    Debounce, Rule,
    debounce::{Decision, GRACE, Observed, debounce},
};
use chandler_rollout::Unhealthy;

/// The rules of `spec.probes`.
pub fn rules(deployment: &BundleDeployment) -> Vec<Rule> {
    deployment.spec.probes.iter().enumerate().map(|(number, probe)| rule(number, probe)).collect()
}

fn rule(number: usize, probe: &Probe) -> Rule {
    let Probe { selector, rule, message, message_expression } = probe;
    Rule {
        origin: format!("spec.probes[{number}]"),
        selector: ProbeSelector {
            group: selector.group.clone(),
            kind: selector.kind.clone(),
            namespace: selector.namespace.clone(),
            name: selector.name.clone(),
            labels: selector.labels.clone(),
        },
        rule: rule.clone(),
        message: message.clone(),
        message_expression: message_expression.clone(),
    }
}

/// Whether the health of a release that was complete before is reported now. `differs_since` and `now` are times of one monotonic clock.
pub fn weigh(
    deployment: &BundleDeployment,
    unhealthy: &[Unhealthy],
    differs_since: Option<Duration>,
    now: Duration,
) -> Decision {
    let conditions = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    // Unknown health counts as not reported.
    let reported = find_condition(conditions, ConditionType::Healthy)
        .filter(|healthy| healthy.status != ConditionStatus::Unknown.as_str())
        .map(|healthy| healthy.status == ConditionStatus::True.as_str());
    let observed = if unhealthy.is_empty() {
        Observed::Healthy
    } else if unhealthy.iter().any(|unhealthy| unhealthy.health.is_permanent()) {
        Observed::Failed
    } else {
        Observed::Unhealthy
    };
    debounce(Debounce { reported, differs_since }, observed, now, grace(deployment))
}

/// Whether the status reports a rollout.
pub fn reports_a_rollout(deployment: &BundleDeployment) -> bool {
    let conditions = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    find_condition(conditions, ConditionType::Progressing)
        .is_none_or(|progressing| progressing.reason == Reason::RollingOut.as_str())
}

fn grace(deployment: &BundleDeployment) -> Duration {
    let seconds = deployment.spec.rollout.as_ref().and_then(|rollout| rollout.health_grace_period_seconds);
    seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(GRACE, Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use chandler_core::ObjectKey;
    use chandler_rollout::Health;
    use serde_json::json;

    use super::*;

    fn deployment(healthy: Option<&str>, rollout: &serde_json::Value) -> BundleDeployment {
        let conditions: Vec<_> = healthy
            .map(|status| {
                json!({"type": "Healthy", "status": status, "reason": "Any", "message": "",
                       "lastTransitionTime": "2026-01-01T00:00:00Z"})
            })
            .into_iter()
            .collect();
        let object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "x"},
            "spec": {
                "installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}, "rollout": rollout,
                "probes": [{"selector": {"group": "apps", "kind": "Deployment", "labels": {"a": "b"}}, "rule": "true"}],
            },
            "status": {"conditions": conditions},
        });
        serde_json::from_value(object).unwrap()
    }

    fn unhealthy(health: Health) -> Unhealthy {
        let key = ObjectKey {
            group: "apps".into(),
            kind: "Deployment".into(),
            namespace: Some("n".into()),
            name: "x".into(),
            version: "v1".into(),
        };
        Unhealthy { object: key, health }
    }

    #[test]
    fn a_rule_names_its_probe_in_the_spec() {
        let rules = rules(&deployment(None, &json!(null)));
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].origin, "spec.probes[0]");
        assert_eq!(rules[0].selector.labels["a"], "b");
    }

    #[test]
    fn the_reported_health_follows_after_the_grace_period() {
        let seconds = Duration::from_secs;
        let weak = || vec![unhealthy(Health::progressing("0 of 1 replica is available"))];
        let broken = || vec![unhealthy(Health::failed("has failed"))];
        for (reported, grace, found, since, now, healthy, look_again) in [
            // No health was reported yet.
            (None, None, weak(), None, 100, false, None),
            // The grace period of thirty seconds, or the spec's.
            (Some("True"), None, weak(), None, 100, true, Some(30)),
            (Some("True"), None, weak(), Some(90), 100, true, Some(20)),
            (Some("True"), Some(5), weak(), Some(90), 100, false, None),
            (Some("True"), None, broken(), None, 100, false, None),
            (Some("False"), None, vec![], None, 100, false, Some(30)),
            (Some("False"), None, vec![], Some(70), 100, true, None),
            (Some("False"), Some(0), vec![], None, 100, true, None),
        ] {
            let rollout = json!({"healthGracePeriodSeconds": grace});
            let decision = weigh(&deployment(reported, &rollout), &found, since.map(seconds), seconds(now));
            assert_eq!(
                (decision.healthy, decision.recheck_after),
                (healthy, look_again.map(seconds)),
                "{reported:?} {found:?}"
            );
        }
    }

    #[test]
    fn a_status_without_progress_reports_a_rollout() {
        let mut deployment = deployment(None, &json!(null));
        assert!(reports_a_rollout(&deployment), "nothing is reported yet");
        for (reason, rollout) in [("RollingOut", true), ("Succeeded", false)] {
            let condition = json!({"type": "Progressing", "status": "True", "reason": reason, "message": "",
                                   "lastTransitionTime": "2026-01-01T00:00:00Z"});
            deployment.status.as_mut().unwrap().conditions = vec![serde_json::from_value(condition).unwrap()];
            assert_eq!(reports_a_rollout(&deployment), rollout, "{reason}");
        }
    }
}
