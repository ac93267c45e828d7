//! Bundles of Chandler itself, which another Chandler or OLM can install.

mod csv;
mod plain;
mod registry;

use std::collections::BTreeMap;

pub use self::{plain::plain, registry::registry};

/// The package, and the component of OpenShift, that a bundle is.
const PACKAGE: &str = "chandler";

/// A bundle of Chandler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// The text of each file by its path in the bundle.
    pub files: BTreeMap<String, String>,
    /// The objects that the format cannot hold: kind and name.
    pub omitted: Vec<String>,
}
