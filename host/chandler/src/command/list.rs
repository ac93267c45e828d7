//! `chandler list`.

use std::{collections::BTreeMap, path::PathBuf};

use chandler_api::BundleDeployment;
use chandler_catalog::upgrade::Newer;
use clap::{ValueEnum, builder::PossibleValue};
use k8s_openapi::jiff::Timestamp;
use kube::{Client, api::ListParams};

use crate::{
    CommandError,
    arguments::{
        connection::Connection, controller_namespace::ControllerNamespaceArguments, format::ListFormat, values,
    },
    read::{
        catalogs::FetchOptions,
        cluster,
        cluster_catalogs::ClusterCatalogs,
        controller_lease::{self, Evidence},
        newer,
    },
    view::{
        listing::{self, Columns, Row},
        output,
        terminal::Terminal,
        text::one_line,
    },
};

/// List BundleDeployments
///
/// Lists all BundleDeployments, with the version that is installed, the version that is pending (being rolled out, waiting for approval,
/// or refused), and the state. A bundle without a version is listed by the digest of its content. The newest version that the Catalogs of
/// the cluster have is shown where their indexes are in the cache of this machine; `chandler outdated` fetches them.
#[derive(Debug, clap::Args)]
#[command(
    visible_alias = "ls",
    after_long_help = "\
Output:
  A table on standard output, which fits the terminal: namespaces, versions and states are cut and
  the age is left out where it is narrow, and the message and the source are added where it is
  wide. The states are Ready, Progressing, Failed, Awaiting approval (AwaitingApproval in JSON),
  Suspended, Deleting and Pending (not observed by the controller yet); the reason comes from the
  condition Ready. HEALTH is about the version that runs, and STATE about the current spec. A line
  on standard error says what waits for your decision, and which rollback keeps a revision.

Exit codes: 0 success, 1 failed, 2 wrong usage

Examples:
  chandler list
  With source, class and message:
    chandler list -o wide
  What has failed:
    chandler list -o json | jq -r '.[] | select(.state == \"Failed\") | .name + \": \" + .message'
  Delete all in a namespace:
    chandler list -n tenant -o name | xargs -n 1 chandler delete --yes"
)]
pub struct List {
    /// Only those that install into this namespace
    #[arg(short, long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// Only those whose labels match, in the syntax of kubectl
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = RowFormat::List(ListFormat::Text))]
    pub output: RowFormat,

    /// Directory with the indexes of catalogs [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,

    /// Where the Lease of the controller is.
    #[command(flatten)]
    pub controller: ControllerNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The format of the list: one that every list has, or names only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowFormat {
    /// As other lists.
    List(ListFormat),
    /// Names, one per line.
    Name,
}

impl ValueEnum for RowFormat {
    fn value_variants<'a>() -> &'a [Self] {
        const {
            &[
                Self::List(ListFormat::Text),
                Self::List(ListFormat::Wide),
                Self::List(ListFormat::Json),
                Self::List(ListFormat::Yaml),
                Self::Name,
            ]
        }
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::List(format) => format.to_possible_value(),
            Self::Name => Some(PossibleValue::new("name").help("Names, one per line")),
        }
    }
}

impl RowFormat {
    /// Whether people read it, with notes on standard error.
    fn is_table(self) -> bool {
        matches!(self, Self::List(format) if format.is_table())
    }
}

impl List {
    /// Prints the list.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let parameters = match &self.selector {
            Some(selector) => ListParams::default().labels(selector),
            None => ListParams::default(),
        };
        let deployments = cluster::deployments(&client, &parameters).await?;
        let now = Timestamp::now();
        let is_wanted = |row: &Row| self.namespace.as_ref().is_none_or(|namespace| *namespace == row.namespace);
        let mut rows: Vec<Row> =
            deployments.iter().map(|deployment| Row::new(deployment, now)).filter(is_wanted).collect();
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        let mut newer = self.newer(&client, &deployments).await;
        for row in &mut rows {
            row.newer_version = newer.remove(&row.name).map(|newer| newer.version);
        }
        if rows.is_empty() && self.output.is_table() {
            terminal.line("no BundleDeployments: `chandler install BUNDLE` installs one");
            return Ok(());
        }
        output::print(&self.text(&rows)?)?;
        if self.output.is_table() {
            for note in listing::notes(&rows) {
                terminal.line(note);
            }
            let evidence = Evidence::of(&deployments, now);
            controller_lease::report_absence(&client, &self.controller.system_namespace, evidence, terminal).await;
        }
        Ok(())
    }

    /// Newer versions by the name of the BundleDeployment, as far as they are known without fetching anything.
    async fn newer(&self, client: &Client, deployments: &[BundleDeployment]) -> BTreeMap<String, Newer> {
        let fetching = FetchOptions { cache_directory: self.cache_directory.clone(), ..FetchOptions::default() };
        let connection = self.connection.options();
        // No ConfigMaps are read: what is not in the cache is left out.
        let cluster = ClusterCatalogs::new(&connection, "", &fetching).with_client(client);
        newer::at_hand(&cluster, deployments).await
    }

    fn text(&self, rows: &[Row]) -> Result<String, CommandError> {
        let format = match self.output {
            RowFormat::List(format) => format,
            RowFormat::Name => return Ok(rows.iter().map(|row| one_line(&row.name) + "\n").collect()),
        };
        let columns = if format == ListFormat::Wide { Columns::Wide } else { Columns::Short };
        output::data(&rows, format.data(), || listing::table(rows, columns, Terminal::output()))
    }
}
