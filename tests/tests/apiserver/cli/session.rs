//! The session of a new user, from a CRD to tokens.

use serde_json::json;

use crate::support::{Scope, cases, kubectl::Kubectl, objects::crd};

cases! {
    "2" a_new_kind_is_defined_used_and_removed: kubectl;
    "2" who_may_do_what: kubectl;
    "2" a_token_is_created_and_used: kubectl;
    "2" who_am_i: kubectl;
    "2" permissions_are_listed: kubectl;
    "2" impersonating_another_user: kubectl;
    "2" reconciling_roles: kubectl;
}

async fn a_new_kind_is_defined_used_and_removed(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let group = scope.group();
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "minimum": 1, "description": "How large it is."}}});
    let mut object = crd(&group, json!({"type": "object", "properties": {"spec": spec}}));
    object["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]);
    object["spec"]["names"]["shortNames"] = json!([scope.name("wd")]);
    let file = kubectl.file("definition.json", &object);
    let resource = format!("customresourcedefinition.apiextensions.k8s.io/widgets.{group}");
    scope.remove_later(format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"));
    assert_eq!(kubectl.run(&["apply", "-f", &file]).await, format!("{resource} created\n"));
    kubectl.run(&["wait", "--for=condition=Established", &resource, "--timeout=60s"]).await;
    assert_eq!(kubectl.run(&["apply", "-f", &file]).await, format!("{resource} unchanged\n"));
    let widget = kubectl.file("widget.json", &scope.own_widget("a", json!({"spec": {"size": 2}})));
    let applied = || async { kubectl.output(&["apply", "-f", &widget]).await.code == Some(0) };
    chandler_tests::wait::eventually("the documents know the kind", applied).await;
    let short = scope.name("wd");
    let table = kubectl.run(&["get", &short]).await;
    assert_eq!(table.split_whitespace().collect::<Vec<_>>(), ["NAME", "SIZE", "a", "2"]);
    let text = kubectl.run(&["explain", &format!("widgets.{group}.spec.size")]).await;
    assert!(text.contains("FIELD: size <integer>") && text.contains("How large it is."), "{text}");
    let error = kubectl.fail(&["patch", &short, "a", "--type=merge", "-p", r#"{"spec":{"size":0}}"#]).await;
    assert!(
        error.contains("spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        "{error}"
    );
    kubectl.run(&["delete", &short, "a"]).await;
    kubectl.run(&["delete", "crd", &format!("widgets.{group}")]).await;
    kubectl.fail(&["get", &format!("widgets.{group}")]).await;
}

async fn who_may_do_what(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    assert_eq!(kubectl.run(&["auth", "can-i", "create", "pods"]).await, "yes\n");
    let jane = scope.name("jane");
    let as_jane = format!("--as={jane}");
    let output = kubectl.output(&["auth", "can-i", "list", "secrets", &as_jane]).await;
    assert_eq!((output.code, output.out.trim()), (Some(1), "no"), "{output:?}");
    kubectl.run(&["create", "role", "reader", "--verb=list", "--resource=secrets"]).await;
    kubectl.run(&["create", "rolebinding", "reader", "--role=reader", &format!("--user={jane}")]).await;
    let may = || async { kubectl.output(&["auth", "can-i", "list", "secrets", &as_jane]).await.out.trim() == "yes" };
    chandler_tests::wait::eventually("the binding counts", may).await;
    let output = kubectl.output(&["auth", "can-i", "delete", "secrets", &as_jane]).await;
    assert_eq!(output.out.trim(), "no", "{output:?}");
    let output = kubectl.output(&["auth", "can-i", "get", "/version", &as_jane]).await;
    assert_eq!(output.out.trim(), "yes", "{output:?}");
}

async fn a_token_is_created_and_used(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let namespace = scope.namespace().await;
    kubectl.run(&["create", "serviceaccount", "robot"]).await;
    let token = kubectl.run(&["create", "token", "robot", "--duration=1h"]).await;
    assert_eq!(token.trim().split('.').count(), 3, "a JSON Web Token");
    let review = kubectl
        .run(&[
            "auth",
            "whoami",
            &format!("--as=system:serviceaccount:{namespace}:robot"),
            "-o",
            "jsonpath={.status.userInfo.username}",
        ])
        .await;
    assert_eq!(review, format!("system:serviceaccount:{namespace}:robot"));
    let error = kubectl.fail(&["create", "token", "nobody"]).await;
    assert!(error.contains("serviceaccounts \"nobody\" not found"), "{error}");
}

async fn who_am_i(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let text = kubectl.run(&["auth", "whoami"]).await;
    assert!(text.contains("Username") && text.contains("system:authenticated"), "{text}");
}

async fn permissions_are_listed(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let jane = format!("--as={}", scope.name("jane"));
    kubectl.run(&["create", "role", "reader", "--verb=list", "--resource=configmaps"]).await;
    kubectl.run(&["create", "rolebinding", "reader", "--role=reader", &format!("--user={}", scope.name("jane"))]).await;
    let listed = || async { kubectl.run(&["auth", "can-i", "--list", &jane]).await.contains("configmaps") };
    chandler_tests::wait::eventually("the rule is listed", listed).await;
    let text = kubectl.run(&["auth", "can-i", "--list", &jane]).await;
    assert!(text.contains("selfsubjectaccessreviews.authorization.k8s.io"), "{text}");
}

async fn impersonating_another_user(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let jane = scope.name("jane");
    let error = kubectl.fail(&["get", "secrets", &format!("--as={jane}")]).await;
    assert!(
        error.contains(&format!(
            "Error from server (Forbidden): secrets is forbidden: User \"{jane}\" cannot list resource \"secrets\""
        )),
        "{error}"
    );
    kubectl.run(&["get", "secrets", &format!("--as={jane}"), "--as-group=system:masters"]).await;
}

async fn reconciling_roles(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "namespace": scope.namespace().await},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]});
    let file = kubectl.file("role.json", &role);
    let printed = kubectl.run(&["auth", "reconcile", "-f", &file]).await;
    assert!(printed.contains("role.rbac.authorization.k8s.io/r reconciled"), "{printed}");
    let error = kubectl.fail(&["create", "role", "bad", "--verb=fly", "--resource=nothings"]).await;
    assert!(error.contains("the server doesn't have a resource type \"nothings\""), "{error}");
}
