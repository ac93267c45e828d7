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

mod menace;
mod process;
mod seen;

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
    menace::Menace,
    process::Process,
    seen::{Known, Seen},
};

/// Whose BundleDeployments there are.
const TENANTS: usize = 20;

#[tokio::main]
async fn main() {
    let mut arguments = env::args().skip(1);
    let minutes: f64 = arguments.next().map_or(10.0, |text| text.parse().expect("minutes"));
    let count: usize = arguments.next().map_or(200, |text| text.parse().expect("a number of BundleDeployments"));
    let ways: Vec<String> = arguments.collect();
    let world = Arc::new(World::without_controller(Cluster::acquire().await).await);
    let controller = Process::start(&world);
    let seen = Seen::watch(&world);
    let hostile = count / 3;
    let honest = count - hostile;
    println!(
        "{honest} honest BundleDeployments of {TENANTS} tenants, {hostile} hostile ones beside them, {minutes} minutes each"
    );

    let part = Duration::from_secs_f64(60.0 * minutes);
    let images = [image(&world, "old").await, image(&world, "new").await];
    let alone = rounds(&world, &seen, &images, honest, part).await;
    let before = controller.report("honest alone");
    let menace = Menace::unleash(&world, &seen, hostile, &images[0], &ways).await;
    let among = rounds(&world, &seen, &images, honest, part).await;
    controller.report("among hostile ones");
    compare(&alone, &among);
    println!("{} edits of hostile BundleDeployments", menace.end(&world, &seen).await);
    controller.settle(before.threads).await;
    controller.report("when all are gone");
    drop(controller);
    Arc::into_inner(world).expect("nobody else has it").finish().await;
}

/// How long the steps of honest BundleDeployments took, in seconds: installing, updating, deleting.
type Times = [Vec<f64>; 3];

const STEPS: [&str; 3] = ["install", "update", "delete"];

/// Has honest BundleDeployments installed, updated and deleted until the time is over.
async fn rounds(world: &Arc<World>, seen: &Seen, images: &[String; 2], honest: usize, part: Duration) -> Times {
    let end = Instant::now() + part;
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
