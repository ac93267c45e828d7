//! Stages, by dependencies: a member is one stage behind the last of the members that it depends on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// Members cannot be put in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderError {
    /// A member depends on a name that no member has.
    Unknown {
        /// The member.
        member: String,
        /// The name.
        name: String,
    },
    /// Members depend on one another: the shortest cycle, in which each depends on the next one and the last on the first.
    Cycle(Vec<String>),
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { member, name } => {
                write!(f, "member {member} depends on {name}, which is not a member of the set")
            }
            Self::Cycle(cycle) if cycle.len() == 1 => write!(f, "member {} depends on itself", cycle.concat()),
            Self::Cycle(cycle) => {
                let first = cycle.first().map_or("", String::as_str);
                write!(f, "members depend on one another: {} -> {first}", cycle.join(" -> "))
            }
        }
    }
}

impl std::error::Error for OrderError {}

/// The stage of each member, from 0. The graph has the names of what each member depends on.
///
/// # Errors
/// A name is not a member, or members depend on one another.
pub fn stages<'a>(graph: &BTreeMap<&'a str, &'a [String]>) -> Result<BTreeMap<&'a str, u32>, OrderError> {
    let mut missing: BTreeMap<&str, usize> = BTreeMap::new();
    let mut dependents: BTreeMap<&str, Vec<&'a str>> = BTreeMap::new();
    for (member, depends_on) in graph {
        missing.insert(member, depends_on.len());
        for name in *depends_on {
            if !graph.contains_key(name.as_str()) {
                return Err(OrderError::Unknown { member: (*member).to_owned(), name: name.clone() });
            }
            dependents.entry(name).or_default().push(member);
        }
    }
    let mut stages: BTreeMap<&'a str, u32> = BTreeMap::new();
    let mut free: VecDeque<&'a str> =
        graph.iter().filter(|(_, depends_on)| depends_on.is_empty()).map(|(member, _)| *member).collect();
    while let Some(member) = free.pop_front() {
        let before = graph.get(member).into_iter().flat_map(|names| names.iter());
        let stage = before.filter_map(|name| stages.get(name.as_str())).max().map_or(0, |last| last + 1);
        stages.insert(member, stage);
        for dependent in dependents.get(member).into_iter().flatten() {
            if let Some(left) = missing.get_mut(dependent) {
                *left -= 1;
                if *left == 0 {
                    free.push_back(dependent);
                }
            }
        }
    }
    if stages.len() == graph.len() { Ok(stages) } else { Err(OrderError::Cycle(shortest_cycle(graph, &stages))) }
}

/// The shortest cycle among the members without a stage, and of several the first by name.
fn shortest_cycle(graph: &BTreeMap<&str, &[String]>, ordered: &BTreeMap<&str, u32>) -> Vec<String> {
    let starts = graph.keys().filter(|member| !ordered.contains_key(**member));
    let cycles = starts.filter_map(|start| cycle_through(start, graph));
    cycles.min_by_key(Vec::len).unwrap_or_default()
}

/// The shortest way from a member back to itself.
fn cycle_through(start: &str, graph: &BTreeMap<&str, &[String]>) -> Option<Vec<String>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    let mut open = VecDeque::from([start]);
    while let Some(member) = open.pop_front() {
        for name in graph.get(member).into_iter().flat_map(|names| names.iter()) {
            if name == start {
                let mut cycle = vec![member.to_owned()];
                let mut at = member;
                while let Some(before) = from.get(at) {
                    cycle.push((*before).to_owned());
                    at = before;
                }
                cycle.reverse();
                return Some(cycle);
            }
            if seen.insert(name) {
                from.insert(name, member);
                open.push_back(name);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn staged(members: &[(&str, &[&str])]) -> Result<Vec<(String, u32)>, String> {
        let owned: BTreeMap<&str, Vec<String>> =
            members.iter().map(|(name, on)| (*name, on.iter().map(|it| (*it).to_owned()).collect())).collect();
        let graph = owned.iter().map(|(name, on)| (*name, on.as_slice())).collect();
        let stages = stages(&graph).map_err(|error| error.to_string())?;
        Ok(stages.into_iter().map(|(name, stage)| (name.to_owned(), stage)).collect())
    }

    #[test]
    fn a_member_is_behind_what_it_depends_on() {
        let diamond: &[(&str, &[&str])] =
            &[("app", &["left", "right"]), ("left", &["base"]), ("right", &["base"]), ("base", &[]), ("other", &[])];
        let expected = [("app", 2), ("base", 0), ("left", 1), ("other", 0), ("right", 1)];
        assert_eq!(staged(diamond).unwrap(), expected.map(|(name, stage)| (name.to_owned(), stage)));
    }

    #[test]
    fn the_shortest_cycle_is_named() {
        for (members, message) in [
            (&[("a", &["a"][..])][..], "member a depends on itself"),
            (&[("a", &["b"]), ("b", &[])], ""),
            (&[("a", &["z"])], "member a depends on z, which is not a member of the set"),
            (
                &[("a", &["b"]), ("b", &["c"]), ("c", &["a", "d"]), ("d", &["c"]), ("e", &["a"])],
                "members depend on one another: c -> d -> c",
            ),
        ] {
            assert_eq!(staged(members).err().unwrap_or_default(), message);
        }
    }

    proptest! {
        /// A random graph without cycles: each member depends on earlier ones.
        #[test]
        fn every_order_without_cycles_has_stages(edges in proptest::collection::vec(proptest::collection::vec(0_usize..30, 0..4), 1..30)) {
            let names: Vec<String> = (0..edges.len()).map(|index| format!("m{index:02}")).collect();
            let on: Vec<Vec<String>> = edges.iter().enumerate().map(|(index, to)| {
                let mut on: Vec<String> = to.iter().filter(|to| **to < index).map(|to| names[*to].clone()).collect();
                on.sort();
                on.dedup();
                on
            }).collect();
            let graph: BTreeMap<&str, &[String]> = names.iter().zip(&on).map(|(name, on)| (name.as_str(), on.as_slice())).collect();
            let stages = stages(&graph).unwrap();
            prop_assert_eq!(stages.len(), graph.len());
            for (name, on) in &graph {
                let expected = on.iter().map(|it| stages[it.as_str()] + 1).max().unwrap_or(0);
                prop_assert_eq!(stages[name], expected);
            }
        }
    }
}
