//! How much memory releases in progress may take, by the estimate of [`Release::memory`](chandler_core::Release::memory).
//!
//! Each part of the work has its own memory, so that none waits for another one to free memory: a release that is prepared keeps its share
//! until a reconcile takes it, which needs a share of the reconciles; and the reconcile of a set waits for checks. Work that has a share
//! never waits for another share of the same kind.

use chandler_runtime::Capacity;

/// The memory of reconciles, in bytes. Live objects and API responses add about three times as much (measured).
pub(crate) const RECONCILES: usize = 48 << 20;

/// The memory of releases that were fetched and rendered and that no reconcile has taken yet.
const PREPARATIONS: usize = 32 << 20;

/// The memory of releases that are not installed, while the members of sets are checked.
const CHECKS: usize = 16 << 20;

/// Work in progress outside of reconciles.
pub(crate) struct Capacities {
    pub(crate) preparations: Capacity,
    pub(crate) checks: Capacity,
}

impl Default for Capacities {
    fn default() -> Self {
        Self {
            preparations: Capacity::new("prepared releases", PREPARATIONS),
            checks: Capacity::new("checks of sets", CHECKS),
        }
    }
}
