//! The Catalogs of the cluster in a table, one row each.

use std::time::Duration;

use chandler_api::{Catalog, ConditionType, Reason, find_condition};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::{
    invocation::quoted,
    listing::age,
    table::{self, Column, Fit, or_dash},
    terminal::{Frame, Tone},
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
    #[serde(skip)]
    inspect: (String, &'static str),
}

/// The command that shows the state of a Catalog, and what it shows. A catalog of OLM has a status of its own kind.
pub fn inspect(catalog: &Catalog) -> (String, &'static str) {
    let name = quoted(catalog.metadata.name.as_deref().unwrap_or_default());
    let olm = catalog.metadata.owner_references.iter().flatten().find_map(|owner| match owner.kind.as_str() {
        "ClusterCatalog" => Some(format!("kubectl get clustercatalog {name} -o yaml")),
        "CatalogSource" => Some(format!("kubectl get catalogsource -A --field-selector metadata.name={name} -o yaml")),
        _ => None,
    });
    match olm {
        Some(command) => (command, "its state in OLM"),
        None => (format!("chandler status catalog/{name}"), "what helps"),
    }
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

    fn tone(self) -> Tone {
        match self {
            Self::Ready => Tone::Good,
            Self::Failed => Tone::Bad,
            Self::Stale | Self::Suspended | Self::Pending => Tone::Busy,
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
            inspect: inspect(catalog),
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
    Column::toned("STATE", Fit::Full, |row| row.state.as_str().to_owned(), |row| row.state.tone()),
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
        one_line(&format!("{}: {reason}: {message}; `{}` shows {}", row.name, row.inspect.0, row.inspect.1))
    };
    unready.map(line).collect()
}

/// The table, with a header.
pub fn table(rows: &[CatalogRow], frame: impl Into<Frame>) -> String {
    table::text(&COLUMNS, rows, frame)
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

    #[test]
    fn a_catalog_of_olm_is_inspected_where_it_is() {
        let command = |kind: &str| {
            let owner = json!({"apiVersion": "a/v1", "kind": kind, "name": "hub", "uid": "1"});
            let object = json!({
                "apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog",
                "metadata": {"name": "hub", "ownerReferences": [owner]},
                "spec": {"source": {"type": "image"}},
            });
            inspect(&serde_json::from_value(object).unwrap()).0
        };
        assert_eq!(command("ClusterCatalog"), "kubectl get clustercatalog hub -o yaml");
        assert_eq!(command("CatalogSource"), "kubectl get catalogsource -A --field-selector metadata.name=hub -o yaml");
        assert_eq!(command("Deployment"), "chandler status catalog/hub");
    }
}
