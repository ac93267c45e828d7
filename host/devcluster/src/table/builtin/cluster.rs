//! Kinds of the API server itself: namespaces, APIs, admission, priority and fairness.

use serde_json::Value;

use crate::table::{
    cell::{AGE, NAME, NONE, UNSET, condition, list, selector_text, text},
    column::{Column, Row},
};

/// Namespaces.
pub(super) const NAMESPACE: &[Column] = &[NAME, Column::text("Status", |row| row.text("/status/phase").into()), AGE];

/// ComponentStatuses.
pub(super) const COMPONENT_STATUS: &[Column] = &[
    NAME,
    Column::text("Status", |row| match healthy(row).map(|condition| text(condition, "/status")) {
        Some("True") => "Healthy".into(),
        Some(_) => "Unhealthy".into(),
        None => "Unknown".into(),
    }),
    Column::text("Message", |row| healthy(row).map_or("", |condition| text(condition, "/message")).into()),
    Column::text("Error", |row| healthy(row).map_or("", |condition| text(condition, "/error")).into()),
];

fn healthy(row: Row<'_>) -> Option<&Value> {
    row.list("/conditions").find(|condition| text(condition, "/type") == "Healthy")
}

/// APIServices (`k8s.io/kube-aggregator/pkg/registry/apiservice/etcd`).
pub(super) const API_SERVICE: &[Column] = &[
    NAME,
    Column::text("Service", |row| match row.object.pointer("/spec/service") {
        Some(service) => format!("{}/{}", text(service, "/namespace"), text(service, "/name")).into(),
        None => "Local".into(),
    }),
    Column::text("Available", |row| {
        let Some(available) = condition(row.object, "Available") else { return "Unknown".into() };
        match (text(available, "/status"), text(available, "/reason")) {
            (status @ "True", _) | (status, "") => status.into(),
            (status, reason) => format!("{status} ({reason})").into(),
        }
    }),
    AGE,
];

/// Both kinds of webhook configurations.
pub(super) const WEBHOOK_CONFIGURATION: &[Column] =
    &[NAME, Column::integer("Webhooks", |row| row.count("/webhooks").into()), AGE];

const PARAMETER_KIND: Column = Column::text("ParamKind", |row| match row.object.pointer("/spec/paramKind") {
    Some(kind) => format!("{}/{}", text(kind, "/apiVersion"), text(kind, "/kind")).into(),
    None => UNSET.into(),
});

/// ValidatingAdmissionPolicies.
pub(super) const VALIDATING_ADMISSION_POLICY: &[Column] =
    &[NAME, Column::integer("Validations", |row| row.count("/spec/validations").into()), PARAMETER_KIND, AGE];

/// MutatingAdmissionPolicies.
pub(super) const MUTATING_ADMISSION_POLICY: &[Column] =
    &[NAME, Column::integer("Mutations", |row| row.count("/spec/mutations").into()), PARAMETER_KIND, AGE];

/// Bindings of both kinds of admission policies.
pub(super) const ADMISSION_POLICY_BINDING: &[Column] = &[
    NAME,
    Column::text("PolicyName", |row| row.text("/spec/policyName").into()),
    Column::text("ParamRef", |row| {
        let Some(reference) = row.object.pointer("/spec/paramRef") else { return UNSET.into() };
        match (text(reference, "/name"), text(reference, "/namespace")) {
            // Whether the parameters are cluster-scoped is not known in this function.
            ("", _) if reference.get("selector").is_some() => selector_text(reference.get("selector")).into(),
            ("", _) => UNSET.into(),
            (name, "") => format!("*/{name}").into(),
            (name, namespace) => format!("{namespace}/{name}").into(),
        }
    }),
    AGE,
];

/// FlowSchemas.
pub(super) const FLOW_SCHEMA: &[Column] = &[
    NAME,
    Column::text("PriorityLevel", |row| row.text("/spec/priorityLevelConfiguration/name").into()),
    Column::text("MatchingPrecedence", |row| row.integer("/spec/matchingPrecedence").into()),
    Column::text("DistinguisherMethod", |row| row.text_or("/spec/distinguisherMethod/type", NONE).into()),
    AGE,
    Column::text("MissingPL", |row| {
        let mut conditions = list(row.object, "/status/conditions");
        let dangling = conditions.find(|condition| text(condition, "/type") == "Dangling");
        dangling.map_or("?", |condition| text(condition, "/status")).into()
    }),
];

/// PriorityLevelConfigurations.
pub(super) const PRIORITY_LEVEL: &[Column] = &[
    NAME,
    Column::text("Type", |row| row.text("/spec/type").into()),
    Column::text("NominalConcurrencyShares", |row| number_or_none(row, "/spec/limited/nominalConcurrencyShares")),
    Column::text("Queues", |row| number_or_none(row, "/spec/limited/limitResponse/queuing/queues")),
    Column::text("HandSize", |row| number_or_none(row, "/spec/limited/limitResponse/queuing/handSize")),
    Column::text("QueueLengthLimit", |row| number_or_none(row, "/spec/limited/limitResponse/queuing/queueLengthLimit")),
    AGE,
];

fn number_or_none(row: Row<'_>, pointer: &str) -> Value {
    row.object.pointer(pointer).cloned().unwrap_or_else(|| NONE.into())
}
