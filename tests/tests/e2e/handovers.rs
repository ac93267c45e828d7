//! Members that several Resolutions need: they pass from one set to another, are removed in the reverse order of their dependencies, and their
//! absence is noticed.

use chandler_api::{BundleDeployment, Catalog, ConditionType, Resolution, find_condition, names::OWNER_NAME_LABEL};
use chandler_permissions::{PolicyRule, roles};
use chandler_tests::{World, wait};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _, api::DeleteParams};
use serde_json::json;

use crate::{
    permissions,
    removals::Removals,
    resolutions::{create, delete, installed, message, patch, resolutions, until, wanted},
    shop::{Shop, catalog},
};

/// The name of a Resolution of the run.
pub(crate) fn named(world: &World, name: &str) -> String {
    format!("{}-{name}", world.run())
}

async fn deployment(shop: &Shop<'_>, package: &str) -> Option<BundleDeployment> {
    shop.world.deployments().get_opt(&shop.name(package)).await.expect("the API server answers")
}

/// `one` and `two`, which both need `base`; `one` installs it.
async fn sharing(world: &World) -> Shop<'_> {
    let shop = Shop::new(world).with("base", "1.0.0", &[]).await.with("base", "1.1.0", &[]).await;
    let shop = shop.with("left", "1.0.0", &["base <1.1.0"]).await.with("right", "1.0.0", &["base"]).await;
    let shop = shop.with("extra", "1.0.0", &[]).await;
    catalog(&shop).await;
    create(&shop, &named(world, "one"), &[("left", ""), ("extra", "")]).await;
    installed(&shop, &named(world, "one"), &[("base", "1.0.0"), ("extra", "1.0.0"), ("left", "1.0.0")]).await;
    create(&shop, &named(world, "two"), &[("right", "")]).await;
    installed(&shop, &named(world, "two"), &[("base", "1.0.0"), ("right", "1.0.0")]).await;
    shop
}

/// Asserts that the same BundleDeployment of `base` now belongs to `two`, and that its object was never deleted.
async fn passed_to_two(shop: &Shop<'_>, base: &BundleDeployment, map: &str) {
    let set = format!("resolveset-{}", named(shop.world, "two"));
    let (deployments, name) = (shop.world.deployments(), base.name_any());
    let now = wait::until(&deployments, &name, "a member of two", |it| {
        it.is_some_and(|it| it.labels().get(OWNER_NAME_LABEL) == Some(&set))
    });
    let now = now.await.expect("the BundleDeployment");
    assert_eq!(now.uid(), base.uid(), "it was not created again");
    let found = shop.world.config_maps().get("base").await.expect("the object of base");
    assert_eq!(found.uid().as_deref(), Some(map), "the object was not created again");
}

async fn uid_of_map(shop: &Shop<'_>) -> String {
    shop.world.config_maps().get("base").await.expect("the object of base").uid().expect("a UID")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_resolution_needs_passes_to_its_set_when_its_own_is_deleted() {
    let world = World::new().await;
    let shop = sharing(&world).await;
    let (base, map) = (deployment(&shop, "base").await.expect("base"), uid_of_map(&shop).await);
    delete(&world, &named(&world, "one")).await;
    passed_to_two(&shop, &base, &map).await;
    assert_eq!((shop.installed("left").await, shop.installed("extra").await), (None, None));
    // It is a member as any other now: it follows its catalog, in the namespace where it is.
    installed(&shop, &named(&world, "two"), &[("base", "1.1.0"), ("right", "1.0.0")]).await;
    assert_eq!(uid_of_map(&shop).await, map);
    delete(&world, &named(&world, "two")).await;
    assert_eq!((shop.installed("base").await, shop.installed("right").await), (None, None), "no Resolution needs it");
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_resolution_needs_stays_when_a_decision_drops_it() {
    let world = World::new().await;
    let shop = sharing(&world).await;
    let (base, map) = (deployment(&shop, "base").await.expect("base"), uid_of_map(&shop).await);
    // An installed package needs it, so it stays in the set that has it, and nothing limits its version any more.
    patch(&world, &named(&world, "one"), json!({"packages": wanted(&shop, &[("extra", "")])})).await;
    installed(&shop, &named(&world, "one"), &[("base", "1.1.0"), ("extra", "1.0.0")]).await;
    installed(&shop, &named(&world, "two"), &[("base", "1.1.0"), ("right", "1.0.0")]).await;
    assert_eq!(uid_of_map(&shop).await, map);
    // Where only a wish needs it, it passes to the set of the wish.
    patch(&world, &named(&world, "two"), json!({"packages": wanted(&shop, &[("base", "")])})).await;
    passed_to_two(&shop, &base, &map).await;
    installed(&shop, &named(&world, "one"), &[("extra", "1.0.0")]).await;
    installed(&shop, &named(&world, "two"), &[("base", "1.1.0")]).await;
    delete(&world, &named(&world, "one")).await;
    assert_eq!(uid_of_map(&shop).await, map);
    delete(&world, &named(&world, "two")).await;
    assert_eq!(shop.installed("base").await, None);
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_install_a_member_does_not_take_it_over() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await.with("left", "1.0.0", &["base"]).await;
    let shop = shop.with("right", "1.0.0", &["base"]).await;
    catalog(&shop).await;
    create(&shop, &named(&world, "one"), &[("left", "")]).await;
    installed(&shop, &named(&world, "one"), &[("base", "1.0.0"), ("left", "1.0.0")]).await;
    // The account of `two` may write BundleDeployments, and ConfigMaps in another namespace.
    let account = permissions::account(&world, "tenant").await;
    let other = format!("{}-other", world.namespace);
    let rules = |group: &str, resource: &str, verbs: &[&str]| {
        let rules = json!([{"apiGroups": [group], "resources": [resource], "verbs": verbs}]);
        serde_json::from_value::<Vec<PolicyRule>>(rules).expect("rules")
    };
    let all = ["get", "list", "watch", "create", "patch", "update", "delete"];
    let granted = [
        (
            None,
            [
                rules("core.rukpak.io", "bundledeployments", &all),
                rules("core.rukpak.io", "bundledeployments/finalizers", &["update"]),
            ]
            .concat(),
        ),
        (Some(other.clone()), rules("", "configmaps", &all)),
    ];
    permissions::apply(&world, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})]).await;
    permissions::apply(&world, &roles(&granted.into(), &account, &format!("{}-tenant", world.run()))).await;
    let two = named(&world, "two");
    let account = json!({"name": account.name, "namespace": account.namespace});
    let output = json!({"type": "ResolveSet", "resolveSet": {"installNamespace": other, "serviceAccount": account}});
    let spec = json!({"packages": wanted(&shop, &[("right", "")]), "output": output});
    let _: Resolution = world.create(json!({"metadata": {"name": two}, "spec": spec})).await;
    installed(&shop, &two, &[("base", "1.0.0"), ("right", "1.0.0")]).await;

    delete(&world, &named(&world, "one")).await;
    assert_eq!(shop.installed("base").await, None, "it is not kept for who cannot keep it");
    // The set installs its own, where its account may.
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &other);
    wait::until(&maps, "base", "installed", |map| map.is_some()).await;
    installed(&shop, &two, &[("base", "1.0.0"), ("right", "1.0.0")]).await;
    delete(&world, &two).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_whose_upgrade_the_checks_refuse_passes_as_it_is() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await.with("left", "1.0.0", &["base"]).await;
    let shop = shop.with("right", "1.0.0", &["base"]).await;
    catalog(&shop).await;
    create(&shop, &named(&world, "one"), &[("left", "")]).await;
    installed(&shop, &named(&world, "one"), &[("base", "1.0.0"), ("left", "1.0.0")]).await;
    create(&shop, &named(&world, "two"), &[("right", "")]).await;
    installed(&shop, &named(&world, "two"), &[("base", "1.0.0"), ("right", "1.0.0")]).await;
    let (base, map) = (deployment(&shop, "base").await.expect("base"), uid_of_map(&shop).await);
    let shop = shop.with_broken("base", "1.1.0", &[]);
    shop.publish().await;
    until(&world, &named(&world, "one"), "False/PreflightFailed", |_| true).await;
    delete(&world, &named(&world, "one")).await;
    passed_to_two(&shop, &base, &map).await;
    let refused = until(&world, &named(&world, "two"), "False/PreflightFailed", |_| true).await;
    assert!(message(&refused, ConditionType::Ready).contains(&shop.name("base")), "{refused:?}");
    assert_eq!(uid_of_map(&shop).await, map);
    delete(&world, &named(&world, "two")).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_installed_keeps_what_it_rests_on_across_a_restart_without_an_answer() {
    let mut world = World::new().await;
    let shop = sharing(&world).await;
    let (base, map) = (deployment(&shop, "base").await.expect("base"), uid_of_map(&shop).await);
    let packages = wanted(&shop, &[("right", ">=9")]);
    patch(&world, &named(&world, "two"), json!({"packages": packages})).await;
    until(&world, &named(&world, "two"), "False/NotSatisfiable", |_| true).await;
    let packages = shop.packages;
    world.stop_controller().await;
    world.start_controller();
    let shop = Shop::reopened(&world, packages);
    resolutions(&world).delete(&named(&world, "one"), &DeleteParams::default()).await.expect("it exists");
    let (one, two) = (named(&world, "one"), named(&world, "two"));
    let kept = until(&world, &one, "False/Deleting", |it| message(it, ConditionType::Ready).contains("taken it over"));
    assert!(message(&kept.await, ConditionType::Ready).contains(&two));
    // It is taken over as soon as there is an answer.
    patch(&world, &named(&world, "two"), json!({"packages": wanted(&shop, &[("right", "")])})).await;
    passed_to_two(&shop, &base, &map).await;
    delete(&world, &named(&world, "two")).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_resolution_keeps_nothing_of_others() {
    let world = World::new().await;
    let shop = sharing(&world).await;
    patch(&world, &named(&world, "two"), json!({"suspend": true})).await;
    until(&world, &named(&world, "two"), "True/Suspended", |_| true).await;
    delete(&world, &named(&world, "one")).await;
    assert_eq!(shop.installed("base").await, None);
    // Its dependency is installed with its next decision.
    patch(&world, &named(&world, "two"), json!({"suspend": false})).await;
    installed(&shop, &named(&world, "two"), &[("base", "1.1.0"), ("right", "1.0.0")]).await;
    assert_eq!(shop.installed("base").await.as_deref(), Some("1.1.0"));
    delete(&world, &named(&world, "two")).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_notices_that_what_it_rests_on_is_gone() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await.with("right", "1.0.0", &["base"]).await;
    catalog(&shop).await;
    let own = shop.name("base");
    world.deploy(&own, "core-rukpak-io-registry", &shop.packages["base"][0].image).await;
    world.ready(&own).await;
    let name = named(&world, "two");
    create(&shop, &name, &[("right", "")]).await;
    installed(&shop, &name, &[("base", "1.0.0"), ("right", "1.0.0")]).await;
    let before = deployment(&shop, "base").await.expect("base").uid();
    world.deployments().delete(&own, &DeleteParams::default()).await.expect("it exists");
    // The set installs its own.
    wait::until(&world.deployments(), &own, "created again", |it| {
        it.is_some_and(|it| it.uid() != before && it.labels().contains_key(OWNER_NAME_LABEL))
    })
    .await;
    installed(&shop, &name, &[("base", "1.0.0"), ("right", "1.0.0")]).await;
    delete(&world, &name).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_what_another_set_has_is_reported_as_it_changes() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await.with("right", "1.0.0", &["base"]).await;
    catalog(&shop).await;
    create(&shop, &named(&world, "one"), &[("base", "")]).await;
    installed(&shop, &named(&world, "one"), &[("base", "1.0.0")]).await;
    // One has a set of its own, and one has none.
    create(&shop, &named(&world, "two"), &[("right", "")]).await;
    create(&shop, &named(&world, "three"), &[("base", "")]).await;
    let base = shop.name("base");
    let state = |resolution: &Resolution| {
        let mut members = resolution.status.iter().flat_map(|status| &status.members);
        members.find(|it| it.package == base).and_then(|it| it.state.clone()).unwrap_or_default()
    };
    for name in ["two", "three"] {
        until(&world, &named(&world, name), "True/Succeeded", |it| state(it) == "Succeeded").await;
    }
    shop.with_failing("base", "1.1.0", &[]).await.publish().await;
    let deployments = world.deployments();
    let failing = wait::until(&deployments, &base, "failing", |it| {
        let status = it.and_then(|it| it.status.as_ref());
        let ready = status.and_then(|status| find_condition(&status.conditions, ConditionType::Ready));
        ready.is_some_and(|ready| ready.message.contains("registry.invalid"))
    });
    let failing = failing.await.expect("base").status.expect("a status");
    let reason = find_condition(&failing.conditions, ConditionType::Ready).expect("it").reason.clone();
    for name in ["two", "three"] {
        until(&world, &named(&world, name), "True/Succeeded", |it| state(it) == reason).await;
    }
    for name in ["three", "two", "one"] {
        delete(&world, &named(&world, name)).await;
    }
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_removed_before_what_they_depend_on() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["left", "right"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("left", "1.0.0", &["base"]).await.with("right", "1.0.0", &["base"]).await;
    let shop = shop.with("extra", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = named(&world, "one");
    create(&shop, &name, &[("app", ""), ("extra", "")]).await;
    let all = [("app", "1.0.0"), ("base", "1.0.0"), ("extra", "1.0.0"), ("left", "1.0.0"), ("right", "1.0.0")];
    installed(&shop, &name, &all).await;
    patch(&world, &name, json!({"packages": wanted(&shop, &[("extra", "")])})).await;
    let removals = Removals::watch(&world, &format!("resolveset-{name}"), 4).await;
    for (dependent, needed) in [("app", "left"), ("app", "right"), ("left", "base"), ("right", "base")] {
        removals.assert_before(&shop.name(dependent), &shop.name(needed));
    }
    assert_eq!(shop.installed("extra").await.as_deref(), Some("1.0.0"));
    delete(&world, &name).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolution_can_be_changed_after_its_catalog_is_gone() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("extra", "1.0.0", &[]).await;
    let catalog = catalog(&shop).await;
    let name = named(&world, "one");
    create(&shop, &name, &[("app", ""), ("extra", "")]).await;
    installed(&shop, &name, &[("app", "1.0.0"), ("base", "1.0.0"), ("extra", "1.0.0")]).await;
    let catalogs: Api<Catalog> = Api::all(world.client.clone());
    catalogs.delete(&catalog, &DeleteParams::default()).await.expect("it exists");
    wait::until(&catalogs, &catalog, "gone", |catalog| catalog.is_none()).await;
    // A configuration, and a package less.
    let config = json!({shop.name("app"): {"deploymentConfig": {"env": [{"name": "LEVEL", "value": "debug"}]}}});
    patch(
        &world,
        &name,
        json!({"packages": wanted(&shop, &[("app", "")]), "output": {"resolveSet": {"config": config}}}),
    )
    .await;
    installed(&shop, &name, &[("app", "1.0.0"), ("base", "1.0.0")]).await;
    let app = deployment(&shop, "app").await.expect("app");
    assert_eq!(json!(app.spec.config), config[shop.name("app")]);
    assert_eq!(shop.installed("extra").await, None);
    // A package that no catalog has cannot be installed.
    patch(&world, &name, json!({"packages": wanted(&shop, &[("app", ""), ("extra", "")])})).await;
    let refused = until(&world, &name, "False/NotSatisfiable", |_| true).await;
    assert!(message(&refused, ConditionType::Ready).contains(&shop.name("extra")), "{refused:?}");
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));
    delete(&world, &name).await;
    assert!(resolutions(&world).get_opt(&name).await.expect("an answer").is_none());
    world.finish().await;
}
