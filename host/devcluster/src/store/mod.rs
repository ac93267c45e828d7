//! A multi-version store of JSON objects with watches: what etcd and the watch cache are to kube-apiserver.
//!
//! Every write gets the next revision. Superseded versions and the change log are kept for a window, so that a list can be
//! taken at a past revision and a watch can start there; outside of the window both return [`Compacted`]. Nothing in this module
//! knows HTTP or Kubernetes, except that the revision is written to `metadata.resourceVersion`, and that JSON begins with
//! `kind` and `apiVersion`.
//!
//! ```
//! # use chandler_devcluster::store::{Expected, Key, Scope, Store};
//! let store = Store::default();
//! let key = Key::new("configmaps".into(), "default", "example");
//! let scope = Scope { resource: Some("configmaps".into()), namespace: None };
//! let (listing, mut watch) = store.list_and_watch(scope);
//! assert!(listing.objects.is_empty());
//!
//! let object = store.put(key.clone(), Expected::Absent, serde_json::json!({"data": {"a": "1"}}))?;
//! assert_eq!(object.value()["metadata"]["resourceVersion"], object.revision().to_string());
//! assert!(store.put(key, Expected::Absent, serde_json::json!({})).is_err());
//! assert_eq!(watch.ready().expect("nothing was compacted").events.len(), 1);
//! # Ok::<(), chandler_devcluster::store::Mismatch>(())
//! ```
//!
//! # What is kept across restarts
//!
//! A store from [`Store::new`] lives in memory. One from [`DataDirectory::store`] keeps its objects in a database file:
//!
//! * What [`Store::durable`] has confirmed survives the end of the process and, as far as the disk keeps its promises, a
//!   loss of power. Writers wait for it before they acknowledge a write. The object and its revision are written in
//!   one transaction, in the order of revisions: what is found after a crash is the state at one revision, no earlier than the
//!   last one that was confirmed.
//! * Watches show a change only when it is durable. Reads show it at once, up to the time of a disk's flush earlier.
//! * Writers that come at the same time share a flush. One that comes alone waits for one: `cargo xtask bench --control-plane` shows how long
//!   that is.
//! * Revisions continue after a restart, and none is reused: after a crash some thousands are skipped, those that may have been
//!   seen without having become durable. The history does not survive: what refers to revisions from before is answered with
//!   [`Compacted`].
//! * If the disk fails, the store continues in memory, confirms nothing any more and reports why ([`Store::failure`]).
//!
//! # Memory
//!
//! Objects are stored as JSON and parsed when they are read; parsed forms are dropped when they exceed a limit ([`Limits`]).
//!
//! | module | holds |
//! |---|---|
//! | `key` | keys and scopes |
//! | `change` | requests and results |
//! | [`object`] | one stored version: JSON, parsed on demand |
//! | `table` | the versions of the objects of a resource |
//! | `state` | the tables and the log, without locks |
//! | `shared` | the store, shared |
//! | `watch` | a cursor over the log that waits for changes |
//! | `disk` | the queue to the disk and the database file |
//! | `directory` | the data directory |
//! | `error` | its errors |

mod change;
mod directory;
mod disk;
mod error;
mod key;
pub mod object;
mod shared;
mod state;
mod table;
mod watch;

#[cfg(test)]
mod tests;

pub use change::{Change, Compacted, Event, Expected, Limits, Listing, Mismatch, Page, PageRequest};
pub use directory::{DataDirectory, Secrets};
pub use error::{Failure, OpenError, Recovered};
pub use key::{Key, Scope};
pub use object::Object;
pub use shared::Store;
pub use state::Snapshot;
pub use watch::{Batch, Watch};
