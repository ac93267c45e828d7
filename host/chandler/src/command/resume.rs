//! `chandler resume`.

use std::time::Instant;

use chandler_api::{BundleDeployment, Catalog, ReportingKind, Resolution};
use k8s_openapi::jiff::Timestamp;
use kube::Client;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        controller_namespace::ControllerNamespaceArguments,
        dry_run::DryRun,
        target::{SUSPENDED, Target},
        wait::Wait,
    },
    read::{cluster, handled::Pending, reported, settled},
    view::terminal::Terminal,
    write::change,
};

/// Resume a suspended BundleDeployment, Resolution or Catalog
///
/// Removes spec.suspend. The controller then rolls out the current spec and repairs the objects; the command follows it. The source of a
/// Catalog is resolved at once.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress and the result on standard error.

Exit codes: 0 healthy, or resumed with --wait=false; 1 failed; 2 wrong usage; 3 not healthy before the
  timeout; 6 a change waits for approval; 7 not found; 8 refused

Examples:
  chandler resume harbour
  chandler resume resolution/shop
  chandler resume catalog/operatorhub
  Without waiting:
    chandler resume harbour --wait=false")]
pub struct Resume {
    /// Name of the BundleDeployment, `resolution/NAME` or `catalog/NAME`
    #[arg(value_name = "NAME", value_parser = SUSPENDED.target())]
    pub name: Target,

    /// Whether anything is written.
    #[command(flatten)]
    pub dry_run: DryRun,

    /// Whether and how long the command waits.
    #[command(flatten)]
    pub waiting: Wait,

    /// Where the Lease of the controller is.
    #[command(flatten)]
    pub controller: ControllerNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Resume {
    /// Removes spec.suspend, and follows the BundleDeployment.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let (target, name) = (&self.name, self.name.name.as_str());
        let client = cluster::client(&self.connection.options()).await?;
        match target.kind() {
            ReportingKind::Resolution => return self.resume_resolution(&client, terminal).await,
            ReportingKind::Catalog => return self.resume_catalog(&client, terminal).await,
            _ => {}
        }
        if cluster::deployment(&client, name).await?.spec.suspend {
            change::set_suspend::<BundleDeployment>(&client, name, false, self.dry_run.effect()).await?;
            terminal.line(self.dry_run.line(&format!("resumed {target}"), &format!("resume {target}")));
        } else {
            terminal.line(format!("{target} is not suspended"));
        }
        if self.waiting.wait && !self.dry_run.dry_run {
            let namespace = Some(self.controller.system_namespace.as_str());
            settled::until_healthy(&client, name, namespace, terminal, self.waiting.timeout).await?;
        }
        Ok(())
    }

    async fn resume_catalog(&self, client: &Client, terminal: &Terminal) -> Result<(), CommandError> {
        let (target, name, started) = (&self.name, self.name.name.as_str(), Instant::now());
        let mut request = None;
        if reported::get::<Catalog>(client, name).await?.spec.suspend {
            change::set_suspend::<Catalog>(client, name, false, self.dry_run.effect()).await?;
            terminal.line(self.dry_run.line(&format!("resumed {target}"), &format!("resume {target}")));
            // The source may have moved since, and its interval may be long.
            let at = Timestamp::now().to_string();
            change::request_reconcile::<Catalog>(client, name, &at, self.dry_run.effect()).await?;
            request = Some(at);
        } else {
            terminal.line(format!("{target} is not suspended"));
        }
        if self.dry_run.dry_run || !self.waiting.wait {
            return Ok(());
        }
        let (system_namespace, timeout) = (self.controller.system_namespace.as_str(), self.waiting.timeout);
        if let Some(at) = &request {
            let pending = Pending { subject: target.subject(), at, system_namespace, started, timeout };
            pending.until_handled::<Catalog>(client, name, terminal).await?;
        }
        let rest = timeout.saturating_sub(started.elapsed());
        reported::until_ready::<Catalog>(client, name, system_namespace, terminal, rest).await
    }

    async fn resume_resolution(&self, client: &Client, terminal: &Terminal) -> Result<(), CommandError> {
        let (target, name) = (&self.name, self.name.name.as_str());
        if reported::get::<Resolution>(client, name).await?.spec.suspend {
            change::set_suspend::<Resolution>(client, name, false, self.dry_run.effect()).await?;
            terminal.line(self.dry_run.line(&format!("resumed {target}"), &format!("resume {target}")));
        } else {
            terminal.line(format!("{target} is not suspended"));
        }
        if self.waiting.wait && !self.dry_run.dry_run {
            let namespace = self.controller.system_namespace.as_str();
            reported::until_ready::<Resolution>(client, name, namespace, terminal, self.waiting.timeout).await?;
        }
        Ok(())
    }
}
