//! Bounds how many reconciles of a kind run at once, and how much memory they use together.
//!
//! One object must not block all others. So a reconcile lends its slot while it waits for a job (see [`Jobs`](crate::Jobs)), and
//! loses it for good after some seconds: an admission webhook that never answers, for instance, then delays only the object that
//! depends on it.
//!
//! Requesters take turns for both ([`Turns`]): the objects of one delay those of another by one turn.
//!
//! Memory is bounded by a capacity that reconciles with large payloads share. Those with small payloads do not wait for it.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chandler_turns::{Permit, Requester, Turns};

/// How long a reconcile may hold its slot.
const SLOT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a reconcile may hold its share of the capacity: longer than its slot, since a large payload uses memory for as long
/// as the reconcile takes, but not forever, since API servers allow admission webhooks up to thirty seconds.
const CAPACITY_TIMEOUT: Duration = Duration::from_secs(15);

/// The memory in KiB that all large payloads may use at once. This is an estimate of the payloads alone; live objects and API
/// responses add about three times as much (measured).
const CAPACITY_KIB: usize = 64 << 10;

/// Payloads smaller than this need no share of the capacity.
const LARGE_KIB: usize = 2 << 10;

/// The slots of one kind.
pub struct Slots {
    all: Turns,
    /// The capacity for large payloads, in KiB.
    capacity: Turns,
    slot_timeout: Duration,
    capacity_timeout: Duration,
}

/// The slot of one reconcile.
pub struct Slot {
    requester: Requester,
    all: Turns,
    capacity: Turns,
    state: Mutex<SlotState>,
    share: Mutex<Option<Permit>>,
}

enum SlotState {
    /// The permit; none while it is lent, and during shutdown.
    Active(Option<Permit>),
    /// The reconcile took too long, and continues without a slot.
    Expired,
}

impl Slots {
    /// `count` slots, at least one.
    pub fn new(count: u16) -> Self {
        Self {
            all: Turns::new(usize::from(count.max(1))),
            capacity: Turns::new(CAPACITY_KIB),
            slot_timeout: SLOT_TIMEOUT,
            capacity_timeout: CAPACITY_TIMEOUT,
        }
    }

    /// Starts no further reconcile: the controller is shutting down. Reconciles in progress continue.
    pub fn close(&self) {
        self.all.close();
        self.capacity.close();
    }

    /// Waits for a slot and does the work, which holds the slot for a few seconds at most. None during shutdown.
    pub async fn within<T>(&self, requester: Requester, work: impl AsyncFnOnce(&Slot) -> T) -> Option<T> {
        let permit = self.all.acquire(&requester).await?;
        let slot = Slot {
            requester,
            all: self.all.clone(),
            capacity: self.capacity.clone(),
            state: Mutex::new(SlotState::Active(Some(permit))),
            share: Mutex::default(),
        };
        let expiry = async {
            tokio::time::sleep(self.slot_timeout).await;
            slot.expire();
            loop {
                tokio::time::sleep(self.capacity_timeout).await;
                *slot.share() = None;
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
    /// Waits for a future. Other reconciles can use the slot meanwhile.
    pub async fn lend<T>(&self, wait: impl Future<Output = T>) -> T {
        if let SlotState::Active(permit) = &mut *self.state() {
            *permit = None;
        }
        let result = wait.await;
        self.reacquire().await;
        result
    }

    /// Reserves a share of the capacity for a payload of this many bytes, and lends the slot while it waits. A share that is
    /// large enough is kept; a smaller one is replaced.
    pub async fn carry(&self, bytes: usize) {
        let Some(wanted) = share_for(bytes) else { return };
        {
            let mut share = self.share();
            if share.as_ref().is_some_and(|share| share.count() >= wanted) {
                return;
            }
            // Two reconciles that each kept a share while waiting for a larger one would deadlock.
            *share = None;
        }
        // None during shutdown: reconciles in progress finish without a share.
        let permit = self.lend(self.capacity.acquire_many(&self.requester, wanted)).await;
        *self.share() = permit;
    }

    /// Waits for a slot again, unless this one has expired.
    async fn reacquire(&self) {
        if matches!(*self.state(), SlotState::Expired) {
            return;
        }
        // None during shutdown: reconciles in progress finish without a slot.
        let permit = self.all.acquire(&self.requester).await;
        if let SlotState::Active(active) = &mut *self.state() {
            *active = permit;
        }
    }

    fn expire(&self) {
        *self.state() = SlotState::Expired;
    }

    fn share(&self) -> MutexGuard<'_, Option<Permit>> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The share of the capacity that a payload of this many bytes needs, in KiB; none for a small one. A payload larger than the
/// capacity needs all of it.
fn share_for(bytes: usize) -> Option<usize> {
    let kib = bytes.div_ceil(1024);
    (kib >= LARGE_KIB).then(|| kib.min(CAPACITY_KIB))
}

#[cfg(test)]
mod tests {
    use std::{future::pending, pin::pin};

    use futures::poll;

    use super::*;

    fn requester() -> Requester {
        Requester::new("a", "a")
    }

    #[tokio::test]
    async fn thousands_of_reconciles_of_one_requester_delay_another_by_one() {
        let slots = Slots::new(1);
        let (done, waits) = tokio::sync::oneshot::channel::<()>();
        let mut first = pin!(slots.within(requester(), async |_| waits.await));
        assert!(poll!(&mut first).is_pending());
        let mut many: Vec<_> = (0..2500).map(|_| Box::pin(slots.within(requester(), async |_| ()))).collect();
        for waiting in &mut many {
            assert!(poll!(waiting).is_pending());
        }
        let mut other = pin!(slots.within(Requester::new("b", "b"), async |_| ()));
        assert!(poll!(&mut other).is_pending());
        done.send(()).expect("it waits");
        assert!(poll!(&mut first).is_ready());
        let mut before = 0;
        while poll!(&mut other).is_pending() {
            let next = many.remove(0).await;
            assert_eq!(next, Some(()));
            before += 1;
        }
        assert_eq!(before, 1);
    }

    #[tokio::test]
    async fn a_slot_serves_one_reconcile_at_a_time_until_it_expires() {
        let slots = Slots { slot_timeout: Duration::from_millis(1), ..Slots::new(1) };
        let mut slow = pin!(slots.within(requester(), async |_| pending::<()>().await));
        assert!(poll!(&mut slow).is_pending());
        let mut other = pin!(slots.within(requester(), async |_| ()));
        assert!(poll!(&mut other).is_pending(), "there is one slot");
        tokio::select! {
            _ = &mut slow => unreachable!("it never ends"),
            done = &mut other => assert_eq!(done, Some(())),
        }
    }

    #[tokio::test]
    async fn a_slot_is_lent_while_its_reconcile_waits() {
        let slots = Slots::new(1);
        let (done, waits) = tokio::sync::oneshot::channel::<()>();
        let mut waiting = pin!(slots.within(requester(), async |slot| slot.lend(waits).await));
        assert!(poll!(&mut waiting).is_pending());
        let mut other = pin!(slots.within(requester(), async |_| pending::<()>().await));
        assert!(poll!(&mut other).is_pending());
        let mut third = pin!(slots.within(requester(), async |_| ()));
        assert!(poll!(&mut third).is_pending(), "the second one holds it now");
        done.send(()).expect("it waits");
        assert!(poll!(&mut waiting).is_pending(), "it waits for a slot");
        assert_eq!(slots.all.available(), 0);
    }

    #[tokio::test]
    async fn shutdown_starts_no_reconcile_and_lets_those_in_progress_finish() {
        let slots = Slots::new(1);
        let (done, waits) = tokio::sync::oneshot::channel::<()>();
        let mut begun = pin!(slots.within(requester(), async |slot| slot.lend(waits).await));
        assert!(poll!(&mut begun).is_pending());
        slots.close();
        assert_eq!(slots.within(requester(), async |_| ()).await, None);
        done.send(()).expect("it waits");
        assert!(poll!(&mut begun).is_ready());
    }

    #[tokio::test]
    async fn large_payloads_wait_for_capacity_without_holding_a_slot() {
        let slots = Slots::new(1);
        let all = CAPACITY_KIB << 10;
        let (done, ended) = tokio::sync::oneshot::channel::<()>();
        let mut first = pin!(slots.within(requester(), async |slot| {
            slot.carry(all * 2).await;
            slot.lend(ended).await
        }));
        assert!(poll!(&mut first).is_pending());
        let mut large = pin!(slots.within(requester(), async |slot| slot.carry(LARGE_KIB << 10).await));
        assert!(poll!(&mut large).is_pending(), "the capacity is used up");
        let small = slots.within(requester(), async |slot| slot.carry(LARGE_KIB << 9).await).await;
        assert_eq!(small, Some(()), "a small payload waits neither for capacity nor for the slot of a large one");
        done.send(()).expect("it waits");
        assert!(poll!(&mut first).is_ready());
        assert_eq!(large.await, Some(()));
    }

    #[tokio::test]
    async fn a_share_is_replaced_by_a_larger_one_and_expires() {
        let brief = Duration::from_millis(1);
        let slots = Slots { slot_timeout: brief, capacity_timeout: brief, ..Slots::new(1) };
        let mut slow = pin!(slots.within(requester(), async |slot| {
            slot.carry(50 << 20).await;
            slot.carry(60 << 20).await;
            pending::<()>().await;
        }));
        assert!(poll!(&mut slow).is_pending());
        assert_eq!(slots.capacity.available(), 4 << 10);
        let mut other = pin!(slots.within(requester(), async |slot| slot.carry(5 << 20).await));
        tokio::select! {
            _ = &mut slow => unreachable!("it never ends"),
            done = &mut other => assert_eq!(done, Some(())),
        }
    }
}
