//! The order in which members of a set are deleted: what depends on others first. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// How many rounds of deletions each of these members waits for: it is deleted when all that depend on it are gone. `depends_on` gives the
/// names that each member depends on; names of others do not matter. A set has no cyclic dependencies, but users who may write the members
/// may write cyclic annotations: such members are deleted together, after all others.
pub(crate) fn rounds<'a>(depends_on: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeMap<&'a str, usize> {
    let mut dependents: BTreeMap<&str, usize> = depends_on.keys().map(|name| (*name, 0)).collect();
    let needed = |name: &str| -> BTreeSet<&'a str> {
        depends_on.get(name).into_iter().flatten().copied().filter(|other| *other != name).collect()
    };
    for name in depends_on.keys() {
        for needed in needed(name) {
            if let Some(count) = dependents.get_mut(needed) {
                *count += 1;
            }
        }
    }
    let mut rounds = BTreeMap::new();
    for round in 0.. {
        let free = dependents.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name);
        let mut free: Vec<&'a str> = free.collect();
        if free.is_empty() {
            // A circle, if anything is left.
            free = dependents.keys().copied().collect();
        }
        if free.is_empty() {
            break;
        }
        for name in free {
            dependents.remove(name);
            rounds.insert(name, round);
            for needed in needed(name) {
                if let Some(count) = dependents.get_mut(needed) {
                    *count -= 1;
                }
            }
        }
    }
    rounds
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(members: &[(&'static str, &'static str)]) -> Vec<Vec<&'static str>> {
        let depends_on = members.iter().map(|(name, needs)| (*name, needs.split_whitespace().collect())).collect();
        let mut order: Vec<Vec<&str>> = Vec::new();
        for (name, round) in rounds(&depends_on) {
            order.resize_with(order.len().max(round + 1), Vec::new);
            order[round].push(name);
        }
        order
    }

    #[test]
    fn dependents_are_deleted_before_what_they_need() {
        assert_eq!(of(&[]), [[""; 0]; 0]);
        assert_eq!(of(&[("a", ""), ("b", "")]), [["a", "b"]]);
        let diamond =
            [("app", "left right"), ("left", "base"), ("right", "base elsewhere"), ("base", ""), ("alone", "")];
        assert_eq!(of(&diamond), [vec!["alone", "app"], vec!["left", "right"], vec!["base"]]);
        // A long way and a short one.
        assert_eq!(of(&[("app", "mid base"), ("mid", "base"), ("base", "")]), [["app"], ["mid"], ["base"]]);
    }

    #[test]
    fn a_circle_ends() {
        assert_eq!(of(&[("a", "a")]), [["a"]]);
        assert_eq!(of(&[("top", "a"), ("a", "b"), ("b", "a")]), [vec!["top"], vec!["a", "b"]]);
        assert_eq!(of(&[("a", "b"), ("b", "a"), ("below", "a b")]), [vec!["below"], vec!["a", "b"]]);
    }

    proptest! {
        #[test]
        fn each_member_has_a_round_and_follows_its_dependents(edges in prop::collection::vec((0..8_usize, 0..8_usize), 0..20)) {
            const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
            let mut depends_on: BTreeMap<&str, Vec<&str>> = NAMES.iter().map(|name| (*name, Vec::new())).collect();
            // Without circles.
            for (from, to) in edges.into_iter().filter(|(from, to)| from < to) {
                depends_on.get_mut(NAMES[from]).unwrap().push(NAMES[to]);
            }
            let rounds = rounds(&depends_on);
            prop_assert_eq!(rounds.len(), NAMES.len());
            for (name, needs) in &depends_on {
                prop_assert!(needs.iter().all(|needed| rounds[name] < rounds[needed]));
            }
        }
    }
}
