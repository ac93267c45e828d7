//! `chandler catalog remove`.

use chandler_api::ReportingKind;

use crate::{
    CommandError,
    arguments::{connection::Connection, dry_run::DryRun, target::Takes},
    read::cluster,
    view::terminal::Terminal,
    write::catalog,
};

/// Catalogs only.
pub(in crate::command) const TAKES: Takes = Takes::kinds(&[ReportingKind::Catalog])
    .instead(&[(ReportingKind::BundleDeployment, "`chandler delete NAME` deletes a BundleDeployment")]);

/// Remove a catalog from the cluster
///
/// Deletes the Catalog, and with it the ConfigMaps that `chandler catalog add` created for it. Bundles that were installed from it stay
/// installed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 success, 1 failed, 2 wrong usage, 7 not found, 8 refused

Required permissions: `delete` on catalogs.chandler.dev.

Examples:
  chandler catalog remove operatorhub")]
pub struct Remove {
    /// Name of the Catalog
    #[arg(value_name = "NAME", value_parser = TAKES.name())]
    pub name: String,

    /// Whether anything is written.
    #[command(flatten)]
    pub dry_run: DryRun,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Remove {
    /// Deletes the Catalog.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        catalog::delete(&client, &self.name, self.dry_run.effect()).await?;
        let name = &self.name;
        terminal.line(self.dry_run.line(&format!("deleted Catalog {name}"), &format!("delete Catalog {name}")));
        Ok(())
    }
}
