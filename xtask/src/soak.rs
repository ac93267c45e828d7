//! `cargo xtask soak`.

use crate::{command, guests};

/// Install, update and delete the BundleDeployments of honest tenants, first alone, then beside hostile ones, in a
/// release build; print the duration of each step and the controller's resource usage.
#[derive(clap::Args)]
pub(crate) struct Soak {
    /// Minutes for each of the two parts
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,

    /// The number of BundleDeployments; a third of them are hostile
    #[arg(long, default_value_t = 200)]
    deployments: u32,

    /// Only this attack, such as `spin`; may be given several times
    #[arg(long = "way", value_name = "NAME")]
    ways: Vec<String>,
}

impl Soak {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        guests::build_all()?;
        command::run(&mut command::cargo(["build", "--quiet", "--locked", "--release", "--package", "chandler"]))?;
        let program = command::target_directory().join("release/chandler");
        let example =
            ["run", "--quiet", "--locked", "--release", "--package", "chandler-tests", "--example", "soak", "--"];
        let sizes = [self.minutes.to_string(), self.deployments.to_string()];
        command::run(command::cargo(example).args(sizes).args(self.ways).env("CHANDLER", program))
    }
}
