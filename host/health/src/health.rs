//! Whether an object works, by the rules of kstatus (`sigs.k8s.io/cli-utils/pkg/kstatus`).
//!
//! Two rules are the predecessor's own: an APIService is judged by its condition Available, and everything that says
//! nothing about itself is healthy. Custom resources that set the condition Ready to False are not yet healthy.

use std::fmt;

use serde_json::Value;

use crate::workloads;

/// In what state an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It works, or says nothing about itself.
    Current,
    /// It does not work yet.
    InProgress(String),
    /// It does not work, and will not without help.
    Failed(String),
    /// It is being deleted.
    Terminating(String),
    /// It does not exist.
    NotFound,
    /// It is not available, in its own words (APIServices), or does not meet a probe.
    Unavailable(String),
}

impl Health {
    /// Whether it works.
    pub fn is_current(&self) -> bool {
        *self == Self::Current
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => f.write_str("object Current"),
            Self::InProgress(message) => write!(f, "object InProgress: {message}"),
            Self::Failed(message) => write!(f, "object Failed: {message}"),
            Self::Terminating(message) => write!(f, "object Terminating: {message}"),
            Self::NotFound => f.write_str("object NotFound: it does not exist"),
            Self::Unavailable(message) => f.write_str(message),
        }
    }
}

/// The health of a live object.
pub fn health(object: &Value) -> Health {
    let object = Reader(object);
    let (group, kind) = object.group_kind();
    if (group, kind) == ("apiregistration.k8s.io", "APIService") {
        return api_service(object);
    }
    if let Some(health) = of_any_object(object, kind) {
        return health;
    }
    match (group, kind) {
        ("", "Pod") => workloads::pod(object),
        ("", "PersistentVolumeClaim") => persistent_volume_claim(object),
        ("", "Service") => service(object),
        ("", "Namespace") => namespace(object),
        ("apps", "Deployment") => workloads::deployment(object),
        ("apps", "ReplicaSet") => workloads::replica_set(object),
        ("apps", "StatefulSet") => workloads::stateful_set(object),
        ("apps", "DaemonSet") => workloads::daemon_set(object),
        ("batch", "Job") => workloads::job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => custom_resource_definition(object),
        ("", "Secret" | "ConfigMap") | ("batch", "CronJob") | ("policy", "PodDisruptionBudget") => Health::Current,
        _ => ready_condition(object),
    }
}

/// What holds for every kind: deletion, the generation that was observed, and the conditions of kstatus itself.
fn of_any_object(object: Reader<'_>, kind: &str) -> Option<Health> {
    if object.text("/metadata/deletionTimestamp").is_some_and(|time| !time.is_empty()) {
        return Some(Health::Terminating(terminating(object)));
    }
    if let (Some(generation), Some(observed)) =
        (object.number("/metadata/generation"), object.number("/status/observedGeneration"))
        && generation != observed
    {
        return Some(Health::InProgress(format!(
            "{kind} generation is {generation}, but latest observed generation is {observed}"
        )));
    }
    object.conditions().find_map(|condition| match (condition.kind, condition.status) {
        ("Reconciling", "True") => Some(Health::InProgress(condition.message.to_owned())),
        ("Stalled", "True") => Some(Health::Failed(condition.message.to_owned())),
        _ => None,
    })
}

/// What holds a deletion back.
pub fn terminating(object: Reader<'_>) -> String {
    let finalizers: Vec<&str> = object.list("/metadata/finalizers").filter_map(Value::as_str).collect();
    if finalizers.is_empty() {
        "Resource scheduled for deletion".to_owned()
    } else {
        format!("Resource scheduled for deletion, held by finalizers {}", finalizers.join(", "))
    }
}

fn api_service(object: Reader<'_>) -> Health {
    if object.text("/metadata/deletionTimestamp").is_some_and(|time| !time.is_empty()) {
        return Health::Terminating(terminating(object));
    }
    match object.conditions().find(|condition| condition.kind == "Available") {
        None => Health::Unavailable("Available condition not found".to_owned()),
        Some(condition) if condition.status == "False" => Health::Unavailable(condition.message.to_owned()),
        Some(_) => Health::Current,
    }
}

fn ready_condition(object: Reader<'_>) -> Health {
    match object.conditions().find(|condition| condition.kind == "Ready") {
        Some(condition) if condition.status != "True" => Health::InProgress(condition.message.to_owned()),
        _ => Health::Current,
    }
}

fn persistent_volume_claim(object: Reader<'_>) -> Health {
    match object.text("/status/phase").unwrap_or("unknown") {
        "Bound" => Health::Current,
        phase => Health::InProgress(format!("PVC is not Bound. phase: {phase}")),
    }
}

fn service(object: Reader<'_>) -> Health {
    let balanced = object.text("/spec/type") == Some("LoadBalancer");
    if balanced && object.text("/spec/clusterIP").unwrap_or_default().is_empty() {
        Health::InProgress("ClusterIP not set. Service type: LoadBalancer".to_owned())
    } else {
        Health::Current
    }
}

fn namespace(object: Reader<'_>) -> Health {
    match object.text("/status/phase").unwrap_or("Active") {
        "Active" => Health::Current,
        phase => Health::InProgress(format!("Namespace is not Active. phase: {phase}")),
    }
}

fn custom_resource_definition(object: Reader<'_>) -> Health {
    for condition in object.conditions() {
        match (condition.kind, condition.status) {
            ("NamesAccepted", "False") => return Health::Failed(condition.message.to_owned()),
            ("Established", "False") if condition.reason != "Installing" => {
                return Health::Failed(condition.message.to_owned());
            }
            ("Established", "True") => return Health::Current,
            _ => {}
        }
    }
    Health::InProgress("Install in progress".to_owned())
}

/// Reads fields of a value that may be missing or of another type.
#[derive(Clone, Copy)]
pub struct Reader<'a>(pub &'a Value);

/// One entry of `status.conditions`.
pub(crate) struct ConditionReader<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl<'a> Reader<'a> {
    pub(crate) fn text(self, pointer: &str) -> Option<&'a str> {
        self.0.pointer(pointer)?.as_str()
    }

    pub(crate) fn number(self, pointer: &str) -> Option<i64> {
        self.0.pointer(pointer)?.as_i64()
    }

    pub(crate) fn list(self, pointer: &str) -> impl Iterator<Item = &'a Value> {
        self.0.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
    }

    fn group_kind(self) -> (&'a str, &'a str) {
        let api_version = self.text("/apiVersion").unwrap_or_default();
        (api_version.split_once('/').map_or("", |(group, _)| group), self.text("/kind").unwrap_or_default())
    }

    pub(crate) fn conditions(self) -> impl Iterator<Item = ConditionReader<'a>> {
        self.list("/status/conditions").map(|condition| {
            let text = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
            ConditionReader {
                kind: text("type"),
                status: text("status"),
                reason: text("reason"),
                message: text("message"),
            }
        })
    }

    pub(crate) fn condition_is(self, kind: &str, status: &str) -> bool {
        self.conditions().any(|condition| condition.kind == kind && condition.status == status)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn assert_health(cases: &[(Value, &str)]) {
        for (object, want) in cases {
            assert_eq!(health(object).to_string(), *want, "{object}");
        }
    }

    fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
        json!({"type": kind, "status": status, "reason": reason, "message": message})
    }

    #[test]
    fn custom_resources_speak_for_themselves() {
        let custom = |status: Value| json!({"apiVersion": "a.b/v1", "kind": "X", "metadata": {"generation": 2}, "status": status});
        assert_health(&[
            (json!({"apiVersion": "a.b/v1", "kind": "X"}), "object Current"),
            (json!("odd"), "object Current"),
            (custom(json!({"conditions": "odd"})), "object Current"),
            (custom(json!({"conditions": [condition("Ready", "True", "", "")]})), "object Current"),
            (custom(json!({"conditions": [condition("Ready", "False", "", "no")]})), "object InProgress: no"),
            (custom(json!({"conditions": [condition("Ready", "Unknown", "", "?")]})), "object InProgress: ?"),
            (custom(json!({"conditions": [condition("Stalled", "True", "", "stuck")]})), "object Failed: stuck"),
            (custom(json!({"conditions": [condition("Stalled", "False", "", "")]})), "object Current"),
            (custom(json!({"conditions": [condition("Reconciling", "True", "", "soon")]})), "object InProgress: soon"),
            (
                custom(json!({"observedGeneration": 1})),
                "object InProgress: X generation is 2, but latest observed generation is 1",
            ),
        ]);
    }

    #[test]
    fn what_is_being_deleted_names_what_holds_it_back() {
        let gone = |finalizers: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}});
        assert_health(&[
            (gone(Value::Null), "object Terminating: Resource scheduled for deletion"),
            (
                gone(json!(["a/b", "c"])),
                "object Terminating: Resource scheduled for deletion, held by finalizers a/b, c",
            ),
        ]);
    }

    #[test]
    fn an_api_service_is_available_unless_it_says_otherwise() {
        let service = |conditions: Value| json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "status": {"conditions": conditions}});
        assert_health(&[
            (service(json!([])), "Available condition not found"),
            (service(json!([condition("Available", "False", "", "no endpoints")])), "no endpoints"),
            (service(json!([condition("Available", "Unknown", "", "")])), "object Current"),
            (service(json!([condition("Available", "True", "", "")])), "object Current"),
        ]);
    }

    #[test]
    fn definitions_claims_services_and_namespaces() {
        let of = |api_version: &str, kind: &str, spec: Value, status: Value| json!({"apiVersion": api_version, "kind": kind, "spec": spec, "status": status});
        let crd = |conditions: Value| {
            of("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({}), json!({"conditions": conditions}))
        };
        assert_health(&[
            (crd(json!([])), "object InProgress: Install in progress"),
            (
                crd(json!([condition("Established", "False", "Installing", "wait")])),
                "object InProgress: Install in progress",
            ),
            (
                crd(json!([condition("Established", "False", "NotAccepted", "not all names are accepted")])),
                "object Failed: not all names are accepted",
            ),
            (
                crd(json!([condition("NamesAccepted", "False", "ListKindConflict", "conflict")])),
                "object Failed: conflict",
            ),
            (
                crd(json!([condition("NamesAccepted", "True", "", ""), condition("Established", "True", "", "")])),
                "object Current",
            ),
            (
                of("v1", "PersistentVolumeClaim", json!({}), json!({})),
                "object InProgress: PVC is not Bound. phase: unknown",
            ),
            (
                of("v1", "PersistentVolumeClaim", json!({}), json!({"phase": "Pending"})),
                "object InProgress: PVC is not Bound. phase: Pending",
            ),
            (of("v1", "PersistentVolumeClaim", json!({}), json!({"phase": "Bound"})), "object Current"),
            (of("v1", "Service", json!({}), json!({})), "object Current"),
            (
                of("v1", "Service", json!({"type": "LoadBalancer"}), json!({})),
                "object InProgress: ClusterIP not set. Service type: LoadBalancer",
            ),
            (
                of("v1", "Service", json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}), json!({})),
                "object Current",
            ),
            (of("v1", "Namespace", json!({}), json!({"phase": "Active"})), "object Current"),
            (
                of("v1", "Namespace", json!({}), json!({"phase": "Terminating"})),
                "object InProgress: Namespace is not Active. phase: Terminating",
            ),
            (of("batch/v1", "CronJob", json!({}), json!({})), "object Current"),
            (
                of(
                    "policy/v1",
                    "PodDisruptionBudget",
                    json!({}),
                    json!({"conditions": [condition("DisruptionAllowed", "False", "", "")]}),
                ),
                "object Current",
            ),
        ]);
    }
}
