//! Pods and pod templates.

use std::collections::HashSet;

use serde_json::Value;

use super::rules;
use crate::schema::{
    error::FieldError,
    fields::{invalid_each, list, text},
    metadata::label_errors,
    names,
    path::FieldPath,
};

/// The restart policies of a Pod that no controller makes.
const RESTART_POLICIES: &[&str] = &["Always", "Never", "OnFailure"];

/// Validates a PodTemplate.
pub(super) fn alone(new: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("template");
    match new.get("template") {
        Some(value) if value.get("spec").is_some() => template(value, RESTART_POLICIES, &[], &path, errors),
        // All else of what kube-apiserver takes a Pod without a spec for has a default.
        _ => errors.push(FieldError::required(&path.field("spec").field("containers"), "")),
    }
}

/// Validates the `spec` of a Pod.
pub(super) fn pod(new: &Value, old: Option<&Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    spec(new, RESTART_POLICIES, &[], path, errors);
    if old.is_some_and(|old| fixed(old) != fixed(new)) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                      `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// The spec without what may change.
fn fixed(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(object) = spec.as_object_mut() {
        object.retain(|name, _| {
            !matches!(name.as_str(), "activeDeadlineSeconds" | "tolerations" | "nodeName" | "schedulingGates")
        });
    }
    for containers in ["containers", "initContainers"] {
        for container in spec.get_mut(containers).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(container) = container.as_object_mut() {
                container.remove("image");
            }
        }
    }
    spec
}

/// Validates a pod template whose restart policy may be one of `restart`. Its containers may also mount the templates of claims of a
/// StatefulSet.
pub(super) fn template(
    template: &Value,
    restart: &[&str],
    claims: &[Value],
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    let metadata = path.field("metadata");
    errors.extend(label_errors(template.pointer("/metadata/labels"), &metadata.field("labels")));
    spec(template.get("spec").unwrap_or(&Value::Null), restart, claims, &path.field("spec"), errors);
}

fn spec(spec: &Value, restart: &[&str], claims: &[Value], path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let policy = text(spec, "restartPolicy");
    if !restart.contains(&policy) {
        let path = path.field("restartPolicy");
        errors.push(match policy {
            "" => FieldError::required(&path, ""),
            policy => FieldError::not_supported(&path, policy, restart.iter().copied()),
        });
    }
    rules::pod(spec, &path.to_string(), errors);
    let mut volumes = HashSet::new();
    let volumes_path = path.field("volumes");
    for (index, volume) in list(spec, "volumes").iter().enumerate() {
        let item = volumes_path.index(index);
        let path = item.field("name");
        let name = text(volume, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
        } else {
            invalid_each(&path, name, names::dns1123_label(name), errors);
            if !volumes.insert(name) {
                errors.push(FieldError::duplicate(&path, name));
            }
        }
        one_of(volume, VOLUME_SOURCES, "may not specify more than 1 volume type", &item, errors);
    }
    volumes.extend(claims.iter().filter_map(|claim| claim.pointer("/metadata/name")?.as_str()));
    if list(spec, "containers").is_empty() {
        errors.push(FieldError::required(&path.field("containers"), ""));
    }
    let mut seen = HashSet::new();
    for field in ["containers", "initContainers"] {
        let containers_path = path.field(field);
        for (index, item) in list(spec, field).iter().enumerate() {
            container(item, &volumes, &mut seen, &containers_path.index(index), errors);
        }
    }
}

/// The usual types of volumes, in the order in which kube-apiserver looks for them: it complains about all but the first.
const VOLUME_SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "secret",
    "nfs",
    "iscsi",
    "persistentVolumeClaim",
    "downwardAPI",
    "configMap",
    "projected",
    "csi",
    "ephemeral",
    "image",
];

/// Refuses every member but the first of those that exclude each other.
fn one_of(value: &Value, members: &[&str], detail: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let present = members.iter().filter(|member| value.get(**member).is_some_and(|value| !value.is_null()));
    errors.extend(present.skip(1).map(|member| FieldError::forbidden(&path.field(member), detail)));
}

fn container<'a>(
    container: &'a Value,
    volumes: &HashSet<&str>,
    seen: &mut HashSet<&'a str>,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    let name = text(container, "name");
    let name_path = path.field("name");
    if name.is_empty() {
        errors.push(FieldError::required(&name_path, ""));
    } else {
        invalid_each(&name_path, name, names::dns1123_label(name), errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
    }
    let image = text(container, "image");
    if image.is_empty() {
        errors.push(FieldError::required(&path.field("image"), ""));
    } else if image.trim() != image {
        errors.push(FieldError::invalid(&path.field("image"), image, "must not have leading or trailing whitespace"));
    }
    match text(container, "imagePullPolicy") {
        "" | "Always" | "IfNotPresent" | "Never" => {}
        other => {
            errors.push(FieldError::not_supported(
                &path.field("imagePullPolicy"),
                other,
                ["Always", "IfNotPresent", "Never"],
            ));
        }
    }
    rules::container(container, &path.to_string(), errors);
    handlers(container, path, errors);
    ports(container, path, errors);
    let environment_path = path.field("env");
    for (index, variable) in list(container, "env").iter().enumerate() {
        if text(variable, "name").is_empty() {
            errors.push(FieldError::required(&environment_path.index(index).field("name"), ""));
        }
    }
    let mounts_path = path.field("volumeMounts");
    for (index, mount) in list(container, "volumeMounts").iter().enumerate() {
        let item = mounts_path.index(index);
        let name = text(mount, "name");
        if !name.is_empty() && !volumes.contains(name) {
            errors.push(FieldError::not_found(&item.field("name"), name));
        }
        if text(mount, "mountPath").is_empty() {
            errors.push(FieldError::required(&item.field("mountPath"), ""));
        }
    }
}

/// Probes and variables that must say exactly one thing.
fn handlers(container: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get(name).filter(|probe| probe.is_object()) else { continue };
        let (path, handlers) = (path.field(name), ["exec", "httpGet", "tcpSocket", "grpc"]);
        if !handlers.iter().any(|handler| probe.get(handler).is_some()) {
            errors.push(FieldError::required(&path, "must specify a handler type"));
        }
        one_of(probe, &handlers, "may not specify more than 1 handler type", &path, errors);
    }
    let env = path.field("env");
    for (index, variable) in list(container, "env").iter().enumerate() {
        let Some(from) = variable.get("valueFrom").filter(|from| from.is_object()) else { continue };
        let item = env.index(index);
        let path = item.field("valueFrom");
        let sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
        if !sources.iter().any(|source| from.get(source).is_some()) {
            let detail = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
            errors.push(FieldError::invalid(&path, "", detail));
        } else if !text(variable, "value").is_empty() {
            errors.push(FieldError::invalid(&path, "", "may not be specified when `value` is not empty"));
        }
    }
    for _ in list(container, "envFrom")
        .iter()
        .filter(|source| source.get("configMapRef").is_none() && source.get("secretRef").is_none())
    {
        let detail = "must specify one of: `configMapRef` or `secretRef`";
        errors.push(FieldError::invalid(&path.field("envFrom"), "", detail));
    }
}

fn ports(container: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let ports_path = path.field("ports");
    let mut seen = HashSet::new();
    for (index, port) in list(container, "ports").iter().enumerate() {
        let item = ports_path.index(index);
        for field in ["containerPort", "hostPort"] {
            if let Some(number) = port.get(field).and_then(Value::as_i64).filter(|number| !(1..=65535).contains(number))
            {
                errors.push(FieldError::invalid(&item.field(field), number, "must be between 1 and 65535, inclusive"));
            }
        }
        let name = text(port, "name");
        if !name.is_empty() {
            invalid_each(&item.field("name"), name, names::port_name(name), errors);
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&item.field("name"), name));
            }
        }
        if !matches!(text(port, "protocol"), "" | "TCP" | "UDP" | "SCTP") {
            let path = item.field("protocol");
            errors.push(FieldError::not_supported(&path, text(port, "protocol"), ["SCTP", "TCP", "UDP"]));
        }
    }
}
