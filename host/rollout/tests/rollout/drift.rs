//! Drift, and objects of other owners.

use super::support::{Stage, config_map, config_map_key, deployment, key, make_owner, release};
use chandler_rollout::{
    DriftOptions, DriftPolicy, Ignored, IgnoredFields, Options, Owner, Rollout, RolloutError, RolloutRequest,
};
use kube::api::{Patch, PatchParams};
use serde_json::json;

#[tokio::test]
async fn drift_is_repaired() {
    let stage = Stage::set().await;
    let release = release(&[
        (0, config_map("settings", json!({"a": "1"}))),
        (0, config_map("gone", json!({"a": "1"}))),
        (0, deployment("web", "example.com/web:v1")),
    ]);
    stage.complete(&release).await;
    let (settings, gone, web) =
        (config_map_key("settings"), config_map_key("gone"), key("apps/v1", "Deployment", Some("install"), "web"));
    stage.meddle(&settings, json!({"data": {"a": "2"}, "metadata": {"labels": null}})).await;
    stage.meddle(&web, json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "example.com/web:v2"}]}}, "replicas": 3}})).await;
    stage.remove(&gone).await;

    let observed = stage.rollout.observe(&RolloutRequest::new(&stage.owner, &release)).await.unwrap();
    let drift: Vec<String> = observed.drift.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(drift.join("
"), @r"
    ConfigMap install/gone does not exist
    ConfigMap install/settings: data.a was set by kubectl, metadata.labels was removed
    Deployment.apps install/web: spec.template.spec.containers[name=main].image was set by kubectl, spec.template.spec.containers[name=main].ports was removed, spec.template.spec.containers[name=main].resources.limits was removed
    ");
    let changes = stage.complete(&release).await;
    insta::assert_snapshot!(changes, @r"
    created ConfigMap install/gone
    recovered ConfigMap install/settings
    recovered Deployment.apps install/web
    unchanged: 3
    ");
    assert_eq!(stage.live(&settings).await.unwrap()["data"], json!({"a": "1"}));
    let live = stage.live(&web).await.unwrap();
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "example.com/web:v1");
    // The release sets no number of replicas, so an autoscaler may.
    assert_eq!(live["spec"]["replicas"], 3);
}

#[tokio::test]
async fn objects_of_other_owners_are_not_taken() {
    let stage = Stage::set().await;
    stage.make(&config_map_key("theirs"), config_map("theirs", json!({"a": "theirs"}))).await;
    let other = make_owner(&stage.client, "other").await;
    let shared = release(&[(0, config_map("shared", json!({"a": "1"})))]);
    stage.rollout.advance(&RolloutRequest::new(&other, &shared)).await.unwrap();
    stage.writes();

    let release = release(&[
        (0, config_map("first", json!({}))),
        (0, config_map("shared", json!({"a": "2"}))),
        (0, config_map("theirs", json!({"a": "ours"}))),
    ]);
    let refused = stage.advance(&release).await.unwrap_err();
    insta::assert_snapshot!(refused, @r"
    ConfigMap install/shared already exists and is controlled by BundleDeployment other
    ConfigMap install/theirs already exists and was created by kubectl
    an object can belong to only one BundleDeployment: remove it from this bundle or from the bundle of other, or move it here with `chandler adopt demo --force`
    adopt objects without a controller with `chandler adopt demo` or spec.collisionProtection: IfNoController, delete them, or remove them from the bundle
    ");
    assert!(matches!(refused, RolloutError::Collisions(_)));
    assert_eq!(stage.writes(), [""; 0]);
    assert_eq!(stage.live(&config_map_key("theirs")).await.unwrap()["data"], json!({"a": "theirs"}));

    // A new owner of the same name does not inherit the objects of the previous one.
    let mut imposter = other.clone();
    imposter.uid = "another".into();
    let rollout = Rollout::new(stage.client.clone(), Options::default());
    assert!(matches!(rollout.advance(&RolloutRequest::new(&imposter, &shared)).await, Err(RolloutError::OwnerGone(_))));
}

#[tokio::test]
async fn everything_of_the_owner_is_deleted_and_nothing_else() {
    let stage = Stage::set().await;
    let other = make_owner(&stage.client, "other").await;
    stage
        .rollout
        .advance(&RolloutRequest::new(&other, &release(&[(0, config_map("other", json!({})))])))
        .await
        .unwrap();
    let objects = [
        (0, config_map("settings", json!({}))),
        (0, deployment("web", "example.com/web:v1")),
        (0, super::support::oxen(json!({}))),
        (0, super::support::ox("one", json!({}))),
    ];
    stage.complete(&release(&objects)).await;
    let one = key("example.com/v1", "Ox", Some("install"), "one");
    stage.meddle(&one, json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;

    // The ox has a finalizer, so later objects stay; it is reported with the finalizer.
    for asked in [1, 0] {
        let chandler_rollout::Teardown::Waiting { waiting, deleted, .. } =
            stage.rollout.teardown(&stage.owner).await.unwrap()
        else {
            panic!("the ox is held");
        };
        assert_eq!(deleted.len(), asked);
        assert_eq!(
            waiting.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ["(example.com/v1, Kind=Ox)(install/one): is being deleted, held by finalizer example.com/hold"]
        );
    }
    assert!(stage.live(&config_map_key("settings")).await.is_some());
    stage.meddle(&one, json!({"metadata": {"finalizers": null}})).await;

    let deleted: Vec<String> = stage.tear_down().await.iter().map(ToString::to_string).collect();
    assert_eq!(
        deleted,
        [
            "Deployment.apps install/web",
            "CustomResourceDefinition.apiextensions.k8s.io oxen.example.com",
            "ConfigMap install/settings"
        ]
    );
    assert!(stage.live(&config_map_key("other")).await.is_some());
    assert_eq!(stage.tear_down().await, []);
}

#[tokio::test]
async fn a_set_whose_list_of_kinds_was_lost_is_still_found() {
    let stage = Stage::set().await;
    stage.complete(&release(&[(0, config_map("settings", json!({})))])).await;
    let parent = key("core.rukpak.io/v1alpha2", "BundleDeployment", None, "demo");
    stage.meddle(&parent, json!({"metadata": {"annotations": null}})).await;
    assert_eq!(stage.tear_down().await, [config_map_key("settings")]);
}

fn ignoring(stage: &Stage, kind: &str, pointer: &str) -> Owner {
    let fields =
        IgnoredFields { kind: Some(kind.into()), json_pointers: vec![pointer.into()], ..IgnoredFields::default() };
    stage.owner.clone().ignoring(Ignored::new([fields]).unwrap_or_default())
}

#[tokio::test]
async fn ignored_fields_are_neither_compared_nor_changed() {
    let stage = Stage::set().await;
    let (settings, owner) = (config_map_key("settings"), ignoring(&stage, "ConfigMap", "/data/a"));
    let first = release(&[(0, config_map("settings", json!({"a": "1", "b": "1"})))]);
    stage.complete(&first).await;
    stage.meddle(&settings, json!({"data": {"a": "2"}})).await;
    // Without the rule it is drift, with it not, and without it drift again: no comparison is remembered wrongly.
    assert_eq!(stage.rollout.observe(&RolloutRequest::new(&stage.owner, &first)).await.unwrap().drift.len(), 1);
    assert!(stage.rollout.observe(&RolloutRequest::new(&owner, &first)).await.unwrap().matches_release());
    assert!(stage.rollout.preview(&RolloutRequest::new(&owner, &first)).await.unwrap().is_empty());
    assert_eq!(stage.rollout.observe(&RolloutRequest::new(&stage.owner, &first)).await.unwrap().drift.len(), 1);
    // A removed field is not restored either.
    stage.meddle(&settings, json!({"data": {"a": null}})).await;
    assert!(stage.rollout.observe(&RolloutRequest::new(&owner, &first)).await.unwrap().matches_release());

    stage.meddle(&settings, json!({"data": {"a": "3"}})).await;
    let second = release(&[(0, config_map("settings", json!({"a": "4", "b": "2"})))]);
    let preview = stage.rollout.preview(&RolloutRequest::new(&owner, &second)).await.unwrap();
    let paths: Vec<&str> = preview.changes[0].fields.iter().map(|field| field.path.as_str()).collect();
    assert_eq!(paths, ["data.b"]);
    let progress = stage.rollout.advance(&RolloutRequest::new(&owner, &second)).await.unwrap();
    assert_eq!(progress.changes().to_string(), "updated ConfigMap install/settings\nunchanged: 0");
    assert_eq!(stage.live(&settings).await.unwrap()["data"], json!({"a": "3", "b": "2"}));
    assert!(stage.rollout.observe(&RolloutRequest::new(&owner, &second)).await.unwrap().matches_release());
    // A created object matches the release.
    stage.remove(&settings).await;
    stage.rollout.advance(&RolloutRequest::new(&owner, &second)).await.unwrap();
    assert_eq!(stage.live(&settings).await.unwrap()["data"], json!({"a": "4", "b": "2"}));
}

#[tokio::test]
async fn unrepaired_drift_is_reported() {
    let stage = Stage::set().await;
    let objects = |version: &str| {
        release(&[
            (0, config_map("changed", json!({"a": "1"}))),
            (0, config_map("gone", json!({"a": "1"}))),
            (0, config_map("renewed", json!({"a": version}))),
        ])
    };
    stage.complete(&objects("1")).await;
    stage.meddle(&config_map_key("changed"), json!({"data": {"a": "2"}})).await;
    stage.remove(&config_map_key("gone")).await;
    let copy = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "copy",
        "labels": stage.live(&config_map_key("changed")).await.unwrap()["metadata"]["labels"]}});
    stage.make(&config_map_key("copy"), copy).await;
    stage.writes();

    let reported = DriftOptions { drift: DriftPolicy::Report, complete: true, ..DriftOptions::default() };
    let progress =
        stage.rollout.advance(&RolloutRequest::new(&stage.owner, &objects("2")).drift(reported.clone())).await.unwrap();
    let reported: Vec<String> = progress.changes().unrepaired.iter().map(ToString::to_string).collect();
    assert_eq!(
        reported,
        ["ConfigMap install/changed: data.a was set by kubectl", "ConfigMap install/gone does not exist"]
    );
    assert_eq!(progress.changes().updated, [config_map_key("renewed")]);
    assert_eq!(stage.writes(), ["PATCH /api/v1/namespaces/install/configmaps/renewed"]);
    let observed = stage
        .rollout
        .observe(&RolloutRequest::new(&stage.owner, &objects("2")).drift(DriftPolicy::Ignore))
        .await
        .unwrap();
    let reported: Vec<String> = observed.drift.iter().map(ToString::to_string).collect();
    assert_eq!(
        reported,
        ["ConfigMap install/gone does not exist"],
        "an object with forged labels does not belong to the owner"
    );

    // An object in its cooldown is not repaired either, and the others are.
    let in_cooldown =
        DriftOptions { cooldown: [config_map_key("changed")].into(), complete: true, ..DriftOptions::default() };
    let progress = stage
        .rollout
        .advance(&RolloutRequest::new(&stage.owner, &objects("2")).drift(in_cooldown.clone()))
        .await
        .unwrap();
    let changes = progress.changes();
    assert_eq!((changes.created.as_slice(), changes.pruned.len()), (&[config_map_key("gone")][..], 0));
    assert_eq!((changes.recovered.len(), changes.unrepaired.len()), (0, 1));
    let progress = stage.rollout.advance(&RolloutRequest::new(&stage.owner, &objects("2"))).await.unwrap();
    assert_eq!(progress.changes().repaired.len(), 1);
}

#[tokio::test]
async fn fields_that_others_apply_are_named_when_they_are_taken_over() {
    let stage = Stage::set().await;
    let settings = config_map_key("settings");
    stage.complete(&release(&[(0, config_map("settings", json!({"a": "1", "b": "1"})))])).await;
    let theirs = config_map("settings", json!({"a": "theirs", "c": "theirs"}));
    let gitops = PatchParams::apply("gitops").force();
    stage.api(&settings).patch("settings", &gitops, &Patch::Apply(theirs)).await.unwrap();
    stage.meddle(&settings, json!({"data": {"b": "edited"}})).await;
    let progress = stage.advance(&release(&[(0, config_map("settings", json!({"a": "2", "b": "2"})))])).await.unwrap();
    let reported: Vec<String> = progress.changes().conflicts.iter().map(ToString::to_string).collect();
    assert_eq!(
        reported,
        ["ConfigMap install/settings had fields that other field managers apply: data.a was applied by gitops"]
    );
    assert_eq!(stage.live(&settings).await.unwrap()["data"], json!({"a": "2", "b": "2", "c": "theirs"}));
}
