//! A package stays where it is, whatever asks for it: another namespace or name would mean to uninstall it.

use chandler_tests::World;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};
use serde_json::json;

use crate::{
    handovers::named,
    platform_operators::{INSTALLED, create, delete, operators, patch, status, until},
    resolutions,
    shop::{Shop, catalog},
};

/// The UID of the object of a package.
async fn uid(world: &World, namespace: &str, package: &str) -> Option<String> {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), namespace);
    maps.get_opt(package).await.expect("the API server answers").and_then(|map| map.uid())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_whose_platform_operator_names_another_one_stays_where_it_is_as_a_dependency() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await.with("app", "1.0.0", &["base"]).await;
    catalog(&shop).await;
    let (base, app) = (create(&shop, "one", "base", json!({})).await, shop.name("app"));
    until(&world, &base, INSTALLED, "1.0.0").await;
    let before = uid(&world, &shop.name("base"), "base").await;
    assert!(before.is_some());
    patch(&world, &base, json!({"package": {"name": app}})).await;
    let found = until(&world, &base, INSTALLED, "1.0.0").await;
    assert_eq!(status(&found).active_bundle_deployment.as_ref().map(|it| &it.name), Some(&app));
    assert_eq!(uid(&world, &shop.name("base"), "base").await, before);
    delete(&world, &base).await;
    assert_eq!(uid(&world, &shop.name("base"), "base").await, None);
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_between_a_resolution_and_platform_operators_stays_where_it_is() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await.with("tool", "1.0.0", &[]).await;
    catalog(&shop).await;
    let one = named(&world, "one");
    resolutions::create(&shop, &one, &[("base", "")]).await;
    resolutions::installed(&shop, &one, &[("base", "1.0.0")]).await;
    let before = uid(&world, &world.namespace, "base").await;
    let operator = create(&shop, "op", "base", json!({})).await;
    until(&world, &operator, INSTALLED, "1.0.0").await;
    resolutions::delete(&world, &one).await;
    assert_eq!(uid(&world, &world.namespace, "base").await, before);
    let found = until(&world, &operator, INSTALLED, "1.0.0").await;
    assert_eq!(status(&found).namespace.as_ref(), Some(&world.namespace));

    // A package that a PlatformOperator installed keeps the PlatformOperator's name in the set of a Resolution. The next one of that name
    // gets another.
    patch(&world, &operator, json!({"package": {"name": shop.name("tool")}})).await;
    until(&world, &operator, INSTALLED, "1.0.0").await;
    delete(&world, &operator).await;
    let tool = create(&shop, "op", "tool", json!({})).await;
    until(&world, &tool, INSTALLED, "1.0.0").await;
    resolutions::create(&shop, &one, &[("tool", "")]).await;
    resolutions::installed(&shop, &one, &[("tool", "1.0.0")]).await;
    delete(&world, &tool).await;
    assert!(world.deployments().get_opt(&tool).await.expect("the API server answers").is_some(), "it has passed");
    let base = create(&shop, "op", "base", json!({})).await;
    let found = until(&world, &base, INSTALLED, "1.0.0").await;
    assert_eq!(status(&found).active_bundle_deployment.as_ref().map(|it| &it.name), Some(&shop.name("base")));
    assert!(operators(&world).get_opt(&base).await.expect("the API server answers").is_some());
    delete(&world, &base).await;
    resolutions::delete(&world, &one).await;
    world.finish().await;
}
