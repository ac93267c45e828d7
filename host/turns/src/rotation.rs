//! Queues that take turns. Pure: no locks, no clock.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::{Requester, requester::Lane};

/// How many turns in a row continue something that has begun, while new work waits.
const IN_A_ROW: u8 = 3;

/// The waiting items of many requesters. Namespaces take turns, within a namespace its accounts, and the items of an account come in the order
/// of their arrival.
///
/// Work that continues something ([`Requester::continuing`]) comes before new work, and each fourth turn is for new work: if 200 rollouts begin
/// at once, the first ones are complete early, instead of all of them at the end. A requester with nothing but new work waits four times as long
/// at most.
#[derive(Debug)]
pub struct Rotation<T> {
    new: Ring<Ring<VecDeque<T>>>,
    begun: Ring<Ring<VecDeque<T>>>,
    /// The turns since the last one of new work.
    in_a_row: u8,
}

/// A turn of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The namespace.
    pub(crate) namespace: Arc<str>,
    /// The account.
    pub(crate) account: Arc<str>,
    lane: Lane,
}

/// Whether an account may have its turn now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MayHave {
    Turn,
    /// Another account of the namespace may have one.
    AnotherAccount,
    /// The namespace has none.
    Nothing,
}

/// Queues by name, each of which has an item, in the order of their turns.
#[derive(Debug)]
struct Ring<Q> {
    queues: HashMap<Arc<str>, Q>,
    order: VecDeque<Arc<str>>,
}

/// What [`Ring`] needs of its queues.
trait Queue: Default {
    type Item;
    fn front(&self) -> Option<&Self::Item>;
    fn pop(&mut self) -> Option<Self::Item>;
    fn retain(&mut self, keep: &mut impl FnMut(&Self::Item) -> bool);
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
}

impl<T> Default for Rotation<T> {
    fn default() -> Self {
        Self { new: Ring::default(), begun: Ring::default(), in_a_row: 0 }
    }
}

impl<T> Rotation<T> {
    /// Adds an item behind the others of its requester.
    pub fn push(&mut self, requester: &Requester, item: T) {
        self.ring_mut(requester.lane).queue(&requester.namespace).queue(&requester.account).push_back(item);
    }

    /// The item whose turn it is.
    pub fn front(&self) -> Option<&T> {
        self.lanes().into_iter().find_map(|lane| self.ring(lane).front())
    }

    /// Removes the item whose turn it is. The next turn is another namespace's, if one waits.
    pub fn pop(&mut self) -> Option<T> {
        let lane = self.lanes().into_iter().find(|lane| !self.ring(*lane).is_empty())?;
        self.had_turn(lane);
        self.ring_mut(lane).pop()
    }

    /// The item whose turn it is among the accounts that may have a turn now, and the turn. `may` gets the namespace, the account and its first
    /// item.
    pub(crate) fn front_of(&self, may: impl Fn(&Arc<str>, &Arc<str>, &T) -> MayHave) -> Option<(Turn, &T)> {
        self.lanes().into_iter().find_map(|lane| {
            let ring = self.ring(lane);
            ring.order.iter().find_map(|namespace| {
                let accounts = ring.queues.get(namespace)?;
                for account in &accounts.order {
                    let Some(item) = accounts.queues.get(account).and_then(VecDeque::front) else { continue };
                    match may(namespace, account, item) {
                        MayHave::Turn => {
                            let (namespace, account) = (Arc::clone(namespace), Arc::clone(account));
                            return Some((Turn { namespace, account, lane }, item));
                        }
                        MayHave::AnotherAccount => {}
                        MayHave::Nothing => return None,
                    }
                }
                None
            })
        })
    }

    /// Removes the item of a turn. Its namespace, and its account in it, are then the last ones.
    pub(crate) fn pop_of(&mut self, turn: &Turn) -> Option<T> {
        let ring = self.ring_mut(turn.lane);
        let item = ring.pop_named(&turn.namespace, |accounts| accounts.pop_named(&turn.account, Queue::pop))?;
        self.had_turn(turn.lane);
        Some(item)
    }

    /// Keeps these items alone. The order of turns stays.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.new.retain(&mut keep);
        self.begun.retain(&mut keep);
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.new.len() + self.begun.len()
    }

    /// Whether no item waits.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.begun.is_empty()
    }

    /// The lanes, the one whose turn it is first.
    fn lanes(&self) -> [Lane; 2] {
        if self.in_a_row < IN_A_ROW { [Lane::Begun, Lane::New] } else { [Lane::New, Lane::Begun] }
    }

    fn had_turn(&mut self, lane: Lane) {
        self.in_a_row = match lane {
            Lane::New => 0,
            Lane::Begun => self.in_a_row.saturating_add(1),
        };
    }

    fn ring(&self, lane: Lane) -> &Ring<Ring<VecDeque<T>>> {
        match lane {
            Lane::New => &self.new,
            Lane::Begun => &self.begun,
        }
    }

    fn ring_mut(&mut self, lane: Lane) -> &mut Ring<Ring<VecDeque<T>>> {
        match lane {
            Lane::New => &mut self.new,
            Lane::Begun => &mut self.begun,
        }
    }
}

impl<Q> Default for Ring<Q> {
    fn default() -> Self {
        Self { queues: HashMap::new(), order: VecDeque::new() }
    }
}

impl<Q: Queue> Ring<Q> {
    /// The queue of this name, which is the last one if it is new.
    fn queue(&mut self, name: &Arc<str>) -> &mut Q {
        self.queues.entry(Arc::clone(name)).or_insert_with(|| {
            self.order.push_back(Arc::clone(name));
            Q::default()
        })
    }

    /// Removes an item of the queue of this name, which is then the last one.
    fn pop_named(&mut self, name: &Arc<str>, pop: impl FnOnce(&mut Q) -> Option<Q::Item>) -> Option<Q::Item> {
        let place = self.order.iter().position(|other| other == name)?;
        let name = self.order.remove(place)?;
        self.pop_queue(name, pop)
    }

    /// Removes an item of a queue that was taken out of the order, and puts the queue at the end if it has more.
    fn pop_queue(&mut self, name: Arc<str>, pop: impl FnOnce(&mut Q) -> Option<Q::Item>) -> Option<Q::Item> {
        let queue = self.queues.get_mut(&name)?;
        let item = pop(queue);
        if queue.is_empty() {
            self.queues.remove(&name);
        } else {
            self.order.push_back(name);
        }
        item
    }
}

impl<Q: Queue> Queue for Ring<Q> {
    type Item = Q::Item;

    fn front(&self) -> Option<&Self::Item> {
        self.queues.get(self.order.front()?)?.front()
    }

    fn pop(&mut self) -> Option<Self::Item> {
        let name = self.order.pop_front()?;
        self.pop_queue(name, Q::pop)
    }

    fn retain(&mut self, keep: &mut impl FnMut(&Self::Item) -> bool) {
        self.queues.retain(|_, queue| {
            queue.retain(keep);
            !queue.is_empty()
        });
        self.order.retain(|name| self.queues.contains_key(name));
    }

    fn len(&self) -> usize {
        self.queues.values().map(Queue::len).sum()
    }

    fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

impl<T> Queue for VecDeque<T> {
    type Item = T;

    fn front(&self) -> Option<&T> {
        Self::front(self)
    }

    fn pop(&mut self) -> Option<T> {
        self.pop_front()
    }

    fn retain(&mut self, keep: &mut impl FnMut(&T) -> bool) {
        Self::retain(self, |item| keep(item));
    }

    fn len(&self) -> usize {
        Self::len(self)
    }

    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    fn drain<T>(rotation: &mut Rotation<T>) -> Vec<T> {
        std::iter::from_fn(|| rotation.pop()).collect()
    }

    #[test]
    fn an_item_waits_for_one_turn_of_a_requester_with_thousands() {
        let (many, one) = (Requester::new("a", "a"), Requester::new("b", "b"));
        let mut rotation = Rotation::default();
        for item in 0..2500 {
            rotation.push(&many, item);
        }
        rotation.push(&one, 9999);
        assert_eq!((rotation.front(), rotation.len()), (Some(&0), 2501));
        assert_eq!(drain(&mut rotation).iter().position(|item| *item == 9999), Some(1));
        assert!(rotation.is_empty());
    }

    #[test]
    fn many_accounts_of_a_namespace_give_it_no_further_turns() {
        let mut rotation = Rotation::default();
        for account in 0..100 {
            rotation.push(&Requester::new("a", &account.to_string()), "a");
        }
        for _ in 0..3 {
            rotation.push(&Requester::new("b", "b"), "b");
        }
        let order = drain(&mut rotation);
        assert_eq!(order.iter().take(6).copied().collect::<String>(), "ababab");
    }

    #[test]
    fn accounts_of_a_namespace_take_turns() {
        let mut rotation = Rotation::default();
        for (account, item) in [("x", 1), ("x", 2), ("x", 3), ("y", 4)] {
            rotation.push(&Requester::new("a", account), item);
        }
        assert_eq!(drain(&mut rotation), [1, 4, 2, 3]);
    }

    #[test]
    fn items_that_are_removed_lose_their_turn() {
        let mut rotation = Rotation::default();
        for (namespace, item) in [("a", 1), ("b", 2), ("b", 3), ("c", 4)] {
            rotation.push(&Requester::new(namespace, "x"), item);
        }
        rotation.retain(|item| *item > 2);
        assert_eq!(drain(&mut rotation), [3, 4]);
    }

    #[test]
    fn a_namespace_that_may_have_no_turn_now_keeps_its_place() {
        let mut rotation = Rotation::default();
        for (namespace, item) in [("a", 1), ("a", 2), ("b", 3), ("c", 4)] {
            rotation.push(&Requester::new(namespace, "x"), item);
        }
        let may = |name: &Arc<str>| if **name == *"a" { MayHave::Nothing } else { MayHave::Turn };
        let next =
            |rotation: &Rotation<u8>| rotation.front_of(|name, _, _| may(name)).map(|(turn, item)| (turn, *item));
        let of = |namespace: &str| Turn { namespace: namespace.into(), account: "x".into(), lane: Lane::New };
        assert_eq!(next(&rotation), Some((of("b"), 3)));
        assert_eq!(rotation.pop_of(&of("b")), Some(3));
        assert_eq!(next(&rotation), Some((of("c"), 4)));
        assert_eq!((rotation.pop_of(&of("b")), rotation.front()), (None, Some(&1)));
        assert_eq!(rotation.pop_of(&of("a")), Some(1));
        assert_eq!(drain(&mut rotation), [4, 2]);
    }

    #[test]
    fn an_account_that_may_have_no_turn_now_leaves_it_to_another_one_of_its_namespace() {
        let mut rotation = Rotation::default();
        for (account, item) in [("x", 1), ("x", 2), ("y", 3), ("z", 4)] {
            rotation.push(&Requester::new("a", account), item);
        }
        rotation.push(&Requester::new("b", "x"), 5);
        let next = |rotation: &Rotation<u8>| {
            rotation
                .front_of(|namespace, account, _| match (&**namespace, &**account) {
                    ("a", "x") => MayHave::AnotherAccount,
                    _ => MayHave::Turn,
                })
                .map(|(turn, _)| turn)
        };
        let mut order = Vec::new();
        while let Some(turn) = next(&rotation) {
            order.extend(rotation.pop_of(&turn));
        }
        assert_eq!(order, [3, 5, 4]);
        assert_eq!(drain(&mut rotation), [1, 2]);
    }

    #[test]
    fn work_that_has_begun_comes_first_and_new_work_has_each_fourth_turn() {
        let (many, other) = (Requester::new("a", "a"), Requester::new("b", "b"));
        let mut rotation = Rotation::default();
        for item in 0..5 {
            rotation.push(&many, ("new", item));
            rotation.push(&other.clone().continuing(), ("begun", item));
        }
        let order: Vec<&str> = drain(&mut rotation).into_iter().map(|(lane, _)| lane).collect();
        assert_eq!(order, ["begun", "begun", "begun", "new", "begun", "begun", "new", "new", "new", "new"]);
        // Turns without new work do not add up to a debt.
        for item in 0..9 {
            rotation.push(&other.clone().continuing(), ("begun", item));
        }
        assert_eq!(drain(&mut rotation).len(), 9);
        rotation.push(&other.clone().continuing(), ("begun", 0));
        rotation.push(&many, ("new", 0));
        assert_eq!(drain(&mut rotation), [("new", 0), ("begun", 0)]);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Push(u8, u8),
        Pop,
        /// Removes the items whose number is divisible by this.
        Remove(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..4_u8, 0..3_u8).prop_map(|(namespace, account)| Step::Push(namespace, account)),
            3 => Just(Step::Pop),
            1 => (2..5_usize).prop_map(Step::Remove),
        ]
    }

    proptest! {
        /// Each item comes out once, in the order of its account; and while an account waits, no other account of its namespace has two turns,
        /// nor has another namespace while its namespace waits.
        #[test]
        fn every_waiting_requester_has_a_turn_between_two_turns_of_another(steps in prop::collection::vec(step(), 0..200)) {
            let mut rotation = Rotation::default();
            let mut waiting: Vec<(usize, (u8, u8))> = Vec::new();
            // Who had a turn while this one waited.
            let mut passed: HashMap<u8, HashSet<u8>> = HashMap::new();
            let mut passed_within: HashMap<(u8, u8), HashSet<u8>> = HashMap::new();
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push(namespace, account) => {
                        rotation.push(&Requester::new(&namespace.to_string(), &account.to_string()), number);
                        waiting.push((number, (namespace, account)));
                    }
                    Step::Remove(divisor) => {
                        rotation.retain(|number| number % divisor != 0);
                        waiting.retain(|(number, _)| number % divisor != 0);
                    }
                    Step::Pop => {
                        let front = rotation.front().copied();
                        let popped = rotation.pop();
                        prop_assert_eq!(front, popped);
                        let Some(popped) = popped else {
                            prop_assert!(waiting.is_empty());
                            continue;
                        };
                        let at = waiting.iter().position(|(number, _)| *number == popped);
                        let (_, (namespace, account)) = waiting.remove(at.expect("it waited"));
                        prop_assert!(!waiting.iter().any(|(number, of)| *of == (namespace, account) && *number < popped));
                        for other in waiting.iter().map(|(_, of)| of.0).filter(|of| *of != namespace).collect::<HashSet<_>>() {
                            prop_assert!(passed.entry(other).or_default().insert(namespace), "{} twice before {}", namespace, other);
                        }
                        for other in waiting.iter().map(|(_, of)| *of).filter(|of| of.0 == namespace && of.1 != account).collect::<HashSet<_>>() {
                            prop_assert!(passed_within.entry(other).or_default().insert(account));
                        }
                        passed.remove(&namespace);
                        passed_within.remove(&(namespace, account));
                    }
                }
                passed.retain(|namespace, _| waiting.iter().any(|(_, of)| of.0 == *namespace));
                passed_within.retain(|requester, _| waiting.iter().any(|(_, of)| of == requester));
            }
            prop_assert_eq!(drain(&mut rotation).len(), waiting.len());
        }

        /// With work of both kinds, each item comes out once, and while new work waits, no more than three turns in a row continue something.
        #[test]
        fn new_work_has_each_fourth_turn(
            steps in prop::collection::vec((0..4_u8, 0..3_u8, any::<bool>(), any::<bool>()), 0..200),
        ) {
            let mut rotation = Rotation::default();
            let (mut waiting, mut new_waiting, mut in_a_row) = (0_usize, 0_usize, 0_u8);
            for (namespace, account, begun, pops) in steps {
                if !pops {
                    let requester = Requester::new(&namespace.to_string(), &account.to_string());
                    rotation.push(&if begun { requester.continuing() } else { requester }, begun);
                    waiting += 1;
                    new_waiting += usize::from(!begun);
                    continue;
                }
                let popped = rotation.pop();
                prop_assert_eq!(popped.is_some(), waiting > 0);
                let Some(begun) = popped else { continue };
                waiting -= 1;
                if begun {
                    in_a_row = if new_waiting > 0 { in_a_row + 1 } else { 0 };
                    prop_assert!(in_a_row <= IN_A_ROW);
                } else {
                    new_waiting -= 1;
                    in_a_row = 0;
                }
            }
            prop_assert_eq!(drain(&mut rotation).len(), waiting);
        }
    }
}
