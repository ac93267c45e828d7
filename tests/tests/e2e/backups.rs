//! A backup that is restored object by object, with other UIDs: a BundleDeployment continues with its record, and nothing is created again,
//! adopted or orphaned.

use std::time::Duration;

use chandler_api::BundleDeployment;
use chandler_tests::{
    World,
    backup::{Backup, Uids},
    bundles::{Bundle, config_map},
    wait::eventually,
    world::condition,
};
use k8s_openapi::api::{core::v1::Secret, events::v1::Event};
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use crate::{
    PLAIN,
    resolutions::{create, installed, patch, wanted},
    shop::{Shop, catalog},
};

const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: pier}\nspec:\n  selector: {matchLabels: {app: pier}}\n  \
                          template:\n    metadata: {labels: {app: pier}}\n    spec: {containers: [{name: pier, image: \
                          registry.k8s.io/pause:3.10}]}\n";
const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: key\n  annotations: {secrets.chandler.dev/generate: \
                      'password=password:24'}\n";

fn bundle(version: &str) -> Bundle {
    Bundle::empty()
        .with("manifests/map.yaml", &config_map("berth", version))
        .with("manifests/secret.yaml", SECRET)
        .with("manifests/deployment.yaml", DEPLOYMENT)
}

/// A world in which a second revision runs, with a ConfigMap that the first one did not have.
async fn installed_twice() -> World {
    let world = World::new().await;
    let image = world.push(&bundle("one")).await;
    world.deploy(&world.name(), PLAIN, &image).await;
    world.ready(&world.name()).await;
    let image = world.push(&bundle("two").with("manifests/added.yaml", &config_map("added", "two"))).await;
    world.deploy(&world.name(), PLAIN, &image).await;
    world.ready(&world.name()).await;
    world
}

/// Takes a backup, and deletes everything, while no controller runs.
pub(crate) async fn lose_everything(world: &mut World) -> Backup {
    world.stop_controller().await;
    let backup = Backup::take(world).await;
    backup.delete_all(&world.client).await;
    assert_eq!(backup.uids(&world.client).await, Uids::new());
    backup
}

/// Without the releases that are no longer needed, which are deleted at some time.
pub(crate) fn lasting(uids: Uids) -> Uids {
    uids.into_iter().filter(|(key, _)| !key.starts_with("Secret release-")).collect()
}

pub(crate) fn is_any(_: &str, _: &str) -> bool {
    true
}

fn revisions(deployment: &BundleDeployment) -> Vec<i64> {
    deployment.status.iter().flat_map(|status| &status.history).map(|revision| revision.number).collect()
}

/// The reasons of the Events about objects of this test.
async fn reasons(world: &World) -> Vec<String> {
    let events: Api<Event> = Api::all(world.client.clone());
    let events = events.list(&ListParams::default()).await.expect("the events");
    let is_ours = |event: &Event| {
        event.regarding.as_ref().and_then(|it| it.name.as_deref()).is_some_and(|name| name.contains(world.run().name()))
    };
    events.items.into_iter().filter(is_ours).filter_map(|event| event.reason).collect()
}

async fn password(world: &World) -> Vec<u8> {
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let secret = secrets.get("key").await.expect("the Secret");
    secret.data.and_then(|mut data| data.remove("password")).expect("a password").0
}

async fn request_reconcile(world: &World, at: &str) {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": at}}}));
    world.deployments().patch(&world.name(), &PatchParams::default(), &patch).await.expect("the change is accepted");
}

#[tokio::test]
async fn a_restored_bundle_deployment_continues_with_its_record() {
    let mut world = installed_twice().await;
    let before = password(&world).await;
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, is_any).await;
    let restored = backup.uids(&world.client).await;
    let saved = backup.saved_uids();
    assert!(restored.keys().eq(saved.keys()) && restored.iter().all(|(key, uid)| saved[key] != *uid));

    world.start_controller();
    let ready = world.ready(&world.name()).await;
    assert_eq!(revisions(&ready), [1, 2], "no revision began");
    assert_eq!(backup.uids(&world.client).await, restored, "nothing was created again");
    assert_eq!(password(&world).await, before);
    let reasons = reasons(&world).await;
    assert!(!reasons.iter().any(|reason| reason == "Adopted" || reason == "ObjectCollision"), "{reasons:?}");
    for name in ["berth", "added"] {
        let map = world.config_maps().get(name).await.expect("the ConfigMap");
        let owners: Vec<Option<String>> = map.owner_references().iter().map(|owner| Some(owner.uid.clone())).collect();
        assert_eq!(owners, [ready.uid()], "{name}");
    }

    // It owns them: a rollback to a release that was restored too, without the registry, removes one.
    let rollback = Patch::Merge(json!({"spec": {"rollout": {"toRevision": 1}}}));
    let patched = world.deployments().patch(&world.name(), &PatchParams::default(), &rollback).await;
    patched.expect("the change is accepted");
    eventually("the ConfigMap of the newer revision is gone", || async {
        matches!(world.config_maps().get_opt("added").await, Ok(None))
    })
    .await;
    world.ready(&world.name()).await;

    // A backup of what was restored is restored once more.
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, is_any).await;
    let restored = backup.uids(&world.client).await;
    world.start_controller();
    let ready = world.ready(&world.name()).await;
    assert_eq!(revisions(&ready).last(), Some(&3));
    assert_eq!(backup.uids(&world.client).await, restored);
    world.finish().await;
}

#[tokio::test]
async fn nothing_is_created_before_the_rest_of_the_backup_is_restored() {
    let mut world = installed_twice().await;
    let backup = lose_everything(&mut world).await;
    let is_early = |kind: &str, _: &str| matches!(kind, "Secret" | "BundleDeployment");
    backup.restore(&world.client, is_early).await;
    world.start_controller();
    let waiting = world.condition(&world.name(), "Ready", "False", "RestoreIncomplete").await;
    let message = condition(&waiting, "Ready").expect("a condition").message.clone();
    let (namespace, name) = (&world.namespace, world.name());
    for part in [
        format!("ConfigMap {namespace}/added, ConfigMap {namespace}/berth, Deployment.apps {namespace}/pier"),
        format!("`chandler reconcile {name}`"),
    ] {
        assert!(message.contains(&part), "{part}: {message}");
    }
    assert!(condition(&waiting, "Stalled").is_none_or(|stalled| stalled.status != "True"), "it waits");
    assert!(world.config_maps().get_opt("berth").await.expect("an answer").is_none());

    backup.restore(&world.client, is_any).await;
    let restored = backup.uids(&world.client).await;
    let ready = world.ready(&world.name()).await;
    assert_eq!((revisions(&ready), backup.uids(&world.client).await), (vec![1, 2], restored));
    world.finish().await;
}

#[tokio::test]
async fn what_a_backup_lacks_is_created_on_request_or_after_a_while() {
    let mut world = installed_twice().await;
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, |_, name| name != "added").await;
    world.start_controller();
    world.condition(&world.name(), "Ready", "False", "RestoreIncomplete").await;
    request_reconcile(&world, "2100-01-01T00:00:00Z").await;
    let ready = world.ready(&world.name()).await;
    assert!(world.config_maps().get_opt("added").await.expect("an answer").is_some());
    assert_eq!(revisions(&ready), [1, 2]);

    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, |_, name| name != "berth").await;
    let wait = |options: &mut chandler_controller::Options| options.restore_wait = Duration::from_secs(1);
    world.start_controller_changed(wait);
    world.ready(&world.name()).await;
    assert!(world.config_maps().get_opt("berth").await.expect("an answer").is_some());
    world.finish().await;
}

#[tokio::test]
async fn a_bundle_deployment_whose_record_is_not_restored_yet_waits_for_it() {
    let mut world = installed_twice().await;
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, |kind, _| kind != "Secret").await;
    world.start_controller();
    let waiting = world.condition(&world.name(), "Ready", "False", "RestoreIncomplete").await;
    let message = &condition(&waiting, "Ready").expect("a condition").message;
    assert!(message.contains("its record does not exist yet"), "{message}");
    backup.restore(&world.client, is_any).await;
    let restored = backup.uids(&world.client).await;
    let ready = world.ready(&world.name()).await;
    assert_eq!((revisions(&ready), backup.uids(&world.client).await), (vec![1, 2], restored));
    world.finish().await;
}

#[tokio::test]
async fn a_suspended_one_waits_for_its_record_too() {
    let mut world = installed_twice().await;
    let suspend = async |world: &World, suspend: bool| {
        let patch = Patch::Merge(json!({"spec": {"suspend": suspend}}));
        world
            .deployments()
            .patch(&world.name(), &PatchParams::default(), &patch)
            .await
            .expect("the change is accepted");
    };
    suspend(&world, true).await;
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, |kind, _| kind != "Secret").await;
    world.start_controller();
    world.condition(&world.name(), "Ready", "False", "RestoreIncomplete").await;
    backup.restore(&world.client, is_any).await;
    let restored = backup.uids(&world.client).await;
    suspend(&world, false).await;
    let ready = world.ready(&world.name()).await;
    assert_eq!((revisions(&ready), backup.uids(&world.client).await), (vec![1, 2], restored));
    world.finish().await;
}

#[tokio::test]
async fn with_another_account_it_is_not_the_one_of_the_record() {
    let mut world = installed_twice().await;
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, |kind, _| kind != "BundleDeployment").await;
    let image = world.push(&bundle("one")).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["serviceAccount"] = json!({"name": "another"});
    spec["rollout"] = json!({"toRevision": 2});
    world.apply(&world.name(), spec).await;
    world.start_controller();
    let refused = world.condition(&world.name(), "Ready", "False", "RevisionUnavailable").await;
    assert_eq!(revisions(&refused), [] as [i64; 0], "the revisions of another account are not shown");
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_set_has_its_members() {
    let mut world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    create(&shop, &name, &[("app", "")]).await;
    let members = [("app", "1.0.0"), ("base", "1.0.0")];
    installed(&shop, &name, &members).await;
    drop(shop);
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, is_any).await;
    let restored = backup.uids(&world.client).await;
    world.start_controller();
    let shop = Shop::new(&world);
    installed(&shop, &name, &members).await;
    assert_eq!(lasting(backup.uids(&world.client).await), lasting(restored), "nothing was created again");
    for (member, _) in members {
        world.ready(&shop.name(member)).await;
    }
    // The set is its own: a package that is no longer wanted goes.
    patch(&world, &name, json!({"packages": wanted(&shop, &[("base", "")])})).await;
    installed(&shop, &name, &[("base", "1.0.0")]).await;
    drop(shop);
    world.finish().await;
}
