//! `chandler resume`.

use crate::{
    CommandError,
    arguments::{connection::Connection, wait::Wait},
    read::{cluster, settled},
    view::terminal::Terminal,
    write::deployment,
};

/// Resume a suspended BundleDeployment
///
/// Removes spec.suspend. The controller then rolls out the current spec and repairs the objects; the command follows it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress and the result on standard error.

Exit codes: 0 healthy, or resumed with --wait=false; 1 failed; 2 wrong usage; 3 not healthy before the
  timeout

Examples:
  chandler resume harbour
  Without waiting:
    chandler resume harbour --wait=false")]
pub struct Resume {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Whether and how long the command waits.
    #[command(flatten)]
    pub waiting: Wait,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Resume {
    /// Removes spec.suspend, and follows the BundleDeployment.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let name = &self.name;
        let client = cluster::client(&self.connection).await?;
        if cluster::deployment(&client, name).await?.spec.suspend {
            deployment::set_suspend(&client, name, false).await?;
            terminal.line(format!("resumed {name}"));
        } else {
            terminal.line(format!("{name} is not suspended"));
        }
        if self.waiting.wait {
            settled::until_healthy(&client, name, terminal, self.waiting.timeout).await?;
        }
        Ok(())
    }
}
