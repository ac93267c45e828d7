//! Honest tenants among hostile ones: `cargo xtask soak`.
//!
//! Twenty tenants install, update and delete BundleDeployments again and again, first by themselves, then while a third of all
//! BundleDeployments do what a hostile tenant does. The controller is the command, in a process of its own; it prints how long
//! the honest ones took, and what the controller used.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "it is a program whose result is its output"
)]

use std::{
    env, fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use chandler_api::{BundleDeployment, ProvisionerClass, names::PLAIN_CLASS};
use chandler_tests::{
    Cluster, World,
    bundles::{self, Bundle},
    run,
    silent::Silent,
    wait,
    world::condition,
};
use futures::{StreamExt as _, TryStreamExt as _, future::join_all};
use kube::{
    api::DeleteParams,
    runtime::{reflector, watcher},
};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Whose BundleDeployments there are.
const TENANTS: usize = 20;
/// How long a step may take before the soak gives up on it.
const PATIENCE: Duration = Duration::from_mins(5);

#[tokio::main]
async fn main() {
    let mut sizes = env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let minutes = sizes.next().unwrap_or(10);
    let count = usize::try_from(sizes.next().unwrap_or(200)).unwrap_or(200);
    let world = Arc::new(World::without_controller(Cluster::acquire().await).await);
    let controller = Process::start(&world);
    let seen = Seen::watch(&world);
    let hostile = count / 3;
    let honest = count - hostile;
    println!(
        "{honest} honest BundleDeployments of {TENANTS} tenants, {hostile} hostile ones beside them, {minutes} minutes each"
    );

    let part = Duration::from_secs(minutes * 60);
    let alone = rounds(&world, &seen, honest, part).await;
    let before = controller.report("honest alone");
    let menace = Menace::unleash(&world, &seen, hostile).await;
    let among = rounds(&world, &seen, honest, part).await;
    controller.report("among hostile ones");
    compare(&alone, &among);
    menace.end(&world, &seen).await;
    controller.settle(before.threads).await;
    controller.report("when all are gone");
    drop(controller);
    Arc::into_inner(world).expect("nobody else has it").finish().await;
}

/// How long the steps of honest BundleDeployments took, in seconds: installing, updating, deleting.
type Times = [Vec<f64>; 3];

const STEPS: [&str; 3] = ["install", "update", "delete"];

/// Has honest BundleDeployments installed, updated and deleted until the time is over.
async fn rounds(world: &Arc<World>, seen: &Seen, honest: usize, part: Duration) -> Times {
    let end = Instant::now() + part;
    let images = [image(world, "old").await, image(world, "new").await];
    let all = join_all((0..honest).map(|index| {
        let (world, seen, images) = (Arc::clone(world), seen.clone(), images.clone());
        tokio::spawn(async move {
            let mut times = Times::default();
            let name = format!("{}-honest-{index}", world.name());
            while Instant::now() < end {
                for (step, times) in times.iter_mut().enumerate() {
                    let begin = Instant::now();
                    if let Some(image) = images.get(step) {
                        let generation = apply(&world, &name, PLAIN_CLASS, image, index).await;
                        let is_ready = |found: Known| found.ready && found.generation >= generation;
                        seen.until(&name, |found| found.is_some_and(is_ready)).await;
                    } else {
                        world.deployments().delete(&name, &DeleteParams::default()).await.expect("it is there");
                        seen.until(&name, |found| found.is_none()).await;
                    }
                    times.push(begin.elapsed().as_secs_f64());
                }
            }
            times
        })
    }))
    .await;
    let mut times = Times::default();
    for one in all {
        for (times, one) in times.iter_mut().zip(one.expect("no honest one panics")) {
            times.extend(one);
        }
    }
    for times in &mut times {
        times.sort_by(f64::total_cmp);
    }
    times
}

/// A bundle whose objects bear the name of their BundleDeployment's namespace only, so that each needs its own.
async fn image(world: &World, depth: &str) -> String {
    let note =
        |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{depth: {depth}}}\n");
    world.push(&Bundle::empty().with("manifests/a.yaml", &note("chart")).with("manifests/b.yaml", &note("log"))).await
}

/// Applies a BundleDeployment of a tenant into a namespace of its own; the generation that it has.
async fn apply(world: &World, name: &str, class: &str, image: &str, index: usize) -> i64 {
    let mut spec = world.spec(class, image);
    spec["installNamespace"] = json!(namespace(world, index).await);
    world.apply(name, spec).await.metadata.generation.unwrap_or_default()
}

/// The namespace of one BundleDeployment; its tenant is a label.
async fn namespace(world: &World, index: usize) -> String {
    let name = format!("{}-{index}", world.namespace);
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace",
                            "metadata": {"name": name, "labels": {"tenant": format!("t{}", index % TENANTS)}}});
    world.mark(&mut object);
    let api: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(world.client.clone());
    let object = serde_json::from_value(object).expect("a Namespace");
    match api.create(&kube::api::PostParams::default(), &object).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => panic!("{error}"),
    }
    name
}

fn compare(alone: &Times, among: &Times) {
    println!("{:<8} {:>7} {:>17} {:>17} {:>17}", "step", "times", "median s", "p99 s", "max s");
    for ((step, alone), among) in STEPS.iter().zip(alone).zip(among) {
        let at = |times: &[f64], share: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "an index"
            )]
            let place = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
            times.get(place).copied().unwrap_or(f64::NAN)
        };
        let pair = |share: f64| {
            let (alone, among) = (at(alone, share), at(among, share));
            format!("{alone:.2}>{among:.2} x{:.1}", among / alone)
        };
        println!("{step:<8} {:>7} {:>17} {:>17} {:>17}", among.len(), pair(0.5), pair(0.99), pair(1.0));
    }
}

/// What hostile tenants do.
struct Menace {
    names: Vec<String>,
    class: String,
    _silent: Silent,
}

impl Menace {
    async fn unleash(world: &World, seen: &Seen, count: usize) -> Self {
        let silent = Silent::start().await;
        let class = format!("{}-hostile", world.name());
        let component = bundles::workspace().join("target/plugins/test/hostile.wasm");
        let wasm = fs::read(component).expect("built with `cargo xtask plugins`");
        let pushed = world.registry.push_component("provisioners/hostile", "v1", wasm).expect("the registry takes it");
        let limits = json!({"timeout": "5s", "memory": "64Mi"});
        let object = json!({"metadata": {"name": class}, "spec": {"image": pushed.reference, "limits": limits}});
        let _: ProvisionerClass = world.create(object).await;
        let mut names = Vec::new();
        for index in 0..count {
            let name = format!("{}-hostile-{index}", world.name());
            Self::one(world, seen, &silent, &class, &name, index).await;
            names.push(name);
        }
        Self { names, class, _silent: silent }
    }

    /// One hostile BundleDeployment; what it does depends on its number.
    async fn one(world: &World, seen: &Seen, silent: &Silent, class: &str, name: &str, index: usize) {
        let place = 100_000 + index;
        let behave = async |behaviour: &str| {
            // Each differs, so that nothing is rendered once for all.
            let bundle = Bundle::empty().with("provision", behaviour).with("note", name);
            apply(world, name, class, &world.push(&bundle).await, place).await
        };
        let _generation = match index % 7 {
            0 => apply(world, name, PLAIN_CLASS, &silent.image(&format!("slow-{index}")), place).await,
            1 => behave("spin").await,
            2 => behave("allocate").await,
            3 => behave("emit-million").await,
            4 => patterns(world, seen, name, place).await,
            5 => pointers(world, name, place).await,
            _ => {
                let schema = json!({"type": "object", "properties": {"a": {"pattern": ".{800}N"}}, "allOf":
                    (0..2000).map(|n| json!({"properties": {format!("p{n}"): {"pattern": format!(".{{800}}N{n}")}}})).collect::<Vec<_>>()});
                let bundle = Bundle::empty().with("config-schema", &schema.to_string()).with("note", name);
                apply(world, name, class, &world.push(&bundle).await, place).await
            }
        };
    }

    /// Takes all of it away.
    async fn end(&self, world: &World, seen: &Seen) {
        for name in &self.names {
            world.deployments().delete(name, &DeleteParams::default()).await.expect("it is there");
        }
        for name in &self.names {
            seen.until(name, |found| found.is_none()).await;
        }
        let classes: kube::Api<ProvisionerClass> = kube::Api::all(world.client.clone());
        classes.delete(&self.class, &DeleteParams::default()).await.expect("it is there");
    }
}

/// A CRD that is installed and then gets thousands of costly patterns.
async fn patterns(world: &World, seen: &Seen, name: &str, place: usize) -> i64 {
    let crd = |properties: Value| {
        let group = format!("{name}.example.com");
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
               "metadata": {"name": format!("oxen.{group}")},
               "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Ox", "listKind": "OxList", "plural": "oxen", "singular": "ox"},
                        "versions": [{"name": "v1", "served": true, "storage": true,
                                      "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}]}})
    };
    let many = (0..4000).map(|n| (format!("p{n}"), json!({"type": "string", "pattern": ".{800}N"}))).collect();
    let of = async |properties: Value| {
        let bundle = Bundle::empty().with("manifests/crd.yaml", &crd(properties).to_string());
        apply(world, name, PLAIN_CLASS, &world.push(&bundle).await, place).await
    };
    let first = of(json!({"p0": {"type": "string"}})).await;
    seen.until(name, |found| found.is_some_and(|found| found.ready && found.generation >= first)).await;
    of(Value::Object(many)).await
}

/// Thousands of ignored differences against a large object that is changed now and then.
async fn pointers(world: &World, name: &str, place: usize) -> i64 {
    let data: serde_json::Map<String, Value> = (0..8000).map(|n| (format!("key-{n}"), json!("x".repeat(60)))).collect();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"}, "data": data});
    let image = world.push(&Bundle::empty().with("manifests/large.yaml", &object.to_string())).await;
    let pointers = |rule: usize| (0..64).map(|n| format!("/data/key-{}", rule * 64 + n)).collect::<Vec<_>>();
    let rules: Vec<Value> = (0..64).map(|rule| json!({"kind": "ConfigMap", "jsonPointers": pointers(rule)})).collect();
    let mut spec = world.spec(PLAIN_CLASS, &image);
    spec["installNamespace"] = json!(namespace(world, place).await);
    spec["ignoreDifferences"] = json!(rules);
    world.apply(name, spec).await.metadata.generation.unwrap_or_default()
}

/// What is known of a BundleDeployment.
#[derive(Clone, Copy)]
struct Known {
    generation: i64,
    ready: bool,
}

/// The BundleDeployments as a watch brings them.
#[derive(Clone)]
struct Seen {
    store: reflector::Store<BundleDeployment>,
    changed: watch::Receiver<u64>,
}

impl Seen {
    fn watch(world: &World) -> Self {
        let (store, writer) = reflector::store();
        let (sender, changed) = watch::channel(0);
        let labels = watcher::Config::default().labels(&run::selector([world.run()]).to_string());
        let events = reflector::reflector(writer, watcher(world.deployments(), labels));
        tokio::spawn(async move {
            let mut events = events.boxed();
            while events.try_next().await.is_ok() {
                sender.send_modify(|count| *count += 1);
            }
        });
        Self { store, changed }
    }

    async fn until(&self, name: &str, wanted: impl Fn(Option<Known>) -> bool) {
        let mut changed = self.changed.clone();
        let key = reflector::ObjectRef::new(name);
        let found = || {
            self.store.get(&key).map(|deployment| {
                let generation = deployment.metadata.generation.unwrap_or_default();
                let ready = condition(&deployment, "Ready");
                let ready = ready.is_some_and(|it| it.status == "True" && it.observed_generation == Some(generation));
                Known { generation, ready }
            })
        };
        let wait = changed.wait_for(|_| wanted(found()));
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            let deployment = self.store.get(&key);
            let conditions =
                deployment.and_then(|deployment| deployment.status.clone()).map(|status| status.conditions);
            panic!("{name} is not as wanted after {PATIENCE:?}: {conditions:#?}");
        }
    }
}

/// The controller in a process of its own, and what it uses.
struct Process {
    child: Child,
    peak: Arc<Mutex<Use>>,
    _directory: tempfile::TempDir,
}

/// What a process uses.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    mebibytes: u64,
    threads: u64,
    files: u64,
}

impl Process {
    fn start(world: &World) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let kubeconfig = directory.path().join("kubeconfig");
        let text = world.kubeconfig().expect("a cluster of this process");
        fs::write(&kubeconfig, text).expect("a file");
        let options = world.options();
        let program = PathBuf::from(env::var_os("CHANDLER").expect("CHANDLER names the command"));
        let child = Command::new(program)
            .args(["controller", "--allow-unsigned", "--system-namespace", &options.system_namespace])
            .arg("--watch-selector")
            .arg(options.watch_selector.to_string())
            .arg("--cache-directory")
            .arg(directory.path().join("cache"))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdout(Stdio::null())
            .stderr(fs::File::create(env::temp_dir().join("chandler-soak.log")).expect("a log"))
            .spawn()
            .expect("the controller starts");
        let peak = Arc::new(Mutex::new(Use::default()));
        let (id, all) = (child.id(), Arc::downgrade(&peak));
        tokio::spawn(async move {
            let mut samples = tokio::time::interval(Duration::from_millis(200));
            while let (Some(peak), Some(now)) = (all.upgrade(), Use::of(id)) {
                {
                    let mut peak = peak.lock().unwrap_or_else(PoisonError::into_inner);
                    peak.mebibytes = peak.mebibytes.max(now.mebibytes);
                    peak.threads = peak.threads.max(now.threads);
                    peak.files = peak.files.max(now.files);
                }
                drop(peak);
                samples.tick().await;
            }
        });
        Self { child, peak, _directory: directory }
    }

    fn report(&self, when: &str) -> Use {
        let now = Use::of(self.child.id()).expect("the controller runs");
        let peak = std::mem::take(&mut *self.peak.lock().unwrap_or_else(PoisonError::into_inner));
        println!("controller, {when}: {now:?}; at most {peak:?}");
        now
    }

    /// Waits until it has no more threads than this.
    async fn settle(&self, threads: u64) {
        let id = self.child.id();
        let settled = || async { Use::of(id).is_some_and(|now| now.threads <= threads) };
        wait::eventually("no thread is left behind", settled).await;
    }
}

impl Use {
    fn of(process: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let number = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count() as u64;
        Some(Self { mebibytes: number("VmRSS:")? / 1024, threads: number("Threads:")?, files })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
