//! All BundleDeployments in a table, one row each.

use std::time::Duration;

use chandler_api::{BundleDeployment, ConditionType, Outcome, Reason, Revision, find_condition};
use k8s_openapi::jiff::Timestamp;
use serde::Serialize;

use super::{
    overview::{self, Decision, Health, HealthWord, Next, Overview},
    summary,
    table::{self, Column, Fit, or_dash},
    terminal::{Frame, Tone},
    text::one_line,
};

/// A BundleDeployment in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The name.
    pub name: String,
    /// The namespace to install into.
    pub namespace: String,
    /// The version that is installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_version: Option<String>,
    /// The version that is being rolled out, waits for approval or was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_version: Option<String>,
    /// The newest version that the Catalogs of the cluster have, as far as their indexes are at hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newer_version: Option<String>,
    /// The number of the revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// The health of what runs; absent if nothing runs, and while it is being replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthWord>,
    /// The state.
    pub state: State,
    /// The reason of the state, as in the conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message of the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What waits, or what keeps the current spec from running, with the command that helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<String>,
    /// The reason of `Drifted`, if objects differ from the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<String>,
    /// The revision that a rollback keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned_to: Option<i64>,
    /// The provisioner class, unless it is still to be detected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The source.
    pub source: String,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    #[serde(skip)]
    age: Option<Duration>,
    /// What runs and what waits.
    #[serde(skip)]
    note: String,
}

/// The state of a BundleDeployment in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum State {
    /// The current spec is installed and healthy.
    Ready,
    /// The controller works on it, or waits for something.
    Progressing,
    /// The current spec is not rolled out until a user or an administrator fixes the cause.
    Failed,
    /// A change waits for approval.
    AwaitingApproval,
    /// It is suspended.
    Suspended,
    /// It is being deleted.
    Deleting,
    /// The controller has not observed the current spec.
    Pending,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Progressing => "Progressing",
            Self::Failed => "Failed",
            Self::AwaitingApproval => "Awaiting approval",
            Self::Suspended => "Suspended",
            Self::Deleting => "Deleting",
            Self::Pending => "Pending",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Ready => Tone::Good,
            Self::Failed => Tone::Bad,
            Self::Progressing | Self::AwaitingApproval | Self::Suspended | Self::Deleting | Self::Pending => Tone::Busy,
        }
    }
}

impl Row {
    /// The row of a BundleDeployment at this time.
    pub fn new(deployment: &BundleDeployment, now: Timestamp) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        let overview = Overview::of(deployment);
        let ready = find_condition(&status.conditions, ConditionType::Ready);
        let cause = ready.filter(|ready| ready.status != "True");
        let drift = find_condition(&status.conditions, ConditionType::Drifted).filter(|drift| drift.status == "True");
        let created = deployment.metadata.creation_timestamp.as_ref().map(|created| created.0);
        Self {
            name: deployment.metadata.name.clone().unwrap_or_default(),
            namespace: deployment.spec.install_namespace.clone(),
            installed_version: installed(&status.history).map(overview::version),
            newer_version: None,
            revision: status.revision,
            health: overview.health().map(Health::word),
            state: State::of(&overview),
            reason: match &overview.next {
                // Until the controller has observed the deletion, `Ready` describes what was before.
                Next::Deleting { problem, .. } => {
                    Some(problem.clone().unwrap_or_else(|| Reason::Deleting.as_str().to_owned()))
                }
                _ => cause.map(|cause| cause.reason.clone()),
            },
            message: cause.map(|cause| cause.message.clone()).filter(|message| !message.is_empty()),
            note: one_line(&format!("{}: {}", overview.name, overview.text())),
            waits: overview.waits(),
            drift: drift.map(|drift| drift.reason.clone()),
            pinned_to: overview.pinned,
            pending_version: overview.pending,
            class: summary::class(deployment).map(str::to_owned),
            source: chandler_source::describe(status.resolved_source.as_ref().unwrap_or(&deployment.spec.source)),
            created: created.map(|created| format!("{created:.0}")),
            age: created.and_then(|created| Duration::try_from(now.duration_since(created)).ok()),
        }
    }

    pub(super) fn state_text(&self) -> String {
        let explains = matches!(self.state, State::Failed | State::Progressing | State::Deleting);
        match &self.reason {
            None if let (State::Ready, Some(drift)) = (self.state, &self.drift) => {
                format!("{} ({drift})", self.state.as_str())
            }
            Some(reason) if explains && reason != self.state.as_str() => format!("{} ({reason})", self.state.as_str()),
            _ => self.state.as_str().to_owned(),
        }
    }

    fn health_tone(&self) -> Tone {
        match self.health {
            Some(HealthWord::Healthy) => Tone::Good,
            Some(HealthWord::Unhealthy) => Tone::Bad,
            Some(HealthWord::Unknown) => Tone::Busy,
            None => Tone::Plain,
        }
    }

    fn health_text(&self) -> String {
        or_dash(self.health.map(HealthWord::as_str))
    }

    /// What waits, with the command that helps, or the message of the reason.
    fn message_text(&self) -> String {
        or_dash(self.waits.as_ref().or(self.message.as_ref()))
    }
}

impl State {
    fn of(overview: &Overview) -> Self {
        match overview.next {
            Next::Done if overview.is_ready() => Self::Ready,
            Next::Done | Next::Working { .. } => Self::Progressing,
            Next::Deleting { .. } => Self::Deleting,
            Next::Unobserved => Self::Pending,
            Next::Waits(Decision::Approve) => Self::AwaitingApproval,
            Next::Waits(Decision::Resume) => Self::Suspended,
            Next::Blocked { .. } => Self::Failed,
        }
    }
}

/// The last revision that succeeded.
fn installed(history: &[Revision]) -> Option<&Revision> {
    history.iter().rfind(|revision| revision.outcome == Outcome::Succeeded)
}

/// The columns of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// What fits a terminal.
    Short,
    /// Also the class, the source and the message.
    Wide,
}

const NAME: Column<Row> = Column::new("NAME", Fit::Full, |row| row.name.clone());
const NAMESPACE: Column<Row> = Column::new("NAMESPACE", Fit::Middle(9), |row| row.namespace.clone());
const VERSION: Column<Row> = Column::new("VERSION", Fit::Middle(9), |row| or_dash(row.installed_version.as_ref()));
const PENDING: Column<Row> = Column::new("PENDING", Fit::Middle(9), |row| or_dash(row.pending_version.as_ref()));
const NEWER: Column<Row> = Column::optional("NEWER", Fit::Middle(9), |row| or_dash(row.newer_version.as_ref()));
const HEALTH: Column<Row> = Column::toned("HEALTH", Fit::Full, Row::health_text, Row::health_tone);
const STATE: Column<Row> = Column::toned("STATE", Fit::End(11), Row::state_text, |row| row.state.tone());
const AGE: Column<Row> = Column::new("AGE", Fit::Drop, |row| or_dash(row.age.map(age)));
const REVISION: Column<Row> = Column::new("REVISION", Fit::Full, |row| or_dash(row.revision));
const CLASS: Column<Row> = Column::new("CLASS", Fit::Full, |row| or_dash(row.class.as_ref()));
const SOURCE: Column<Row> = Column::new("SOURCE", Fit::Extra(40), |row| row.source.clone());
const MESSAGE: Column<Row> = Column::new("MESSAGE", Fit::Extra(24), Row::message_text);

const SHORT: [Column<Row>; 9] = [NAME, NAMESPACE, VERSION, PENDING, NEWER, STATE, AGE, MESSAGE, SOURCE];
const SHORT_WITH_HEALTH: [Column<Row>; 10] =
    [NAME, NAMESPACE, VERSION, PENDING, NEWER, HEALTH, STATE, AGE, MESSAGE, SOURCE];
const WIDE: [Column<Row>; 11] =
    [NAME, NAMESPACE, VERSION, PENDING, STATE, AGE, REVISION, CLASS, SOURCE, MESSAGE, NEWER];
const WIDE_WITH_HEALTH: [Column<Row>; 12] =
    [NAME, NAMESPACE, VERSION, PENDING, HEALTH, STATE, AGE, REVISION, CLASS, SOURCE, MESSAGE, NEWER];

/// The table, with a header. The short table fits into the width of the frame, if it has one, and has more columns where they fit. The
/// health is a column if something runs whose state is about something else.
pub fn table(rows: &[Row], columns: Columns, frame: impl Into<Frame>) -> String {
    let frame = frame.into();
    let has_health = rows.iter().any(|row| row.health.is_some() && row.state != State::Ready);
    match (columns, has_health) {
        (Columns::Short, false) => table::text(&SHORT, rows, frame),
        (Columns::Short, true) => table::text(&SHORT_WITH_HEALTH, rows, frame),
        (Columns::Wide, false) => table::wide(&WIDE, rows, frame.look),
        (Columns::Wide, true) => table::wide(&WIDE_WITH_HEALTH, rows, frame.look),
    }
}

/// The most notes below a table.
const NOTES: usize = 10;

/// A line for each row that waits for a decision, or that a rollback keeps: what runs and what waits.
pub fn notes(rows: &[Row]) -> Vec<String> {
    let waits = |row: &&Row| matches!(row.state, State::AwaitingApproval | State::Suspended) || row.pinned_to.is_some();
    let mut lines: Vec<String> = rows.iter().filter(waits).take(NOTES + 1).map(|row| row.note.clone()).collect();
    if lines.len() > NOTES {
        lines.truncate(NOTES);
        lines.push("`chandler list -o json` shows what else waits".to_owned());
    }
    lines
}

/// An age as kubectl prints it: `45s`, `12m`, `5h`, `3d`.
pub(super) fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7200 => format!("{}m", seconds / 60),
        seconds @ 7200..172_800 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(spec: &Value, status: &Value) -> Row {
        let mut object = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": "harbour", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"installNamespace": "harbour-system", "provisionerClassName": "c",
                "source": {"type": "image", "image": {"ref": "quay.io/example/harbour:v1"}}},
            "status": status,
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().cloned().unwrap_or_default());
        Row::new(&serde_json::from_value(object).unwrap(), "2026-01-01T03:00:00Z".parse().unwrap())
    }

    fn revision(number: i64, outcome: &str, version: Option<&str>) -> Value {
        json!({
            "number": number, "outcome": outcome, "version": version, "contentDigest": "sha256:0123456789abcdef",
            "configDigest": "", "installNamespace": "n", "provisioner": {"class": "c", "digest": ""},
            "releaseDigest": "", "source": {"type": "image"},
        })
    }

    fn condition(type_: &str, status: &str, reason: &str) -> Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "a message",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn the_installed_version_stands_beside_the_pending_one() {
        let versions = |status: Value| {
            let row = row(&json!({}), &status);
            (row.installed_version, row.pending_version)
        };
        let own = |text: &str| Some(text.to_owned());
        let first = revision(1, "Succeeded", Some("1.0.0"));
        assert_eq!(versions(json!({})), (None, None));
        assert_eq!(versions(json!({"history": [first]})), (own("1.0.0"), None));
        let second = revision(2, "RollingOut", Some("1.1.0"));
        assert_eq!(versions(json!({"history": [first, second]})), (own("1.0.0"), own("1.1.0")));
        let candidate = json!({"version": "1.2.0", "releaseDigest": "sha256:77"});
        assert_eq!(versions(json!({"history": [first], "candidate": candidate})), (own("1.0.0"), own("1.2.0")));
        let plain = revision(1, "Succeeded", None);
        assert_eq!(versions(json!({"history": [plain]})), (own("sha256:0123456"), None));
    }

    #[test]
    fn a_state_is_one_word_with_its_reason() {
        let state = |spec: Value, status: Value| row(&spec, &status).state_text();
        let observed = |conditions: Value| json!({"observedGeneration": 1, "conditions": conditions});
        let ready = |status: &str, reason: &str| condition("Ready", status, reason);
        assert_eq!(state(json!({}), json!({})), "Pending");
        assert_eq!(state(json!({}), observed(json!([ready("True", "Succeeded")]))), "Ready");
        assert_eq!(state(json!({"suspend": true}), observed(json!([ready("True", "Suspended")]))), "Suspended");
        let going = json!([condition("Progressing", "True", "RollingOut"), ready("False", "RollingOut")]);
        assert_eq!(state(json!({}), observed(going)), "Progressing (RollingOut)");
        let failed = json!([condition("Progressing", "False", "InvalidContent"), ready("False", "InvalidContent")]);
        assert_eq!(state(json!({}), observed(failed)), "Failed (InvalidContent)");
        let drifted = json!([condition("Drifted", "True", "DriftReported"), ready("True", "Succeeded")]);
        assert_eq!(state(json!({}), observed(drifted)), "Ready (DriftReported)");
        let waits = json!([condition("Progressing", "False", "ApprovalRequired"), ready("False", "ApprovalRequired")]);
        assert_eq!(state(json!({}), observed(waits)), "Awaiting approval");
    }

    #[test]
    fn the_table_has_a_row_for_each() {
        let history = json!([revision(1, "Succeeded", Some("1.0.0"))]);
        let status = json!({"observedGeneration": 1, "history": history, "revision": 1,
            "conditions": [condition("Ready", "True", "Succeeded")]});
        let rows = [row(&json!({}), &status), row(&json!({"installNamespace": "n"}), &json!({}))];
        insta::assert_snapshot!(table(&rows, Columns::Short, None), @r"
        NAME     NAMESPACE       VERSION  PENDING  STATE    AGE
        harbour  harbour-system  1.0.0    -        Ready    3h
        harbour  n               -        -        Pending  3h
        ");
        insta::assert_snapshot!(table(&rows[..1], Columns::Wide, None), @r"
        NAME     NAMESPACE       VERSION  PENDING  STATE  AGE  REVISION  CLASS  SOURCE                            MESSAGE
        harbour  harbour-system  1.0.0    -        Ready  3h   1         c      image quay.io/example/harbour:v1  -
        ");
    }

    #[test]
    fn the_health_of_what_runs_is_beside_the_state_of_what_waits() {
        let status = |reason: &str| {
            json!({"observedGeneration": 1, "history": [revision(1, "Succeeded", Some("1.0.0"))], "revision": 1,
            "candidate": {"version": "1.1.0", "releaseDigest": "sha256:1"}, "conditions": [
                condition("Healthy", "True", "Healthy"),
                condition("Progressing", "False", reason),
                condition("Ready", "False", reason),
            ]})
        };
        let ready = json!({"observedGeneration": 1, "history": [revision(1, "Succeeded", Some("1.0.0"))],
            "conditions": [condition("Ready", "True", "Succeeded")]});
        let pinned = json!({"rollout": {"toRevision": 1}});
        let rows = [
            row(&json!({}), &status("ApprovalRequired")),
            row(&json!({}), &status("InvalidContent")),
            row(&json!({}), &ready),
            row(&pinned, &ready),
            row(&json!({}), &json!({})),
        ];
        insta::assert_snapshot!(table(&rows, Columns::Short, Some(80)), @r"
        NAME     NAMESPACE       VERSION  PENDING  HEALTH   STATE                    AGE
        harbour  harbour-system  1.0.0    1.1.0    Healthy  Awaiting approval        3h
        harbour  harbour-system  1.0.0    1.1.0    Healthy  Failed (InvalidContent)  3h
        harbour  harbour-system  1.0.0    -        Healthy  Ready                    3h
        harbour  harbour-system  1.0.0    -        Healthy  Ready                    3h
        harbour  harbour-system  -        -        -        Pending                  3h
        ");
        insta::assert_snapshot!(table(&rows, Columns::Short, Some(160)), @r"
        NAME     NAMESPACE       VERSION  PENDING  HEALTH   STATE                    AGE  MESSAGE
        harbour  harbour-system  1.0.0    1.1.0    Healthy  Awaiting approval        3h   1.1.0 waits for your approval: `chandler approve harbour`
        harbour  harbour-system  1.0.0    1.1.0    Healthy  Failed (InvalidContent)  3h   1.1.0 needs action: InvalidContent: a message
        harbour  harbour-system  1.0.0    -        Healthy  Ready                    3h   -
        harbour  harbour-system  1.0.0    -        Healthy  Ready                    3h   pinned to revision 1 by your rollback; `chandler rollback harbour --cancel` e…
        harbour  harbour-system  -        -        -        Pending                  3h   the controller has not observed the current spec yet
        ");
        insta::assert_snapshot!(notes(&rows).join("\n"), @r"
        harbour: 1.0.0 runs and is healthy; 1.1.0 waits for your approval: `chandler approve harbour`
        harbour: 1.0.0 runs and is healthy; pinned to revision 1 by your rollback; `chandler rollback harbour --cancel` ends it
        ");
    }

    #[test]
    fn newer_versions_are_a_column_if_there_are_any() {
        let mut newer = row(&json!({}), &json!({}));
        newer.newer_version = Some("1.2.0".to_owned());
        let rows = [newer, row(&json!({}), &json!({}))];
        insta::assert_snapshot!(table(&rows, Columns::Short, Some(80)), @r"
        NAME     NAMESPACE       VERSION  PENDING  NEWER  STATE    AGE
        harbour  harbour-system  -        -        1.2.0  Pending  3h
        harbour  harbour-system  -        -        -      Pending  3h
        ");
        assert!(table(&rows, Columns::Wide, None).lines().next().is_some_and(|header| header.ends_with("NEWER")));
    }

    #[test]
    fn the_short_table_fits_the_terminal_and_uses_more_of_a_wide_one() {
        let history = json!([revision(1, "Succeeded", Some("1.0.0"))]);
        let failed = json!({"observedGeneration": 1, "history": history, "revision": 1, "conditions": [
            condition("Progressing", "False", "ProgressDeadlineExceeded"),
            condition("Ready", "False", "ProgressDeadlineExceeded"),
        ]});
        let spec = json!({"installNamespace": "a-namespace-with-a-long-name-of-a-tenant"});
        let rows = [row(&spec, &failed), row(&json!({}), &json!({}))];
        insta::assert_snapshot!(table(&rows, Columns::Short, Some(80)), @r"
        NAME     NAMESPACE                        VERSION  PENDING  HEALTH   STATE
        harbour  a-namespace-wit…ame-of-a-tenant  1.0.0    -        Unknown  Failed (Pr…
        harbour  harbour-system                   -        -        -        Pending
        ");
        insta::assert_snapshot!(table(&rows, Columns::Short, Some(140)), @r"
        NAME     NAMESPACE                                 VERSION  PENDING  HEALTH   STATE                              AGE
        harbour  a-namespace-with-a-long-name-of-a-tenant  1.0.0    -        Unknown  Failed (ProgressDeadlineExceeded)  3h
        harbour  harbour-system                            -        -        -        Pending                            3h
        ");
        for width in [80, 140] {
            let text = table(&rows, Columns::Short, Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
        }
    }

    #[test]
    fn ages_are_those_of_kubectl() {
        for (seconds, text) in [(0, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (172_800, "2d")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
}
