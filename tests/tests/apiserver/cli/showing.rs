//! What kubectl shows: get, describe, explain, events, api-resources.

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{Scope, cases, kubectl::Kubectl, objects::config_map};

cases! {
    "2" any_command_discovers_the_server: kubectl;
    "2" get_prints_columns: kubectl;
    "2" get_in_all_forms: kubectl;
    "2" get_watch_prints_changes: kubectl;
    "2" get_subresource: kubectl;
    "2" get_by_selectors: kubectl;
    "2" describe: kubectl;
    "2" explain: kubectl;
    "2" events: kubectl;
    "2" missing_objects_and_kinds: kubectl;
    "2" wide_columns_and_sorting: kubectl;
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

async fn with_widget(scope: &Scope) -> (Kubectl, String) {
    let widgets = scope.widgets().await;
    widgets.create(&scope.widget("a", json!({"color": "red"}))).await.ok();
    (Kubectl::new(scope).await, format!("widgets.{}", scope.server().shared_group()))
}

async fn any_command_discovers_the_server(scope: &Scope) {
    let (kubectl, widgets) = with_widget(scope).await;
    let names = kubectl.run(&["api-resources", "-o", "name"]).await;
    for resource in ["pods", "deployments.apps", "customresourcedefinitions.apiextensions.k8s.io", &widgets] {
        assert!(names.lines().any(|line| line == resource), "{resource}");
    }
    let versions = kubectl.run(&["api-versions"]).await;
    for version in ["v1".to_owned(), "apps/v1".to_owned(), format!("{}/v1", scope.server().shared_group())] {
        assert!(versions.lines().any(|line| line == version), "{version}");
    }
    let version = kubectl.run(&["version", "-o", "json"]).await;
    assert!(version.contains("serverVersion"), "{version}");
    assert_eq!(kubectl.run(&["get", "--raw", "/readyz"]).await, "ok");
}

async fn get_prints_columns(scope: &Scope) {
    let (kubectl, widgets) = with_widget(scope).await;
    let table = kubectl.run(&["get", &widgets]).await;
    let lines: Vec<_> = table.lines().map(words).collect();
    assert_eq!(lines, [vec!["NAME", "SIZE", "PHASE"], vec!["a", "3"]]);
    scope.config_maps().await.create(&config_map("map", json!({"x": "1"}))).await.ok();
    let table = kubectl.run(&["get", "configmap", "map"]).await;
    let lines: Vec<_> = table.lines().map(words).collect();
    assert_eq!((&lines[0], &lines[1][..2]), (&vec!["NAME", "DATA", "AGE"], &["map", "1"][..]));
    let namespace = scope.namespace().await;
    let all = kubectl.run(&["get", &widgets, "--all-namespaces", "--no-headers"]).await;
    assert!(all.lines().any(|line| words(line)[..2] == [namespace, "a"]), "{all}");
}

async fn get_in_all_forms(scope: &Scope) {
    let (kubectl, widgets) = with_widget(scope).await;
    assert_eq!(
        kubectl.run(&["get", &widgets, "-o", "name"]).await,
        format!("widget.{}/a\n", scope.server().shared_group())
    );
    assert_eq!(kubectl.run(&["get", &widgets, "a", "-o", "jsonpath={.spec.color}"]).await, "red");
    assert!(kubectl.run(&["get", &widgets, "a", "-o", "yaml"]).await.contains("\n  color: red\n"));
    let columns = kubectl.run(&["get", &widgets, "-o", "custom-columns=C:.spec.color,S:.spec.size"]).await;
    assert_eq!(columns.lines().map(words).collect::<Vec<_>>(), [["C", "S"], ["red", "3"]]);
    let list = kubectl.run(&["get", &widgets, "-o", "json"]).await;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("List"), 1));
}

async fn get_watch_prints_changes(scope: &Scope) {
    let (kubectl, widgets) = with_widget(scope).await;
    let mut child = kubectl.start(&["get", &widgets, "-w", "--output-watch-events"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(words(&lines.next_line().await.unwrap().unwrap()), ["EVENT", "NAME", "SIZE", "PHASE"]);
    assert_eq!(words(&lines.next_line().await.unwrap().unwrap()), ["ADDED", "a", "3"]);
    let objects = scope.widgets().await;
    objects.merge("a", &json!({"spec": {"size": 7}})).await.ok();
    assert_eq!(words(&lines.next_line().await.unwrap().unwrap()), ["MODIFIED", "a", "7"]);
    objects.merge("a/status", &json!({"status": {"phase": "Done"}})).await.ok();
    assert_eq!(words(&lines.next_line().await.unwrap().unwrap()), ["MODIFIED", "a", "7", "Done"]);
    objects.delete("a").await.ok();
    assert_eq!(words(&lines.next_line().await.unwrap().unwrap())[..2], ["DELETED", "a"]);
    child.kill().await.unwrap();
}

async fn get_subresource(scope: &Scope) {
    let (kubectl, widgets) = with_widget(scope).await;
    scope.widgets().await.merge("a/status", &json!({"status": {"phase": "Done"}})).await.ok();
    let phase = kubectl.run(&["get", &widgets, "a", "--subresource=status", "-o", "jsonpath={.status.phase}"]).await;
    assert_eq!(phase, "Done");
    let table = kubectl.run(&["get", &widgets, "a", "--subresource=status"]).await;
    assert!(table.contains("Done"), "{table}");
    kubectl
        .run(&["patch", &widgets, "a", "--subresource=status", "--type=merge", "-p", r#"{"status":{"phase":"Again"}}"#])
        .await;
    assert_eq!(scope.widgets().await.get("a").await.ok()["status"]["phase"], "Again");
}

async fn get_by_selectors(scope: &Scope) {
    let (kubectl, widgets) = with_widget(scope).await;
    kubectl.run(&["label", &widgets, "a", "tier=front"]).await;
    assert!(kubectl.run(&["get", &widgets, "-l", "tier in (front,back)", "-o", "name"]).await.ends_with("/a\n"));
    assert_eq!(kubectl.run(&["get", &widgets, "-l", "tier!=front", "-o", "name"]).await, "");
    assert!(
        kubectl.run(&["get", &widgets, "--field-selector", "metadata.name=a", "-o", "name"]).await.ends_with("/a\n")
    );
    assert!(
        kubectl.run(&["get", &widgets, "--field-selector", "spec.color=red", "-o", "name"]).await.ends_with("/a\n")
    );
    let table = kubectl.run(&["get", &widgets, "-L", "tier"]).await;
    assert_eq!(words(table.lines().next().unwrap()), ["NAME", "SIZE", "PHASE", "TIER"]);
}

async fn describe(scope: &Scope) {
    let (kubectl, widgets) = with_widget(scope).await;
    let object = scope.widgets().await.get("a").await.ok();
    let namespace = scope.namespace().await;
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": {"apiVersion": object["apiVersion"], "kind": "Widget", "name": "a", "namespace": namespace, "uid": object["metadata"]["uid"]},
        "reason": "Tested", "message": "it was described", "type": "Normal", "source": {"component": "conformance"}});
    scope.collection("v1", "events").await.create(&event).await.is(201);
    let text = kubectl.run(&["describe", &widgets, "a"]).await;
    for expected in ["Name:         a", "Kind:         Widget", "Color:  red", "Tested", "it was described"] {
        assert!(text.contains(expected), "{expected} in\n{text}");
    }
    let namespace = kubectl.run(&["describe", "namespace", namespace]).await;
    assert!(namespace.contains("Status:       Active"), "{namespace}");
}

async fn explain(scope: &Scope) {
    let (kubectl, widgets) = with_widget(scope).await;
    let path = format!("{widgets}.spec");
    let until = || async { kubectl.output(&["explain", &path]).await.code == Some(0) };
    chandler_tests::wait::eventually("the documents know the kind", until).await;
    let text = kubectl.run(&["explain", &path]).await;
    assert!(
        text.contains("KIND:       Widget") && text.contains("<[]Object>") && text.contains("size\t<integer>"),
        "{text}"
    );
    let text = kubectl.run(&["explain", "deployment.spec.template.spec.containers.ports"]).await;
    assert!(text.contains("FIELD: ports <[]ContainerPort>") && text.contains("containerPort\t<integer>"), "{text}");
    let text = kubectl.run(&["explain", "pod", "--recursive"]).await;
    assert!(text.contains("KIND:       Pod"), "{text}");
    let error = kubectl.fail(&["explain", "deployment.spec.none"]).await;
    assert!(error.contains("field \"none\" does not exist"), "{error}");
}

async fn events(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let namespace = scope.namespace().await;
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "map", "namespace": namespace},
        "reason": "Tested", "message": "hello there", "type": "Warning", "source": {"component": "conformance"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1});
    scope.collection("v1", "events").await.create(&event).await.is(201);
    let text = kubectl.run(&["events"]).await;
    assert!(text.contains("Tested") && text.contains("ConfigMap/map") && text.contains("hello there"), "{text}");
    let text = kubectl.run(&["events", "--for", "configmap/map"]).await;
    assert!(text.contains("hello there"), "{text}");
    let text = kubectl.run(&["events", "--types=Normal"]).await;
    assert!(!text.contains("hello there"), "{text}");
    let text = kubectl.run(&["get", "events"]).await;
    assert_eq!(words(text.lines().next().unwrap()), ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
}

async fn missing_objects_and_kinds(scope: &Scope) {
    let kubectl = Kubectl::new(scope).await;
    let error = kubectl.fail(&["get", "secret", "none"]).await;
    assert_eq!(error, "Error from server (NotFound): secrets \"none\" not found\n");
    assert_eq!(kubectl.run(&["get", "secret", "none", "--ignore-not-found"]).await, "");
    let error = kubectl.fail(&["get", "gizmos"]).await;
    assert_eq!(error, "error: the server doesn't have a resource type \"gizmos\"\n");
    let output = kubectl.output(&["get", "secrets"]).await;
    assert_eq!(
        (output.code, output.error.as_str()),
        (Some(0), &*format!("No resources found in {} namespace.\n", scope.namespace().await))
    );
}

async fn wide_columns_and_sorting(scope: &Scope) {
    let (kubectl, widgets) = with_widget(scope).await;
    scope.widgets().await.create(&scope.widget("b", json!({"size": 1}))).await.ok();
    let wide = kubectl.run(&["get", &widgets, "-o", "wide"]).await;
    assert_eq!(words(wide.lines().next().unwrap()), ["NAME", "SIZE", "PHASE", "COLOR"]);
    let sorted = kubectl.run(&["get", &widgets, "--sort-by=.spec.size", "-o", "name"]).await;
    assert!(sorted.lines().next().unwrap().ends_with("/b"), "{sorted}");
    let labels = kubectl.run(&["get", &widgets, "--show-labels"]).await;
    assert!(labels.contains("LABELS") && labels.contains("<none>"), "{labels}");
}
