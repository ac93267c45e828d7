//! Users with the permissions that a case needs.

use serde_json::{Value, json};

use crate::support::{Collection, Http, Scope};

/// Requests as this user, by impersonation.
pub(crate) fn user(scope: &Scope, name: &str) -> Http {
    scope.http().with("impersonate-user", name).with("impersonate-group", "system:authenticated")
}

/// A unique user with these rules in the case's namespace.
pub(crate) async fn user_with(scope: &Scope, rules: Value) -> (String, Http) {
    let name = scope.name("user");
    grant(scope, &name, rules).await;
    let http = user(scope, &name);
    (name, http)
}

/// Grants a user these rules in the case's namespace, and waits until they take effect.
pub(crate) async fn grant(scope: &Scope, user: &str, rules: Value) {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": user}, "rules": rules});
    roles(scope).await.create(&role).await.is(201);
    bindings(scope).await.create(&binding(user, "Role", user, user)).await.is(201);
    let namespace = scope.namespace().await;
    let first = &rules[0];
    let attributes = json!({"namespace": namespace, "verb": first["verbs"][0], "group": first["apiGroups"][0],
        "resource": resource(first).0, "subresource": resource(first).1, "name": first["resourceNames"][0]});
    until_allowed(scope, user, attributes).await;
}

fn resource(rule: &Value) -> (String, String) {
    let text = rule["resources"][0].as_str().unwrap_or_default();
    let (resource, subresource) = text.split_once('/').unwrap_or((text, ""));
    (resource.to_owned(), subresource.to_owned())
}

/// Waits until a grant takes effect: authorizers learn of bindings by watching.
pub(crate) async fn until_allowed(scope: &Scope, user: &str, mut attributes: Value) {
    for (field, value) in attributes.clone().as_object().unwrap() {
        if value.is_null() {
            attributes.as_object_mut().unwrap().remove(field);
        }
    }
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": ["system:authenticated"], "resourceAttributes": attributes}});
    let mut tick = tokio::time::interval(std::time::Duration::from_millis(20));
    let waiting = async {
        loop {
            tick.tick().await;
            let answer = scope.http().post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.is(201);
            if answer["status"]["allowed"] == true {
                return;
            }
        }
    };
    let waited = tokio::time::timeout(crate::support::http::PATIENCE, waiting).await;
    assert!(waited.is_ok(), "{user} was never allowed {review}");
}

pub(super) async fn roles(scope: &Scope) -> Collection {
    scope.collection("rbac.authorization.k8s.io/v1", "roles").await
}

pub(super) async fn bindings(scope: &Scope) -> Collection {
    scope.collection("rbac.authorization.k8s.io/v1", "rolebindings").await
}

pub(super) fn role(name: &str, rules: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": name}, "rules": rules})
}

/// A binding of a user to a role of this kind.
pub(super) fn binding(name: &str, kind: &str, role: &str, user: &str) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]})
}

/// A rule on core resources.
pub(crate) fn rule(verbs: &[&str], resources: &[&str]) -> Value {
    json!({"apiGroups": [""], "resources": resources, "verbs": verbs})
}
