//! No controller holds its Lease: what a command prints about it.

use k8s_openapi::jiff::Timestamp;

/// Why no controller holds its Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheld<'a> {
    /// The Lease does not exist.
    Missing,
    /// Its last holder released it.
    Released,
    /// Its holder no longer renews it.
    Expired {
        /// The holder.
        holder: &'a str,
        /// When it renewed the Lease last.
        renewed: Timestamp,
    },
}

impl Unheld<'_> {
    /// A line about the Lease of this name in the namespace of the controller.
    pub fn text(self, system_namespace: &str, lease: &str) -> String {
        let detail = match self {
            Self::Missing => {
                "it does not exist; --system-namespace names another namespace of the controller".to_owned()
            }
            Self::Released => "its last holder has stopped".to_owned(),
            Self::Expired { holder, renewed } => format!("{holder} renewed it last at {renewed:.0}"),
        };
        let page = if matches!(self, Self::Missing) {
            "docs/install.md says how to install it"
        } else {
            "docs/operations.md says how to run it"
        };
        format!(
            "no controller holds the Lease {system_namespace}/{lease}, so that nothing is rolled out or repaired: {detail}. \
             `kubectl get pods --namespace {system_namespace}` shows whether it runs; {page}"
        )
    }
}
