//! HorizontalPodAutoscalers, in their version 2.

use serde_json::Value;

use crate::table::{
    cell::{AGE, NAME, NONE, UNKNOWN, UNSET, first_of, plain, text},
    column::{Column, Row},
};

/// HorizontalPodAutoscalers.
pub(super) const HORIZONTAL_POD_AUTOSCALER: &[Column] = &[
    NAME,
    Column::text("Reference", |row| {
        format!("{}/{}", row.text("/spec/scaleTargetRef/kind"), row.text("/spec/scaleTargetRef/name")).into()
    }),
    Column::text("Targets", targets),
    Column::text("MinPods", |row| plain(row.object.pointer("/spec/minReplicas"), UNSET).into()),
    Column::text("MaxPods", |row| row.integer("/spec/maxReplicas").into()),
    Column::text("Replicas", |row| row.integer("/status/currentReplicas").into()),
    AGE,
];

fn targets(row: Row<'_>) -> Value {
    let mut current = row.list("/status/currentMetrics");
    let shown = row.list("/spec/metrics").map(|metric| target(metric, current.next()));
    first_of(shown.collect(), 2, ", ", NONE).into()
}

/// The current and the target value of one metric.
fn target(metric: &Value, status: Option<&Value>) -> String {
    let (source, named, by_utilization) = match text(metric, "/type") {
        "External" => ("external", false, false),
        "Pods" => ("pods", false, false),
        "Object" => ("object", false, false),
        "Resource" => ("resource", true, true),
        "ContainerResource" => ("containerResource", true, true),
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = |field: &str| metric.pointer(&format!("/{source}/target/{field}"));
    let status = status.and_then(|status| status.get(source));
    let present = |field: &str| status.and_then(|status| status.pointer(&format!("/current/{field}")));
    let prefix = if named { format!("{}: ", text(metric, &format!("/{source}/name"))) } else { String::new() };
    let shown = match (wanted("averageValue"), by_utilization) {
        (Some(average), _) => {
            let suffix = if source == "external" || source == "object" { " (avg)" } else { "" };
            format!("{}/{}{suffix}", plain(present("averageValue"), UNKNOWN), plain(Some(average), ""))
        }
        (None, true) => {
            let percent = |value: Option<&Value>, default: &str| {
                value.and_then(Value::as_i64).map_or_else(|| default.to_owned(), |value| format!("{value}%"))
            };
            let current = percent(present("averageUtilization"), UNKNOWN);
            format!("{current}/{}", percent(wanted("averageUtilization"), "<auto>"))
        }
        (None, false) => format!("{}/{}", plain(present("value"), UNKNOWN), plain(wanted("value"), "<nil>")),
    };
    format!("{prefix}{shown}")
}
