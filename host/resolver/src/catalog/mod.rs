//! Catalogs as the resolver reads them: by package, when a question leads there.
//!
//! | module | contents |
//! |---|---|
//! | [`package`](mod@package) | a package with its channels, bundles and deprecations |
//! | [`bundle`] | a bundle: what it provides, requires and tolerates |
//! | [`csv`] | what the ClusterServiceVersion of a bundle says about the same |
//! | [`memory`] | catalogs of JSON metas, in memory |

use std::sync::Arc;

use crate::kind::Kind;

pub mod bundle;
pub mod csv;
pub mod memory;
pub mod package;

pub use bundle::{Bundle, Content};
pub use memory::MemoryCatalogs;
pub use package::{Channel, Entry, Package};

/// A catalog cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read catalog {catalog:?}: {message}")]
pub struct CatalogError {
    /// The name of the catalog.
    pub catalog: String,
    /// What happened.
    pub message: String,
}

/// Catalogs by name. A question reads the packages that it leads to, and no others; implementations keep what they parsed.
pub trait Catalogs {
    /// A package, if the catalog has it.
    ///
    /// # Errors
    /// If the catalog cannot be read.
    fn package(&self, catalog: &str, package: &str) -> Result<Option<Arc<Package>>, CatalogError>;

    /// The names of the packages with a bundle that provides a kind, in any order. It may name more than that.
    ///
    /// # Errors
    /// If the catalog cannot be read.
    fn providers(&self, catalog: &str, kind: &Kind) -> Result<Vec<String>, CatalogError>;

    /// The names of all packages. Only a CEL rule without a package or a kind asks for them.
    ///
    /// # Errors
    /// If the catalog cannot be read.
    fn packages(&self, catalog: &str) -> Result<Vec<String>, CatalogError>;
}
