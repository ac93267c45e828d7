//! RBAC.

use serde_json::Value;

use crate::schema::{
    error::FieldError,
    fields::{list, text},
    path::FieldPath,
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Validates a Role, ClusterRole, RoleBinding or ClusterRoleBinding.
pub(super) fn rbac(kind: &str, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    match kind {
        "Role" | "ClusterRole" => rules(kind, new, errors),
        "RoleBinding" | "ClusterRoleBinding" => binding(kind, new, old, errors),
        _ => {}
    }
}

fn rules(kind: &str, role: &Value, errors: &mut Vec<FieldError>) {
    let root = FieldPath::Root;
    let rules_path = root.field("rules");
    for (index, rule) in list(role, "rules").iter().enumerate() {
        let path = rules_path.index(index);
        if list(rule, "verbs").is_empty() {
            errors.push(FieldError::required(&path.field("verbs"), "verbs must contain at least one value"));
        }
        if !list(rule, "nonResourceURLs").is_empty() {
            let value = || rule.get("nonResourceURLs").cloned().unwrap_or_default();
            let path = path.field("nonResourceURLs");
            if kind == "Role" {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(&path, value(), detail));
            }
            if !list(rule, "apiGroups").is_empty() || !list(rule, "resources").is_empty() {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(&path, value(), detail));
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            let detail = "resource rules must supply at least one api group";
            errors.push(FieldError::required(&path.field("apiGroups"), detail));
        }
        if list(rule, "resources").is_empty() {
            let detail = "resource rules must supply at least one resource";
            errors.push(FieldError::required(&path.field("resources"), detail));
        }
    }
}

fn binding(kind: &str, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let root = FieldPath::Root;
    let path = root.field("roleRef");
    let role = new.get("roleRef").unwrap_or(&Value::Null);
    if !["", GROUP].contains(&text(role, "apiGroup")) {
        errors.push(FieldError::not_supported(&path.field("apiGroup"), text(role, "apiGroup"), [GROUP]));
    }
    let kinds: &[&str] = if kind == "RoleBinding" { &["ClusterRole", "Role"] } else { &["ClusterRole"] };
    if !kinds.contains(&text(role, "kind")) {
        errors.push(FieldError::not_supported(&path.field("kind"), text(role, "kind"), kinds.iter().copied()));
    }
    if text(role, "name").is_empty() {
        errors.push(FieldError::required(&path.field("name"), ""));
    }
    if old.is_some_and(|old| old.get("roleRef") != new.get("roleRef")) {
        errors.push(FieldError::invalid(&path, role.clone(), "cannot change roleRef"));
    }
    let subjects_path = root.field("subjects");
    for (index, subject) in list(new, "subjects").iter().enumerate() {
        let path = subjects_path.index(index);
        if text(subject, "name").is_empty() {
            errors.push(FieldError::required(&path.field("name"), ""));
        }
        match text(subject, "kind") {
            "ServiceAccount" => {
                // The default in a RoleBinding is its own namespace.
                if kind != "RoleBinding" && text(subject, "namespace").is_empty() {
                    errors.push(FieldError::required(&path.field("namespace"), ""));
                }
            }
            "Group" | "User" => {
                if text(subject, "apiGroup") != GROUP {
                    errors.push(FieldError::not_supported(&path.field("apiGroup"), text(subject, "apiGroup"), [GROUP]));
                }
            }
            other => {
                errors.push(FieldError::not_supported(&path.field("kind"), other, ["Group", "ServiceAccount", "User"]));
            }
        }
    }
}
