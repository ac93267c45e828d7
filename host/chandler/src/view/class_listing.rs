//! The ProvisionerClasses of the cluster in a table, one row each.

use chandler_api::{ClassCalls, ConditionType, ProvisionerClass, find_condition};
use serde::Serialize;

use super::{
    invocation::quoted,
    table::{self, Column, Fit, or_dash},
    terminal::{Frame, Look, Tone},
    text::one_line,
};

/// A ProvisionerClass in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassRow {
    /// The name.
    pub name: String,
    /// Whether it can be used; `None` if the controller has not observed the current spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// The reason of the condition Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message of the condition Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The version of the provisioner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The formats that it detects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub formats: Vec<String>,
    /// How many BundleDeployments use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<i64>,
    /// What calls of its component showed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<ClassCalls>,
}

impl ClassRow {
    /// The row of a class.
    pub fn new(class: &ProvisionerClass) -> Self {
        let status = class.status.clone().unwrap_or_default();
        let is_current = status.observed_generation >= class.metadata.generation;
        let ready = find_condition(&status.conditions, ConditionType::Ready).filter(|_| is_current);
        let component = status.component.unwrap_or_default();
        Self {
            name: class.metadata.name.clone().unwrap_or_default(),
            ready: ready.map(|ready| ready.status == "True"),
            reason: ready.map(|ready| ready.reason.clone()),
            message: ready.map(|ready| ready.message.clone()),
            version: component.version.filter(|version| !version.is_empty()),
            formats: component.formats,
            uses: status.uses.map(|uses| uses.total),
            calls: status.calls,
        }
    }

    fn tone(&self) -> Tone {
        match self.ready {
            Some(true) => Tone::Good,
            Some(false) => Tone::Bad,
            None => Tone::Busy,
        }
    }

    fn called<T>(&self, of: impl FnOnce(&ClassCalls) -> T) -> Option<T> {
        self.calls.as_ref().map(of)
    }
}

const NAME: Column<ClassRow> = Column::new("NAME", Fit::Full, |row| row.name.clone());
const STATE: Column<ClassRow> = Column::toned("STATE", Fit::Full, |row| or_dash(row.reason.as_ref()), ClassRow::tone);
const VERSION: Column<ClassRow> = Column::new("VERSION", Fit::Full, |row| or_dash(row.version.as_ref()));
const FORMATS: Column<ClassRow> =
    Column::new("FORMATS", Fit::End(8), |row| or_dash(Some(row.formats.join(", ")).filter(|it| !it.is_empty())));
const USES: Column<ClassRow> = Column::new("USES", Fit::Full, |row| or_dash(row.uses));

const SHORT: [Column<ClassRow>; 6] = [NAME, STATE, VERSION, FORMATS, USES, Column::new("KINDS", Fit::Extra(16), kinds)];

const WIDE: [Column<ClassRow>; 11] = [
    NAME,
    STATE,
    VERSION,
    FORMATS,
    USES,
    Column::new("CALLS", Fit::Full, |row| or_dash(row.called(|calls| calls.total))),
    Column::new("FAILED", Fit::Full, |row| or_dash(row.called(|calls| calls.failed))),
    Column::new("MEDIAN", Fit::Full, |row| or_dash(row.called(|calls| format!("{} ms", calls.median_milliseconds)))),
    Column::new("P99", Fit::Full, |row| or_dash(row.called(|calls| format!("{} ms", calls.p99_milliseconds)))),
    Column::new("SCHEMA", Fit::Full, |row| {
        or_dash(row.called(|calls| if calls.configuration_schema { "yes" } else { "no" }))
    }),
    Column::new("KINDS", Fit::End(16), kinds),
];

fn kinds(row: &ClassRow) -> String {
    or_dash(row.called(|calls| calls.kinds.join(", ")).filter(|kinds| !kinds.is_empty()))
}

/// The table that fits a terminal.
pub fn table(rows: &[ClassRow], frame: impl Into<Frame>) -> String {
    table::text(&SHORT, rows, frame)
}

/// The table with all columns in full.
pub fn wide(rows: &[ClassRow], look: Look) -> String {
    table::wide(&WIDE, rows, look)
}

/// A line for each class that cannot be used: its reason and message, and the command that shows what helps.
pub fn problems(rows: &[ClassRow]) -> Vec<String> {
    let line = |row: &ClassRow| {
        let (reason, message) = match (&row.reason, &row.message) {
            (Some(reason), Some(message)) => (reason.as_str(), message.as_str()),
            _ => ("Pending", "the controller has not observed the current spec yet"),
        };
        let command = format!("chandler status provisionerclass/{}", quoted(&row.name));
        one_line(&format!("{}: {reason}: {message}; `{command}` shows what helps", row.name))
    };
    rows.iter().filter(|row| row.ready != Some(true)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(name: &str, status: &Value) -> ClassRow {
        let object = json!({
            "apiVersion": "chandler.dev/v1alpha1", "kind": "ProvisionerClass", "metadata": {"name": name, "generation": 1},
            "spec": {"image": "example.com/sail:v1"}, "status": status,
        });
        ClassRow::new(&serde_json::from_value(object).unwrap())
    }

    fn status(ready: &str, reason: &str) -> Value {
        let condition = json!({"type": "Ready", "status": ready, "reason": reason, "message": "a message",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        json!({
            "observedGeneration": 1, "conditions": [condition], "uses": {"total": 12, "updated": 11},
            "component": {"image": "i", "digest": "d", "version": "1.2.0", "contractVersion": "0.1.0", "formats": ["sail+v0"]},
            "calls": {"component": "d", "total": 40, "failed": 2, "medianMilliseconds": 3, "p99Milliseconds": 80,
                "configurationSchema": true, "kinds": ["ConfigMap", "Deployment.apps"], "observed": "2026-01-01T00:00:00Z"},
        })
    }

    fn rows() -> [ClassRow; 3] {
        let new = json!({"observedGeneration": 0});
        [
            row("sail", &status("True", "ProvisionerReady")),
            row("oar", &status("False", "ProvisionerQuarantined")),
            row("new", &new),
        ]
    }

    #[test]
    fn the_table_shows_state_uses_and_figures() {
        insta::assert_snapshot!(table(&rows(), None), @r"
        NAME  STATE                   VERSION  FORMATS  USES
        sail  ProvisionerReady        1.2.0    sail+v0  12
        oar   ProvisionerQuarantined  1.2.0    sail+v0  12
        new   -                       -        -        -
        ");
        insta::assert_snapshot!(wide(&rows(), Look::Plain), @r"
        NAME  STATE                   VERSION  FORMATS  USES  CALLS  FAILED  MEDIAN  P99    SCHEMA  KINDS
        sail  ProvisionerReady        1.2.0    sail+v0  12    40     2       3 ms    80 ms  yes     ConfigMap, Deployment.apps
        oar   ProvisionerQuarantined  1.2.0    sail+v0  12    40     2       3 ms    80 ms  yes     ConfigMap, Deployment.apps
        new   -                       -        -        -     -      -       -       -      -       -
        ");
    }

    #[test]
    fn a_class_that_cannot_be_used_has_a_line() {
        insta::assert_snapshot!(problems(&rows()).join("\n"), @r"
        oar: ProvisionerQuarantined: a message; `chandler status provisionerclass/oar` shows what helps
        new: Pending: the controller has not observed the current spec yet; `chandler status provisionerclass/new` shows what helps
        ");
    }
}
