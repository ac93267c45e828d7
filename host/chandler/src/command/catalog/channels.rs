//! `chandler catalog channels`.

use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::ListFormat},
    read::catalogs,
    view::{catalogs::channels, output, terminal::Terminal},
};

/// List the channels of a package
///
/// The head of a channel is the bundle that no other bundle of the channel replaces. The default channel comes first.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output; -o json and yaml have a list of packages with their `channels`.

Exit codes: 0 success, 1 failed, 2 wrong usage, 7 no catalog has the package

Examples:
  chandler catalog channels prometheus --catalog quay.io/operatorhubio/catalog:latest")]
pub struct Channels {
    /// The package
    #[arg(value_name = "PACKAGE")]
    pub package: String,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Text)]
    pub output: ListFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

impl Channels {
    /// Prints the channels.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let catalogs = catalogs::open(&self.catalogs.options(), terminal).await?;
        let packages = super::package(&self.package, &catalogs)?;
        let data: Vec<_> = packages
            .iter()
            .map(|it| serde_json::json!({"catalog": it.catalog, "package": it.name, "channels": it.channels}))
            .collect();
        let text = || channels(&packages.iter().collect::<Vec<_>>(), self.output.columns());
        output::print(&output::data(&data, self.output.data(), text)?)
    }
}
