//! What is marked in the versions of a package: the bundle that is installed, and the next one.

use std::sync::Arc;

use chandler_catalog::{Bundle, Index, IndexCatalogs, IndexError, graph, names, overview, upgrade};
use chandler_resolver::Installed;
use kube::Client;

use crate::{
    CommandError,
    read::{catalogs::damaged, package, question},
    view::{
        terminal::Terminal,
        text::{count, one_line},
    },
};

/// What is installed of a package.
#[derive(Debug, clap::Args)]
pub struct InstalledArgument {
    /// The bundle that is installed; it and the next one are marked [default: the one that a BundleDeployment has, if the catalogs are the
    /// cluster's]
    #[arg(long, value_name = "BUNDLE")]
    pub installed: Option<String>,
}

/// The bundle that is installed, and the one that would be next in any of the catalogs.
#[derive(Debug, Default)]
pub(super) struct Marks {
    pub installed: Option<String>,
    pub next: Option<String>,
}

impl Marks {
    pub(super) fn for_graph(&self) -> graph::Marks<'_> {
        graph::Marks { installed: self.installed.as_deref(), next: self.next.as_deref() }
    }
}

impl InstalledArgument {
    /// Looks up the installed bundle. `channels` are the channels to upgrade in; empty means all. `client` belongs to the cluster that has
    /// these catalogs.
    pub(super) async fn marks(
        &self,
        package: &str,
        channels: &[String],
        catalogs: &IndexCatalogs,
        client: Option<&Client>,
        terminal: &Terminal,
    ) -> Result<Marks, CommandError> {
        let fails = |error: IndexError| damaged(&error);
        if let Some(bundle) = &self.installed {
            let found = found(package, catalogs, |it| it.name == *bundle).map_err(fails)?;
            let (bundle, index) = found.ok_or_else(|| unknown_bundle(package, bundle, catalogs))?;
            return marks_of(package, &bundle, index, channels, terminal);
        }
        let Some(client) = client else { return Ok(Marks::default()) };
        let (all, others) = package::deployments_of(package, catalogs, client).await?;
        for line in others {
            terminal.line(line);
        }
        let Some((name, installed)) = all.first() else { return Ok(Marks::default()) };
        if all.len() > 1 {
            let several = count(all.len(), "BundleDeployment");
            terminal.line(format!("{several} have package {package}; the version of {name} is marked"));
        }
        // Its image belongs to a bundle of the catalogs.
        match found(package, catalogs, |it| it.name == installed.name).map_err(fails)? {
            Some((bundle, index)) => marks_of(package, &bundle, index, channels, terminal),
            None => Ok(Marks::default()),
        }
    }
}

/// The first bundle of the package with the property, and the index that has it.
fn found<'a>(
    package: &str,
    catalogs: &'a IndexCatalogs,
    has: impl Fn(&Bundle) -> bool,
) -> Result<Option<(Bundle, &'a Arc<Index>)>, IndexError> {
    for (_, index) in catalogs.indexes() {
        let bundles = Index::package(index, package)?.into_iter().flat_map(|blobs| blobs.bundles);
        if let Some(bundle) = bundles.map(|it| it.value).find(&has) {
            return Ok(Some((bundle, index)));
        }
    }
    Ok(None)
}

fn marks_of(
    package: &str,
    bundle: &Bundle,
    index: &Arc<Index>,
    channels: &[String],
    terminal: &Terminal,
) -> Result<Marks, CommandError> {
    let installed = Installed {
        package: package.to_owned(),
        name: bundle.name.clone(),
        version: overview::version_text(bundle),
        ..Installed::default()
    };
    let next = upgrade::next(index, installed, channels).map_err(|error| question::unanswered(&error))?;
    if next.is_none() {
        terminal.line(format!("no upgrade of {} in {}", one_line(&bundle.name), described(channels)));
    }
    Ok(Marks { installed: Some(bundle.name.clone()), next })
}

fn unknown_bundle(package: &str, bundle: &str, catalogs: &IndexCatalogs) -> CommandError {
    let blobs = catalogs.indexes().filter_map(|(_, index)| Index::package(index, package).ok().flatten());
    let known: Vec<String> = blobs.flat_map(|blobs| blobs.bundles).map(|it| it.value.name).collect();
    let error = CommandError::usage(format!("--installed {bundle}: package {package} has no such bundle"));
    let similar = names::similar(bundle, known.iter().map(String::as_str), 5);
    if similar.is_empty() {
        error.hint(format!("`chandler catalog versions {package}` lists the names of its bundles"))
    } else {
        error.hint(format!("similar names: {}", similar.join(", ")))
    }
}

fn described(channels: &[String]) -> String {
    match channels {
        [] => "any channel".to_owned(),
        [one] => format!("channel {one}"),
        several => format!("{}: {}", count(several.len(), "channel"), several.join(", ")),
    }
}
