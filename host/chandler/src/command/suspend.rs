//! `chandler suspend`.

use chandler_api::{BundleDeployment, Catalog, ReportingKind, Resolution};

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        dry_run::DryRun,
        target::{SUSPENDED, Target},
    },
    read::{cluster, reported},
    view::terminal::Terminal,
    write::change,
};

/// Suspend a BundleDeployment, a Resolution or a Catalog
///
/// Sets spec.suspend. The controller then does not fetch, render, change or repair anything of it, until `chandler resume`. The installed
/// objects stay, and deleting the BundleDeployment still deletes them. Of a Resolution nothing new is decided; its set is kept healthy.
/// Of a Catalog the source is not resolved any more; the content in use stays.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The result on standard error.

Exit codes: 0 suspended, 1 failed, 2 wrong usage, 7 not found, 8 refused

Examples:
  Edit an object by hand without a repair:
    chandler suspend harbour
    kubectl edit deployment harbour --namespace harbour-system
    chandler resume harbour
  Keep the versions of a set as they are:
    chandler suspend resolution/shop
  Keep the content of a Catalog as it is:
    chandler suspend catalog/operatorhub")]
pub struct Suspend {
    /// Name of the BundleDeployment, `resolution/NAME` or `catalog/NAME`
    #[arg(value_name = "NAME", value_parser = SUSPENDED.target())]
    pub name: Target,

    /// Whether anything is written.
    #[command(flatten)]
    pub dry_run: DryRun,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Suspend {
    /// Sets spec.suspend.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let (target, name) = (&self.name, self.name.name.as_str());
        let client = cluster::client(&self.connection.options()).await?;
        let is_suspended = match target.kind() {
            ReportingKind::Resolution => reported::get::<Resolution>(&client, name).await?.spec.suspend,
            ReportingKind::Catalog => reported::get::<Catalog>(&client, name).await?.spec.suspend,
            _ => cluster::deployment(&client, name).await?.spec.suspend,
        };
        if is_suspended {
            terminal.line(format!("{target} is suspended already"));
            return Ok(());
        }
        let effect = self.dry_run.effect();
        match target.kind() {
            ReportingKind::Resolution => change::set_suspend::<Resolution>(&client, name, true, effect).await?,
            ReportingKind::Catalog => change::set_suspend::<Catalog>(&client, name, true, effect).await?,
            _ => change::set_suspend::<BundleDeployment>(&client, name, true, effect).await?,
        }
        let done = format!("suspended {target}: `chandler resume {target}` resumes it");
        terminal.line(self.dry_run.line(&done, &format!("suspend {target}")));
        Ok(())
    }
}
