//! API server faults while a Resolution is installed, upgraded, changed, rolled back and deleted: whatever fails, the controller reaches the same
//! result, and uninstalls nothing on the way that it installs again.
//!
//! The faults affect only the controller, from its start to the end.

use std::{collections::BTreeMap, time::Duration};

use chandler_devcluster::{
    Effect, Fault,
    faults::{Verb, effect::When},
};
use chandler_tests::{Cluster, World, container, wait::eventually};
use futures::future::join_all;
use kube::{ResourceExt as _, api::ListParams};
use serde_json::{Value, json};

use crate::{
    resolutions::{create, delete, installed, patch, until, versions, wanted},
    shop::{Shop, catalog},
};

/// The controller's user agent.
const CONTROLLER: &str = "e2e-controller";

/// The faults of each run.
fn profiles() -> Vec<(&'static str, Vec<Fault>)> {
    let millisecond = Duration::from_millis(1);
    vec![
        ("no fault", vec![]),
        ("drop-watch", vec![Fault::new(Effect::DropWatch(When::Events(1))).every(2)]),
        ("drop-watch by time", vec![Fault::new(Effect::DropWatch(When::Time(300 * millisecond)))]),
        ("reset-watch", vec![Fault::new(Effect::ResetWatch(When::Events(1))).every(2)]),
        ("expire-watch", vec![Fault::new(Effect::ExpireWatch(When::Events(2))).every(2)]),
        ("slow-watch", vec![Fault::new(Effect::SlowWatch { delay: 100 * millisecond })]),
        ("stale", vec![Fault::new(Effect::Stale { revisions: 30 }), Fault::new(Effect::NoBookmarks)]),
        (
            "late bookmarks",
            vec![
                Fault::new(Effect::LateBookmarks { delay: 500 * millisecond }),
                Fault::new(Effect::ExpireWatch(When::Events(5))).every(3),
            ],
        ),
        (
            "conflicts",
            vec![
                Fault::new(Effect::Conflict).verb(Verb::Create).probability(0.3).seed(1),
                Fault::new(Effect::Conflict).verb(Verb::Patch).probability(0.3).seed(2),
            ],
        ),
    ]
}

/// The UID of each BundleDeployment.
async fn uids(world: &World) -> BTreeMap<String, String> {
    let all = world.deployments().list(&ListParams::default()).await.expect("an answer");
    all.items.iter().map(|it| (it.name_any(), it.uid().expect("a UID"))).collect()
}

/// Runs it once. Returns how many requests were affected.
async fn run(faults: Vec<Fault>) -> u64 {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    let cluster = world.embedded().expect("only the embedded control plane injects faults");
    for fault in faults {
        cluster.inject(fault.client(container::agent(CONTROLLER)));
    }
    world.start_controller_as(CONTROLLER);
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("extra", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    create(&shop, &name, &[("app", "")]).await;
    installed(&shop, &name, &[("app", "1.0.0"), ("base", "1.0.0")]).await;
    let first = uids(&world).await;
    assert_eq!(first.len(), 3, "{first:?}");

    let shop = shop.with("app", "1.1.0", &["base"]).await;
    shop.publish().await;
    installed(&shop, &name, &[("app", "1.1.0"), ("base", "1.0.0")]).await;
    assert_eq!(uids(&world).await, first, "an upgrade creates none again");

    patch(&world, &name, json!({"packages": wanted(&shop, &[("app", ""), ("extra", "")])})).await;
    let third = installed(&shop, &name, &[("app", "1.1.0"), ("base", "1.0.0"), ("extra", "1.0.0")]).await;
    assert_eq!(third.status.as_ref().and_then(|status| status.decision), Some(3), "one decision for each change");

    let to_decision = |number: Value| json!({"output": {"resolveSet": {"toDecision": number}}});
    patch(&world, &name, to_decision(json!(1))).await;
    let back = until(&world, &name, "True/RolledBack", |it| versions(it).len() == 2).await;
    assert_eq!(versions(&back), [(shop.name("app"), "1.0.0".to_owned()), (shop.name("base"), "1.0.0".to_owned())]);
    eventually("the old version runs", || async { shop.installed("app").await.as_deref() == Some("1.0.0") }).await;
    assert_eq!(uids(&world).await, first, "a rollback creates none again");

    patch(&world, &name, to_decision(Value::Null)).await;
    installed(&shop, &name, &[("app", "1.1.0"), ("base", "1.0.0"), ("extra", "1.0.0")]).await;
    let last = uids(&world).await;
    assert!(first.iter().all(|(name, uid)| last.get(name) == Some(uid)), "{first:?} {last:?}");

    delete(&world, &name).await;
    assert_eq!(uids(&world).await, BTreeMap::new());
    for package in ["app", "base", "extra"] {
        assert_eq!(shop.installed(package).await, None, "{package}");
    }
    let cluster = world.embedded().expect("only the embedded control plane injects faults");
    let struck = cluster.clear_faults().iter().map(|report| report.struck).sum();
    world.finish().await;
    struck
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_api_fault_leads_to_the_same_set() {
    if !Cluster::acquire().await.is_embedded() {
        eprintln!("skipped: only the embedded control plane injects faults");
        return;
    }
    let runs = profiles().into_iter().map(|(name, faults)| async move {
        let expected = if faults.is_empty() { 0 } else { 5 };
        match tokio::spawn(run(faults)).await {
            Ok(struck) if struck >= expected => None,
            Ok(struck) => Some(format!("{name}: only {struck} requests were affected")),
            Err(error) => Some(format!("{name}: {error}")),
        }
    });
    let failed: Vec<String> = join_all(runs).await.into_iter().flatten().collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
