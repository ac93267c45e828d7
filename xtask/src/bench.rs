//! `cargo xtask bench`.

use crate::{command, guests};

/// Measure the engine, the embedded control plane, the idle controller, large releases, or the requests of the
/// controller, in a release build.
#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Bench {
    /// Measure the embedded control plane: memory with 10,000 objects and 200 watches, latencies, in memory and on disk
    #[arg(long)]
    control_plane: bool,

    /// Measure the controller with 1,000 unchanged BundleDeployments: CPU time, memory, requests and calls of
    /// provisioners, while idle and after a restart: --deployments N; --resolutions N installs them as packages of a
    /// catalog, --packages DIR takes published ones (PACKAGE/VERSION/manifests)
    #[arg(long, conflicts_with = "control_plane")]
    idle: bool,

    /// Measure the rollout of 2,000 objects and of 120 CRDs: time, and requests of the controller
    #[arg(long, conflicts_with_all = ["control_plane", "idle"])]
    rollouts: bool,

    /// Count the requests of the controller by verb and resource while 20 bundles are installed, upgraded, reconciled without
    /// changes and deleted: --bundles N or N,M, --accounts (default) or --no-accounts, --floor (the same objects without a
    /// controller), --json FILE
    #[arg(long, conflicts_with_all = ["control_plane", "idle", "rollouts"])]
    requests: bool,

    /// Measure a controller with a twentieth of the time while one tenant has 2,500 BundleDeployments on 50 dead registries: the renewals of its
    /// Lease, and the one BundleDeployment of another tenant
    #[arg(long, conflicts_with_all = ["control_plane", "idle", "rollouts", "requests"])]
    starved: bool,

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
        } else if self.rollouts {
            guests::build_all()?;
            ("chandler-tests", "bench_rollouts")
        } else if self.requests {
            guests::build_all()?;
            ("chandler-tests", "bench_requests")
        } else if self.starved {
            guests::build_all()?;
            let built = ["build", "--quiet", "--locked", "--release", "--package", "chandler"];
            command::run(&mut command::cargo(built))?;
            ("chandler-tests", "bench_starved")
        } else {
            guests::build_all()?;
            ("chandler-engine", "bench_engine")
        };
        let example = ["run", "--quiet", "--locked", "--release", "--package", package, "--example", example, "--"];
        let program = command::target_directory().join("release/chandler");
        command::run(command::cargo(example).args(self.arguments).env("CHANDLER", program))
    }
}
