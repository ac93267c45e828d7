//! `chandler catalog remove`.

use std::time::Duration;

use chandler_api::{Catalog, ReportingKind};
use kube::{
    Api, Client, ResourceExt as _,
    runtime::wait::{await_condition, conditions::is_deleted},
};

use crate::{
    CommandError,
    arguments::{connection::Connection, dry_run::DryRun, target::Takes, values},
    read::cluster,
    signals,
    view::{progress::seconds, subject::Subject, terminal::Terminal},
    write::catalog,
};

/// Catalogs only.
pub(in crate::command) const TAKES: Takes = Takes::kinds(&[ReportingKind::Catalog])
    .instead(&[(ReportingKind::BundleDeployment, "`chandler delete NAME` deletes a BundleDeployment")]);

/// Remove a catalog from the cluster
///
/// Deletes the Catalog, and with it the ConfigMaps that `chandler catalog add` created for it. Bundles that were installed from it stay
/// installed. If a finalizer of other software holds the Catalog, the command waits until it is gone.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Exit codes: 0 success, or requested with --wait=false; 1 failed; 2 wrong usage; 3 it still exists
  after the timeout; 7 not found; 8 refused

Required permissions: `delete` on catalogs.chandler.dev; `list` and `watch`, where a finalizer holds
the Catalog.

Examples:
  chandler catalog remove operatorhub")]
pub struct Remove {
    /// Name of the Catalog
    #[arg(value_name = "NAME", value_parser = TAKES.name())]
    pub name: String,

    /// Whether anything is written.
    #[command(flatten)]
    pub dry_run: DryRun,

    /// Wait until the Catalog no longer exists. `--wait=false` returns at once
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = clap::ArgAction::Set)]
    pub wait: bool,

    /// Timeout of --wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    pub timeout: Duration,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Remove {
    /// Deletes the Catalog.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let held = catalog::delete(&client, &self.name, self.dry_run.effect()).await?;
        let name = &self.name;
        if let Some(held) = held.filter(|_| !self.dry_run.dry_run) {
            let by = format!("the finalizers {}, which other software removes", held.finalizers().join(", "));
            if !self.wait {
                terminal.line(format!("deleting Catalog {name}, which is waiting for {by}"));
                return Ok(());
            }
            Box::pin(self.follow(&client, &held, &by, terminal)).await?;
        }
        terminal.line(self.dry_run.line(&format!("deleted Catalog {name}"), &format!("delete Catalog {name}")));
        Ok(())
    }

    /// Waits until a Catalog that is being deleted no longer exists. `by` holds it.
    async fn follow(&self, client: &Client, held: &Catalog, by: &str, terminal: &Terminal) -> Result<(), CommandError> {
        let (name, uid) = (self.name.as_str(), held.uid().unwrap_or_default());
        let catalogs: Api<Catalog> = Api::all(client.clone());
        let deleted = async {
            terminal.line(format!("waiting for {by}"));
            Box::pin(await_condition(catalogs, name, is_deleted(&uid))).await
        };
        match signals::unless_interrupted(tokio::time::timeout(self.timeout, deleted)).await {
            None => Err(CommandError::interrupted_deletion(&Subject::new(ReportingKind::Catalog, name), by)),
            Some(Ok(Ok(_))) => Ok(()),
            Some(Ok(Err(error))) => {
                Err(CommandError::failed(format!("failed to watch Catalog {name}, which is being deleted"))
                    .because(&error))
            }
            Some(Err(_)) => {
                let after = seconds(self.timeout);
                Err(CommandError::timeout(format!("Catalog {name} still exists after {after}; it is waiting for {by}"))
                    .hint(format!("`kubectl get catalog {name} -o yaml` shows them; the deletion continues")))
            }
        }
    }
}
