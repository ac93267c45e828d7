//! Bounds how many reconciles of a kind run at once, and how much memory they use together.
//!
//! One object must not block all others. So a reconcile lends its slot while it waits for a job (see [`Jobs`](crate::Jobs)), and
//! loses it for good after some seconds: an admission webhook that never answers, for instance, then delays only the object that
//! depends on it.
//!
//! Memory is always bounded ([`Capacity`]). A reconcile that needs more than is free starts over once enough is free: while it waits, it
//! holds nothing in memory.
//!
//! Requesters take turns for both: one requester delays another by one turn.

use std::{
    collections::BTreeMap,
    future::{Future, pending},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use chandler_turns::{Permit, Requester, Turns};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::capacity::{Capacity, NotFree, Share};

/// How long a reconcile may hold its slot.
const SLOT_TIMEOUT: Duration = Duration::from_secs(5);

/// The slots of one kind.
pub struct Slots {
    all: Turns,
    capacity: Capacity,
    waits: Waits,
    slot_timeout: Duration,
}

/// The slot of one reconcile.
pub struct Slot {
    requester: Requester,
    all: Turns,
    capacity: Capacity,
    state: Mutex<SlotState>,
    shares: Mutex<Vec<Share>>,
    /// How many bytes the reconcile needs, if they are not free.
    lacks: AtomicUsize,
    /// Stops the reconcile, which lacks memory.
    stopped: Notify,
}

enum SlotState {
    /// The permit; `None` while it is lent, and during shutdown.
    Active(Option<Permit>),
    /// The reconcile took too long, and continues without a slot.
    Expired,
}

impl Slots {
    /// `count` slots, at least one, whose reconciles share this memory.
    pub fn new(count: u16, capacity: Capacity) -> Self {
        let (all, waits) = (Turns::new(usize::from(count.max(1))), Waits::default());
        Self { all, capacity, waits, slot_timeout: SLOT_TIMEOUT }
    }

    /// How many reconciles wait for a slot or for memory.
    pub fn waiting(&self) -> usize {
        self.all.waiting().saturating_add(self.capacity.waiting())
    }

    /// How long the first of the reconciles that have not begun has waited; zero if none waits.
    pub fn oldest_wait(&self) -> Duration {
        self.waits.oldest().map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Starts no further reconcile: the controller is shutting down. Reconciles in progress continue, as far as they have the memory.
    pub fn close(&self) {
        self.all.close();
        self.capacity.close();
    }

    /// Waits for a slot and for the memory that the work is known to need (0 if unknown), and does the work, which holds the slot for a few
    /// seconds at most. Work that needs more memory than is free is dropped when it requests it, and begins again. `None` during shutdown.
    pub async fn within<T, W>(&self, requester: Requester, bytes: usize, work: impl Fn(Arc<Slot>) -> W) -> Option<T>
    where
        W: Future<Output = T>,
    {
        let mut bytes = bytes;
        loop {
            let wait = self.waits.begin();
            let share = self.capacity.acquire(&requester, bytes).await?;
            let permit = self.all.acquire(&requester).await?;
            drop(wait);
            let slot = Arc::new(Slot {
                requester: requester.clone(),
                all: self.all.clone(),
                capacity: self.capacity.clone(),
                state: Mutex::new(SlotState::Active(Some(permit))),
                shares: Mutex::new(vec![share]),
                lacks: AtomicUsize::new(0),
                stopped: Notify::new(),
            });
            let expiry = async {
                tokio::time::sleep(self.slot_timeout).await;
                slot.expire();
                pending::<()>().await;
            };
            tokio::select! {
                biased;
                result = work(Arc::clone(&slot)) => return Some(result),
                lacks = slot.lack() => bytes = lacks.max(bytes),
                () = expiry => {}
            }
        }
    }
}

/// Since when reconciles wait, in the order in which they came.
#[derive(Default)]
struct Waits(Mutex<BTreeMap<u64, Instant>>);

/// One that waits. It does so until this is dropped.
struct Wait<'a> {
    all: &'a Waits,
    number: u64,
}

impl Waits {
    fn begin(&self) -> Wait<'_> {
        let mut all = self.0.lock();
        let number = all.last_key_value().map_or(0, |(last, _)| last.wrapping_add(1));
        all.insert(number, Instant::now());
        Wait { all: self, number }
    }

    fn oldest(&self) -> Option<Instant> {
        self.0.lock().first_key_value().map(|(_, since)| *since)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.number);
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

    /// Returns if the reconcile has memory for a payload of this many bytes. If too little is free, the reconcile ends here: it is dropped, and
    /// begins again once it is free ([`Slots::within`]).
    pub async fn carry(&self, bytes: usize) {
        if self.grow(bytes).is_ok() {
            return;
        }
        self.lacks.store(bytes, Ordering::Relaxed);
        self.stopped.notify_one();
        pending::<()>().await;
    }

    /// Waits for memory for a payload that still has a share of another capacity, and lends the slot meanwhile. Nothing is dropped: work that has
    /// a share of this capacity waits for none of the other one.
    pub async fn exchange(&self, bytes: usize) {
        if self.grow(bytes).is_ok() {
            return;
        }
        // Two reconciles that each kept a share while waiting for a larger one would wait for each other.
        self.shares().clear();
        // None during shutdown: reconciles in progress finish without a share.
        let share = self.lend(self.capacity.acquire(&self.requester, bytes)).await;
        self.shares().extend(share);
    }

    /// Takes as much as is missing to have so many bytes, if it is free.
    fn grow(&self, bytes: usize) -> Result<(), NotFree> {
        let mut shares = self.shares();
        let more = self.capacity.more(&self.requester, &shares, bytes)?;
        shares.extend(more);
        Ok(())
    }

    /// Waits until the reconcile needs more memory than is free.
    async fn lack(&self) -> usize {
        self.stopped.notified().await;
        self.lacks.load(Ordering::Relaxed)
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

    fn shares(&self) -> MutexGuard<'_, Vec<Share>> {
        self.shares.lock()
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, pin::pin, rc::Rc};

    use futures::{FutureExt as _, future::Shared, poll};
    use tokio::sync::oneshot;

    use super::*;

    fn slots(count: u16) -> Slots {
        Slots::new(count, Capacity::new("tests", 8 << 20))
    }

    /// Ends reconciles that wait for it.
    fn ending() -> (oneshot::Sender<()>, Shared<oneshot::Receiver<()>>) {
        let (done, waits) = oneshot::channel();
        (done, waits.shared())
    }

    /// Waits without the slot.
    async fn lent<T>(slot: Arc<Slot>, waits: impl Future<Output = T>) -> T {
        slot.lend(waits).await
    }

    fn requester() -> Requester {
        Requester::new("a", "a")
    }

    #[tokio::test]
    async fn thousands_of_reconciles_of_one_requester_delay_another_by_one() {
        let slots = slots(1);
        let (done, waits) = ending();
        let mut first = pin!(slots.within(requester(), 0, |_| waits.clone()));
        assert!(poll!(&mut first).is_pending());
        let mut many: Vec<_> = (0..2500).map(|_| Box::pin(slots.within(requester(), 0, async |_| ()))).collect();
        for waiting in &mut many {
            assert!(poll!(waiting).is_pending());
        }
        let mut other = pin!(slots.within(Requester::new("b", "b"), 0, async |_| ()));
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
    async fn what_has_begun_is_completed_before_much_else_begins() {
        let slots = slots(1);
        let (done, waits) = ending();
        let mut first = pin!(slots.within(requester(), 0, |_| waits.clone()));
        assert!(poll!(&mut first).is_pending());
        let order = Mutex::new(Vec::new());
        let (slots, order) = (&slots, &order);
        let work = |requester: Requester, what: &'static str| {
            Box::pin(slots.within(requester, 0, move |_| async move { order.lock().push(what) }))
        };
        // New work of many requesters, then the second stage of rollouts. There is memory for all of them.
        let mut all: Vec<_> = (0..20).map(|number| work(Requester::new(&number.to_string(), "x"), "new")).collect();
        all.extend((0..6).map(|number| work(Requester::new(&format!("begun{number}"), "x").continuing(), "begun")));
        for waiting in &mut all {
            assert!(poll!(waiting).is_pending());
        }
        done.send(()).expect("it waits");
        assert!(poll!(&mut first).is_ready());
        futures::future::join_all(all).await;
        let order = order.lock();
        assert_eq!(order[..9], ["begun", "begun", "begun", "new", "begun", "begun", "begun", "new", "new"]);
        assert_eq!(order.len(), 26);
    }

    #[tokio::test]
    async fn a_slot_serves_one_reconcile_at_a_time_until_it_expires() {
        let slots = Slots { slot_timeout: Duration::from_millis(1), ..slots(1) };
        let mut slow = pin!(slots.within(requester(), 0, async |_| pending::<()>().await));
        assert!(poll!(&mut slow).is_pending());
        let mut other = pin!(slots.within(requester(), 0, async |_| ()));
        assert!(poll!(&mut other).is_pending(), "there is one slot");
        tokio::select! {
            _ = &mut slow => unreachable!("it never ends"),
            done = &mut other => assert_eq!(done, Some(())),
        }
    }

    #[tokio::test]
    async fn the_longest_wait_is_the_one_of_the_first_that_has_not_begun() {
        let slots = slots(1);
        assert_eq!(slots.oldest_wait(), Duration::ZERO);
        let (done, waits) = ending();
        let mut first = pin!(slots.within(requester(), 0, |_| waits.clone()));
        assert!(poll!(&mut first).is_pending());
        assert_eq!(slots.oldest_wait(), Duration::ZERO, "it has begun");
        let mut second = pin!(slots.within(requester(), 0, async |_| ()));
        let mut third = Box::pin(slots.within(requester(), 0, async |_| ()));
        assert!(poll!(&mut second).is_pending() && poll!(&mut third).is_pending());
        let oldest = slots.waits.oldest();
        assert!(oldest.is_some() && slots.oldest_wait() > Duration::ZERO);
        drop(third);
        assert_eq!(slots.waits.oldest(), oldest);
        done.send(()).expect("it waits");
        assert!(poll!(&mut first).is_ready() && poll!(&mut second).is_ready());
        assert_eq!(slots.oldest_wait(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_slot_is_lent_while_its_reconcile_waits() {
        let slots = slots(1);
        let (done, waits) = ending();
        let mut waiting = pin!(slots.within(requester(), 0, |slot| lent(slot, waits.clone())));
        assert!(poll!(&mut waiting).is_pending());
        let mut other = pin!(slots.within(requester(), 0, async |_| pending::<()>().await));
        assert!(poll!(&mut other).is_pending());
        let mut third = pin!(slots.within(requester(), 0, async |_| ()));
        assert!(poll!(&mut third).is_pending(), "the second one holds it now");
        done.send(()).expect("it waits");
        assert!(poll!(&mut waiting).is_pending(), "it waits for a slot");
        assert_eq!(slots.all.available(), 0);
    }

    #[tokio::test]
    async fn shutdown_starts_no_reconcile_and_lets_those_in_progress_finish() {
        let slots = slots(1);
        let (done, waits) = ending();
        let mut begun = pin!(slots.within(requester(), 0, |slot| lent(slot, waits.clone())));
        assert!(poll!(&mut begun).is_pending());
        slots.close();
        assert_eq!(slots.within(requester(), 0, async |_| ()).await, None);
        done.send(()).expect("it waits");
        assert!(poll!(&mut begun).is_ready());
    }

    #[tokio::test]
    async fn a_reconcile_that_lacks_memory_waits_with_empty_hands_and_begins_again() {
        let slots = slots(2);
        let (all, begun) = (slots.capacity.available(), Cell::new(0));
        let (done, ended) = ending();
        let mut first = pin!(slots.within(requester(), 0, |slot| {
            let ended = ended.clone();
            async move {
                slot.carry(all).await;
                slot.lend(ended).await
            }
        }));
        assert!(poll!(&mut first).is_pending());
        assert_eq!(slots.capacity.available(), all - all / 8 * 3, "three quarters of its namespace's half");
        let held = Rc::new(());
        let (begun, held) = (&begun, &held);
        let mut second = pin!(slots.within(requester(), 0, |slot| async move {
            let _payload = Rc::clone(held);
            begun.set(begun.get() + 1);
            slot.carry(1 << 20).await;
            begun.get()
        }));
        // Nothing is free for this account.
        assert!(poll!(&mut second).is_pending());
        assert_eq!((begun.get(), Rc::strong_count(held)), (0, 1));
        let other = slots.within(Requester::new("b", "b"), 0, |slot| async move { slot.carry(all / 2).await }).await;
        assert_eq!(other, Some(()), "another namespace has room");
        done.send(()).expect("it waits");
        assert!(poll!(&mut first).is_ready());
        assert_eq!(second.await, Some(1));
        assert_eq!(slots.capacity.available(), all);
    }

    #[tokio::test]
    async fn a_payload_that_turns_out_larger_is_dropped_and_loaded_again() {
        let slots = slots(2);
        let all = slots.capacity.available();
        let (done, ended) = ending();
        let mut first = pin!(slots.within(requester(), all / 4, |_| ended.clone()));
        assert!(poll!(&mut first).is_pending());
        let (loaded, begun) = (Rc::new(()), Cell::new(0));
        let (begun, loaded) = (&begun, &loaded);
        let mut second = pin!(slots.within(requester(), 0, |slot| async move {
            let _payload = Rc::clone(loaded);
            begun.set(begun.get() + 1);
            slot.carry(all / 2).await;
            begun.get()
        }));
        assert!(poll!(&mut second).is_pending());
        assert_eq!((begun.get(), Rc::strong_count(loaded)), (1, 1), "it began, and keeps nothing while it waits");
        assert_eq!((slots.capacity.available(), slots.all.available()), (all - all / 4, 1));
        done.send(()).expect("it waits");
        assert!(poll!(&mut first).is_ready());
        assert_eq!(second.await, Some(2));
    }

    #[tokio::test]
    async fn a_payload_that_is_counted_elsewhere_waits_without_a_share_of_this_memory() {
        let slots = slots(2);
        let all = slots.capacity.available();
        let (done, ended) = ending();
        let mut first = pin!(slots.within(requester(), all / 8 * 3 - (256 << 10), |_| ended.clone()));
        assert!(poll!(&mut first).is_pending());
        let mut second = pin!(slots.within(requester(), 0, |slot| async move { slot.exchange(all / 4).await }));
        assert!(poll!(&mut second).is_pending());
        assert_eq!(
            (slots.capacity.available(), slots.all.available()),
            (all - all / 8 * 3 + (256 << 10), 1),
            "it gave its share back"
        );
        done.send(()).expect("it waits");
        assert!(poll!(&mut first).is_ready());
        assert_eq!(second.await, Some(()));
        assert_eq!(slots.capacity.available(), all);
    }

    #[tokio::test]
    async fn memory_stays_taken_for_as_long_as_the_reconcile_takes() {
        let slots = Slots { slot_timeout: Duration::from_millis(1), ..slots(1) };
        let all = slots.capacity.available();
        let mut slow = pin!(slots.within(requester(), all / 2, async |_| pending::<()>().await));
        assert!(poll!(&mut slow).is_pending());
        // Another reconcile gets the slot once this one has lost it.
        let mut other = pin!(slots.within(Requester::new("b", "b"), 0, async |_| ()));
        tokio::select! {
            _ = &mut slow => unreachable!("it never ends"),
            done = &mut other => assert_eq!(done, Some(())),
        }
        assert_eq!(slots.capacity.available(), all - all / 8 * 3);
    }
}
