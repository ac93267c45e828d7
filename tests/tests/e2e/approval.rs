//! A change that needs approval is reported in the status before anything is written to the cluster, and waits.

use chandler_api::Outcome;
use chandler_tests::{World, bundles, wait};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap, events::v1::Event};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{REGISTRY, permissions::request_reconcile};

async fn merge(world: &World, name: &str, patch: Value) {
    let patched = world.deployments().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
    patched.expect("the object is accepted");
}

#[tokio::test]
async fn a_change_waits_for_approval_while_the_old_release_is_kept() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["approval"] = json!("Manual");
    world.apply(&name, spec).await;
    let first = world.pending(&name).await;
    assert!(first.created > 5 && first.changed == 0 && first.removed == 0, "{first:?}");
    assert_eq!(first.refusals, [""; 0]);
    let operators: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    assert!(operators.get_opt("harbour-operator").await.expect("a response").is_none(), "nothing is written yet");

    let zeros = format!("sha256:{}", "0".repeat(64));
    world.approve(&name, &zeros).await;
    request_reconcile(&world, &name).await;
    assert_eq!(world.pending(&name).await.digest, first.digest, "another digest approves nothing");
    world.approve(&name, &first.digest).await;
    let deployment = world.ready(&name).await;
    assert_eq!(deployment.status.and_then(|status| status.pending_change), None);
    let before = operators.get("harbour-operator").await.expect("the operator");

    let image = world.push(&bundles::sample("registry/harbour-operator.v0.2.0")).await;
    merge(&world, &name, json!({"spec": {"source": {"image": {"ref": image}}}})).await;
    let second = world.pending(&name).await;
    assert_ne!(second.digest, first.digest);
    assert!(second.created > 0 && second.changed > 0 && second.removed > 0, "{second:?}");
    let line = format!("change Deployment.apps {}/harbour-operator: ", world.namespace);
    let line = second.objects.iter().find(|object| object.starts_with(&line)).expect("the operator");
    assert!(line.contains("spec.template.spec.containers[name=manager].env[name=OPERATOR_VERSION].value"), "{line}");
    let removed = format!("remove ConfigMap {}/harbour-operator-tides", world.namespace);
    assert!(second.objects.contains(&removed), "{second:?}");

    // The current release is repaired in the meantime.
    let config_maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let edit = Patch::Merge(json!({"data": {"high": "never"}}));
    config_maps.patch("harbour-operator-tides", &PatchParams::default(), &edit).await.expect("the edit is accepted");
    wait::until(&config_maps, "harbour-operator-tides", "repaired", |map| {
        map.and_then(|map| map.data.as_ref()).is_some_and(|data| data.get("high").is_none_or(|high| high != "never"))
    })
    .await;
    let operator = operators.get("harbour-operator").await.expect("the operator");
    assert_eq!(operator.metadata.generation, before.metadata.generation);

    world.approve(&name, &world.pending(&name).await.digest).await;
    world.ready(&name).await;
    wait::until(&config_maps, "harbour-operator-tides", "pruned", |map| map.is_none()).await;
    world.finish().await;
}

#[tokio::test]
async fn an_approval_covers_one_change_of_one_bundle_deployment_and_is_recorded() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["approval"] = json!("Manual");
    world.apply(&name, spec).await;
    let pending = world.pending(&name).await;

    // One that was given for another object of the same name counts for nothing, and cannot be made into one that does.
    let mut elsewhere = world.approve(&name, &format!("sha256:{}", "0".repeat(64))).await;
    let change = Patch::Merge(json!({"spec": {"change": pending.digest}}));
    let changed = world.approvals().patch(&elsewhere.name_any(), &PatchParams::default(), &change).await;
    assert!(changed.is_err_and(|error| error.to_string().contains("an approval cannot be changed")));
    elsewhere.metadata = kube::core::ObjectMeta { name: Some(format!("{name}-elsewhere")), ..Default::default() };
    elsewhere.spec.bundle_deployment_uid = "00000000-0000-0000-0000-000000000000".to_owned();
    elsewhere.spec.change.clone_from(&pending.digest);
    world.approvals().create(&PostParams::default(), &elsewhere).await.expect("the approval is accepted");
    request_reconcile(&world, &name).await;
    assert_eq!(world.pending(&name).await.digest, pending.digest);
    world.approvals().delete(&elsewhere.name_any(), &DeleteParams::default()).await.expect("the object exists");

    let approval = world.approve(&name, &pending.digest).await;
    let deployment = world.ready(&name).await;
    let history = deployment.status.expect("a status").history;
    let recorded = history.last().and_then(|revision| revision.approval.clone()).expect("an approval");
    assert_eq!((recorded.change, recorded.approved_by), (pending.digest.clone(), world.user().await));
    let events: Api<Event> = Api::namespaced(world.client.clone(), "default");
    let note = format!("{} approved revision 1: {}", world.user().await, pending.digest);
    wait::eventually("an Event names the approver", || async {
        let found = events.list(&ListParams::default()).await.expect("a list");
        let approved = found.items.iter().filter(|event| event.reason.as_deref() == Some("Approved"));
        let ours = approved.filter(|event| event.regarding.as_ref().and_then(|it| it.name.as_ref()) == Some(&name));
        ours.filter_map(|event| event.note.as_ref()).any(|found| *found == note)
    })
    .await;

    // An approval is used once: the same change after a rollback needs another one. A rollback needs none.
    let image = world.push(&bundles::sample("registry/harbour-operator.v0.2.0")).await;
    merge(&world, &name, json!({"spec": {"source": {"image": {"ref": image}}}})).await;
    world.approve(&name, &world.pending(&name).await.digest).await;
    world.ready(&name).await;
    merge(&world, &name, json!({"spec": {"rollout": {"toRevision": 1}}})).await;
    let deployment = world.ready(&name).await;
    let third = deployment.status.expect("a status").history.pop().expect("a revision");
    assert_eq!((third.number, third.rollback_to, third.approval), (3, Some(1), None));
    merge(&world, &name, json!({"spec": {"rollout": {"toRevision": null}}})).await;
    let again = world.pending(&name).await;
    let deployment = world.deployments().get(&name).await.expect("the BundleDeployment");
    let last = deployment.status.expect("a status").history.pop().expect("a revision");
    assert_eq!((last.number, last.outcome), (3, Outcome::Succeeded), "no revision was started");
    world.approve(&name, &again.digest).await;
    world.ready(&name).await;

    // The garbage collector, if one runs, deletes an approval with its BundleDeployment.
    let owners = approval.owner_references();
    assert_eq!(owners.iter().map(|owner| owner.name.as_str()).collect::<Vec<_>>(), [name.as_str()]);
    world.finish().await;
}
