//! A limited number of places for connections or requests that are under way. A newcomer always gets one: when all are taken, another one
//! gives way.
//!
//! What gives way belongs to the group that has the most places, such as an address, so that one caller can only take its own places. In the
//! group it is the one that was idle for the longest time, so that what does nothing keeps no place.

use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// The bits of an IPv6 address that identify a network. Within it, a machine chooses its addresses.
const NETWORK: u128 = !0 << 64;

/// Where a connection comes from: an IPv4 address, or a network of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source(IpAddr);

impl Source {
    /// The source with this address.
    pub(crate) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & NETWORK)),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// The places, by groups. Clones share them.
#[derive(Debug)]
pub(crate) struct Shares<G>(Arc<Inner<G>>);

#[derive(Debug)]
struct Inner<G> {
    held: Mutex<Vec<Arc<Holder<G>>>>,
    /// Counts uses.
    uses: AtomicU64,
    most: usize,
    most_of_group: usize,
}

#[derive(Debug)]
struct Holder<G> {
    group: G,
    /// The number of its last use.
    last: AtomicU64,
    ends: CancellationToken,
}

/// A place. It is free when this is dropped.
#[derive(Debug)]
pub(crate) struct Share<G> {
    places: Shares<G>,
    holder: Arc<Holder<G>>,
}

impl<G> Clone for Shares<G> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<G: Eq + Hash> Shares<G> {
    /// So many places, and so many for one group.
    pub(crate) fn new(most: usize, most_of_group: usize) -> Self {
        Self(Arc::new(Inner { held: Mutex::default(), uses: AtomicU64::new(0), most, most_of_group }))
    }

    /// Takes a place. If the group has enough, or all are taken, another one gives way.
    pub(crate) fn take(&self, group: G) -> Share<G> {
        let Inner { held, most, most_of_group, .. } = &*self.0;
        let holder = Holder { group, last: AtomicU64::new(self.0.used()), ends: CancellationToken::new() };
        let holder = Arc::new(holder);
        let mut held = held.lock();
        let places: Vec<_> = held.iter().map(|it| (&it.group, it.last.load(Ordering::Relaxed))).collect();
        if let Some(index) = gives_way(&places, &holder.group, *most, *most_of_group) {
            // Removed at once, so that it is not chosen again; the connection or the request ends soon.
            held.swap_remove(index).ends.cancel();
        }
        held.push(Arc::clone(&holder));
        Share { places: self.clone(), holder }
    }
}

/// Decides what gives way to a newcomer of this group, from the groups and the last uses of all.
fn gives_way<G: Eq + Hash>(held: &[(&G, u64)], group: &G, most: usize, most_of_group: usize) -> Option<usize> {
    let idle = |counts: &dyn Fn(&G) -> bool| {
        let candidates = held.iter().enumerate().filter(|(_, (group, _))| counts(group));
        candidates.min_by_key(|(_, (_, last))| *last).map(|(index, _)| index)
    };
    let mut numbers: HashMap<&G, usize> = HashMap::from([(group, 1)]);
    for (group, _) in held {
        *numbers.entry(group).or_default() += 1;
    }
    if numbers.get(group).is_some_and(|number| *number > most_of_group) {
        return idle(&|other| other == group);
    }
    let largest = numbers.values().max().copied();
    (held.len() >= most).then(|| idle(&|other| numbers.get(other).copied() == largest)).flatten()
}

impl<G> Inner<G> {
    fn used(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed)
    }
}

impl<G> Share<G> {
    /// Notes that bytes were transferred.
    pub(crate) fn used(&self) {
        self.holder.last.store(self.places.0.used(), Ordering::Relaxed);
    }

    /// Completes when this has to give way to another one.
    pub(crate) fn gives_way(&self) -> WaitForCancellationFutureOwned {
        self.holder.ends.clone().cancelled_owned()
    }
}

impl<G> Drop for Share<G> {
    fn drop(&mut self) {
        self.places.0.held.lock().retain(|other| !Arc::ptr_eq(other, &self.holder));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use proptest::prelude::*;

    use super::*;

    fn must_go<G>(share: &Share<G>) -> bool {
        share.gives_way().now_or_never().is_some()
    }

    #[test]
    fn what_was_idle_longest_gives_way() {
        let places = Shares::new(2, 2);
        let (first, second) = (places.take("a"), places.take("a"));
        first.used();
        let third = places.take("a");
        assert!(must_go(&second) && !must_go(&first) && !must_go(&third));
        drop((second, third));
        let _fourth = places.take("a");
        assert!(!must_go(&first), "a place is free");
    }

    #[test]
    fn a_caller_that_is_always_busy_takes_only_its_own_places() {
        let places = Shares::new(4, 4);
        let honest = places.take("honest");
        let hostile: Vec<_> = (0..100).map(|_| places.take("hostile")).collect();
        for share in &hostile {
            share.used();
        }
        let _another = places.take("hostile");
        assert!(!must_go(&honest));
        let second = places.take("honest");
        assert!(!must_go(&honest) && !must_go(&second));
        assert_eq!(hostile.iter().filter(|share| must_go(share)).count(), 100 - 1);
    }

    #[test]
    fn a_group_has_its_most_places_and_leaves_the_rest() {
        let places = Shares::new(64, 8);
        let other = places.take("b");
        let busy: Vec<_> = (0..9).map(|_| places.take("a")).collect();
        assert!(must_go(&busy[0]) && !must_go(&busy[1]) && !must_go(&other));
    }

    #[test]
    fn an_address_of_a_network_is_its_source() {
        let of = |text: &str| Source::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"));
    }

    proptest! {
        #[test]
        fn a_full_house_always_makes_room_and_never_in_a_smaller_group(
            groups in proptest::collection::vec(0..4_u8, 1..32), newcomer in 0..4_u8, most in 1..32_usize,
        ) {
            let held: Vec<_> = groups.iter().zip(0..).collect();
            let number = |of: u8| groups.iter().map(|group| usize::from(*group == of)).sum::<usize>() + usize::from(of == newcomer);
            match gives_way(&held, &newcomer, most, 8) {
                Some(index) if number(newcomer) > 8 => prop_assert_eq!(groups[index], newcomer),
                Some(index) => {
                    prop_assert!(groups.len() >= most);
                    prop_assert!((0..4).all(|group| number(group) <= number(groups[index])));
                }
                None => prop_assert!(groups.len() < most && number(newcomer) <= 8),
            }
        }
    }
}
