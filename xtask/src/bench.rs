//! `cargo xtask bench`.

use crate::{command, guests};

/// Measure the engine, the embedded control plane, or the controller, in a release build.
#[derive(clap::Args)]
pub(crate) struct Bench {
    /// Measure the embedded control plane: memory with 10,000 objects and 200 watches, latencies, in memory and on disk
    #[arg(long)]
    control_plane: bool,

    /// Measure the controller with 1,000 BundleDeployments that nothing happens to: processor time, memory, requests and calls of
    /// provisioners, while idle and after a restart
    #[arg(long, conflicts_with = "control_plane")]
    idle: bool,

    /// Further arguments of the benchmark
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Bench {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (package, example) = if self.control_plane {
            ("chandler-devcluster", "bench_control_plane")
        } else if self.idle {
            guests::build_all()?;
            let built = ["build", "--quiet", "--locked", "--release", "--package", "chandler"];
            command::run(&mut command::cargo(built))?;
            ("chandler", "bench_idle")
        } else {
            guests::build_all()?;
            ("chandler-engine", "bench_engine")
        };
        let example = ["run", "--quiet", "--locked", "--release", "--package", package, "--example", example, "--"];
        command::run(command::cargo(example).args(self.arguments))
    }
}
