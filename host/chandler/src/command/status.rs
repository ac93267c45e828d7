//! `chandler status`.

use std::{process::ExitCode, time::Duration};

use chandler_api::{Reason, Remedy};
use k8s_openapi::jiff::Timestamp;
use kube::Client;

use crate::{
    CommandError,
    arguments::{
        connection::Connection, controller_namespace::ControllerNamespaceArguments, format::OutputFormat,
        target::Target, values,
    },
    read::{
        below, cluster,
        controller_lease::{self, Evidence},
        explained, follow, resolutions,
    },
    view::{
        advice::advice,
        error::FailureKind,
        explanation::Explanation,
        output,
        progress::{Progress, seconds},
        progress_reporter::RolloutState,
        resolution_progress,
        resolution_status::ResolutionStatusView,
        terminal::Terminal,
        text::one_line,
    },
};

/// Show status and suggested actions
///
/// Shows the conditions of a BundleDeployment, its resolved source, provisioner and release, the current health of its objects, and
/// suggested actions. Of a Resolution it shows the conditions, the members with their states, and what waits.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The status on standard output; with --watch, progress on standard error.

  The last lines say what runs and what waits. The objects are read some time after the controller
  has looked at them, so that their health may differ from what it reports.

  --watch ends when the bundle is healthy, when a change waits for a decision, and when retries will
  not help: a user or an administrator has to act.

Exit codes: 0 healthy, 1 not healthy or failed, 2 wrong usage, 3 neither healthy nor failed before
  the timeout, 6 what runs is healthy, and a change waits for a decision: approval, or
  `chandler resume`

Examples:
  chandler status my-operator
  chandler status resolution/shop
  Follow a rollout:
    chandler status my-operator --watch --timeout 10m
  List the objects that are not healthy:
    chandler status my-operator -o json | jq '.objects[] | select(.health != \"healthy\")'")]
pub struct Status {
    /// Name of the BundleDeployment, or `resolution/NAME`
    #[arg(value_name = "NAME", value_parser = Target::parse_installed)]
    pub name: Target,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = OutputFormat::Text)]
    pub output: OutputFormat,

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
        let client = cluster::client(&self.connection.options()).await?;
        if self.watch {
            let mut last = RolloutState::Waiting { message: "the controller".to_owned(), reason: None };
            let mut progress = Progress::new(terminal);
            let name = &self.name.name;
            let in_time = if self.name.is_resolution() {
                let followed = resolutions::until_settled(&client, name, &mut progress, &mut last);
                tokio::time::timeout(self.timeout, followed).await.is_ok()
            } else {
                let followed = follow::until_settled(
                    &client,
                    name,
                    Some(&self.controller.system_namespace),
                    &mut progress,
                    &mut last,
                );
                tokio::time::timeout(self.timeout, followed).await.is_ok()
            };
            if !in_time {
                return Err(self.timed_out(&last));
            }
        }
        if self.name.is_resolution() {
            self.print_resolution(&client).await
        } else {
            self.print_deployment(&client, terminal).await
        }
    }

    /// Prints the status of a Resolution.
    async fn print_resolution(&self, client: &Client) -> Result<ExitCode, CommandError> {
        let resolution = resolutions::get(client, &self.name.name).await?;
        let view = ResolutionStatusView::new(&explained::of_resolution(client, resolution).await?);
        match self.output {
            OutputFormat::Text => output::print(&view.text(Terminal::output().columns()))?,
            OutputFormat::Json => output::print(&output::json(&view)?)?,
        }
        Ok(exit_code(view.healthy, view.only_waits))
    }

    /// Prints the status of a BundleDeployment.
    async fn print_deployment(&self, client: &Client, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        let deployment = cluster::deployment(client, &self.name.name).await?;
        let mut members = cluster::members(client, &deployment).await;
        below::explain(client, &mut members).await;
        let explanation = Explanation::new(&deployment, members.objects, members.unreadable);
        match self.output {
            OutputFormat::Text => output::print(&explanation.text(Terminal::output().columns()))?,
            OutputFormat::Json => output::print(&output::json(&explanation)?)?,
        }
        // A rollout that was followed to its end has a controller.
        if !self.watch {
            let evidence = Evidence::of([&deployment], Timestamp::now());
            let absent = controller_lease::absence(client, &self.controller.system_namespace, evidence).await;
            if let Some(absent) = absent {
                terminal.line(one_line(&absent));
            }
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
        let name = self.name.name.as_str();
        // A suspended Resolution is settled, and does not time out.
        let advice = if self.name.is_resolution() {
            reason.and_then(|reason| resolution_progress::advice(reason, name, false))
        } else {
            reason.and_then(|reason| advice(reason, name))
        };
        match advice {
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
