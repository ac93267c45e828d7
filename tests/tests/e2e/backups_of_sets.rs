//! Sets that are restored object by object, with other UIDs: of PlatformOperators, of decisions in ConfigMaps, and many at once.

use std::env;

use chandler_tests::{
    Cluster, World,
    bundles::{Bundle, config_map},
};
use kube::api::DeleteParams;

use crate::{
    PLAIN,
    backups::{is_any, lasting, lose_everything},
    decision_maps::{Resolver, namespaces},
    platform_operators::{INSTALLED, create_here, operators, until},
    shop::{Shop, catalog},
};

/// How many BundleDeployments are restored at once by default; `CHANDLER_RESTORED` is another number.
const MANY: usize = 20;

#[tokio::test]
async fn restored_platform_operators_have_their_packages() {
    let mut world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("extra", "1.0.0", &[]).await;
    catalog(&shop).await;
    let names = [create_here(&shop, "first", "app").await, create_here(&shop, "second", "extra").await];
    for name in &names {
        until(&world, name, INSTALLED, "1.0.0").await;
    }
    let packages = ["app", "base", "extra"].map(|package| shop.name(package));
    drop(shop);
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, is_any).await;
    let restored = backup.uids(&world.client).await;
    world.start_controller();
    for name in &names {
        until(&world, name, INSTALLED, "1.0.0").await;
    }
    assert_eq!(lasting(backup.uids(&world.client).await), lasting(restored), "nothing was created again");

    // They own their packages: one goes with its PlatformOperator, and the others stay.
    let shop = Shop::new(&world);
    operators(&world).delete(&names[1], &DeleteParams::default()).await.expect("it exists");
    chandler_tests::wait::eventually("its package is gone", || async {
        matches!(world.deployments().get_opt(&names[1]).await, Ok(None))
            && matches!(world.deployments().get_opt(&packages[2]).await, Ok(None))
    })
    .await;
    assert_eq!(shop.installed_in(&world.namespace, "app").await.as_deref(), Some("1.0.0"));
    until(&world, &names[0], INSTALLED, "1.0.0").await;
    drop(shop);
    world.finish().await;
}

#[tokio::test]
async fn the_set_of_a_restored_decision_in_a_config_map_has_its_members() {
    let mut world = World::new().await;
    let resolver = Resolver::new(&world).await;
    namespaces(&world, &["app", "base", "extra"]).await;
    resolver.decide(&world, "1", &[("app", &["base"]), ("base", &[])]).await;
    resolver.installed(&world, "1", &["app", "base"]).await;
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, is_any).await;
    let restored = backup.uids(&world.client).await;
    world.start_controller();
    resolver.installed(&world, "1", &["app", "base"]).await;
    assert_eq!(lasting(backup.uids(&world.client).await), lasting(restored), "nothing was created again");

    // The next decision changes the restored set.
    resolver.decide(&world, "2", &[("base", &[]), ("extra", &[])]).await;
    resolver.installed(&world, "2", &["base", "extra"]).await;
    resolver.withdraw("2").await;
    resolver.withdraw("1").await;
    resolver.gone(&world).await;
    world.finish().await;
}

#[tokio::test]
async fn many_restored_bundle_deployments_continue() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    world.start_controller();
    let count = env::var("CHANDLER_RESTORED").ok().and_then(|text| text.parse().ok()).unwrap_or(MANY);
    let names: Vec<String> = (0..count).map(|number| format!("{}-{number}", world.name())).collect();
    for (number, name) in names.iter().enumerate() {
        let map = config_map(&format!("berth-{number}"), "one");
        let image = world.push(&Bundle::empty().with("manifests/map.yaml", &map)).await;
        world.deploy(name, PLAIN, &image).await;
    }
    for name in &names {
        world.ready(name).await;
    }
    let backup = lose_everything(&mut world).await;
    backup.restore(&world.client, is_any).await;
    let restored = backup.uids(&world.client).await;
    assert!(restored.len() > 3 * count, "a BundleDeployment, an object and two records each");
    world.start_controller();
    for name in &names {
        world.ready(name).await;
    }
    assert_eq!(backup.uids(&world.client).await, restored, "nothing was created again");
    for name in &names {
        world.delete(name).await;
    }
    assert!(!backup.uids(&world.client).await.keys().any(|key| key.contains("berth")), "nothing is orphaned");
    world.finish().await;
}
