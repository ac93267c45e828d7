//! `chandler catalog`.

use std::process::ExitCode;

use chandler_catalog::{
    IndexCatalogs,
    overview::{self, PackageOverview},
};
use clap::Subcommand;

use crate::{
    CommandError,
    read::catalogs::{damaged, unknown_package},
    view::terminal::Terminal,
};

pub mod add;
pub mod channels;
pub mod diff;
pub mod graph;
pub mod lint;
pub mod list;
pub mod marks;
pub mod remove;
pub mod search;
pub mod show;
pub mod versions;

/// Add catalogs to the cluster, and look into catalogs: what can be installed
///
/// A catalog lists packages, their channels and their versions, in the file-based format of OLM (`opm`). It is a directory, a file, an
/// archive or an image with the label operators.operatorframework.io.index.configs.v1. A catalog is read once; an index in the cache
/// answers from then on. `add` and `remove` change the Catalogs of the cluster, which the other commands read unless --catalog names
/// others. With --catalog ./DIR, an image or a URL, no cluster is required.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_long_help = "\
Exit codes: 0 success, 1 failed, 2 wrong usage, 4 the catalogs differ (`diff`), 7 no catalog has the package

Examples:
  Add a catalog to the cluster, and look into it:
    chandler catalog add operatorhub quay.io/operatorhubio/catalog:latest
    chandler catalog show prometheus
  Without a cluster:
    chandler catalog list --catalog quay.io/operatorhubio/catalog:latest
  For all commands of this shell:
    export CHANDLER_CATALOG=./catalog
    chandler catalog search database
    chandler catalog graph prometheus"
)]
pub struct Catalog {
    /// What is asked.
    #[command(subcommand)]
    pub command: CatalogCommand,
}

/// The commands about catalogs.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment would replace the help text of the arguments type")]
pub enum CatalogCommand {
    Add(add::Add),
    Remove(remove::Remove),
    List(list::List),
    Show(show::Show),
    Search(search::Search),
    Channels(channels::Channels),
    Versions(versions::Versions),
    Graph(graph::Graph),
    Lint(lint::Lint),
    Diff(diff::Diff),
}

impl Catalog {
    /// Answers.
    pub async fn run(&self, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        match &self.command {
            CatalogCommand::Add(add) => Box::pin(add.run(terminal)).await?,
            CatalogCommand::Remove(remove) => remove.run(terminal).await?,
            CatalogCommand::List(list) => list.run(terminal).await?,
            CatalogCommand::Show(show) => show.run(terminal).await?,
            CatalogCommand::Search(search) => search.run(terminal).await?,
            CatalogCommand::Channels(channels) => channels.run(terminal).await?,
            CatalogCommand::Versions(versions) => versions.run(terminal).await?,
            CatalogCommand::Graph(graph) => graph.run(terminal).await?,
            CatalogCommand::Lint(lint) => lint.run(terminal).await?,
            CatalogCommand::Diff(diff) => return diff.run(terminal).await,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// All packages of all catalogs, by name and catalog.
fn all(catalogs: &IndexCatalogs) -> Result<Vec<PackageOverview>, CommandError> {
    let mut packages = Vec::new();
    for (name, index) in catalogs.indexes() {
        packages.extend(overview::packages(name, index).map_err(|error| damaged(&error))?);
    }
    packages.sort_by(|one, other| (&one.name, &one.catalog).cmp(&(&other.name, &other.catalog)));
    Ok(packages)
}

/// A package in each catalog that has it.
fn package(name: &str, catalogs: &IndexCatalogs) -> Result<Vec<PackageOverview>, CommandError> {
    let mut packages = Vec::new();
    for (catalog, index) in catalogs.indexes() {
        packages.extend(overview::package(catalog, name, index).map_err(|error| damaged(&error))?);
    }
    if packages.is_empty() { Err(unknown_package(name, catalogs)) } else { Ok(packages) }
}

/// Fails if a package has no channel of this name in any catalog.
fn check_channels<'a>(
    package: &str,
    channels: &[String],
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), CommandError> {
    for channel in channels {
        if !known.clone().any(|name| name == channel) {
            let mut names: Vec<&str> = known.collect();
            names.sort_unstable();
            names.dedup();
            return Err(CommandError::usage(format!("package {package} has no channel {channel}"))
                .hint(format!("its channels are: {}", names.join(", "))));
        }
    }
    Ok(())
}
