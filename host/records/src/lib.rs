//! The records of the controller: the objects that each BundleDeployment created or adopted, its revisions, and its
//! current release.
//!
//! Records are stored in Secrets of the system namespace, which only the controller and administrators can write. The
//! status of a BundleDeployment, and the labels and owner references of objects, are informational copies: the
//! controller never relies on them.
//!
//! | Secret | type | holds |
//! |---|---|---|
//! | `record-…`, one for each name of a BundleDeployment | `chandler.dev/record` | objects by UID, revisions, approvals |
//! | `release-…-N`, immutable | `chandler.dev/release` | a release that runs or may have to run again |
//!
//! | module | holds | I/O |
//! |---|---|---|
//! | [`records`](mod@records) | [`Records`]: all records | yes |
//! | [`record`] | [`Record`]: the record of one BundleDeployment | yes |
//! | [`state`] | the content of a record | no |
//! | `format` | encodes and decodes a record | no |
//! | `storage` | what the Secrets of each tenant take, and the limit on the sum | no |
//! | `release_store` | stores releases | yes |
//! | `names` | names and labels of the Secrets | no |

mod error;
mod format;
mod names;
pub mod record;
pub mod records;
mod release_store;
pub mod state;
mod storage;

pub use error::RecordError;
pub use names::{MANAGED_BY, RECORD_TYPE, RELEASE_TYPE};
pub use record::{PendingRevision, Record};
pub use records::{Records, Subject};
pub use state::State;
pub use storage::StorageLimit;
