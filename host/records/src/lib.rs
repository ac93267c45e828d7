//! The records of the controller: what each BundleDeployment created or adopted, which revisions ran, and the release that runs.
//!
//! They lie in Secrets of the system namespace, where nobody but the controller and an administrator writes. The status of a
//! BundleDeployment, and the labels and references of objects, are copies for people: whoever may write them decides nothing.
//!
//! | Secret | type | holds |
//! |---|---|---|
//! | `record-…`, one for each name of a BundleDeployment | `chandler.dev/record` | objects by UID, revisions, approvals |
//! | `release-…-N`, immutable | `chandler.dev/release` | the bytes of a release that runs or may have to run again |
//!
//! | module | holds | I/O |
//! |---|---|---|
//! | [`records`](mod@records) | [`Records`]: all of them | yes |
//! | [`book`] | [`Book`]: that of one BundleDeployment | yes |
//! | [`state`] | what a record says | no |
//! | `format` | a record as bytes and back | no |
//! | `kept` | the bytes of releases | yes |
//! | `names` | how the Secrets are named and marked | no |

pub mod book;
mod error;
mod format;
mod kept;
mod names;
pub mod records;
pub mod state;

pub use book::{Book, Opening};
pub use error::RecordError;
pub use names::{MANAGED_BY, RECORD_TYPE, RELEASE_TYPE};
pub use records::{Records, Subject};
pub use state::State;
