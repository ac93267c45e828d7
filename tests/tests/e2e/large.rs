//! Large releases are rolled out, cost no writes while nothing changes, and are deleted completely.

use std::collections::{BTreeMap, BTreeSet};

use chandler_tests::{
    World,
    bundles::Bundle,
    large::{self, Cost},
    state::{State, content_of},
    wait,
};
use serde_json::{Value, json};

use crate::{
    PLAIN, resolutions,
    shop::{Shop, catalog},
};

const OBJECTS: usize = 2000;
const CRDS: usize = 120;

/// The writes, without statuses and Events.
fn changes(cost: &Cost) -> Vec<&str> {
    let is_report = |write: &&str| write.ends_with("/status") || write.contains("/events");
    cost.writes.iter().map(String::as_str).filter(|write| !is_report(write)).collect()
}

/// The number of writes with this method.
fn count(cost: &Cost, method: &str) -> usize {
    changes(cost).into_iter().filter(|write| write.starts_with(method)).count()
}

async fn costs(world: &World, what: &str, first: &Bundle, second: &Bundle) -> BTreeMap<&'static str, Cost> {
    let mut costs = large::measure(world, PLAIN, first, second).await;
    for cost in &mut costs {
        eprintln!("{what}: {cost}");
        // The controller's own records are counted separately: a few for each step, however many objects the release has.
        let records = cost.writes.iter().filter(|write| write.contains(&world.system_namespace)).count();
        assert!(records < 20, "{what}, {}: {records} writes of records", cost.step);
        cost.writes.retain(|write| !write.contains(&world.system_namespace));
    }
    costs.into_iter().map(|cost| (cost.step, cost)).collect()
}

async fn assert_gone(world: &World) {
    wait::eventually("the namespace is empty", || async {
        content_of(&world.client, &world.namespace).await.is_empty()
    })
    .await;
    assert!(State::of(world, &world.name()).await.objects.is_empty(), "no object is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_objects_are_each_created_and_deleted_once() {
    let world = World::without_controller(chandler_tests::Cluster::acquire().await).await;
    let (first, second) = (large::objects(OBJECTS, "old"), large::objects(OBJECTS, "new"));
    let costs = costs(&world, "2000 objects", &first, &second).await;
    assert_eq!(count(&costs["installation"], "POST"), OBJECTS, "each object is created once");
    assert_eq!(changes(&costs["nothing to do"]), [""; 0]);
    assert_eq!(costs["nothing to do"].provisioner_calls, 0);
    let changed = format!("PATCH /api/v1/namespaces/{}/configmaps/large-{}", world.namespace, OBJECTS - 1);
    let upgrade = &costs["one object changed"];
    assert_eq!(BTreeSet::from_iter(changes(upgrade)), BTreeSet::from([changed.as_str()]), "nothing else is written");
    assert!(upgrade.requests.len() < 100, "{:?}", upgrade.requests);
    assert_eq!(count(&costs["deletion"], "DELETE"), OBJECTS, "each object is deleted once");
    assert_gone(&world).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_hundred_and_twenty_crds_are_each_created_and_deleted_once() {
    let world = World::without_controller(chandler_tests::Cluster::acquire().await).await;
    let (first, second) = (large::crds(CRDS, "old"), large::crds(CRDS, "new"));
    let costs = costs(&world, "120 CRDs", &first, &second).await;
    assert_eq!(count(&costs["installation"], "POST"), 2 * CRDS, "each object is created once");
    assert_eq!(changes(&costs["nothing to do"]), [""; 0]);
    assert_eq!(costs["nothing to do"].provisioner_calls, 0);
    let (group, number) = ((CRDS - 1) / 10, CRDS - 1);
    let path = format!("/apis/group{group}.large.example.com/v1/namespaces/{}/kinds{number}", world.namespace);
    let upgrade = &costs["one object changed"];
    let changed = format!("PATCH {path}/large-{number}");
    assert_eq!(BTreeSet::from_iter(changes(upgrade)), BTreeSet::from([changed.as_str()]), "nothing else is written");
    assert_eq!(count(&costs["deletion"], "DELETE"), 2 * CRDS, "each object is deleted once");
    assert_gone(&world).await;
    world.finish().await;
}

/// ConfigMaps with so many keys in all. A release takes about 140 bytes of memory for each.
fn keys(count: usize) -> Vec<Value> {
    const EACH: usize = 20_000;
    let map = |number: usize| {
        let data: BTreeMap<String, &str> = (0..count.min(EACH)).map(|key| (format!("k{key}"), "")).collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("keys-{count}-{number}")}, "data": data})
    };
    (0..count.div_ceil(EACH)).map(map).collect()
}

/// The members of this set do not fit into the memory for checks together, and the first one needs all of it when the others have theirs.
#[tokio::test(flavor = "multi_thread")]
async fn members_that_need_all_memory_for_checks_do_not_wait_for_ever() {
    let world = World::new().await;
    let mut shop = Shop::new(&world).with_plain("a", "1.0.0", &[], &keys(80_000)).await;
    for (package, count) in [("b", 20_000), ("c", 19_999), ("d", 19_998)] {
        shop = shop.with_plain(package, "1.0.0", &[], &keys(count)).await;
    }
    catalog(&shop).await;
    let (name, packages) = (format!("{}-large", world.run()), ["a", "b", "c", "d"].map(|package| (package, "1.0.0")));
    resolutions::create(&shop, &name, &packages).await;
    resolutions::installed(&shop, &name, &packages).await;
    resolutions::delete(&world, &name).await;
    world.finish().await;
}
