//! Bounded resources whose requesters take turns.
//!
//! A queue in the order of arrival serves the requester with the most work: one with 2,500 objects delays all others by 2,500 turns. Here each
//! requester has a queue of its own, and the queues take turns, so each other requester delays an item by one turn.
//!
//! | module | contents |
//! |---|---|
//! | `requester` | [`Requester`]: on whose behalf work is done |
//! | `rotation` | [`Rotation`]: the queues, pure |
//! | `scheduling` | [`yield_thread`], [`on_background_thread`]: threads that let others run first; [`processor_time`] |
//! | `permits` | [`Turns`]: a semaphore whose waiters are such a rotation |
//! | `keyed_locks` | [`KeyedLocks`]: locks by key, so that tasks do the same work once |

mod keyed_locks;
mod permits;
mod requester;
mod rotation;
mod scheduling;

pub use keyed_locks::{KeyedGuard, KeyedLocks};
pub use permits::{Permit, Turns};
pub use requester::Requester;
pub use rotation::Rotation;
pub use scheduling::{on_background_thread, processor_time, yield_thread};
