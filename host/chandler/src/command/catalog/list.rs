//! `chandler catalog list`.

use k8s_openapi::jiff::Timestamp;

use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::ListFormat},
    read::{catalogs, cluster_catalogs::ClusterCatalogs},
    view::{
        catalogs::{PackageRow, packages},
        cluster_catalogs::{CatalogRow, problems, table},
        output,
        terminal::Terminal,
    },
};

/// List the Catalogs of the cluster, or the packages of catalogs
///
/// Without --catalog, lists the Catalogs of the cluster with their state. With --catalog or --packages, lists all packages, each with the
/// version of its default channel. A package that is in several catalogs has a row for each.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output, which fits the terminal; -o json and yaml have every field. The
  states of Catalogs are Ready, Stale (the index of earlier content is in use), Suspended, Failed and
  Pending (not observed by the controller yet); AGE is the age of the content. On standard error,
  the reason and the message of each Catalog that is not ready.

Exit codes: 0 success, 1 failed, 2 wrong usage

Examples:
  The Catalogs of the cluster, and all their packages:
    chandler catalog list
    chandler catalog list --packages
  The packages of a catalog:
    chandler catalog list --catalog quay.io/operatorhubio/catalog:latest
  Two catalogs, by name:
    chandler catalog list --catalog public=quay.io/operatorhubio/catalog:latest --catalog ours=./catalog")]
pub struct List {
    /// List the packages of all Catalogs of the cluster
    #[arg(long)]
    pub packages: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Text)]
    pub output: ListFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

impl List {
    /// Prints the list.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        if self.catalogs.selection.catalogs.is_empty() && !self.packages {
            return self.cluster(terminal).await;
        }
        let catalogs = catalogs::open(&self.catalogs.options(), terminal).await?;
        let all = super::all(&catalogs)?;
        let rows: Vec<PackageRow<'_>> = all.iter().map(PackageRow::from).collect();
        let text = || packages(&rows, self.output.columns());
        output::print(&output::data(&rows, self.output.data(), text)?)
    }

    /// Prints the Catalogs of the cluster.
    async fn cluster(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let options = self.catalogs.options();
        let catalogs = ClusterCatalogs::of(&options).list().await.map_err(|error| {
            error.hint("without a cluster, name a catalog: `--catalog ./catalog`, or an image or a URL")
        })?;
        if catalogs.is_empty() && self.output.is_table() {
            terminal.line("no Catalogs: `chandler catalog add NAME IMAGE` adds one");
            return Ok(());
        }
        let now = Timestamp::now();
        let rows: Vec<CatalogRow> = catalogs.iter().map(|catalog| CatalogRow::new(catalog, now)).collect();
        output::print(&output::data(&rows, self.output.data(), || table(&rows, self.output.frame()))?)?;
        for line in problems(&rows) {
            terminal.line(line);
        }
        Ok(())
    }
}
