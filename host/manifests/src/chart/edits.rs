//! What values change in the objects of the files.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{deployment, hole::Holes};
use crate::{
    ManifestsError,
    adapt::replace,
    condition,
    deployment::{CONTENT_PORT, METRICS_PORT, RECEIVER_PORT},
    yaml::yaml,
};

/// An object with holes for what values change.
pub(super) fn edit(object: &mut Value, holes: &mut Holes) -> Result<(), ManifestsError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    match (text("/kind").as_str(), text("/metadata/name").as_str()) {
        ("Deployment", _) => deployment::edit(object, holes),
        ("NetworkPolicy", _) => put(object, "/spec/ingress", holes.lines(ports())),
        ("ResourceQuota", "chandler-critical-pods") => {
            let class = holes.value("{{ quote .Values.priorityClass }}");
            put(object, "/spec/scopeSelector/matchExpressions/0/values", json!([class]))
        }
        ("ServiceMonitor", _) => authority(object, holes),
        _ => Ok(()),
    }
}

/// Replaces a value that the file has.
pub(super) fn put(object: &mut Value, pointer: &str, value: Value) -> Result<(), ManifestsError> {
    replace(object, pointer, value).map_err(|message| ManifestsError::Chart { message })
}

/// Lines that depend on a condition; without it, there are others, or none.
pub(super) fn when(condition: &str, lines: &str, otherwise: Option<&str>) -> String {
    let mut text = format!("{{{{- {condition} }}}}\n{}\n", lines.trim_end());
    if let Some(otherwise) = otherwise {
        // Writing to a string cannot fail.
        let _ = write!(text, "{{{{- else }}}}\n{}\n", otherwise.trim_end());
    }
    text + "{{- end }}"
}

/// A member of an object as lines.
pub(super) fn member(key: &str, value: &Value) -> Result<String, ManifestsError> {
    yaml(&json!({ key: value }))
}

/// The ports on which the controller serves callers. A rule without ports would allow all of them.
fn ports() -> String {
    let port = |condition: condition::Condition, port: i32| {
        let lines = format!("  - port: {port}\n    protocol: TCP");
        when(&format!("if {}", condition.template), &lines, None)
    };
    let served =
        [(condition::METRICS, METRICS_PORT), (condition::CONTENT, CONTENT_PORT), (condition::RECEIVER, RECEIVER_PORT)];
    let ports = served.map(|(condition, number)| port(condition, number)).join("\n");
    let any = format!("if or {}", served.map(|(condition, _)| condition.template).join(" "));
    when(&any, &format!("ingress:\n- ports:\n{ports}"), Some("ingress: []"))
}

/// With a certificate in a Secret, Prometheus checks it.
fn authority(object: &mut Value, holes: &mut Holes) -> Result<(), ManifestsError> {
    const TLS: &str = "/spec/endpoints/0/tlsConfig";
    let unchecked = member("tlsConfig", object.pointer(TLS).unwrap_or(&Value::Null))?;
    let checked = "tlsConfig:\n  ca:\n    secret:\n      key: ca.crt\n      name: {{ quote . }}\n  \
                   serverName: chandler-metrics.{{ $.Release.Namespace }}.svc";
    put(object, TLS, holes.lines(when("with .Values.metrics.tlsSecret", checked, Some(&unchecked))))
}
