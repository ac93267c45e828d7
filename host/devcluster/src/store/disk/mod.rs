//! Objects on disk.
//!
//! A store in memory hands every write to a [`Journal`]. One thread takes all that have come in since it last looked, writes
//! them in one transaction of the embedded database, waits until the disk has them, and only then reports them as durable and
//! shows them to watchers. Writers that come at the same time share the wait, so that the rate of writes is not bound by the
//! time that a disk takes.
//!
//! | module | holds |
//! |---|---|
//! | `journal` | the queue and the thread |
//! | `database` | the database file: records, format version, checks |
//! | `recognise` | identifies files that are not valid databases |

mod database;
mod journal;
mod recognise;

#[cfg(test)]
mod tests;

use std::path::Path;

pub(crate) use self::{database::Database, journal::Journal};
use crate::store::state::Committed;

/// Where a [`Journal`] writes to.
pub(crate) trait Disk: Send + 'static {
    /// The file, for messages.
    fn path(&self) -> &Path;

    /// Writes changes, which are in the order of their revisions, all or none. They survive whatever happens after this returns.
    ///
    /// # Errors
    /// Says what went wrong.
    fn write(&mut self, changes: &[Committed]) -> Result<(), String>;

    /// Notes that nothing comes after a revision, and lets go of the file.
    ///
    /// # Errors
    /// Says what went wrong.
    fn close(self: Box<Self>, revision: u64) -> Result<(), String>;
}
