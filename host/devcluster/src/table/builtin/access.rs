//! RBAC and certificates.

use serde_json::Value;

use crate::table::{
    cell::{AGE, NAME, NONE, duration, list, text},
    column::{Column, Row},
};

/// RoleBindings and ClusterRoleBindings.
pub(super) const BINDING: &[Column] = &[
    NAME,
    Column::text("Role", |row| format!("{}/{}", row.text("/roleRef/kind"), row.text("/roleRef/name")).into()),
    AGE,
    Column::text("Users", |row| subjects(row, "User")).wide(),
    Column::text("Groups", |row| subjects(row, "Group")).wide(),
    Column::text("ServiceAccounts", |row| subjects(row, "ServiceAccount")).wide(),
];

fn subjects(row: Row<'_>, kind: &str) -> Value {
    let subjects = row.list("/subjects").filter(|subject| text(subject, "/kind") == kind);
    let names = subjects.map(|subject| match (kind, text(subject, "/namespace")) {
        ("ServiceAccount", namespace) if !namespace.is_empty() => format!("{namespace}/{}", text(subject, "/name")),
        _ => text(subject, "/name").to_owned(),
    });
    names.collect::<Vec<_>>().join(", ").into()
}

/// CertificateSigningRequests.
pub(super) const CERTIFICATE_SIGNING_REQUEST: &[Column] = &[
    NAME,
    AGE,
    Column::text("SignerName", |row| row.text_or("/spec/signerName", NONE).into()),
    Column::text("Requestor", |row| row.text("/spec/username").into()),
    Column::text("RequestedDuration", |row| {
        let seconds = row.object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
        seconds.map_or_else(|| NONE.to_owned(), |seconds| duration(seconds, row.now)).into()
    }),
    Column::text("Condition", request_condition),
];

fn request_condition(row: Row<'_>) -> Value {
    let has = |wanted: &str| list(row.object, "/status/conditions").any(|found| text(found, "/type") == wanted);
    let mut shown = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        shown.push_str(",Failed");
    }
    if !row.text("/status/certificate").is_empty() {
        shown.push_str(",Issued");
    }
    shown.into()
}
