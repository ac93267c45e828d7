//! Collisions with objects of other owners.

use chandler_rollout::{ChangeKind, CollisionProtection, ExistingOwner, ObjectId, Owner, RolloutError, RolloutRequest};
use serde_json::json;

use super::support::{Stage, config_map, config_map_key, make_owner, release};

fn protected(stage: &Stage, collisions: CollisionProtection) -> Owner {
    stage.owner.clone().with_collisions(collisions)
}

#[tokio::test]
async fn adoption_is_previewed_checked_and_limited_to_the_uid() {
    let stage = Stage::set().await;
    stage
        .make(&config_map_key("tadopters"), config_map("tadopters", json!({"a": "tadopters", "b": "tadopters"})))
        .await;
    let before = stage.live(&config_map_key("tadopters")).await.unwrap();
    let release = release(&[(0, config_map("tadopters", json!({"a": "ours"}))), (0, config_map("new", json!({})))]);
    let owner = protected(&stage, CollisionProtection::IfNoController);

    let preview = stage.rollout.preview(&RolloutRequest::new(&owner, &release)).await.unwrap();
    let adopted = preview.changes.iter().find(|change| change.object == config_map_key("tadopters")).unwrap();
    assert_eq!((adopted.kind, adopted.note.as_deref()), (ChangeKind::Adopt, Some("was created by kubectl")));
    assert!(adopted.fields.iter().any(|field| field.path == "data.a"), "{:?}", adopted.fields);
    assert_eq!(stage.writes(), [""; 0]);

    let progress = stage.rollout.advance(&RolloutRequest::new(&owner, &release)).await.unwrap();
    assert_eq!(progress.changes().adopted, [config_map_key("tadopters")]);
    let after = stage.live(&config_map_key("tadopters")).await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["data"], json!({"a": "ours", "b": "tadopters"}), "fields that the release does not have stay");
    stage.writes();
    let observed = stage.rollout.observe(&RolloutRequest::new(&owner, &release)).await.unwrap();
    assert!(observed.matches_release(), "{observed:?}");
}

#[tokio::test]
async fn an_object_that_may_be_adopted_is_read_like_an_own_one() {
    let stage = Stage::set().await;
    let key = config_map_key("tadopters");
    stage.make(&key, config_map("tadopters", json!({"a": "tadopters"}))).await;
    let live = stage.live(&key).await.unwrap();
    let named = |uid: &str| stage.owner.clone().adopting([(ObjectId::of(&key), uid.to_owned())].into());
    for owner in [stage.owner.clone(), named("another")] {
        assert!(matches!(stage.rollout.own(&owner, &key).await, Err(RolloutError::Collisions(_))));
    }
    let uid = live["metadata"]["uid"].as_str().unwrap();
    for owner in [named(uid), protected(&stage, CollisionProtection::IfNoController)] {
        let read = stage.rollout.own(&owner, &key).await.unwrap().unwrap();
        assert_eq!(read["data"], live["data"]);
    }
}

#[tokio::test]
async fn an_adoption_that_the_api_server_refuses_changes_nothing() {
    let stage = Stage::set().await;
    let mut frozen = config_map("frozen", json!({"a": "tadopters"}));
    frozen["immutable"] = json!(true);
    stage.make(&config_map_key("frozen"), frozen).await;
    let before = stage.live(&config_map_key("frozen")).await;
    let release = release(&[(0, config_map("frozen", json!({"a": "ours"}))), (0, config_map("new", json!({})))]);
    let owner = protected(&stage, CollisionProtection::None);
    let refused = stage.rollout.advance(&RolloutRequest::new(&owner, &release)).await.unwrap_err();
    assert!(matches!(refused, RolloutError::Objects(_)), "{refused}");
    assert!(refused.to_string().starts_with("cannot adopt ConfigMap install/frozen: "), "{refused}");
    assert_eq!(stage.live(&config_map_key("frozen")).await, before);
    assert_eq!(stage.writes(), [""; 0]);
}

#[tokio::test]
async fn an_object_moves_between_owners_without_being_deleted() {
    let stage = Stage::set().await;
    let other = make_owner(&stage.client, "other").await;
    let shared = release(&[(0, config_map("shared", json!({"of": "other"})))]);
    stage.rollout.advance(&RolloutRequest::new(&other, &shared)).await.unwrap();
    let ours = release(&[(0, config_map("shared", json!({"of": "demo"})))]);
    let found = stage.rollout.adoptees(&stage.owner, &ours).await.unwrap();
    let existing_owner = ExistingOwner::Controller { kind: "BundleDeployment".into(), name: "other".into() };
    assert_eq!(
        found.iter().map(|found| (&found.object, &found.existing_owner)).collect::<Vec<_>>(),
        [(&config_map_key("shared"), &existing_owner)]
    );
    let named = |uid: &str| [(ObjectId::of(&found[0].object), uid.to_owned())].into();
    // The approval is for one UID and not for another object of this name.
    let wrong = stage.owner.clone().adopting(named("another"));
    assert!(matches!(
        stage.rollout.advance(&RolloutRequest::new(&wrong, &ours)).await,
        Err(RolloutError::Collisions(_))
    ));
    let adopter = stage.owner.clone().adopting(named(&found[0].uid));
    let progress = stage.rollout.advance(&RolloutRequest::new(&adopter, &ours)).await.unwrap();
    assert_eq!(progress.changes().adopted, [config_map_key("shared")]);

    // The other owner lost it, and neither takes it back nor deletes it.
    let refused = stage.rollout.advance(&RolloutRequest::new(&other, &shared)).await.unwrap_err();
    assert!(refused.to_string().contains("is controlled by BundleDeployment demo\n"), "{refused}");
    let nothing = release(&[(0, config_map("rest", json!({})))]);
    assert_eq!(stage.rollout.advance(&RolloutRequest::new(&other, &nothing)).await.unwrap().changes().pruned, []);
    // Once it is in the record, it need not be listed any more.
    assert_eq!(stage.complete(&ours).await.unchanged, [config_map_key("shared")]);
    let live = stage.live(&config_map_key("shared")).await.unwrap();
    assert_eq!(live["data"], json!({"of": "demo"}));
    assert_eq!(live["metadata"]["ownerReferences"].as_array().map(Vec::len), Some(1));
    stage.rollout.teardown(&other).await.unwrap();
    assert!(stage.live(&config_map_key("shared")).await.is_some());
}

#[tokio::test]
async fn without_protection_a_release_takes_from_another_owner() {
    let stage = Stage::set().await;
    let other = make_owner(&stage.client, "other").await;
    let shared = release(&[(0, config_map("shared", json!({"of": "other", "more": "x"})))]);
    stage.rollout.advance(&RolloutRequest::new(&other, &shared)).await.unwrap();
    let ours = release(&[(0, config_map("shared", json!({"of": "demo"})))]);
    let half = protected(&stage, CollisionProtection::IfNoController);
    assert!(matches!(
        stage.rollout.advance(&RolloutRequest::new(&half, &ours)).await,
        Err(RolloutError::Collisions(_))
    ));
    let none = protected(&stage, CollisionProtection::None);
    stage.rollout.advance(&RolloutRequest::new(&none, &ours)).await.unwrap();
    let live = stage.live(&config_map_key("shared")).await.unwrap();
    assert_eq!(live["data"], json!({"of": "demo"}), "what the other release had is gone with it");
    let references = live["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(references.iter().map(|reference| &reference["name"]).collect::<Vec<_>>(), [&json!("demo")]);
}
