//! How much work untrusted input may cause: counted in steps and not in time, so that the same input always gets the same answer.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// Why work ended before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stop {
    /// It takes more steps than it may.
    #[error("it takes more than {limit} steps")]
    Exhausted {
        /// How many it may take.
        limit: u64,
    },
    /// Nobody waits for its result any more.
    #[error("it was cancelled")]
    Cancelled,
}

/// The steps that some work may still take. Clones share it, so that whoever waits for the work can cancel it.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    left: AtomicU64,
    cancelled: AtomicBool,
}

impl Budget {
    /// A budget of so many steps.
    pub fn new(limit: u64) -> Self {
        Self(Arc::new(Shared { limit, left: AtomicU64::new(limit), cancelled: AtomicBool::new(false) }))
    }

    /// Takes one step.
    ///
    /// # Errors
    /// Where none is left, or the work was cancelled.
    pub fn step(&self) -> Result<(), Stop> {
        self.take(1)
    }

    /// Takes so many steps.
    ///
    /// # Errors
    /// Where fewer are left, or the work was cancelled. Once it was exhausted, a budget stays so.
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

    /// How many steps were taken.
    pub fn taken(&self) -> u64 {
        self.0.limit.saturating_sub(self.0.left.load(Ordering::Relaxed))
    }

    /// Has the work end at its next step.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_ends_and_stays_so() {
        let budget = Budget::new(3);
        assert_eq!((budget.step(), budget.take(1), budget.taken()), (Ok(()), Ok(()), 2));
        assert_eq!(budget.take(2), Err(Stop::Exhausted { limit: 3 }));
        assert_eq!(budget.step(), Err(Stop::Exhausted { limit: 3 }), "what is left is not for smaller work");
    }

    #[test]
    fn every_holder_can_cancel() {
        let budget = Budget::new(3);
        budget.clone().cancel();
        assert_eq!(budget.step(), Err(Stop::Cancelled));
    }
}
