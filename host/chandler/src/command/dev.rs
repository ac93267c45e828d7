//! `chandler dev`.

use std::{path::PathBuf, time::Duration};

use crate::{CommandError, arguments, terminal::Terminal};

/// Try a bundle on a control plane that lives in this process
///
/// Starts an in-memory Kubernetes API server, a registry on the loopback interface and the controller; nothing else is
/// needed and nothing is left behind. With --bundle, packages the directory as an image, installs it with a
/// BundleDeployment and follows it until it is healthy or has failed. Workloads are simulated: no container runs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress, the object tree and the verdict on standard error.
  With --keep, one line `export KUBECONFIG=...` on standard output.

Exit codes: 0 healthy, 1 failed (the cause is shown), 2 wrong usage, 3 not healthy in time

Examples:
  chandler dev --bundle ./my-operator
  With a configuration:
    chandler dev --bundle ./my-operator --namespace tenant --config values.yaml
  Keep the control plane and look around with kubectl:
    chandler dev --bundle ./my-operator --keep
    (in another shell)  export KUBECONFIG=...; kubectl get bundledeployments
  Only a control plane with the controller:
    chandler dev --keep")]
pub struct Dev {
    /// The bundle's directory
    #[arg(long, value_name = "DIR")]
    pub bundle: Option<PathBuf>,

    /// The namespace to install into [default: NAME-system]
    #[arg(long, value_name = "NAMESPACE", value_parser = arguments::dns_label)]
    pub namespace: Option<String>,

    /// The name of the BundleDeployment [default: made from the directory's name]
    #[arg(long, value_name = "NAME", value_parser = arguments::deployment_name)]
    pub name: Option<String>,

    /// The configuration, YAML or JSON; `-` is standard input
    #[arg(long, value_name = "FILE", requires = "bundle")]
    pub config: Option<PathBuf>,

    /// The provisioner class [default: detected]
    #[arg(long, value_name = "CLASS", requires = "bundle")]
    pub provisioner: Option<String>,

    /// Stay up until interrupted
    #[arg(long)]
    pub keep: bool,

    /// How long to wait until the bundle is healthy
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = arguments::duration)]
    pub timeout: Duration,
}

impl Dev {
    /// Runs the control plane.
    pub async fn run(&self, _terminal: &Terminal) -> Result<(), CommandError> {
        Ok(())
    }
}
