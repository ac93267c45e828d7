//! Why a record cannot be read or written.

use chandler_releases::format::{DecodeError, EncodeError};
use chandler_rollout::LedgerError;

/// Why a record cannot be read or written. Nothing is done to any object without one.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The API server refused, or could not be reached.
    #[error("cannot {action} Secret {namespace}/{name}: {message}")]
    Request {
        /// What was to be done, as in `read`.
        action: &'static str,
        /// The system namespace.
        namespace: String,
        /// The Secret.
        name: String,
        /// What the API server or the client says.
        message: String,
        /// Whether trying again soon may help.
        transient: bool,
    },
    /// The Secret is not what this program wrote.
    #[error(
        "Secret {namespace}/{name} is not a record that can be read: {message}; restore it from a backup, or delete it to have \
         the objects of the BundleDeployment found by their owner references"
    )]
    Unreadable {
        /// The system namespace.
        namespace: String,
        /// The Secret.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// A record would be larger than a Secret may be.
    #[error("the record of BundleDeployment {owner} would take {bytes} bytes, and a Secret holds {limit} at most")]
    TooLarge {
        /// The name of the BundleDeployment.
        owner: String,
        /// What it would take.
        bytes: usize,
        /// What there is room for.
        limit: usize,
    },
    /// A release cannot be kept.
    #[error("the release cannot be kept: {0}")]
    Release(#[from] EncodeError),
    /// A release that was kept is not what it was.
    #[error("the release that is kept in {name} cannot be used: {source}")]
    Altered {
        /// The first of its Secrets.
        name: String,
        /// Why.
        source: DecodeError,
    },
    /// No secret could be made up.
    #[error("the system gives no random numbers")]
    Random,
}

impl RecordError {
    /// Whether trying again soon may help.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Request { transient: true, .. })
    }
}

impl From<RecordError> for LedgerError {
    fn from(error: RecordError) -> Self {
        Self { message: error.to_string(), transient: error.is_transient() }
    }
}
