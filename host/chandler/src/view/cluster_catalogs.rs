//! The Catalogs of the cluster in a table, one row each.

use std::time::Duration;

use chandler_api::{Catalog, ConditionType, Reason, find_condition};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::{
    listing::age,
    table::{self, Column, Fit, or_dash},
    text::one_line,
};

/// A Catalog in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogRow {
    /// The name.
    pub name: String,
    /// Where its content comes from.
    pub source: String,
    /// Its priority.
    pub priority: i32,
    /// The number of packages that are in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packages: Option<i64>,
    /// The number of bundles that are in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundles: Option<i64>,
    /// The digest of the files that are in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When the files that are in use were unpacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpacked: Option<String>,
    /// The state.
    pub state: CatalogState,
    /// The reason of the condition Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message of the condition Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip)]
    age: Option<Duration>,
}

/// The state of a Catalog in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum CatalogState {
    /// The index of what the source names is in use.
    Ready,
    /// The index of earlier content is in use.
    Stale,
    /// Its source is not resolved any more.
    Suspended,
    /// Nothing is in use.
    Failed,
    /// The controller has not observed the current spec.
    Pending,
}

impl CatalogState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Stale => "Stale",
            Self::Suspended => "Suspended",
            Self::Failed => "Failed",
            Self::Pending => "Pending",
        }
    }
}

impl CatalogRow {
    /// The row of a Catalog at this time.
    pub fn new(catalog: &Catalog, now: Timestamp) -> Self {
        let status = catalog.status.clone().unwrap_or_default();
        let ready = find_condition(&status.conditions, ConditionType::Ready);
        let unpacked = status.last_unpacked.as_ref().map(|time| time.0);
        let is_current = status.observed_generation >= catalog.metadata.generation;
        let state = match ready {
            Some(ready) if is_current => state(&ready.status, &ready.reason),
            _ => CatalogState::Pending,
        };
        Self {
            name: catalog.metadata.name.clone().unwrap_or_default(),
            source: chandler_source::describe(&catalog.spec.source),
            priority: catalog.spec.priority,
            packages: status.contents.map(|contents| contents.packages),
            bundles: status.contents.map(|contents| contents.bundles),
            digest: status.digest,
            unpacked: unpacked.map(|unpacked| format!("{unpacked:.0}")),
            state,
            reason: ready.map(|ready| ready.reason.clone()),
            message: ready.map(|ready| ready.message.clone()),
            age: unpacked.and_then(|unpacked| Duration::try_from(now.duration_since(unpacked)).ok()),
        }
    }
}

fn state(status: &str, reason: &str) -> CatalogState {
    match Reason::from_name(reason) {
        Some(Reason::CatalogStale) => CatalogState::Stale,
        Some(Reason::Suspended) => CatalogState::Suspended,
        _ if status == "True" => CatalogState::Ready,
        _ => CatalogState::Failed,
    }
}

const COLUMNS: [Column<CatalogRow>; 7] = [
    Column::new("NAME", Fit::Full, |row| row.name.clone()),
    Column::new("SOURCE", Fit::Middle(16), |row| row.source.clone()),
    Column::new("PACKAGES", Fit::Full, |row| or_dash(row.packages)),
    Column::new("BUNDLES", Fit::Full, |row| or_dash(row.bundles)),
    Column::new("AGE", Fit::Full, |row| or_dash(row.age.map(age))),
    Column::new("STATE", Fit::Full, |row| row.state.as_str().to_owned()),
    Column::new("MESSAGE", Fit::Extra(24), |row| or_dash(row.message.as_ref())),
];

/// A line for each Catalog that is not ready: its reason and message, and the command that shows what helps.
pub fn problems(rows: &[CatalogRow]) -> Vec<String> {
    let unready = rows.iter().filter(|row| row.state != CatalogState::Ready);
    let line = |row: &CatalogRow| {
        let (reason, message) = match (&row.reason, &row.message) {
            (Some(reason), Some(message)) if row.state != CatalogState::Pending => (reason.as_str(), message.as_str()),
            _ => ("Pending", "the controller has not observed the current spec yet"),
        };
        one_line(&format!("{}: {reason}: {message}; `chandler status catalog/{0}` shows what helps", row.name))
    };
    unready.map(line).collect()
}

/// The table, with a header.
pub fn table(rows: &[CatalogRow], width: Option<usize>) -> String {
    table::text(&COLUMNS, rows, width)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(name: &str, status: &Value) -> CatalogRow {
        let reference = "registry.example.com/a-team/with-a-long-name/catalog:v4.20";
        let object = json!({
            "apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog", "metadata": {"name": name, "generation": 1},
            "spec": {"source": {"type": "image", "image": {"ref": reference}}}, "status": status,
        });
        CatalogRow::new(&serde_json::from_value(object).unwrap(), "2026-01-01T03:00:00Z".parse().unwrap())
    }

    fn status(ready: &str, reason: &str) -> Value {
        let condition = json!({"type": "Ready", "status": ready, "reason": reason, "message": "a message",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        json!({"observedGeneration": 1, "conditions": [condition], "lastUnpacked": "2026-01-01T00:00:00Z",
            "contents": {"packages": 29, "channels": 60, "bundles": 666}})
    }

    #[test]
    fn the_table_fits_a_terminal() {
        let rows = [
            row("operatorhub", &status("True", "CatalogReady")),
            row("ours", &status("True", "CatalogStale")),
            row(
                "broken",
                &json!({"observedGeneration": 1, "conditions": status("False", "CatalogInvalid")["conditions"]}),
            ),
            row("new", &json!({"observedGeneration": -1})),
            row("off", &status("True", "Suspended")),
        ];
        let text = table(&rows, Some(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
        insta::assert_snapshot!("problems", problems(&rows).join("\n"));
    }
}
