//! The annotations for the current and earlier revisions of a ReplicaSet, and for sizes.

use serde_json::{Map, Value};

use super::sizes::Limits;
use crate::{metadata, workloads::fields::map};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations that are not copied from a Deployment to its ReplicaSet.
const OWN: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];
/// The longest history, in characters.
const LONGEST_HISTORY: usize = 2000;

/// The revision of a ReplicaSet; zero when it has none.
pub(super) fn revision(set: &Value) -> i64 {
    metadata::annotation(set, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The size that the Deployment had when a ReplicaSet was last scaled.
pub(super) fn desired_replicas(set: &Value) -> Option<i64> {
    metadata::annotation(set, DESIRED_REPLICAS)?.parse().ok()
}

/// The most Pods that the Deployment could have when a ReplicaSet was last scaled.
pub(super) fn most_replicas(set: &Value) -> Option<i64> {
    metadata::annotation(set, MAX_REPLICAS)?.parse().ok()
}

/// The annotations that carry sizes.
pub(super) fn sizes(limits: &Limits) -> Map<String, Value> {
    let entries = [(DESIRED_REPLICAS, limits.replicas), (MAX_REPLICAS, limits.most())];
    entries.into_iter().map(|(key, number)| (key.to_owned(), number.to_string().into())).collect()
}

/// The annotations of the ReplicaSet of the new revision: the Deployment's own, and a history of what it was.
pub(super) fn annotations(deployment: &Value, set: &Value, revision: i64) -> Map<String, Value> {
    let mut annotations = map(set, "/metadata/annotations");
    let copied = map(deployment, "/metadata/annotations");
    annotations.extend(copied.into_iter().filter(|(key, _)| !OWN.contains(&key.as_str())));
    let before = annotations.get(REVISION).and_then(Value::as_str).map(str::to_owned);
    let number = before.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0_i64);
    if number < revision {
        annotations.insert(REVISION.to_owned(), revision.to_string().into());
        if let Some(before) = before {
            let history = annotations.get(REVISION_HISTORY).and_then(Value::as_str).unwrap_or_default();
            annotations.insert(REVISION_HISTORY.to_owned(), appended(history, &before).into());
        }
    }
    annotations
}

/// A history with one more revision; the oldest go when it gets too long.
fn appended(history: &str, revision: &str) -> String {
    let mut all: Vec<&str> = history.split(',').filter(|entry| !entry.is_empty()).collect();
    all.push(revision);
    while all.len() > 1 && all.join(",").len() > LONGEST_HISTORY {
        all.remove(0);
    }
    all.join(",")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rollback_keeps_the_revision_history() {
        let deployment = json!({"metadata": {"annotations": {
            "a": "1", REVISION: "7", "kubectl.kubernetes.io/last-applied-configuration": "{}"}}});
        let fresh = annotations(&deployment, &json!({}), 1);
        assert_eq!(Value::Object(fresh.clone()), json!({"a": "1", REVISION: "1"}));
        let set = |annotations: Map<String, Value>| json!({"metadata": {"annotations": annotations}});
        let again = annotations(&deployment, &set(fresh.clone()), 1);
        assert_eq!(again, fresh, "nothing changes");
        let third = annotations(&deployment, &set(fresh), 3);
        assert_eq!(Value::Object(third.clone()), json!({"a": "1", REVISION: "3", REVISION_HISTORY: "1"}));
        let fifth = annotations(&deployment, &set(third), 5);
        assert_eq!(fifth[REVISION_HISTORY], "1,3");
    }

    #[test]
    fn a_history_does_not_grow_for_ever() {
        let mut history = String::new();
        for revision in 0..5000 {
            history = appended(&history, &revision.to_string());
        }
        assert!(history.len() <= LONGEST_HISTORY && history.ends_with(",4998,4999"));
    }
}
