//! What values change in the Deployment of the controller.

use std::fmt::Write as _;

use serde_json::Value;

use super::{
    edits::{member, put, when},
    hole::Holes,
};
use crate::{
    ManifestsError, NAMESPACE, Profile,
    condition::{self, Condition},
    deployment::{CACHE, CONTENT, CONTENT_PORT, METRICS, METRICS_PORT, PROBES, RECEIVER, RECEIVER_PORT, SCC},
    yaml::yaml,
};

/// The number of replicas, as [`Settings::replicas`](crate::Settings::replicas) chooses it.
pub(super) const REPLICAS: &str = "\
{{- $replicas := 2 }}
{{- if .Values.cache.claim }}{{ $replicas = 1 }}{{ end }}
{{- if .Values.replicas }}{{ $replicas = int .Values.replicas }}{{ end }}
";

/// The resources of the container, beside the storage of the file. A number without a suffix need not be a string.
const RESOURCES: &str = "\
resources:
  requests:
    cpu: {{ .Values.resources.requests.cpu | toString | quote }}
    memory: {{ .Values.resources.requests.memory | toString | quote }}
  limits:
    {{- with .Values.resources.limits.cpu }}
    cpu: {{ . | toString | quote }}
    {{- end }}
    memory: {{ .Values.resources.limits.memory | toString | quote }}";

/// The resource that no value sets.
const STORAGE: &str = "ephemeral-storage";

/// Changes the Deployment of the file.
pub(super) fn edit(object: &mut Value, holes: &mut Holes) -> Result<(), ManifestsError> {
    put(object, "/spec/replicas", holes.value("{{ $replicas }}"))?;
    let strategy = member("strategy", object.pointer("/spec/strategy").unwrap_or(&Value::Null))?;
    // A volume may be attached to one node only: the next Pod would wait for the previous one.
    let one = "if and (eq $replicas 1) .Values.cache.claim";
    put(object, "/spec/strategy", holes.lines(when(one, "strategy:\n  type: Recreate", Some(&strategy))))?;
    let scc = format!("annotations:\n  {}: {}", SCC.0, SCC.1);
    insert(object, "/spec/template/metadata", "annotations", holes.lines(selected(condition::OPENSHIFT, &scc)))?;
    edit_pod(object, holes)?;
    edit_container(object, holes)
}

fn edit_pod(object: &mut Value, holes: &mut Holes) -> Result<(), ManifestsError> {
    const POD: &str = "/spec/template/spec";
    for (member, condition, lines) in [
        ("priorityClassName", "with .Values.priorityClass", "priorityClassName: {{ quote . }}"),
        ("imagePullSecrets", "with .Values.imagePullSecret", "imagePullSecrets:\n- name: {{ quote . }}"),
        ("nodeSelector", "with .Values.nodeSelector", "nodeSelector:\n  {{- toYaml . | nindent 8 }}"),
        ("tolerations", "with .Values.tolerations", "tolerations:\n  {{- toYaml . | nindent 8 }}"),
    ] {
        insert(object, POD, member, holes.lines(when(condition, lines, None)))?;
    }
    let volumes = object.pointer(&format!("{POD}/volumes")).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut lines = "volumes:".to_owned();
    for volume in &volumes {
        let name = volume.get("name").and_then(Value::as_str).unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = write!(lines, "\n- name: {name}\n");
        let mut source = volume.clone();
        source.as_object_mut().and_then(|source| source.remove("name"));
        let source = yaml(&source)?.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n");
        let claim = "  persistentVolumeClaim:\n    claimName: {{ quote . }}";
        lines += &if name == CACHE { when("with .Values.cache.claim", claim, Some(&source)) } else { source };
    }
    put(object, &format!("{POD}/volumes"), holes.lines(lines))?;
    not_on_openshift(object, &format!("{POD}/securityContext"), "fsGroup", holes)
}

fn edit_container(object: &mut Value, holes: &mut Holes) -> Result<(), ManifestsError> {
    const CONTAINER: &str = "/spec/template/spec/containers/0";
    put(object, &format!("{CONTAINER}/image"), holes.value("{{ quote .Values.image }}"))?;
    insert(object, CONTAINER, "args", holes.lines(arguments()))?;
    let ports = object.pointer_mut(&format!("{CONTAINER}/ports")).and_then(Value::as_array_mut);
    let mut kept = ports.cloned().unwrap_or_default();
    kept.retain(|port| port.get("name").and_then(Value::as_str) != Some(METRICS));
    let mut lines = member("ports", &Value::Array(kept))?.trim_end().to_owned();
    for (condition, name, port) in [
        (condition::METRICS, METRICS, METRICS_PORT),
        (condition::CONTENT, CONTENT, CONTENT_PORT),
        (condition::RECEIVER, RECEIVER, RECEIVER_PORT),
    ] {
        let port = format!("- containerPort: {port}\n  name: {name}");
        lines = format!("{lines}\n{}", selected(condition, &port));
    }
    put(object, &format!("{CONTAINER}/ports"), holes.lines(lines))?;
    let mut resources = RESOURCES.to_owned();
    for list in ["requests", "limits"] {
        let quantity = object.pointer(&format!("{CONTAINER}/resources/{list}/{STORAGE}")).and_then(Value::as_str);
        if let Some(quantity) = quantity {
            let head = format!("  {list}:\n");
            resources = resources.replacen(&head, &format!("{head}    {STORAGE}: {quantity}\n"), 1);
        }
    }
    put(object, &format!("{CONTAINER}/resources"), holes.lines(resources))?;
    not_on_openshift(object, &format!("{CONTAINER}/securityContext"), "runAsUser", holes)
}

/// The arguments of the container.
fn arguments() -> String {
    let mut lines = vec!["args:".to_owned(), "- controller".to_owned()];
    lines.push("- --log-format={{ .Values.logFormat }}".to_owned());
    lines.push(format!("- {PROBES}"));
    let metrics = format!("- --metrics-address=0.0.0.0:{METRICS_PORT}");
    lines.push(selected(condition::METRICS, &metrics));
    lines.push(when("with .Values.metrics.tlsSecret", "- --metrics-tls-secret={{ . }}", None));
    lines.push(selected(condition::CONTENT, &format!("- --content-address=0.0.0.0:{CONTENT_PORT}")));
    lines.push(selected(condition::RECEIVER, &format!("- --receiver-address=0.0.0.0:{RECEIVER_PORT}")));
    lines.push(when("with .Values.receiver.tlsSecret", "- --receiver-tls-secret={{ . }}", None));
    let elsewhere = format!("if ne .Release.Namespace \"{NAMESPACE}\"");
    lines.push(when(&elsewhere, "- --system-namespace={{ .Release.Namespace }}", None));
    for (profile, condition) in
        [(Profile::OpenShift, condition::OPENSHIFT), (Profile::MultiTenant, condition::MULTI_TENANT)]
    {
        let options: Vec<String> = profile.arguments().iter().map(|option| format!("- {option}")).collect();
        lines.push(selected(condition, &options.join("\n")));
    }
    lines.push("{{- range .Values.args }}\n- {{ quote . }}\n{{- end }}".to_owned());
    lines.join("\n")
}

/// Lines that depend on settings.
fn selected(condition: Condition, lines: &str) -> String {
    when(&format!("if {}", condition.template), lines, None)
}

/// The SCC of OpenShift chooses this value, from the range of the namespace.
fn not_on_openshift(object: &mut Value, pointer: &str, key: &str, holes: &mut Holes) -> Result<(), ManifestsError> {
    let lines = member(key, object.pointer(&format!("{pointer}/{key}")).unwrap_or(&Value::Null))?;
    let other = condition::OPENSHIFT.template.replacen("eq", "ne", 1);
    put(object, &format!("{pointer}/{key}"), holes.lines(when(&format!("if {other}"), &lines, None)))
}

/// Sets a member of an object that the file has.
fn insert(object: &mut Value, pointer: &str, key: &str, value: Value) -> Result<(), ManifestsError> {
    let members = object.pointer_mut(pointer).and_then(Value::as_object_mut);
    let members = members.ok_or_else(|| ManifestsError::Chart { message: format!("there is nothing at {pointer}") })?;
    members.insert(key.to_owned(), value);
    Ok(())
}
