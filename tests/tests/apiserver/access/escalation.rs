//! Users cannot grant permissions that they lack.

use serde_json::{Value, json};

use super::users::{binding, bindings, grant, role, roles, rule, user, user_with};
use crate::support::{Scope, cases};

cases! {
    "3.21" a_role_with_permissions_the_user_lacks_is_refused;
    "3.21" a_role_with_the_users_own_permissions_is_allowed;
    "3.21" the_verb_escalate_allows_it;
    "3.21" binding_needs_the_permissions_of_the_role;
    "3.21" the_verb_bind_allows_it;
    "3.21" updates_are_checked_like_creates;
}

fn manager(more: &[Value]) -> Value {
    let mut rules = vec![json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"],
            "verbs": ["create", "update", "patch", "get"]})];
    rules.extend_from_slice(more);
    rules.into()
}

async fn a_role_with_permissions_the_user_lacks_is_refused(scope: &Scope) {
    let (name, http) = user_with(scope, manager(&[rule(&["get"], &["secrets"])])).await;
    let wanted = role("more", json!([rule(&["get", "delete"], &["secrets"]), rule(&["list"], &["configmaps"])]));
    let status = roles(scope).await.through(&http).create(&wanted).await.refused(403, "Forbidden");
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with("roles.rbac.authorization.k8s.io \"more\" is forbidden: "), "{message}");
    assert!(message.contains(&format!("user \"{name}\"")), "{message}");
    assert!(message.contains("is attempting to grant RBAC permissions not currently held:"), "{message}");
    assert!(message.contains(r#"{APIGroups:[""], Resources:["secrets"], Verbs:["delete"]}"#), "{message}");
    assert!(message.contains(r#"{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}"#), "{message}");
    roles(scope).await.get("more").await.refused(404, "NotFound");
}

async fn a_role_with_the_users_own_permissions_is_allowed(scope: &Scope) {
    let (_, http) = user_with(scope, manager(&[rule(&["get", "list"], &["secrets", "configmaps"])])).await;
    roles(scope).await.through(&http).create(&role("less", json!([rule(&["get"], &["secrets"])]))).await.is(201);
    let mut named = rule(&["list"], &["configmaps"]);
    named["resourceNames"] = json!(["a"]);
    roles(scope).await.through(&http).create(&role("named", json!([named]))).await.is(201);
}

async fn the_verb_escalate_allows_it(scope: &Scope) {
    let escalate = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]});
    let (_, http) = user_with(scope, manager(&[escalate])).await;
    roles(scope).await.through(&http).create(&role("more", json!([rule(&["*"], &["secrets"])]))).await.is(201);
}

async fn binding_needs_the_permissions_of_the_role(scope: &Scope) {
    roles(scope).await.create(&role("reader", json!([rule(&["get"], &["secrets"])]))).await.ok();
    let (_, http) = user_with(scope, manager(&[])).await;
    let status = bindings(scope)
        .await
        .through(&http)
        .create(&binding("b", "Role", "reader", "jane"))
        .await
        .refused(403, "Forbidden");
    assert!(
        status["message"].as_str().unwrap().contains("is attempting to grant RBAC permissions not currently held"),
        "{status}"
    );
    let holder = scope.name("holder");
    grant(scope, &holder, manager(&[rule(&["get"], &["secrets"])])).await;
    let holder = user(scope, &holder);
    bindings(scope).await.through(&holder).create(&binding("b", "Role", "reader", "jane")).await.is(201);
    let status = bindings(scope).await.through(&http).create(&binding("c", "Role", "none", "jane")).await;
    assert!(matches!(status.status, 403 | 404), "the rules of a missing role are unknown: {}", status.text);
}

async fn the_verb_bind_allows_it(scope: &Scope) {
    for name in ["reader", "writer"] {
        roles(scope).await.create(&role(name, json!([rule(&["get"], &["secrets"])]))).await.ok();
    }
    let bind = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["bind"],
        "resourceNames": ["reader"]});
    let (_, http) = user_with(scope, manager(&[bind])).await;
    let bindings = bindings(scope).await.through(&http);
    bindings.create(&binding("b", "Role", "reader", "jane")).await.is(201);
    bindings.create(&binding("c", "Role", "writer", "jane")).await.refused(403, "Forbidden");
}

async fn updates_are_checked_like_creates(scope: &Scope) {
    roles(scope).await.create(&role("a", json!([rule(&["get"], &["secrets"])]))).await.ok();
    let (_, http) = user_with(scope, manager(&[rule(&["get"], &["secrets"])])).await;
    let mine = roles(scope).await.through(&http);
    mine.merge("a", &json!({"metadata": {"labels": {"x": "y"}}})).await.is(200);
    let more = json!({"rules": [rule(&["get", "list"], &["secrets"])]});
    mine.merge("a", &more).await.refused(403, "Forbidden");
    mine.apply("a?force=true", "one", &role("a", json!([rule(&["*"], &["*"])]))).await.refused(403, "Forbidden");
}
