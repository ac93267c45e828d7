//! After an outage of the API server or of a registry everything is at work again at once, however long it took.
//!
//! `CHANDLER_OUTAGE` is the number of seconds that an outage takes. With 34, pauses that double are longer than these tests wait.

use std::time::Duration;

use chandler_tests::{Cluster, Proxy, World, bundles::Bundle, proxy::server_of, wait, world::condition};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

use crate::PLAIN;

/// How long a test of this file waits for what takes less than five seconds on a machine that is not busy.
const SOON: Duration = Duration::from_secs(15);

/// Lets an outage last as long as the environment says.
async fn outage() {
    let seconds = std::env::var("CHANDLER_OUTAGE").ok().and_then(|seconds| seconds.parse().ok());
    if let Some(seconds) = seconds {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

/// An image of one ConfigMap.
async fn note(world: &World) -> String {
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
    world.push(&Bundle::empty().with("manifests/note.yaml", note)).await
}

#[tokio::test]
async fn work_goes_on_when_the_api_server_returns() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    let proxy = Proxy::start(server_of(&world.config())).await;
    world.start_controller_at(proxy.config(world.config()));
    let (name, image) = (world.name(), note(&world).await);
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let before = world.config_maps().get("note").await.expect("the object is installed").uid();

    proxy.close();
    // What the user does meanwhile.
    let new = format!("{name}-new");
    let other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n";
    let other = world.push(&Bundle::empty().with("manifests/other.yaml", other)).await;
    world.deploy(&new, PLAIN, &other).await;
    world.config_maps().delete("note", &DeleteParams::default()).await.expect("the deletion is accepted");
    proxy.refuses(4).await;
    outage().await;
    proxy.open();
    let began = std::time::Instant::now();
    wait::within(SOON, &world.config_maps(), "note", "created again", |map| map.is_some_and(|map| map.uid() != before))
        .await;
    eprintln!("the object is repaired after {:?}", began.elapsed());
    wait::within(SOON, &world.deployments(), &new, "ready", |deployment| {
        deployment.and_then(|deployment| condition(deployment, "Ready")).is_some_and(|ready| ready.status == "True")
    })
    .await;
    eprintln!("the new bundle is installed after {:?}", began.elapsed());
    world.finish().await;
}

#[tokio::test]
async fn all_go_on_when_their_registry_returns() {
    let world = World::new().await;
    let (name, image) = (world.name(), note(&world).await);
    let (address, path) = image.split_once('/').expect("a registry");
    let proxy = Proxy::start(address.to_owned()).await;
    proxy.close();
    let names: Vec<String> = (0..3).map(|number| format!("{name}-{number}")).collect();
    for name in &names {
        // They collide with each other, but get that far.
        world.deploy(name, PLAIN, &format!("{}/{path}", proxy.address())).await;
        world.condition(name, "Unpacked", "False", "UnpackFailed").await;
    }
    proxy.refuses(2).await;
    outage().await;
    proxy.open();
    let began = std::time::Instant::now();
    for name in &names {
        wait::within(SOON, &world.deployments(), name, "unpacked", |deployment| {
            deployment
                .and_then(|deployment| condition(deployment, "Unpacked"))
                .is_some_and(|unpacked| unpacked.status == "True")
        })
        .await;
        eprintln!("{name} is unpacked after {:?}", began.elapsed());
    }
    world.finish().await;
}

#[tokio::test]
async fn a_release_goes_on_when_the_object_in_its_way_is_gone() {
    let world = World::new().await;
    let (name, image) = (world.name(), note(&world).await);
    let foreign = serde_json::from_value(json!({"metadata": {"name": "note"}})).expect("a ConfigMap");
    world.config_maps().create(&PostParams::default(), &foreign).await.expect("the object is accepted");
    world.deploy(&name, PLAIN, &image).await;
    world.condition(&name, "Progressing", "True", "ObjectCollision").await;
    outage().await;
    world.config_maps().delete("note", &DeleteParams::default()).await.expect("the object exists");
    let began = std::time::Instant::now();
    wait::within(SOON, &world.deployments(), &name, "ready", |deployment| {
        deployment.and_then(|deployment| condition(deployment, "Ready")).is_some_and(|ready| ready.status == "True")
    })
    .await;
    eprintln!("it is ready after {:?}", began.elapsed());
    world.finish().await;
}
