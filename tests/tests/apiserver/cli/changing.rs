//! create, edit, patch, label, annotate, scale, wait, delete.

use serde_json::{Value, json};

use crate::support::{
    Collection, Scope, cases,
    kubectl::Kubectl,
    objects::{config_map, deployment, entry, pod_template},
};

cases! {
    "2" create_sends_protobuf: kubectl;
    "2" create_in_every_shape: kubectl;
    "2" edit: kubectl;
    "2" a_rejected_edit_is_reopened: kubectl;
    "2" patches_of_all_types: kubectl;
    "2" label_and_annotate: kubectl;
    "2" scale: kubectl;
    "2" set_image: kubectl;
    "2" wait_for_conditions: kubectl;
    "2" wait_for_values_and_deletion: kubectl;
    "2" delete_in_every_shape: kubectl;
    "2" managers_are_recorded: kubectl;
    "2" create_namespace_and_delete_it: kubectl, controllers;
}

async fn create_sends_protobuf(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let created = kubectl.run(&["create", "configmap", "map", "--from-literal=x=1"]).await;
    assert_eq!(created, "configmap/map created\n");
    kubectl.run(&["create", "secret", "generic", "secret", "--from-literal=x=1"]).await;
    kubectl.run(&["create", "serviceaccount", "robot"]).await;
    assert_eq!(kubectl.run(&["get", "configmap", "map", "-o", "jsonpath={.data.x}"]).await, "1");
    assert_eq!(kubectl.run(&["get", "secret", "secret", "-o", "jsonpath={.data.x}"]).await, "MQ==");
    kubectl.run(&["get", "serviceaccount", "robot"]).await;
}

async fn create_in_every_shape(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    for arguments in [
        vec!["create", "deployment", "web", "--image=registry.example.com/web:1", "--replicas=0"],
        vec!["create", "service", "clusterip", "web", "--tcp=80:8080"],
        vec!["create", "role", "reader", "--verb=get,list", "--resource=secrets"],
        vec!["create", "rolebinding", "readers", "--role=reader", "--user=jane"],
        vec!["create", "quota", "limit", "--hard=secrets=100"],
        vec!["create", "poddisruptionbudget", "budget", "--selector=app=web", "--min-available=1"],
        vec!["create", "ingress", "web", "--rule=example.com/=web:80"],
        vec!["create", "cronjob", "nightly", "--image=registry.example.com/job:1", "--schedule=0 0 1 1 *"],
        vec!["create", "priorityclass", "never", "--value=1", "--dry-run=server"],
    ] {
        kubectl.run(&arguments).await;
    }
    let rules = kubectl.run(&["get", "role", "reader", "-o", "jsonpath={.rules[0].verbs}"]).await;
    assert_eq!(rules, r#"["get","list"]"#);
}

/// An editor command that replaces text in its file.
fn editor(kubectl: &Kubectl, script: &str) -> String {
    format!("sh {}", kubectl.text_file("editor.sh", script))
}

async fn edit(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"color": "red"}))).await.ok();
    let resource = format!("widgets.{}/a", scope.server().shared_group());
    let mut command = kubectl.command(&["edit", &resource]);
    command.env("KUBE_EDITOR", editor(&kubectl, "sed -i 's/color: red/color: blue/' \"$1\"\n"));
    let output = Kubectl::collect(command).await;
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(0), &*format!("widget.{}/a edited\n", scope.server().shared_group())),
        "{output:?}"
    );
    assert_eq!(widgets.get("a").await.ok()["spec"]["color"], "blue");
    let mut command = kubectl.command(&["edit", &resource]);
    command.env("KUBE_EDITOR", "true");
    let output = Kubectl::collect(command).await;
    assert!(output.error.contains("Edit cancelled, no changes made."), "{output:?}");
    let mut command = kubectl.command(&["edit", &resource, "--subresource=status"]);
    command.env("KUBE_EDITOR", editor(&kubectl, "printf 'status:\\n  phase: Done\\n' >> \"$1\"\n"));
    let output = Kubectl::collect(command).await;
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(widgets.get("a").await.ok()["status"]["phase"], "Done");
}

async fn a_rejected_edit_is_reopened(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"size": 5}))).await.ok();
    let resource = format!("widgets.{}/a", scope.server().shared_group());
    // The first edit is rejected; the second time the editor shows the reason and changes nothing.
    let script = "if grep -q 'should be less than or equal to 100' \"$1\"; then cp \"$1\" \"$(dirname \"$0\")/seen\"; \
                  else sed -i 's/size: 5/size: 500/' \"$1\"; fi\n";
    let mut command = kubectl.command(&["edit", &resource]);
    command.env("KUBE_EDITOR", editor(&kubectl, script));
    let output = Kubectl::collect(command).await;
    assert_ne!(output.code, Some(0), "{output:?}");
    assert!(output.error.contains("is invalid"), "{output:?}");
    assert_eq!(widgets.get("a").await.ok()["spec"]["size"], 5);
}

async fn patches_of_all_types(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let templates = scope.pod_templates().await;
    let containers = json!([{"name": "main", "image": "registry.example.com/web:1", "ports": [{"containerPort": 80}]}]);
    templates.create(&pod_template("web", containers)).await.ok();
    let image = r#"{"template":{"spec":{"containers":[{"name":"main","image":"registry.example.com/web:2"}]}}}"#;
    assert_eq!(kubectl.run(&["patch", "podtemplate", "web", "-p", image]).await, "podtemplate/web patched\n");
    assert_eq!(
        kubectl.run(&["patch", "podtemplate", "web", "-p", image]).await,
        "podtemplate/web patched (no change)\n"
    );
    let selector = r#"{"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}"#;
    kubectl.run(&["patch", "podtemplate", "web", "--type=merge", "-p", selector]).await;
    let remove = r#"[{"op":"remove","path":"/template/spec/nodeSelector"}]"#;
    kubectl.run(&["patch", "podtemplate", "web", "--type=json", "-p", remove]).await;
    let object = templates.get("web").await.ok();
    let container = &object["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example.com/web:2");
    assert_eq!(container["ports"][0]["containerPort"], 80, "the item was merged");
    assert_eq!(object["template"]["spec"].get("nodeSelector"), None);
    let error =
        kubectl.fail(&["patch", "podtemplate", "web", "-p", r#"{"template":{"spec":{"hostNetwork":"often"}}}"#]).await;
    assert!(error.contains("hostNetwork") || error.contains("cannot unmarshal"), "{error}");
}

async fn label_and_annotate(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let maps = scope.config_maps().await;
    maps.create(&config_map("map", json!({}))).await.ok();
    assert_eq!(kubectl.run(&["label", "configmap", "map", "tier=front"]).await, "configmap/map labeled\n");
    assert_eq!(kubectl.run(&["label", "configmap", "map", "tier=front"]).await, "configmap/map not labeled\n");
    let error = kubectl.fail(&["label", "configmap", "map", "tier=back"]).await;
    assert!(error.contains("'tier' already has a value (front), and --overwrite is false"), "{error}");
    kubectl.run(&["label", "configmap", "map", "tier=back", "--overwrite"]).await;
    kubectl.run(&["annotate", "configmap", "map", "note=hello"]).await;
    let object = maps.get("map").await.ok();
    assert_eq!(
        (&object["metadata"]["labels"], &object["metadata"]["annotations"]),
        (&json!({"tier": "back"}), &json!({"note": "hello"}))
    );
    kubectl.run(&["label", "configmap", "map", "tier-"]).await;
    kubectl.run(&["annotate", "configmap", "map", "note-"]).await;
    let object = maps.get("map").await.ok();
    assert_eq!((object["metadata"].get("labels"), object["metadata"].get("annotations")), (None, None));
}

async fn scale(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"replicas": 1}))).await.ok();
    let resource = format!("widgets.{}/a", scope.server().shared_group());
    kubectl.run(&["scale", &resource, "--replicas=4"]).await;
    assert_eq!(widgets.get("a").await.ok()["spec"]["replicas"], 4);
    let error = kubectl.fail(&["scale", &resource, "--replicas=5", "--current-replicas=9"]).await;
    assert!(error.contains("Expected replicas to be 9, was 4"), "{error}");
}

async fn set_image(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let file = kubectl.file("web.json", &deployment("web", 0));
    kubectl.run(&["create", "-f", &file]).await;
    kubectl.run(&["set", "image", "deployment/web", "main=registry.example.com/web:7"]).await;
    kubectl.run(&["set", "env", "deployment/web", "MODE=fast"]).await;
    let object = scope.collection("apps/v1", "deployments").await.get("web").await.ok();
    let container = &object["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(
        (&container["image"], &container["env"]),
        (&json!("registry.example.com/web:7"), &json!([{"name": "MODE", "value": "fast"}]))
    );
}

/// Starts a command that waits, runs the action, and expects the command to succeed.
async fn meanwhile(kubectl: &Kubectl, arguments: &[&str], action: impl Future<Output = ()>) -> String {
    let child = kubectl.start(arguments);
    let (output, ()) = futures::join!(child.wait_with_output(), action);
    let output = output.unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

async fn wait_for_conditions(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({}))).await.ok();
    let group = scope.server().shared_group();
    let resource = format!("widgets.{group}/a");
    let ready: Value = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let arguments = ["wait", "--for=condition=Ready", &resource, "--timeout=60s"];
    let printed = meanwhile(&kubectl, &arguments, async { drop(widgets.merge("a/status", &ready).await.ok()) }).await;
    assert_eq!(printed, format!("widget.{group}/a condition met\n"));
    let error = kubectl.fail(&["wait", "--for=condition=Other", &resource, "--timeout=1s"]).await;
    assert!(error.contains("timed out waiting for the condition"), "{error}");
    let crd = format!("crd/widgets.{group}");
    kubectl.run(&["wait", "--for=condition=Established", &crd, "--timeout=30s"]).await;
}

async fn wait_for_values_and_deletion(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let maps = scope.config_maps().await;
    maps.create(&config_map("map", json!({"x": "1"}))).await.ok();
    let arguments = ["wait", "--for=jsonpath={.data.x}=2", "configmap/map", "--timeout=60s"];
    meanwhile(&kubectl, &arguments, async { drop(maps.merge("map", &json!({"data": {"x": "2"}})).await.ok()) }).await;
    let arguments = ["wait", "--for=delete", "configmap/map", "--timeout=60s"];
    meanwhile(&kubectl, &arguments, async { drop(maps.delete("map").await.ok()) }).await;
    let arguments = ["wait", "--for=create", "configmap/later", "--timeout=60s"];
    meanwhile(&kubectl, &arguments, async { drop(maps.create(&config_map("later", json!({}))).await.ok()) }).await;
}

async fn delete_in_every_shape(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let secrets = scope.secrets().await;
    for (name, set) in [("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"), ("e", "z")] {
        secrets.create(&json!({"metadata": {"name": name, "labels": {"set": set}}})).await.ok();
    }
    assert_eq!(kubectl.delete(&["secret", "a"]).await, "secret \"a\" deleted\n");
    let error = kubectl.fail(&["delete", "secret", "a"]).await;
    assert!(error.contains("(NotFound)"), "{error}");
    kubectl.run(&["delete", "secret", "a", "--ignore-not-found"]).await;
    kubectl.run(&["delete", "secret", "-l", "set=x"]).await;
    kubectl.run(&["delete", "secret/c", "secret/d", "--wait=false", "--cascade=orphan"]).await;
    secrets.until("e", "there", |_| true).await;
    kubectl.run(&["delete", "secrets", "--all", "--grace-period=0", "--force"]).await;
    let printed = kubectl.run(&["get", "secrets", "-o", "name"]).await;
    assert!(!printed.contains("/e") && !printed.contains("/b"), "{printed}");
}

async fn managers_are_recorded(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let widgets = scope.widgets().await;
    let file = kubectl.file("a.json", &scope.widget("a", json!({"color": "red"})));
    let created = || async { kubectl.output(&["create", "-f", &file]).await.code == Some(0) };
    chandler_tests::wait::eventually("the documents know the kind", created).await;
    let resource = format!("widgets.{}/a", scope.server().shared_group());
    kubectl.run(&["label", &resource, "tier=front"]).await;
    kubectl.run(&["annotate", &resource, "note=hello"]).await;
    kubectl.run(&["patch", &resource, "--type=merge", "-p", r#"{"spec":{"size":9}}"#]).await;
    let object = widgets.get("a").await.ok();
    for manager in ["kubectl-create", "kubectl-label", "kubectl-annotate", "kubectl-patch"] {
        assert!(entry(&object, manager, "Update", "").is_some(), "{manager} in {object}");
    }
    let shown = kubectl.run(&["get", &resource, "-o", "yaml", "--show-managed-fields"]).await;
    assert!(shown.contains("manager: kubectl-patch"), "{shown}");
}

async fn create_namespace_and_delete_it(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let name = scope.name("made");
    assert_eq!(kubectl.run(&["create", "namespace", &name]).await, format!("namespace/{name} created\n"));
    scope.remove_later(format!("/api/v1/namespaces/{name}"));
    let secrets = Collection::namespaced(scope.http(), "v1", &name, "secrets");
    secrets.create(&json!({"metadata": {"name": "a"}})).await.ok();
    let printed = kubectl.run(&["delete", "namespace", &name, "--timeout=60s"]).await;
    assert_eq!(printed, format!("namespace \"{name}\" deleted\n"));
    kubectl.fail(&["get", "namespace", &name]).await;
}
