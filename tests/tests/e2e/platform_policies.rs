//! PlatformPolicies: which packages PlatformOperators may want, and what must hold for all of them.

use chandler_api::{ConditionType, PlatformPolicy, find_condition};
use chandler_controller::WatchSelector;
use chandler_tests::{World, wait, wait::eventually};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    platform_operators::{INSTALLED, create, create_here, delete, message, operators, patch, resolutions, until},
    shop::{Shop, catalog},
};

fn policies(world: &World) -> Api<PlatformPolicy> {
    Api::all(world.client.clone())
}

/// Creates the policy of the run's controller, or replaces its spec, and waits until its status says so.
async fn limit(world: &World, spec: Value) -> PlatformPolicy {
    let (api, name) = (policies(world), world.platform());
    if api.get_opt(&name).await.expect("an answer").is_some() {
        let replaced = json!([{"op": "replace", "path": "/spec", "value": spec}]);
        let patch = Patch::<()>::Json(serde_json::from_value(replaced).expect("a patch"));
        api.patch(&name, &PatchParams::default(), &patch).await.expect("the spec is accepted");
    } else {
        let _: PlatformPolicy = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    judged(world, &name).await
}

/// Waits until the controller has judged the current generation.
async fn judged(world: &World, name: &str) -> PlatformPolicy {
    let api = policies(world);
    let found = wait::until(&api, name, "judged", |policy| {
        policy.is_some_and(|policy| {
            let status = policy.status.as_ref();
            status.is_some_and(|status| status.observed_generation == policy.metadata.generation)
        })
    });
    found.await.expect("the policy")
}

fn accepted(policy: &PlatformPolicy) -> &Condition {
    let status = policy.status.as_ref().expect("a status");
    find_condition(&status.conditions, ConditionType::Accepted).expect("the condition")
}

fn state(policy: &PlatformPolicy) -> String {
    let accepted = accepted(policy);
    format!("{}/{}", accepted.status, accepted.reason)
}

async fn lift(world: &World) {
    policies(world).delete(&world.platform(), &DeleteParams::default()).await.expect("the policy exists");
}

/// Waits until the message of a PlatformOperator contains a text.
async fn says(world: &World, name: &str, text: &str) {
    let api = operators(world);
    wait::until(&api, name, text, |operator| {
        let status = operator.and_then(|it| it.status.as_ref());
        let installed = status.and_then(|it| find_condition(&it.conditions, ConditionType::Installed));
        installed.is_some_and(|installed| installed.message.contains(text))
    })
    .await;
}

/// A constraint: this package is not installed.
fn never(shop: &Shop<'_>, package: &str) -> Value {
    let package = json!({"package": {"packageName": shop.name(package), "versionRange": ">=0.0.0"}});
    json!({"type": "olm.constraint", "value": {"not": {"constraints": [package]}}})
}

/// A constraint: these packages are not installed together.
fn not_both(shop: &Shop<'_>, one: &str, other: &str) -> Value {
    let package = |name: &str| json!({"package": {"packageName": shop.name(name), "versionRange": ">=0.0.0"}});
    let both = json!({"all": {"constraints": [package(one), package(other)]}});
    json!({"type": "olm.constraint", "value": {"not": {"constraints": [both]}}})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_refuses_and_allows_without_a_restart_and_its_deletion_ends_it() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("tool", "1.0.0", &[]).await;
    catalog(&shop).await;
    let policy = limit(&world, json!({"packages": []})).await;
    assert_eq!(state(&policy), "True/PolicyAccepted");
    let (app, tool) = (create_here(&shop, "one", "app").await, create_here(&shop, "two", "tool").await);
    let refused = until(&world, &app, "False/SourceFailed", "").await;
    let expected = format!("is not among the packages that PlatformPolicy {} allows: none", world.platform());
    assert!(message(&refused).contains(&expected), "{}", message(&refused));
    until(&world, &tool, "False/SourceFailed", "").await;

    // Its dependency may be any package.
    limit(&world, json!({"packages": [{"name": shop.name("app")}]})).await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    says(&world, &tool, &format!("allows: {}", shop.name("app"))).await;
    assert_eq!(shop.installed("tool").await, None);

    // Installed packages stay, and follow their catalog.
    limit(&world, json!({"packages": [{"name": shop.name("other")}]})).await;
    says(&world, &tool, &format!("allows: {}", shop.name("other"))).await;
    let shop = shop.with("app", "1.1.0", &["base"]).await;
    shop.publish().await;
    until(&world, &app, INSTALLED, "1.1.0").await;
    lift(&world).await;
    until(&world, &tool, INSTALLED, "1.0.0").await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_and_policy_both_allow_a_package() {
    let mut world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with("tool", "1.0.0", &[]).await;
    let shop = shop.with("marked", "1.0.0", &[]).await.marking("marked");
    catalog(&shop).await;
    let names = ["app", "tool", "marked"].map(|package| shop.name(package));
    let packages = shop.packages;
    world.stop_controller().await;
    let [app, tool, marked] = names;
    let options = [app.clone(), marked.clone()].into();
    world.start_controller_changed(|it| it.platform_packages.allowed = options);
    let shop = Shop::reopened(&world, packages);
    let both = json!([{"name": tool}, {"name": marked}, {"name": app}]);
    limit(&world, json!({"packages": both, "requirePlatformProperty": true})).await;
    let [one, two, three] =
        [create_here(&shop, "one", "app"), create_here(&shop, "two", "tool"), create_here(&shop, "three", "marked")];
    let (one, two, three) = (one.await, two.await, three.await);
    until(&world, &three, INSTALLED, "1.0.0").await;
    let refused = until(&world, &one, "False/SourceFailed", "").await;
    let expected = format!("is not a platform operator, as PlatformPolicy {} requires", world.platform());
    assert!(message(&refused).contains(&expected), "{}", message(&refused));
    let refused = until(&world, &two, "False/SourceFailed", "").await;
    assert!(message(&refused).contains("is not among the packages that PlatformOperators may want"), "{refused:?}");
    limit(&world, json!({"packages": both})).await;
    until(&world, &one, INSTALLED, "1.0.0").await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_stays_within_the_version_of_the_entry_whoever_edits_the_resolution() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let within = |version: &str| json!({"packages": [{"name": shop.name("app"), "version": version}]});
    let (narrow, wide) = (within("<1.2"), within("<2"));
    limit(&world, narrow.clone()).await;
    let app = create(&shop, "one", "app", json!({"installNamespace": world.namespace, "version": ">=1"})).await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    let shop = shop.with("app", "1.1.0", &[]).await.with("app", "1.2.0", &[]).await.with("app", "2.0.0", &[]).await;
    shop.publish().await;
    until(&world, &app, INSTALLED, "1.1.0").await;
    eventually("1.1.0 runs", || async { shop.installed("app").await.as_deref() == Some("1.1.0") }).await;

    // The limit is not in the Resolution.
    let resolution = resolutions(&world).get(&world.platform()).await.expect("it exists");
    let requests: Vec<_> = resolution.spec.packages.iter().map(|it| it.version.as_deref()).collect();
    assert_eq!(requests, [Some(">=1")]);
    // What contradicts the policy changes nothing.
    patch(&world, &app, json!({"version": ">=2"})).await;
    let refused = until(&world, &app, "False/SourceFailed", "1.1.0").await;
    let expected = format!("PlatformPolicy {} allows only version <1.2", world.platform());
    assert!(message(&refused).contains(&expected), "{}", message(&refused));
    patch(&world, &app, json!({"version": ">=1"})).await;
    until(&world, &app, INSTALLED, "1.1.0").await;
    limit(&world, wide).await;
    until(&world, &app, INSTALLED, "1.2.0").await;
    eventually("1.2.0 runs", || async { shop.installed("app").await.as_deref() == Some("1.2.0") }).await;
    // A narrower limit downgrades nothing.
    limit(&world, narrow).await;
    says(&world, &app, &expected).await;
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.2.0"));
    lift(&world).await;
    until(&world, &app, INSTALLED, "2.0.0").await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invariant_holds_before_the_first_platform_operator_and_after_the_last_one() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with("tool", "1.0.0", &[]).await;
    let shop = shop.with("marked", "1.0.0", &[]).await.marking("marked");
    catalog(&shop).await;
    limit(&world, json!({"constraints": [not_both(&shop, "app", "tool")]})).await;
    for round in ["a", "b"] {
        let app = create_here(&shop, &format!("{round}-1"), "app").await;
        until(&world, &app, INSTALLED, "1.0.0").await;
        let tool = create_here(&shop, &format!("{round}-2"), "tool").await;
        let refused = until(&world, &tool, "False/SourceFailed", "").await;
        let expected = format!("constraints of PlatformPolicy {}", world.platform());
        assert!(message(&refused).contains(&expected), "{}", message(&refused));

        // An edit of the Resolution changes nothing.
        let resolution = resolutions(&world).get(&world.platform()).await.expect("it exists");
        assert!(resolution.spec.constraints.is_empty(), "it has none to remove");
        let spec = json!({"constraints": [], "dependencies": "Ignore", "upgrades": "SelfCertified"});
        let edit = Patch::Merge(json!({"spec": spec}));
        let api = resolutions(&world);
        let edited = api.patch(&world.platform(), &PatchParams::default(), &edit).await.expect("the spec is accepted");
        wait::until(&api, &world.platform(), "decided", |resolution| {
            let observed = resolution.and_then(|it| it.status.as_ref()).and_then(|it| it.observed_generation);
            observed == edited.metadata.generation
        })
        .await;
        until(&world, &tool, "False/SourceFailed", "").await;
        assert_eq!(shop.installed("tool").await, None);
        delete(&world, &tool).await;
        delete(&world, &app).await;
        wait::until(&resolutions(&world), &world.platform(), "gone", |resolution| resolution.is_none()).await;
    }

    // Another one, as a rule about the properties of every bundle.
    let rule = format!(
        "properties.exists(p, p.type == 'olm.package' && p.value.packageName == '{}') && !properties.exists(p, p.type == 'chandler.dev/platform-operator')",
        shop.name("app")
    );
    let unmarked = json!({"not": {"constraints": [{"cel": {"rule": rule}}]}});
    limit(&world, json!({"constraints": [{"type": "olm.constraint", "value": unmarked}]})).await;
    let app = create_here(&shop, "app", "app").await;
    let marked = create_here(&shop, "marked", "marked").await;
    until(&world, &marked, INSTALLED, "1.0.0").await;
    until(&world, &app, "False/SourceFailed", "").await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invariant_that_what_is_installed_breaks_uninstalls_nothing() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with("tool", "1.0.0", &[]).await;
    let shop = shop.with("other", "1.0.0", &[]).await;
    catalog(&shop).await;
    let (app, tool) = (create_here(&shop, "one", "app").await, create_here(&shop, "two", "tool").await);
    until(&world, &app, INSTALLED, "1.0.0").await;
    until(&world, &tool, INSTALLED, "1.0.0").await;
    limit(&world, json!({"constraints": [not_both(&shop, "app", "tool")]})).await;
    let expected = format!("constraints of PlatformPolicy {} do not hold for what is installed", world.platform());
    for name in [&app, &tool] {
        says(&world, name, &expected).await;
        until(&world, name, INSTALLED, "1.0.0").await;
    }
    // Nothing new is installed either, until one of the two goes.
    let other = create_here(&shop, "three", "other").await;
    let refused = until(&world, &other, "False/SourceFailed", "").await;
    assert!(message(&refused).contains(&expected), "{}", message(&refused));
    for package in ["app", "tool"] {
        assert_eq!(shop.installed(package).await.as_deref(), Some("1.0.0"));
    }
    delete(&world, &tool).await;
    until(&world, &other, INSTALLED, "1.0.0").await;
    assert_eq!(shop.installed("tool").await, None);

    // One package that must not be there at all.
    limit(&world, json!({"constraints": [never(&shop, "app")]})).await;
    says(&world, &app, &expected).await;
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));
    delete(&world, &app).await;
    assert_eq!(shop.installed("app").await, None);
    until(&world, &other, INSTALLED, "1.0.0").await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_policy_stops_everything_new_and_keeps_what_is_installed() {
    let mut world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with("tool", "1.0.0", &[]).await;
    catalog(&shop).await;
    let (app, gone) = (create_here(&shop, "one", "app").await, create_here(&shop, "two", "tool").await);
    until(&world, &app, INSTALLED, "1.0.0").await;
    until(&world, &gone, INSTALLED, "1.0.0").await;
    let not = json!({"not": {"constraints": [{"cel": {"rule": "properties.exists("}}]}});
    for (spec, place) in [
        (json!({"packages": [{"name": "app"}, {"name": "tool", "version": "one"}]}), "spec.packages[1].version"),
        (json!({"constraints": [{"type": "olm.constraint", "value": not}]}), "spec.constraints[0]"),
    ] {
        let policy = limit(&world, spec).await;
        assert_eq!(state(&policy), "False/InvalidPolicy");
        assert!(accepted(&policy).message.contains(place), "{}", accepted(&policy).message);
        says(&world, &app, place).await;
        until(&world, &app, INSTALLED, "1.0.0").await;
    }
    // Neither an upgrade, nor a new package, nor a removal; also after a restart.
    let shop = shop.with("app", "1.1.0", &[]).await.with("new", "1.0.0", &[]).await;
    shop.publish().await;
    let new = create_here(&shop, "three", "new").await;
    let refused = until(&world, &new, "False/SourceFailed", "").await;
    let expected = format!("PlatformPolicy {} is invalid", world.platform());
    assert!(message(&refused).contains(&expected), "{}", message(&refused));
    operators(&world).delete(&gone, &DeleteParams::default()).await.expect("it exists");
    until(&world, &gone, "False/InvalidPolicy", "1.0.0").await;
    let packages = shop.packages;
    world.stop_controller().await;
    world.start_controller();
    let shop = Shop::reopened(&world, packages);
    let other = create_here(&shop, "four", "new").await;
    until(&world, &other, "False/SourceFailed", "").await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    let running = [shop.installed("app").await, shop.installed("tool").await, shop.installed("new").await];
    assert_eq!(running.each_ref().map(Option::as_deref), [Some("1.0.0"), Some("1.0.0"), None]);
    let resolution = resolutions(&world).get(&world.platform()).await.expect("it exists");
    let status = resolution.status.expect("a status");
    let resolved = find_condition(&status.conditions, ConditionType::Resolved).expect("the condition");
    assert_eq!(resolved.reason, "InvalidPolicy");

    let policy = limit(&world, json!({})).await;
    assert_eq!(state(&policy), "True/PolicyAccepted");
    until(&world, &app, INSTALLED, "1.1.0").await;
    until(&world, &new, INSTALLED, "1.0.0").await;
    wait::until(&operators(&world), &gone, "gone", |operator| operator.is_none()).await;
    assert_eq!(shop.installed("tool").await, None);
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_with_another_name_has_no_effect_and_says_so() {
    let mut world = World::new().await;
    if !world.is_embedded() {
        println!("skipped: a controller without a selector would reconcile what others have on this cluster");
        world.finish().await;
        return;
    }
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let mistyped = format!("{}s", world.platform());
    let spec = json!({"packages": []});
    let _: PlatformPolicy = world.create(json!({"metadata": {"name": mistyped}, "spec": spec})).await;
    // This controller selects by label, so the policy may be for another one.
    let app = create_here(&shop, "one", "app").await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    let policy = policies(&world).get(&mistyped).await.expect("it exists");
    assert!(policy.status.is_none_or(|status| status.conditions.is_empty()));
    world.stop_controller().await;
    world.start_controller_changed(|options| {
        options.watch_selector = WatchSelector::default();
    });
    let policy = judged(&world, &mistyped).await;
    assert_eq!(state(&policy), "False/PolicyNotUsed");
    let expected = format!("the controller reads PlatformPolicy {},", world.platform());
    assert!(accepted(&policy).message.contains(&expected), "{}", accepted(&policy).message);
    until(&world, &app, INSTALLED, "1.0.0").await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_needs_no_label_of_the_selector_and_the_schema_bounds_it() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let create = async |spec: Value| {
        let policy = json!({"metadata": {"name": world.platform()}, "spec": spec});
        let policy: PlatformPolicy = serde_json::from_value(policy).expect("a policy");
        policies(&world).create(&PostParams::default(), &policy).await
    };
    let packages = |count: usize| (0..count).map(|number| json!({"name": format!("p{number}")})).collect::<Vec<_>>();
    let constraint = json!({"type": "olm.constraint", "value": {}});
    for (spec, place) in [
        (json!({"packages": packages(501)}), "spec.packages"),
        (json!({"packages": [{"name": "a"}, {"name": "a"}]}), "spec.packages"),
        (json!({"packages": [{"name": "A"}]}), "spec.packages[0].name"),
        (json!({"packages": [{"name": "a", "version": "1".repeat(257)}]}), "spec.packages[0].version"),
        (json!({"packages": [{"name": "a", "version": ""}]}), "spec.packages[0].version"),
        (json!({"constraints": vec![constraint; 65]}), "spec.constraints"),
        (json!({"constraints": [{"type": "olm.label", "value": {}}]}), "spec.constraints[0].type"),
    ] {
        let refused = create(spec).await.expect_err("the schema refuses it").to_string();
        assert!(refused.contains(place), "{place}: {refused}");
    }
    create(json!({"packages": packages(500)})).await.expect("the schema accepts it");
    let app = create_here(&shop, "one", "app").await;
    let refused = until(&world, &app, "False/SourceFailed", "").await;
    assert!(message(&refused).contains("and 480 more"), "{}", message(&refused));
    assert!(judged(&world, &world.platform()).await.labels().is_empty());
    lift(&world).await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    world.finish().await;
}
