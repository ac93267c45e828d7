//! What RBAC rules allow.

use serde_json::json;

use super::users::{binding, bindings, role, roles, rule, until_allowed, user, user_with};
use crate::support::{Collection, Scope, cases, objects::config_map};

cases! {
    "3.21" without_rules_everything_is_forbidden;
    "3.21" verbs_are_distinguished;
    "3.21" a_role_binding_applies_in_its_namespace;
    "3.21" names_limit_a_rule;
    "3.21" subresources_are_distinguished;
    "3.21" wildcards;
    "3.21" groups_and_accounts_are_bound;
    "3.21" a_cluster_role_is_bound_in_a_namespace_or_everywhere;
    "3.21" aggregated_roles_collect_rules;
    "3.21" non_resource_paths;
    "3.21" permissions_end_with_their_binding;
    "3.21" discovery_is_allowed_for_all_users;
    "3.21" role_references_are_immutable;
    "3.21" malformed_rules_are_refused;
    "3.21" an_apply_needs_patch_and_for_new_objects_create;
    "3.21" a_forbidden_response_does_not_reveal_existence;
}

async fn without_rules_everything_is_forbidden(scope: &Scope) {
    let secrets = scope.secrets().await;
    secrets.create(&json!({"metadata": {"name": "a"}})).await.ok();
    let user_without_rules = secrets.through(&user(scope, &scope.name("nobody")));
    user_without_rules.get("a").await.refused(403, "Forbidden");
    user_without_rules.list("").await.refused(403, "Forbidden");
    user_without_rules.list("watch=true").await.refused(403, "Forbidden");
    user_without_rules.create(&json!({"metadata": {"name": "b"}})).await.refused(403, "Forbidden");
    user_without_rules.merge("a", &json!({})).await.refused(403, "Forbidden");
    user_without_rules.delete("a").await.refused(403, "Forbidden");
    user_without_rules.delete_all("").await.refused(403, "Forbidden");
}

async fn verbs_are_distinguished(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    let (_, http) = user_with(scope, json!([rule(&["get", "patch"], &["configmaps"])])).await;
    let limited = maps.through(&http);
    limited.get("a").await.is(200);
    limited.merge("a", &json!({"data": {"x": "1"}})).await.is(200);
    limited.put("a", &created).await.refused(403, "Forbidden");
    limited.list("").await.refused(403, "Forbidden");
    limited.delete("a").await.refused(403, "Forbidden");
    limited.delete_all("").await.refused(403, "Forbidden");
    let status = limited.create(&config_map("b", json!({}))).await.refused(403, "Forbidden");
    assert!(status["message"].as_str().unwrap().starts_with("configmaps is forbidden: User "), "{status}");
}

async fn a_role_binding_applies_in_its_namespace(scope: &Scope) {
    let (_, http) = user_with(scope, json!([rule(&["list"], &["secrets"])])).await;
    scope.secrets().await.through(&http).list("").await.is(200);
    let other = scope.another_namespace("other").await;
    Collection::namespaced(&http, "v1", &other, "secrets").list("").await.refused(403, "Forbidden");
    let status = Collection::cluster(&http, "v1", "secrets").list("").await.refused(403, "Forbidden");
    assert!(status["message"].as_str().unwrap().ends_with("at the cluster scope"), "{status}");
}

async fn names_limit_a_rule(scope: &Scope) {
    let maps = scope.config_maps().await;
    for name in ["a", "b"] {
        maps.create(&config_map(name, json!({}))).await.ok();
    }
    let mut named = rule(&["get", "list", "watch", "delete"], &["configmaps"]);
    named["resourceNames"] = json!(["a"]);
    let (_, http) = user_with(scope, json!([named])).await;
    let limited = maps.through(&http);
    limited.get("a").await.is(200);
    limited.get("b").await.refused(403, "Forbidden");
    limited.list("").await.refused(403, "Forbidden");
    limited.list("fieldSelector=metadata.name=a").await.is(200);
    limited.delete("b").await.refused(403, "Forbidden");
}

async fn subresources_are_distinguished(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    let group = scope.server().shared_group();
    let status = json!({"apiGroups": [group], "resources": ["widgets/status"], "verbs": ["patch", "get"]});
    let (_, http) = user_with(scope, json!([status])).await;
    let limited = widgets.through(&http);
    limited.merge("a/status", &json!({"status": {"phase": "Done"}})).await.is(200);
    limited.get("a/status").await.is(200);
    let refused = limited.get("a").await.refused(403, "Forbidden");
    assert!(refused["message"].as_str().unwrap().contains("cannot get resource \"widgets\" in API group"), "{refused}");
    limited.merge("a", &json!({"spec": {"size": 5}})).await.refused(403, "Forbidden");
    let (_, http) = {
        let name = scope.name("main");
        let rules = json!([{"apiGroups": [group], "resources": ["widgets"], "verbs": ["*"]}]);
        super::users::grant(scope, &name, rules).await;
        (name.clone(), user(scope, &name))
    };
    let refused = widgets.through(&http).merge("a/status", &json!({"status": {}})).await.refused(403, "Forbidden");
    assert!(refused["message"].as_str().unwrap().contains("cannot patch resource \"widgets/status\""), "{refused}");
}

async fn wildcards(scope: &Scope) {
    let (name, http) = user_with(scope, json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])).await;
    scope.secrets().await.through(&http).create(&json!({"metadata": {"name": "a"}})).await.is(201);
    scope.widgets().await.through(&http).create(&scope.widget("a", json!({}))).await.is(201);
    scope.widgets().await.through(&http).merge("a/status", &json!({"status": {"phase": "x"}})).await.is(200);
    http.get("/api/v1/nodes").await.refused(403, "Forbidden");
    let anything_of_pods = scope.name("sub");
    let rules = json!([{"apiGroups": [scope.server().shared_group()], "resources": ["*/status"], "verbs": ["get"]}]);
    super::users::grant(scope, &anything_of_pods, rules).await;
    let limited = scope.widgets().await.through(&user(scope, &anything_of_pods));
    limited.get("a/status").await.is(200);
    limited.get("a").await.refused(403, "Forbidden");
    assert_ne!(name, anything_of_pods);
}

async fn groups_and_accounts_are_bound(scope: &Scope) {
    let namespace = scope.namespace().await;
    let crew = scope.name("crew");
    roles(scope).await.create(&role("reader", json!([rule(&["list"], &["secrets"])]))).await.ok();
    let mut bound = binding("readers", "Role", "reader", "unused");
    bound["subjects"] = json!([
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": crew},
        {"kind": "ServiceAccount", "name": "robot", "namespace": namespace},
    ]);
    bindings(scope).await.create(&bound).await.is(201);
    let robot = format!("system:serviceaccount:{namespace}:robot");
    until_allowed(scope, &robot, json!({"namespace": namespace, "verb": "list", "resource": "secrets"})).await;
    let secrets = scope.secrets().await;
    secrets.through(&user(scope, &robot)).list("").await.is(200);
    let member = scope.http().with("impersonate-user", "jane").with("impersonate-group", &crew);
    secrets.through(&member).list("").await.is(200);
    secrets.through(&scope.http().with("impersonate-user", "jane")).list("").await.refused(403, "Forbidden");
}

async fn a_cluster_role_is_bound_in_a_namespace_or_everywhere(scope: &Scope) {
    let name = scope.name("reader");
    let cluster_roles = Collection::cluster(scope.http(), "rbac.authorization.k8s.io/v1", "clusterroles");
    let mut cluster_role = role(&name, json!([rule(&["list"], &["secrets"])]));
    cluster_role["kind"] = "ClusterRole".into();
    cluster_roles.create(&scope.mark(cluster_role)).await.is(201);
    scope.remove_later(cluster_roles.path(&name));
    bindings(scope).await.create(&binding("local", "ClusterRole", &name, &name)).await.is(201);
    let namespace = scope.namespace().await;
    until_allowed(scope, &name, json!({"namespace": namespace, "verb": "list", "resource": "secrets"})).await;
    let all = Collection::cluster(&user(scope, &name), "v1", "secrets");
    all.list("").await.refused(403, "Forbidden");
    let mut everywhere = binding(&name, "ClusterRole", &name, &name);
    everywhere["kind"] = "ClusterRoleBinding".into();
    let cluster_bindings = Collection::cluster(scope.http(), "rbac.authorization.k8s.io/v1", "clusterrolebindings");
    cluster_bindings.create(&scope.mark(everywhere)).await.is(201);
    scope.remove_later(cluster_bindings.path(&name));
    until_allowed(scope, &name, json!({"verb": "list", "resource": "secrets"})).await;
    all.list("limit=1").await.is(200);
}

async fn aggregated_roles_collect_rules(scope: &Scope) {
    if !scope.server().has_controllers() {
        return;
    }
    let cluster_roles = Collection::cluster(scope.http(), "rbac.authorization.k8s.io/v1", "clusterroles");
    let label = scope.name("aggregate");
    let part = scope.name("part");
    let whole = scope.name("whole");
    for name in [&part, &whole] {
        scope.remove_later(cluster_roles.path(name));
    }
    let mut object = role(&part, json!([rule(&["list"], &["secrets"])]));
    object["kind"] = "ClusterRole".into();
    object["metadata"]["labels"] = json!({(label.clone()): "true"});
    cluster_roles.create(&scope.mark(object)).await.is(201);
    let mut object = role(&whole, json!(null));
    object["kind"] = "ClusterRole".into();
    object.as_object_mut().unwrap().remove("rules");
    object["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {(label): "true"}}]});
    cluster_roles.create(&scope.mark(object)).await.is(201);
    let collected = json!([rule(&["list"], &["secrets"])]);
    cluster_roles.until(&whole, "aggregated", |role| role["rules"] == collected).await;
}

async fn non_resource_paths(scope: &Scope) {
    let name = scope.name("monitor");
    let cluster_roles = Collection::cluster(scope.http(), "rbac.authorization.k8s.io/v1", "clusterroles");
    let mut object = role(&name, json!([{"nonResourceURLs": ["/metrics", "/logs/*"], "verbs": ["get"]}]));
    object["kind"] = "ClusterRole".into();
    cluster_roles.create(&scope.mark(object)).await.is(201);
    scope.remove_later(cluster_roles.path(&name));
    let mut bound = binding(&name, "ClusterRole", &name, &name);
    bound["kind"] = "ClusterRoleBinding".into();
    let cluster_bindings = Collection::cluster(scope.http(), "rbac.authorization.k8s.io/v1", "clusterrolebindings");
    cluster_bindings.create(&scope.mark(bound)).await.is(201);
    scope.remove_later(cluster_bindings.path(&name));
    let allowed = |path: &'static str, verb: &'static str| {
        let name = name.clone();
        async move {
            let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {"user": name, "nonResourceAttributes": {"path": path, "verb": verb}}});
            let answer = scope.http().post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.is(201);
            answer["status"]["allowed"] == true
        }
    };
    chandler_tests::wait::eventually("the rule counts", || allowed("/metrics", "get")).await;
    assert!(allowed("/logs/today", "get").await);
    assert!(!allowed("/metrics", "delete").await);
    assert!(!allowed("/metrics/more", "get").await);
}

async fn permissions_end_with_their_binding(scope: &Scope) {
    let (name, http) = user_with(scope, json!([rule(&["list"], &["secrets"])])).await;
    let secrets = scope.secrets().await.through(&http);
    secrets.list("").await.is(200);
    bindings(scope).await.delete(&name).await.ok();
    chandler_tests::wait::eventually("the right ends", || async { secrets.list("").await.status == 403 }).await;
}

async fn discovery_is_allowed_for_all_users(scope: &Scope) {
    let http = user(scope, &scope.name("anybody"));
    for path in ["/api", "/apis", "/api/v1", "/apis/apps/v1", "/version", "/openapi/v3", "/readyz"] {
        assert_eq!(http.get(path).await.status, 200, "{path}");
    }
}

async fn role_references_are_immutable(scope: &Scope) {
    for name in ["one", "two"] {
        roles(scope).await.create(&role(name, json!([]))).await.ok();
    }
    bindings(scope).await.create(&binding("a", "Role", "one", "jane")).await.ok();
    let cause = bindings(scope).await.merge("a", &json!({"roleRef": {"name": "two"}})).await.invalid("roleRef");
    assert!(cause["message"].as_str().unwrap().contains("cannot change roleRef"), "{cause}");
}

async fn malformed_rules_are_refused(scope: &Scope) {
    let all = roles(scope).await;
    all.create(&role("a", json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": []}])))
        .await
        .invalid("rules[0].verbs");
    all.create(&role("a", json!([{"resources": ["secrets"], "verbs": ["get"]}]))).await.invalid("rules[0].apiGroups");
    all.create(&role("a", json!([{"apiGroups": [""], "verbs": ["get"]}]))).await.invalid("rules[0].resources");
    all.create(&role("a", json!([{"nonResourceURLs": ["/x"], "verbs": ["get"]}])))
        .await
        .invalid("rules[0].nonResourceURLs");
    bindings(scope).await.create(&binding("a", "Dictator", "x", "jane")).await.invalid("roleRef.kind");
    let mut bound = binding("a", "Role", "x", "jane");
    bound["subjects"][0]["kind"] = "Robot".into();
    bindings(scope).await.create(&bound).await.invalid("subjects[0].kind");
}

async fn an_apply_needs_patch_and_for_new_objects_create(scope: &Scope) {
    let maps = scope.config_maps().await;
    let (_, http) = user_with(scope, json!([rule(&["patch"], &["configmaps"])])).await;
    let limited = maps.through(&http);
    limited.apply("a", "one", &config_map("a", json!({"x": "1"}))).await.refused(403, "Forbidden");
    maps.create(&config_map("a", json!({}))).await.ok();
    limited.apply("a", "one", &config_map("a", json!({"x": "1"}))).await.is(200);
}

async fn a_forbidden_response_does_not_reveal_existence(scope: &Scope) {
    let user_without_rules = scope.secrets().await.through(&user(scope, &scope.name("nobody")));
    user_without_rules.get("absent").await.refused(403, "Forbidden");
    user_without_rules.delete("absent").await.refused(403, "Forbidden");
}
