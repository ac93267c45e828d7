//! With `approval: Manual` no revision starts without an approval, even if a blocker disappears after the preview was made.

use chandler_api::{BundleDeployment, Revision};
use chandler_tests::{World, bundles, bundles::Bundle, wait, world::condition};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    PLAIN, crd_upgrade,
    permissions::{account, grant_missing, remove_cluster_roles, request_reconcile, spec as spec_of},
};

fn config_map(name: &str, version: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{version: '{version}'}}\n")
}

/// A bundle with the ConfigMap `settings` in this version, and more manifests.
fn bundle(version: &str, more: &str) -> Bundle {
    let manifests = if more.is_empty() {
        config_map("settings", version)
    } else {
        format!("{}---\n{more}", config_map("settings", version))
    };
    Bundle::empty().with("manifests/all.yaml", &manifests)
}

fn secret(name: &str) -> String {
    format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{tone: low}}\n")
}

fn manual(mut spec: Value) -> Value {
    spec["approval"] = json!("Manual");
    spec
}

fn history(deployment: &BundleDeployment) -> &[Revision] {
    deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default()
}

/// The version of the ConfigMap `settings`, if it exists.
async fn installed(world: &World) -> Option<String> {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    maps.get_opt("settings").await.expect("a response")?.data?.remove("version")
}

/// Asserts that this many revisions were started, and that this version is installed.
async fn expect(world: &World, revisions: usize, version: Option<&str>) {
    let deployment = world.deployments().get(&world.name()).await.expect("the BundleDeployment");
    assert_eq!(history(&deployment).len(), revisions, "{:?}", history(&deployment));
    assert_eq!(installed(world).await.as_deref(), version);
}

/// Approves the pending change, and waits until it is rolled out.
async fn approve(world: &World, revisions: usize, version: &str) {
    let name = world.name();
    world.approve(&name, &world.pending(&name).await.digest).await;
    world.ready(&name).await;
    expect(world, revisions, Some(version)).await;
}

fn ready_message(deployment: &BundleDeployment) -> &str {
    &condition(deployment, "Ready").expect("Ready").message
}

#[tokio::test]
async fn an_upgrade_with_missing_permissions_still_waits_for_approval_once_granted() {
    let world = World::new().await;
    let name = world.name();
    let account = account(&world, "deployer").await;
    let image = world.push(&bundle("1", "")).await;
    world.apply(&name, manual(spec_of(&world, PLAIN, &image, "deployer"))).await;
    let refused = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    assert_eq!(refused.status.as_ref().and_then(|status| status.pending_change.clone()), None);
    expect(&world, 0, None).await;
    grant_missing(&world, &account, &refused, &name).await;
    request_reconcile(&world, &name).await;
    let pending = world.pending(&name).await;
    assert_eq!((pending.created, pending.refusals.len()), (1, 0), "{pending:?}");
    expect(&world, 0, None).await;
    approve(&world, 1, "1").await;

    // The rule also applies to an upgrade that adds another kind.
    let image = world.push(&bundle("2", &secret("bell"))).await;
    world.apply(&name, manual(spec_of(&world, PLAIN, &image, "deployer"))).await;
    let refused = world.condition(&name, "Ready", "False", "PermissionsMissing").await;
    expect(&world, 1, Some("1")).await;
    let more = format!("{name}-more");
    grant_missing(&world, &account, &refused, &more).await;
    request_reconcile(&world, &name).await;
    let pending = world.pending(&name).await;
    assert_eq!((pending.created, pending.changed), (1, 1), "{pending:?}");
    expect(&world, 1, Some("1")).await;
    approve(&world, 2, "2").await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(secrets.get_opt("bell").await.expect("a response").is_some());
    world.delete(&name).await;
    remove_cluster_roles(&world, &[&name, &more]).await;
    world.finish().await;
}

#[tokio::test]
async fn a_bundle_that_could_not_be_pulled_still_waits_for_approval_once_it_can() {
    let world = World::new().await;
    let name = world.name();
    let reference = |tag: &str| format!("{}/bundles/late:{tag}", world.registry.host());
    for (number, tag) in ["1", "2"].into_iter().enumerate() {
        let before = (number > 0).then_some("1");
        world.apply(&name, manual(world.spec(PLAIN, &reference(tag)))).await;
        world.condition(&name, "Unpacked", "False", "UnpackFailed").await;
        expect(&world, number, before).await;
        let bundle = bundle(tag, "");
        let pushed = world.registry.push_bundle_directory("bundles/late", tag, bundle.path(), &[].into()).await;
        pushed.expect("the registry takes the bundle");
        request_reconcile(&world, &name).await;
        world.pending(&name).await;
        expect(&world, number, before).await;
        approve(&world, number + 1, tag).await;
    }
    world.finish().await;
}

#[tokio::test]
async fn a_collision_is_reported_and_the_change_waits_for_approval_once_it_is_gone() {
    let world = World::new().await;
    let name = world.name();
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    for (number, version) in ["1", "2"].into_iter().enumerate() {
        let existing = format!("existing-{version}");
        let before = (number > 0).then_some("1");
        let object = serde_json::from_value(json!({"metadata": {"name": existing}, "data": {"version": "existing"}}));
        let parameters = PostParams { field_manager: Some("kubectl-create".to_owned()), ..PostParams::default() };
        maps.create(&parameters, &object.expect("a ConfigMap")).await.expect("a ConfigMap");
        let image = world.push(&bundle(version, &config_map(&existing, version))).await;
        world.apply(&name, manual(world.spec(PLAIN, &image))).await;
        let deployment = world.condition(&name, "Ready", "False", "ApprovalRequired").await;
        let collision =
            format!("ConfigMap {}/{existing} already exists and was created by kubectl-create", world.namespace);
        assert!(
            ready_message(&deployment).starts_with(&format!("would be refused: {collision}\n")),
            "{}",
            ready_message(&deployment)
        );
        let pending = world.pending(&name).await;
        assert_eq!(pending.refusals.len(), 1, "{pending:?}");
        assert!(pending.refusals[0].starts_with(&collision), "{pending:?}");
        expect(&world, number, before).await;

        maps.delete(&existing, &DeleteParams::default()).await.expect("the object exists");
        request_reconcile(&world, &name).await;
        wait::until(&world.deployments(), &name, "no longer refused", |deployment| {
            let pending = deployment.and_then(|deployment| deployment.status.as_ref()?.pending_change.as_ref());
            pending.is_some_and(|pending| pending.refusals.is_empty())
        })
        .await;
        assert_ne!(
            world.pending(&name).await.digest,
            pending.digest,
            "another change: it creates the object that it collided with"
        );
        expect(&world, number, before).await;
        approve(&world, number + 1, version).await;
    }
    world.finish().await;
}

#[tokio::test]
async fn an_unsafe_crd_is_reported_and_waits_for_approval_once_allowed() {
    let world = World::new().await;
    let name = world.name();
    let (text, fewer) =
        (json!({"type": "string", "enum": ["small", "large"]}), json!({"type": "string", "enum": ["small"]}));
    let spec = |image: &str, preflight: Value| {
        let mut spec = manual(world.spec(PLAIN, image));
        spec["preflight"] = json!({"crdUpgradeSafety": preflight});
        spec
    };
    let image = world.push(&crd_upgrade::bundle(&world, "1", &text)).await;
    world.apply(&name, spec(&image, json!({}))).await;
    approve(&world, 1, "1").await;

    let image = world.push(&crd_upgrade::bundle(&world, "2", &fewer)).await;
    world.apply(&name, spec(&image, json!({}))).await;
    let refused = world.pending(&name).await;
    assert!(refused.refusals[0].starts_with("validating upgrade for CRD "), "{refused:?}");
    expect(&world, 1, Some("1")).await;
    // It is rejected although it is approved.
    world.approve(&name, &refused.digest).await;
    world.condition(&name, "Ready", "False", "UnsafeCRDUpgrade").await;
    assert_eq!(installed(&world).await.as_deref(), Some("1"));

    // An equal release with another spec is another change.
    let image = world.push(&crd_upgrade::bundle(&world, "3", &fewer)).await;
    world.apply(&name, spec(&image, json!({"enforcement": "Warn"}))).await;
    let pending = world.pending(&name).await;
    assert_eq!(pending.refusals, [""; 0]);
    assert!(pending.findings.iter().any(|finding| finding.contains("allowed enum values removed")), "{pending:?}");
    assert_eq!(installed(&world).await.as_deref(), Some("1"));
    world.approve(&name, &pending.digest).await;
    world.ready(&name).await;
    assert_eq!(installed(&world).await.as_deref(), Some("3"));
    world.finish().await;
}

#[tokio::test]
async fn an_unapproved_rollout_stops_once_approval_is_required() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::stalled_lighthouse()).await;
    world.deploy(&name, PLAIN, &image).await;
    let keepers: Api<Deployment> = Api::namespaced(world.client.clone(), "lighthouse");
    wait::until(&keepers, "keeper", "created", |keeper| keeper.is_some()).await;
    let merge = Patch::Merge(json!({"spec": {"approval": "Manual"}}));
    world.deployments().patch(&name, &PatchParams::default(), &merge).await.expect("the object is accepted");
    let rest = world.pending(&name).await;
    assert!(rest.created > 0, "{rest:?}");

    // The object that the stage waited for becomes healthy, but the next stage does not start.
    let image = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": [
        {"name": "keeper", "image": "registry.k8s.io/pause:3.10"}]}}}}));
    keepers.patch("keeper", &PatchParams::default(), &image).await.expect("the edit is accepted");
    request_reconcile(&world, &name).await;
    let rest = world.pending(&name).await;
    let deployment = world.deployments().get(&name).await.expect("the BundleDeployment");
    assert_eq!(history(&deployment).iter().map(|revision| revision.approval.clone()).collect::<Vec<_>>(), [None]);

    // The next bundle needs approval, too; once approved, it is rolled out.
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    world.apply(&name, manual(world.spec(PLAIN, &image))).await;
    let next = wait::until(&world.deployments(), &name, "another change", |deployment| {
        let pending = deployment.and_then(|deployment| deployment.status.as_ref()?.pending_change.as_ref());
        pending.is_some_and(|pending| pending.digest != rest.digest)
    })
    .await;
    assert_eq!(history(&next.expect("the object exists")).len(), 1, "no revision was started");
    world.approve(&name, &world.pending(&name).await.digest).await;
    let deployment = world.ready(&name).await;
    assert!(history(&deployment).last().is_some_and(|revision| revision.approval.is_some()));
    world.finish().await;
}

/// Otherwise a user who may change the spec could let the rest of an approved rollout adopt foreign objects.
#[tokio::test]
async fn an_approved_rollout_stops_if_the_spec_allows_more_than_was_approved() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::stalled_lighthouse()).await;
    world.apply(&name, manual(world.spec(PLAIN, &image))).await;
    let first = world.pending(&name).await;
    world.approve(&name, &first.digest).await;
    let keepers: Api<Deployment> = Api::namespaced(world.client.clone(), "lighthouse");
    wait::until(&keepers, "keeper", "created", |keeper| keeper.is_some()).await;
    let merge = Patch::Merge(json!({"spec": {"collisionProtection": "None"}}));
    world.deployments().patch(&name, &PatchParams::default(), &merge).await.expect("the object is accepted");
    let rest = world.pending(&name).await;
    assert_ne!(rest.digest, first.digest);
    // With the approved spec it continues.
    let merge = Patch::Merge(json!({"spec": {"collisionProtection": null}}));
    world.deployments().patch(&name, &PatchParams::default(), &merge).await.expect("the object is accepted");
    world.condition(&name, "Progressing", "True", "RollingOut").await;
    world.finish().await;
}

/// Repairs and rollbacks need no approval, so they must not use settings that were not approved.
#[tokio::test]
async fn a_repair_does_no_more_than_was_approved() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundle("1", &config_map("extra", "1"))).await;
    world.apply(&name, manual(world.spec(PLAIN, &image))).await;
    approve(&world, 1, "1").await;
    let maps = world.config_maps();
    let foreign: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "extra"}, "data": {"version": "foreign"}})).expect("a map");
    let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"suspend": suspend}}));
    let patched = |patch: Patch<Value>| {
        let deployments = world.deployments();
        let name = name.clone();
        async move { deployments.patch(&name, &PatchParams::default(), &patch).await.expect("the object is accepted") }
    };
    patched(suspend(true)).await;
    world.condition(&name, "Progressing", "False", "Suspended").await;
    maps.delete("extra", &DeleteParams::default()).await.expect("a deletion");
    maps.create(&PostParams::default(), &foreign).await.expect("a ConfigMap");
    let extra = || async { maps.get("extra").await.expect("the ConfigMap").data.expect("data")["version"].clone() };

    let widened = patched(Patch::Merge(json!({"spec": {"suspend": false, "collisionProtection": "None"}}))).await;
    wait::until(&world.deployments(), &name, "the collision", |deployment: Option<&BundleDeployment>| {
        let deployment = deployment.filter(|it| it.metadata.generation == widened.metadata.generation);
        let ready = deployment.and_then(|deployment| condition(deployment, "Ready"));
        ready.is_some_and(|ready| {
            ready.reason == "ObjectCollision" && ready.observed_generation == widened.metadata.generation
        })
    })
    .await;
    assert_eq!(extra().await, "foreign");

    // A rollback behaves like this, too.
    patched(Patch::Merge(json!({"spec": {"collisionProtection": null}}))).await;
    let image = world.push(&bundle("2", "")).await;
    world.apply(&name, manual(world.spec(PLAIN, &image))).await;
    let change = |deployment: &BundleDeployment| deployment.status.as_ref()?.pending_change.clone();
    let deployments = world.deployments();
    let waits = wait::until(&deployments, &name, "a change that waits", |deployment: Option<&BundleDeployment>| {
        deployment.and_then(change).is_some()
    });
    let waits = waits.await.as_ref().and_then(change).expect("a change");
    world.approve(&name, &waits.digest).await;
    world.ready(&name).await;
    expect(&world, 2, Some("2")).await;
    patched(Patch::Merge(json!({"spec": {"collisionProtection": "None", "rollout": {"toRevision": 1}}}))).await;
    world.condition(&name, "Ready", "False", "ObjectCollision").await;
    assert_eq!(extra().await, "foreign");
    world.finish().await;
}

/// A bundle with a Deployment with this environment variable and this Pod label.
fn web(variable: &Value, label: &str) -> Bundle {
    let container = json!({"name": "web", "image": "registry.k8s.io/pause:3.10", "env": [variable]});
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": label}}, "spec": {"containers": [container]}}},
    });
    bundle("1", &web.to_string())
}

#[tokio::test]
async fn a_preview_reports_exactly_the_rejections_of_the_api_server() {
    let world = World::new().await;
    let name = world.name();
    let text = json!({"name": "A", "value": "b"});
    let image = world.push(&web(&text, "web")).await;
    world.apply(&name, manual(world.spec(PLAIN, &image))).await;
    approve(&world, 1, "1").await;

    let image = world.push(&web(&text, "other")).await;
    world.apply(&name, manual(world.spec(PLAIN, &image))).await;
    let refused = world.pending(&name).await;
    let expected = format!("cannot update Deployment.apps {}/web: ", world.namespace);
    assert!(refused.refusals.iter().any(|refusal| refusal.starts_with(&expected)), "{refused:?}");

    // Nothing was applied since the creation, so a dry run keeps the old value, which excludes its replacement.
    let key = json!({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "version"}}});
    let image = world.push(&web(&key, "web")).await;
    world.apply(&name, manual(world.spec(PLAIN, &image))).await;
    let pending = world.pending(&name).await;
    assert_eq!((pending.changed, pending.refusals.len()), (1, 0), "{pending:?}");
    approve(&world, 2, "1").await;
    world.finish().await;
}
