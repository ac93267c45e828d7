//! The handling of an object when a release changes its immutable fields: the policy of the owner, and what a new object costs.
//! Pure.

use chandler_core::{ObjectKey, is_custom_group};
use serde_json::Value;

use crate::pure::{
    desired::Desired,
    error::{ApiError, ApplyError},
};

/// The annotation with which a provisioner lets the host recreate an object of a release, if its value is [`RECREATE`]. A policy that names the
/// kind wins.
pub(crate) const ON_IMMUTABLE_ANNOTATION: &str = "chandler.dev/on-immutable";

/// The value of [`ON_IMMUTABLE_ANNOTATION`].
pub(crate) const RECREATE: &str = "Recreate";

/// What the rollout does about an object that only a new object can replace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImmutableAction {
    /// It refuses the release.
    #[default]
    Refuse,
    /// It deletes the object and creates it again.
    Recreate,
}

/// The policy of an owner about immutable fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnImmutable {
    /// The action for kinds that are not named and hold no data.
    pub default: ImmutableAction,
    /// The actions for kinds, by API group and kind.
    pub kinds: Vec<(String, String, ImmutableAction)>,
}

impl OnImmutable {
    /// The action for this object. An object that holds data is recreated only if its kind is named. An object that the release marks as
    /// recreatable needs no policy.
    fn action(&self, key: &ObjectKey, live: &Value, is_recreatable: bool) -> ImmutableAction {
        let named = self.kinds.iter().find(|(group, kind, _)| *group == key.group && *kind == key.kind);
        match named {
            Some((_, _, action)) => *action,
            None if holds_data(key, live) => ImmutableAction::Refuse,
            None if is_recreatable => ImmutableAction::Recreate,
            None => self.default,
        }
    }

    /// Whether this object may be deleted and created again.
    pub(crate) fn recreates(&self, desired: &Desired, live: &Value) -> bool {
        self.action(&desired.key, live, desired.is_recreatable) == ImmutableAction::Recreate
    }
}

/// Whether deleting an object may delete data that creating it again does not bring back. What the controller of a custom resource
/// deletes with it is unknown.
fn holds_data(key: &ObjectKey, live: &Value) -> bool {
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "PersistentVolumeClaim" | "PersistentVolume" | "Namespace")
        | ("apiextensions.k8s.io", "CustomResourceDefinition") => true,
        ("apps", "StatefulSet") => deletes_claims(live),
        (group, _) => is_custom_group(group),
    }
}

/// Whether the PersistentVolumeClaims of a StatefulSet are deleted with it.
fn deletes_claims(live: &Value) -> bool {
    live.pointer("/spec/persistentVolumeClaimRetentionPolicy/whenDeleted").and_then(Value::as_str) == Some("Delete")
}

/// What is lost until a new object replaces this one, and with the deletion.
pub(crate) fn lost(key: &ObjectKey, live: &Value) -> &'static str {
    match (key.group.as_str(), key.kind.as_str()) {
        ("apps", "StatefulSet") if deletes_claims(live) => {
            "its Pods stop, and its PersistentVolumeClaims are deleted with their data"
        }
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet") => "its Pods stop until new ones are ready",
        ("batch", "Job") => "its Pods and their logs are deleted, and it runs again",
        ("batch", "CronJob") => "its Jobs are deleted with their history",
        ("", "Pod") => "it stops until a new one is ready",
        ("", "Service") => "its cluster IP and load balancer address are released",
        ("", "PersistentVolumeClaim") => "its data is deleted, unless the reclaim policy of its volume is Retain",
        ("", "Namespace") => "every object in it is deleted",
        ("apiextensions.k8s.io", "CustomResourceDefinition") => "all custom resources of its kind are deleted",
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            "its subjects lack the permissions for a moment"
        }
        (group, _) if is_custom_group(group) => "its controller deletes what belongs to it, which may be data",
        _ => "it does not exist for a moment",
    }
}

/// Whether the dependents of an object must be gone before it is created again: Pods that must not run beside their successors.
pub(crate) fn waits_for_dependents(key: &ObjectKey, live: &Value) -> bool {
    let strategy = || live.pointer("/spec/strategy/type").and_then(Value::as_str);
    match (key.group.as_str(), key.kind.as_str()) {
        ("apps", "StatefulSet") | ("batch", "Job") => true,
        ("apps", "Deployment") => strategy() == Some("Recreate"),
        _ => false,
    }
}

/// The note about an object that is deleted and created again.
pub(crate) fn note(key: &ObjectKey, live: &Value) -> String {
    format!("it is deleted and created again, because an immutable field changes: {}", lost(key, live))
}

/// Whether an error may be about immutable fields: every cause forbids a value, or calls it invalid. Validation reports both for a
/// change of an immutable field (`ValidateImmutableField` in `k8s.io/apimachinery`, and rules with `oldSelf` of a CRD). The messages
/// differ from kind to kind, so they decide nothing.
pub(crate) fn may_be_immutable(refusal: &ApplyError) -> bool {
    let about_values = |reason: &String| matches!(reason.as_str(), "FieldValueInvalid" | "FieldValueForbidden");
    matches!(refusal.error, ApiError::Invalid(_))
        && !refusal.causes.is_empty()
        && refusal.causes.iter().all(about_values)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(group: &str, kind: &str) -> ObjectKey {
        ObjectKey { group: group.into(), version: "v1".into(), kind: kind.into(), namespace: None, name: "x".into() }
    }

    #[test]
    fn what_holds_data_is_recreated_only_if_its_kind_is_named() {
        use ImmutableAction::{Recreate, Refuse};
        let default = OnImmutable { default: Recreate, kinds: Vec::new() };
        let keeps = json!({});
        let deletes = json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}});
        for (group, kind, live, by_default) in [
            ("apps", "Deployment", &keeps, Recreate),
            ("apps", "StatefulSet", &keeps, Recreate),
            ("apps", "StatefulSet", &deletes, Refuse),
            ("rbac.authorization.k8s.io", "RoleBinding", &keeps, Recreate),
            ("", "PersistentVolumeClaim", &keeps, Refuse),
            ("", "PersistentVolume", &keeps, Refuse),
            ("", "Namespace", &keeps, Refuse),
            ("apiextensions.k8s.io", "CustomResourceDefinition", &keeps, Refuse),
            ("example.com", "Database", &keeps, Refuse),
            // The name of a kind alone is not enough.
            ("example.com", "Deployment", &keeps, Refuse),
        ] {
            let key = key(group, kind);
            assert_eq!(OnImmutable::default().action(&key, live, false), Refuse, "{key}");
            assert_eq!(default.action(&key, live, false), by_default, "{key}");
            // The release may allow what a default may allow.
            assert_eq!(OnImmutable::default().action(&key, live, true), by_default, "{key}");
            let named = |action| OnImmutable { kinds: vec![(group.into(), kind.into(), action)], ..default.clone() };
            for is_recreatable in [false, true] {
                assert_eq!(named(Recreate).action(&key, live, is_recreatable), Recreate, "{key}");
                assert_eq!(named(Refuse).action(&key, live, is_recreatable), Refuse, "{key}");
            }
            let other = OnImmutable { default: Refuse, kinds: vec![("other".into(), kind.into(), Recreate)] };
            assert_eq!(other.action(&key, live, false), Refuse, "{key}");
        }
    }

    #[test]
    fn what_is_lost_is_named() {
        let deletes = json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}}});
        let lines = [
            ("apps", "Deployment", json!({})),
            ("apps", "StatefulSet", deletes),
            ("batch", "Job", json!({})),
            ("", "Service", json!({})),
            ("", "PersistentVolumeClaim", json!({})),
            ("apiextensions.k8s.io", "CustomResourceDefinition", json!({})),
            ("rbac.authorization.k8s.io", "RoleBinding", json!({})),
            ("example.com", "Database", json!({})),
            ("", "ConfigMap", json!({})),
        ]
        .map(|(group, kind, live)| format!("{kind}: {}", lost(&key(group, kind), &live)));
        insta::assert_snapshot!(lines.join("\n"), @r"
        Deployment: its Pods stop until new ones are ready
        StatefulSet: its Pods stop, and its PersistentVolumeClaims are deleted with their data
        Job: its Pods and their logs are deleted, and it runs again
        Service: its cluster IP and load balancer address are released
        PersistentVolumeClaim: its data is deleted, unless the reclaim policy of its volume is Retain
        CustomResourceDefinition: all custom resources of its kind are deleted
        RoleBinding: its subjects lack the permissions for a moment
        Database: its controller deletes what belongs to it, which may be data
        ConfigMap: it does not exist for a moment
        ");
    }

    #[test]
    fn pods_that_must_not_overlap_are_awaited() {
        let strategy = |name: &str| json!({"spec": {"strategy": {"type": name}}});
        for (group, kind, live, waits) in [
            ("apps", "Deployment", strategy("Recreate"), true),
            ("apps", "Deployment", strategy("RollingUpdate"), false),
            ("apps", "StatefulSet", json!({}), true),
            ("batch", "Job", json!({}), true),
            ("", "Service", json!({}), false),
        ] {
            assert_eq!(waits_for_dependents(&key(group, kind), &live), waits, "{kind} {live}");
        }
    }

    #[test]
    fn only_refused_values_may_be_immutable() {
        let refusal = |error: fn(String) -> ApiError, causes: &[&str]| ApplyError {
            causes: causes.iter().map(|&cause| cause.to_owned()).collect(),
            ..ApplyError::from(error(String::new()))
        };
        for (error, causes, may) in [
            (ApiError::Invalid as fn(String) -> ApiError, vec!["FieldValueInvalid"], true),
            (ApiError::Invalid, vec!["FieldValueForbidden", "FieldValueInvalid"], true),
            (ApiError::Invalid, vec!["FieldValueInvalid", "FieldValueRequired"], false),
            (ApiError::Invalid, vec!["FieldValueNotSupported"], false),
            // An admission policy names no reason.
            (ApiError::Invalid, vec![""], false),
            (ApiError::Invalid, vec![], false),
            (ApiError::Refused, vec!["FieldValueInvalid"], false),
        ] {
            assert_eq!(may_be_immutable(&refusal(error, &causes)), may, "{causes:?}");
        }
    }
}
