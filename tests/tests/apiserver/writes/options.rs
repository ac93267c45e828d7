//! Preconditions, generated names, dry runs.

use serde_json::{Value, json};

use crate::support::{
    Scope, cases,
    objects::{config_map, names, version},
};

cases! {
    "3.05" deletes_respect_preconditions;
    "3.05" a_delete_response_contains_the_deleted_object;
    "3.05" names_are_generated;
    "3.05" a_long_prefix_is_truncated;
    "3.05" a_name_wins_over_a_prefix;
    "3.05" names_are_checked;
    "3.05" path_and_body_agree;
    "3.05" dry_runs_of_creates;
    "3.05" dry_runs_of_updates_and_patches;
    "3.05" dry_runs_of_deletes;
    "3.05" dry_runs_fail_like_writes;
    "3.05" an_unknown_dry_run_is_refused;
    "3.05" field_managers_are_checked;
}

async fn deletes_respect_preconditions(scope: &Scope) {
    let maps = scope.config_maps().await;
    let old = maps.create(&config_map("a", json!({}))).await.ok();
    let new = maps.merge("a", &json!({"data": {"x": "1"}})).await.ok();
    let wrong = [
        (json!({"uid": "another"}), "the UID in the precondition (another) does not match the UID in record"),
        (json!({"resourceVersion": version(&old)}), "the ResourceVersion in the precondition"),
    ];
    for (wrong, why) in wrong {
        let status = maps.delete_with("a", &json!({"preconditions": wrong})).await.refused(409, "Conflict");
        assert_eq!(status["details"]["name"], "a");
        assert!(status["message"].as_str().unwrap().contains(why), "{status}");
    }
    let right = json!({"uid": new["metadata"]["uid"], "resourceVersion": version(&new)});
    maps.delete_with("a", &json!({"preconditions": right})).await.is(200);
    maps.get("a").await.refused(404, "NotFound");
}

async fn a_delete_response_contains_the_deleted_object(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&config_map("a", json!({}))).await.ok();
    let status = maps.delete("a").await.is(200);
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Success")));
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]}));

    let widgets = scope.widgets().await;
    let created = widgets.create(&scope.widget("a", json!({}))).await.ok();
    let status = widgets.delete("a").await.is(200);
    assert_eq!(status["details"]["group"], json!(scope.server().shared_group()));
    assert_eq!(status["details"]["uid"], created["metadata"]["uid"]);
    let status = widgets.delete("a").await.refused(404, "NotFound");
    assert_eq!(status["details"]["name"], "a");
}

async fn names_are_generated(scope: &Scope) {
    let maps = scope.config_maps().await;
    let body = json!({"metadata": {"generateName": "some-"}});
    let (first, second) = (maps.create(&body).await.is(201), maps.create(&body).await.is(201));
    for object in [&first, &second] {
        let name = object["metadata"]["name"].as_str().unwrap();
        assert!(name.starts_with("some-") && name.len() == "some-".len() + 5, "{name}");
        assert_eq!(object["metadata"]["generateName"], "some-");
    }
    assert_ne!(first["metadata"]["name"], second["metadata"]["name"]);
}

async fn a_long_prefix_is_truncated(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&json!({"metadata": {"generateName": "x".repeat(100)}})).await.is(201);
    assert_eq!(created["metadata"]["name"].as_str().unwrap().len(), 63);
}

async fn a_name_wins_over_a_prefix(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&json!({"metadata": {"name": "a", "generateName": "b-"}})).await.is(201);
    assert_eq!(created["metadata"]["name"], "a");
}

async fn names_are_checked(scope: &Scope) {
    let maps = scope.config_maps().await;
    let widgets = scope.widgets().await;
    let too_long = "x".repeat(254);
    for name in ["Upper", "with space", "-dash", too_long.as_str()] {
        maps.create(&config_map(name, json!({}))).await.invalid("metadata.name");
        widgets.create(&scope.widget(name, json!({}))).await.invalid("metadata.name");
    }
    let cause = maps.create(&json!({"metadata": {}})).await.invalid("metadata.name");
    assert_eq!(cause["reason"], "FieldValueRequired");
    assert_eq!(cause["message"], "Required value: name or generateName is required");
    maps.create(&json!({"metadata": {"name": "a", "labels": {"bad key!": "x"}}})).await.invalid("metadata.labels");
    maps.create(&json!({"metadata": {"name": "a", "labels": {"key": "bad value!"}}})).await.invalid("metadata.labels");
    maps.create(&json!({"metadata": {"name": "a", "annotations": {"bad key!": ""}}}))
        .await
        .invalid("metadata.annotations");
    let finalizer = json!({"metadata": {"name": "a", "finalizers": ["no slash and spaces"]}});
    maps.create(&finalizer).await.invalid("metadata.finalizers");
}

async fn path_and_body_agree(scope: &Scope) {
    let maps = scope.config_maps().await;
    let created = maps.create(&config_map("a", json!({}))).await.ok();
    let mut renamed = created.clone();
    renamed["metadata"]["name"] = "b".into();
    maps.put("a", &renamed).await.refused(400, "BadRequest");
    let mut moved = config_map("c", json!({}));
    moved["metadata"]["namespace"] = "elsewhere".into();
    maps.create(&moved).await.refused(400, "BadRequest");
    maps.apply("c", "one", &config_map("d", json!({}))).await.refused(400, "BadRequest");
    maps.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}))
        .await
        .refused(400, "BadRequest");
}

async fn dry_runs_of_creates(scope: &Scope) {
    let maps = scope.config_maps().await;
    let widgets = scope.widgets().await;
    let created = maps.create_with("dryRun=All", &config_map("a", json!({"x": "1"}))).await.is(201);
    assert!(created["metadata"]["uid"].is_string() && created["metadata"]["creationTimestamp"].is_string());
    assert_eq!(created["metadata"].get("resourceVersion"), None);
    let created = widgets.create_with("dryRun=All", &scope.widget("a", json!({"unknown": 1}))).await.is(201);
    assert_eq!(created["spec"], json!({"size": 3}), "it shows what would be stored");
    maps.apply("b?dryRun=All", "one", &config_map("b", json!({}))).await.is(201);
    for (collection, name) in [(&maps, "a"), (&maps, "b"), (&widgets, "a")] {
        collection.get(name).await.refused(404, "NotFound");
    }
}

async fn dry_runs_of_updates_and_patches(scope: &Scope) {
    let maps = scope.config_maps().await;
    let before = maps.create(&config_map("a", json!({"x": "1"}))).await.ok();
    let mut changed = before.clone();
    changed["data"]["x"] = "2".into();
    let replace = json!([{"op": "replace", "path": "/data/x", "value": "2"}]);
    let answers = [
        maps.put("a?dryRun=All", &changed).await,
        maps.merge("a?dryRun=All", &json!({"data": {"x": "2"}})).await,
        maps.strategic("a?dryRun=All", &json!({"data": {"x": "2"}})).await,
        maps.json_patch("a?dryRun=All", &replace).await,
        maps.apply("a?dryRun=All&force=true", "one", &config_map("a", json!({"x": "2"}))).await,
    ];
    for answer in answers {
        assert_eq!(answer.is(200)["data"]["x"], "2");
    }
    assert_eq!(maps.get("a").await.ok(), before);

    let widgets = scope.widgets().await;
    let before = widgets.create(&scope.widget("a", json!({}))).await.ok();
    let shown = widgets.merge("a/status?dryRun=All", &json!({"status": {"phase": "Done"}})).await.ok();
    assert_eq!(shown["status"]["phase"], "Done");
    let shown = widgets.merge("a/scale?dryRun=All", &json!({"spec": {"replicas": 5}})).await.ok();
    assert_eq!(shown["spec"]["replicas"], 5);
    assert_eq!(widgets.get("a").await.ok(), before);
}

async fn dry_runs_of_deletes(scope: &Scope) {
    let secrets = scope.secrets().await;
    let before = secrets.create(&json!({"metadata": {"name": "a"}})).await.ok();
    secrets.delete("a?dryRun=All").await.is(200);
    secrets.delete_with("a", &json!({"dryRun": ["All"]})).await.is(200);
    secrets.delete_all("dryRun=All").await.is(200);
    assert_eq!(secrets.get("a").await.ok(), before);
    let mut held = json!({"metadata": {"name": "b", "finalizers": ["example.com/hold"]}});
    held = secrets.create(&held).await.ok();
    secrets.delete("b?dryRun=All").await.is(200);
    assert_eq!(secrets.get("b").await.ok(), held);
    secrets.merge("b", &json!({"metadata": {"finalizers": null}})).await.ok();
    assert_eq!(names(&secrets.list("").await.ok()), ["a", "b"]);
}

async fn dry_runs_fail_like_writes(scope: &Scope) {
    let widgets = scope.widgets().await;
    widgets.create_with("dryRun=All", &scope.widget("a", json!({"size": 0}))).await.invalid("spec.size");
    let old = widgets.create(&scope.widget("a", json!({}))).await.ok();
    widgets.create_with("dryRun=All", &scope.widget("a", json!({}))).await.refused(409, "AlreadyExists");
    widgets.merge("a", &json!({"spec": {"size": 5}})).await.ok();
    widgets.put("a?dryRun=All", &old).await.refused(409, "Conflict");
    widgets.delete("b?dryRun=All").await.refused(404, "NotFound");
}

async fn an_unknown_dry_run_is_refused(scope: &Scope) {
    let maps = scope.config_maps().await;
    maps.create(&config_map("a", json!({}))).await.ok();
    let unsupported = |cause: Value| assert_eq!(cause["reason"], "FieldValueNotSupported", "{cause}");
    unsupported(maps.create_with("dryRun=Some", &config_map("b", json!({}))).await.invalid("dryRun"));
    unsupported(maps.merge("a?dryRun=Some", &json!({"data": {"x": "1"}})).await.invalid("dryRun"));
    unsupported(maps.delete("a?dryRun=Some").await.invalid("dryRun"));
    assert_eq!(maps.get("a").await.ok().get("data"), None);
}

async fn field_managers_are_checked(scope: &Scope) {
    let maps = scope.config_maps().await;
    let long = "x".repeat(129);
    let cause =
        maps.create_with(&format!("fieldManager={long}"), &config_map("a", json!({}))).await.invalid("fieldManager");
    assert_eq!(cause["reason"], "FieldValueTooLong");
    maps.apply("a", &long, &config_map("a", json!({}))).await.invalid("fieldManager");
    maps.create(&config_map("a", json!({}))).await.ok();
    let forced = maps.merge("a?force=true", &json!({"data": {"x": "1"}})).await.invalid("force");
    assert!(forced["message"].as_str().unwrap().contains("may not be specified for non-apply patch"), "{forced}");
}
