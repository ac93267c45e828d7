//! ClusterOperators report PlatformOperators to OpenShift, under its contract, and nothing is written where nothing is to report.

use std::time::Duration;

use chandler_api::{ClusterOperator, ClusterOperatorStatus, OperandVersion, PlatformOperator};
use chandler_controller::{ClusterOperatorMode, ClusterOperatorSettings, Options};
use chandler_resolution::cluster_operators::{
    Names, Thresholds,
    judge::{Effect, Mode, judge, permits_minor_update},
};
use chandler_tests::{InProcess, World, preflight::install_foreign_crd, wait, wait::eventually};
use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, CustomResourceExt as _, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher},
};
use serde_json::{Value, json};

use crate::{
    controller_rights::deployed,
    idle_cost::Requests,
    permissions,
    shop::{Shop, catalog},
};

pub(crate) const VERSION: &str = "4.19.8-platform";

pub(crate) fn cluster_operators(world: &World) -> Api<ClusterOperator> {
    Api::all(world.client.clone())
}

pub(crate) fn names(world: &World) -> Names {
    Names::with_suffix(format!("-{}", world.run()))
}

fn settings(world: &World, mode: ClusterOperatorMode) -> ClusterOperatorSettings {
    ClusterOperatorSettings {
        mode,
        names: names(world),
        version: VERSION.to_owned(),
        // Everything that is wrong is reported at once.
        thresholds: Thresholds { installation: Duration::ZERO, outage: Duration::ZERO, failure: Duration::ZERO },
        ..ClusterOperatorSettings::default()
    }
}

/// A world with the CRD of ClusterOperators, whose controller writes them.
pub(crate) async fn world(mode: ClusterOperatorMode) -> World {
    let mut world = World::new().await;
    world.stop_controller().await;
    install_foreign_crd(&world.client, &ClusterOperator::crd()).await.expect("the CRD is installed");
    start(&mut world, mode);
    world
}

fn start(world: &mut World, mode: ClusterOperatorMode) {
    let settings = settings(world, mode);
    world.start_controller_changed(|options| options.cluster_operators = settings);
}

fn start_on(world: &mut World, client: Client, mode: ClusterOperatorMode) {
    let settings = settings(world, mode);
    let reason = InProcess::RecordsRequests;
    world.start_controller_with(reason, client, |options| options.cluster_operators = settings);
}

/// Deletes what the test created, while a controller runs that does not create ClusterOperators again.
pub(crate) async fn finish(mut world: World) {
    world.stop_controller().await;
    world.start_controller();
    world.finish().await;
}

fn expected(version: &str) -> [OperandVersion; 1] {
    [OperandVersion { name: "operator".to_owned(), version: version.to_owned() }]
}

/// Whether the cluster-version operator is content, and an upgrade to the next minor version may begin.
fn is_accepted(status: &ClusterOperatorStatus, version: &str) -> bool {
    judge(&expected(version), status, Mode::Updating).is_ok() && permits_minor_update(status).is_ok()
}

pub(crate) async fn until(
    world: &World,
    name: &str,
    what: &str,
    holds: impl Fn(&ClusterOperatorStatus) -> bool,
) -> ClusterOperator {
    let api = cluster_operators(world);
    let found = wait::until(&api, name, what, |operator| {
        operator.and_then(|operator| operator.status.as_ref()).is_some_and(&holds)
    });
    found.await.expect("the ClusterOperator")
}

pub(crate) fn condition(status: &ClusterOperatorStatus, kind: &str) -> String {
    let condition = status.conditions.iter().find(|it| it.kind == kind);
    condition.map(|it| format!("{}/{}: {}", it.status, it.reason, it.message)).unwrap_or_default()
}

/// Creates a PlatformOperator of a package.
pub(crate) async fn wish(shop: &Shop<'_>, name: &str, package: &str) -> String {
    let name = shop.name(name);
    let spec = json!({"package": {"name": shop.name(package)}, "installNamespace": shop.world.namespace});
    let _: PlatformOperator = shop.world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    name
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_reported_until_they_are_gone() {
    let world = world(ClusterOperatorMode::Each).await;
    let (all, core) = (names(&world).aggregated(), names(&world).core());
    let none = until(&world, &all, "accepted", |status| is_accepted(status, VERSION)).await;
    let status = none.status.as_ref().expect("a status");
    assert_eq!(condition(status, "Available"), "True/AsExpected: No platform operators are present in the cluster");
    until(&world, &core, "accepted", |status| is_accepted(status, VERSION)).await;

    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await.with_broken("lost", "1.0.0", &[]);
    catalog(&shop).await;
    let app = wish(&shop, "one", "app").await;
    let each = names(&world).package(&app);
    until(&world, &each, "accepted", |status| is_accepted(status, "1.0.0")).await;
    let installed = until(&world, &all, "accepted with a package", |status| {
        is_accepted(status, VERSION) && condition(status, "Available").contains("successful state")
    })
    .await;
    let related = installed.status.expect("a status").related_objects;
    for (resource, name) in [
        ("bundledeployments", app.clone()),
        ("namespaces", world.namespace.clone()),
        ("namespaces", world.system_namespace.clone()),
        ("platformoperators", String::new()),
        ("resolutions", world.platform()),
    ] {
        assert!(related.iter().any(|it| it.resource == resource && it.name == name), "{resource} {name}: {related:?}");
    }

    // One that cannot be installed fails the update of the cluster; the other one is as it was.
    let lost = wish(&shop, "two", "lost").await;
    let failed = until(&world, &all, "unavailable", |status| {
        judge(&expected(VERSION), status, Mode::Updating).is_err_and(|it| it.effect == Effect::Fail)
    })
    .await;
    let status = failed.status.as_ref().expect("a status");
    assert!(
        condition(status, "Degraded").starts_with(&format!("True/PlatformOperatorError: Platform operator {lost} "))
    );
    let alone = until(&world, &each, "accepted", |status| is_accepted(status, "1.0.0")).await;
    assert!(alone.labels().contains_key("chandler.dev/cluster-operator-of"));

    let operators: Api<PlatformOperator> = Api::all(world.client.clone());
    for operator in [&lost, &app] {
        operators.delete(operator, &DeleteParams::default()).await.expect("it exists");
    }
    for operator in [&app, &lost] {
        wait::until(&cluster_operators(&world), &names(&world).package(operator), "gone", |it| it.is_none()).await;
    }
    until(&world, &all, "as at first", |status| condition(status, "Available").contains("No platform operators")).await;
    finish(world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_node_stays_available_while_its_only_replica_and_its_only_controller_are_replaced() {
    let mut world = World::new().await;
    install_foreign_crd(&world.client, &ClusterOperator::crd()).await.expect("the CRD is installed");
    let shop = Shop::new(&world).with_single("app", "1.0.0").await;
    catalog(&shop).await;
    let (app, all) = (wish(&shop, "one", "app").await, names(&world).aggregated());
    let packages = shop.packages;
    let by_default = |settings: &mut ClusterOperatorSettings| settings.thresholds = Thresholds::default();
    restart(&mut world, ClusterOperatorMode::Each, by_default).await;
    until(&world, &all, "accepted", |status| is_accepted(status, VERSION)).await;
    until(&world, &names(&world).package(&app), "accepted", |status| is_accepted(status, "1.0.0")).await;

    // All states from now on, while the controller restarts in the upgrade.
    let mut changes = watcher(cluster_operators(&world), watcher::Config::default()).applied_objects().boxed();
    changes.next().await.expect("a state").expect("an answer");
    Shop::reopened(&world, packages).with_single("app", "1.1.0").await.publish().await;
    restart(&mut world, ClusterOperatorMode::Each, by_default).await;
    let own = [all.clone(), names(&world).package(&app)];
    loop {
        let state = changes.next().await.expect("a state").expect("an answer");
        let Some(status) = state.status.as_ref().filter(|_| own.contains(&state.name_any())) else { continue };
        assert!(condition(status, "Available").starts_with("True/"), "{state:?}");
        assert!(condition(status, "Degraded").starts_with("False/"), "{state:?}");
        if state.name_any() == own[1] && is_accepted(status, "1.1.0") {
            break;
        }
    }
    finish(world).await;
}

/// Stops the controller, and starts one that reports what is wrong only after an hour: nothing but the first rollout decides.
async fn restart(world: &mut World, mode: ClusterOperatorMode, change: impl FnOnce(&mut ClusterOperatorSettings)) {
    world.stop_controller().await;
    let hour = Duration::from_hours(1);
    let mut settings = ClusterOperatorSettings {
        thresholds: Thresholds { installation: hour, outage: hour, failure: hour },
        ..settings(world, mode)
    };
    change(&mut settings);
    world.start_controller_changed(|options| {
        options.cluster_operators = settings;
        options.cluster_poll_interval = Duration::from_millis(100);
    });
}

/// Whether the cluster-version operator keeps waiting for the ClusterOperator when it installs a cluster.
fn is_waited_for(status: &ClusterOperatorStatus) -> bool {
    judge(&expected(VERSION), status, Mode::Initializing).is_err_and(|it| it.reason == "ClusterOperatorNotAvailable")
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_available_before_the_first_rollout_is_complete() {
    let mut world = World::new().await;
    install_foreign_crd(&world.client, &ClusterOperator::crd()).await.expect("the CRD is installed");
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let (app, late) = (wish(&shop, "one", "app").await, wish(&shop, "two", "late").await);
    let [all, of_app, of_late] =
        [names(&world).aggregated(), names(&world).package(&app), names(&world).package(&late)];
    let packages = shop.packages;
    restart(&mut world, ClusterOperatorMode::Each, |_| {}).await;

    until(&world, &of_app, "accepted", |status| is_accepted(status, "1.0.0")).await;
    let lacks_late = |status: &ClusterOperatorStatus| {
        let available = condition(status, "Available");
        available.starts_with(&format!("False/Installing: Platform operator {late} "))
            && available.contains("SourceFailed")
    };
    for name in [&all, &of_late] {
        let waits = until(&world, name, "one is not installed", lacks_late).await.status.expect("a status");
        assert!(is_waited_for(&waits) && waits.versions.is_empty(), "{waits:?}");
    }

    // Neither a restart nor an upgrade of the other package makes it available.
    restart(&mut world, ClusterOperatorMode::Each, |_| {}).await;
    let shop = Shop::reopened(&world, packages).with("app", "1.1.0", &[]).await;
    shop.publish().await;
    until(&world, &of_app, "upgraded", |status| is_accepted(status, "1.1.0")).await;
    assert!(is_waited_for(&until(&world, &all, "one is not installed", lacks_late).await.status.expect("a status")));
    let shop = shop.with("late", "1.0.0", &[]).await;
    shop.publish().await;
    until(&world, &all, "accepted", |status| is_accepted(status, VERSION)).await;
    until(&world, &of_late, "accepted", |status| is_accepted(status, "1.0.0")).await;

    // On the second day, a package that is added makes only its own ClusterOperator unavailable, and a new version waits for it.
    let later = wish(&shop, "three", "later").await;
    let packages = shop.packages;
    restart(&mut world, ClusterOperatorMode::Each, |settings| settings.version = "next".to_owned()).await;
    let tries = until(&world, &all, "the new one is tried", |status| condition(status, "Progressing").contains(&later));
    let tries = tries.await.status.expect("a status");
    assert_eq!(condition(&tries, "Available"), "True/AsExpected: The platform operators that are installed work");
    assert_eq!(judge(&expected(VERSION), &tries, Mode::Updating), Ok(()), "the version is the one before");
    until(&world, &names(&world).package(&later), "not installed", is_waited_for).await;
    let shop = Shop::reopened(&world, packages).with("later", "1.0.0", &[]).await;
    shop.publish().await;
    until(&world, &all, "the new version", |status| is_accepted(status, "next")).await;
    finish(world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_controller_expects_is_waited_for() {
    let mut world = World::new().await;
    install_foreign_crd(&world.client, &ClusterOperator::crd()).await.expect("the CRD is installed");
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let (packages, app, all) = (shop.packages, format!("{}-one", world.run()), names(&world).aggregated());
    let expects = app.clone();
    restart(&mut world, ClusterOperatorMode::Aggregated, |settings| settings.expected = [expects].into()).await;
    let absent = until(&world, &all, "it does not exist", |status| condition(status, "Available").contains(&app));
    let absent = absent.await.status.expect("a status");
    assert!(is_waited_for(&absent) && absent.versions.is_empty(), "{absent:?}");
    assert!(condition(&absent, "Available").contains("no PlatformOperator has this name"), "{absent:?}");

    let shop = Shop::reopened(&world, packages);
    assert_eq!(wish(&shop, "one", "app").await, app);
    until(&world, &all, "accepted", |status| is_accepted(status, VERSION)).await;
    let operators: Api<PlatformOperator> = Api::all(world.client.clone());
    operators.delete(&app, &DeleteParams::default()).await.expect("it exists");
    let gone =
        until(&world, &all, "it is missed", |status| condition(status, "Progressing").contains("no PlatformOperator"));
    let gone = gone.await.status.expect("a status");
    assert!(condition(&gone, "Progressing").starts_with("False/"), "{gone:?}");
    assert!(is_accepted(&gone, VERSION), "what was available stays: {gone:?}");
    finish(world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_that_is_added_while_openshift_is_installed_is_waited_for() {
    let mut world = World::new().await;
    if !world.is_embedded() {
        // The version of a cluster belongs to it.
        return world.finish().await;
    }
    for crd in [ClusterOperator::crd(), cluster_versions()] {
        install_foreign_crd(&world.client, &crd).await.expect("the CRD is installed");
    }
    history(&world, &["Partial"]).await;
    restart(&mut world, ClusterOperatorMode::Aggregated, |_| {}).await;
    let all = names(&world).aggregated();
    until(&world, &all, "accepted without packages", |status| is_accepted(status, VERSION)).await;
    let shop = Shop::new(&world);
    let late = wish(&shop, "one", "late").await;
    let waits = until(&world, &all, "not installed", is_waited_for).await;
    let available = condition(waits.status.as_ref().expect("a status"), "Available");
    assert!(available.starts_with(&format!("False/Installing: Platform operator {late} ")), "{available}");
    history(&world, &["Partial", "Completed"]).await;
    until(&world, &all, "available on the second day", |status| condition(status, "Available").starts_with("True"))
        .await;
    finish(world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_repaired_and_an_idle_controller_writes_nothing() {
    let mut world = world(ClusterOperatorMode::Aggregated).await;
    let (api, all, core) = (cluster_operators(&world), names(&world).aggregated(), names(&world).core());
    let before = until(&world, &all, "accepted", |status| is_accepted(status, VERSION)).await;
    until(&world, &core, "accepted", |status| is_accepted(status, VERSION)).await;
    world.stop_controller().await;

    // A restart finds everything as it is.
    let requests = Requests::default();
    let client = requests.recording(&world.client);
    start_on(&mut world, client, ClusterOperatorMode::Aggregated);
    let edit = Patch::Merge(json!({"status": {"conditions": [
        {"type": "Available", "status": "False", "lastTransitionTime": "2020-01-01T00:00:00Z"},
        {"type": "Curious", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"},
    ]}}));
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let app = wish(&shop, "one", "app").await;
    until(&world, &all, "accepted with a package", |status| {
        is_accepted(status, VERSION) && condition(status, "Available").contains("successful state")
    })
    .await;
    let about_core = requests.about(&[&format!("/{core}")]);
    assert_eq!(about_core, [""; 0], "nothing about the controller changed");

    api.patch_status(&all, &PatchParams::default(), &edit).await.expect("an edit");
    let repaired = until(&world, &all, "repaired", |status| is_accepted(status, VERSION)).await;
    let time = |operator: &ClusterOperator| {
        let status = operator.status.as_ref().expect("a status");
        let available = status.conditions.iter().find(|it| it.kind == "Available").expect("Available");
        available.last_transition_time.clone()
    };
    assert_eq!(time(&before), time(&repaired), "it was available all the time");
    assert!(condition(repaired.status.as_ref().expect("a status"), "Curious").starts_with("True"), "others may add");

    // A deleted ClusterOperator is created again.
    api.delete(&core, &DeleteParams::default()).await.expect("it exists");
    until(&world, &core, "accepted again", |status| is_accepted(status, VERSION)).await;

    // A change that makes no difference for the platform writes nothing.
    requests.forget();
    let label = Patch::Merge(json!({"metadata": {"annotations": {"note": "changed"}}}));
    world.deployments().patch(&app, &PatchParams::default(), &label).await.expect("an annotation");
    let deployed = Patch::Merge(json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": "now"}}}));
    world.deployments().patch(&app, &PatchParams::default(), &deployed).await.expect("an annotation");
    wait::until(&world.deployments(), &app, "reconciled", |deployment| {
        let status = deployment.and_then(|it| it.status.as_ref());
        status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some("now"))
    })
    .await;
    assert_eq!(requests.about(&["clusteroperators"]), [""; 0]);
    finish(world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_asked_or_written_where_the_kind_is_not_served() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let api: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let is_served = api.get_opt(&ClusterOperator::crd().name_any()).await.expect("an answer").is_some();
    let mode = if is_served { ClusterOperatorMode::None } else { ClusterOperatorMode::Each };
    let requests = Requests::default();
    let client = requests.recording(&world.client);
    let settings = settings(&world, mode);
    world.start_controller_with(InProcess::RecordsRequests, client, |options| {
        options.cluster_operators = settings;
        options.cluster_poll_interval = Duration::from_millis(100);
    });
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let app = wish(&shop, "one", "app").await;
    world.ready(&app).await;
    assert_eq!(requests.about(&["config.openshift.io"]), [""; 0]);

    if !is_served {
        // It is noticed when the cluster serves it.
        install_foreign_crd(&world.client, &ClusterOperator::crd()).await.expect("the CRD is installed");
        until(&world, &names(&world).aggregated(), "accepted", |status| is_accepted(status, VERSION)).await;
    }
    finish(world).await;
}

/// The CRD of ClusterVersions, as far as the tests need it.
fn cluster_versions() -> CustomResourceDefinition {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    serde_json::from_value(json!({
        "metadata": {"name": "clusterversions.config.openshift.io"},
        "spec": {
            "group": "config.openshift.io", "scope": "Cluster",
            "names": {"kind": "ClusterVersion", "plural": "clusterversions", "singular": "clusterversion"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": open}}],
        },
    }))
    .expect("a CRD")
}

async fn openshift(world: &World, version: &str) {
    cluster_version(world, json!({"desired": {"version": version}})).await;
}

/// The states of the versions of OpenShift, the newest first.
async fn history(world: &World, states: &[&str]) {
    let entries: Vec<Value> = states.iter().map(|state| json!({"state": state, "version": "4.19.0"})).collect();
    cluster_version(world, json!({"desired": {"version": "4.19.0"}, "history": entries})).await;
}

async fn cluster_version(world: &World, status: Value) {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "ClusterVersion");
    let kind = ApiResource::from_gvk_with_plural(&kind, "clusterversions");
    let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &kind);
    let object: Value = json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": {"name": "version"},
                               "status": status});
    let parameters = PatchParams::apply("e2e").force();
    api.patch("version", &parameters, &Patch::Apply(object)).await.expect("the object is accepted");
}

/// What the controller needs to install the bundles of the test with its own permissions.
fn installer(world: &World) -> [Value; 2] {
    let name = format!("{}-installer", world.run());
    let group = "rbac.authorization.k8s.io";
    [
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
               "rules": [{"apiGroups": [""], "resources": ["*"], "verbs": ["*"]},
                         {"apiGroups": ["core.rukpak.io"], "resources": ["*"], "verbs": ["*"]}]}),
        json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
               "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
               "subjects": [{"kind": "ServiceAccount", "name": "chandler", "namespace": world.system_namespace}]}),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_holds_the_next_minor_version_of_openshift_back() {
    let mut world = World::new().await;
    if !world.is_embedded() {
        // The version of a cluster belongs to it.
        return world.finish().await;
    }
    world.stop_controller().await;
    for crd in [ClusterOperator::crd(), cluster_versions()] {
        install_foreign_crd(&world.client, &crd).await.expect("the CRD is installed");
    }
    openshift(&world, "4.18.3").await;
    for file in ["rbac.yaml", "rbac-openshift.yaml"] {
        permissions::apply(&world, &deployed(&world, file)).await;
    }
    permissions::apply(&world, &installer(&world)).await;
    let settings = settings(&world, ClusterOperatorMode::Aggregated);
    let change = |options: &mut Options| {
        options.cluster_operators = settings;
        options.cluster_poll_interval = Duration::from_millis(100);
    };
    world.start_controller_deployed(change).await;
    let shop = Shop::new(&world).up_to("app", "4.19").with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let app = wish(&shop, "one", "app").await;
    let all = names(&world).aggregated();
    until(&world, &all, "accepted with a package", |status| {
        is_accepted(status, VERSION) && condition(status, "Available").contains("successful state")
    })
    .await;

    openshift(&world, "4.19.0").await;
    let held = until(&world, &all, "held back", |status| permits_minor_update(status).is_err()).await;
    let status = held.status.as_ref().expect("a status");
    assert_eq!(
        condition(status, "Upgradeable"),
        format!(
            "False/IncompatibleOperatorsInstalled: Platform operators blocking minor version upgrades to 4.20:\n- maximum \
             supported OCP version for platform operator {app} is 4.19"
        )
    );
    assert_eq!(judge(&expected(VERSION), status, Mode::Updating), Ok(()), "patch versions are not held back");

    // The resolver knows the version, too: it installs nothing that does not run on it.
    openshift(&world, "4.20.0").await;
    let shop = shop.with("other", "1.0.0", &[]).await.up_to("late", "4.19").with("late", "1.0.0", &[]).await;
    shop.publish().await;
    wish(&shop, "two", "late").await;
    let operators: Api<PlatformOperator> = Api::all(world.client.clone());
    wait::until(&operators, &shop.name("two"), "refused", |operator| {
        let status = operator.and_then(|it| it.status.as_ref());
        let message = status.and_then(|it| it.conditions.first()).map(|it| it.message.clone()).unwrap_or_default();
        message.contains("runs on OpenShift up to 4.19, and the cluster has 4.20.0")
    })
    .await;
    finish(world).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_two_are_created_at_most_once_and_named_by_the_run() {
    let world = world(ClusterOperatorMode::Aggregated).await;
    let (all, core) = (names(&world).aggregated(), names(&world).core());
    until(&world, &core, "accepted", |status| is_accepted(status, VERSION)).await;
    until(&world, &all, "accepted", |status| is_accepted(status, VERSION)).await;
    eventually("only these two", || async {
        let list = cluster_operators(&world).list(&kube::api::ListParams::default()).await.expect("a list");
        let mut own: Vec<String> =
            list.iter().map(kube::ResourceExt::name_any).filter(|name| name.contains(world.run().name())).collect();
        own.sort();
        own == [all.clone(), core.clone()]
    })
    .await;
    finish(world).await;
}
