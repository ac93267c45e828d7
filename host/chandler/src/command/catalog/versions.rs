//! `chandler catalog versions`.

use chandler_catalog::overview::VersionOverview;

use super::{check_channels, marks::InstalledArgument};
use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::ListFormat},
    read::catalogs,
    view::{catalogs::versions, output, terminal::Terminal},
};

/// List the versions of a package, the newest first
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A table on standard output; -o json and yaml have a list of packages with their `versions`. The
  column STATE shows what is installed, what would be next, and what is deprecated.

Exit codes: 0 success, 1 failed, 2 wrong usage, 7 no catalog has the package

Examples:
  chandler catalog versions prometheus --catalog quay.io/operatorhubio/catalog:latest
  What would be next:
    chandler catalog versions prometheus --catalog ./catalog --installed prometheusoperator.0.47.0")]
pub struct Versions {
    /// The package
    #[arg(value_name = "PACKAGE")]
    pub package: String,

    /// Only the versions of this channel. Repeatable [default: all]
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub channels: Vec<String>,

    /// What is marked.
    #[command(flatten)]
    pub installed: InstalledArgument,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = ListFormat::Text)]
    pub output: ListFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

impl Versions {
    /// Prints the versions.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let (catalogs, client) = catalogs::open_with_client(&self.catalogs.options(), terminal).await?;
        let packages = super::package(&self.package, &catalogs)?;
        let known = packages.iter().flat_map(|it| it.channels.iter().map(|channel| channel.name.as_str()));
        check_channels(&self.package, &self.channels, known)?;
        let marks = self.installed.marks(&self.package, &self.channels, &catalogs, client.as_ref(), terminal).await?;
        let is_wanted = |version: &&VersionOverview| {
            self.channels.is_empty() || version.channels.iter().any(|channel| self.channels.contains(channel))
        };
        let rows: Vec<(&str, Vec<&VersionOverview>)> =
            packages.iter().map(|it| (it.catalog.as_str(), it.versions.iter().filter(is_wanted).collect())).collect();
        let data: Vec<_> = rows
            .iter()
            .map(|(catalog, versions)| {
                serde_json::json!({"catalog": catalog, "package": self.package, "versions": versions,
                    "installed": marks.installed, "next": marks.next})
            })
            .collect();
        output::print(&output::data(&data, self.output.data(), || {
            versions(&rows, &marks.for_graph(), self.output.columns())
        })?)
    }
}
