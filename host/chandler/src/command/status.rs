//! `chandler status`.

use std::{process::ExitCode, time::Duration};

use chandler_api::{
    Alert, Catalog, PlatformOperator, PlatformPolicy, ProvisionerClass, Reason, Receiver, Remedy, ReportingKind,
    Resolution,
};
use k8s_openapi::jiff::Timestamp;
use kube::Client;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        controller_namespace::ControllerNamespaceArguments,
        format::DataFormat,
        target::{Takes, Target},
        values,
    },
    read::{
        below, cluster,
        controller_lease::{self, Evidence},
        explained, follow, reported,
    },
    signals,
    view::{
        advice::advice,
        explanation::Explanation,
        failure::FailureKind,
        output,
        progress::{Progress, seconds},
        progress_reporter::RolloutState,
        reported::ReportedStatus,
        resolution_status::ResolutionStatusView,
        subject::Subject,
        terminal::Terminal,
    },
};

/// Every kind with conditions.
pub(super) const TAKES: Takes = Takes::kinds(&[
    ReportingKind::BundleDeployment,
    ReportingKind::Resolution,
    ReportingKind::Catalog,
    ReportingKind::ProvisionerClass,
    ReportingKind::PlatformOperator,
    ReportingKind::PlatformPolicy,
    ReportingKind::Receiver,
    ReportingKind::Alert,
]);

/// Show status and suggested actions
///
/// Shows the conditions of a BundleDeployment, its resolved source, provisioner and release, the current health of its objects, and
/// suggested actions. Of a Resolution it shows the conditions, the members with their states, and what waits. Of a Catalog, a
/// ProvisionerClass, a PlatformOperator, a PlatformPolicy, a Receiver or an Alert it shows the conditions, what is in use, and suggested actions.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The status on standard output; with --watch, progress on standard error.

  The last lines say what runs and what waits. The objects are read some time after the controller
  has looked at them, so that their health may differ from what it reports.

  --watch ends when the bundle is healthy, when a change waits for a decision, and when retries will
  not help: a user or an administrator has to act. A PlatformPolicy and an Alert have no rollout to
  watch.

Exit codes: 0 healthy or ready; 1 not healthy or failed, or ready with an earlier version than the
  source names; 2 wrong usage; 3 neither healthy nor failed before the timeout; 6 what runs is
  healthy, and a change waits for a decision: approval, or `chandler resume`; 7 not found

Examples:
  chandler status my-operator
  chandler status resolution/shop
  Why can nothing be installed from a Catalog, or with a ProvisionerClass?
    chandler status catalog/operatorhub
    chandler status provisionerclass/helm
  Follow a rollout:
    chandler status my-operator --watch --timeout 10m
  List the objects that are not healthy:
    chandler status my-operator -o json | jq '.objects[] | select(.health != \"healthy\")'")]
pub struct Status {
    /// Name of the BundleDeployment, or `resolution/NAME`, `catalog/NAME`, `provisionerclass/NAME`, `platformoperator/NAME`,
    /// `platformpolicy/NAME` or `alert/NAME`
    #[arg(value_name = "NAME", value_parser = TAKES.target())]
    pub name: Target,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// Follow the rollout on standard error until it is healthy or needs action, then show the status
    #[arg(short, long)]
    pub watch: bool,

    /// Timeout of --watch
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = values::duration, requires = "watch")]
    pub timeout: Duration,

    /// Where the Lease of the controller is.
    #[command(flatten)]
    pub controller: ControllerNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Status {
    /// Prints the status.
    pub async fn run(&self, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        let (name, kind) = (self.name.name.as_str(), self.name.kind());
        if self.watch && matches!(kind, ReportingKind::PlatformPolicy | ReportingKind::Receiver | ReportingKind::Alert)
        {
            return Err(CommandError::usage(format!("{} has no rollout to watch", self.name))
                .hint(format!("`chandler status {}` shows its state", self.name)));
        }
        let client = cluster::client(&self.connection.options()).await?;
        if self.watch {
            self.follow(&client, terminal).await?;
        }
        match kind {
            ReportingKind::BundleDeployment => self.print_deployment(&client, terminal).await,
            ReportingKind::Resolution => self.print_resolution(&client, terminal).await,
            ReportingKind::Catalog => self.print(&ReportedStatus::new(&reported::get::<Catalog>(&client, name).await?)),
            ReportingKind::ProvisionerClass => {
                self.print(&ReportedStatus::new(&reported::get::<ProvisionerClass>(&client, name).await?))
            }
            ReportingKind::PlatformOperator => {
                let operator: PlatformOperator = reported::get(&client, name).await?;
                let mut status = ReportedStatus::new(&operator);
                let resolution = explained::platform_resolution(&client, &operator).await?;
                status.details.set_resolution(resolution.and_then(|resolution| resolution.metadata.name));
                self.print(&status)
            }
            ReportingKind::PlatformPolicy => {
                self.print(&ReportedStatus::new(&reported::get::<PlatformPolicy>(&client, name).await?))
            }
            ReportingKind::Receiver => {
                self.print(&ReportedStatus::new(&reported::get::<Receiver>(&client, name).await?))
            }
            ReportingKind::Alert => self.print(&ReportedStatus::new(&reported::get::<Alert>(&client, name).await?)),
        }
    }

    /// Follows the object until it is healthy or needs action, within the timeout.
    async fn follow(&self, client: &Client, terminal: &Terminal) -> Result<(), CommandError> {
        let mut last = RolloutState::Waiting { message: "the controller".to_owned(), reason: None };
        let (mut progress, name) = (Progress::new(terminal), self.name.name.as_str());
        let (progress, state, namespace) = (&mut progress, &mut last, self.controller.system_namespace.as_str());
        let settled = async {
            match self.name.kind() {
                ReportingKind::BundleDeployment => {
                    follow::until_settled(client, name, Some(namespace), progress, state).await
                }
                ReportingKind::Resolution => {
                    reported::until_settled::<Resolution>(client, name, namespace, progress, state).await
                }
                ReportingKind::Catalog => {
                    reported::until_settled::<Catalog>(client, name, namespace, progress, state).await
                }
                ReportingKind::ProvisionerClass => {
                    reported::until_settled::<ProvisionerClass>(client, name, namespace, progress, state).await
                }
                ReportingKind::PlatformOperator => {
                    reported::until_settled::<PlatformOperator>(client, name, namespace, progress, state).await
                }
                ReportingKind::PlatformPolicy => {
                    reported::until_settled::<PlatformPolicy>(client, name, namespace, progress, state).await
                }
                ReportingKind::Receiver => {
                    reported::until_settled::<Receiver>(client, name, namespace, progress, state).await
                }
                ReportingKind::Alert => {
                    reported::until_settled::<Alert>(client, name, namespace, progress, state).await
                }
            }
        };
        match signals::unless_interrupted(tokio::time::timeout(self.timeout, Box::pin(settled))).await {
            Some(Ok(_)) => Ok(()),
            Some(Err(_)) => Err(self.timed_out(&last)),
            None => Err(CommandError::interrupted_rollout(&self.name.subject(), last.waiting())),
        }
    }

    /// Prints the status of an object, and returns the exit code.
    fn print(&self, status: &ReportedStatus) -> Result<ExitCode, CommandError> {
        output::print(&output::data(status, self.output, || status.text(Terminal::output()))?)?;
        Ok(exit_code(status.is_current(), status.only_waits()))
    }

    /// Prints the status of a Resolution.
    async fn print_resolution(&self, client: &Client, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        let resolution = reported::get::<Resolution>(client, &self.name.name).await?;
        let found = explained::of_resolution(client, resolution.clone()).await?;
        let view = ResolutionStatusView::new(&found);
        output::print(&output::data(&view, self.output, || view.text(Terminal::output()))?)?;
        if !self.watch {
            let evidence = Evidence::of_set(&resolution, found.deployments.values(), Timestamp::now());
            controller_lease::report_absence(client, &self.controller.system_namespace, evidence, terminal).await;
        }
        Ok(exit_code(view.healthy, view.only_waits))
    }

    /// Prints the status of a BundleDeployment.
    async fn print_deployment(&self, client: &Client, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        let deployment = cluster::deployment(client, &self.name.name).await?;
        let mut members = cluster::members(client, &deployment).await;
        below::explain(client, &mut members).await;
        let explanation = Explanation::new(&deployment, members.objects, members.unreadable);
        output::print(&output::data(&explanation, self.output, || explanation.text(Terminal::output()))?)?;
        // A rollout that was followed to its end has a controller.
        if !self.watch {
            let evidence = Evidence::of([&deployment], Timestamp::now());
            controller_lease::report_absence(client, &self.controller.system_namespace, evidence, terminal).await;
        }
        Ok(exit_code(explanation.healthy, explanation.overview.only_waits()))
    }

    fn timed_out(&self, last: &RolloutState) -> CommandError {
        let (message, reason) = match last {
            RolloutState::Waiting { message, reason } => (message.as_str(), reason.as_deref()),
            RolloutState::Healthy | RolloutState::Paused { .. } | RolloutState::Failed { .. } => ("", None),
        };
        let after = seconds(self.timeout);
        let error =
            CommandError::timeout(format!("{} is not healthy after {after}; it is waiting for: {message}", self.name));
        let reason = reason.and_then(Reason::from_name).filter(|reason| reason.remedy() != Remedy::Time);
        // A suspended Resolution is settled, and does not time out.
        let subject = Subject::followed(self.name.kind(), &self.name.name);
        match reason.and_then(|reason| advice(reason, &subject)) {
            Some(advice) => error.hint(advice),
            None => error.hint(format!("`chandler status {}` shows what to do; --timeout waits longer", self.name)),
        }
    }
}

/// The exit code for a status.
fn exit_code(healthy: bool, only_waits: bool) -> ExitCode {
    match (healthy, only_waits) {
        (_, true) => ExitCode::from(FailureKind::Decision.exit_code()),
        (true, false) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    }
}
