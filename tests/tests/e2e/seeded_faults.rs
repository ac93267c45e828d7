//! Each of more than twenty faults changes a query of the dashboard, which none of them does in an undisturbed cluster.

mod prometheus;

use std::{collections::BTreeMap, time::Duration};

use chandler_api::{Alert, Catalog, ProvisionerClass, Resolution};
use chandler_devcluster::{Effect, Fault, faults::Verb};
use chandler_devregistry::{Authentication, Options as RegistryOptions, Registry};
use chandler_test_support::needs;
use chandler_tests::{
    Cluster, ContentClient, InProcess, World,
    bundles::{self, Bundle},
    controller_thread::ControllerThread,
    crash_point::CrashPoint,
    notification_server::{NotificationServer, Reply},
    wait,
};
use http::{HeaderValue, header::USER_AGENT};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use self::prometheus::{Situation, evaluate, queries};
use crate::{
    PLAIN, REGISTRY, content_service::user, hostile_provisioners::create_class, leader_election, monitoring,
    other_clusters, permissions,
};

/// The controller's user agent, so that faults of the API server affect only the controller.
const CONTROLLER: &str = "seeded-faults-controller";

/// A fault, and the query that shows it.
struct Row {
    fault: &'static str,
    /// The title of the panel.
    panel: &'static str,
    /// Labels of a sample of one of its queries.
    labels: &'static [(&'static str, &'static str)],
    /// The value of the sample is larger.
    above: f64,
}

const fn row(
    fault: &'static str,
    panel: &'static str,
    labels: &'static [(&'static str, &'static str)],
    above: f64,
) -> Row {
    Row { fault, panel, labels, above }
}

const FETCHES: &str = "Fetches that fail, by source, host and reason";
const NOT_READY: &str = "Not ready, by reason";
const STALLED: &str = "Waiting for an action, by reason";
const CALLS: &str = "Calls of provisioners";
const HEALTH: &str = "Unhealthy and drifted bundles, by reason";
const REPAIRS: &str = "Repairs and contested objects";
const NOTIFICATIONS: &str = "Notifications of Alerts, by outcome";

const OF_BUNDLES: &[Row] = &[
    row("registry down", FETCHES, &[("source", "image"), ("outcome", "NetworkFailed")], 0.0),
    row("registry refuses", FETCHES, &[("source", "image"), ("outcome", "Unauthorized")], 0.0),
    row("image missing", FETCHES, &[("source", "image"), ("outcome", "ImageNotFound")], 0.0),
    row("provisioner crashes", CALLS, &[("outcome", "PluginTrapped")], 0.0),
    row("provisioner exceeds its time", CALLS, &[("outcome", "PluginTimeout")], 0.0),
    row("provisioner exceeds its memory", CALLS, &[("outcome", "PluginOutOfMemory")], 0.0),
    row("server of an Alert refuses", NOTIFICATIONS, &[("outcome", "failed")], 0.0),
    row("another cluster does not answer", "Other clusters, by state", &[("state", "unavailable")], 0.0),
    row("bad bundle", STALLED, &[("kind", "BundleDeployment"), ("reason", "InvalidContent")], 0.0),
    row("bad configuration", STALLED, &[("kind", "BundleDeployment"), ("reason", "InvalidConfiguration")], 0.0),
    row("permissions missing", NOT_READY, &[("kind", "BundleDeployment"), ("reason", "PermissionsMissing")], 0.0),
    row("object of another owner", STALLED, &[("kind", "BundleDeployment"), ("reason", "ObjectCollision")], 0.0),
    row("namespace missing", NOT_READY, &[("kind", "BundleDeployment"), ("reason", "InstallNamespaceNotFound")], 0.0),
    row("class missing", NOT_READY, &[("kind", "BundleDeployment"), ("reason", "ProvisionerMissing")], 0.0),
    row("kind missing", NOT_READY, &[("kind", "BundleDeployment"), ("reason", "RequiredResourceNotFound")], 0.0),
    row("rollout too slow", NOT_READY, &[("kind", "BundleDeployment"), ("reason", "ProgressDeadlineExceeded")], 0.0),
    row("approval pending", NOT_READY, &[("kind", "BundleDeployment"), ("reason", "ApprovalRequired")], 0.0),
    row("deletion held", NOT_READY, &[("kind", "BundleDeployment"), ("reason", "Deleting")], 0.0),
    row("drift is reported", HEALTH, &[("condition", "Drifted"), ("reason", "DriftReported")], 0.0),
    row("objects are edited", REPAIRS, &[("outcome", "completed")], 0.0),
    row("bad provisioner", NOT_READY, &[("kind", "ProvisionerClass"), ("reason", "InvalidComponent")], 0.0),
    row("packages do not fit", STALLED, &[("kind", "Resolution"), ("reason", "NotSatisfiable")], 0.0),
];
const OF_API_SERVER: &[Row] = &[
    row("API server fails", "Requests that fail, by verb and resource", &[("code", "500")], 0.0),
    row(
        "API server overloaded",
        "Requests that fail, by verb and resource",
        &[("verb", "create"), ("code", "503")],
        0.0,
    ),
    row("catalog unreadable", NOT_READY, &[("kind", "Catalog"), ("reason", "SourceNotResolved")], 0.0),
];
const OF_SLOWNESS: &[Row] = &[
    row("API server slow", "Time until the answer of the API server, 99th percentile", &[("verb", "get")], 1.0),
    row("queue backed up", "Reconciles that wait for their turn", &[], 0.0),
    row("reconcile waits long", "Longest wait for a turn", &[], 0.0),
];

const WAITING: &str = "chandler_reconciles_waiting ";
const LONGEST: &str = "chandler_reconciles_oldest_wait_seconds ";
const GETS: &str = "chandler_api_request_duration_seconds_sum{verb=\"get\"} ";

impl Row {
    /// Whether its query shows the rate of a counter.
    fn is_counted(&self) -> bool {
        [FETCHES, CALLS, REPAIRS, NOTIFICATIONS].contains(&self.panel)
    }
}

/// The sum of the series of an exposition with the labels of a row.
fn total(exposition: &str, row: &Row) -> f64 {
    let has = |line: &&str| row.labels.iter().all(|(label, value)| line.contains(&format!("{label}=\"{value}\"")));
    let series = exposition.lines().filter(|line| !line.starts_with('#')).filter(has);
    series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

/// The value of a series, or 0.
fn value(exposition: &str, series: &str) -> f64 {
    let values = exposition.lines().filter_map(|line| line.strip_prefix(series)?.trim().parse::<f64>().ok());
    values.sum()
}

/// The rows without a series.
fn unseen(rows: &'static [Row], exposition: &str) -> Vec<&'static Row> {
    rows.iter().filter(|row| total(exposition, row) <= 0.0).collect()
}

/// Reads the metrics of a controller.
struct Scraper {
    reader: ContentClient,
    metrics: chandler_controller::ServiceOptions,
}

impl Scraper {
    async fn new(world: &World) -> Self {
        let (address, authority) = (monitoring::address(), monitoring::certificate(world).await);
        let token = user(world, "reader", &["/metrics"]).await;
        let reader = ContentClient::at(&format!("https://{address}"), &authority, Some(token));
        Self { reader, metrics: monitoring::metrics_at(address) }
    }

    async fn scrape(&self) -> String {
        let answer = self.reader.get("/metrics", &[]).await;
        assert_eq!(answer.status, http::StatusCode::OK, "{}", answer.text());
        answer.text()
    }

    /// The first exposition in which no row lacks what is awaited.
    async fn until(&self, what: &str, lacks: impl Fn(&str) -> Vec<&'static Row>) -> String {
        let (mut last, mut tick) = (String::new(), tokio::time::interval(Duration::from_millis(200)));
        let seen = tokio::time::timeout(wait::PATIENCE, async {
            loop {
                tick.tick().await;
                last = self.scrape().await;
                if lacks(&last).is_empty() {
                    return;
                }
            }
        })
        .await;
        let missing: Vec<&str> = lacks(&last).iter().map(|row| row.fault).collect();
        assert!(seen.is_ok(), "never {what} for {missing:?}:\n{last}");
        last
    }
}

/// A bundle of one ConfigMap.
fn bell(name: &str) -> Bundle {
    Bundle::empty().with("manifests/bell.yaml", &bundles::config_map(name, "bundle"))
}

async fn edit(world: &World, map: &str, value: &str) {
    let edit = Patch::Merge(json!({"data": {"from": value}}));
    world.config_maps().patch(map, &PatchParams::default(), &edit).await.expect("the edit is accepted");
}

/// Edits an object, and waits for its repair.
async fn edit_and_repair(world: &World, map: &str, value: &str) {
    edit(world, map, value).await;
    let is_repaired = |found: Option<&ConfigMap>| {
        let data = found.and_then(|found| found.data.as_ref());
        data.and_then(|data| data.get("from")).is_some_and(|from| from == "bundle")
    };
    wait::until(&world.config_maps(), map, "repaired", is_repaired).await;
}

async fn set_finalizers(world: &World, map: &str, finalizers: Value) {
    let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    world.config_maps().patch(map, &PatchParams::default(), &patch).await.expect("the change is accepted");
}

struct Faults {
    world: World,
    scraper: Scraper,
    /// The registry that refuses.
    locked: Registry,
    /// The server of an Alert, which refuses.
    alerted: NotificationServer,
}

impl Faults {
    async fn start(cluster: Cluster) -> Self {
        let mut world = World::without_controller(cluster).await;
        let scraper = Scraper::new(&world).await;
        let mut config = world.config();
        config.headers.push((USER_AGENT, HeaderValue::from_static(CONTROLLER)));
        let client = chandler_client::builder(config).expect("a configuration").build();
        let metrics = scraper.metrics.clone();
        let username = "user".to_owned();
        let authentication = Authentication::Basic { username, password: "s3cret".to_owned() };
        let locked = Registry::start(RegistryOptions { authentication, ..RegistryOptions::default() }).await;
        let locked = locked.expect("a registry");
        let plain = vec![locked.host()];
        world.start_controller_with(InProcess::UserAgent, client, |options| {
            options.metrics = Some(metrics);
            options.concurrency = 1;
            options.plain_http_registries = plain;
        });
        let alerted = NotificationServer::start(&[Reply::Status(404); 100]).await;
        Self { world, scraper, locked, alerted }
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.world.name())
    }

    /// Installs a bundle of one ConfigMap, and returns when it is ready.
    async fn install(&self, map: &str, more: Value) -> String {
        let (world, name) = (&self.world, self.name(map));
        let mut spec = world.spec(PLAIN, &world.push(&bell(map)).await);
        for (field, value) in more.as_object().expect("fields") {
            spec[field] = value.clone();
        }
        world.apply(&name, spec).await;
        world.ready(&name).await;
        name
    }

    /// Everything that the faults need, and no fault.
    async fn prepare(&self) {
        self.install("edited", json!({})).await;
        self.install("drifting", json!({"drift": "Report"})).await;
        self.install("held", json!({})).await;
        let limits = json!({"timeout": "1s", "memory": "32Mi"});
        create_class(&self.world, &self.world.name(), limits).await;
        let alert = json!({"metadata": {"name": self.name("alert")},
            "spec": {"provider": {"type": "Webhook", "url": self.alerted.url("/")}, "filter": {"reasons": ["PluginTrapped"]}}});
        let _: Alert = self.world.create(alert).await;
    }

    /// Faults that counters count. `round` makes names.
    async fn count(&self, round: &str) {
        let world = &self.world;
        let digest = format!("sha256:{}", "0".repeat(64));
        let pushed = self.locked.push_bundle_directory("a", "v1", bell("x").path(), &BTreeMap::new()).await;
        let locked = format!("{}/a@{}", self.locked.host(), pushed.expect("the registry takes the bundle").digest);
        let mut specs = vec![
            ("down", world.spec(PLAIN, &format!("127.0.0.1:1/a@{digest}"))),
            ("locked", world.spec(PLAIN, &locked)),
            ("missing", world.spec(PLAIN, &format!("{}/bundles/sample@{digest}", world.registry.host()))),
        ];
        for behaviour in ["panic", "spin", "allocate"] {
            let image = world.push(&Bundle::empty().with("provision", behaviour)).await;
            specs.push((behaviour, world.spec(&world.name(), &image)));
        }
        for (suffix, spec) in specs {
            world.apply(&self.name(&format!("{suffix}-{round}")), spec).await;
        }
        edit_and_repair(world, "edited", round).await;
    }

    /// Faults of registries, bundles, provisioners and tenants.
    async fn injure(&self) {
        let world = &self.world;
        self.count("one").await;
        let (image, mut specs) = (world.push(&bell("spare")).await, Vec::new());
        let bad = world.push(&Bundle::empty().with("manifests/a.yaml", "kind: [\n")).await;
        specs.push(("bad", world.spec(PLAIN, &bad)));
        let operator = world.push(&bundles::sample("registry/harbour-operator.v0.1.0")).await;
        let mut spec = world.spec(REGISTRY, &operator);
        spec["config"] = json!({"nonsense": true});
        specs.push(("config", spec));
        permissions::account(world, "poor").await;
        specs.push(("poor", permissions::spec(world, PLAIN, &image, "poor")));
        let other: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "taken"}})).expect("a ConfigMap");
        world.config_maps().create(&PostParams::default(), &other).await.expect("accepted");
        specs.push(("taken", world.spec(PLAIN, &world.push(&bell("taken")).await)));
        let mut spec = world.spec(PLAIN, &image);
        spec["installNamespace"] = json!(format!("{}-absent", world.namespace));
        specs.push(("homeless", spec));
        specs.push(("classless", world.spec("absent", &image)));
        let ox = "apiVersion: example.com/v1\nkind: Ox\nmetadata: {name: ox}\n";
        specs.push(("ox", world.spec(PLAIN, &world.push(&Bundle::empty().with("manifests/ox.yaml", ox)).await)));
        let mut spec = world.spec(PLAIN, &world.push(&bundles::stalled_lighthouse()).await);
        spec["rollout"] = json!({"progressDeadlineSeconds": 1});
        specs.push(("slow", spec));
        let mut spec = world.spec(PLAIN, &world.push(&bell("approved")).await);
        spec["approval"] = json!("Manual");
        specs.push(("approval", spec));
        other_clusters::write_secret(world, "away", "value", &other_clusters::away()).await;
        let mut spec = world.spec(PLAIN, &image);
        spec["kubeConfig"] = json!({"secretRef": {"name": "away"}});
        specs.push(("elsewhere", spec));
        for (suffix, spec) in specs {
            world.apply(&self.name(suffix), spec).await;
        }

        set_finalizers(world, "held", json!(["e2e.chandler.dev/held"])).await;
        world.deployments().delete(&self.name("held"), &DeleteParams::default()).await.expect("it exists");
        edit(world, "drifting", "another client").await;
        let broken = world.registry.push_component("provisioners/none", "v1", b"not wasm".to_vec()).expect("pushed");
        let class = json!({"metadata": {"name": self.name("class")}, "spec": {"image": broken.reference}});
        let _: ProvisionerClass = world.create(class).await;
        let wish = json!({"metadata": {"name": self.name("wish")}, "spec": {"packages": [{"name": "absent"}]}});
        let _: Resolution = world.create(wish).await;
    }

    /// The API server refuses and fails requests, and a catalog cannot be read. `round` makes names.
    async fn disturb(&self, round: &str) {
        let cluster = self.world.embedded().expect("only the embedded control plane injects faults");
        // The client repeats this one, so that no reconcile fails. Each installation begins a record.
        let overloaded = Fault::new(Effect::Unavailable).client(CONTROLLER);
        cluster.inject(overloaded.verb(Verb::Create).resource("secrets").times(1));
        let fails = Fault::new(Effect::InternalError).client(CONTROLLER);
        // A bundle of a ConfigMap is not ready before one was created: each round fails a request of this kind.
        cluster.inject(fails.verb(Verb::Create).resource("configmaps").times(1));
        self.install(round, json!({})).await;
        cluster.clear_faults();
        let image = json!({"type": "image", "image": {"ref": "127.0.0.1:1/catalog:v1"}});
        let catalog = json!({"metadata": {"name": self.name(round)}, "spec": {"source": image}});
        let _: Catalog = self.world.create(catalog).await;
    }
}

/// Lets a controller wait for a Lease that a process without a controller holds.
async fn without_leader(cluster: Cluster) -> String {
    let world = World::without_controller(cluster).await;
    let scraper = Scraper::new(&world).await;
    let now = k8s_openapi::jiff::Timestamp::now().to_string();
    let lease: Lease = serde_json::from_value(json!({
        "metadata": {"name": chandler_controller::options::LEASE},
        "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 3600, "renewTime": now, "acquireTime": now},
    }))
    .expect("a Lease");
    leader_election::leases(&world).create(&PostParams::default(), &lease).await.expect("accepted");
    let probes = monitoring::address();
    let timing = chandler_controller::Timing::default();
    let options = leader_election::candidate(&world, world.client.clone(), "waits", timing);
    let metrics = Some(scraper.metrics.clone());
    let options = chandler_controller::Options { metrics, probe_address: Some(probes), ..options };
    let controller = ControllerThread::start(world.config(), options, CrashPoint::Never);
    monitoring::answers(probes, "/readyz", 200, "another controller holds the Lease; this one waits for it").await;
    let text = scraper.scrape().await;
    controller.stop().await;
    world.finish().await;
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_fault_is_visible_on_the_dashboard() {
    let Some(promtool) = needs::promtool() else { return };
    if !Cluster::acquire().await.is_embedded() {
        eprintln!("skipped: only the embedded control plane injects faults");
        return;
    }
    let faults = Faults::start(Cluster::acquire().await).await;
    faults.prepare().await;
    let prepared = faults.scraper.scrape().await;
    faults.install("calm", json!({})).await;
    // A reconcile has written its status a moment before it ends.
    let idle = |text: &str| OF_SLOWNESS.iter().filter(|_| value(text, WAITING) > 0.0).collect();
    let undisturbed = faults.scraper.until("idle", idle).await;

    faults.injure().await;
    let injured = faults.scraper.until("a series", |text| unseen(OF_BUNDLES, text)).await;
    faults.count("two").await;
    let repeated = |text: &str| {
        let lacks = |row: &&Row| row.is_counted() && total(text, row) <= total(&injured, row);
        OF_BUNDLES.iter().filter(lacks).collect()
    };
    let again = faults.scraper.until("an increase", repeated).await;

    faults.disturb("first").await;
    let disturbed = faults.scraper.until("a series", |text| unseen(OF_API_SERVER, text)).await;
    faults.disturb("second").await;
    let disturbed_again = faults.scraper.scrape().await;

    let cluster = faults.world.embedded().expect("the embedded control plane");
    cluster.inject(Fault::latency(Duration::from_secs(1)).client(CONTROLLER));
    for map in ["slow-a", "slow-b", "slow-c", "slow-d"] {
        let image = faults.world.push(&bell(map)).await;
        faults.world.deploy(&faults.name(map), PLAIN, &image).await;
    }
    let slowed = |text: &str| {
        let has_waited = value(text, GETS) > value(&disturbed_again, GETS) + 2.0;
        let waits = value(text, WAITING) > 0.0 && value(text, LONGEST) > 0.0;
        OF_SLOWNESS.iter().filter(|_| !(has_waited && waits)).collect()
    };
    let slow = faults.scraper.until("slow", slowed).await;
    cluster.clear_faults();
    set_finalizers(&faults.world, "held", json!([])).await;
    faults.world.finish().await;

    let leaderless = without_leader(Cluster::acquire().await).await;

    let queries = queries();
    let situations = [
        Situation { name: "undisturbed", scrapes: [&prepared, &undisturbed, &undisturbed] },
        Situation { name: "bundles", scrapes: [&undisturbed, &injured, &again] },
        Situation { name: "API server", scrapes: [&again, &disturbed, &disturbed_again] },
        Situation { name: "slow", scrapes: [&disturbed_again, &slow, &slow] },
        Situation { name: "no leader", scrapes: [&undisturbed, &leaderless, &leaderless] },
        // Durations are compared with an idle controller, since a busy machine is slow, too.
        Situation { name: "idle", scrapes: [&undisturbed; 3] },
    ];
    let results = evaluate(&promtool, &situations, &queries);
    let largest = |situation: usize, row: &Row| {
        let of_panel = queries.iter().enumerate().filter(|(_, query)| query.panel == row.panel);
        let samples = of_panel.flat_map(|(number, _)| results.get(&(situation, number)).into_iter().flatten());
        samples.filter(|sample| sample.has(row.labels)).map(|sample| sample.value).fold(f64::NEG_INFINITY, f64::max)
    };
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (calm, situation, rows) in [(0, 1, OF_BUNDLES), (0, 2, OF_API_SERVER), (5, 3, OF_SLOWNESS)] {
        for row in rows {
            let (before, after) = (largest(calm, row), largest(situation, row));
            if before > row.above || after <= row.above {
                wrong.push(format!("{}: {:?} {:?}: {before} before, {after} after", row.fault, row.panel, row.labels));
            }
            seen += 1;
        }
    }
    let leaders = row("no replica holds the Lease", "Replicas that hold the Lease", &[], 0.0);
    let (before, after) = (largest(0, &leaders), largest(4, &leaders));
    if before <= 0.0 || after > 0.0 {
        wrong.push(format!("{}: {before} before, {after} after", leaders.fault));
    }
    assert!(wrong.is_empty(), "{}\n{results:#?}", wrong.join("\n"));
    assert!(seen + 1 > 20, "{seen}");
    // A query without any result in all situations would show nothing.
    for (number, query) in queries.iter().enumerate() {
        let shown = (0..situations.len()).any(|situation| results.contains_key(&(situation, number)));
        assert!(shown || NOT_SHOWN.contains(&query.panel.as_str()), "{} shows nothing", query.panel);
    }
}

/// Panels that need a Lease for longer than the test, a resolver with catalogs, or the hourly cleanup.
const NOT_SHOWN: &[&str] = &[
    "Size of caches",
    "Renewals of the Lease",
    "Answers of the resolver",
    "Cost of an answer of the resolver, 99th percentile",
];
