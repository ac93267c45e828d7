//! `chandler status`.

use std::{path::PathBuf, process::ExitCode};

use chandler_api::BundleDeployment;
use kube::Api;

use crate::{CommandError, explanation::Explanation, live, output};

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
    pub async fn run(&self) -> Result<ExitCode, CommandError> {
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let deployments: Api<BundleDeployment> = Api::all(client.clone());
        let deployment = deployments.get(&self.name).await.map_err(|error| self.not_read(&error))?;
        let members = live::members(&client, &deployment).await;
        let explanation = Explanation::new(&deployment, members.objects, members.unreadable);
        match self.output {
            StatusFormat::Text => output::print(&explanation.text())?,
            StatusFormat::Json => output::print(&output::json(&explanation)?)?,
        }
        Ok(if explanation.healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn not_read(&self, error: &kube::Error) -> CommandError {
        let failed = CommandError::failed(format!("failed to read BundleDeployment {}", self.name)).because(error);
        match error {
            kube::Error::Api(status) if status.is_not_found() => {
                failed.hint("`kubectl get bundledeployments` lists those that are there")
            }
            _ => failed,
        }
    }
}
