//! `chandler reconcile`.

use std::time::Instant;

use k8s_openapi::jiff::Timestamp;

use crate::{
    CommandError,
    arguments::{connection::Connection, wait::Wait},
    read::{cluster, settled},
    view::terminal::Terminal,
    write::deployment,
};

/// Reconcile a BundleDeployment now
///
/// Sets the annotation reconcile.chandler.dev/requestedAt. The controller then resolves the tag of the image again, and retries a revision
/// that failed and was rolled back. The command waits until the controller has handled the request, and follows the rollout.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress and the result on standard error.

Exit codes: 0 healthy, or requested with --wait=false; 1 failed; 2 wrong usage; 3 not healthy before the
  timeout

Examples:
  Install the image that a moved tag refers to now:
    chandler reconcile harbour
  Repair objects once although spec.drift is Report or Ignore:
    chandler reconcile harbour --repair")]
pub struct Reconcile {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Also repair drift once, whatever spec.drift says (annotation reconcile.chandler.dev/repairAt)
    #[arg(long)]
    pub repair: bool,

    /// Whether and how long the command waits.
    #[command(flatten)]
    pub waiting: Wait,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Reconcile {
    /// Requests the reconcile, and follows it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let (name, started) = (&self.name, Instant::now());
        let client = cluster::client(&self.connection).await?;
        if cluster::deployment(&client, name).await?.spec.suspend {
            return Err(CommandError::failed(format!("{name} is suspended"))
                .hint(format!("`chandler resume {name}` resumes and reconciles it")));
        }
        let at = Timestamp::now().to_string();
        deployment::request_reconcile(&client, name, &at, self.repair).await?;
        terminal.line(format!("requested a reconcile of {name}"));
        if !self.waiting.wait {
            return Ok(());
        }
        settled::until_handled(&client, name, &at, self.waiting.timeout).await?;
        let rest = self.waiting.timeout.saturating_sub(started.elapsed());
        settled::until_healthy(&client, name, terminal, rest).await
    }
}
