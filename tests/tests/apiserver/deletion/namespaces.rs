//! Namespaces end with their content.

use serde_json::{Value, json};

use crate::support::{Collection, Scope, cases};

cases! {
    "3.16" a_namespace_has_a_finalizer_a_phase_and_a_label;
    "3.16" nothing_new_in_a_namespace_that_ends: controllers;
    "3.16" a_namespace_takes_its_content_with_it: controllers;
    "3.16" what_holds_it_up_is_told: controllers;
    "3.16" its_own_finalizers_are_not_those_of_metadata;
    "3.16" namespaces_of_the_system_are_kept;
    "3.16" a_namespace_gets_an_account_and_an_authority: controllers;
    "3.16" what_exists_can_be_changed_until_the_end: controllers;
}

fn namespaces(scope: &Scope) -> Collection {
    Collection::cluster(scope.http(), "v1", "namespaces")
}

async fn a_namespace_has_a_finalizer_a_phase_and_a_label(scope: &Scope) {
    let name = scope.another_namespace("fresh").await;
    let namespace = namespaces(scope).get(&name).await.ok();
    assert_eq!(namespace["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(namespace["status"]["phase"], "Active");
    assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], name.as_str());
    let relabelled = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}});
    let namespace = namespaces(scope).merge(&name, &relabelled).await.ok();
    assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], name, "the label follows the name");
}

/// A namespace that a finalizer of its content keeps from going.
async fn ending(scope: &Scope) -> (String, Collection) {
    let name = scope.another_namespace("ending").await;
    let secrets = Collection::namespaced(scope.http(), "v1", &name, "secrets");
    secrets.create(&json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})).await.ok();
    secrets.create(&json!({"metadata": {"name": "free"}})).await.ok();
    let deleted = namespaces(scope).delete(&name).await.is(200);
    assert_eq!(deleted["status"]["phase"], "Terminating");
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    (name, secrets)
}

async fn release(secrets: &Collection) {
    secrets.merge("held", &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn nothing_new_in_a_namespace_that_ends(scope: &Scope) {
    let (name, secrets) = ending(scope).await;
    let status = secrets.create(&json!({"metadata": {"name": "late"}})).await.refused(403, "Forbidden");
    assert_eq!(
        status["message"],
        format!(
            "secrets \"late\" is forbidden: unable to create new content in namespace {name} because it is being terminated"
        )
    );
    assert_eq!(
        status["details"]["causes"],
        json!([{"reason": "NamespaceTerminating", "message": format!("namespace {name} is being terminated"),
            "field": "metadata.namespace"}])
    );
    let applied = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late"}});
    secrets.apply("late", "one", &applied).await.refused(403, "Forbidden");
    release(&secrets).await;
}

async fn a_namespace_takes_its_content_with_it(scope: &Scope) {
    scope.server().share_widgets().await;
    let name = scope.another_namespace("ending").await;
    let group_version = format!("{}/v1", scope.server().shared_group());
    let widgets = Collection::namespaced(scope.http(), &group_version, &name, "widgets");
    let secrets = Collection::namespaced(scope.http(), "v1", &name, "secrets");
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    secrets.create(&json!({"metadata": {"name": "a"}})).await.ok();
    namespaces(scope).delete(&name).await.ok();
    namespaces(scope).until_gone(&name).await;
    for collection in [&widgets, &secrets] {
        collection.get("a").await.refused(404, "NotFound");
    }
    let again = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    scope.http().post("/api/v1/namespaces", &again).await.is(201);
    assert_eq!(secrets.list("").await.ok()["items"], json!([]), "nothing of the first one is left");
}

async fn what_holds_it_up_is_told(scope: &Scope) {
    let (name, secrets) = ending(scope).await;
    secrets.until_gone("free").await;
    let condition = |namespace: &Value, kind: &str| {
        let conditions = namespace["status"]["conditions"].as_array()?;
        conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == "True").cloned()
    };
    let told = |namespace: &Value| {
        condition(namespace, "NamespaceFinalizersRemaining").is_some()
            && condition(namespace, "NamespaceContentRemaining").is_some()
    };
    let namespace = namespaces(scope).until(&name, "told what remains", told).await;
    let finalizers = condition(&namespace, "NamespaceFinalizersRemaining").unwrap();
    assert_eq!(finalizers["reason"], "SomeFinalizersRemain");
    assert!(
        finalizers["message"].as_str().unwrap().contains("example.com/hold in 1 resource instances"),
        "{finalizers}"
    );
    let content = condition(&namespace, "NamespaceContentRemaining").unwrap();
    assert_eq!(content["reason"], "SomeResourcesRemain");
    assert!(content["message"].as_str().unwrap().contains("secrets. has 1 resource instances"), "{content}");
    release(&secrets).await;
    namespaces(scope).until_gone(&name).await;
}

async fn its_own_finalizers_are_not_those_of_metadata(scope: &Scope) {
    let name = scope.another_namespace("kept").await;
    let all = namespaces(scope);
    let mut namespace = all.get(&name).await.ok();
    namespace["spec"]["finalizers"] = json!(["example.com/other"]);
    let unchanged = all.put(&name, &namespace).await.ok();
    assert_eq!(unchanged["spec"]["finalizers"], json!(["kubernetes"]), "only the subresource writes them");
    let mut namespace = unchanged;
    namespace["spec"]["finalizers"] = json!(["kubernetes", "example.com/other"]);
    let changed = scope.http().put(&all.path(&format!("{name}/finalize")), &namespace).await.is(200);
    assert_eq!(changed["spec"]["finalizers"], json!(["kubernetes", "example.com/other"]));
    let mut namespace = changed;
    namespace["spec"]["finalizers"] = json!(["kubernetes"]);
    scope.http().put(&all.path(&format!("{name}/finalize")), &namespace).await.is(200);
}

async fn namespaces_of_the_system_are_kept(scope: &Scope) {
    for name in ["default", "kube-system", "kube-public"] {
        let status = namespaces(scope).delete(&format!("{name}?dryRun=All")).await.refused(403, "Forbidden");
        assert_eq!(
            status["message"],
            format!(r#"namespaces "{name}" is forbidden: this namespace may not be deleted"#)
        );
    }
}

async fn a_namespace_gets_an_account_and_an_authority(scope: &Scope) {
    let accounts = scope.collection("v1", "serviceaccounts").await;
    accounts.until("default", "there", |account| account["metadata"]["name"] == "default").await;
    let maps = scope.config_maps().await;
    let authority = |map: &Value| map["data"]["ca.crt"].is_string();
    let map = maps.until("kube-root-ca.crt", "there", authority).await;
    assert!(map["data"]["ca.crt"].as_str().unwrap().contains("BEGIN CERTIFICATE"));
}

async fn what_exists_can_be_changed_until_the_end(scope: &Scope) {
    let (name, secrets) = ending(scope).await;
    let changed = secrets.merge("held", &json!({"stringData": {"x": "1"}})).await.is(200);
    assert_eq!(changed["data"]["x"], "MQ==");
    release(&secrets).await;
    namespaces(scope).until_gone(&name).await;
}
