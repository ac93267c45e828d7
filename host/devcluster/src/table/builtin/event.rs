//! Events, in the form of the core group.

use serde_json::Value;

use crate::table::{
    cell::{NAME, UNKNOWN},
    column::{Column, Row},
};

/// Events of both groups.
pub(super) const EVENT: &[Column] = &[
    Column::text("Last Seen", |row| last_seen(row).into()),
    Column::text("Type", |row| row.text("/type").into()),
    Column::text("Reason", |row| row.text("/reason").into()),
    Column::text("Object", |row| {
        let kind = row.text("/involvedObject/kind").to_lowercase();
        match row.text("/involvedObject/name") {
            "" => kind.into(),
            name => format!("{kind}/{name}").into(),
        }
    }),
    Column::text("Subobject", |row| row.text("/involvedObject/fieldPath").into()).wide(),
    Column::text("Source", source).wide(),
    Column::text("Message", |row| row.text("/message").trim().into()),
    Column::text("First Seen", |row| first_seen(row).into()).wide(),
    Column::text("Count", count).wide(),
    NAME.wide(),
];

fn first_seen(row: Row<'_>) -> String {
    match row.since("/firstTimestamp") {
        unknown if unknown == UNKNOWN => row.since("/eventTime"),
        known => known,
    }
}

fn last_seen(row: Row<'_>) -> String {
    if row.object.get("series").is_some_and(Value::is_object) {
        return row.since("/series/lastObservedTime");
    }
    match row.since("/lastTimestamp") {
        unknown if unknown == UNKNOWN => first_seen(row),
        known => known,
    }
}

fn count(row: Row<'_>) -> Value {
    if row.object.get("series").is_some_and(Value::is_object) {
        return row.integer("/series/count").into();
    }
    // An event of the new API that happened once has no count.
    row.integer("/count").max(1).into()
}

fn source(row: Row<'_>) -> Value {
    let component = row.text_or("/source/component", row.text("/reportingComponent"));
    match row.text_or("/source/host", row.text("/reportingInstance")) {
        "" => component.into(),
        instance => format!("{component}, {instance}").into(),
    }
}
