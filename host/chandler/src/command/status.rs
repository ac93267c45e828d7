//! `chandler status`.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use crate::{
    CommandError,
    explanation::Explanation,
    following, live,
    narration::Standing,
    output,
    progress::{Progress, seconds},
    terminal::Terminal,
    values,
};

/// Explain how a BundleDeployment is and what to do about it
///
/// Shows its conditions, the resolved source, the provisioner, the release, every object of the release with its health
/// as it is now, and what would help.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The explanation on standard output.

Exit codes: 0 healthy, 1 not healthy or not readable, 2 wrong usage, 3 not healthy in time

Examples:
  chandler status my-operator
  Follow a rollout, in a script or on a terminal:
    chandler status my-operator --watch --timeout 10m
  What is not healthy:
    chandler status my-operator -o json | jq '.objects[] | select(.health != \"healthy\")'")]
pub struct Status {
    /// The name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = StatusFormat::Text)]
    pub output: StatusFormat,

    /// Follow it on standard error until it is healthy or will not go on by itself, then explain it
    #[arg(short, long)]
    pub watch: bool,

    /// How long to follow it
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = values::duration, requires = "watch")]
    pub timeout: Duration,

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
    pub async fn run(&self, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        let client = live::client(self.kubeconfig.as_deref()).await?;
        if self.watch {
            let mut waiting = Standing::Waiting { message: "the controller".to_owned(), reason: None };
            let mut progress = Progress::new(terminal);
            let followed = following::follow(&client, &self.name, &mut progress, &mut waiting);
            if tokio::time::timeout(self.timeout, followed).await.is_err() {
                return Err(self.too_late(&waiting));
            }
        }
        let deployment = live::deployment(&client, &self.name).await?;
        let members = live::members(&client, &deployment).await;
        let explanation = Explanation::new(&deployment, members.objects, members.unreadable);
        match self.output {
            StatusFormat::Text => output::print(&explanation.text())?,
            StatusFormat::Json => output::print(&output::json(&explanation)?)?,
        }
        Ok(if explanation.healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn too_late(&self, waiting: &Standing) -> CommandError {
        let message = match waiting {
            Standing::Waiting { message, .. } => message.as_str(),
            Standing::Healthy | Standing::Failed { .. } => "",
        };
        let after = seconds(self.timeout);
        CommandError::timeout(format!("{} is not healthy after {after}; it waits for: {message}", self.name))
    }
}
