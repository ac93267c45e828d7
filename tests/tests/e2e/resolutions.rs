//! Resolutions: packages that are wanted become a set of BundleDeployments, which follows the catalogs and the spec.

use std::collections::BTreeMap;

use chandler_api::{ConditionType, Resolution, find_condition};
use chandler_engine::Limits;
use chandler_tests::{InProcess, World, wait};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    idle_cost::Requests,
    shop::{Shop, catalog},
};

pub(crate) fn resolutions(world: &World) -> Api<Resolution> {
    Api::all(world.client.clone())
}

/// Creates a Resolution that installs packages.
pub(crate) async fn create(shop: &Shop<'_>, name: &str, packages: &[(&str, &str)]) {
    let output = json!({"type": "ResolveSet", "resolveSet": {"installNamespace": shop.world.namespace}});
    let spec = json!({"packages": wanted(shop, packages), "output": output});
    let _: Resolution = shop.world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
}

pub(crate) fn wanted(shop: &Shop<'_>, packages: &[(&str, &str)]) -> Value {
    let request = |(package, range): &(&str, &str)| {
        let mut request = json!({"name": shop.name(package)});
        if !range.is_empty() {
            request["version"] = json!(range);
        }
        request
    };
    packages.iter().map(request).collect()
}

pub(crate) async fn patch(world: &World, name: &str, spec: Value) {
    let patch = Patch::Merge(json!({"spec": spec}));
    resolutions(world).patch(name, &PatchParams::default(), &patch).await.expect("the spec is accepted");
}

/// Creates a ConfigMap without an owner.
async fn create_map(world: &World, name: &str) {
    let map = serde_json::from_value(json!({"metadata": {"name": name}})).expect("a ConfigMap");
    world.config_maps().create(&PostParams::default(), &map).await.expect("the ConfigMap is created");
}

/// Waits until the condition Ready of the current generation has this status and reason, and more holds.
pub(crate) async fn until(world: &World, name: &str, expected: &str, more: impl Fn(&Resolution) -> bool) -> Resolution {
    let api = resolutions(world);
    let found = wait::until(&api, name, expected, |resolution| {
        resolution.is_some_and(|resolution| {
            let status = resolution.status.as_ref();
            let status = status.filter(|status| status.observed_generation == resolution.metadata.generation);
            let ready = status.and_then(|status| find_condition(&status.conditions, ConditionType::Ready));
            ready.is_some_and(|ready| format!("{}/{}", ready.status, ready.reason) == expected) && more(resolution)
        })
    });
    found.await.expect("the Resolution")
}

/// Waits until the set is complete with these packages and versions.
pub(crate) async fn installed(shop: &Shop<'_>, name: &str, members: &[(&str, &str)]) -> Resolution {
    let expected: Vec<(String, String)> =
        members.iter().map(|(package, version)| (shop.name(package), (*version).to_owned())).collect();
    until(shop.world, name, "True/Succeeded", |resolution| versions(resolution) == expected).await
}

pub(crate) fn versions(resolution: &Resolution) -> Vec<(String, String)> {
    let members = resolution.status.iter().flat_map(|status| &status.members);
    members.map(|member| (member.package.clone(), member.version.clone())).collect()
}

pub(crate) fn message(resolution: &Resolution, kind: ConditionType) -> String {
    let conditions = &resolution.status.as_ref().expect("a status").conditions;
    find_condition(conditions, kind).expect("the condition").message.clone()
}

/// The decisions that are kept in the system namespace.
async fn decisions(world: &World, name: &str) -> Vec<String> {
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let selected = ListParams::default().labels(&format!("resolution.chandler.dev/name={name}"));
    let maps = maps.list(&selected).await.expect("the API server answers");
    maps.items.iter().map(kube::ResourceExt::name_any).collect()
}

pub(crate) async fn delete(world: &World, name: &str) {
    resolutions(world).delete(name, &DeleteParams::default()).await.expect("the Resolution exists");
    wait::until(&resolutions(world), name, "gone", |resolution| resolution.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_becomes_a_set_that_pivots_rolls_back_and_goes_without_a_trace() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["left", "right"]).await;
    let shop = shop.with("left", "1.0.0", &["base"]).await.with("right", "1.0.0", &["base"]).await;
    let shop = shop.with("base", "1.0.0", &[]).await.with("extra", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    create(&shop, &name, &[("app", "")]).await;
    let diamond = [("app", "1.0.0"), ("base", "1.0.0"), ("left", "1.0.0"), ("right", "1.0.0")];
    let first = installed(&shop, &name, &diamond).await;
    assert_eq!(first.status.as_ref().and_then(|status| status.decision), Some(1));
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));
    // Who needs another was created after it.
    let created = async |package: &str| {
        let deployment = world.deployments().get(&shop.name(package)).await.expect("a member");
        deployment.metadata.creation_timestamp.expect("a time").0
    };
    let (base, left, app) = (created("base").await, created("left").await, created("app").await);
    assert!(base <= left && left <= app, "{base} {left} {app}");

    // The set stays, without the packages that are no longer wanted, and with new ones.
    patch(&world, &name, json!({"packages": wanted(&shop, &[("left", ""), ("extra", "")])})).await;
    let pivoted = [("base", "1.0.0"), ("extra", "1.0.0"), ("left", "1.0.0")];
    let second = installed(&shop, &name, &pivoted).await;
    assert_eq!(second.status.as_ref().and_then(|status| status.decision), Some(2));
    assert_eq!((shop.installed("app").await, shop.installed("right").await), (None, None));
    assert!(world.deployments().get_opt(&shop.name("app")).await.expect("an answer").is_none());

    // A package that cannot be installed does not affect the set, and is explained.
    patch(&world, &name, json!({"packages": wanted(&shop, &[("left", ">=2")])})).await;
    let refused = until(&world, &name, "False/NotSatisfiable", |_| true).await;
    assert!(!refused.status.as_ref().expect("a status").explanation.is_empty());
    assert!(message(&refused, ConditionType::Ready).contains(&shop.name("left")));
    assert_eq!(
        find_condition(&refused.status.as_ref().expect("a status").conditions, ConditionType::Installed)
            .map(|it| it.status.as_str()),
        Some("True")
    );
    assert_eq!(shop.installed("extra").await.as_deref(), Some("1.0.0"));

    // Back to the first decision, and forth again.
    patch(&world, &name, json!({"output": {"resolveSet": {"toDecision": 1}}})).await;
    until(&world, &name, "True/RolledBack", |resolution| {
        resolution.status.as_ref().is_some_and(|status| status.decision == Some(1))
    })
    .await;
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));
    assert_eq!(shop.installed("extra").await, None);
    patch(&world, &name, json!({"packages": wanted(&shop, &[("left", ""), ("extra", "")]), "output": {"resolveSet": {"toDecision": null}}})).await;
    let again = installed(&shop, &name, &pivoted).await;
    assert_eq!(
        again.status.as_ref().and_then(|status| status.decision),
        Some(2),
        "the same decision is not stored twice"
    );
    assert_eq!(decisions(&world, &name).await.len(), 2);

    delete(&world, &name).await;
    assert_eq!(decisions(&world, &name).await, Vec::<String>::new());
    for package in ["app", "base", "left", "right", "extra"] {
        assert_eq!(shop.installed(package).await, None, "{package}");
        assert!(world.deployments().get_opt(&shop.name(package)).await.expect("an answer").is_none());
    }
    assert!(world.deployments().get_opt(&format!("resolveset-{name}")).await.expect("an answer").is_none());
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_follows_the_upgrades_of_the_catalog_step_by_step() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    create(&shop, &name, &[("app", "")]).await;
    installed(&shop, &name, &[("app", "1.0.0")]).await;
    let shop = shop.with("app", "1.1.0", &[]).await.with("app", "1.2.0", &[]).await;
    shop.publish().await;
    installed(&shop, &name, &[("app", "1.2.0")]).await;
    let deployment = world.ready(&shop.name("app")).await;
    let history: Vec<_> =
        deployment.status.expect("a status").history.iter().filter_map(|it| it.version.clone()).collect();
    assert_eq!(history, ["1.0.0", "1.1.0", "1.2.0"]);
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dependencies_are_upgraded_as_the_spec_says() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await.with("left", "1.0.0", &["base"]).await;
    let shop = shop.with("top", "1.0.0", &["base", "left"]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    create(&shop, &name, &[("top", "")]).await;
    installed(&shop, &name, &[("base", "1.0.0"), ("left", "1.0.0"), ("top", "1.0.0")]).await;
    patch(&world, &name, json!({"dependencyUpgrades": "Pinned"})).await;
    let shop = shop.with("base", "1.1.0", &[]).await.with("base", "2.0.0", &[]).await;
    let shop = shop.with("left", "1.1.0", &["base"]).await.with("top", "1.1.0", &["base >=2.0.0", "left"]).await;
    shop.publish().await;
    // The status lists packages that are held back, with the reason.
    let held = until(&world, &name, "True/Succeeded", |it| {
        it.status.as_ref().is_some_and(|status| !status.alternatives.is_empty())
    })
    .await;
    let one = |package: &str, version: &str| {
        format!("with dependencyUpgrades: Latest: {} {version} instead of 1.0.0", shop.name(package))
    };
    let alternatives = &held.status.as_ref().expect("a status").alternatives;
    let expected = [one("base", "2.0.0"), one("left", "1.1.0"), one("top", "1.1.0")];
    assert!(expected.iter().all(|line| alternatives.contains(line)), "{alternatives:?}");
    let members = &held.status.as_ref().expect("a status").members;
    let held_back = |package: &str| {
        let member = members.iter().find(|it| it.package == shop.name(package)).expect("a member");
        member.held_back.clone().map(|it| (it.version, it.explanation.join("; "))).unwrap_or_default()
    };
    let (version, why) = held_back("top");
    assert!(
        version == "1.1.0" && why.contains(&format!("{} 1.0.0 is installed and stays", shop.name("base"))),
        "{why}"
    );
    assert_eq!(held_back("base").0, "2.0.0");
    assert_eq!(shop.installed("top").await.as_deref(), Some("1.0.0"));

    patch(&world, &name, json!({"dependencyUpgrades": "Minimal"})).await;
    installed(&shop, &name, &[("base", "2.0.0"), ("left", "1.0.0"), ("top", "1.1.0")]).await;
    patch(&world, &name, json!({"dependencyUpgrades": null})).await;
    installed(&shop, &name, &[("base", "2.0.0"), ("left", "1.1.0"), ("top", "1.1.0")]).await;
    delete(&world, &name).await;
    world.finish().await;
}

/// The catalog does not have `minKubeVersion`: the bundle does.
#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_needs_a_newer_kubernetes_gives_way_to_the_next_best() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("base", "1.1.0", &[]).await.with_future("base", "1.2.0").await;
    let shop = shop.with_future("base", "1.3.0").await.with_future("new", "1.0.0").await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    create(&shop, &name, &[("app", "")]).await;
    let found = installed(&shop, &name, &[("app", "1.0.0"), ("base", "1.1.0")]).await;
    let status = found.status.as_ref().expect("a status");
    assert_eq!(status.bundles, format!("{}.v1.0.0, {}.v1.1.0", shop.name("app"), shop.name("base")));
    assert!(status.pending.is_none(), "{:?}", status.pending);
    let deployment = world.ready(&shop.name("base")).await;
    let history = deployment.status.expect("a status").history;
    let versions: Vec<_> = history.iter().filter_map(|it| it.version.clone()).collect();
    assert_eq!(versions, ["1.1.0"], "the others were never installed");

    // Where nothing else is left, the explanation says why.
    patch(&world, &name, json!({"packages": wanted(&shop, &[("app", ""), ("new", "")])})).await;
    let refused = until(&world, &name, "False/NotSatisfiable", |_| true).await;
    let text = message(&refused, ConditionType::Ready);
    let why = format!("{} 1.0.0 is not possible here: the operator needs Kubernetes 9.99.0", shop.name("new"));
    assert!(text.contains(&why), "{text}");
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"), "the set stays");
    delete(&world, &name).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_member_stops_what_depends_on_it_and_nothing_else() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with_failing("base", "1.0.0", &[]).await;
    // Others that depend on each other are in the same stages, and in a later one.
    let shop = shop.with("roof", "1.0.0", &["walls", "floor"]).await.with("walls", "1.0.0", &["floor"]).await;
    let shop = shop.with("floor", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    create(&shop, &name, &[("app", ""), ("roof", "")]).await;
    world.ready(&shop.name("roof")).await;
    wait::until(&world.deployments(), &shop.name("base"), "created", |base| base.is_some()).await;
    until(&world, &name, "False/RollingOut", |_| true).await;
    assert!(world.deployments().get_opt(&shop.name("app")).await.expect("an answer").is_none(), "it needs base");
    delete(&world, &name).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_before_all_members_pass_the_checks() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("other", "1.0.0", &[]).await;
    let shop = shop.with_broken("base", "1.0.0", &[]).with_map("left", "1.0.0", "both").await;
    let shop = shop.with_map("right", "1.0.0", "both").await.with_map("taken", "1.0.0", "theirs").await;
    catalog(&shop).await;
    create_map(&world, "theirs").await;
    let name = format!("{}-wish", world.run());
    let unwritten = async |packages: &[&str]| {
        for package in packages {
            let member = world.deployments().get_opt(&shop.name(package)).await.expect("an answer");
            assert!(member.is_none(), "{package} was written");
        }
    };
    create(&shop, &name, &[("app", ""), ("other", "")]).await;
    let refused = until(&world, &name, "False/PreflightFailed", |_| true).await;
    let text = message(&refused, ConditionType::Ready);
    assert!(text.contains(&format!("{}: ", shop.name("base"))) && text.contains("broken"), "{text}");
    unwritten(&["app", "base", "other"]).await;

    patch(&world, &name, json!({"packages": wanted(&shop, &[("left", ""), ("right", ""), ("taken", "")])})).await;
    let refused = until(&world, &name, "False/PreflightFailed", |resolution| {
        message(resolution, ConditionType::Ready).contains("both")
    });
    let text = message(&refused.await, ConditionType::Ready);
    let both = format!("{} and {}, and can belong to one only", shop.name("left"), shop.name("right"));
    assert!(text.contains(&both) && text.contains(&format!("{}: ", shop.name("taken"))), "{text}");
    unwritten(&["left", "right", "taken"]).await;

    patch(&world, &name, json!({"packages": wanted(&shop, &[("left", ""), ("other", "")])})).await;
    installed(&shop, &name, &[("left", "1.0.0"), ("other", "1.0.0")]).await;
    delete(&world, &name).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_optional_package_that_the_checks_refuse_is_left_out_until_they_pass() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with("web", "1.0.0", &["base"]).await;
    let shop = shop.with_broken("base", "1.0.0", &[]).with_map("left", "1.0.0", "both").await;
    let shop = shop.with_map("right", "1.0.0", "both").await.with_map("taken", "1.0.0", "theirs").await;
    catalog(&shop).await;
    create_map(&world, "theirs").await;
    let name = format!("{}-wish", world.run());
    let mut packages = wanted(&shop, &[("app", ""), ("web", ""), ("right", ""), ("left", ""), ("taken", "")]);
    for package in packages.as_array_mut().expect("a list").iter_mut().skip(1) {
        package["optional"] = json!(true);
    }
    let output = json!({"type": "ResolveSet", "resolveSet": {"installNamespace": world.namespace}});
    let spec = json!({"packages": packages, "output": output});
    let _: Resolution = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    let found = installed(&shop, &name, &[("app", "1.0.0"), ("right", "1.0.0")]).await;
    let left_out = found.status.expect("a status").left_out;
    let reasons: Vec<(&str, &str)> = left_out.iter().map(|it| (it.package.as_str(), it.reason.as_str())).collect();
    let (base, left, taken, web) = (shop.name("base"), shop.name("left"), shop.name("taken"), shop.name("web"));
    assert_eq!(reasons, [left.as_str(), &taken, &web].map(|package| (package, "PreflightFailed")));
    let explanations: Vec<String> = left_out.iter().map(|it| it.explanation.join("; ")).collect();
    assert!(explanations[0].contains("both"), "{explanations:?}");
    assert!(explanations[1].contains("theirs"), "{explanations:?}");
    assert!(explanations[2].starts_with(&format!("{base}: ")), "{explanations:?}");
    for package in [&base, &left, &taken, &web] {
        assert!(world.deployments().get_opt(package).await.expect("an answer").is_none(), "{package} was written");
    }

    // The controller watches nothing that shows that the name is free.
    world.config_maps().delete("theirs", &DeleteParams::default()).await.expect("the ConfigMap exists");
    installed(&shop, &name, &[("app", "1.0.0"), ("right", "1.0.0"), ("taken", "1.0.0")]).await;
    delete(&world, &name).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_fails_is_rolled_back_if_the_spec_says_so() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    create(&shop, &name, &[("app", "")]).await;
    installed(&shop, &name, &[("app", "1.0.0")]).await;
    patch(&world, &name, json!({"output": {"resolveSet": {"onFailure": "Rollback"}}})).await;
    let set = format!("resolveset-{name}");
    let deadline = Patch::Merge(json!({"spec": {"rollout": {"progressDeadlineSeconds": 2}}}));
    world.deployments().patch(&set, &PatchParams::default(), &deadline).await.expect("the set exists");
    let shop = shop.with_failing("app", "1.1.0", &[]).await;
    shop.publish().await;
    let rolled_back = until(&world, &name, "False/RolledBack", |_| true).await;
    let status = rolled_back.status.as_ref().expect("a status");
    assert_eq!(status.decision, Some(1));
    assert_eq!(versions(&rolled_back), [(shop.name("app"), "1.0.0".to_owned())]);
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));
    let stored = world.deployments().get(&set).await.expect("the set");
    let rollout = stored.spec.rollout.expect("settings");
    assert_eq!(rollout.progress_deadline_seconds, Some(2), "what others set stays");

    // A catalog without the version that failed leads past it.
    let mut shop = shop.with("app", "1.2.0", &[]).await;
    shop.packages.entry("app").or_default().retain(|version| version.number != "1.1.0");
    shop.publish().await;
    installed(&shop, &name, &[("app", "1.2.0")]).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_installed_is_left_alone() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("base", "2.0.0", &[]).await;
    catalog(&shop).await;
    let own = shop.name("base");
    let old = shop.packages["base"][0].image.clone();
    world.deploy(&own, "core-rukpak-io-registry", &old).await;
    world.ready(&own).await;
    let (name, second) = (format!("{}-wish", world.run()), format!("{}-second", world.run()));
    create(&shop, &name, &[("app", "")]).await;
    let found = installed(&shop, &name, &[("app", "1.0.0"), ("base", "1.0.0")]).await;
    let member = &found.status.as_ref().expect("a status").members[1];
    assert_eq!((member.bundle_deployment.as_deref(), member.state.as_deref()), (Some(own.as_str()), Some("Succeeded")));

    create(&shop, &second, &[("base", ">=2")]).await;
    let refused = until(&world, &second, "False/NotSatisfiable", |_| true).await;
    assert!(message(&refused, ConditionType::Ready).contains(&format!("BundleDeployment {own}")), "{refused:?}");
    delete(&world, &name).await;
    assert_eq!(shop.installed("base").await.as_deref(), Some("1.0.0"));
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_waits_for_approval_or_for_its_window() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    create(&shop, &name, &[("app", "")]).await;
    installed(&shop, &name, &[("app", "1.0.0")]).await;

    // A window of a minute, twelve hours from now.
    let start = k8s_openapi::jiff::Timestamp::now() + k8s_openapi::jiff::SignedDuration::from_hours(12);
    let start = start.strftime("%H:%M").to_string();
    patch(&world, &name, json!({"maintenanceWindows": [{"start": start, "duration": "1m"}]})).await;
    let shop = shop.with("app", "1.1.0", &[]).await;
    shop.publish().await;
    let waits = until(&world, &name, "False/OutsideMaintenanceWindow", |_| true).await;
    let pending = waits.status.as_ref().and_then(|status| status.pending.clone()).expect("a pending decision");
    assert_eq!(pending.changes, [format!("change {} from 1.0.0 to 1.1.0", shop.name("app"))]);
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));

    patch(&world, &name, json!({"maintenanceWindows": null, "approval": "Manual"})).await;
    until(&world, &name, "False/ApprovalRequired", |_| true).await;
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));
    patch(&world, &name, json!({"approval": null})).await;
    installed(&shop, &name, &[("app", "1.1.0")]).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_output_the_decision_is_only_reported() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let catalog = catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    let spec = json!({"packages": wanted(&shop, &[("app", "")])});
    let _: Resolution = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    let found = installed(&shop, &name, &[("app", "1.0.0"), ("base", "1.0.0")]).await;
    let status = found.status.expect("a status");
    assert_eq!(status.catalogs.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), [catalog.as_str()]);
    assert!(status.decision.is_none() && status.bundle_deployment.is_none());
    assert!(world.deployments().get_opt(&shop.name("app")).await.expect("an answer").is_none());
    world.finish().await;
}

/// The versions of BundleDeployments, Resolutions and decisions of the run.
async fn stored(world: &World) -> BTreeMap<String, Option<String>> {
    let run = world.run().to_string();
    let mut versions = BTreeMap::new();
    let all = ListParams::default();
    for it in world.deployments().list(&all).await.expect("an answer") {
        versions.insert(format!("BundleDeployment {}", it.name_any()), it.resource_version());
    }
    for it in resolutions(world).list(&all).await.expect("an answer") {
        versions.insert(format!("Resolution {}", it.name_any()), it.resource_version());
    }
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.system_namespace);
    for it in maps.list(&all).await.expect("an answer") {
        versions.insert(format!("ConfigMap {}", it.name_any()), it.resource_version());
    }
    versions.retain(|name, _| name.contains(&run));
    versions
}

#[tokio::test(flavor = "multi_thread")]
async fn sets_without_changes_cost_no_write_and_no_call() {
    const SETS: [[&str; 3]; 4] = [["a", "b", "c"], ["d", "e", "f"], ["g", "h", "i"], ["j", "k", "l"]];
    let mut world = World::in_process(InProcess::RecordsRequests).await;
    let mut shop = Shop::new(&world);
    for [first, second, third] in SETS {
        shop = shop.with(first, "1.0.0", &[second]).await.with(second, "1.0.0", &[]).await;
        shop = shop.with(third, "1.0.0", &[]).await;
    }
    catalog(&shop).await;
    let names: Vec<String> = SETS.iter().map(|[first, ..]| format!("{}-{first}-wish", world.run())).collect();
    for (name, set) in names.iter().zip(SETS) {
        create(&shop, name, &[(set[0], ""), (set[2], "")]).await;
    }
    for (name, set) in names.iter().zip(SETS) {
        installed(&shop, name, &set.map(|package| (package, "1.0.0"))).await;
    }
    let wish = wanted(&shop, &[("a", "")]);
    world.stop_controller().await;
    let requests = Requests::default();
    let mut before = stored(&world).await;
    world.start_controller_with(InProcess::RecordsRequests, requests.recording(&world.client), |options| {
        // One after another, so that earlier work is complete; and every provisioner call fails.
        options.concurrency = 1;
        options.ceiling = Limits { objects: 0, ..Limits::default() };
    });
    for round in ["restart", "annotated"] {
        // An answer for another Resolution comes after theirs.
        let probe = format!("{}-probe-{round}", world.run());
        let _: Resolution = world.create(json!({"metadata": {"name": probe}, "spec": {"packages": wish}})).await;
        until(&world, &probe, "True/Succeeded", |_| true).await;
        let mut now = stored(&world).await;
        now.retain(|name, _| !name.contains("-probe-"));
        assert_eq!((now, requests.writes("-probe-")), (before, Vec::new()), "{round}");
        requests.forget();
        for name in &names {
            let annotation = Patch::Merge(json!({"metadata": {"annotations": {"example.com/touched": round}}}));
            resolutions(&world).patch(name, &PatchParams::default(), &annotation).await.expect("an annotation");
        }
        before = stored(&world).await;
        before.retain(|name, _| !name.contains("-probe-"));
    }
    world.stop_controller().await;
    world.start_controller();
    world.finish().await;
}
