//! A rollout that reads from informers decides what one that reads the API server decides, however late or broken the watches are.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use std::time::Duration;

use chandler_core::{ObjectKey, Release};
use chandler_devcluster::faults::{Effect, Fault, Verb, When};
use chandler_rollout::{Options, Rollout, RolloutRequest, informers};
use kube::{Client, api::DeleteParams};
use proptest::prelude::*;
use serde_json::json;

use super::support::{Stage, config_map, config_map_key, eventually, release};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A rollout with informers of its own.
fn watching(client: &Client) -> Rollout {
    let informers = informers(client.clone(), chandler_informers::Options::default(), |_| {});
    Rollout::new(client.clone(), Options::default()).with_informers(&informers)
}

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Another client changes this object.
    Change(usize),
    /// Another client removes the labels of this object.
    RemoveLabels(usize),
    /// Another client deletes this object.
    Delete(usize),
    /// Another client deletes this object and creates one of its name.
    Replace(usize),
    /// The owner wants these objects, with this content.
    Release { objects: u8, content: u8 },
    /// The rollout advances, as far as it can now.
    Advance,
    /// These requests or watches fail from now on.
    Break(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (0..NAMES.len()).prop_map(Step::Change),
        1 => (0..NAMES.len()).prop_map(Step::RemoveLabels),
        1 => (0..NAMES.len()).prop_map(Step::Delete),
        1 => (0..NAMES.len()).prop_map(Step::Replace),
        2 => (1..8_u8, 0..3_u8).prop_map(|(objects, content)| Step::Release { objects, content }),
        6 => Just(Step::Advance),
        1 => (0..faults().len()).prop_map(Step::Break),
    ]
}

fn faults() -> Vec<Fault> {
    let writes = |effect| Fault::new(effect).resource("configmaps").every(2).times(2);
    let watches = |effect| Fault::new(effect).verb(Verb::Watch).resource("configmaps").times(3);
    vec![
        writes(Effect::ResetAfterWrite).method(http::Method::POST).manager("chandler"),
        writes(Effect::InternalErrorAfterWrite).method(http::Method::PATCH).manager("chandler"),
        writes(Effect::ResetAfterWrite).method(http::Method::DELETE),
        writes(Effect::Conflict).method(http::Method::PATCH).manager("chandler"),
        watches(Effect::DropWatch(When::Events(1))),
        watches(Effect::ResetWatch(When::AT_ONCE)),
        watches(Effect::ExpireWatch(When::Events(2))),
        watches(Effect::SlowWatch { delay: Duration::from_millis(30) }),
        watches(Effect::NoBookmarks),
        Fault::new(Effect::InternalError).verb(Verb::List).resource("configmaps").times(1),
    ]
}

fn wanted(objects: u8, content: u8) -> Release {
    let names = NAMES.iter().enumerate().filter(|(number, _)| objects & (1 << number) != 0);
    let objects: Vec<_> =
        names.map(|(_, name)| (0, config_map(name, json!({"content": content.to_string()})))).collect();
    release(&objects)
}

/// Another client does something to an object, if it exists.
async fn meddle(stage: &Stage, step: Step) {
    let (Step::Change(number) | Step::RemoveLabels(number) | Step::Delete(number) | Step::Replace(number)) = step
    else {
        return;
    };
    let key: ObjectKey = config_map_key(NAMES[number]);
    if stage.live(&key).await.is_none() {
        return;
    }
    match step {
        Step::Change(_) => stage.meddle(&key, json!({"data": {"content": "changed"}})).await,
        Step::RemoveLabels(_) => stage.meddle(&key, json!({"metadata": {"labels": null}})).await,
        _ => {
            // The request may be one that fails.
            let _ = stage.api(&key).delete(&key.name, &DeleteParams::default()).await;
            if matches!(step, Step::Replace(_)) && stage.live(&key).await.is_none() {
                stage.make(&key, config_map(&key.name, json!({"content": "of another client"}))).await;
            }
        }
    }
}

/// Advances, and deletes the objects of another client that a refusal is about. Returns whether the release is complete.
async fn advance(stage: &Stage, rollout: &Rollout, release: &Release) -> bool {
    match Box::pin(rollout.advance(&RolloutRequest::new(&stage.owner, release))).await {
        Ok(progress) => return progress.is_complete(),
        Err(_) => {
            for name in NAMES {
                let key = config_map_key(name);
                let live = stage.live(&key).await;
                if live.is_some_and(|live| live["metadata"].get("ownerReferences").is_none()) {
                    stage.remove(&key).await;
                }
            }
        }
    }
    false
}

/// Advances until the release is complete.
async fn complete(stage: &Stage, rollout: &Rollout, release: &Release) {
    eventually(|| Box::pin(advance(stage, rollout, release))).await;
}

async fn run(steps: Vec<Step>) {
    let stage = Stage::set().await;
    let (watching, reading) = (watching(&stage.client), &stage.rollout);
    let mut release = wanted(7, 0);
    complete(&stage, &watching, &release).await;
    for step in steps {
        match step {
            Step::Release { objects, content } => release = wanted(objects, content),
            Step::Advance => drop(Box::pin(watching.advance(&RolloutRequest::new(&stage.owner, &release))).await),
            Step::Break(number) => drop(stage.cluster.inject(faults().swap_remove(number))),
            step => meddle(&stage, step).await,
        }
    }
    stage.cluster.clear_faults();
    // Nothing happens any more: once the watch has caught up, both see the same.
    let request = RolloutRequest::new(&stage.owner, &release);
    eventually(|| async {
        let (cached, read) = tokio::join!(Box::pin(watching.observe(&request)), Box::pin(reading.observe(&request)));
        format!("{cached:?}") == format!("{read:?}")
    })
    .await;
    complete(&stage, &watching, &release).await;
    let observed = reading.observe(&request).await.unwrap();
    assert!(observed.matches_release(), "{observed:?}");
    let again = reading.advance(&request).await.unwrap();
    assert!(again.is_complete() && again.changes().is_empty(), "{again:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_rollout_with_informers_decides_as_one_that_reads(steps in prop::collection::vec(step(), 0..14)) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(Box::pin(run(steps)));
    }
}

#[tokio::test]
async fn an_unchanged_release_is_observed_without_listing_its_objects() {
    let mut stage = Stage::set().await;
    let client = stage.rollout_client().await;
    stage.rollout = watching(&client);
    let release = wanted(7, 0);
    stage.complete(&release).await;
    stage.reads();
    let observed = stage.rollout.observe(&RolloutRequest::new(&stage.owner, &release)).await.unwrap();
    assert!(observed.matches_release() && observed.is_healthy(), "{observed:?}");
    let reads: Vec<String> = stage.reads().into_iter().filter(|read| read.contains("/configmaps")).collect();
    assert_eq!(reads, [""; 0]);
}

#[tokio::test]
async fn a_write_is_seen_before_the_watch_reports_it() {
    let mut stage = Stage::set().await;
    let never = Effect::SlowWatch { delay: Duration::from_hours(1) };
    stage.cluster.inject(Fault::new(never).verb(Verb::Watch).resource("configmaps"));
    let client = stage.rollout_client().await;
    stage.rollout = watching(&client);
    for release in [wanted(7, 0), wanted(7, 1), wanted(3, 1)] {
        stage.complete(&release).await;
        stage.reads();
        let observed = stage.rollout.observe(&RolloutRequest::new(&stage.owner, &release)).await.unwrap();
        assert!(observed.matches_release(), "{observed:?}");
        let reads: Vec<String> = stage.reads().into_iter().filter(|read| read.contains("/configmaps")).collect();
        assert_eq!(reads, [""; 0]);
    }
}

#[tokio::test]
async fn a_deletion_while_the_watch_is_interrupted_is_noticed() {
    let stage = Stage::set().await;
    let watches = Fault::new(Effect::ExpireWatch(When::Events(4))).verb(Verb::Watch).resource("configmaps").times(1);
    stage.cluster.inject(watches);
    let (watching, release) = (watching(&stage.client), wanted(7, 0));
    let request = RolloutRequest::new(&stage.owner, &release);
    complete(&stage, &watching, &release).await;
    // The three creations and this change are the events before the watch ends. The next list waits for the deletion.
    stage.cluster.inject(Fault::latency(Duration::from_secs(1)).verb(Verb::List).resource("configmaps").times(1));
    stage.meddle(&config_map_key("a"), json!({"metadata": {"annotations": {"note": "changed"}}})).await;
    stage.remove(&config_map_key("b")).await;
    eventually(|| async { !Box::pin(watching.observe(&request)).await.unwrap().drift.is_empty() }).await;
    let (cached, read) = tokio::join!(watching.observe(&request), stage.rollout.observe(&request));
    assert_eq!(cached.unwrap(), read.unwrap());
}
