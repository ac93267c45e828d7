//! Webhook configurations, and how webhooks are reached.
//!
//! Source: `k8s.io/kubernetes/pkg/apis/admissionregistration/validation`, `k8s.io/apiserver/pkg/util/webhook`.

use std::collections::HashSet;

use serde_json::Value;

use crate::schema::{
    error::FieldError,
    fields::{invalid_each, list, text},
    names,
    path::FieldPath,
    selector,
};

/// Validates a webhook configuration.
pub(crate) fn configuration(object: &Value, errors: &mut Vec<FieldError>) {
    let root = FieldPath::Root;
    let webhooks_path = root.field("webhooks");
    let mut seen = HashSet::new();
    for (index, webhook) in list(object, "webhooks").iter().enumerate() {
        let path = webhooks_path.index(index);
        let name = text(webhook, "name");
        fully_qualified(name, &path.field("name"), errors);
        let rules = path.field("rules");
        for (index, rule) in list(webhook, "rules").iter().enumerate() {
            self::rule(rule, &rules.index(index), errors);
        }
        for (field, supported) in [
            ("failurePolicy", ["Fail", "Ignore"]),
            ("matchPolicy", ["Equivalent", "Exact"]),
            ("reinvocationPolicy", ["IfNeeded", "Never"]),
        ] {
            one_of(webhook, field, &supported, &path, errors);
        }
        if text(webhook, "sideEffects").is_empty() && webhook.get("sideEffects").is_none_or(Value::is_null) {
            errors.push(FieldError::required(&path.field("sideEffects"), "must specify one of None, NoneOnDryRun"));
        }
        one_of(webhook, "sideEffects", &["None", "NoneOnDryRun"], &path, errors);
        if let Some(seconds) =
            webhook.get("timeoutSeconds").and_then(Value::as_i64).filter(|seconds| !(1..=30).contains(seconds))
        {
            let detail = "the timeout value must be between 1 and 30 seconds";
            errors.push(FieldError::invalid(&path.field("timeoutSeconds"), seconds, detail));
        }
        selector::optional(webhook, "namespaceSelector", &path, errors);
        selector::optional(webhook, "objectSelector", &path, errors);
        client(webhook.get("clientConfig").unwrap_or(&Value::Null), &path.field("clientConfig"), errors);
        review_versions(list(webhook, "admissionReviewVersions"), &path.field("admissionReviewVersions"), errors);
        if !name.is_empty() && !seen.insert(name) {
            errors.push(FieldError::duplicate(&path.field("name"), name));
        }
    }
}

fn one_of(object: &Value, field: &str, supported: &[&str], path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if let Some(found) = object.get(field).and_then(Value::as_str).filter(|found| !supported.contains(found)) {
        errors.push(FieldError::not_supported(&path.field(field), found, supported.iter().copied()));
    }
}

/// A name of at least three parts.
fn fully_qualified(name: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let details = names::dns1123_subdomain(name);
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !details.is_empty() {
        errors.push(FieldError::invalid(path, name, details.join(",")));
    } else if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

/// Validates a rule about requests.
pub(crate) fn rule(rule: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
    let operations_path = path.field("operations");
    wildcard(rule, "operations", "operations", path, errors);
    for (index, operation) in list(rule, "operations").iter().enumerate() {
        let operation = operation.as_str().unwrap_or_default();
        if !OPERATIONS.contains(&operation) {
            let path = operations_path.index(index);
            errors.push(FieldError::not_supported(&path, operation, OPERATIONS.iter().copied()));
        }
    }
    wildcard(rule, "apiGroups", "API groups", path, errors);
    wildcard(rule, "apiVersions", "API versions", path, errors);
    let versions = path.field("apiVersions");
    for (index, version) in list(rule, "apiVersions").iter().enumerate() {
        if version == "" {
            errors.push(FieldError::required(&versions.index(index), ""));
        }
    }
    resources(rule, path, errors);
    one_of(rule, "scope", &["*", "Cluster", "Namespaced"], path, errors);
}

/// A list that must not be empty, and in which `*` must be the only item.
fn wildcard(rule: &Value, field: &str, what: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let values = list(rule, field);
    if values.is_empty() {
        errors.push(FieldError::required(&path.field(field), ""));
    }
    if values.len() > 1 && values.iter().any(|value| value == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(&path.field(field), values.to_vec(), detail));
    }
}

fn resources(rule: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let path = path.field("resources");
    let resources = list(rule, "resources");
    if resources.is_empty() {
        errors.push(FieldError::required(&path, ""));
    }
    let (mut all_subresources, mut everywhere) = (HashSet::new(), HashSet::new());
    let mut plain = false;
    let texts: Vec<&str> = resources.iter().map(|resource| resource.as_str().unwrap_or_default()).collect();
    for (index, name) in texts.iter().enumerate() {
        let path = path.index(index);
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        let Some((resource, subresource)) = name.split_once('/') else {
            plain = *name != "*";
            continue;
        };
        if all_subresources.contains(resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {name}");
            errors.push(FieldError::invalid(&path, *name, detail));
        }
        if everywhere.contains(subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {name}");
            errors.push(FieldError::invalid(&path, *name, detail));
        }
        if subresource == "*" {
            all_subresources.insert(resource);
        }
        if resource == "*" {
            everywhere.insert(subresource);
        }
    }
    if texts.len() > 1 && texts.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(&path, resources.to_vec(), detail));
    }
    if texts.contains(&"*") && plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(&path, resources.to_vec(), detail));
    }
}

/// Validates versions of review objects, of which one must be known.
pub(crate) fn review_versions(versions: &[Value], path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if versions.is_empty() {
        errors.push(FieldError::required(path, "must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let version = version.as_str().unwrap_or_default();
        if !seen.insert(version) {
            errors.push(FieldError::invalid(&path.index(index), version, "duplicate version"));
            continue;
        }
        invalid_each(&path.index(index), version, names::dns1035_label(version), errors);
    }
    if !seen.contains("v1") && !seen.contains("v1beta1") {
        errors.push(FieldError::invalid(path, versions.to_vec(), "must include at least one of v1, v1beta1"));
    }
}

/// Validates how a webhook is reached.
pub(crate) fn client(client: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let there = |field: &str| client.get(field).filter(|value| !value.is_null());
    match (there("url"), there("service")) {
        (Some(url), None) => self::url(url.as_str().unwrap_or_default(), &path.field("url"), errors),
        (None, Some(service)) => self::service(service, &path.field("service"), errors),
        _ => errors.push(FieldError::required(path, "exactly one of url or service is required")),
    }
}

fn url(url: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const FORM: &str = "; desired format: https://host[/path]";
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = rest.split_once(':').unwrap_or(("", rest));
    let authority = rest.strip_prefix("//").map(|rest| rest.split('/').next().unwrap_or_default()).unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let mut invalid = |value: &str, detail: String| errors.push(FieldError::invalid(path, value, detail));
    if scheme != "https" {
        invalid(scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    if host.is_empty() {
        invalid(host, format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        invalid(user, "user information is not permitted in the URL".to_owned());
    }
    if !fragment.is_empty() {
        invalid(fragment, "fragments are not permitted in the URL".to_owned());
    }
    if !query.is_empty() {
        invalid(query, "query parameters are not permitted in the URL".to_owned());
    }
}

fn service(service: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    for field in ["name", "namespace"] {
        if text(service, field).is_empty() {
            errors.push(FieldError::required(&path.field(field), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.field("port"), port, detail));
    }
    let route = text(service, "path");
    let mut invalid = |detail: String| errors.push(FieldError::invalid(&path.field("path"), route, detail));
    if route.is_empty() || route == "/" {
        return;
    }
    if route == "//" {
        invalid("segment[0] may not be empty".to_owned());
        return;
    }
    if !route.starts_with('/') {
        invalid("must start with a '/'".to_owned());
    }
    let mut rest = route.chars();
    rest.next();
    let rest = rest.as_str();
    for (index, step) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if step.is_empty() {
            invalid(format!("segment[{index}] may not be empty"));
            continue;
        }
        for detail in names::dns1123_subdomain(step) {
            invalid(format!("segment[{index}]: {detail}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn invalid_webhooks_are_reported() {
        let good = json!({
            "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 443, "path": "/validate"}},
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/*"]}],
        });
        let cases = [
            ("", json!(null), ""),
            (
                "/name",
                json!("a"),
                "name: Invalid value: \"a\": should be a domain with at least three segments separated by dots",
            ),
            (
                "/sideEffects",
                json!("Some"),
                "sideEffects: Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\"",
            ),
            ("/sideEffects", json!(null), "sideEffects: Required value: must specify one of None, NoneOnDryRun"),
            (
                "/admissionReviewVersions",
                json!([]),
                "admissionReviewVersions: Required value: must specify one of v1, v1beta1",
            ),
            (
                "/admissionReviewVersions",
                json!(["v9"]),
                "admissionReviewVersions: Invalid value: [\"v9\"]: must include at least one of v1, v1beta1",
            ),
            ("/clientConfig", json!({}), "clientConfig: Required value: exactly one of url or service is required"),
            (
                "/clientConfig",
                json!({"url": "https://u@h/x"}),
                "clientConfig.url: Invalid value: \"u\": user information is not permitted in the URL",
            ),
            (
                "/clientConfig/service/port",
                json!(0),
                "clientConfig.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            ),
            (
                "/clientConfig/service/path",
                json!("/a//b"),
                "clientConfig.service.path: Invalid value: \"/a//b\": segment[1] may not be empty",
            ),
            (
                "/rules/0/resources",
                json!(["pods/*", "pods/log"]),
                "rules[0].resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not specify pods/log",
            ),
            ("/rules/0/operations", json!([]), "rules[0].operations: Required value"),
        ];
        for (pointer, value, expected) in cases {
            let mut webhook = good.clone();
            if !pointer.is_empty() {
                *webhook.pointer_mut(pointer).unwrap() = value;
            }
            let mut errors = Vec::new();
            configuration(&json!({"webhooks": [webhook]}), &mut errors);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expected: Vec<String> = Some(expected)
                .filter(|text| !text.is_empty())
                .map(|text| format!("webhooks[0].{text}"))
                .into_iter()
                .collect();
            assert_eq!(found, expected);
        }
    }
}
