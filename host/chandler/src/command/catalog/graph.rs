//! `chandler catalog graph`.

use chandler_catalog::{
    Channel, Index, PackageBlobs,
    graph::{self, Extent, Marks},
};
use clap::ValueEnum;

use super::{check_channels, marks::InstalledArgument};
use crate::{
    CommandError,
    arguments::{catalogs::CatalogArguments, format::DataFormat},
    read::catalogs::{self, damaged, unknown_package},
    view::{catalogs as view, output, terminal::Terminal, text::one_line},
};

/// Draw the channels of a package: which bundle updates which
///
/// Shows what each bundle replaces and skips, and the versions that it updates directly (skipRange). The installed bundle and the next one
/// are marked.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The graph on standard output: the channels one after the other, the default channel first, each
  with its newest bundle first. A long channel is folded to its newest bundles and those around the
  marks; --all shows it whole.

Exit codes: 0 success, 1 failed, 2 wrong usage, 7 no catalog has the package

Examples:
  chandler catalog graph prometheus --catalog quay.io/operatorhubio/catalog:latest
  A picture of one channel:
    chandler catalog graph prometheus --catalog ./catalog --channel beta -o svg > beta.svg
  What would be next:
    chandler catalog graph prometheus --catalog ./catalog --installed prometheusoperator.0.47.0")]
pub struct Graph {
    /// The package
    #[arg(value_name = "PACKAGE")]
    pub package: String,

    /// Only this channel. Repeatable [default: all]
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub channels: Vec<String>,

    /// What is marked.
    #[command(flatten)]
    pub installed: InstalledArgument,

    /// Show every bundle of a long channel, and every name that a bundle skips. Pictures always do
    #[arg(long)]
    pub all: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = GraphFormat::Text)]
    pub output: GraphFormat,

    /// The catalogs.
    #[command(flatten)]
    pub catalogs: CatalogArguments,
}

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GraphFormat {
    /// A line for each bundle
    Text,
    /// JSON, the channels with their entries, as in the catalog
    Json,
    /// YAML, as JSON
    Yaml,
    /// A Mermaid flowchart, for Markdown
    Mermaid,
    /// An SVG image
    Svg,
}

impl Graph {
    /// Draws the graph.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let (catalogs, client) = catalogs::open_with_client(&self.catalogs.options(), terminal).await?;
        let mut found: Vec<(&str, PackageBlobs)> = Vec::new();
        for (name, index) in catalogs.indexes() {
            let blobs = Index::package(index, &self.package).map_err(|error| damaged(&error))?;
            found.extend(blobs.filter(|blobs| !blobs.packages.is_empty()).map(|blobs| (name, blobs)));
        }
        let [(_, blobs)] = found.as_slice() else {
            let Some((first, _)) = found.first() else { return Err(unknown_package(&self.package, &catalogs)) };
            let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
            return Err(CommandError::usage(format!(
                "package {} is in several catalogs: {}",
                self.package,
                names.join(", ")
            ))
            .hint(format!("name one of them alone with --catalog, such as {first}")));
        };
        check_channels(&self.package, &self.channels, blobs.channels.iter().map(|it| it.value.name.as_str()))?;
        let marks = self.installed.marks(&self.package, &self.channels, &catalogs, client.as_ref(), terminal).await?;
        let drawn = self.draw(&self.chosen(blobs), &marks.for_graph())?;
        if self.output == GraphFormat::Text { output::show(&drawn) } else { output::print(&drawn) }
    }

    /// The channels, the default channel first.
    fn chosen<'a>(&self, blobs: &'a PackageBlobs) -> Vec<&'a Channel> {
        let default = blobs.packages.first().map(|it| it.value.default_channel.as_str());
        let all = blobs.channels.iter().map(|it| &it.value);
        let mut chosen: Vec<&Channel> =
            all.filter(|it| self.channels.is_empty() || self.channels.contains(&it.name)).collect();
        chosen.sort_by_key(|channel| (Some(channel.name.as_str()) != default, channel.name.as_str()));
        chosen
    }

    fn draw(&self, channels: &[&Channel], marks: &Marks<'_>) -> Result<String, CommandError> {
        Ok(match self.output {
            GraphFormat::Json => output::json(&channels)?,
            GraphFormat::Yaml => output::data(&channels, DataFormat::Yaml, String::new)?,
            GraphFormat::Mermaid => graph::as_mermaid(channels, marks),
            GraphFormat::Svg => view::svg(&self.package, channels, marks),
            GraphFormat::Text => {
                let extent = if self.all { Extent::Whole } else { Extent::Folded };
                let one = |channel: &&Channel| {
                    let text = graph::as_text(channel, marks, extent);
                    format!("channel {}\n{}", one_line(&channel.name), indented(&text))
                };
                channels.iter().map(one).collect::<Vec<_>>().join("\n")
            }
        })
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect::<Vec<_>>().concat()
}
