//! Counts the requests of the controller: `cargo xtask bench --requests [--bundles N,M] [--no-accounts] [--floor] [--json FILE]`.
//!
//! The controller runs in this process, on threads of its own. The API server is the embedded control plane in this process, or
//! the one that the environment selects, as for the end-to-end tests.

#![expect(clippy::print_stdout, reason = "it is a program whose result is its output")]

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use chandler_tests::{
    Cluster, World,
    requests::{
        Workload,
        floor::floor,
        measure,
        table::{Table, comparison},
    },
};

/// The arguments.
struct Arguments {
    bundles: Vec<usize>,
    accounts: bool,
    floor: bool,
    json: Option<PathBuf>,
}

impl Arguments {
    fn read() -> anyhow::Result<Self> {
        let mut this = Self { bundles: vec![20], accounts: true, floor: false, json: None };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--bundles" => this.bundles = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
                "--accounts" => this.accounts = true,
                "--no-accounts" => this.accounts = false,
                "--floor" => this.floor = true,
                "--json" => this.json = Some(value()?.into()),
                other => bail!("unknown argument {other}"),
            }
        }
        Ok(this)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::read()?;
    let (mut measurements, mut json) = (Vec::new(), Vec::new());
    for bundles in arguments.bundles {
        let workload = Workload { bundles, accounts: arguments.accounts };
        let world = World::without_controller(Cluster::acquire().await).await;
        let steps = if arguments.floor { floor(&world, workload).await } else { measure(&world, workload).await };
        world.finish().await;
        let table = Table { workload, steps: &steps };
        println!("{table}");
        json.push(table.to_json());
        measurements.push((workload, steps));
    }
    if measurements.len() > 1 {
        println!("{}", comparison(&measurements));
    }
    if let Some(file) = arguments.json {
        std::fs::write(&file, serde_json::to_string_pretty(&json)?).with_context(|| file.display().to_string())?;
    }
    Ok(())
}
