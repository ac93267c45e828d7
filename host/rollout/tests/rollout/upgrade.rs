//! Upgrades from one release to the next.

use super::support::{
    Stage, config_map, config_map_key, deployment, gate_probe, key, ox, oxen, release, release_with_probes,
};
use chandler_core::Reason;
use chandler_rollout::{Progress, RolloutError, RolloutRequest};
use serde_json::{Value, json};

#[tokio::test]
async fn fields_that_a_release_drops_are_removed_and_those_of_others_stay() {
    let stage = Stage::set().await;
    let settings = config_map_key("settings");
    stage.complete(&release(&[(0, config_map("settings", json!({"kept": "1", "dropped": "1"})))])).await;
    stage.meddle(&settings, json!({"data": {"added": "by a user"}, "metadata": {"labels": {"team": "a"}}})).await;

    let mut expected = json!({"kept": "2", "added": "by a user"});
    let changes = stage.complete(&release(&[(0, config_map("settings", json!({"kept": "2"})))])).await;
    assert_eq!(changes.to_string(), "updated ConfigMap install/settings\nunchanged: 0");
    let live = stage.live(&settings).await.unwrap();
    assert_eq!(live["data"], expected);
    assert_eq!(live["metadata"]["labels"]["team"], "a");
    // The record of the create is now a record of an apply.
    let records: Vec<(&Value, &Value)> = live["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|record| record["manager"] == "chandler")
        .map(|record| (&record["operation"], &record["subresource"]))
        .collect();
    assert_eq!(records, [(&json!("Apply"), &Value::Null)]);

    // The next release has no record to rewrite.
    stage.writes();
    stage.complete(&release(&[(0, config_map("settings", json!({"other": "3"})))])).await;
    expected = json!({"other": "3", "added": "by a user"});
    assert_eq!(stage.live(&settings).await.unwrap()["data"], expected);
    assert_eq!(stage.writes(), ["PATCH /api/v1/namespaces/install/configmaps/settings"]);
}

#[tokio::test]
async fn records_are_rewritten_only_where_a_field_is_dropped() {
    let mut stage = Stage::set().await;
    let settings = config_map_key("settings");
    let of = |data: Value| release(&[(0, config_map("settings", data))]);
    let patch = "PATCH /api/v1/namespaces/install/configmaps/settings";
    let steps = [
        (json!({"a": "1", "b": "1", "c": "1"}), vec!["POST /api/v1/namespaces/install/configmaps"]),
        (json!({"a": "2", "b": "1", "c": "1"}), vec![patch]),
        (json!({"a": "2", "b": "1", "c": "2", "d": "1"}), vec![patch]),
        // Of the create.
        (json!({"a": "2", "c": "2", "d": "1"}), vec![patch, patch]),
        // Of an apply.
        (json!({"a": "2"}), vec![patch]),
    ];
    for (number, (data, writes)) in steps.into_iter().enumerate() {
        stage.writes();
        stage.complete(&of(data.clone())).await;
        let made: Vec<String> = stage.writes().into_iter().filter(|write| write.contains("/configmaps")).collect();
        assert_eq!(made, writes, "{data}");
        if number == 0 {
            stage.meddle(&settings, json!({"data": {"added": "by a user"}})).await;
        }
        let live = stage.live(&settings).await.unwrap();
        let own = data.as_object().unwrap().clone();
        let mut expected = json!({"added": "by a user"});
        expected.as_object_mut().unwrap().extend(own);
        assert_eq!(live["data"], expected);
        // Neither a controller that wrote it nor another one needs a dry run to see that it matches.
        stage.restart().await;
        stage.reads();
        let observed = stage.rollout.observe(&RolloutRequest::new(&stage.owner, &of(data))).await.unwrap();
        assert!(observed.matches_release());
        assert!(!stage.reads().iter().any(|read| read.contains("dryRun")));
    }
}

#[tokio::test]
async fn removed_objects_are_pruned_at_the_end() {
    let stage = Stage::set().await;
    let old = [
        (0, config_map("old", json!({}))),
        (0, config_map("kept", json!({}))),
        (0, oxen(json!({}))),
        (0, ox("one", json!({}))),
    ];
    stage.complete(&release(&old)).await;
    // An object with the same labels, except the set's, does not belong to the owner.
    let mut foreign = config_map("foreign", json!({}));
    foreign["metadata"]["labels"] =
        json!({"core.rukpak.io/owner-kind": "BundleDeployment", "core.rukpak.io/owner-name": "demo"});
    stage.make(&config_map_key("foreign"), foreign).await;

    let objects = [(0, config_map("kept", json!({}))), (0, config_map("gate", json!({})))];
    let new = release_with_probes(&objects, vec![gate_probe()]);
    let Progress::Waiting { installed, changes, .. } = stage.advance(&new).await.unwrap() else {
        panic!("the gate is closed");
    };
    assert!(installed);
    assert_eq!(changes.pruned, [], "the old release stays until the new one is healthy");
    assert!(stage.live(&config_map_key("old")).await.is_some());
    let kinds = |parent: chandler_api::BundleDeployment| {
        parent.metadata.annotations.unwrap()["applyset.kubernetes.io/contains-group-kinds"].clone()
    };
    assert_eq!(kinds(stage.parent().await), "ConfigMap,CustomResourceDefinition.apiextensions.k8s.io,Ox.example.com");

    stage.open_gate().await;
    let changes = stage.complete(&new).await;
    assert_eq!(
        changes.pruned,
        [
            key("example.com/v1", "Ox", Some("install"), "one"),
            key("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "oxen.example.com"),
            config_map_key("old"),
        ]
    );
    assert_eq!(stage.live(&config_map_key("old")).await, None);
    assert!(stage.live(&config_map_key("foreign")).await.is_some());
    assert_eq!(kinds(stage.parent().await), "ConfigMap");
}

#[tokio::test]
async fn a_release_with_an_illegal_change_leaves_the_old_one_whole() {
    let stage = Stage::set().await;
    let web = |selector: &str, image: &str| {
        let mut web = deployment("web", image);
        web["spec"]["selector"]["matchLabels"]["app"] = json!(selector);
        web["spec"]["template"]["metadata"]["labels"]["app"] = json!(selector);
        web
    };
    let settings = |value: &str| config_map("settings", json!({"a": value}));
    stage.complete(&release(&[(0, settings("1")), (0, web("web", "example.com/web:v1"))])).await;
    // The selector of a Deployment is immutable.
    let broken = release(&[(0, settings("2")), (0, web("other", "example.com/web:v2"))]);
    let refused = stage.advance(&broken).await.unwrap_err();
    assert!(matches!(&refused, RolloutError::Objects(failures) if failures.len() == 1), "{refused}");
    assert!(refused.to_string().starts_with("cannot update Deployment.apps install/web: "), "{refused}");
    assert_eq!(refused.reason(), Reason::ImmutableField);
    assert_eq!(stage.live(&config_map_key("settings")).await.unwrap()["data"], json!({"a": "1"}));
    // It can be superseded at any time.
    let fixed = release(&[(0, settings("3")), (0, web("web", "example.com/web:v3"))]);
    assert_eq!(stage.complete(&fixed).await.updated.len(), 2);
}

#[tokio::test]
async fn a_new_schema_is_in_force_before_its_objects_change() {
    let stage = Stage::set().await;
    stage.complete(&release(&[(0, oxen(json!({}))), (0, ox("one", json!({})))])).await;
    let legs = json!({"legs": {"type": "integer"}});
    let changes = stage.complete(&release(&[(0, oxen(legs)), (0, ox("one", json!({"legs": 4})))])).await;
    assert_eq!(changes.updated.len(), 2);
    let one = stage.live(&key("example.com/v1", "Ox", Some("install"), "one")).await.unwrap();
    assert_eq!(one["spec"], json!({"legs": 4}));
}

#[tokio::test]
async fn an_object_that_was_just_applied_is_not_compared_by_a_dry_run() {
    let stage = Stage::set().await;
    // The API server stores its quantities in another notation.
    for image in ["example.com/web:v1", "example.com/web:v2"] {
        let release = release(&[(0, deployment("web", image))]);
        stage.complete(&release).await;
        stage.reads();
        let observed = stage.rollout.observe(&RolloutRequest::new(&stage.owner, &release)).await.unwrap();
        assert!(observed.matches_release());
        let reads = stage.reads();
        assert!(!reads.iter().any(|read| read.contains("dryRun")), "{image}: {reads:?}");
    }
}
