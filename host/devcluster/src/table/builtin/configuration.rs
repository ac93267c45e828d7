//! Data, quotas, budgets, priorities, leases.

use serde_json::Value;

use crate::table::{
    cell::{AGE, NAME, plain},
    column::{Column, Row},
};

/// ConfigMaps.
pub(super) const CONFIG_MAP: &[Column] =
    &[NAME, Column::text("Data", |row| (row.count("/data") + row.count("/binaryData")).into()), AGE];

/// Secrets.
pub(super) const SECRET: &[Column] = &[
    NAME,
    Column::text("Type", |row| row.text("/type").into()),
    Column::text("Data", |row| row.count("/data").into()),
    AGE,
];

/// Leases.
pub(super) const LEASE: &[Column] = &[NAME, Column::text("Holder", |row| row.text("/spec/holderIdentity").into()), AGE];

/// ResourceQuotas.
pub(super) const RESOURCE_QUOTA: &[Column] =
    &[NAME, Column::text("Request", |row| quota(row, false)), Column::text("Limit", |row| quota(row, true)), AGE];

/// `resource: used/hard` of the limits, or of everything else.
fn quota(row: Row<'_>, limits: bool) -> Value {
    let hard = row.object.pointer("/status/hard").and_then(Value::as_object).into_iter().flatten();
    let used = row.object.pointer("/status/used");
    let shown = hard.filter(|(resource, _)| resource.starts_with("limits.") == limits).map(|(resource, hard)| {
        let used = used.and_then(|used| used.get(resource));
        format!("{resource}: {}/{}", plain(used, "0"), plain(Some(hard), "0"))
    });
    shown.collect::<Vec<_>>().join(", ").into()
}

/// PriorityClasses.
pub(super) const PRIORITY_CLASS: &[Column] = &[
    NAME,
    Column::integer("Value", |row| row.integer("/value").into()),
    Column::boolean("Global-Default", |row| row.flag("/globalDefault").unwrap_or(false).into()),
    AGE,
    Column::text("PreemptionPolicy", |row| row.text("/preemptionPolicy").into()),
];

/// PodDisruptionBudgets.
pub(super) const POD_DISRUPTION_BUDGET: &[Column] = &[
    NAME,
    Column::text("Min Available", |row| plain(row.object.pointer("/spec/minAvailable"), "N/A").into()),
    Column::text("Max Unavailable", |row| plain(row.object.pointer("/spec/maxUnavailable"), "N/A").into()),
    Column::integer("Allowed Disruptions", |row| row.integer("/status/disruptionsAllowed").into()),
    AGE,
];
