//! A semaphore whose waiters take turns.

use std::{collections::HashMap, sync::Arc};

use futures::FutureExt as _;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::{
    Requester, Rotation,
    rotation::{MayHave, Turn},
};

/// A number of permits, for which requesters take turns. Clones share them.
#[derive(Clone, Debug)]
pub struct Turns(Arc<Mutex<State>>);

/// Permits, which are free again when this is dropped.
#[derive(Debug)]
pub struct Permit {
    count: usize,
    namespace: Arc<str>,
    account: Arc<str>,
    /// `None` for permits that were not received: they are counted where they were granted.
    turns: Option<Turns>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// How many a namespace holds; those that hold some are listed.
    held: HashMap<Arc<str>, Held>,
    /// How many a namespace and an account may hold, where that is limited.
    most: Option<Most>,
    waiting: Rotation<Waiting>,
    closed: bool,
}

/// What a namespace holds, and each of its accounts that holds some.
#[derive(Debug, Default)]
struct Held {
    all: usize,
    accounts: HashMap<Arc<str>, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Most {
    namespace: usize,
    account: usize,
}

#[derive(Debug)]
struct Waiting {
    count: usize,
    grant: oneshot::Sender<Permit>,
}

/// A place in the queue, which is given up when this is dropped.
struct Place<'a> {
    turns: &'a Turns,
    granted: Option<oneshot::Receiver<Permit>>,
}

impl Turns {
    /// So many permits.
    pub fn new(count: usize) -> Self {
        Self::of(count, None)
    }

    /// So many permits, of which the requesters of one namespace hold `namespace` at a time, and one account `account`: what they do not give back
    /// leaves some to others.
    pub fn with_most(count: usize, namespace: usize, account: usize) -> Self {
        Self::of(count, Some(Most { namespace, account: account.min(namespace) }))
    }

    fn of(free: usize, most: Option<Most>) -> Self {
        let state = State { free, held: HashMap::new(), most, waiting: Rotation::default(), closed: false };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Waits for a permit. `None` if the permits are closed before.
    pub async fn acquire(&self, requester: &Requester) -> Option<Permit> {
        self.acquire_many(requester, 1).await
    }

    /// Waits for several permits at once, at most all that an account may hold. Later requests do not overtake one whose turn it is, however many
    /// it needs; an account or a namespace that holds too many to get these has no turn. `None` if the permits are closed before.
    pub async fn acquire_many(&self, requester: &Requester, count: usize) -> Option<Permit> {
        let mut place = {
            let mut state = self.state();
            if state.closed {
                return None;
            }
            let count = state.most.map_or(count, |most| count.min(most.account));
            let (grant, granted) = oneshot::channel();
            state.waiting.push(requester, Waiting { count, grant });
            state.grant(self);
            Place { turns: self, granted: Some(granted) }
        };
        let permit = place.granted.as_mut()?.await.ok();
        place.granted = None;
        permit
    }

    /// Several permits, if they are free and it is this requester's turn.
    pub fn try_acquire_many(&self, requester: &Requester, count: usize) -> Option<Permit> {
        self.acquire_many(requester, count).now_or_never().flatten()
    }

    /// Ends all waits: no further permit is granted. Permits that were granted stay valid.
    pub fn close(&self) {
        let waiting = {
            let mut state = self.state();
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        // Outside of the lock, since it wakes the waiters.
        drop(waiting);
    }

    /// How many permits are free.
    pub fn available(&self) -> usize {
        self.state().free
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No state is invalid.
        self.0.lock()
    }
}

impl State {
    /// Grants permits while the next waiter's are free.
    fn grant(&mut self, turns: &Turns) {
        while let Some(turn) = self.next() {
            let Some(Waiting { count, grant }) = self.waiting.pop_of(&turn) else { return };
            let Turn { namespace, account, .. } = turn;
            self.take(&namespace, &account, count);
            if let Err(mut unwanted) = grant.send(Permit { count, namespace, account, turns: Some(turns.clone()) }) {
                // Dropping it would lock the state again.
                unwanted.turns = None;
                self.give_back(&unwanted.namespace, &unwanted.account, count);
            }
        }
    }

    /// Whose turn it is, if the permits that it waits for are free.
    fn next(&self) -> Option<Turn> {
        let may = |namespace: &Arc<str>, account: &Arc<str>, next: &Waiting| {
            let (Some(most), Some(held)) = (self.most, self.held.get(namespace)) else { return MayHave::Turn };
            let own = held.accounts.get(account).copied().unwrap_or_default();
            if own + next.count > most.account {
                MayHave::AnotherAccount
            } else if held.all + next.count > most.namespace {
                // No other account overtakes it.
                MayHave::Nothing
            } else {
                MayHave::Turn
            }
        };
        let (turn, next) = self.waiting.front_of(may)?;
        (next.count <= self.free).then_some(turn)
    }

    fn take(&mut self, namespace: &Arc<str>, account: &Arc<str>, count: usize) {
        self.free -= count;
        let held = self.held.entry(Arc::clone(namespace)).or_default();
        held.all += count;
        *held.accounts.entry(Arc::clone(account)).or_default() += count;
    }

    fn give_back(&mut self, namespace: &str, account: &str, count: usize) {
        self.free += count;
        let Some(held) = self.held.get_mut(namespace) else { return };
        held.all = held.all.saturating_sub(count);
        if let Some(own) = held.accounts.get_mut(account) {
            *own = own.saturating_sub(count);
        }
        held.accounts.retain(|_, own| *own > 0);
        if held.all == 0 {
            self.held.remove(namespace);
        }
    }
}

impl Permit {
    /// How many permits these are.
    pub fn count(&self) -> usize {
        self.count
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            let mut state = turns.state();
            state.give_back(&self.namespace, &self.account, self.count);
            state.grant(&turns);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // A permit that was granted meanwhile is dropped with its receiver, which locks the state: so before the lock here.
        if self.granted.take().is_some() {
            let mut state = self.turns.state();
            state.waiting.retain(|waiting| !waiting.grant.is_closed());
            state.grant(self.turns);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::{future::join_all, poll};
    use proptest::prelude::*;

    use super::*;

    fn requester(name: &str) -> Requester {
        Requester::new(name, name)
    }

    #[tokio::test]
    async fn a_permit_passes_to_the_other_requester_first() {
        let turns = Turns::new(1);
        let (many, one) = (requester("many"), requester("one"));
        let held = turns.acquire(&many).await.unwrap();
        let mut waits: Vec<_> = (0..2500).map(|_| Box::pin(turns.acquire(&many))).collect();
        for wait in &mut waits {
            assert!(poll!(wait).is_pending());
        }
        let mut other = pin!(turns.acquire(&one));
        assert!(poll!(&mut other).is_pending());
        drop(held);
        let first = waits[0].as_mut().now_or_never().flatten().expect("it came first");
        assert!(poll!(&mut other).is_pending());
        drop(first);
        assert!(other.now_or_never().flatten().is_some(), "after one turn");
    }

    #[tokio::test]
    async fn a_request_that_is_dropped_waits_no_longer() {
        let turns = Turns::new(1);
        let (a, b) = (requester("a"), requester("b"));
        let held = turns.acquire(&a).await.unwrap();
        let mut dropped = Box::pin(turns.acquire(&a));
        let mut other = pin!(turns.acquire(&b));
        assert!(poll!(&mut dropped).is_pending() && poll!(&mut other).is_pending());
        drop(dropped);
        let mut granted = Box::pin(turns.acquire(&a));
        assert!(poll!(&mut granted).is_pending());
        drop(held);
        let permit = other.now_or_never().flatten().expect("its turn");
        // Granted, and dropped before it is seen.
        drop(permit);
        drop(granted);
        assert_eq!(turns.available(), 1);
    }

    #[tokio::test]
    async fn a_large_request_is_not_overtaken() {
        let turns = Turns::new(4);
        let (a, b) = (requester("a"), requester("b"));
        let held = turns.acquire_many(&a, 3).await.unwrap();
        let mut large = Box::pin(turns.acquire_many(&a, 4));
        assert!(poll!(&mut large).is_pending());
        let mut small = pin!(turns.acquire(&b));
        assert!(poll!(&mut small).is_pending(), "it would keep the large one waiting");
        drop(large);
        assert!(small.now_or_never().flatten().is_some(), "the large one is gone");
        drop(held);
        assert_eq!(turns.available(), 4);
    }

    #[tokio::test]
    async fn a_namespace_leaves_some_to_others() {
        let turns = Turns::with_most(4, 2, 2);
        let (a, b) = (requester("a"), requester("b"));
        let held = turns.acquire_many(&a, 4).await.unwrap();
        assert_eq!((held.count(), turns.available()), (2, 2), "as many as it may hold");
        let mut more = Box::pin(turns.acquire(&a));
        assert!(poll!(&mut more).is_pending());
        assert!(turns.try_acquire_many(&a, 1).is_none());
        let other = turns.try_acquire_many(&b, 2).expect("another namespace does not wait for it");
        assert!(poll!(&mut more).is_pending(), "nothing is free");
        drop(other);
        assert!(poll!(&mut more).is_pending(), "it still holds what it may");
        drop(held);
        assert!(more.now_or_never().flatten().is_some());
        assert_eq!(turns.available(), 4);
        assert!(turns.state().held.is_empty());
    }

    #[tokio::test]
    async fn an_account_leaves_some_to_others_of_its_namespace() {
        let turns = Turns::with_most(8, 4, 3);
        let of = |account: &str| Requester::new("a", account);
        let (many, one) = (of("many"), of("one"));
        let held = turns.acquire_many(&many, 8).await.unwrap();
        assert_eq!(held.count(), 3, "as many as it may hold");
        let mut more = Box::pin(turns.acquire(&many));
        assert!(poll!(&mut more).is_pending());
        let other = turns.try_acquire_many(&one, 1).expect("another account does not wait for it");
        assert!(turns.try_acquire_many(&one, 1).is_none(), "the namespace holds what it may");
        assert!(turns.try_acquire_many(&requester("b"), 3).is_some(), "another namespace does not wait for it");
        drop(held);
        assert!(more.now_or_never().flatten().is_some());
        drop(other);
        assert!(turns.state().held.is_empty());
    }

    #[tokio::test]
    async fn closing_ends_all_waits() {
        let turns = Turns::new(1);
        let held = turns.acquire(&requester("a")).await.unwrap();
        let b = requester("b");
        let mut waits = pin!(turns.acquire(&b));
        assert!(poll!(&mut waits).is_pending());
        turns.close();
        assert!(waits.await.is_none() && turns.acquire(&requester("a")).await.is_none());
        drop(held);
        assert_eq!(turns.available(), 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn permits_are_neither_lost_nor_made_by_many_threads() {
        let turns = Turns::new(3);
        let tasks = (0..200).map(|number| {
            let turns = turns.clone();
            tokio::spawn(async move {
                let requester = requester(&(number % 7).to_string());
                for count in [1, 3, 2] {
                    let wait = turns.acquire_many(&requester, count);
                    if number % 5 == 0 {
                        // Dropped while it waits, or after it was granted.
                        drop(wait.now_or_never());
                        continue;
                    }
                    let permit = wait.await.unwrap();
                    assert!(turns.available() <= 3 - count);
                    tokio::task::yield_now().await;
                    drop(permit);
                }
            })
        });
        assert!(join_all(tasks).await.iter().all(Result::is_ok));
        assert_eq!(turns.available(), 3);
    }

    proptest! {
        /// Whatever is acquired, dropped while it waits and released, the permits add up, and no waiter is left while its permits are free.
        #[test]
        fn permits_add_up(
            total in 1..5_usize,
            most in 1..5_usize,
            most_of_account in 1..5_usize,
            steps in prop::collection::vec((0..6_u8, 1..5_usize, any::<prop::sample::Index>(), 0..3_u8), 0..100),
        ) {
            let turns = Turns::with_most(total, most.min(total), most_of_account);
            let mut waits = Vec::new();
            let mut held: Vec<Permit> = Vec::new();
            for (name, count, index, action) in steps {
                match action {
                    0 => {
                        let requester = Requester::new(&(name % 3).to_string(), &(name / 3).to_string());
                        let turns = turns.clone();
                        waits.push(async move { turns.acquire_many(&requester, count.min(total)).await }.boxed());
                    }
                    1 if !waits.is_empty() => drop(waits.remove(index.index(waits.len()))),
                    _ if !held.is_empty() => drop(held.remove(index.index(held.len()))),
                    _ => {}
                }
                let mut left = Vec::new();
                for mut wait in waits {
                    match wait.as_mut().now_or_never() {
                        Some(permit) => held.extend(permit),
                        None => left.push(wait),
                    }
                }
                waits = left;
                let taken: usize = held.iter().map(Permit::count).sum();
                prop_assert_eq!(taken + turns.available(), total);
                prop_assert!(turns.available() < total || waits.is_empty());
                let mut of: HashMap<&str, usize> = HashMap::new();
                let mut of_account: HashMap<(&str, &str), usize> = HashMap::new();
                for permit in &held {
                    *of.entry(&permit.namespace).or_default() += permit.count;
                    *of_account.entry((&permit.namespace, &permit.account)).or_default() += permit.count;
                }
                prop_assert!(of.values().all(|held| *held <= most));
                prop_assert!(of_account.values().all(|held| *held <= most_of_account));
            }
        }
    }
}
