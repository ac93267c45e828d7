//! Who may be installed on behalf of a ServiceAccount, as the ServiceAccount itself says. Decided by the caller.

use std::{collections::BTreeMap, fmt};

use futures::future::BoxFuture;

/// Decides whether an owner may be installed on behalf of a ServiceAccount. Deletion needs no grant: it creates nothing.
pub trait AccountGrant: fmt::Debug + Send + Sync {
    /// The decision about a ServiceAccount with these annotations.
    fn allows<'a>(&'a self, annotations: &'a BTreeMap<String, String>) -> BoxFuture<'a, bool>;

    /// The annotation that would allow it, for messages: `chandler.dev/bundledeployments: harbour`.
    fn wanted(&self) -> String;
}
