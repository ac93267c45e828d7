//! The right to work on a BundleDeployment: as many at once as the administrator allows.
//!
//! A slot bounds how much is done at the same time, and must not let one BundleDeployment keep all others waiting. So a pass
//! lends its slot to others while it waits for something that is made beside it, and gives it back for good where it takes
//! long: an admission webhook that never answers, say, then holds up nobody but its own BundleDeployment.
//!
//! What is done at the same time is bounded in memory, too: large releases share a capacity, and small ones wait for none.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a pass may keep its slot.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a pass may keep its share of the capacity: longer than its slot, since memory is what a large release takes for as
/// long as it is worked on, and not for ever, since API servers let admission webhooks take up to thirty seconds.
const LOAD_PATIENCE: Duration = Duration::from_secs(15);

/// What the large releases that are worked on may take together, in KiB of memory: an estimate of the releases alone. What the
/// cluster has and what it answers take about three times as much again (measured).
const CAPACITY_KIB: u32 = 64 << 10;

/// Smaller releases need no share of the capacity.
const LARGE_KIB: usize = 2 << 10;

/// All slots.
pub(crate) struct Slots {
    all: Arc<Semaphore>,
    /// The capacity for large releases, in KiB.
    capacity: Arc<Semaphore>,
    /// How long a pass may keep its slot.
    patience: Duration,
    /// How long a pass may keep its share of the capacity.
    load_patience: Duration,
}

/// The slot of one pass.
pub(crate) struct Slot {
    all: Arc<Semaphore>,
    capacity: Arc<Semaphore>,
    held: Mutex<Held>,
    load: Mutex<Option<OwnedSemaphorePermit>>,
}

enum Held {
    Permit(Option<OwnedSemaphorePermit>),
    /// The pass took too long, and goes on without.
    Never,
}

impl Slots {
    /// As many slots as this, and at least one.
    pub(crate) fn new(count: u16) -> Self {
        Self {
            all: Arc::new(Semaphore::new(usize::from(count.max(1)))),
            capacity: Arc::new(Semaphore::new(CAPACITY_KIB as usize)),
            patience: PATIENCE,
            load_patience: LOAD_PATIENCE,
        }
    }

    /// Lets nobody begin any more: the controller is stopping. Who has begun goes on.
    pub(crate) fn close(&self) {
        self.all.close();
        self.capacity.close();
    }

    /// Does something within a slot, which it keeps for some seconds at the most. None where nothing is begun any more.
    pub(crate) async fn within<T>(&self, work: impl AsyncFnOnce(&Slot) -> T) -> Option<T> {
        let permit = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let slot = Slot {
            all: Arc::clone(&self.all),
            capacity: Arc::clone(&self.capacity),
            held: Mutex::new(Held::Permit(Some(permit))),
            load: Mutex::default(),
        };
        let expiry = async {
            tokio::time::sleep(self.patience).await;
            slot.give_back();
            loop {
                tokio::time::sleep(self.load_patience).await;
                *slot.load() = None;
            }
        };
        tokio::select! {
            biased;
            result = work(&slot) => Some(result),
            never = expiry => Some(never),
        }
    }
}

impl Slot {
    /// Waits for something while others use the slot.
    pub(crate) async fn lend<T>(&self, wait: impl Future<Output = T>) -> T {
        if let Held::Permit(permit) = &mut *self.held() {
            *permit = None;
        }
        let result = wait.await;
        self.take().await;
        result
    }

    /// Waits until the capacity for large releases has room for one that takes this many bytes of memory, while others use the
    /// slot. Where the pass has enough of it already, nothing happens; else this release replaces that one.
    pub(crate) async fn carry(&self, bytes: usize) {
        let Some(wanted) = weight(bytes) else { return };
        {
            let mut load = self.load();
            if load.as_ref().is_some_and(|load| load.num_permits() >= wanted as usize) {
                return;
            }
            // Two that kept what they have while they wait for more would wait for each other.
            *load = None;
        }
        // None where the controller is stopping: what has begun ends without.
        let permit = self.lend(Arc::clone(&self.capacity).acquire_many_owned(wanted)).await.ok();
        *self.load() = permit;
    }

    /// Waits for a slot again, unless this pass goes on without.
    async fn take(&self) {
        if matches!(*self.held(), Held::Never) {
            return;
        }
        // None where the controller is stopping: what has begun ends without.
        let permit = Arc::clone(&self.all).acquire_owned().await.ok();
        if let Held::Permit(place) = &mut *self.held() {
            *place = permit;
        }
    }

    fn give_back(&self) {
        *self.held() = Held::Never;
    }

    fn load(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.load.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The share of the capacity that a release of this many bytes needs, in KiB; none for a small one. One that is larger than the
/// capacity takes all of it.
fn weight(bytes: usize) -> Option<u32> {
    let kib = bytes.div_ceil(1024);
    (kib >= LARGE_KIB).then(|| u32::try_from(kib).unwrap_or(u32::MAX).min(CAPACITY_KIB))
}

#[cfg(test)]
mod tests {
    use std::{future::pending, pin::pin};

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn a_slot_is_for_one_pass_at_a_time_until_that_takes_too_long() {
        let slots = Slots { patience: Duration::from_millis(1), ..Slots::new(1) };
        let mut slow = pin!(slots.within(async |_| pending::<()>().await));
        assert!(poll!(&mut slow).is_pending());
        let mut other = pin!(slots.within(async |_| ()));
        assert!(poll!(&mut other).is_pending(), "there is one slot");
        tokio::select! {
            _ = &mut slow => unreachable!("it never ends"),
            done = &mut other => assert_eq!(done, Some(())),
        }
    }

    #[tokio::test]
    async fn a_slot_is_lent_while_its_pass_waits() {
        let slots = Slots::new(1);
        let (done, waits) = tokio::sync::oneshot::channel::<()>();
        let mut waiting = pin!(slots.within(async |slot| slot.lend(waits).await));
        assert!(poll!(&mut waiting).is_pending());
        let mut other = pin!(slots.within(async |_| pending::<()>().await));
        assert!(poll!(&mut other).is_pending());
        let mut third = pin!(slots.within(async |_| ()));
        assert!(poll!(&mut third).is_pending(), "the other one has it now");
        done.send(()).expect("it waits");
        assert!(poll!(&mut waiting).is_pending(), "it goes on when there is a slot again");
        assert_eq!(slots.all.available_permits(), 0);
    }

    #[tokio::test]
    async fn when_the_controller_stops_what_has_begun_ends_and_nothing_begins() {
        let slots = Slots::new(1);
        let (done, waits) = tokio::sync::oneshot::channel::<()>();
        let mut begun = pin!(slots.within(async |slot| slot.lend(waits).await));
        assert!(poll!(&mut begun).is_pending());
        slots.close();
        assert_eq!(slots.within(async |_| ()).await, None);
        done.send(()).expect("it waits");
        assert!(poll!(&mut begun).is_ready());
    }

    #[tokio::test]
    async fn large_releases_wait_for_one_another_and_keep_no_slot_meanwhile() {
        let slots = Slots::new(1);
        let all = (CAPACITY_KIB as usize) << 10;
        let (done, ended) = tokio::sync::oneshot::channel::<()>();
        let mut first = pin!(slots.within(async |slot| {
            slot.carry(all * 2).await;
            slot.lend(ended).await
        }));
        assert!(poll!(&mut first).is_pending());
        let mut large = pin!(slots.within(async |slot| slot.carry(LARGE_KIB << 10).await));
        assert!(poll!(&mut large).is_pending(), "there is no room");
        let small = slots.within(async |slot| slot.carry(LARGE_KIB << 9).await).await;
        assert_eq!(small, Some(()), "a small one waits neither for room nor for the slot of a large one");
        done.send(()).expect("it waits");
        assert!(poll!(&mut first).is_ready());
        assert_eq!(large.await, Some(()));
    }

    #[tokio::test]
    async fn a_pass_replaces_what_it_carries_and_keeps_it_for_a_while_only() {
        let brief = Duration::from_millis(1);
        let slots = Slots { patience: brief, load_patience: brief, ..Slots::new(1) };
        let mut slow = pin!(slots.within(async |slot| {
            slot.carry(50 << 20).await;
            slot.carry(60 << 20).await;
            pending::<()>().await;
        }));
        assert!(poll!(&mut slow).is_pending());
        assert_eq!(slots.capacity.available_permits(), 4 << 10);
        let mut other = pin!(slots.within(async |slot| slot.carry(5 << 20).await));
        tokio::select! {
            _ = &mut slow => unreachable!("it never ends"),
            done = &mut other => assert_eq!(done, Some(())),
        }
    }
}
