//! Limits on the work that untrusted input causes. They count steps instead of time, so that the same input always has the same
//! result.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Why work stopped early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// It exceeds its budget.
    #[error("it takes more than {limit} steps")]
    Exhausted {
        /// The budget, in steps.
        limit: u64,
    },
    /// The caller no longer waits for the result.
    #[error("it was cancelled")]
    Cancelled,
}

/// The steps that remain for some work. Clones share the budget, so that the caller can cancel the work.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    left: AtomicU64,
    cancelled: AtomicBool,
}

impl Budget {
    /// A budget of this many steps.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Shared { limit, left: AtomicU64::new(limit), cancelled: AtomicBool::new(false) }))
    }

    /// Takes one step.
    ///
    /// # Errors
    /// No step is left, or the work was cancelled.
    pub fn step(&self) -> Result<(), Stop> {
        self.take(1)
    }

    /// Takes this many steps.
    ///
    /// # Errors
    /// Fewer steps are left, or the work was cancelled. An exhausted budget stays exhausted.
    pub fn take(&self, steps: u64) -> Result<(), Stop> {
        let Shared { limit, left, cancelled } = &*self.0;
        if cancelled.load(Ordering::Relaxed) {
            return Err(Stop::Cancelled);
        }
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(steps));
        taken.map(drop).map_err(|_| {
            left.store(0, Ordering::Relaxed);
            Stop::Exhausted { limit: *limit }
        })
    }

    /// The number of steps that were taken.
    pub fn taken(&self) -> u64 {
        self.0.limit.saturating_sub(self.0.left.load(Ordering::Relaxed))
    }

    /// The number of steps that are left.
    pub fn left(&self) -> u64 {
        self.0.left.load(Ordering::Relaxed)
    }

    /// Cancels the work at its next step.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_budget_stays_exhausted() {
        let budget = Budget::new(3);
        assert_eq!((budget.step(), budget.take(1), budget.taken()), (Ok(()), Ok(()), 2));
        assert_eq!(budget.take(2), Err(Stop::Exhausted { limit: 3 }));
        assert_eq!(
            budget.step(),
            Err(Stop::Exhausted { limit: 3 }),
            "the remaining steps are not available to smaller work"
        );
    }

    #[test]
    fn every_clone_can_cancel() {
        let budget = Budget::new(3);
        budget.clone().cancel();
        assert_eq!(budget.step(), Err(Stop::Cancelled));
    }
}
