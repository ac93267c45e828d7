//! Services.

use std::collections::HashSet;

use serde_json::Value;

use crate::schema::{
    error::FieldError,
    fields::{invalid_each, list, text},
    names,
    path::FieldPath,
};

/// Validates the `spec` of a Service.
pub(super) fn service(new: &Value, old: Option<&Value>, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let service_type = text(new, "type");
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !types.contains(&service_type) {
        errors.push(FieldError::not_supported(&path.field("type"), service_type, types));
    }
    let cluster_ip = text(new, "clusterIP");
    if service_type == "ExternalName" {
        if text(new, "externalName").is_empty() {
            errors.push(FieldError::required(&path.field("externalName"), ""));
        }
        if !cluster_ip.is_empty() {
            errors
                .push(FieldError::forbidden(&path.field("clusterIPs"), "may not be set when `type` is 'ExternalName'"));
        }
    } else if cluster_ip != "None" && list(new, "ports").is_empty() {
        errors.push(FieldError::required(&path.field("ports"), ""));
    }
    if cluster_ip == "None" && matches!(service_type, "NodePort" | "LoadBalancer") {
        let value = new.get("clusterIPs").cloned().unwrap_or_else(|| Value::from(vec!["None"]));
        let detail = format!("may not be set to 'None' for {service_type} services");
        errors.push(FieldError::invalid(&path.field("clusterIPs").index(0), value, detail));
    }
    ports(new, path, errors);
    if let Some(old) = old {
        let before = text(old, "clusterIP");
        let kept = [text(old, "type"), service_type].iter().all(|service_type| *service_type != "ExternalName");
        if kept && !before.is_empty() && before != cluster_ip {
            let value = vec![cluster_ip];
            errors.push(FieldError::invalid(&path.field("clusterIPs").index(0), value, "may not change once set"));
        }
    }
}

fn ports(spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let ports = list(spec, "ports");
    let ports_path = path.field("ports");
    let (mut seen_names, mut seen_ports) = (HashSet::new(), HashSet::new());
    for (index, port) in ports.iter().enumerate() {
        let item = ports_path.index(index);
        let name = text(port, "name");
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(&item.field("name"), ""));
            }
        } else {
            invalid_each(&item.field("name"), name, names::dns1123_label(name), errors);
            if !seen_names.insert(name) {
                errors.push(FieldError::duplicate(&item.field("name"), name));
            }
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            errors.push(FieldError::invalid(&item.field("port"), number, "must be between 1 and 65535, inclusive"));
        }
        if !seen_ports.insert((text(port, "protocol"), number)) {
            errors.push(FieldError::duplicate(&item, port.clone()));
        }
        match port.get("targetPort") {
            Some(Value::String(name)) => invalid_each(&item.field("targetPort"), name, names::port_name(name), errors),
            Some(Value::Number(target)) if !target.as_i64().is_some_and(|target| (1..=65535).contains(&target)) => {
                let value = Value::Number(target.clone());
                errors.push(FieldError::invalid(
                    &item.field("targetPort"),
                    value,
                    "must be between 1 and 65535, inclusive",
                ));
            }
            _ => {}
        }
    }
}
