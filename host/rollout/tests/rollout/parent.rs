//! The parent comes from the watch of the caller, which may be late.

use chandler_api::BundleDeployment;
use chandler_rollout::{Parent, RolloutError};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::json;

use super::support::{Stage, config_map, config_map_key, make_owner, release};

/// A stage whose owner is as the watch delivered it now.
async fn watched() -> Stage {
    let mut stage = Stage::set().await;
    stage.owner = stage.owner.clone().with_parent(Parent::of(&stage.parent().await));
    stage
}

fn deployments(stage: &Stage) -> Api<BundleDeployment> {
    Api::all(stage.client.clone())
}

#[tokio::test]
async fn a_watched_parent_is_not_read_and_an_own_write_of_it_is_seen() {
    let stage = Box::pin(watched()).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}});
    let both = release(&[(0, config_map("a", json!({}))), (0, secret)]);
    let one = release(&[(0, config_map("a", json!({"x": "1"})))]);
    for (release, kinds) in [(&both, "ConfigMap,Secret"), (&one, "ConfigMap"), (&both, "ConfigMap,Secret")] {
        stage.complete(release).await;
        // The watched parent stays the one without any annotation.
        let annotations = stage.parent().await.metadata.annotations.unwrap();
        assert_eq!(annotations["applyset.kubernetes.io/contains-group-kinds"], kinds);
    }
    let reads = stage.reads();
    assert!(!reads.iter().any(|read| read.contains("bundledeployments")), "{reads:?}");
}

#[tokio::test]
async fn an_owner_that_is_gone_or_was_created_again_gets_no_objects() {
    for created_again in [false, true] {
        let stage = Box::pin(watched()).await;
        deployments(&stage).delete("demo", &DeleteParams::default()).await.unwrap();
        if created_again {
            make_owner(&stage.client, "demo").await;
        }
        assert!(stage.advance(&release(&[(0, config_map("a", json!({})))])).await.is_err());
        assert_eq!(stage.live(&config_map_key("a")).await, None);
    }
}

#[tokio::test]
async fn a_reference_that_the_garbage_collector_removed_and_an_object_that_it_deleted_are_not_restored() {
    for deleted in [false, true] {
        let stage = Box::pin(watched()).await;
        let objects = release(&[(0, config_map("a", json!({})))]);
        stage.complete(&objects).await;
        let held = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/held"]}}));
        deployments(&stage).patch("demo", &PatchParams::default(), &held).await.unwrap();
        deployments(&stage).delete("demo", &DeleteParams::default()).await.unwrap();
        if deleted {
            stage.remove(&config_map_key("a")).await;
        } else {
            stage.meddle(&config_map_key("a"), json!({"metadata": {"ownerReferences": null}})).await;
        }
        stage.writes();
        assert!(matches!(stage.advance(&objects).await, Err(RolloutError::OwnerDeleting(_))), "{deleted}");
        assert_eq!(stage.writes(), [""; 0]);
    }
}
