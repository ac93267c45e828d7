//! ValidatingAdmissionPolicies and their bindings, except for their expressions, which [`policies`](crate::policies) checks.
//!
//! Source: `k8s.io/kubernetes/pkg/apis/admissionregistration/validation`.

use std::collections::HashSet;

use serde_json::Value;

use crate::schema::{
    error::FieldError,
    fields::{invalid_each, list, text},
    names,
    path::FieldPath,
    selector, webhook,
};

/// The most match conditions and audit annotations.
const CONDITIONS: usize = 64;
const ANNOTATIONS: usize = 20;
/// Words that cannot be variable names.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const ACTIONS: &[&str] = &["Audit", "Deny", "Warn"];

/// Validates a policy.
pub(super) fn policy(object: &Value, spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    supported(spec, "failurePolicy", &["Fail", "Ignore"], path, errors);
    if let Some(kind) = there(spec, "paramKind") {
        param_kind(kind, &path.field("paramKind"), errors);
    }
    let constraints_path = path.field("matchConstraints");
    match there(spec, "matchConstraints") {
        None => errors.push(FieldError::required(&constraints_path, "")),
        Some(constraints) => {
            match_resources(constraints, &constraints_path, errors);
            if list(constraints, "resourceRules").is_empty() {
                errors.push(FieldError::required(&constraints_path.field("resourceRules"), ""));
            }
        }
    }
    match_conditions(list(spec, "matchConditions"), &path.field("matchConditions"), errors);
    let variables = path.field("variables");
    for (index, variable) in list(spec, "variables").iter().enumerate() {
        self::variable(variable, &variables.index(index), errors);
    }
    let (validations, annotations) = (list(spec, "validations"), list(spec, "auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        for field in ["validations", "auditAnnotations"] {
            let detail = "validations or auditAnnotations must contain at least one item";
            errors.push(FieldError::required(&path.field(field), detail));
        }
    }
    let validations_path = path.field("validations");
    for (index, validation) in validations.iter().enumerate() {
        self::validation(validation, &validations_path.index(index), errors);
    }
    audit_annotations(annotations, &text_of_name(object), &path.field("auditAnnotations"), errors);
}

/// Validates a binding.
pub(super) fn binding(spec: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let policy = text(spec, "policyName");
    if policy.is_empty() {
        errors.push(FieldError::required(&path.field("policyName"), ""));
    } else {
        invalid_each(&path.field("policyName"), policy, names::dns1123_subdomain(policy), errors);
    }
    if let Some(reference) = there(spec, "paramRef") {
        param_ref(reference, &path.field("paramRef"), errors);
    }
    if let Some(resources) = there(spec, "matchResources") {
        // The misspelling is kube-apiserver's.
        match_resources(resources, &path.field("matchResouces"), errors);
    }
    validation_actions(list(spec, "validationActions"), &path.field("validationActions"), errors);
}

fn there<'a>(value: &'a Value, field: &str) -> Option<&'a Value> {
    value.get(field).filter(|value| !value.is_null())
}

fn text_of_name(object: &Value) -> String {
    object.get("metadata").map(|metadata| text(metadata, "name")).unwrap_or_default().to_owned()
}

fn supported(object: &Value, field: &str, values: &[&str], path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    match there(object, field).and_then(Value::as_str) {
        None => errors.push(FieldError::required(&path.field(field), "")),
        Some(found) if !values.contains(&found) => {
            errors.push(FieldError::not_supported(&path.field(field), found, values.iter().copied()));
        }
        Some(_) => {}
    }
}

fn param_kind(kind: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let (api_version, api_version_path) = (text(kind, "apiVersion"), path.field("apiVersion"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if api_version.is_empty() {
        errors.push(FieldError::required(&api_version_path, ""));
    } else if version.contains('/') {
        let detail = format!("unexpected GroupVersion string: {api_version}");
        errors.push(FieldError::invalid(&api_version_path, api_version, detail));
    } else {
        let mut invalid = |value: &str, details: Vec<String>| {
            if !details.is_empty() {
                errors.push(FieldError::invalid(&api_version_path, value, details.join(",")));
            }
        };
        if !group.is_empty() {
            invalid(group, names::dns1123_subdomain(group));
        }
        if version.is_empty() {
            invalid(api_version, vec!["version must be specified".to_owned()]);
        } else {
            invalid(version, names::dns1035_label(version));
        }
    }
    let kind = text(kind, "kind");
    let details = names::dns1035_label(&kind.to_lowercase());
    if kind.is_empty() {
        errors.push(FieldError::required(&path.field("kind"), ""));
    } else if !details.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", details.join(","));
        errors.push(FieldError::invalid(&path.field("kind"), kind, detail));
    }
}

fn match_resources(resources: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    supported(resources, "matchPolicy", &["Equivalent", "Exact"], path, errors);
    selector::optional(resources, "namespaceSelector", path, errors);
    selector::optional(resources, "objectSelector", path, errors);
    for field in ["resourceRules", "excludeResourceRules"] {
        let rules = path.field(field);
        for (index, rule) in list(resources, field).iter().enumerate() {
            named_rule(rule, &rules.index(index), errors);
        }
    }
}

fn named_rule(rule: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let names_path = path.field("resourceNames");
    let mut seen = HashSet::new();
    for (index, name) in list(rule, "resourceNames").iter().enumerate() {
        let (name, path) = (name.as_str().unwrap_or_default(), names_path.index(index));
        invalid_each(&path, name, names::path_segment(name), errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&path, name));
        }
    }
    webhook::rule(rule, path, errors);
}

fn match_conditions(conditions: &[Value], path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if conditions.len() > CONDITIONS {
        let count = u64::try_from(conditions.len()).unwrap_or(u64::MAX);
        errors.push(FieldError::too_many(path, count, CONDITIONS as u64));
    }
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let path = path.index(index);
        if text(condition, "expression").trim().is_empty() {
            errors.push(FieldError::required(&path.field("expression"), ""));
        }
        let name = text(condition, "name");
        let name_path = path.field("name");
        if name.is_empty() {
            errors.push(FieldError::required(&name_path, ""));
            continue;
        }
        invalid_each(&name_path, name, names::qualified_name(name), errors);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&name_path, name));
        }
    }
}

fn variable(variable: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let name = text(variable, "name");
    if name.trim().is_empty() {
        errors.push(FieldError::required(&path.field("name"), "name is not specified"));
    } else if !is_identifier(name) {
        errors.push(FieldError::invalid(&path.field("name"), name, "name is not a valid CEL identifier"));
    }
    if text(variable, "expression").trim().is_empty() {
        errors.push(FieldError::required(&path.field("expression"), "expression is not specified"));
    }
}

fn is_identifier(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    name.bytes().next().is_some_and(letter)
        && name.bytes().all(|byte| letter(byte) || byte.is_ascii_digit())
        && !RESERVED.contains(&name)
}

fn validation(validation: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if text(validation, "expression").trim().is_empty() {
        errors.push(FieldError::required(&path.field("expression"), "expression is not specified"));
    }
    let expression = text(validation, "messageExpression");
    if !expression.is_empty() && expression.trim().is_empty() {
        let detail = "must be non-empty if specified";
        errors.push(FieldError::invalid(&path.field("messageExpression"), expression, detail));
    }
    let message = text(validation, "message");
    if !message.is_empty() && message.trim().is_empty() {
        errors.push(FieldError::invalid(&path.field("message"), message, "message must be non-empty if specified"));
    } else if message.trim().contains(['\n', '\r']) {
        errors.push(FieldError::invalid(&path.field("message"), message, "message must not contain line breaks"));
    }
    if let Some(reason) = there(validation, "reason").and_then(Value::as_str)
        && !REASONS.contains(&reason)
    {
        errors.push(FieldError::not_supported(&path.field("reason"), reason, REASONS.iter().copied()));
    }
}

fn audit_annotations(annotations: &[Value], policy: &str, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    if annotations.len() > ANNOTATIONS {
        let detail = format!("must not have more than {ANNOTATIONS} auditAnnotations");
        errors.push(FieldError::invalid(path, annotations.to_vec(), detail));
    }
    let mut seen = HashSet::new();
    for (index, annotation) in annotations.iter().enumerate() {
        let (key, path) = (text(annotation, "key"), path.index(index));
        let key_path = path.field("key");
        let qualified = format!("{policy}/{key}");
        invalid_each(&key_path, &qualified, names::qualified_name(&qualified), errors);
        if text(annotation, "valueExpression").trim().is_empty() {
            errors.push(FieldError::required(&path.field("valueExpression"), "valueExpression is not specified"));
        }
        if !seen.insert(key) {
            errors.push(FieldError::duplicate(&key_path, key));
        }
    }
}

fn param_ref(reference: &Value, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const EXCLUSIVE: &str = "name and selector are mutually exclusive";
    let (name, selector) = (text(reference, "name"), there(reference, "selector"));
    if !name.is_empty() {
        invalid_each(&path.field("name"), name, names::path_segment(name), errors);
        if selector.is_some() {
            errors.push(FieldError::forbidden(&path.field("name"), EXCLUSIVE));
        }
    }
    if let Some(selector) = selector {
        selector::selector(selector, &path.field("selector"), errors);
        if !name.is_empty() {
            errors.push(FieldError::forbidden(&path.field("selector"), EXCLUSIVE));
        }
    }
    if name.is_empty() && selector.is_none() {
        errors.push(FieldError::required(path, "one of name or selector must be specified"));
    }
    supported(reference, "parameterNotFoundAction", &["Deny", "Allow"], path, errors);
}

fn validation_actions(actions: &[Value], path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let mut seen = HashSet::new();
    for (index, action) in actions.iter().enumerate() {
        let (action, path) = (action.as_str().unwrap_or_default(), path.index(index));
        if !ACTIONS.contains(&action) {
            errors.push(FieldError::not_supported(&path, action, ACTIONS.iter().copied()));
        }
        if !seen.insert(action) {
            errors.push(FieldError::duplicate(&path, action));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                      response and headers serves no purpose)";
        errors.push(FieldError::invalid(path, actions.to_vec(), detail));
    }
    if seen.is_empty() {
        errors.push(FieldError::required(path, "at least one validation action is required"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn good_policy() -> Value {
        json!({"metadata": {"name": "p"}, "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
                "resourceRules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}],
            },
            "validations": [{"expression": "true", "message": "m"}],
        }})
    }

    fn found(object: &Value) -> Vec<String> {
        let mut errors = Vec::new();
        policy(object, &object["spec"], &FieldPath::Root.field("spec"), &mut errors);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn invalid_policies_are_reported() {
        assert_eq!(found(&good_policy()), [""; 0]);
        for (field, value, expected) in [
            (
                "failurePolicy",
                json!("Maybe"),
                "spec.failurePolicy: Unsupported value: \"Maybe\": supported values: \"Fail\", \"Ignore\"",
            ),
            ("matchConstraints", json!(null), "spec.matchConstraints: Required value"),
            (
                "paramKind",
                json!({"apiVersion": "a/b/c", "kind": "K"}),
                "spec.paramKind.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
            ),
            ("paramKind", json!({"apiVersion": "v1"}), "spec.paramKind.kind: Required value"),
            (
                "variables",
                json!([{"name": "a-b", "expression": "1"}]),
                "spec.variables[0].name: Invalid value: \"a-b\": name is not a valid CEL identifier",
            ),
            (
                "variables",
                json!([{"name": "in", "expression": " "}]),
                "spec.variables[0].name: Invalid value: \"in\": name is not a valid CEL identifier",
            ),
            (
                "validations",
                json!([{"expression": " "}]),
                "spec.validations[0].expression: Required value: expression is not specified",
            ),
            (
                "validations",
                json!([{"expression": "true", "message": "a\nb"}]),
                "spec.validations[0].message: Invalid value: \"a\\nb\": message must not contain line breaks",
            ),
            (
                "validations",
                json!([{"expression": "true", "reason": "NotFound"}]),
                "spec.validations[0].reason: Unsupported value: \"NotFound\": supported values: \"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"",
            ),
            (
                "validations",
                json!([]),
                "spec.validations: Required value: validations or auditAnnotations must contain at least one item",
            ),
            (
                "auditAnnotations",
                json!([{"key": "k", "valueExpression": ""}]),
                "spec.auditAnnotations[0].valueExpression: Required value: valueExpression is not specified",
            ),
            (
                "matchConditions",
                json!([{"name": "", "expression": "true"}]),
                "spec.matchConditions[0].name: Required value",
            ),
            (
                "matchConditions",
                json!([{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]),
                "spec.matchConditions[1].name: Duplicate value: \"a\"",
            ),
        ] {
            let mut object = good_policy();
            object["spec"][field] = value;
            assert_eq!(found(&object).first().map(String::as_str), Some(expected));
        }
    }

    #[test]
    fn invalid_bindings_are_reported() {
        let good = json!({"policyName": "p", "validationActions": ["Deny"]});
        for (field, value, expected) in [
            ("policyName", json!("p"), None),
            ("policyName", json!(""), Some("spec.policyName: Required value")),
            (
                "validationActions",
                json!([]),
                Some("spec.validationActions: Required value: at least one validation action is required"),
            ),
            (
                "validationActions",
                json!(["Deny", "Warn"]),
                Some(
                    "spec.validationActions: Invalid value: [\"Deny\",\"Warn\"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
                ),
            ),
            (
                "validationActions",
                json!(["Deny", "Deny"]),
                Some("spec.validationActions[1]: Duplicate value: \"Deny\""),
            ),
            (
                "paramRef",
                json!({"parameterNotFoundAction": "Deny"}),
                Some("spec.paramRef: Required value: one of name or selector must be specified"),
            ),
            ("paramRef", json!({"name": "a"}), Some("spec.paramRef.parameterNotFoundAction: Required value")),
            (
                "paramRef",
                json!({"name": "a", "selector": {}, "parameterNotFoundAction": "Allow"}),
                Some("spec.paramRef.name: Forbidden: name and selector are mutually exclusive"),
            ),
        ] {
            let mut spec = good.clone();
            spec[field] = value;
            let mut errors = Vec::new();
            binding(&spec, &FieldPath::Root.field("spec"), &mut errors);
            assert_eq!(errors.first().map(ToString::to_string).as_deref(), expected, "{field}");
        }
    }
}
