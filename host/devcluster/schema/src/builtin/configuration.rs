//! Webhook configurations, disruption budgets, autoscalers, ingresses.

use serde_json::Value;

use super::{list, text};
use crate::{error::FieldError, path::FieldPath};

/// Validates a webhook configuration; other kinds of the group have no `webhooks`.
pub(super) fn webhooks(object: &Value, errors: &mut Vec<FieldError>) {
    let root = FieldPath::Root;
    let webhooks_path = root.field("webhooks");
    for (index, webhook) in list(object, "webhooks").iter().enumerate() {
        let path = webhooks_path.index(index);
        let name = text(webhook, "name");
        if name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(&path.field("name"), name, detail));
        }
        if list(webhook, "admissionReviewVersions").is_empty() {
            let detail = "must specify one of v1, v1beta1";
            errors.push(FieldError::required(&path.field("admissionReviewVersions"), detail));
        }
        match text(webhook, "sideEffects") {
            "" => {
                errors.push(FieldError::required(&path.field("sideEffects"), "must specify one of None, NoneOnDryRun"));
            }
            "None" | "NoneOnDryRun" => {}
            other => {
                errors.push(FieldError::not_supported(&path.field("sideEffects"), other, ["None", "NoneOnDryRun"]));
            }
        }
        if let Some(seconds) =
            webhook.get("timeoutSeconds").and_then(Value::as_i64).filter(|seconds| !(1..=30).contains(seconds))
        {
            let detail = "the timeout value must be between 1 and 30 seconds";
            errors.push(FieldError::invalid(&path.field("timeoutSeconds"), seconds, detail));
        }
        let client = webhook.get("clientConfig").unwrap_or(&Value::Null);
        if client.get("url").is_some() == client.get("service").is_some() {
            errors.push(FieldError::required(&path.field("clientConfig"), "exactly one of url or service is required"));
        }
    }
}

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
