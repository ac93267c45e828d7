use chandler_devcluster::{DevCluster, Options};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::ListParams};

use super::*;
use crate::{Records, StorageLimit, Subject};
use chandler_core::ObjectKey;
use chandler_rollout::{ObjectId, OlderRecord};

const SUBJECT: Subject<'_> =
    Subject { name: "a", uid: "u", account: Some("n/deployer"), is_known: false, installs: true, is_held: true };

fn id(name: &str) -> ObjectId {
    ObjectId { group: String::new(), kind: "ConfigMap".into(), namespace: Some("n".into()), name: name.into() }
}

fn creating(name: &str) -> Intent {
    Intent { created: [id(name)].into(), ..Intent::default() }
}

fn created(name: &str) -> Settlement {
    Settlement { held: [(id(name), format!("uid-{name}"))].into(), complete: true, ..Settlement::default() }
}

fn pending(release: &Arc<Release>) -> PendingRevision {
    let revision = Revision { number: 1, release_digest: release.digest().to_string(), ..Revision::default() };
    PendingRevision { history: vec![revision], release: Arc::clone(release), announce: async {}.boxed() }
}

/// The resource versions of all Secrets, by name.
async fn secrets(cluster: &DevCluster) -> Vec<(String, String)> {
    let api: Api<Secret> = Api::namespaced(cluster.client(), "default");
    let all = api.list(&ListParams::default()).await.unwrap().items.into_iter();
    let version = |secret: Secret| (secret.metadata.name.unwrap(), secret.metadata.resource_version.unwrap());
    all.map(version).collect()
}

async fn record(cluster: &DevCluster) -> Arc<Record> {
    Records::new(&cluster.client(), "default").open(SUBJECT).await.unwrap()
}

#[tokio::test]
async fn the_first_intent_creates_the_record_and_one_write_at_the_end_has_the_settlement_and_the_history() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let opened = record(&cluster).await;
    assert_eq!(secrets(&cluster).await, [], "nothing is about to be written to the cluster");

    let release = Arc::new(Release::new(Vec::new(), Vec::new(), Vec::new()));
    opened.open_revision(pending(&release)).unwrap();
    opened.begin(creating("x")).await.unwrap();
    let begun = secrets(&cluster).await;
    assert_eq!(begun.len(), 2, "the record and the release: {begun:?}");
    assert_eq!(*record(&cluster).await.state(), *opened.state(), "the intent and the revision are stored");

    opened.settle(created("x")).await.unwrap();
    opened.begin_revision().await.unwrap();
    assert_eq!(secrets(&cluster).await, begun, "the settlement follows with the history");
    let mut history = opened.state().history.clone();
    history[0].outcome = chandler_api::Outcome::Succeeded;
    opened.write_history(&history).await.unwrap();
    assert_eq!(*record(&cluster).await.state(), *opened.state());
    assert_eq!(opened.state().holdings.settled(&created("x")), opened.state().holdings);

    let settled = secrets(&cluster).await;
    opened.flush().await.unwrap();
    assert_eq!(secrets(&cluster).await, settled, "it is stored already");
}

#[tokio::test]
async fn after_a_crash_before_the_settlement_is_stored_the_intent_is() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let crashed = record(&cluster).await;
    crashed.begin(creating("x")).await.unwrap();
    let intended = crashed.state();
    crashed.settle(created("x")).await.unwrap();
    assert_ne!(crashed.state(), intended);
    assert_eq!(record(&cluster).await.state(), intended, "with the same seal, by which the object is recognized");
}

#[tokio::test]
async fn a_settlement_is_stored_by_the_next_write_or_by_a_flush_and_objects_that_are_gone_only_by_a_write() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let opened = record(&cluster).await;
    opened.begin(creating("x")).await.unwrap();
    opened.settle(created("x")).await.unwrap();
    opened.flush().await.unwrap();
    assert_eq!(record(&cluster).await.state(), opened.state());

    opened.settle(created("y")).await.unwrap();
    opened.begin(creating("z")).await.unwrap();
    assert_eq!(record(&cluster).await.state(), opened.state());

    let before = secrets(&cluster).await;
    opened.settle(Settlement { gone: [id("x")].into(), ..Settlement::default() }).await.unwrap();
    opened.flush().await.unwrap();
    assert_eq!(secrets(&cluster).await, before);
    opened.begin(creating("x")).await.unwrap();
    assert_eq!(record(&cluster).await.state(), opened.state());
}

#[tokio::test]
async fn what_was_settled_is_stored_before_an_object_is_created_again_which_needs_no_other_write() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let opened = record(&cluster).await;
    opened.begin(creating("x")).await.unwrap();
    let begun = secrets(&cluster).await;
    opened.settle(created("x")).await.unwrap();
    opened.begin(Intent::default()).await.unwrap();
    assert_eq!(secrets(&cluster).await, begun, "the end of the reconcile stores it");
    let again = || Intent { again: true, ..Intent::default() };
    opened.begin(again()).await.unwrap();
    assert_eq!(record(&cluster).await.state(), opened.state(), "a mark of the next object names the one in the record");
    let before = secrets(&cluster).await;
    opened.begin(again()).await.unwrap();
    assert_eq!(secrets(&cluster).await, before);
}

#[tokio::test]
async fn a_record_without_an_intent_is_stored_at_the_end_of_a_reconcile_that_may_install() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let records = Records::new(&cluster.client(), "default");
    let opened = records.open(Subject { installs: false, ..SUBJECT }).await.unwrap();
    opened.flush().await.unwrap();
    assert_eq!(secrets(&cluster).await, []);
    records.open(SUBJECT).await.unwrap();
    opened.flush().await.unwrap();
    let stored = secrets(&cluster).await;
    assert_eq!(stored.len(), 1);
    opened.flush().await.unwrap();
    assert_eq!(secrets(&cluster).await, stored);
    assert_eq!(record(&cluster).await.state(), opened.state());
}

#[tokio::test]
async fn an_orphaned_object_is_stored_at_once() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let opened = record(&cluster).await;
    opened.begin(creating("x")).await.unwrap();
    opened.settle(created("x")).await.unwrap();
    opened.settle(Settlement { orphaned: [id("x")].into(), ..Settlement::default() }).await.unwrap();
    assert!(opened.state().holdings.has_orphaned());
    assert_eq!(record(&cluster).await.state(), opened.state());
}

#[tokio::test]
async fn that_a_record_was_lost_is_stored_at_once_and_an_empty_record_is_never_stored() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let records = Records::new(&cluster.client(), "default");
    let empty = records.open(SUBJECT).await.unwrap();
    empty.leave_all().await.unwrap();
    records.close("a", &empty).await.unwrap();
    assert_eq!(secrets(&cluster).await, []);

    let lost = records.open(Subject { is_known: true, ..SUBJECT }).await.unwrap();
    assert!(lost.state().holdings.inherits());
    assert_eq!(record(&cluster).await.state(), lost.state());
}

#[tokio::test]
async fn an_intent_that_is_stored_is_not_stored_again() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let opened = record(&cluster).await;
    let both = Intent { created: [id("x"), id("y")].into(), ..Intent::default() };
    opened.begin(both).await.unwrap();
    let begun = secrets(&cluster).await;
    opened.settle(Settlement { complete: false, ..created("x") }).await.unwrap();
    opened.begin(creating("y")).await.unwrap();
    assert_eq!(secrets(&cluster).await, begun, "the second stage of a rollout");
    opened.begin(creating("z")).await.unwrap();
    assert_eq!(record(&cluster).await.state(), opened.state());
}

#[tokio::test]
async fn a_release_that_was_deleted_is_stored_again_even_if_a_crash_kept_the_record_from_telling() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let opened = record(&cluster).await;
    let release = Arc::new(Release::new(Vec::new(), Vec::new(), Vec::new()));
    opened.open_revision(pending(&release)).unwrap();
    opened.begin(creating("x")).await.unwrap();
    let other = Revision { number: 2, outcome: chandler_api::Outcome::Succeeded, ..Revision::default() };
    opened.write_history(&[other]).await.unwrap();
    assert_eq!(secrets(&cluster).await.len(), 1, "no revision needs the release");
    assert!(!opened.keeps(release.digest()));

    let after_crash = record(&cluster).await;
    assert!(after_crash.state().releases.contains_key(release.digest()), "the record does not report it yet");
    assert!(!after_crash.keeps(release.digest()));
    after_crash.open_revision(pending(&release)).unwrap();
    after_crash.begin(creating("y")).await.unwrap();
    assert!(after_crash.release(release.digest()).await.unwrap().is_some());
    assert!(after_crash.keeps(release.digest()));
}

#[tokio::test]
async fn a_bundle_deployment_without_our_finalizer_gets_a_record_only_by_an_intent() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let records = Records::new(&cluster.client(), "default");
    let opened = records.open(Subject { is_held: false, ..SUBJECT }).await.unwrap();
    opened.flush().await.unwrap();
    assert!(!opened.is_stored());
    opened.begin(creating("x")).await.unwrap();
    assert!(opened.is_stored());
}

/// A record whose newest revision has this number, as it is stored.
async fn with_revision(cluster: &DevCluster, number: i64) -> Arc<Record> {
    let opened = record(cluster).await;
    opened.write_history(&[Revision { number, ..Revision::default() }]).await.unwrap();
    opened
}

fn found() -> OlderRecord {
    let object = ObjectKey {
        group: String::new(),
        version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("n".into()),
        name: "x".into(),
    };
    OlderRecord { object: Box::new(object), written: 2, recorded: 1 }
}

#[tokio::test]
async fn objects_are_written_for_a_revision_that_is_recorded_first() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let opened = record(&cluster).await;
    assert_eq!((opened.recorded_revision(), opened.written_revision()), (0, 0));
    let release = Arc::new(Release::new(Vec::new(), Vec::new(), Vec::new()));
    opened.open_revision(pending(&release)).unwrap();
    assert_eq!(
        (opened.recorded_revision(), opened.written_revision()),
        (0, 1),
        "the objects are compared before the first write"
    );
    opened.begin(creating("x")).await.unwrap();
    assert_eq!((opened.recorded_revision(), opened.written_revision()), (1, 1));
    assert_eq!(record(&cluster).await.recorded_revision(), 1, "after a crash before the first object");
    opened.close_revision();
    assert_eq!((opened.recorded_revision(), opened.written_revision()), (1, 1));
}

#[tokio::test]
async fn a_record_that_is_older_than_the_cluster_records_nothing_but_that_all_objects_stay() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let opened = with_revision(&cluster, 1).await;
    opened.settle(created("x")).await.unwrap();
    opened.flush().await.unwrap();
    let before = secrets(&cluster).await;
    opened.refute(&found());
    let message = opened.check().unwrap_err().to_string();
    assert!(message.starts_with(
        "an older record was restored: revision 2 wrote ConfigMap n/x, but the record ends with revision 1. "
    ));
    assert!(message.contains(&format!("`kubectl delete secret -n default {}`", before[0].0)), "{message}");
    assert!(opened.begin(creating("y")).await.is_err());
    assert!(opened.write_history(&[]).await.is_err());
    assert_eq!(secrets(&cluster).await, before);
    opened.leave_all().await.unwrap();
    assert!(record(&cluster).await.state().holdings.has_orphaned());
}

#[tokio::test]
async fn a_secret_that_was_restored_from_a_backup_is_replaced_by_the_newer_record_in_memory() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let running = with_revision(&cluster, 2).await;
    running.settle(created("x")).await.unwrap();
    // Another client replaces the Secret by an older one.
    with_revision(&cluster, 1).await;
    running.begin(creating("y")).await.unwrap();
    assert_eq!(running.recorded_revision(), 2);
    assert_eq!(record(&cluster).await.state(), running.state());

    // A record that another controller continued is taken.
    with_revision(&cluster, 3).await;
    running.begin(creating("z")).await.unwrap();
    assert_eq!(running.recorded_revision(), 3);
}

/// A record with one object and one revision whose release is kept, as the BundleDeployment `u` leaves it without a deletion.
async fn left_behind(cluster: &DevCluster) -> Arc<Release> {
    let opened = record(cluster).await;
    let release = Arc::new(Release::new(Vec::new(), Vec::new(), Vec::new()));
    opened.open_revision(pending(&release)).unwrap();
    opened.begin(creating("x")).await.unwrap();
    opened.settle(created("x")).await.unwrap();
    opened.write_history(&opened.state().history.clone()).await.unwrap();
    release
}

#[tokio::test]
async fn a_restored_owner_continues_with_its_revisions_and_releases() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let release = left_behind(&cluster).await;
    let records = Records::new(&cluster.client(), "default");
    let restored = records.open(Subject { uid: "restored", ..SUBJECT }).await.unwrap();
    assert_eq!(restored.state().history.len(), 1);
    assert!(restored.keeps(release.digest()) && restored.release(release.digest()).await.unwrap().is_some());
    assert_eq!(restored.state().holdings.restored().map(|id| id.name.as_str()).collect::<Vec<_>>(), ["x"]);
    // A crash before the first write changes nothing, and one after it neither.
    let again = Records::new(&cluster.client(), "default");
    let again = again.open(Subject { uid: "restored", ..SUBJECT }).await.unwrap();
    assert_eq!(*again.state(), *restored.state());
    restored.settle(created("x")).await.unwrap();
    restored.flush().await.unwrap();
    let settled = Records::new(&cluster.client(), "default");
    let settled = settled.open(Subject { uid: "restored", ..SUBJECT }).await.unwrap();
    assert_eq!(settled.state().holdings.restored().count(), 0);
    assert!(settled.release(settled.state().releases.keys().next().unwrap()).await.unwrap().is_some());
}

#[tokio::test]
async fn another_account_does_not_inherit_a_record() {
    for account in [Some("n/other"), None] {
        let cluster = DevCluster::start(Options::default()).await.unwrap();
        let release = left_behind(&cluster).await;
        let records = Records::new(&cluster.client(), "default");
        let other = records.open(Subject { uid: "other", account, ..SUBJECT }).await.unwrap();
        let state = other.state();
        assert_eq!((state.history.len(), state.releases.len()), (0, 0), "{account:?}");
        assert!(state.holdings.is_empty() && other.release(release.digest()).await.unwrap().is_none(), "{account:?}");
    }
}

#[tokio::test]
async fn a_closed_record_is_not_continued() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    left_behind(&cluster).await;
    let records = Records::new(&cluster.client(), "default");
    let opened = records.open(SUBJECT).await.unwrap();
    opened.leave_all().await.unwrap();
    records.close("a", &opened).await.unwrap();
    let next = records.open(Subject { uid: "next", ..SUBJECT }).await.unwrap();
    assert_eq!(next.state().history.len(), 0);
    assert!(next.state().holdings.has_orphaned(), "its object is adopted as orphaned, and not taken for its own");
}

#[tokio::test]
async fn a_change_of_the_account_is_recorded_with_the_end_of_the_reconcile() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    left_behind(&cluster).await;
    let before = secrets(&cluster).await;
    let records = Records::new(&cluster.client(), "default");
    let opened = records.open(SUBJECT).await.unwrap();
    opened.flush().await.unwrap();
    assert_eq!(secrets(&cluster).await, before, "nothing changed");
    let opened = records.open(Subject { account: Some("n/other"), ..SUBJECT }).await.unwrap();
    opened.flush().await.unwrap();
    let stored = Records::new(&cluster.client(), "default");
    let stored = stored.open(Subject { installs: false, ..SUBJECT }).await.unwrap();
    assert_eq!(stored.state().account.as_deref(), Some("n/other"));
}

/// A tenant cannot fill etcd with releases: a revision that would be too much does not begin, and nothing of it is stored.
#[tokio::test]
async fn a_release_that_exceeds_the_limit_of_its_tenant_is_not_stored() {
    let cluster = DevCluster::start(Options::default()).await.unwrap();
    let open = async |limit: u64, name: &str| {
        let records = Records::new(&cluster.client(), "default");
        let records = records.limited(StorageLimit { bytes: limit, by_account: false });
        records.load(true).await.unwrap();
        records.open(Subject { name, ..SUBJECT }).await.unwrap()
    };
    let release = Arc::new(Release::new(Vec::new(), Vec::new(), Vec::new()));
    let first = open(u64::MAX, "a").await;
    first.open_revision(pending(&release)).unwrap();
    first.begin(creating("x")).await.unwrap();
    let used = first.state().stored_bytes();
    assert!(used > 0);

    // After a restart, the releases of all BundleDeployments of the namespace count.
    let before = secrets(&cluster).await;
    let second = open(used, "b").await;
    let refused = second.open_revision(pending(&release)).unwrap_err();
    assert!(matches!(&refused, RecordError::StorageFull { tenant, .. } if tenant == "n"), "{refused}");
    second.begin_revision().await.unwrap();
    assert_eq!(secrets(&cluster).await, before);
    // The one that has it stored is not affected.
    open(used, "a").await.open_revision(pending(&release)).unwrap();
    open(used * 100 + 100_000, "b").await.open_revision(pending(&release)).unwrap();
}
