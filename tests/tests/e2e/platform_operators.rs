//! PlatformOperators: what all of them want is resolved together, and each reports its result.

use std::collections::BTreeSet;

use chandler_api::{
    BundleDeployment, ConditionType, PlatformOperator, PlatformOperatorStatus, Resolution, find_condition,
};
use chandler_registries::Registries;
use chandler_tests::{InProcess, World, wait, wait::eventually};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Namespace},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    idle_cost::Requests,
    shop::{Shop, catalog},
};

pub(crate) const INSTALLED: &str = "True/InstallSuccessful";

pub(crate) fn operators(world: &World) -> Api<PlatformOperator> {
    Api::all(world.client.clone())
}

pub(crate) fn resolutions(world: &World) -> Api<Resolution> {
    Api::all(world.client.clone())
}

/// Creates a PlatformOperator of a package. More fields of the spec may follow.
pub(crate) async fn create(shop: &Shop<'_>, name: &str, package: &str, more: Value) -> String {
    let (name, mut spec) = (shop.name(name), json!({"package": {"name": shop.name(package)}}));
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let _: PlatformOperator = shop.world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    name
}

/// Creates a PlatformOperator of a package in the namespace of the test.
pub(crate) async fn create_here(shop: &Shop<'_>, name: &str, package: &str) -> String {
    create(shop, name, package, json!({"installNamespace": shop.world.namespace})).await
}

pub(crate) async fn patch(world: &World, name: &str, spec: Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    operators(world).patch(name, &PatchParams::default(), &patch).await.expect("the spec is accepted");
}

fn installed_condition(operator: &PlatformOperator) -> Option<&Condition> {
    let status = operator.status.as_ref().filter(|it| it.observed_generation == operator.metadata.generation)?;
    find_condition(&status.conditions, ConditionType::Installed)
}

/// Waits until the condition Installed of the current generation has this status and reason, and the version is this one.
pub(crate) async fn until(world: &World, name: &str, expected: &str, version: &str) -> PlatformOperator {
    let what = format!("{expected} {version}");
    let api = operators(world);
    let found = wait::until(&api, name, &what, |operator| {
        operator.is_some_and(|operator| {
            let installed = installed_condition(operator);
            let chosen = operator.status.as_ref().and_then(|status| status.version.as_deref()).unwrap_or_default();
            installed.is_some_and(|it| format!("{}/{}", it.status, it.reason) == expected) && chosen == version
        })
    });
    found.await.expect("the PlatformOperator")
}

pub(crate) fn status(operator: &PlatformOperator) -> &PlatformOperatorStatus {
    operator.status.as_ref().expect("a status")
}

pub(crate) fn message(operator: &PlatformOperator) -> &str {
    &installed_condition(operator).expect("the condition").message
}

pub(crate) async fn delete(world: &World, name: &str) {
    operators(world).delete(name, &DeleteParams::default()).await.expect("the PlatformOperator exists");
    wait::until(&operators(world), name, "gone", |operator| operator.is_none()).await;
}

async fn version_of(world: &World, name: &str) -> Option<String> {
    let deployment = world.deployments().get_opt(name).await.expect("an answer");
    deployment.map(|it: BundleDeployment| it.annotations()["resolution.chandler.dev/version"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_of_two_catalogs_are_installed_and_go_with_their_platform_operators() {
    let world = World::new().await;
    let suggested = format!("{}-suggested", world.run());
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.suggesting("app", &suggested);
    let annex = Shop::titled(&world, "annex").with("tool", "2.0.0", &[]).await;
    catalog(&shop).await;
    catalog(&annex).await;
    let app = create(&shop, "one", "app", json!({})).await;
    let tool = create(&annex, "two", "tool", json!({})).await;
    let first = until(&world, &app, INSTALLED, "1.0.0").await;
    until(&world, &tool, INSTALLED, "2.0.0").await;
    assert_eq!(message(&first), format!("Successfully applied the {app} BundleDeployment resource"));
    let active = status(&first).active_bundle_deployment.as_ref().map(|it| it.name.as_str());
    assert_eq!(active, Some(app.as_str()));

    // The namespace that the bundle suggests, the namespace of the package, and the namespace of a package that no PlatformOperator names.
    assert_eq!(shop.installed_in(&suggested, "app").await.as_deref(), Some("1.0.0"));
    assert_eq!(shop.installed_in(&shop.name("tool"), "tool").await.as_deref(), Some("2.0.0"));
    assert_eq!(shop.installed_in(&world.platform(), "base").await.as_deref(), Some("1.0.0"));
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let namespace = namespaces.get(&suggested).await.expect("the namespace");
    assert_eq!(namespace.labels()["app.kubernetes.io/managed-by"], "chandler");

    // The dependency gets a PlatformOperator, and still works when that is deleted.
    let base = create(&shop, "three", "base", json!({})).await;
    until(&world, &base, INSTALLED, "1.0.0").await;
    assert_eq!(shop.installed_in(&world.platform(), "base").await.as_deref(), Some("1.0.0"), "it does not move");
    delete(&world, &base).await;
    assert_eq!(version_of(&world, &shop.name("base")).await.as_deref(), Some("1.0.0"), "app needs it");

    delete(&world, &app).await;
    assert_eq!(version_of(&world, &app).await, None);
    assert_eq!(version_of(&world, &tool).await.as_deref(), Some("2.0.0"));
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": shop.name("tool")}});
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &shop.name("tool"));
    let map = serde_json::from_value(map).expect("a ConfigMap");
    maps.create(&PostParams::default(), &map).await.expect("the namespace exists");
    delete(&world, &tool).await;
    assert_eq!(version_of(&world, &tool).await, None);
    assert!(resolutions(&world).get_opt(&world.platform()).await.expect("an answer").is_none());
    // The namespaces that were made for the two go with them, unless something is left.
    let stays = |name: String| {
        let namespaces = namespaces.clone();
        async move {
            let found = namespaces.get_opt(&name).await.expect("an answer");
            found.is_some_and(|it| it.metadata.deletion_timestamp.is_none())
        }
    };
    assert!(!stays(suggested).await, "it is empty");
    assert!(stays(shop.name("tool")).await, "it has a ConfigMap of a user");
    assert!(stays(world.platform()).await, "it is of all PlatformOperators");
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_checks_refuse_stops_no_other_platform_operator() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with("tool", "1.0.0", &[]).await;
    let shop = shop.with_broken("gone", "1.0.0", &[]);
    catalog(&shop).await;
    let gone = create_here(&shop, "one", "gone").await;
    let app = create_here(&shop, "two", "app").await;
    let tool = create_here(&shop, "three", "tool").await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    until(&world, &tool, INSTALLED, "1.0.0").await;
    let refused = until(&world, &gone, "False/InstallFailed", "").await;
    assert!(message(&refused).starts_with(&format!("{gone}: ")), "{}", message(&refused));
    assert!(status(&refused).active_bundle_deployment.is_none());

    // An upgrade, and a configuration that nothing accepts.
    let shop = shop.with_broken("app", "1.1.0", &[]).with("tool", "1.1.0", &[]).await;
    shop.publish().await;
    until(&world, &tool, INSTALLED, "1.1.0").await;
    let api = operators(&world);
    let stays = wait::until(&api, &app, "its upgrade is refused", |operator| {
        operator.and_then(installed_condition).is_some_and(|it| it.message.contains("the checks refuse its upgrade"))
    });
    let stays = stays.await.expect("the PlatformOperator");
    assert_eq!(status(&stays).version.as_deref(), Some("1.0.0"));
    assert_eq!(installed_condition(&stays).map(|it| it.status.as_str()), Some("True"));
    patch(&world, &tool, json!({"config": {"unknown": true}})).await;
    let refused = until(&world, &tool, "True/InstallSuccessful", "1.1.0").await;
    assert!(message(&refused).contains("unknown"), "{}", message(&refused));
    for name in [&gone, &app, &tool] {
        delete(&world, name).await;
    }
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_follows_the_catalog_and_an_edit_of_the_version() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let app = create_here(&shop, "one", "app").await;
    let before = until(&world, &app, INSTALLED, "1.0.0").await;
    let shop = shop.with("app", "1.1.0", &[]).await.with("app", "1.2.0", &[]).await;
    shop.publish().await;
    let after = until(&world, &app, INSTALLED, "1.2.0").await;
    eventually("the new version runs", || async { shop.installed("app").await.as_deref() == Some("1.2.0") }).await;
    let time = |operator: &PlatformOperator| installed_condition(operator).expect("it").last_transition_time.clone();
    assert_eq!(time(&before), time(&after), "the old version ran all the time");

    // A range that nothing meets says so, and what is installed stays.
    patch(&world, &app, json!({"version": ">=9"})).await;
    let refused = until(&world, &app, "False/SourceFailed", "1.2.0").await;
    assert!(message(&refused).contains(">=9") && message(&refused).contains("stays installed"), "{refused:?}");
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.2.0"));
    patch(&world, &app, json!({"version": ">=1.2"})).await;
    until(&world, &app, INSTALLED, "1.2.0").await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_be_satisfied_says_so_and_the_others_go_on() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with("needy", "1.0.0", &["nothing"]).await;
    catalog(&shop).await;
    let missing = create_here(&shop, "one", "missing").await;
    let unknown = create(&shop, "two", "unknown", json!({})).await;
    let needy = create_here(&shop, "three", "needy").await;
    let invalid = create(&shop, "four", "app", json!({"package": {"name": format!("{}_App", world.run())}})).await;
    let range =
        create(&shop, "five", "app", json!({"version": "not a range", "installNamespace": world.namespace})).await;
    for (name, expected) in [
        (&missing, "failed to find candidate"),
        (&missing, "no catalog has package"),
        (&unknown, "failed to find candidate"),
        (&unknown, "it is in no catalog"),
        (&needy, "needs package"),
        (&invalid, "cannot be the name of a package"),
        (&range, "is invalid"),
    ] {
        let refused = until(&world, name, "False/SourceFailed", "").await;
        assert!(message(&refused).contains(expected), "{refused:?}");
        assert!(status(&refused).active_bundle_deployment.is_none());
    }
    delete(&world, &range).await;
    let app = create_here(&shop, "six", "app").await;
    until(&world, &app, INSTALLED, "1.0.0").await;

    // The catalog gets what was missing.
    let shop = shop.with("unknown", "1.0.0", &[]).await.with("nothing", "1.0.0", &[]).await;
    shop.publish().await;
    until(&world, &unknown, INSTALLED, "1.0.0").await;
    until(&world, &needy, INSTALLED, "1.0.0").await;
    for name in [&missing, &unknown, &needy, &invalid, &app] {
        delete(&world, name).await;
    }
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_creation_decides_between_those_that_do_not_fit_together() {
    let world = World::new().await;
    let shop =
        Shop::new(&world).with("old", "1.0.0", &["base <2.0.0"]).await.with("new", "1.0.0", &["base >=2.0.0"]).await;
    let shop = shop.with("base", "1.0.0", &[]).await.with("base", "2.0.0", &[]).await;
    catalog(&shop).await;
    let new = create_here(&shop, "z", "new").await;
    let created = operators(&world).get(&new).await.expect("it").creation_timestamp().expect("a time").0;
    // Times are whole seconds, and the name decides between equal ones.
    eventually("the next second", || async { k8s_openapi::jiff::Timestamp::now().as_second() > created.as_second() })
        .await;
    let old = create_here(&shop, "a", "old").await;
    until(&world, &new, INSTALLED, "1.0.0").await;
    let refused = until(&world, &old, "False/SourceFailed", "").await;
    assert!(message(&refused).contains(&shop.name("base")), "{refused:?}");
    assert_eq!(version_of(&world, &shop.name("base")).await.as_deref(), Some("2.0.0"));

    delete(&world, &new).await;
    until(&world, &old, INSTALLED, "1.0.0").await;
    assert_eq!(version_of(&world, &shop.name("base")).await.as_deref(), Some("1.0.0"));
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_wishes_share_a_package_and_a_different_one_is_refused() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let first = create_here(&shop, "a", "app").await;
    until(&world, &first, INSTALLED, "1.0.0").await;
    let second = create_here(&shop, "b", "app").await;
    until(&world, &second, INSTALLED, "1.0.0").await;
    let third = create(&shop, "c", "app", json!({"version": "<2", "installNamespace": world.namespace})).await;
    let refused = until(&world, &third, "False/SourceFailed", "").await;
    assert!(message(&refused).contains(&format!("PlatformOperator {first}")), "{refused:?}");
    delete(&world, &first).await;
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"), "another one wants it");
    delete(&world, &second).await;
    until(&world, &third, INSTALLED, "1.0.0").await;
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_catalog_changes_nothing_even_across_a_restart() {
    let mut world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    let published = catalog(&shop).await;
    let app = create_here(&shop, "one", "app").await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    let uid = world.deployments().get(&app).await.expect("it").uid();
    let catalogs: Api<chandler_api::Catalog> = Api::all(world.client.clone());
    let away = json!({"spec": {"source": {"image": {"ref": format!("{}/away:v1", world.registry.address())}}}});
    catalogs.patch(&published, &PatchParams::default(), &Patch::Merge(away)).await.expect("the Catalog exists");
    wait::until(&catalogs, &published, "stale", |catalog| {
        let conditions =
            catalog.and_then(|it| it.status.as_ref()).map(|status| status.conditions.as_slice()).unwrap_or_default();
        find_condition(conditions, ConditionType::Ready).is_some_and(|ready| ready.reason == "CatalogStale")
    })
    .await;
    world.stop_controller().await;
    world.start_controller();
    patch(&world, &app, json!({"version": "<3"})).await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    catalogs.delete(&published, &DeleteParams::default()).await.expect("the Catalog exists");
    patch(&world, &app, json!({"version": "<4"})).await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    patch(&world, &app, json!({"version": ">=9"})).await;
    let refused = until(&world, &app, "False/SourceFailed", "1.0.0").await;
    assert!(message(&refused).contains("stays installed"), "{refused:?}");
    assert_eq!(world.deployments().get(&app).await.expect("it").uid(), uid);
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolution_that_others_made_is_left_alone_and_an_orphan_stays_installed() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with("other", "1.0.0", &[]).await;
    catalog(&shop).await;
    let spec = json!({"packages": [{"name": shop.name("other")}]});
    let _: Resolution = world.create(json!({"metadata": {"name": world.platform()}, "spec": spec})).await;
    let app = create_here(&shop, "one", "app").await;
    let refused = until(&world, &app, "False/InstallFailed", "").await;
    assert!(message(&refused).contains(&format!("Resolution {}", world.platform())), "{refused:?}");
    resolutions(&world).delete(&world.platform(), &DeleteParams::default()).await.expect("it exists");
    until(&world, &app, INSTALLED, "1.0.0").await;

    operators(&world)
        .delete(
            &app,
            &DeleteParams { propagation_policy: Some(kube::api::PropagationPolicy::Orphan), ..DeleteParams::default() },
        )
        .await
        .expect("it exists");
    if !world.collects_garbage() {
        // The garbage collector removes its finalizer.
        let deleted = operators(&world).get(&app).await.expect("it is being deleted");
        let kept: Vec<&String> = deleted.finalizers().iter().filter(|name| *name != "orphan").collect();
        let patch = Patch::Merge(json!({"metadata": {"finalizers": kept}}));
        operators(&world).patch(&app, &PatchParams::default(), &patch).await.expect("an update");
    }
    wait::until(&operators(&world), &app, "gone", |operator| operator.is_none()).await;
    let other = create_here(&shop, "two", "other").await;
    until(&world, &other, INSTALLED, "1.0.0").await;
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));

    // A new PlatformOperator takes it over.
    let app = create_here(&shop, "three", "app").await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    delete(&world, &app).await;
    assert_eq!(shop.installed("app").await, None);
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_that_contains_a_platform_operator_of_its_dependency_is_uninstalled() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await;
    let contained = json!({
        "apiVersion": "platform.openshift.io/v1alpha1", "kind": "PlatformOperator",
        "metadata": {"name": shop.name("contained"), "labels": {"chandler.dev/e2e-run": world.run().to_string()}},
        "spec": {"package": {"name": shop.name("base")}, "installNamespace": world.namespace},
    });
    let shop = shop.with_plain("app", "1.0.0", &["base"], &[contained]).await;
    catalog(&shop).await;
    let contained = shop.name("contained");
    let app = create_here(&shop, "one", "app").await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    until(&world, &contained, INSTALLED, "1.0.0").await;
    // The Resolution is deleted by hand. All that it installed goes, and app comes back with a new one.
    let old = resolutions(&world).get(&world.platform()).await.expect("the Resolution");
    resolutions(&world).delete(&world.platform(), &DeleteParams::default()).await.expect("it exists");
    wait::until(&resolutions(&world), &world.platform(), "replaced", |now| {
        now.is_some_and(|now| now.uid() != old.uid())
    })
    .await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    until(&world, &contained, INSTALLED, "1.0.0").await;
    // The PlatformOperator of app is deleted.
    delete(&world, &app).await;
    wait::until(&operators(&world), &contained, "gone with app", |operator| operator.is_none()).await;
    eventually("base is gone", || async { shop.installed("base").await.is_none() }).await;
    wait::until(&resolutions(&world), &world.platform(), "gone", |resolution| resolution.is_none()).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_controller_writes_nothing() {
    let mut world = World::in_process(InProcess::RecordsRequests).await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let (app, missing) = (create_here(&shop, "one", "app").await, create(&shop, "two", "missing", json!({})).await);
    until(&world, &app, INSTALLED, "1.0.0").await;
    until(&world, &missing, "False/SourceFailed", "").await;
    wait::until(&resolutions(&world), &world.platform(), "ready", |resolution| {
        let status = resolution.and_then(|it| it.status.as_ref());
        let ready = status.and_then(|status| find_condition(&status.conditions, ConditionType::Ready));
        ready.is_some_and(|ready| ready.status == "True")
    })
    .await;
    world.stop_controller().await;
    let before = versions(&world, &[&app, &missing]).await;
    let requests = Requests::default();
    world.start_controller_on(InProcess::RecordsRequests, requests.recording(&world.client));
    // Another PlatformOperator makes the controller look at all of them.
    let other = create(&Shop::new(&world), "three", "absent", json!({})).await;
    until(&world, &other, "False/SourceFailed", "").await;
    delete(&world, &other).await;
    assert_eq!(versions(&world, &[&app, &missing]).await, before);
    let writes = requests.writes(&other);
    let about: Vec<&String> =
        writes.iter().filter(|text| text.contains("platformoperators") || text.contains("/resolutions")).collect();
    assert_eq!(about, [""; 0]);
    world.stop_controller().await;
    world.start_controller();
    world.finish().await;
}

/// The versions of PlatformOperators and their Resolution.
async fn versions(world: &World, names: &[&str]) -> BTreeSet<Option<String>> {
    let mut versions = BTreeSet::new();
    for name in names {
        versions.insert(operators(world).get(name).await.expect("it exists").resource_version());
    }
    versions.insert(resolutions(world).get(&world.platform()).await.expect("it exists").resource_version());
    versions
}

#[tokio::test(flavor = "multi_thread")]
async fn the_set_is_rolled_back_until_the_administrator_ends_it() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let app = create_here(&shop, "one", "app").await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    let shop = shop.with("app", "1.1.0", &[]).await;
    shop.publish().await;
    until(&world, &app, INSTALLED, "1.1.0").await;
    eventually("the new version runs", || async { shop.installed("app").await.as_deref() == Some("1.1.0") }).await;
    let to_decision = async |number: Value| {
        let patch = Patch::Merge(json!({"spec": {"output": {"resolveSet": {"toDecision": number}}}}));
        resolutions(&world)
            .patch(&world.platform(), &PatchParams::default(), &patch)
            .await
            .expect("the spec is accepted");
    };
    to_decision(json!(1)).await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    eventually("the old version runs", || async { shop.installed("app").await.as_deref() == Some("1.0.0") }).await;

    // A new PlatformOperator has to wait, and the rollback is not undone.
    let missing = create(&shop, "two", "missing", json!({})).await;
    wait::until(&operators(&world), &missing, "it has a status", |it| it.and_then(installed_condition).is_some()).await;
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));
    to_decision(Value::Null).await;
    until(&world, &app, INSTALLED, "1.1.0").await;
    until(&world, &missing, "False/SourceFailed", "").await;
    delete(&world, &missing).await;
    delete(&world, &app).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_administrator_says_which_packages_may_be_wanted_and_what_is_installed_stays() {
    let mut world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with("tool", "1.0.0", &[]).await;
    let shop = shop.with("marked", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await.marking("marked");
    catalog(&shop).await;
    let app = create_here(&shop, "one", "app").await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    let [allowed, tool] = ["tool", "marked"].map(|package| shop.name(package));
    let packages = shop.packages;
    world.stop_controller().await;
    world.start_controller_changed(|options| options.platform_packages.must_be_operators = true);
    let shop = Shop::reopened(&world, packages);
    let (two, three) = (create_here(&shop, "two", "tool").await, create(&shop, "three", "marked", json!({})).await);
    let refused = until(&world, &two, "False/SourceFailed", "").await;
    assert!(message(&refused).contains("is not a platform operator"), "{refused:?}");
    assert!(message(&refused).contains("`chandler catalog search --platform`"), "{refused:?}");
    // Its dependency may be any package.
    until(&world, &three, INSTALLED, "1.0.0").await;
    until(&world, &app, INSTALLED, "1.0.0").await;

    // A list of the administrator, which may have other packages.
    let packages = shop.packages;
    world.stop_controller().await;
    world.start_controller_changed(|options| {
        options.platform_packages.allowed = [allowed, tool].into();
    });
    let shop = Shop::reopened(&world, packages);
    until(&world, &two, INSTALLED, "1.0.0").await;
    let four = create_here(&shop, "four", "base").await;
    let refused = until(&world, &four, "False/SourceFailed", "").await;
    assert!(message(&refused).contains("is not among the packages that PlatformOperators may want"), "{refused:?}");
    until(&world, &app, INSTALLED, "1.0.0").await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disconnected_cluster_installs_and_upgrades_from_mirrors() {
    let mut world = World::new().await;
    world.stop_controller().await;
    // Neither catalog nor bundles can be fetched from the registry that they name.
    let text = format!("[[registry]]\nprefix = \"upstream.invalid\"\nlocation = \"{}\"\n", world.registry.host());
    let mut registries = Registries::default();
    registries.add_file("registries.conf".as_ref(), &text).expect("settings");
    world.start_controller_changed(|options| options.registries = registries);
    let shop = Shop::new(&world).from("upstream.invalid").with("app", "1.0.0", &["base"]).await;
    let shop = shop.with("base", "1.0.0", &[]).await;
    let published = shop.publish().await.replace(&world.registry.address().to_string(), "upstream.invalid");
    let name = shop.name("mirrored");
    let source = json!({"type": "image", "image": {"ref": published}});
    let spec = json!({"source": source, "pollInterval": "1s"});
    let _: chandler_api::Catalog = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    let app = create_here(&shop, "one", "app").await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    let deployment = world.deployments().get(&app).await.expect("it exists");
    let image = deployment.spec.source.image.expect("an image").reference;
    assert!(image.starts_with("upstream.invalid/"), "the name of the origin stays: {image}");
    let shop = shop.with("app", "1.1.0", &["base"]).await;
    shop.publish().await;
    until(&world, &app, INSTALLED, "1.1.0").await;
    eventually("the new version runs", || async { shop.installed("app").await.as_deref() == Some("1.1.0") }).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_moves_from_a_release_payload_to_a_package_without_a_gap() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    // What the cluster-version operator applied, and owns as its controller.
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let map = |name: &str, owners: Value| {
        let metadata = json!({"name": name, "ownerReferences": owners});
        serde_json::from_value(json!({"metadata": metadata, "data": {"version": "payload"}})).expect("a ConfigMap")
    };
    let manager = PostParams { field_manager: Some("cluster-version-operator".to_owned()), ..PostParams::default() };
    let owner = maps.create(&manager, &map("cluster-version", json!([]))).await.expect("created");
    let owners = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "cluster-version", "uid": owner.uid(), "controller": true}]);
    let before = maps.create(&manager, &map("app", owners)).await.expect("created");

    // The release without the manifests has the PlatformOperator. What the payload left behind is not taken over by accident.
    let app = create_here(&shop, "one", "app").await;
    let refused = until(&world, &app, "False/InstallFailed", "").await;
    assert!(message(&refused).contains("ConfigMap"), "{refused:?}");
    assert_eq!(shop.installed("app").await.as_deref(), Some("payload"));
    let protection = async |value: Value| {
        let patch = Patch::Merge(json!({"spec": {"output": {"resolveSet": {"collisionProtection": value}}}}));
        resolutions(&world).patch(&world.platform(), &PatchParams::default(), &patch).await.expect("an update");
    };
    protection(json!("None")).await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    let after = maps.get("app").await.expect("it exists");
    assert_eq!(after.uid(), before.uid(), "it was never deleted");
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));
    protection(Value::Null).await;
    until(&world, &app, INSTALLED, "1.0.0").await;
    delete(&world, &app).await;
    assert_eq!(shop.installed("app").await, None);
    world.finish().await;
}
