//! The controller trusts nothing that users can write: labels, owner references and the status decide neither what is deleted nor
//! what is installed.

use chandler_tests::{
    InProcess, Interruption, World,
    bundles::{Bundle, config_map},
    wait,
};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, ServiceAccount};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  accessModes: \
                     [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n";

fn claims(world: &World) -> Api<PersistentVolumeClaim> {
    Api::namespaced(world.client.clone(), &world.namespace)
}

/// All marks of an object that belongs to a BundleDeployment.
async fn marks(world: &World, name: &str) -> Value {
    let deployment = world.deployments().get(name).await.expect("the object exists");
    let owner = chandler_decisions::owner::owner_of(&deployment, &world.namespace).expect("a stored object");
    json!({"metadata": {
        "labels": {
            "applyset.kubernetes.io/part-of": owner.set_id(),
            "core.rukpak.io/owner-kind": "BundleDeployment",
            "core.rukpak.io/owner-name": name,
        },
        "annotations": {"chandler.dev/applied": "x", "chandler.dev/seal": "0".repeat(64)},
        "ownerReferences": [{
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "name": name, "uid": deployment.uid(),
            "controller": true, "blockOwnerDeletion": true,
        }],
    }})
}

#[tokio::test]
async fn an_object_with_forged_marks_is_not_pruned() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("first", "bundle"))).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let victim = json!({"metadata": {"name": "victim"}, "data": {"from": "another-user"}});
    let victim: ConfigMap = serde_json::from_value(victim).expect("a ConfigMap");
    world.config_maps().create(&PostParams::default(), &victim).await.expect("a ConfigMap");
    let marks = Patch::Merge(marks(&world, &name).await);
    world.config_maps().patch("victim", &PatchParams::default(), &marks).await.expect("the object exists");

    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("second", "bundle"))).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    wait::until(&world.config_maps(), "first", "pruned", |map| map.is_none()).await;
    assert!(world.config_maps().get_opt("victim").await.expect("a response").is_some());
    // The owner reference alone would let the garbage collector delete it.
    let free = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
    world.config_maps().patch("victim", &PatchParams::default(), &free).await.expect("the object exists");
    world.delete(&name).await;
    let spared = world.config_maps().get("victim").await.expect("the object has no owner");
    assert_eq!(spared.data.and_then(|data| data.get("from").cloned()).as_deref(), Some("another-user"));
    world.finish().await;
}

/// The controller stores a release before its record names it. The release may contain the Secrets of the bundle.
#[tokio::test]
async fn a_release_stored_before_a_crash_is_deleted_with_its_deployment() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("first", "bundle"))).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let releases = ListParams::default().fields("type=chandler.dev/release");
    let mut release = secrets.list(&releases).await.expect("Secrets").items.pop().expect("the release that runs");
    release.metadata.name = Some("release-0123456789abcdef01234567-0".to_owned());
    (release.metadata.uid, release.metadata.resource_version, release.metadata.managed_fields) = (None, None, None);
    secrets.create(&PostParams::default(), &release).await.expect("the release that the crashed controller left");
    release.metadata.name = Some("release-ffffffffffffffffffffffff-0".to_owned());
    let other = [("chandler.dev/bundledeployment".to_owned(), "another".to_owned())];
    release.metadata.annotations = Some(other.into());
    secrets.create(&PostParams::default(), &release).await.expect("a release of another BundleDeployment");
    world.delete(&name).await;
    let left = secrets.list(&releases).await.expect("Secrets").items;
    assert_eq!(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["release-ffffffffffffffffffffffff-0"]);
    world.finish().await;
}

/// The replacement has the same marks, but another UID.
#[tokio::test]
async fn a_replaced_object_is_neither_pruned_nor_deleted() {
    let mut world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("first", "bundle"))).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    world.stop_controller().await;
    let mut copy = world.config_maps().get("first").await.expect("the object exists");
    world.config_maps().delete("first", &DeleteParams::default()).await.expect("the object exists");
    (copy.metadata.uid, copy.metadata.resource_version, copy.metadata.managed_fields) = (None, None, None);
    copy.data = Some([("from".to_owned(), "another-user".to_owned())].into());
    world.config_maps().create(&PostParams::default(), &copy).await.expect("a copy");
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("second", "bundle"))).await;
    world.deploy(&name, PLAIN, &image).await;
    world.start_controller();
    world.ready(&name).await;
    let free = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
    let spared =
        world.config_maps().patch("first", &PatchParams::default(), &free).await.expect("the object was not pruned");
    assert_eq!(spared.metadata.deletion_timestamp, None);
    world.delete(&name).await;
    let spared = world.config_maps().get("first").await.expect("the object still exists");
    assert_eq!(spared.data.and_then(|data| data.get("from").cloned()).as_deref(), Some("another-user"));
    world.finish().await;
}

/// A BundleDeployment that never installed anything owns no objects, even if objects refer to it.
#[tokio::test]
async fn an_owner_reference_before_the_installation_proves_nothing() {
    let mut world = World::new().await;
    let name = world.name();
    let bundle = Bundle::empty().with("manifests/a.yaml", &config_map("wanted", "bundle"));
    let image = world.push(&bundle).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["suspend"] = json!(true);
    world.apply(&name, spec.clone()).await;
    let finalizer = Patch::Merge(json!({"metadata": {"finalizers": ["gitops.example.com/keep"]}}));
    world.deployments().patch(&name, &PatchParams::default(), &finalizer).await.expect("the object exists");
    world.condition(&name, "Progressing", "False", "Suspended").await;
    for victim in ["wanted", "victim"] {
        let object = json!({"metadata": {"name": victim}, "data": {"from": "another-user"}});
        let object: ConfigMap = serde_json::from_value(object).expect("a ConfigMap");
        world.config_maps().create(&PostParams::default(), &object).await.expect("a ConfigMap");
        let marks = Patch::Merge(marks(&world, &name).await);
        world.config_maps().patch(victim, &PatchParams::default(), &marks).await.expect("the object exists");
    }
    // The next controller sees only the status, which claims that the BundleDeployment was reconciled before.
    world.stop_controller().await;
    world.start_controller();
    spec["suspend"] = json!(false);
    world.apply(&name, spec).await;
    world.condition(&name, "Ready", "False", "ObjectCollision").await;
    for victim in ["wanted", "victim"] {
        let spared = world.config_maps().get(victim).await.expect("the object stays");
        assert_eq!(spared.data.and_then(|data| data.get("from").cloned()).as_deref(), Some("another-user"));
        let free = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
        world.config_maps().patch(victim, &PatchParams::default(), &free).await.expect("the object exists");
    }
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.deployments().patch(&name, &PatchParams::default(), &free).await.expect("the object exists");
    world.delete(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn orphaned_objects_stay_even_if_the_controller_missed_the_orphan_request() {
    let mut world = World::without_controller(chandler_tests::Cluster::acquire().await).await;
    if !world.collects_garbage() {
        eprintln!("skipped: no garbage collector runs on this API server, so nothing is orphaned");
        return world.finish().await;
    }
    // Only the controller's reads of BundleDeployments are blocked.
    let interruption = Interruption::of("/bundledeployments");
    world.start_controller_on(InProcess::ChangesRequests, interruption.client(world.config()));
    let name = world.name();
    let bundle =
        Bundle::empty().with("manifests/a.yaml", &config_map("kept", "bundle")).with("manifests/b.yaml", CLAIM);
    let image = world.push(&bundle).await;
    let before = world.deploy(&name, PLAIN, &image).await;
    wait::until(&claims(&world), "data", "created", |claim| claim.is_some()).await;
    wait::until(&world.config_maps(), "kept", "created", |map| map.is_some()).await;
    let (map, claim) = (
        world.config_maps().get("kept").await.expect("the object exists"),
        claims(&world).get("data").await.expect("the object exists"),
    );

    interruption.begin();
    world.deployments().delete(&name, &DeleteParams::orphan()).await.expect("the object exists");
    let orphaned = |references: &[_]| references.is_empty();
    wait::until(&world.config_maps(), "kept", "orphaned", |map| {
        map.is_some_and(|map| orphaned(map.owner_references()))
    })
    .await;
    wait::until(&claims(&world), "data", "orphaned", |claim| claim.is_some_and(|it| orphaned(it.owner_references())))
        .await;
    wait::until(&world.deployments(), &name, "left to the controller", |found| {
        found.is_some_and(|found| !found.finalizers().iter().any(|finalizer| finalizer == "orphan"))
    })
    .await;
    interruption.end();
    wait::until(&world.deployments(), &name, "gone", |found| found.is_none()).await;
    let still = world.config_maps().get("kept").await.expect("the object stays");
    assert_eq!((still.uid(), still.metadata.deletion_timestamp), (map.uid(), None));
    let still = claims(&world).get("data").await.expect("the object stays");
    assert_eq!((still.uid(), still.metadata.deletion_timestamp), (claim.uid(), None));

    // The next BundleDeployment with the same name adopts the objects of its bundle, under Prevent, and prunes none of the others.
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("kept", "again"))).await;
    let after = world.deploy(&name, PLAIN, &image).await;
    assert_ne!(after.uid(), before.uid());
    world.ready(&name).await;
    let back = world.config_maps().get("kept").await.expect("the object stays");
    assert_eq!(back.uid(), map.uid());
    assert_eq!(back.data.and_then(|data| data.get("from").cloned()).as_deref(), Some("again"));
    assert_eq!(claims(&world).get("data").await.expect("the object stays").uid(), claim.uid());
    world.delete(&name).await;
    assert!(world.config_maps().get_opt("kept").await.expect("a response").is_none());
    let still = claims(&world).get("data").await.expect("the object has no owner");
    assert_eq!(still.metadata.deletion_timestamp, None);
    claims(&world).delete("data", &DeleteParams::default()).await.expect("the object exists");
    world.finish().await;
}

#[tokio::test]
async fn a_forged_status_installs_nothing() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("shown", "bundle"))).await;
    world.deploy(&name, PLAIN, &image).await;
    let ready = world.ready(&name).await;
    let history = ready.status.expect("a status").history;
    let evil = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("evil", "status"))).await;

    // The forged status adds a revision that never ran, and the spec rolls back to it.
    let mut forged = serde_json::to_value(&history).expect("JSON");
    let mut revision = forged[0].clone();
    revision["number"] = json!(7);
    revision["source"]["image"]["ref"] = json!(evil);
    revision["contentDigest"] = json!(format!("sha256:{}", "0".repeat(64)));
    forged.as_array_mut().expect("a list").push(revision);
    let status = Patch::Merge(json!({"status": {"history": forged, "revision": 7}}));
    world.deployments().patch_status(&name, &PatchParams::default(), &status).await.expect("the change is accepted");
    let pin = Patch::Merge(json!({"spec": {"rollout": {"toRevision": 7}}}));
    world.deployments().patch(&name, &PatchParams::default(), &pin).await.expect("the change is accepted");
    let refused = world.condition(&name, "Ready", "False", "RevisionUnavailable").await;
    let numbers: Vec<i64> = refused.status.expect("a status").history.iter().map(|revision| revision.number).collect();
    assert_eq!(numbers, [1], "the status is repaired");
    assert!(world.config_maps().get_opt("evil").await.expect("a response").is_none());

    // An emptied history starts no new revision.
    let unpin = Patch::Merge(json!({"spec": {"rollout": {"toRevision": null}}}));
    world.deployments().patch(&name, &PatchParams::default(), &unpin).await.expect("the change is accepted");
    world.ready(&name).await;
    let emptied = Patch::Merge(json!({"status": {"history": null, "revision": null, "release": null}}));
    world.deployments().patch_status(&name, &PatchParams::default(), &emptied).await.expect("the change is accepted");
    let restored = wait::until(&world.deployments(), &name, "restored", |deployment| {
        deployment.and_then(|deployment| deployment.status.as_ref()).is_some_and(|status| status.history.len() == 1)
    })
    .await;
    let restored = restored.and_then(|found| found.status).expect("a status").history;
    assert_eq!(restored[0].start_time, history[0].start_time, "the original revision");
    world.finish().await;
}

#[tokio::test]
async fn a_deletion_without_an_installation_needs_no_account() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("never", "bundle"))).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["serviceAccount"] = json!({"name": "nobody"});
    world.apply(&name, spec.clone()).await;
    world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    world.delete(&name).await;

    // If something was installed, the status reports what blocks the deletion, and how to continue.
    spec.as_object_mut().expect("a map").remove("serviceAccount");
    world.apply(&name, spec.clone()).await;
    world.ready(&name).await;
    spec["serviceAccount"] = json!({"name": "nobody"});
    world.apply(&name, spec).await;
    world.condition(&name, "Ready", "False", "ServiceAccountNotFound").await;
    world.deployments().delete(&name, &DeleteParams::default()).await.expect("the object exists");
    let way_out = format!("kubectl delete bundledeployment {name} --cascade=orphan");
    wait::until(&world.deployments(), &name, "blocked", |deployment| {
        let ready = deployment.and_then(|deployment| chandler_tests::world::condition(deployment, "Ready"));
        ready.is_some_and(|ready| ready.reason == "ServiceAccountNotFound" && ready.message.contains(&way_out))
    })
    .await;
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
    let account = json!({"metadata": {"name": "nobody"}});
    let account: ServiceAccount = serde_json::from_value(account).expect("an account");
    accounts.create(&PostParams::default(), &account).await.expect("an account");
    wait::until(&world.deployments(), &name, "blocked by missing permissions", |deployment| {
        let ready = deployment.and_then(|deployment| chandler_tests::world::condition(deployment, "Ready"));
        ready.is_some_and(|ready| ready.reason == "PermissionsMissing" && ready.message.contains(&way_out))
    })
    .await;
    let free = Patch::Merge(json!({"spec": {"serviceAccount": null}}));
    world.deployments().patch(&name, &PatchParams::default(), &free).await.expect("the change is accepted");
    wait::until(&world.deployments(), &name, "gone", |found| found.is_none()).await;
    world.finish().await;
}

#[tokio::test]
async fn a_lost_record_is_rebuilt_and_the_deletion_leaves_nothing() {
    let mut world = World::new().await;
    let name = world.name();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("steady", "bundle"))).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let before = world.config_maps().get("steady").await.expect("the object exists");
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let kept = secrets.list(&ListParams::default()).await.expect("a list").items;
    let types: Vec<&str> = kept.iter().filter_map(|secret| secret.type_.as_deref()).collect();
    assert!(types.contains(&"chandler.dev/record") && types.contains(&"chandler.dev/release"), "{types:?}");

    world.stop_controller().await;
    for secret in kept {
        secrets.delete(&secret.name_any(), &DeleteParams::default()).await.expect("the object exists");
    }
    world.start_controller();
    let image = world.push(&Bundle::empty().with("manifests/a.yaml", &config_map("steady", "next"))).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let after = world.config_maps().get("steady").await.expect("the object exists");
    assert_eq!(after.uid(), before.uid(), "the owner reference identifies the object");
    assert_eq!(after.data.and_then(|data| data.get("from").cloned()).as_deref(), Some("next"));
    world.delete(&name).await;
    assert!(world.config_maps().get_opt("steady").await.expect("a response").is_none());
    let left = secrets.list(&ListParams::default()).await.expect("a list").items;
    assert_eq!(left.iter().map(kube::ResourceExt::name_any).collect::<Vec<_>>(), [""; 0]);
    world.finish().await;
}
