//! An optional package whose upgrade the checks refuse stops no other one.

use chandler_tests::{World, wait::eventually};
use serde_json::json;

use crate::{
    platform_operators::{INSTALLED, create, delete, message, operators, until},
    shop::{Shop, catalog},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upgrade_of_a_dependency_stops_no_other_platform_operator() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("tool", "1.0.0", &["lib"]).await.with("lib", "1.0.0", &[]).await;
    catalog(&shop).await;
    let (app, tool) = (create(&shop, "one", "app", json!({})).await, create(&shop, "two", "tool", json!({})).await);
    until(&world, &app, INSTALLED, "1.0.0").await;
    until(&world, &tool, INSTALLED, "1.0.0").await;

    let shop = shop.with_broken("base", "1.1.0", &[]).skipping("base").with("tool", "1.1.0", &["lib"]).await;
    let shop = shop.with("lib", "1.1.0", &[]).await;
    shop.publish().await;
    until(&world, &tool, INSTALLED, "1.1.0").await;
    let platform = world.platform();
    let lib = || shop.installed_in(&platform, "lib");
    eventually("its dependency is upgraded", || async { lib().await.as_deref() == Some("1.1.0") }).await;
    let says = |it: &str| it.contains("the checks refuse its upgrade") && it.contains(&shop.name("base"));
    eventually("app says what is refused", || async {
        says(message(&operators(&world).get(&app).await.expect("it exists")))
    })
    .await;
    assert_eq!(shop.installed_in(&platform, "base").await.as_deref(), Some("1.0.0"));

    let shop = shop.with("base", "1.2.0", &[]).await;
    shop.publish().await;
    let base = || shop.installed_in(&platform, "base");
    eventually("the repaired version is installed", || async { base().await.as_deref() == Some("1.2.0") }).await;
    delete(&world, &app).await;
    delete(&world, &tool).await;
    world.finish().await;
}
