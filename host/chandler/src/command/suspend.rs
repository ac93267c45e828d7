//! `chandler suspend`.

use crate::{
    CommandError, arguments::connection::Connection, read::cluster, view::terminal::Terminal, write::deployment,
};

/// Suspend a BundleDeployment
///
/// Sets spec.suspend. The controller then does not fetch, render, change or repair anything of it, until `chandler resume`. The installed
/// objects stay, and deleting the BundleDeployment still deletes them.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The result on standard error.

Exit codes: 0 suspended, 1 failed, 2 wrong usage

Examples:
  Edit an object by hand without a repair:
    chandler suspend harbour
    kubectl edit deployment harbour --namespace harbour-system
    chandler resume harbour")]
pub struct Suspend {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Suspend {
    /// Sets spec.suspend.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let name = &self.name;
        let client = cluster::client(&self.connection).await?;
        if cluster::deployment(&client, name).await?.spec.suspend {
            terminal.line(format!("{name} is suspended already"));
            return Ok(());
        }
        deployment::set_suspend(&client, name, true).await?;
        terminal.line(format!("suspended {name}: `chandler resume {name}` resumes it"));
        Ok(())
    }
}
