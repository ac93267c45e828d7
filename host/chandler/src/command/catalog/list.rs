//! `chandler catalog list`.

use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::DataFormat},
    read::catalogs,
    view::{
        catalogs::{PackageRow, packages},
        output,
        terminal::Terminal,
    },
};

/// List the packages of catalogs
///
/// Lists all packages, each with the version of its default channel. A package that is in several catalogs has a row for each.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output, which fits the terminal; -o json and yaml have every field.

Exit codes: 0 success, 1 failed, 2 wrong usage

Examples:
  chandler catalog list --catalog quay.io/operatorhubio/catalog:latest
  Two catalogs, by name:
    chandler catalog list --catalog public=quay.io/operatorhubio/catalog:latest --catalog ours=./catalog")]
pub struct List {
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

impl List {
    /// Prints the list.
    pub async fn run(&self, _terminal: &Terminal) -> Result<(), CommandError> {
        let catalogs = catalogs::open(&self.catalogs).await?;
        let all = super::all(&catalogs)?;
        let rows: Vec<PackageRow<'_>> = all.iter().map(PackageRow::from).collect();
        let text = || packages(&rows, Terminal::output().columns());
        output::print(&output::data(&rows, self.output, text)?)
    }
}
