//! Measures a starved controller: `cargo xtask bench --starved`.
//!
//! One tenant has thousands of BundleDeployments on dead registries, and the controller gets a twentieth of the time: it is stopped (SIGSTOP)
//! for 95 of every 100 milliseconds. Another tenant creates one BundleDeployment. The program prints how long that one took until its status
//! and until it was ready, and the longest time without a renewal of the Lease, which is to stay below its deadline of ten seconds.
//!
//! Arguments: the number of BundleDeployments (2500), of registries (50), the milliseconds of each 100 in which the controller runs (5).
//! `CHANDLER` is the command.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "it is a program whose result is its output"
)]

use std::{
    env, fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use chandler_api::names::PLAIN_CLASS;
use chandler_controller::options::lease_name;
use chandler_tests::{Cluster, World, bundles::Bundle, hostile_registry::HostileRegistry, world::condition};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::Api;
use serde_json::json;

/// How long the program looks at the Lease at least.
const LOOK: Duration = Duration::from_mins(2);
/// When it gives up.
const LONGEST: Duration = Duration::from_mins(20);

/// A controller that runs for a share of the time.
struct Starved {
    child: Child,
    /// Stops it and lets it run, again and again.
    stopping: Child,
    _directory: tempfile::TempDir,
}

impl Starved {
    fn start(world: &World, milliseconds: u64) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let kubeconfig = directory.path().join("kubeconfig");
        fs::write(&kubeconfig, world.kubeconfig().expect("a cluster of this process")).expect("a file");
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
            .stderr(fs::File::create(env::temp_dir().join("chandler-starved.log")).expect("a log"))
            .spawn()
            .expect("the controller starts");
        let (process, paused) = (child.id(), 100 - milliseconds);
        let script = format!(
            "while kill -STOP {process}; do sleep 0.{paused:03}; kill -CONT {process}; sleep 0.{milliseconds:03}; done"
        );
        let stopping = Command::new("sh").arg("-c").arg(script).stderr(Stdio::null()).spawn().expect("a shell");
        Self { child, stopping, _directory: directory }
    }
}

impl Drop for Starved {
    fn drop(&mut self) {
        for child in [&mut self.stopping, &mut self.child] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[tokio::main]
async fn main() {
    let mut arguments = env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (count, registries, milliseconds) = (number(2500), number(50), number(5));
    assert!((1..100).contains(&milliseconds), "between 1 and 99 milliseconds of 100");
    let world = World::without_controller(Cluster::acquire().await).await;
    let tenant = format!("{}-tenant", world.namespace);
    let _: Namespace = world.create(json!({"metadata": {"name": tenant}})).await;
    let dead: Vec<HostileRegistry> = stream::iter(0..registries).then(|_| HostileRegistry::silent()).collect().await;
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
    let image = world.push(&Bundle::empty().with("manifests/note.yaml", note)).await;
    for index in 0..count {
        let registry = &dead[usize::try_from(index % registries).unwrap_or_default()];
        let mut spec = world.spec(PLAIN_CLASS, &registry.image(&format!("x{index}")));
        spec["installNamespace"] = json!(tenant);
        world.apply(&format!("{}-dead-{index}", world.name()), spec).await;
    }
    println!("{count} BundleDeployments on {registries} dead registries, {milliseconds} of 100 milliseconds");
    let controller = Starved::start(&world, milliseconds);
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), &world.system_namespace);
    let lease = lease_name(&world.options().watch_selector);
    let (start, honest) = (Instant::now(), format!("{}-honest", world.name()));
    let (mut renewed, mut longest, mut renewals) = (None, Duration::ZERO, 0_u32);
    let (mut seen, mut created, mut reported, mut ready) = (Instant::now(), None, None, None);
    while start.elapsed() < LONGEST && (ready.is_none() || created.is_none_or(|at: Instant| at.elapsed() < LOOK)) {
        let now =
            leases.get_opt(&lease).await.expect("the API server answers").and_then(|lease| lease.spec?.renew_time);
        if now != renewed {
            if renewed.is_some() {
                longest = longest.max(seen.elapsed());
                renewals += 1;
            } else {
                println!("the controller is the leader after {:.1} s", start.elapsed().as_secs_f64());
            }
            (renewed, seen) = (now, Instant::now());
        }
        match created {
            // The queues are full by then.
            None if renewals == 3 => {
                world.deploy(&honest, PLAIN_CLASS, &image).await;
                created = Some(Instant::now());
            }
            None => {}
            Some(at) => {
                let found = world.deployments().get(&honest).await.expect("it exists");
                let is_reported = found.status.as_ref().is_some_and(|status| !status.conditions.is_empty());
                reported = reported.or_else(|| is_reported.then(|| at.elapsed()));
                let is_ready = condition(&found, "Ready").is_some_and(|ready| ready.status == "True");
                ready = ready.or_else(|| is_ready.then(|| at.elapsed()));
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let seconds =
        |time: Option<Duration>| time.map_or("never".to_owned(), |time| format!("{:.1} s", time.as_secs_f64()));
    println!("the honest BundleDeployment: a status after {}, ready after {}", seconds(reported), seconds(ready));
    let longest = longest.max(seen.elapsed());
    println!("{renewals} renewals of the Lease; the longest time without one: {:.1} s", longest.as_secs_f64());
    drop(controller);
    // The control plane ends with this process.
    std::process::exit(0);
}
