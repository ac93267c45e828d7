//! `chandler catalog show`.

use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::DataFormat},
    read::catalogs,
    view::{catalogs::package, output, terminal::Terminal},
};

/// Show a package: its texts, channels and versions
///
/// If the catalog has no properties for what the newest version provides and requires, its ClusterServiceVersion is used.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Text on standard output; -o json and yaml have a list with the package in each catalog.

Exit codes: 0 success, 1 failed, 2 wrong usage, 7 no catalog has the package

Examples:
  chandler catalog show prometheus --catalog quay.io/operatorhubio/catalog:latest
  The images of all versions:
    chandler catalog show prometheus --catalog ./catalog -o json | jq -r '.[].versions[].image'")]
pub struct Show {
    /// The package
    #[arg(value_name = "PACKAGE")]
    pub package: String,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

impl Show {
    /// Prints the package.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let catalogs = catalogs::open(&self.catalogs.options(), terminal).await?;
        let packages = super::package(&self.package, &catalogs)?;
        let columns = Terminal::output().columns();
        let text = || packages.iter().map(|it| package(it, columns)).collect::<Vec<_>>().join("\n");
        output::print(&output::data(&packages, self.output, text)?)
    }
}
