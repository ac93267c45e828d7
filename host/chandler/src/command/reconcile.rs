//! `chandler reconcile`.

use std::time::Instant;

use k8s_openapi::jiff::Timestamp;
use kube::Client;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        controller_namespace::ControllerNamespaceArguments,
        target::{Reconciled, Target},
        wait::Wait,
    },
    read::{classes, cluster, resolutions, settled},
    view::terminal::Terminal,
    write::{deployment, provisioner_class, resolution},
};

/// Reconcile a BundleDeployment, a Resolution or a ProvisionerClass now
///
/// Sets the annotation reconcile.chandler.dev/requestedAt. The controller then resolves the tag of the image again, and retries a revision
/// that failed and was rolled back. The command waits until the controller has handled the request, and follows the rollout. A Resolution
/// is decided again, and its set is reconciled. Of a ProvisionerClass, the tag of the component is resolved again, and a component that
/// could not be compiled is compiled again.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress and the result on standard error.

Exit codes: 0 healthy, or requested with --wait=false; 1 failed; 2 wrong usage; 3 not healthy before the
  timeout; 6 a change waits for approval

Examples:
  Install the image that a moved tag refers to now:
    chandler reconcile harbour
  Ask again whether the catalogs have something better for a Resolution:
    chandler reconcile resolution/shop
  Compile the component of a class again after it was quarantined:
    chandler reconcile provisionerclass/helm
  Repair objects once although spec.drift is Report or Ignore:
    chandler reconcile harbour --repair")]
pub struct Reconcile {
    /// Name of the BundleDeployment, `resolution/NAME`, or `provisionerclass/NAME`
    #[arg(value_name = "NAME", value_parser = Reconciled::parse)]
    pub name: Reconciled,

    /// Also repair drift once, whatever spec.drift says (annotation reconcile.chandler.dev/repairAt)
    #[arg(long)]
    pub repair: bool,

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

impl Reconcile {
    /// Requests the reconcile, and follows it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let started = Instant::now();
        let client = cluster::client(&self.connection.options()).await?;
        let target = match &self.name {
            Reconciled::Class(name) => return self.reconcile_class(&client, name, terminal).await,
            Reconciled::Installed(target) if target.is_resolution() => {
                return self.reconcile_resolution(&client, target, terminal).await;
            }
            Reconciled::Installed(target) => target,
        };
        let name = target.name.as_str();
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
        let namespace = Some(self.controller.system_namespace.as_str());
        settled::until_healthy(&client, name, namespace, terminal, rest).await
    }

    async fn reconcile_class(&self, client: &Client, name: &str, terminal: &Terminal) -> Result<(), CommandError> {
        let at = Timestamp::now().to_string();
        provisioner_class::request_reconcile(client, name, &at).await?;
        terminal.line(format!("requested a reconcile of ProvisionerClass {name}"));
        if !self.waiting.wait {
            return Ok(());
        }
        let class = settled::until_class_handled(client, name, &at, self.waiting.timeout).await?;
        terminal.line(format!("ProvisionerClass {name} is ready with {}", classes::ready_component(&class)?));
        Ok(())
    }

    async fn reconcile_resolution(
        &self,
        client: &Client,
        target: &Target,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let (name, started) = (target.name.as_str(), Instant::now());
        let found = resolutions::get(client, name).await?;
        if found.spec.suspend {
            return Err(CommandError::failed(format!("{target} is suspended"))
                .hint(format!("`chandler resume {target}` resumes and reconciles it")));
        }
        let at = Timestamp::now().to_string();
        resolution::request_reconcile(client, name, &at).await?;
        let set = found.status.and_then(|status| status.bundle_deployment);
        if let Some(set) = &set {
            deployment::request_reconcile(client, set, &at, self.repair).await?;
        }
        terminal.line(format!("requested a reconcile of {target}"));
        if !self.waiting.wait {
            return Ok(());
        }
        if let Some(set) = &set {
            settled::until_handled(client, set, &at, self.waiting.timeout).await?;
        }
        let rest = self.waiting.timeout.saturating_sub(started.elapsed());
        resolutions::until_ready(client, name, terminal, rest).await
    }
}
