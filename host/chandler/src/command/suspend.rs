//! `chandler suspend`.

use crate::{
    CommandError,
    arguments::{connection::Connection, target::Target},
    read::{cluster, resolutions},
    view::terminal::Terminal,
    write::{deployment, resolution},
};

/// Suspend a BundleDeployment or a Resolution
///
/// Sets spec.suspend. The controller then does not fetch, render, change or repair anything of it, until `chandler resume`. The installed
/// objects stay, and deleting the BundleDeployment still deletes them. Of a Resolution nothing new is decided; its set is kept healthy.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The result on standard error.

Exit codes: 0 suspended, 1 failed, 2 wrong usage

Examples:
  Edit an object by hand without a repair:
    chandler suspend harbour
    kubectl edit deployment harbour --namespace harbour-system
    chandler resume harbour
  Keep the versions of a set as they are:
    chandler suspend resolution/shop")]
pub struct Suspend {
    /// Name of the BundleDeployment, or `resolution/NAME`
    #[arg(value_name = "NAME", value_parser = Target::parse_installed)]
    pub name: Target,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Suspend {
    /// Sets spec.suspend.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let (target, name) = (&self.name, self.name.name.as_str());
        let client = cluster::client(&self.connection.options()).await?;
        let is_suspended = if target.is_resolution() {
            resolutions::get(&client, name).await?.spec.suspend
        } else {
            cluster::deployment(&client, name).await?.spec.suspend
        };
        if is_suspended {
            terminal.line(format!("{target} is suspended already"));
            return Ok(());
        }
        if target.is_resolution() {
            resolution::set_suspend(&client, name, true).await?;
        } else {
            deployment::set_suspend(&client, name, true).await?;
        }
        terminal.line(format!("suspended {target}: `chandler resume {target}` resumes it"));
        Ok(())
    }
}
