//! Places for transfers, shared by callers.
//!
//! Each transfer takes space on the disk, and some a thread. A caller has at most half of the places, and a transfer that is slow gives way
//! to another caller when all are taken: otherwise, a few callers that send or read a byte now and then would keep all others out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use crate::refusal::Refusal;

/// A transfer with fewer bytes a second gives way.
pub(crate) const RATE: u64 = 32 << 10;
/// How long a transfer is under way before its rate counts.
const SETTLED: Duration = Duration::from_secs(10);
/// What the names of ServiceAccounts begin with.
const ACCOUNT: &str = "system:serviceaccount:";

/// A user, or all ServiceAccounts of a namespace: who may create one there may create any number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller(Arc<str>);

impl Caller {
    /// The caller with this name of a TokenReview.
    pub(crate) fn new(user: &str) -> Self {
        let namespace = user.strip_prefix(ACCOUNT).and_then(|account| account.split_once(':'));
        Self(namespace.map_or_else(|| user.into(), |(namespace, _)| format!("{ACCOUNT}{namespace}").into()))
    }
}

/// Places for transfers of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    most: usize,
    held: Arc<Mutex<Vec<Arc<Transfer>>>>,
}

/// A transfer. Its place is free when it is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    held: Arc<Mutex<Vec<Arc<Transfer>>>>,
    transfer: Arc<Transfer>,
}

#[derive(Debug)]
struct Transfer {
    caller: Caller,
    bytes: AtomicU64,
    /// Since when bytes are transferred; none before and afterwards.
    since: Mutex<Option<Instant>>,
    gives_way: watch::Sender<bool>,
}

/// What a new transfer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// A free place.
    Free,
    /// The place of this one.
    Of(usize),
    /// None: the caller has its share.
    Share,
    /// None: all are taken, and none is slow.
    Taken,
}

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, held: Arc::default() }
    }

    /// Lets all transfers be old enough for their rates to count.
    #[cfg(test)]
    pub(crate) fn age(&self) {
        for transfer in locked(&self.held).iter() {
            *locked(&transfer.since) = Instant::now().checked_sub(SETTLED);
        }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// The caller has its share, or all places are taken.
    pub(crate) fn take(&self, caller: &Caller) -> Result<Place, Refusal> {
        let mut held = locked(&self.held);
        let now = Instant::now();
        let transfers: Vec<_> = held.iter().map(|transfer| (&transfer.caller, transfer.rate(now))).collect();
        match choose(&transfers, caller, self.most) {
            Choice::Free => {}
            // Removed at once, so that it is not chosen again; the transfer itself ends soon.
            Choice::Of(index) => drop(held.remove(index).gives_way.send_replace(true)),
            Choice::Share => return Err(Refusal::Unavailable("too many of your transfers are under way")),
            Choice::Taken => return Err(Refusal::Unavailable("too many transfers are under way")),
        }
        let transfer = Arc::new(Transfer {
            caller: caller.clone(),
            bytes: AtomicU64::new(0),
            since: Mutex::default(),
            gives_way: watch::Sender::new(false),
        });
        held.push(Arc::clone(&transfer));
        Ok(Place { held: Arc::clone(&self.held), transfer })
    }
}

/// Decides which caller gets a place, from the callers and their rates in bytes per second. A rate is missing if it is not meaningful.
fn choose(transfers: &[(&Caller, Option<u64>)], caller: &Caller, most: usize) -> Choice {
    let own = transfers.iter().filter(|(other, _)| *other == caller).count();
    if own >= most.div_ceil(2) {
        return Choice::Share;
    }
    if transfers.len() < most {
        return Choice::Free;
    }
    let slow = |(index, (other, rate)): (usize, &(&Caller, Option<u64>))| {
        rate.filter(|rate| *rate < RATE && *other != caller).map(|rate| (rate, index))
    };
    transfers.iter().enumerate().filter_map(slow).min().map_or(Choice::Taken, |(_, index)| Choice::Of(index))
}

impl Transfer {
    fn rate(&self, now: Instant) -> Option<u64> {
        let under_way = now.saturating_duration_since((*locked(&self.since))?);
        (under_way >= SETTLED).then(|| self.bytes.load(Ordering::Relaxed) / under_way.as_secs().max(1))
    }
}

impl Place {
    /// Bytes are transferred from now on.
    pub(crate) fn begin(&self) {
        *locked(&self.transfer.since) = Some(Instant::now());
    }

    /// No further bytes are transferred, and the place is kept for what remains to be done.
    pub(crate) fn end(&self) {
        *locked(&self.transfer.since) = None;
    }

    /// These many bytes were transferred.
    pub(crate) fn moved(&self, bytes: usize) {
        self.transfer.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Waits until the transfer has to give way.
    pub(crate) async fn gives_way(&self) {
        let mut gives_way = self.transfer.gives_way.subscribe();
        // The sender lives as long as this does.
        let _ = gives_way.wait_for(|gives_way| *gives_way).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.held).retain(|transfer| !Arc::ptr_eq(transfer, &self.transfer));
    }
}

/// No panic leaves a list half changed.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accounts_of_a_namespace_are_one_caller() {
        let of = Caller::new;
        assert_eq!(of("system:serviceaccount:shop:a"), of("system:serviceaccount:shop:b"));
        assert_ne!(of("system:serviceaccount:shop:a"), of("system:serviceaccount:shop2:a"));
        assert_ne!(of("ann"), of("bob"));
        // A user cannot pass for a namespace of accounts: the prefix is reserved by the API server.
        assert_eq!(of("system:serviceaccount:shop"), Caller("system:serviceaccount:shop".into()));
    }

    #[test]
    fn slow_transfers_give_way_to_other_callers_only() {
        let [mallory, ann, bob] = ["mallory", "ann", "bob"].map(Caller::new);
        let drip = (&mallory, Some(100));
        assert_eq!(choose(&[drip, drip], &mallory, 4), Choice::Share);
        assert_eq!(choose(&[drip, drip], &ann, 4), Choice::Free);
        let full = [drip, (&bob, Some(RATE)), (&mallory, Some(99)), (&bob, None)];
        assert_eq!(choose(&full, &ann, 4), Choice::Of(2));
        // Too new for a rate, or fast enough.
        assert_eq!(choose(&[(&bob, None), (&bob, Some(RATE))], &ann, 2), Choice::Taken);
        // A caller's own transfers do not give way to each other.
        assert_eq!(choose(&[(&ann, Some(1)), (&bob, None), (&bob, None), (&mallory, None)], &ann, 4), Choice::Taken);
    }

    proptest! {
        /// A caller without a place gets one, unless all are fast or new.
        #[test]
        fn who_has_no_place_waits_for_fast_transfers_only(
            rates in proptest::collection::vec((0..3_usize, proptest::option::of(0..2 * RATE)), 0..8),
        ) {
            let callers = ["a", "b", "c"].map(Caller::new);
            let transfers: Vec<_> = rates.iter().map(|(caller, rate)| (&callers[*caller], *rate)).collect();
            let fast = transfers.iter().all(|(_, rate)| rate.is_none_or(|rate| rate >= RATE));
            match choose(&transfers, &Caller::new("new"), 4) {
                Choice::Free => prop_assert!(transfers.len() < 4),
                Choice::Of(index) => {
                    let slowest = transfers.iter().filter_map(|(_, rate)| *rate).min();
                    prop_assert_eq!(transfers[index].1, slowest);
                }
                Choice::Share => prop_assert!(false, "it has none"),
                Choice::Taken => prop_assert!(fast),
            }
        }
    }

    #[tokio::test]
    async fn a_place_is_free_when_it_is_dropped_or_gives_way() {
        let places = Places::new(2);
        let [ann, bob, eve] = ["ann", "bob", "eve"].map(Caller::new);
        let first = places.take(&ann).unwrap();
        let second = places.take(&bob).unwrap();
        assert!(places.take(&eve).is_err());
        drop(second);
        let second = places.take(&eve).unwrap();
        assert!(first.gives_way().now_or_never().is_none());
        // Only what is being transferred has a rate.
        assert!(places.take(&bob).is_err());
        first.moved(1000);
        places.age();
        second.end();
        let third = places.take(&bob).unwrap();
        first.gives_way().await;
        // The transfer that gave way frees no other place.
        drop(first);
        assert!(places.take(&ann).is_err());
        drop((second, third));
        assert!(places.take(&ann).is_ok());
    }
}
