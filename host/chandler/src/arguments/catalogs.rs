//! Which catalogs a command reads.

use std::path::PathBuf;

use chandler_api::OlmCatalogs;

use super::{connection::Connection, registry::RegistryArguments, system_namespace::SystemNamespaceArguments};

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

/// Objects that are catalogs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogKind {
    /// Catalogs of Chandler.
    Catalogs,
    /// Catalogs of OLM.
    Olm(OlmCatalogs),
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

/// The name, if there is one, and the place of a catalog. A name has only the characters of a DNS label or a dot, so that no path and
/// no URL with `=` is cut.
pub fn named(text: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    match text.split_once('=') {
        Some((name, place)) if is_name(name) => (Some(name), place),
        _ => (None, text),
    }
}

fn priority(text: &str) -> Result<(String, i32), String> {
    let (name, number) = text.split_once('=').unwrap_or((text, ""));
    let number = number.parse().map_err(|_| format!("{text:?} is not a priority: write `NAME=10`"))?;
    Ok((name.to_owned(), number))
}

#[cfg(test)]
mod tests {
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
    fn a_name_comes_before_the_first_equals_sign() {
        for (text, expected) in [
            ("./catalog", (None, "./catalog")),
            ("mine=./catalog", (Some("mine"), "./catalog")),
            ("mine=./a=b", (Some("mine"), "./a=b")),
            ("./a=b", (None, "./a=b")),
            ("https://example.com/c.tgz?x=1", (None, "https://example.com/c.tgz?x=1")),
            ("=./catalog", (None, "=./catalog")),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
        assert_eq!(priority("a=-3"), Ok(("a".to_owned(), -3)));
        assert!(priority("a").is_err() && priority("a=x").is_err());
    }
}
