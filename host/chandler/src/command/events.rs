//! `chandler events`.

use chandler_api::ReportingKind;
use futures::StreamExt as _;
use k8s_openapi::jiff::Timestamp;

use crate::{
    CommandError,
    arguments::{
        connection::Connection,
        format::DataFormat,
        target::{Takes, Target},
    },
    read::{
        cluster,
        events::{self, Scope},
    },
    view::{
        events::{EventRow, following, rows, text},
        output,
        terminal::Terminal,
        text::one_line,
    },
};

/// Every kind that Events are about.
pub(super) const TAKES: Takes = Takes::kinds(&[
    ReportingKind::BundleDeployment,
    ReportingKind::Resolution,
    ReportingKind::Catalog,
    ReportingKind::ProvisionerClass,
    ReportingKind::PlatformOperator,
    ReportingKind::PlatformPolicy,
    ReportingKind::Receiver,
])
.instead(&[(
    ReportingKind::Alert,
    "an Alert has no Events, `chandler status alert/NAME` shows whether its notifications are delivered",
)]);

/// Show what happened to an object lately, and to the objects that it installed
///
/// Shows the Events about a BundleDeployment, a Resolution, a Catalog, a ProvisionerClass, a PlatformOperator, a PlatformPolicy or a Receiver: problems,
/// steps that succeeded, repairs, approvals and warnings. Events that differ only in their time are one row with their number. The API
/// server keeps Events for an hour, unless it is configured otherwise.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output, the latest at the end; the message is below each row. Kinds and
  namespaces that could not be read on standard error.

  --watch then shows each new Event until it is interrupted. With -o json and -o yaml, each is a
  document.

Exit codes: 0 success, 1 failed, or something could not be read, 2 wrong usage

Examples:
  chandler events my-operator
  chandler events catalog/operatorhub
  Why does a Pod of the bundle not start?
    chandler events my-operator --objects
  What was repaired?
    chandler events my-operator -o json | jq '.[] | select(.reason == \"DriftRepaired\")'")]
pub struct Events {
    /// Name of the BundleDeployment, or `resolution/NAME`, `catalog/NAME`, `provisionerclass/NAME`, `platformoperator/NAME` or
    /// `platformpolicy/NAME`
    #[arg(value_name = "NAME", value_parser = TAKES.target())]
    pub name: Target,

    /// Also show the Events about the objects that it installed, down to the Pods
    #[arg(long)]
    pub objects: bool,

    /// Then show each new Event, until interrupted
    #[arg(short, long)]
    pub watch: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Events {
    /// Prints the Events.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let (kind, name) = (self.name.kind(), self.name.name.as_str());
        let installs_nothing = matches!(
            kind,
            ReportingKind::Catalog
                | ReportingKind::ProvisionerClass
                | ReportingKind::PlatformPolicy
                | ReportingKind::Receiver
        );
        if self.objects && installs_nothing {
            return Err(CommandError::usage(format!("--objects does not go with {}: it installs nothing", self.name))
                .hint(format!("`chandler events {}` shows the Events about it", self.name)));
        }
        let client = cluster::client(&self.connection.options()).await?;
        let scope =
            if self.objects { Scope::with_objects(&client, kind, name).await? } else { Scope::of_object(kind, name) };
        let read = events::read(&client, &scope).await?;
        // Events outlive their object.
        if read.events.is_empty() {
            events::check_exists(&client, kind, name).await?;
            if self.output == DataFormat::Text {
                terminal
                    .line(format!("there are no Events about {}: the API server keeps them for an hour", self.name));
            }
        }
        self.print_all(&rows(&read.events))?;
        if self.watch {
            let mut following = std::pin::pin!(events::follow(&client, &scope, &read.events));
            while let Some(event) = following.next().await {
                self.print_next(&EventRow::new(&event))?;
            }
        }
        let unreadable: Vec<&String> = scope.unreadable.iter().chain(&read.unreadable).collect();
        for problem in &unreadable {
            terminal.line(format!("failed to read {}", one_line(problem)));
        }
        if unreadable.is_empty() { Ok(()) } else { Err(CommandError::failed("some Events could not be read")) }
    }

    /// Prints the Events until now. With --watch, each is a document, as the following ones are.
    fn print_all(&self, rows: &[EventRow]) -> Result<(), CommandError> {
        if self.watch && self.output != DataFormat::Text {
            return rows.iter().try_for_each(|row| self.print_next(row));
        }
        if rows.is_empty() && self.output == DataFormat::Text {
            return Ok(());
        }
        let table = || text(rows, self.objects, Timestamp::now(), Terminal::output().columns());
        output::print(&output::data(&rows, self.output, table)?)
    }

    fn print_next(&self, row: &EventRow) -> Result<(), CommandError> {
        output::print(&output::data(row, self.output, || following(row, self.objects, Timestamp::now()))?)
    }
}
