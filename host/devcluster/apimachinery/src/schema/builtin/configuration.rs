//! Disruption budgets, autoscalers, ingresses.

use serde_json::Value;

use crate::schema::{
    error::FieldError,
    fields::{list, text},
    path::FieldPath,
};

/// Validates the `spec` of a PodDisruptionBudget.
pub(super) fn disruption_budget(spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
        errors.push(FieldError::invalid(path, spec.clone(), "minAvailable and maxUnavailable cannot be both set"));
    }
}

/// Validates the `spec` of a HorizontalPodAutoscaler.
pub(super) fn autoscaler(spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let least = spec.get("minReplicas").and_then(Value::as_i64).unwrap_or(1);
    let most = spec.get("maxReplicas").and_then(Value::as_i64).unwrap_or(0);
    if least < 1 {
        errors.push(FieldError::invalid(&path.field("minReplicas"), least, "must be greater than or equal to 1"));
    }
    if most < 1 {
        errors.push(FieldError::invalid(&path.field("maxReplicas"), most, "must be greater than 0"));
    } else if most < least {
        errors.push(FieldError::invalid(
            &path.field("maxReplicas"),
            most,
            "must be greater than or equal to `minReplicas`",
        ));
    }
}

/// Validates the `spec` of an Ingress.
pub(super) fn ingress(spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if list(spec, "rules").is_empty() && spec.get("defaultBackend").is_none() {
        errors.push(FieldError::invalid(path, spec.clone(), "either `defaultBackend` or `rules` must be specified"));
    }
    let rules_path = path.field("rules");
    for (rule_index, rule) in list(spec, "rules").iter().enumerate() {
        let rule_path = rules_path.index(rule_index);
        let http = rule_path.field("http");
        let paths_path = http.field("paths");
        let Some(rule) = rule.get("http") else { continue };
        if list(rule, "paths").is_empty() {
            errors.push(FieldError::required(&paths_path, ""));
        }
        for (index, route) in list(rule, "paths").iter().enumerate() {
            let path = paths_path.index(index);
            match text(route, "pathType") {
                "" => errors.push(FieldError::required(&path.field("pathType"), "pathType must be specified")),
                "Exact" | "ImplementationSpecific" | "Prefix" => {}
                other => {
                    let supported = ["Exact", "ImplementationSpecific", "Prefix"];
                    errors.push(FieldError::not_supported(&path.field("pathType"), other, supported));
                }
            }
            let route_path = text(route, "path");
            if text(route, "pathType") != "ImplementationSpecific" && !route_path.starts_with('/') {
                errors.push(FieldError::invalid(&path.field("path"), route_path, "must be an absolute path"));
            }
        }
    }
}
