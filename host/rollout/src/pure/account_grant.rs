//! Who may be installed on behalf of a ServiceAccount, as the ServiceAccount itself says. Decided by the caller.

use std::{collections::BTreeMap, fmt};

/// Decides whether an owner may be installed on behalf of a ServiceAccount. Deletion needs no grant: it creates nothing.
pub trait AccountGrant: fmt::Debug + Send + Sync {
    /// The decision about a ServiceAccount with these annotations.
    fn allows(&self, annotations: &BTreeMap<String, String>) -> bool;

    /// The annotation that would allow it, for messages: `chandler.dev/bundledeployments: harbour`.
    fn wanted(&self) -> String;
}
