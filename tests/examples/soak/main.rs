//! Measures how hostile tenants affect honest ones: `cargo xtask soak`.
//!
//! Twenty tenants install, update and delete BundleDeployments again and again: first alone, then while a third of all
//! BundleDeployments are hostile. The controller is `chandler controller` in its own process. The program prints how long the
//! steps of the honest tenants took, and the resource usage of the controller.

#![expect(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "it is a program whose result is its output"
)]

mod beside;
mod deployment_watch;
mod drip;
mod hostile_tenants;
mod process;

use std::{
    env,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_api::names::PLAIN_CLASS;
use chandler_tests::{Cluster, World, bundles::Bundle};
use futures::future::join_all;
use kube::api::DeleteParams;
use serde_json::json;

use self::{
    beside::Beside,
    deployment_watch::{DeploymentWatch, Observed},
    hostile_tenants::{HostileTenants, hostile_component},
    process::Process,
};

/// How many tenants share the BundleDeployments.
const TENANTS: usize = 20;

#[tokio::main]
async fn main() {
    let mut arguments = env::args().skip(1);
    let minutes: f64 = arguments.next().map_or(10.0, |text| text.parse().expect("minutes"));
    let count: usize = arguments.next().map_or(200, |text| text.parse().expect("a number of BundleDeployments"));
    let attacks: Vec<String> = arguments.collect();
    // Fails now rather than after the first phase.
    drop(hostile_component());
    let world = Arc::new(World::without_controller(Cluster::acquire().await).await);
    let controller = Process::start(&world);
    let watch = DeploymentWatch::start(&world);
    let hostile = count / 3;
    let honest = count - hostile;
    println!(
        "{honest} honest BundleDeployments of {TENANTS} tenants, {hostile} hostile ones, {minutes} minutes per phase"
    );

    let phase = Duration::from_secs_f64(60.0 * minutes);
    let images = [image(&world, "old").await, image(&world, "new").await];
    let alone = rounds(&world, &watch, &images, honest, phase).await;
    let before = controller.report("honest alone");
    let hostile_tenants = HostileTenants::start(&world, &watch, hostile, &images[0], &attacks).await;
    let beside = Beside::start(&world, &attacks).await;
    let among = rounds(&world, &watch, &images, honest, phase).await;
    controller.report("among hostile ones");
    compare(&alone, &among);
    println!("{} edits of hostile BundleDeployments", hostile_tenants.stop(&world, &watch).await);
    beside.stop(&world).await;
    controller.settle(before.threads).await;
    controller.report("after all BundleDeployments are deleted");
    drop(controller);
    Arc::into_inner(world).expect("the last reference").finish().await;
}

/// How long the steps of honest BundleDeployments took, in seconds: installing, updating, deleting.
type Times = [Vec<f64>; 3];

const STEPS: [&str; 3] = ["install", "update", "delete"];

/// Installs, updates and deletes honest BundleDeployments until the phase ends.
async fn rounds(
    world: &Arc<World>,
    watch: &DeploymentWatch,
    images: &[String; 2],
    honest: usize,
    phase: Duration,
) -> Times {
    let end = Instant::now() + phase;
    let all = join_all((0..honest).map(|index| {
        let (world, watch, images) = (Arc::clone(world), watch.clone(), images.clone());
        tokio::spawn(async move {
            let mut times = Times::default();
            let name = format!("{}-honest-{index}", world.name());
            while Instant::now() < end {
                for (step, times) in times.iter_mut().enumerate() {
                    let begin = Instant::now();
                    if let Some(image) = images.get(step) {
                        let generation = apply(&world, &name, PLAIN_CLASS, image, index).await;
                        let is_ready = |found: Observed| found.ready && found.generation >= generation;
                        watch.until(&name, |found| found.is_some_and(is_ready)).await;
                    } else {
                        world
                            .deployments()
                            .delete(&name, &DeleteParams::default())
                            .await
                            .expect("the BundleDeployment exists");
                        watch.until(&name, |found| found.is_none()).await;
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
        for (times, one) in times.iter_mut().zip(one.expect("no honest tenant panics")) {
            times.extend(one);
        }
    }
    for times in &mut times {
        times.sort_by(f64::total_cmp);
    }
    times
}

/// A bundle with fixed object names, so that each BundleDeployment needs its own namespace.
async fn image(world: &World, depth: &str) -> String {
    let note =
        |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{depth: {depth}}}\n");
    world.push(&Bundle::empty().with("manifests/a.yaml", &note("chart")).with("manifests/b.yaml", &note("log"))).await
}

/// Applies a BundleDeployment of a tenant, with its own install namespace. Returns its generation.
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
