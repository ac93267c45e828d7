//! Which content gives way to other content. Pure.
//!
//! Content that nothing uses gives way first. Then content gives way whose users all have more than the tenant that needs room: namespaces are
//! compared, and within a namespace its accounts. So a tenant takes what others leave, and gives it up when they need it.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    time::SystemTime,
};

use chandler_core::Digest;
use chandler_turns::Requester;

/// Content on the disk.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) digest: Digest,
    pub(super) bytes: u64,
    /// When it was last used.
    pub(super) used: SystemTime,
    /// The accounts that need it, each once. It is unused without one.
    pub(super) users: Vec<Requester>,
}

/// The bytes of each tenant: of the content that it uses, in full even if others use it, too, and of what is written for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Charges {
    namespaces: HashMap<String, u64>,
    accounts: HashMap<(String, String), u64>,
}

impl Charges {
    pub(super) fn of<'a>(
        held: impl IntoIterator<Item = &'a Held>,
        writing: impl IntoIterator<Item = (&'a Requester, u64)>,
    ) -> Self {
        let mut charges = Self::default();
        for content in held {
            charges.update(&content.users, |charge| charge.saturating_add(content.bytes));
        }
        for (requester, bytes) in writing {
            charges.update(std::slice::from_ref(requester), |charge| charge.saturating_add(bytes));
        }
        charges
    }

    /// Notes that this content was removed.
    pub(super) fn removed(&mut self, content: &Held) {
        self.update(&content.users, |charge| charge.saturating_sub(content.bytes));
    }

    /// Computes the bytes of these users anew.
    fn update(&mut self, users: &[Requester], with: impl Fn(u64) -> u64) {
        for namespace in users.iter().map(Requester::namespace).collect::<BTreeSet<_>>() {
            let charge = self.namespaces.entry(namespace.to_owned()).or_default();
            *charge = with(*charge);
        }
        for user in users {
            let charge = self.accounts.entry((user.namespace().to_owned(), user.account().to_owned())).or_default();
            *charge = with(*charge);
        }
    }

    fn namespace(&self, requester: &Requester) -> u64 {
        self.namespaces.get(requester.namespace()).copied().unwrap_or_default()
    }

    fn account(&self, requester: &Requester) -> u64 {
        let key = (requester.namespace().to_owned(), requester.account().to_owned());
        self.accounts.get(&key).copied().unwrap_or_default()
    }

    /// Whether so many bytes of these users give way to `needed` bytes of a tenant: each of them has at least as much without them as the tenant
    /// with what it needs. So two tenants never take the same room from each other in turn. What administrators use never gives way, and neither
    /// does what the account itself uses.
    pub(super) fn gives_way(&self, users: &[Requester], bytes: u64, to: &Requester, needed: u64) -> bool {
        users.iter().all(|user| {
            let (theirs, own) = if user.namespace() == to.namespace() {
                (self.account(user), self.account(to))
            } else {
                (self.namespace(user), self.namespace(to))
            };
            let is_same = user.namespace() == to.namespace() && user.account() == to.account();
            !user.namespace().is_empty() && !is_same && theirs.saturating_sub(bytes) >= own.saturating_add(needed)
        })
    }

    /// The order in which content gives way: unused content first, then content of the namespaces with the most, and what was not used for the
    /// longest time first.
    pub(super) fn sort(&self, held: &mut [Held]) {
        held.sort_by_cached_key(|content| {
            let least = content.users.iter().map(|user| self.namespace(user)).min();
            (!content.users.is_empty(), Reverse(least), content.used)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn of(namespace: &str, account: &str) -> Requester {
        Requester::new(namespace, account)
    }

    fn held(name: &str, bytes: u64, age: u64, users: &[&Requester]) -> Held {
        Held {
            digest: Digest::of(name.as_bytes()),
            bytes,
            used: SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - age),
            users: users.iter().map(|user| (*user).clone()).collect(),
        }
    }

    #[test]
    fn the_tenant_with_the_most_gives_way_and_keeps_as_much_as_the_other_gets() {
        let (many, few) = (of("many", "a"), of("few", "a"));
        let content = [held("1", 40, 1, &[&many]), held("2", 40, 2, &[&many]), held("3", 20, 3, &[&few])];
        let charges = Charges::of(&content, []);
        assert!(charges.gives_way(&content[0].users, 40, &few, 20));
        assert!(!charges.gives_way(&content[0].users, 40, &few, 21), "it would have less than the other");
        assert!(!charges.gives_way(&content[2].users, 20, &many, 1));
        assert!(!charges.gives_way(&content[0].users, 40, &many, 1), "an account takes nothing from itself");
        let none = of("none", "a");
        assert!(
            charges.gives_way(&content[2].users, 20, &none, 0) && !charges.gives_way(&content[2].users, 20, &none, 1)
        );
    }

    #[test]
    fn what_is_written_counts() {
        let (a, b) = (of("a", "a"), of("b", "a"));
        let charges = Charges::of(&[held("1", 50, 1, &[&a])], [(&b, 60), (&a, 30)]);
        assert!(charges.gives_way(std::slice::from_ref(&a), 10, &b, 10));
        assert!(!charges.gives_way(std::slice::from_ref(&a), 10, &b, 11));
    }

    #[test]
    fn accounts_of_a_namespace_are_compared_with_each_other_and_count_as_one_for_others() {
        let (x, y, other) = (of("a", "x"), of("a", "y"), of("b", "z"));
        let content = [held("1", 30, 1, &[&x]), held("2", 10, 2, &[&y]), held("3", 25, 3, &[&other])];
        let charges = Charges::of(&content, []);
        assert!(charges.gives_way(&content[0].users, 10, &y, 10));
        assert!(!charges.gives_way(&content[1].users, 10, &x, 1));
        // The namespace has 40, so that it gives way to the other one, although neither account has more than that.
        assert!(charges.gives_way(&content[1].users, 10, &other, 5));
    }

    #[test]
    fn content_that_several_use_stays_while_one_of_them_has_little() {
        let (many, few, other) = (of("many", "a"), of("few", "a"), of("other", "a"));
        let content = [held("1", 10, 1, &[&many, &few]), held("2", 90, 1, &[&many])];
        let charges = Charges::of(&content, []);
        assert!(!charges.gives_way(&content[0].users, 10, &other, 1));
        assert!(charges.gives_way(&content[1].users, 90, &other, 1));
        assert_eq!(charges.namespace(&many), 100, "each user is charged in full");
    }

    #[test]
    fn what_administrators_use_stays() {
        let (admin, tenant) = (Requester::controller(), of("a", "a"));
        let content = [held("1", 100, 1, &[&admin]), held("2", 100, 1, &[&tenant])];
        let charges = Charges::of(&content, []);
        assert!(!charges.gives_way(&content[0].users, 100, &of("b", "b"), 0));
        assert!(!charges.gives_way(&content[1].users, 100, &admin, 1), "and takes no more than tenants may");
    }

    #[test]
    fn unused_content_is_the_first_and_the_largest_tenant_the_next() {
        let (many, few) = (of("many", "a"), of("few", "a"));
        let mut content = [
            held("few", 10, 900, &[&few]),
            held("many new", 40, 1, &[&many]),
            held("both", 10, 950, &[&many, &few]),
            held("many old", 40, 5, &[&many]),
            held("unused new", 10, 1, &[]),
            held("unused old", 10, 2, &[]),
        ];
        let charges = Charges::of(&content, []);
        charges.sort(&mut content);
        let expected = ["unused old", "unused new", "many old", "many new", "both", "few"];
        assert_eq!(content.map(|held| held.digest), expected.map(|name| Digest::of(name.as_bytes())));
    }

    proptest! {
        /// Whatever tenants hold: room that one takes from another never lets the other one take it back.
        #[test]
        fn room_is_not_taken_in_turn(
            all in prop::collection::vec((0..3_u8, 0..2_u8, 1..50_u64), 1..20), to in (0..3_u8, 0..2_u8), needed in 1..50_u64
        ) {
            let requester = |(namespace, account): (u8, u8)| of(&namespace.to_string(), &account.to_string());
            let mut content: Vec<Held> = all
                .iter()
                .enumerate()
                .map(|(number, (namespace, account, bytes))| held(&number.to_string(), *bytes, 1, &[&requester((*namespace, *account))]))
                .collect();
            let (to, charges) = (requester(to), Charges::of(&content, []));
            let Some(place) = content.iter().position(|held| charges.gives_way(&held.users, held.bytes, &to, needed)) else {
                return Ok(());
            };
            let lost = content.remove(place);
            let got = held("got", needed, 1, &[&to]);
            content.push(got.clone());
            let after = Charges::of(&content, []);
            prop_assert!(!after.gives_way(&got.users, got.bytes, &lost.users[0], 1.max(lost.bytes)));
        }
    }
}
