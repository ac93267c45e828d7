//! Measures large releases: `cargo xtask bench --rollouts [objects] [crds]`.
//!
//! The API server is the embedded control plane in this process, or the one that the environment selects, as for the end-to-end
//! tests.

#![expect(clippy::print_stdout, reason = "it is a program whose result is its output")]

use std::env;

use chandler_api::names::PLAIN_CLASS;
use chandler_tests::{Cluster, World, bundles::Bundle, large};

type Sample = fn(usize, &str) -> Bundle;

#[tokio::main]
async fn main() {
    let mut sizes = env::args().skip(1).filter_map(|text| text.parse::<usize>().ok());
    let mut size = |standard| sizes.next().unwrap_or(standard);
    let samples: [(&str, usize, Sample); 2] =
        [("objects", size(2000), large::objects), ("CRDs with a custom resource each", size(120), large::crds)];
    for (what, count, sample) in samples {
        println!("{count} {what}");
        let world = World::without_controller(Cluster::acquire().await).await;
        for cost in large::measure(&world, PLAIN_CLASS, &sample(count, "old"), &sample(count, "new")).await {
            println!("  {cost}");
        }
        world.finish().await;
    }
}
