//! Which catalogs a command reads.

use std::path::PathBuf;

use super::{connection::Connection, registry::RegistryArguments, system_namespace::SystemNamespaceArguments};
use crate::read::{
    catalogs::{CatalogOptions, FetchOptions},
    cluster::ConnectionOptions,
    cluster_catalogs::CatalogKind,
};

/// Catalogs, and the names and priorities that the user gives them.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CatalogSelection {
    /// A catalog: a directory, a YAML or JSON file, an archive, the URL of an archive or a git repository, an image, or the name of a Catalog of the cluster,
    /// as `CATALOG` or `NAME=CATALOG`. A text without `/`, `:` and `.` that is not a path is such a name. Repeatable [default: all Catalogs
    /// of the cluster]
    #[arg(long = "catalog", value_name = "[NAME=]CATALOG", env = "CHANDLER_CATALOG", hide_env_values = true)]
    pub catalogs: Vec<String>,

    /// Priority of a catalog, such as `mirror=10`; the higher one wins where catalogs offer the same version. Repeatable [default: the
    /// Catalog's priority, else 0]
    #[arg(long = "catalog-priority", value_name = "NAME=NUMBER", value_parser = priority)]
    pub priorities: Vec<(String, i32)>,

    /// Which objects of the cluster are read as its Catalogs: `catalogs` (of Chandler), `clustercatalogs` (of OLM v1), and
    /// `catalogsources/NAMESPACE` (of OLM v0, in one namespace, with an image). Separated by commas
    #[arg(long, value_name = "KINDS", value_delimiter = ',', default_value = "catalogs", env = "CHANDLER_CATALOGS_FROM",
          hide_env_values = true, value_parser = kind)]
    pub catalogs_from: Vec<CatalogKind>,
}

impl CatalogSelection {
    /// The options, for catalogs that are fetched so, of this cluster.
    pub fn options(
        &self,
        fetching: FetchOptions,
        connection: ConnectionOptions,
        system_namespace: &str,
    ) -> CatalogOptions {
        CatalogOptions {
            catalogs: self.catalogs.clone(),
            priorities: self.priorities.clone(),
            kinds: self.catalogs_from.clone(),
            fetching,
            connection,
            system_namespace: system_namespace.to_owned(),
        }
    }
}

/// How a version of a package is chosen.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PackageArguments {
    /// Channel to choose a package from. Repeatable [default: all; for an upgrade, the channels of the installed bundle]
    #[arg(long = "channel", value_name = "CHANNEL")]
    pub channels: Vec<String>,

    /// The catalogs of a package.
    #[command(flatten)]
    pub selection: CatalogSelection,
}

fn kind(text: &str) -> Result<CatalogKind, String> {
    if text == "catalogs" {
        return Ok(CatalogKind::Catalogs);
    }
    let olm = text.parse().map(CatalogKind::Olm);
    olm.map_err(|_| "write `catalogs`, `clustercatalogs` or `catalogsources/NAMESPACE`".to_owned())
}

/// Catalogs, and how they are fetched.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct CatalogArguments {
    /// The catalogs.
    #[command(flatten)]
    pub selection: CatalogSelection,

    /// How the catalogs are fetched.
    #[command(flatten)]
    pub fetching: Fetching,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,

    /// Where the ConfigMaps of Catalogs are.
    #[command(flatten)]
    pub system_namespace: SystemNamespaceArguments,
}

impl CatalogArguments {
    /// The options.
    pub fn options(&self) -> CatalogOptions {
        let system_namespace = &self.system_namespace.system_namespace;
        self.selection.options(self.fetching.options(), self.connection.options(), system_namespace)
    }
}

/// How catalogs are fetched, and where they are kept.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Fetching {
    /// How the command connects to the registry of an image.
    #[command(flatten)]
    pub registry: RegistryArguments,

    /// Directory for catalogs and their indexes [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

impl Fetching {
    /// The options.
    pub fn options(&self) -> FetchOptions {
        FetchOptions { registry: self.registry.options(), cache_directory: self.cache_directory.clone() }
    }
}

fn priority(text: &str) -> Result<(String, i32), String> {
    let (name, number) = text.split_once('=').unwrap_or((text, ""));
    let number = number.parse().map_err(|_| format!("{text:?} is not a priority: write `NAME=10`"))?;
    Ok((name.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use chandler_api::OlmCatalogs;

    use super::*;

    #[test]
    fn catalog_sources_are_those_of_a_namespace() {
        let sources = CatalogKind::Olm(OlmCatalogs::CatalogSources("openshift-marketplace".to_owned()));
        assert_eq!(kind("catalogsources/openshift-marketplace"), Ok(sources));
        assert_eq!(kind("clustercatalogs"), Ok(CatalogKind::Olm(OlmCatalogs::ClusterCatalogs)));
        for refused in ["catalogsources", "catalogsources/", "catalogsources/A", "ClusterCatalog", "catalogs/x", ""] {
            assert!(kind(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_priority_is_a_name_and_a_number() {
        assert_eq!(priority("a=-3"), Ok(("a".to_owned(), -3)));
        assert!(priority("a").is_err() && priority("a=x").is_err());
    }
}
