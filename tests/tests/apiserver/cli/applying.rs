//! apply, diff, replace: client-side and server-side.

use serde_json::{Value, json};

use crate::support::{
    Scope, cases,
    kubectl::Kubectl,
    objects::{config_map, deployment, entry, version},
};

cases! {
    "2" apply_on_the_client: kubectl;
    "2" apply_on_the_server: kubectl;
    "2" apply_keeps_fields_of_other_writers: kubectl;
    "2" apply_of_custom_objects: kubectl;
    "2" a_misspelt_field_stops_an_apply: kubectl;
    "2" from_client_to_server: kubectl;
    "2" diff_on_client_and_server: kubectl;
    "2" dry_runs: kubectl;
    "2" replace: kubectl;
    "2" several_objects_in_one_file: kubectl;
    "2" prune_by_label: kubectl;
    "2" a_list_in_one_file: kubectl, differs("there is no document that knows the kind List, so that kubectl cannot check one");
    "2" an_apply_that_changes_nothing_writes_nothing: kubectl;
}

async fn apply_on_the_client(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let file = kubectl.file("web.json", &deployment("web", 0));
    assert_eq!(kubectl.run(&["apply", "-f", &file]).await, "deployment.apps/web created\n");
    assert_eq!(kubectl.run(&["apply", "-f", &file]).await, "deployment.apps/web unchanged\n");
    let mut changed = deployment("web", 0);
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example.com/web:2".into();
    changed["spec"]["template"]["spec"]["containers"][0].as_object_mut().unwrap().remove("ports");
    let file = kubectl.file("web.json", &changed);
    assert_eq!(kubectl.run(&["apply", "-f", &file]).await, "deployment.apps/web configured\n");
    let object = scope.collection("apps/v1", "deployments").await.get("web").await.ok();
    let container = &object["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["image"], container.get("ports")), (&json!("registry.example.com/web:2"), None));
    assert!(object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"].is_string());
    assert!(entry(&object, "kubectl-client-side-apply", "Update", "").is_some());
    let last = kubectl.run(&["apply", "view-last-applied", "deployment/web", "-o", "json"]).await;
    assert!(last.contains("registry.example.com/web:2"), "{last}");
}

async fn apply_on_the_server(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let file = kubectl.file("map.json", &config_map("map", json!({"x": "1"})));
    assert_eq!(kubectl.run(&["apply", "--server-side", "-f", &file]).await, "configmap/map serverside-applied\n");
    let maps = scope.config_maps().await;
    assert!(entry(&maps.get("map").await.ok(), "kubectl", "Apply", "").is_some());
    maps.merge("map?fieldManager=hand", &json!({"data": {"x": "2"}})).await.ok();
    let error = kubectl.fail(&["apply", "--server-side", "-f", &file]).await;
    assert!(error.contains("Apply failed with 1 conflict: conflict with \"hand\" using v1: .data.x"), "{error}");
    kubectl.run(&["apply", "--server-side", "--force-conflicts", "-f", &file]).await;
    assert_eq!(maps.get("map").await.ok()["data"]["x"], "1");
}

async fn apply_keeps_fields_of_other_writers(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let file = kubectl.file("map.json", &config_map("map", json!({"mine": "1", "gone": "1"})));
    kubectl.run(&["apply", "-f", &file]).await;
    let maps = scope.config_maps().await;
    maps.merge("map", &json!({"data": {"theirs": "2"}})).await.ok();
    let file = kubectl.file("map.json", &config_map("map", json!({"mine": "3"})));
    kubectl.run(&["apply", "-f", &file]).await;
    assert_eq!(maps.get("map").await.ok()["data"], json!({"mine": "3", "theirs": "2"}));
}

async fn apply_of_custom_objects(scope: &Scope) {
    let widgets = scope.widgets().await;
    let kubectl = Kubectl::new(scope).await;
    let resource = format!("widget.{}/a", scope.server().shared_group());
    let file = |spec: Value| kubectl.file("a.json", &scope.widget("a", spec));
    let first = file(json!({"parts": [{"name": "p", "value": "1", "protocol": "TCP"}], "color": "red"}));
    // The OpenAPI documents follow the CRD a moment later.
    let applied = || async { kubectl.output(&["apply", "-f", &first]).await.code == Some(0) };
    chandler_tests::wait::eventually("the documents know the kind", applied).await;
    assert_eq!(kubectl.run(&["apply", "-f", &first]).await, format!("{resource} unchanged\n"));
    let second = file(json!({"parts": [{"name": "q"}]}));
    assert_eq!(kubectl.run(&["apply", "-f", &second]).await, format!("{resource} configured\n"));
    let object = widgets.get("a").await.ok();
    assert_eq!(object["spec"], json!({"parts": [{"name": "q", "protocol": "TCP"}], "size": 3}));
}

async fn a_misspelt_field_stops_an_apply(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let mut object = deployment("web", 0);
    object["spec"]["replica"] = 1.into();
    let file = kubectl.file("web.json", &object);
    let error = kubectl.fail(&["apply", "-f", &file]).await;
    assert!(error.contains("unknown field \"spec.replica\""), "{error}");
    let error = kubectl.fail(&["apply", "--server-side", "-f", &file]).await;
    assert!(error.contains(".spec.replica"), "{error}");
    let output = kubectl.output(&["apply", "--validate=warn", "-f", &file]).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.error.contains("Warning: unknown field \"spec.replica\""), "{output:?}");
}

async fn from_client_to_server(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let file = kubectl.file("map.json", &config_map("map", json!({"keep": "1", "drop": "1"})));
    kubectl.run(&["apply", "-f", &file]).await;
    kubectl.run(&["apply", "--server-side", "-f", &file]).await;
    let file = kubectl.file("map.json", &config_map("map", json!({"keep": "2"})));
    kubectl.run(&["apply", "--server-side", "-f", &file]).await;
    let object = scope.config_maps().await.get("map").await.ok();
    assert_eq!(object["data"], json!({"keep": "2"}), "what client-side apply had owned is removed too");
    assert!(entry(&object, "kubectl-client-side-apply", "Update", "").is_none(), "{object}");
}

async fn diff_on_client_and_server(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let file = kubectl.file("map.json", &config_map("map", json!({"x": "before"})));
    kubectl.run(&["apply", "--server-side", "-f", &file]).await;
    let before = scope.config_maps().await.get("map").await.ok();
    let same = kubectl.output(&["diff", "--server-side", "-f", &file]).await;
    assert_eq!((same.code, same.out.as_str()), (Some(0), ""), "{same:?}");
    let file = kubectl.file("map.json", &config_map("map", json!({"x": "after"})));
    for arguments in [vec!["diff", "--server-side", "-f", &file], vec!["diff", "-f", &file]] {
        let output = kubectl.output(&arguments).await;
        assert_eq!(output.code, Some(1), "there is a difference: {output:?}");
        assert!(output.out.contains("-  x: before") && output.out.contains("+  x: after"), "{output:?}");
    }
    assert_eq!(scope.config_maps().await.get("map").await.ok(), before, "nothing was written");
}

async fn dry_runs(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let file = kubectl.file("map.json", &config_map("map", json!({"x": "1"})));
    let text = kubectl.run(&["apply", "--dry-run=server", "-f", &file]).await;
    assert_eq!(text, "configmap/map created (server dry run)\n");
    let text = kubectl.run(&["create", "--dry-run=server", "-f", &file, "-o", "jsonpath={.metadata.uid}"]).await;
    assert!(!text.is_empty(), "the server filled in defaults");
    let error = kubectl.fail(&["get", "configmap", "map"]).await;
    assert!(error.contains("NotFound"), "{error}");
    kubectl.run(&["apply", "-f", &file]).await;
    let text = kubectl.delete(&["configmap", "map", "--dry-run=server"]).await;
    assert_eq!(text, "configmap \"map\" deleted (server dry run)\n");
    kubectl.run(&["get", "configmap", "map"]).await;
}

async fn replace(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let file = kubectl.file("map.json", &config_map("map", json!({"x": "1"})));
    kubectl.fail(&["replace", "-f", &file]).await;
    kubectl.run(&["create", "-f", &file]).await;
    let error = kubectl.fail(&["create", "-f", &file]).await;
    assert!(error.contains("(AlreadyExists)"), "{error}");
    let mut object = scope.config_maps().await.get("map").await.ok();
    object["data"] = json!({"only": "this"});
    let file = kubectl.file("map.json", &object);
    assert_eq!(kubectl.run(&["replace", "-f", &file]).await, "configmap/map replaced\n");
    let error = kubectl.fail(&["replace", "-f", &file]).await;
    assert!(error.contains("the object has been modified"), "{error}");
    let file = kubectl.file("map.json", &config_map("map", json!({"x": "forced"})));
    let text = kubectl.run(&["replace", "--force", "-f", &file]).await;
    assert!(text.ends_with("configmap/map replaced\n"), "{text}");
    let now = scope.config_maps().await.get("map").await.ok();
    assert_ne!(now["metadata"]["uid"], object["metadata"]["uid"]);
    assert_eq!(now["data"], json!({"x": "forced"}));
}

async fn several_objects_in_one_file(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  x: '1'\n---\n\
                apiVersion: v1\nkind: Secret\nmetadata:\n  name: two\nstringData:\n  x: '1'\n---\n\
                apiVersion: v1\nkind: Service\nmetadata:\n  name: three\nspec:\n  ports:\n  - port: 80\n";
    let file = kubectl.text_file("all.yaml", text);
    let printed = kubectl.run(&["apply", "-f", &file]).await;
    assert_eq!(printed, "configmap/one created\nsecret/two created\nservice/three created\n");
    let printed = kubectl.run(&["get", "-f", &file, "-o", "name"]).await;
    assert_eq!(printed, "configmap/one\nsecret/two\nservice/three\n");
    let printed = kubectl.run(&["delete", "-f", &file]).await;
    assert_eq!(printed.lines().count(), 3, "{printed}");
}

async fn prune_by_label(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let map = |name: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  labels:\n    set: mine\ndata:\n  x: '1'\n"
        )
    };
    let apply = |text: String| {
        let file = kubectl.text_file("all.yaml", &text);
        let kubectl = &kubectl;
        async move {
            let rest = ["--prune", "-l", "set=mine", "--prune-allowlist=core/v1/ConfigMap"];
            kubectl.run(&[&["apply", "-f", &file][..], &rest[..]].concat()).await
        }
    };
    apply(format!("{}---\n{}", map("one"), map("two"))).await;
    let printed = apply(map("one")).await;
    assert!(printed.contains("configmap/two pruned"), "{printed}");
    scope.config_maps().await.until_gone("two").await;
}

async fn a_list_in_one_file(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let items = [config_map("one", json!({})), config_map("two", json!({}))];
    let file = kubectl.file("list.json", &json!({"apiVersion": "v1", "kind": "List", "items": items}));
    assert_eq!(kubectl.run(&["apply", "-f", &file]).await, "configmap/one created\nconfigmap/two created\n");
}

async fn an_apply_that_changes_nothing_writes_nothing(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let file = kubectl.file("map.json", &config_map("map", json!({"x": "1"})));
    let maps = scope.config_maps().await;
    kubectl.run(&["apply", "--server-side", "-f", &file]).await;
    let before = maps.get("map").await.ok();
    kubectl.run(&["apply", "--server-side", "-f", &file]).await;
    assert_eq!(version(&maps.get("map").await.ok()), version(&before));
}
