//! The right to work on a BundleDeployment: as many at once as the administrator allows.
//!
//! A slot bounds how much is done at the same time, and must not let one BundleDeployment keep all others waiting. So a pass
//! lends its slot to others while it waits for something that is made beside it, and gives it back for good where it takes
//! long: an admission webhook that never answers, say, then holds up nobody but its own BundleDeployment.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a pass may keep its slot.
const PATIENCE: Duration = Duration::from_secs(5);

/// All slots.
pub(crate) struct Slots {
    all: Arc<Semaphore>,
    /// How long a pass may keep its slot.
    patience: Duration,
}

/// The slot of one pass.
pub(crate) struct Slot {
    all: Arc<Semaphore>,
    held: Mutex<Held>,
}

enum Held {
    Permit(Option<OwnedSemaphorePermit>),
    /// The pass took too long, and goes on without.
    Never,
}

impl Slots {
    /// As many slots as this, and at least one.
    pub(crate) fn new(count: u16) -> Self {
        Self { all: Arc::new(Semaphore::new(usize::from(count.max(1)))), patience: PATIENCE }
    }

    /// Lets nobody begin any more: the controller is stopping. Who has begun goes on.
    pub(crate) fn close(&self) {
        self.all.close();
    }

    /// Does something within a slot, which it keeps for some seconds at the most. None where nothing is begun any more.
    pub(crate) async fn within<T>(&self, work: impl AsyncFnOnce(&Slot) -> T) -> Option<T> {
        let permit = Arc::clone(&self.all).acquire_owned().await.ok()?;
        let slot = Slot { all: Arc::clone(&self.all), held: Mutex::new(Held::Permit(Some(permit))) };
        let expiry = async {
            tokio::time::sleep(self.patience).await;
            slot.give_back();
            std::future::pending::<T>().await
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

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
}
