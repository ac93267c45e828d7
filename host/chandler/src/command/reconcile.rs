//! `chandler reconcile`.

use std::{fmt, time::Instant};

use chandler_api::{BundleDeployment, Catalog, PlatformOperator, ProvisionerClass, ReportingKind, Resolution};
use k8s_openapi::jiff::Timestamp;
use kube::Client;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        controller_namespace::ControllerNamespaceArguments,
        dry_run::DryRun,
        target::{Takes, Target},
        wait::Wait,
    },
    read::{classes, cluster, explained, handled::Pending, reported, settled},
    view::terminal::Terminal,
    write::{change, deployment},
};

/// Every kind that the controller fetches or installs something for.
pub(super) const TAKES: Takes = Takes::kinds(&[
    ReportingKind::BundleDeployment,
    ReportingKind::Resolution,
    ReportingKind::Catalog,
    ReportingKind::ProvisionerClass,
    ReportingKind::PlatformOperator,
])
.instead(&[
    (
        ReportingKind::PlatformPolicy,
        "the controller reads a PlatformPolicy again whenever it changes, `chandler status platformpolicy/NAME` shows the result",
    ),
    (
        ReportingKind::Receiver,
        "the controller reads a Receiver and its Secret again whenever they change, `chandler status receiver/NAME` shows the result",
    ),
    (
        ReportingKind::Alert,
        "the controller reads an Alert again whenever it changes, `chandler status alert/NAME` shows the result",
    ),
]);

/// Reconcile a BundleDeployment, a Resolution, a Catalog, a ProvisionerClass or a PlatformOperator now
///
/// Sets the annotation reconcile.chandler.dev/requestedAt. The controller then resolves the tag of the image again, and retries a revision
/// that failed and was rolled back. The command waits until the controller has handled the request, and follows the rollout. A Resolution
/// is decided again, and its set is reconciled. Of a Catalog, the source is resolved again, and fetched if it has other content. Of a
/// ProvisionerClass, the tag of the component is resolved again, and a component that could not be compiled is compiled again. Of a
/// PlatformOperator, all PlatformOperators are decided again, and its BundleDeployment is reconciled.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress and the result on standard error.

Exit codes: 0 healthy, or requested with --wait=false; 1 failed; 2 wrong usage; 3 not healthy before the
  timeout; 6 a change waits for approval; 7 not found; 8 refused, or it is suspended

Examples:
  Install the image that a moved tag refers to now:
    chandler reconcile harbour
  Ask again whether the catalogs have something better for a Resolution:
    chandler reconcile resolution/shop
  Fetch the newest content of a Catalog:
    chandler reconcile catalog/operatorhub
  Compile the component of a class again after it was quarantined:
    chandler reconcile provisionerclass/helm
  Repair objects once although spec.drift is Report or Ignore:
    chandler reconcile harbour --repair")]
pub struct Reconcile {
    /// Name of the BundleDeployment, or `resolution/NAME`, `catalog/NAME`, `provisionerclass/NAME` or `platformoperator/NAME`
    #[arg(value_name = "NAME", value_parser = TAKES.target())]
    pub name: Target,

    /// Also repair drift once, whatever spec.drift says (annotation reconcile.chandler.dev/repairAt)
    #[arg(long)]
    pub repair: bool,

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

impl Reconcile {
    /// Requests the reconcile, and follows it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        if self.repair && matches!(self.name.kind(), ReportingKind::Catalog | ReportingKind::ProvisionerClass) {
            return Err(CommandError::usage(format!("--repair does not go with {}: it has no objects", self.name))
                .hint("it repairs the objects of a BundleDeployment, or of the packages of a Resolution or a PlatformOperator"));
        }
        let client = cluster::client(&self.connection.options()).await?;
        match self.name.kind() {
            ReportingKind::Resolution => self.reconcile_resolution(&client, terminal).await,
            ReportingKind::Catalog => self.reconcile_catalog(&client, terminal).await,
            ReportingKind::ProvisionerClass => self.reconcile_class(&client, terminal).await,
            ReportingKind::PlatformOperator => self.reconcile_operator(&client, terminal).await,
            ReportingKind::BundleDeployment
            | ReportingKind::PlatformPolicy
            | ReportingKind::Receiver
            | ReportingKind::Alert => self.reconcile_deployment(&client, terminal).await,
        }
    }

    /// Reports the request.
    fn report(&self, target: &dyn fmt::Display, terminal: &Terminal) {
        let done = format!("requested a reconcile of {target}");
        terminal.line(self.dry_run.line(&done, &format!("request a reconcile of {target}")));
    }

    /// The request, which the controller handles next.
    fn pending<'a>(&'a self, at: &'a str, started: Instant) -> Pending<'a> {
        let system_namespace = self.controller.system_namespace.as_str();
        Pending { subject: self.name.subject(), at, system_namespace, started, timeout: self.waiting.timeout }
    }

    async fn reconcile_deployment(&self, client: &Client, terminal: &Terminal) -> Result<(), CommandError> {
        let (name, started) = (self.name.name.as_str(), Instant::now());
        if cluster::deployment(client, name).await?.spec.suspend {
            return Err(CommandError::refused(format!("{name} is suspended"))
                .hint(format!("`chandler resume {name}` resumes and reconciles it")));
        }
        let at = Timestamp::now().to_string();
        deployment::request_reconcile(client, name, &at, self.repair, self.dry_run.effect()).await?;
        self.report(&name, terminal);
        if self.dry_run.dry_run || !self.waiting.wait {
            return Ok(());
        }
        let pending = self.pending(&at, started);
        pending.until_handled::<BundleDeployment>(client, name, terminal).await?;
        settled::until_healthy(client, name, Some(pending.system_namespace), terminal, pending.rest()).await
    }

    async fn reconcile_catalog(&self, client: &Client, terminal: &Terminal) -> Result<(), CommandError> {
        let (target, name, started) = (&self.name, self.name.name.as_str(), Instant::now());
        if reported::get::<Catalog>(client, name).await?.spec.suspend {
            return Err(CommandError::refused(format!("{target} is suspended"))
                .hint(format!("`chandler resume {target}` resumes it, and resolves its source")));
        }
        let at = Timestamp::now().to_string();
        change::request_reconcile::<Catalog>(client, name, &at, self.dry_run.effect()).await?;
        self.report(target, terminal);
        if self.dry_run.dry_run || !self.waiting.wait {
            return Ok(());
        }
        let pending = self.pending(&at, started);
        pending.until_handled::<Catalog>(client, name, terminal).await?;
        reported::until_ready::<Catalog>(client, name, pending.system_namespace, terminal, pending.rest()).await
    }

    async fn reconcile_operator(&self, client: &Client, terminal: &Terminal) -> Result<(), CommandError> {
        let (target, name, started) = (&self.name, self.name.name.as_str(), Instant::now());
        let operator: PlatformOperator = reported::get(client, name).await?;
        let at = Timestamp::now().to_string();
        if let Some(name) = explained::platform_resolution(client, &operator).await?.and_then(|it| it.metadata.name) {
            change::request_reconcile::<Resolution>(client, &name, &at, self.dry_run.effect()).await?;
        }
        let installed = operator.status.and_then(|status| status.active_bundle_deployment).map(|active| active.name);
        if let Some(name) = &installed {
            deployment::request_reconcile(client, name, &at, self.repair, self.dry_run.effect()).await?;
        }
        self.report(target, terminal);
        if self.dry_run.dry_run || !self.waiting.wait {
            return Ok(());
        }
        let pending = self.pending(&at, started);
        if let Some(name) = &installed {
            pending.until_handled::<BundleDeployment>(client, name, terminal).await?;
        }
        reported::until_ready::<PlatformOperator>(client, name, pending.system_namespace, terminal, pending.rest())
            .await
    }

    async fn reconcile_class(&self, client: &Client, terminal: &Terminal) -> Result<(), CommandError> {
        let (name, started) = (self.name.name.as_str(), Instant::now());
        let at = Timestamp::now().to_string();
        change::request_reconcile::<ProvisionerClass>(client, name, &at, self.dry_run.effect()).await?;
        self.report(&format_args!("ProvisionerClass {name}"), terminal);
        if self.dry_run.dry_run || !self.waiting.wait {
            return Ok(());
        }
        let class = self.pending(&at, started).until_handled::<ProvisionerClass>(client, name, terminal).await?;
        terminal.line(format!("ProvisionerClass {name} is ready with {}", classes::ready_component(&class)?));
        Ok(())
    }

    async fn reconcile_resolution(&self, client: &Client, terminal: &Terminal) -> Result<(), CommandError> {
        let (target, name, started) = (&self.name, self.name.name.as_str(), Instant::now());
        let found = reported::get::<Resolution>(client, name).await?;
        if found.spec.suspend {
            return Err(CommandError::refused(format!("{target} is suspended"))
                .hint(format!("`chandler resume {target}` resumes and reconciles it")));
        }
        let at = Timestamp::now().to_string();
        change::request_reconcile::<Resolution>(client, name, &at, self.dry_run.effect()).await?;
        let set = found.status.and_then(|status| status.bundle_deployment);
        if let Some(set) = &set {
            deployment::request_reconcile(client, set, &at, self.repair, self.dry_run.effect()).await?;
        }
        self.report(target, terminal);
        if self.dry_run.dry_run || !self.waiting.wait {
            return Ok(());
        }
        let pending = self.pending(&at, started);
        if let Some(set) = &set {
            pending.until_handled::<BundleDeployment>(client, set, terminal).await?;
        }
        reported::until_ready::<Resolution>(client, name, pending.system_namespace, terminal, pending.rest()).await
    }
}
