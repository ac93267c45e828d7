//! Why a record cannot be read or written.

use chandler_releases::format::{DecodeError, EncodeError};
use chandler_rollout::{LedgerError, OlderRecord};

/// Why a record cannot be read or written. Without a record the controller changes no object.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The API server rejected the request or is unreachable.
    #[error("failed to {action} Secret {namespace}/{name}: {message}")]
    Request {
        /// The failed action, such as `read`.
        action: &'static str,
        /// The system namespace.
        namespace: String,
        /// The Secret.
        name: String,
        /// The message of the API server or the client.
        message: String,
        /// Whether a retry may succeed.
        transient: bool,
    },
    /// The Secret is not a valid record.
    #[error(
        "Secret {namespace}/{name} is not a valid record: {message}; restore it from a backup, or delete it: then the controller \
         finds the objects of the BundleDeployment by their owner references"
    )]
    Unreadable {
        /// The system namespace.
        namespace: String,
        /// The Secret.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// The record is older than the objects in the cluster.
    #[error(
        "an older record was restored: {found}. Nothing is changed, pruned or deleted until you decide: either restore the newest \
         backup of Secret {namespace}/{name}; or have the record rebuilt from the objects in the cluster, which keeps them as they are and \
         rolls out what the spec describes: `kubectl delete secret -n {namespace} {name}`. The controller then continues by itself; \
         `chandler reconcile {owner}` has it look at once"
    )]
    Older {
        /// What shows it.
        found: OlderRecord,
        /// The system namespace.
        namespace: String,
        /// The Secret.
        name: String,
        /// The name of the BundleDeployment.
        owner: String,
    },
    /// A record would exceed the size of a Secret.
    #[error("the record of BundleDeployment {owner} needs {bytes} bytes, but a Secret holds at most {limit}")]
    TooLarge {
        /// The name of the BundleDeployment.
        owner: String,
        /// Its size.
        bytes: usize,
        /// The size limit.
        limit: usize,
    },
    /// The records and releases of a tenant take as much as they may together.
    #[error(
        "the records and releases of {tenant} take as much of the system namespace as --release-storage-limit allows ({limit} bytes), and the release of \
         {owner} does not fit: delete BundleDeployments of {tenant}, or have an administrator raise the limit. Installed objects stay and are repaired"
    )]
    StorageFull {
        /// The name of the BundleDeployment.
        owner: String,
        /// The namespace of its ServiceAccount, or the account.
        tenant: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A release cannot be stored.
    #[error("failed to store the release: {0}")]
    Release(#[from] EncodeError),
    /// A stored release is corrupt.
    #[error("the release stored in Secret {name} cannot be used: {source}")]
    Altered {
        /// The first of its Secrets.
        name: String,
        /// The error.
        source: DecodeError,
    },
    /// No random seal could be generated.
    #[error("the operating system returned no random numbers")]
    Random,
}

impl RecordError {
    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Request { transient: true, .. })
    }
}

impl From<RecordError> for LedgerError {
    fn from(error: RecordError) -> Self {
        Self { message: error.to_string(), transient: error.is_transient() }
    }
}
