//! Namespaces are deleted with their content.

use serde_json::{Value, json};

use crate::support::{Collection, Scope, cases};

cases! {
    "3.16" a_namespace_has_a_finalizer_a_phase_and_a_label;
    "3.16" nothing_is_created_in_a_terminating_namespace: controllers;
    "3.16" a_namespace_is_deleted_with_its_content: controllers;
    "3.16" conditions_report_what_blocks_a_namespace_deletion: controllers;
    "3.16" its_own_finalizers_are_not_those_of_metadata;
    "3.16" system_namespaces_cannot_be_deleted;
    "3.16" a_namespace_gets_a_default_account_and_the_ca_bundle: controllers;
    "3.16" objects_in_a_terminating_namespace_can_be_changed: controllers;
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

/// A terminating namespace that a finalizer of its content blocks.
async fn terminating(scope: &Scope) -> (String, Collection) {
    let name = scope.another_namespace("ending").await;
    let secrets = Collection::namespaced(scope.http(), "v1", &name, "secrets");
    secrets.create(&json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})).await.ok();
    secrets.create(&json!({"metadata": {"name": "free"}})).await.ok();
    let deleted = namespaces(scope).delete(&name).await.is(200);
    assert_eq!(deleted["status"]["phase"], "Terminating");
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    (name, secrets)
}

async fn remove_finalizers(secrets: &Collection) {
    secrets.merge("held", &json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn nothing_is_created_in_a_terminating_namespace(scope: &Scope) {
    let (name, secrets) = terminating(scope).await;
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
    remove_finalizers(&secrets).await;
}

async fn a_namespace_is_deleted_with_its_content(scope: &Scope) {
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

async fn conditions_report_what_blocks_a_namespace_deletion(scope: &Scope) {
    let (name, secrets) = terminating(scope).await;
    secrets.until_gone("free").await;
    let condition = |namespace: &Value, kind: &str| {
        let conditions = namespace["status"]["conditions"].as_array()?;
        conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == "True").cloned()
    };
    let is_reported = |namespace: &Value| {
        condition(namespace, "NamespaceFinalizersRemaining").is_some()
            && condition(namespace, "NamespaceContentRemaining").is_some()
    };
    let namespace = namespaces(scope).until(&name, "reported as not empty", is_reported).await;
    let finalizers = condition(&namespace, "NamespaceFinalizersRemaining").unwrap();
    assert_eq!(finalizers["reason"], "SomeFinalizersRemain");
    assert!(
        finalizers["message"].as_str().unwrap().contains("example.com/hold in 1 resource instances"),
        "{finalizers}"
    );
    let content = condition(&namespace, "NamespaceContentRemaining").unwrap();
    assert_eq!(content["reason"], "SomeResourcesRemain");
    assert!(content["message"].as_str().unwrap().contains("secrets. has 1 resource instances"), "{content}");
    remove_finalizers(&secrets).await;
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

async fn system_namespaces_cannot_be_deleted(scope: &Scope) {
    for name in ["default", "kube-system", "kube-public"] {
        let status = namespaces(scope).delete(&format!("{name}?dryRun=All")).await.refused(403, "Forbidden");
        assert_eq!(
            status["message"],
            format!(r#"namespaces "{name}" is forbidden: this namespace may not be deleted"#)
        );
    }
}

async fn a_namespace_gets_a_default_account_and_the_ca_bundle(scope: &Scope) {
    let accounts = scope.collection("v1", "serviceaccounts").await;
    accounts.until("default", "there", |account| account["metadata"]["name"] == "default").await;
    let maps = scope.config_maps().await;
    let authority = |map: &Value| map["data"]["ca.crt"].is_string();
    let map = maps.until("kube-root-ca.crt", "there", authority).await;
    assert!(map["data"]["ca.crt"].as_str().unwrap().contains("BEGIN CERTIFICATE"));
}

async fn objects_in_a_terminating_namespace_can_be_changed(scope: &Scope) {
    let (name, secrets) = terminating(scope).await;
    let changed = secrets.merge("held", &json!({"stringData": {"x": "1"}})).await.is(200);
    assert_eq!(changed["data"]["x"], "MQ==");
    remove_finalizers(&secrets).await;
    namespaces(scope).until_gone(&name).await;
}
