//! Only objects in the record are changed, pruned or deleted, regardless of their labels and references.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use chandler_rollout::{
    CollisionProtection, Holdings, InMemory, Intent, Ledger, LedgerError, Owner, RolloutError, RolloutRequest, Seal,
    Settlement, Teardown,
};
use futures::{FutureExt as _, future::BoxFuture};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::support::{Stage, config_map, config_map_key, key, make_owner, ox, oxen, release};

/// All marks of an object of the owner, except its seal.
fn marks(owner: &Owner) -> Value {
    json!({
        "labels": {
            "applyset.kubernetes.io/part-of": owner.set_id(),
            "core.rukpak.io/owner-kind": "BundleDeployment",
            "core.rukpak.io/owner-name": owner.name,
        },
        "annotations": {"chandler.dev/applied": "x", "chandler.dev/seal": "0".repeat(64)},
        "ownerReferences": [{
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "name": owner.name, "uid": owner.uid,
            "controller": true, "blockOwnerDeletion": true,
        }],
    })
}

#[tokio::test]
async fn an_object_with_forged_marks_is_not_changed() {
    let stage = Stage::set().await;
    stage.complete(&release(&[(0, config_map("ours", json!({})))])).await;
    for name in ["labelled", "wanted"] {
        stage.make(&config_map_key(name), config_map(name, json!({"of": "another user"}))).await;
        let mut marks = marks(&stage.owner);
        if name == "labelled" {
            marks.as_object_mut().unwrap().remove("ownerReferences");
        }
        stage.meddle(&config_map_key(name), json!({"metadata": marks})).await;
    }
    let changes = stage.complete(&release(&[(0, config_map("other", json!({})))])).await;
    assert_eq!(changes.pruned, [config_map_key("ours")]);

    let wanting = release(&[(0, config_map("wanted", json!({"of": "us"})))]);
    let refused = stage.advance(&wanting).await.unwrap_err().to_string();
    assert!(
        refused.contains("ConfigMap install/wanted already exists and carries the labels of BundleDeployment demo")
    );
    let deleted = stage.tear_down().await;
    assert_eq!(deleted, [config_map_key("other")]);
    for name in ["labelled", "wanted"] {
        assert_eq!(stage.live(&config_map_key(name)).await.unwrap()["data"], json!({"of": "another user"}));
    }
}

/// A ledger that fails when it records what was done.
#[derive(Debug)]
struct Forgetful {
    inner: InMemory,
    forgets: AtomicBool,
}

impl Ledger for Forgetful {
    fn holdings(&self) -> Arc<Holdings> {
        self.inner.holdings()
    }

    fn begin(&self, intent: Intent) -> BoxFuture<'_, Result<(), LedgerError>> {
        self.inner.begin(intent)
    }

    fn settle(&self, settlement: Settlement) -> BoxFuture<'_, Result<(), LedgerError>> {
        if self.forgets.load(Ordering::SeqCst) {
            return async { Err(LedgerError { message: "gone".into(), transient: true }) }.boxed();
        }
        self.inner.settle(settlement)
    }
}

#[tokio::test]
async fn objects_created_before_a_crash_are_recognized_by_their_seal() {
    let stage = Stage::set().await;
    let owner = make_owner(&stage.client, "mortal").await;
    let ledger = Arc::new(Forgetful { inner: InMemory::new(&owner.uid), forgets: AtomicBool::new(true) });
    let owner = owner.recorded_in(ledger.clone());
    let first = release(&[(0, config_map("made", json!({"a": "1"}))), (0, config_map("stale", json!({})))]);
    let died = stage.rollout.advance(&RolloutRequest::new(&owner, &first)).await.unwrap_err();
    assert!(matches!(died, RolloutError::Ledger(_)), "{died}");
    let made = stage.live(&config_map_key("made")).await.unwrap();

    // The next call recognizes its objects: it keeps one and prunes the other, which is no longer wanted.
    ledger.forgets.store(false, Ordering::SeqCst);
    let second = release(&[(0, config_map("made", json!({"a": "2"})))]);
    let progress = stage.rollout.advance(&RolloutRequest::new(&owner, &second)).await.unwrap();
    assert_eq!(progress.changes().updated, [config_map_key("made")]);
    assert_eq!(progress.changes().pruned, [config_map_key("stale")]);
    assert_eq!(stage.live(&config_map_key("made")).await.unwrap()["metadata"]["uid"], made["metadata"]["uid"]);
}

#[tokio::test]
async fn an_object_that_is_created_again_before_a_crash_is_recognized_although_no_intent_was_recorded() {
    let stage = Stage::set().await;
    let owner = make_owner(&stage.client, "mortal").await;
    let ledger = Arc::new(Forgetful { inner: InMemory::new(&owner.uid), forgets: AtomicBool::new(false) });
    let owner = owner.recorded_in(ledger.clone());
    let wanted = release(&[(0, config_map("made", json!({"a": "1"})))]);
    let advance = async || stage.rollout.advance(&RolloutRequest::new(&owner, &wanted)).await;
    advance().await.unwrap();
    let recorded = ledger.holdings();
    stage.remove(&config_map_key("made")).await;
    ledger.forgets.store(true, Ordering::SeqCst);
    let died = advance().await.unwrap_err();
    assert!(matches!(died, RolloutError::Ledger(_)), "{died}");
    assert_eq!(ledger.holdings(), recorded, "the record was not written");
    let made = stage.live(&config_map_key("made")).await.unwrap();

    // A copy of the new object's marks comes too late once the record has the object.
    ledger.forgets.store(false, Ordering::SeqCst);
    let progress = advance().await.unwrap();
    assert!(progress.is_complete() && progress.changes().is_empty(), "{}", progress.changes());
    assert_ne!(ledger.holdings(), recorded);
    stage.remove(&config_map_key("made")).await;
    let mut copy = config_map("made", json!({"of": "another user"}));
    copy["metadata"]["annotations"] = made["metadata"]["annotations"].clone();
    stage.make(&config_map_key("made"), copy).await;
    let refused = advance().await.unwrap_err().to_string();
    assert!(refused.contains("ConfigMap install/made already exists"), "{refused}");
}

/// The record of an owner with revisions.
#[derive(Debug)]
struct Revised {
    inner: InMemory,
    newest: AtomicU64,
}

impl Ledger for Revised {
    fn holdings(&self) -> Arc<Holdings> {
        self.inner.holdings()
    }

    fn begin(&self, intent: Intent) -> BoxFuture<'_, Result<(), LedgerError>> {
        self.inner.begin(intent)
    }

    fn recorded_revision(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    fn settle(&self, settlement: Settlement) -> BoxFuture<'_, Result<(), LedgerError>> {
        self.inner.settle(settlement)
    }
}

#[tokio::test]
async fn objects_keep_the_mark_of_the_revision_that_wrote_them_and_refute_an_older_record() {
    let stage = Stage::set().await;
    let owner = make_owner(&stage.client, "revised").await;
    let ledger = Arc::new(Revised { inner: InMemory::new(&owner.uid), newest: AtomicU64::new(0) });
    let owner = owner.recorded_in(ledger.clone());
    let config_maps = |changing: &str| {
        let changing = config_map("changing", json!({"a": changing}));
        release(&[(0, config_map("steady", json!({}))), (0, changing)])
    };
    let live = async |name: &str| stage.live(&config_map_key(name)).await.unwrap();
    let revision = async |name: &str| {
        let mark = live(name).await["metadata"]["annotations"]["chandler.dev/seal"].as_str().unwrap().to_owned();
        mark.split_once('.').map(|(revision, _)| revision.to_owned())
    };

    // As an earlier version of Chandler wrote them. They are not written again only to name a revision.
    stage.rollout.advance(&RolloutRequest::new(&owner, &config_maps("1"))).await.unwrap();
    let before = [live("steady").await, live("changing").await];
    ledger.newest.store(3, Ordering::SeqCst);
    let progress = stage.rollout.advance(&RolloutRequest::new(&owner, &config_maps("1"))).await.unwrap();
    assert_eq!(progress.changes().unchanged.len(), 2);
    assert_eq!([live("steady").await, live("changing").await], before);

    // A revision marks what it writes.
    stage.rollout.advance(&RolloutRequest::new(&owner, &config_maps("2"))).await.unwrap();
    assert_eq!((revision("steady").await, revision("changing").await), (None, Some("3".to_owned())));
    let newest = live("changing").await;

    // The record of an earlier revision was restored.
    ledger.newest.store(2, Ordering::SeqCst);
    for refused in [
        stage.rollout.advance(&RolloutRequest::new(&owner, &config_maps("1"))).await.map(drop),
        stage.rollout.observe(&RolloutRequest::new(&owner, &config_maps("2"))).await.map(drop),
        stage.rollout.advance(&RolloutRequest::new(&owner, &release(&[]))).await.map(drop),
        stage.rollout.teardown(&owner).await.map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, RolloutError::OlderRecord(_)), "{error}");
        let message = "revision 3 wrote ConfigMap install/changing, but the record ends with revision 2";
        assert_eq!(error.to_string(), message);
    }
    assert_eq!([live("steady").await, live("changing").await], [before[0].clone(), newest]);
    stage.rollout.remove_owner_references(&owner).await.unwrap();

    ledger.newest.store(3, Ordering::SeqCst);
    stage.rollout.advance(&RolloutRequest::new(&owner, &config_maps("2"))).await.unwrap();
}

#[tokio::test]
async fn an_object_that_was_orphaned_is_not_taken_back() {
    let stage = Stage::set().await;
    let settings = release(&[(0, config_map("settings", json!({"a": "1"})))]);
    stage.complete(&settings).await;
    // `kubectl delete --cascade=orphan`, with a finalizer that keeps the BundleDeployment; the controller has not observed it.
    let api: Api<chandler_api::BundleDeployment> = Api::all(stage.client.clone());
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["chandler.dev/teardown"]}}));
    api.patch("demo", &PatchParams::default(), &hold).await.unwrap();
    api.delete("demo", &DeleteParams::orphan()).await.unwrap();
    let orphaned = |map: Option<&Value>| map.is_some_and(|map| map["metadata"].get("ownerReferences").is_none());
    super::support::within(async {
        while !orphaned(stage.live(&config_map_key("settings")).await.as_ref()) {
            tokio::task::yield_now().await;
        }
    })
    .await;

    let refused = stage.advance(&settings).await.unwrap_err();
    assert!(matches!(refused, RolloutError::OwnerDeleting(_)), "{refused}");
    assert!(matches!(
        stage.rollout.observe(&RolloutRequest::new(&stage.owner, &settings)).await,
        Err(RolloutError::OwnerDeleting(_))
    ));
    // Objects without the reference are orphaned, although they are in the record.
    let Teardown::Complete { deleted, orphaned } = stage.rollout.teardown(&stage.owner).await.unwrap() else {
        panic!("nothing is waited for");
    };
    assert_eq!((deleted.len(), orphaned), (0, vec![config_map_key("settings")]));
    assert!(stage.live(&config_map_key("settings")).await.is_some());
}

#[tokio::test]
async fn a_teardown_is_held_while_custom_resources_of_others_exist() {
    let stage = Stage::set().await;
    let settings = config_map("settings", json!({}));
    stage.complete(&release(&[(0, oxen(json!({}))), (0, settings)])).await;
    let theirs = key("example.com/v1", "Ox", Some("install"), "theirs");
    stage.make(&theirs, ox("theirs", json!({}))).await;
    let Teardown::Held { in_use } = stage.rollout.teardown(&stage.owner).await.unwrap() else {
        panic!("the custom resource would be deleted");
    };
    assert_eq!(
        in_use.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["oxen.example.com: 1 in 1 namespace (install/theirs)"]
    );
    assert!(stage.live(&config_map_key("settings")).await.is_some(), "nothing is deleted");
    stage.remove(&theirs).await;
    let deleted = stage.tear_down().await;
    assert_eq!(deleted.len(), 2, "{deleted:?}");
}

#[tokio::test]
async fn the_next_owner_of_a_name_adopts_orphans_and_prunes_none() {
    let stage = Stage::set().await;
    let earlier = release(&[(0, config_map("wanted", json!({"a": "1"}))), (0, config_map("forgotten", json!({})))]);
    stage.complete(&earlier).await;
    let left = stage.owner.ledger.as_ref().unwrap().holdings();
    for name in ["wanted", "forgotten"] {
        stage.meddle(&config_map_key(name), json!({"metadata": {"ownerReferences": null}})).await;
    }
    let api: Api<chandler_api::BundleDeployment> = Api::all(stage.client.clone());
    api.delete("demo", &DeleteParams::default()).await.unwrap();
    let owner = make_owner(&stage.client, "demo").await;
    let ledger = InMemory::with(Holdings::clone(&left).succeeded_by(&owner.uid, Seal::new([2; 32])));
    let owner = owner.recorded_in(Arc::new(ledger)).with_collisions(CollisionProtection::Prevent);
    let before = stage.live(&config_map_key("wanted")).await.unwrap();

    let again = release(&[(0, config_map("wanted", json!({"a": "2"})))]);
    let progress = stage.rollout.advance(&RolloutRequest::new(&owner, &again)).await.unwrap();
    assert_eq!(
        (progress.changes().adopted.as_slice(), progress.changes().pruned.len()),
        (&[config_map_key("wanted")][..], 0)
    );
    let after = stage.live(&config_map_key("wanted")).await.unwrap();
    assert_eq!((&after["metadata"]["uid"], &after["data"]), (&before["metadata"]["uid"], &json!({"a": "2"})));
    assert!(stage.live(&config_map_key("forgotten")).await.is_some(), "it has the label of the set, but no owner");
    assert_eq!(
        stage.rollout.teardown(&owner).await.unwrap(),
        Teardown::Complete { deleted: vec![config_map_key("wanted")], orphaned: vec![] }
    );
}

#[tokio::test]
async fn without_a_record_nothing_is_written() {
    let stage = Stage::set().await;
    let unrecorded = Owner { ledger: None, ..stage.owner.clone() };
    let one = release(&[(0, config_map("one", json!({})))]);
    assert!(matches!(
        stage.rollout.advance(&RolloutRequest::new(&unrecorded, &one)).await,
        Err(RolloutError::Unrecorded(_))
    ));
    assert!(matches!(stage.rollout.teardown(&unrecorded).await, Err(RolloutError::Unrecorded(_))));
    assert_eq!(stage.writes(), [""; 0]);
}
