//! Nodes and their resources.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    metadata,
    table::{
        cell::{AGE, NAME, NONE, UNKNOWN, condition, text},
        column::{Column, Row},
    },
};

/// Nodes.
pub(super) const NODE: &[Column] = &[
    NAME,
    Column::text("Status", |row| {
        let ready = match condition(row.object, "Ready").map(|ready| text(ready, "/status")) {
            Some("True") => "Ready",
            Some(_) => "NotReady",
            None => "Unknown",
        };
        let unschedulable = row.flag("/spec/unschedulable").unwrap_or(false);
        if unschedulable { format!("{ready},SchedulingDisabled").into() } else { ready.into() }
    }),
    Column::text("Roles", roles),
    AGE,
    Column::text("Version", |row| row.text("/status/nodeInfo/kubeletVersion").into()),
    Column::text("Internal-IP", |row| address(row, "InternalIP")).wide(),
    Column::text("External-IP", |row| address(row, "ExternalIP")).wide(),
    Column::text("OS-Image", |row| row.text_or("/status/nodeInfo/osImage", UNKNOWN).into()).wide(),
    Column::text("Kernel-Version", |row| {
        let version = row.text_or("/status/nodeInfo/kernelVersion", UNKNOWN);
        match row.text("/status/nodeInfo/architecture") {
            "" => version.into(),
            architecture => format!("{version} ({architecture})").into(),
        }
    })
    .wide(),
    Column::text("Container-Runtime", |row| row.text_or("/status/nodeInfo/containerRuntimeVersion", UNKNOWN).into())
        .wide(),
];

fn roles(row: Row<'_>) -> Value {
    let labels = row.object.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            None if key == "kubernetes.io/role" => value.as_str(),
            role => role,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { NONE.into() } else { roles.into_iter().collect::<Vec<_>>().join(",").into() }
}

fn address(row: Row<'_>, wanted: &str) -> Value {
    let mut addresses = row.list("/status/addresses");
    let found = addresses.find(|address| text(address, "/type") == wanted);
    found.map_or(NONE, |address| text(address, "/address")).into()
}

/// RuntimeClasses.
pub(super) const RUNTIME_CLASS: &[Column] = &[NAME, Column::text("Handler", |row| row.text("/handler").into()), AGE];

/// ResourceClaims.
pub(super) const RESOURCE_CLAIM: &[Column] = &[
    NAME,
    Column::text("State", |row| {
        let deleted = metadata::is_deleting(row.object);
        let allocated = row.object.pointer("/status/allocation").is_some();
        let states = [
            (deleted, "deleted"),
            (!deleted && !allocated, "pending"),
            (allocated, "allocated"),
            (allocated && row.count("/status/reservedFor") > 0, "reserved"),
        ];
        states.iter().filter(|(holds, _)| *holds).map(|(_, state)| *state).collect::<Vec<_>>().join(",").into()
    }),
    AGE,
];

/// ResourceSlices.
pub(super) const RESOURCE_SLICE: &[Column] = &[
    NAME,
    Column::text("Node", |row| row.text("/spec/nodeName").into()),
    Column::text("Driver", |row| row.text("/spec/driver").into()),
    Column::text("Pool", |row| row.text("/spec/pool/name").into()),
    AGE,
];
