//! The catalogs that dependencies come from: first the catalogs of the bundle that needs them, then others.
//!
//! A catalog that is merely configured beside another one cannot replace what the packages of that other catalog need, whatever version
//! and priority it offers. OLM v0 has the same rule.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    decide::positive,
    error::Exceeded,
    universe::{GroupId, MatchId, NodeId, Universe},
};

/// Catalogs, by their place in the question.
pub(crate) type Home = BTreeSet<usize>;

/// The catalogs of what needs each package, for packages that are not settled.
#[derive(Default)]
pub(crate) struct Homes {
    needed_from: BTreeMap<GroupId, Home>,
}

impl Homes {
    /// Follows the needs of candidates. Among the candidates that meet a need, the ones in the same catalog are followed; if there are
    /// none, all of them.
    pub(crate) fn of(
        universe: &Universe<'_>,
        seeds: impl IntoIterator<Item = NodeId>,
        settled: &BTreeSet<GroupId>,
    ) -> Result<Self, Exceeded> {
        let mut homes = Self::default();
        let mut open: Vec<NodeId> = seeds.into_iter().collect();
        let mut followed: BTreeSet<NodeId> = open.iter().copied().collect();
        let mut met: BTreeSet<(MatchId, Option<usize>)> = BTreeSet::new();
        while let Some(id) = open.pop() {
            let node = &universe.nodes[id];
            let mut leaves = Vec::new();
            node.needs.iter().for_each(|(_, formula)| positive(formula, &mut leaves));
            for leaf in leaves.into_iter().filter(|leaf| met.insert((*leaf, node.source))) {
                let found = &universe.matches[leaf];
                if found.served {
                    continue;
                }
                universe.steps.take(found.nodes.len() as u64)?;
                let meets =
                    |id: &&NodeId| universe.nodes[**id].active && !settled.contains(&universe.nodes[**id].group);
                let candidates: Vec<NodeId> = found.nodes.iter().filter(meets).copied().collect();
                for id in &candidates {
                    let home = homes.needed_from.entry(universe.nodes[*id].group).or_default();
                    home.extend(node.source);
                }
                let is_near = |id: &NodeId| node.source.is_some() && universe.nodes[*id].source == node.source;
                let has_near = candidates.iter().any(is_near);
                open.extend(candidates.into_iter().filter(|id| (!has_near || is_near(id)) && followed.insert(*id)));
            }
        }
        Ok(homes)
    }

    /// The catalogs that a package comes from before others; empty if all are equal. An installed package stays in its catalog.
    pub(crate) fn home(&self, universe: &Universe<'_>, group: GroupId) -> Home {
        let own = own(universe, group);
        if !own.is_empty() {
            return own;
        }
        let home = self.needed_from.get(&group).cloned().unwrap_or_default();
        offered(universe, group, home)
    }

    /// Whether no catalog of what needs a package has it.
    pub(crate) fn is_away(&self, universe: &Universe<'_>, group: GroupId) -> bool {
        let home = self.needed_from.get(&group).filter(|home| !home.is_empty());
        home.is_some_and(|home| offered(universe, group, home.clone()).is_empty())
    }
}

/// The catalog that an installed package came from, if it is not asked for and the catalog still offers it.
pub(crate) fn own(universe: &Universe<'_>, group: GroupId) -> Home {
    let (question, name) = (universe.question, universe.groups[group].name.as_str());
    if question.required.contains_key(name) {
        return Home::new();
    }
    let catalog = question.installed.get(name).and_then(|held| held.installed.catalog.as_ref());
    let place = question.sources.iter().position(|source| Some(&source.name) == catalog);
    offered(universe, group, place.into_iter().collect())
}

/// These catalogs, if one of them has a candidate.
fn offered(universe: &Universe<'_>, group: GroupId, home: Home) -> Home {
    let mut sources = universe.active(group).filter_map(|id| universe.nodes[id].source);
    if sources.any(|source| home.contains(&source)) { home } else { Home::new() }
}

/// Whether a candidate is from another catalog than those that its package comes from.
pub(crate) fn is_foreign(universe: &Universe<'_>, home: &Home, id: NodeId) -> bool {
    !home.is_empty() && universe.nodes[id].source.is_none_or(|source| !home.contains(&source))
}
