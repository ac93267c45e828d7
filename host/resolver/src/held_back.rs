//! Which packages have a newer version that was not chosen, and what holds it back.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    answer::HeldBack,
    encode::{Cause, Encoding},
    error::Exceeded,
    explain::line::line,
    home::{Homes, is_foreign, own},
    problem::Hold,
    sat::Lit,
    universe::{GroupId, Node, NodeId, Universe},
};

/// More packages have no explanation.
const EXPLAINED: usize = 16;
/// The most lines of an explanation.
const LINES: usize = 6;

/// A newer version of a package.
struct Newer {
    group: GroupId,
    best: NodeId,
    /// Whether the package changes only where others need it.
    stays: bool,
}

/// Why each package of a decision does not have its newest possible version, by the version that is chosen instead.
pub(crate) fn held_back(universe: &Universe<'_>, chosen: &BTreeSet<NodeId>) -> BTreeMap<NodeId, HeldBack> {
    let by_group: BTreeMap<GroupId, NodeId> = chosen.iter().map(|id| (universe.nodes[*id].group, *id)).collect();
    let homes = Homes::of(universe, chosen.iter().copied(), &BTreeSet::new()).unwrap_or_default();
    let newer: Vec<(NodeId, Newer)> =
        by_group.iter().filter_map(|(group, id)| Some((*id, newer(universe, *group, *id, &homes)?))).collect();
    let mut explainer = None;
    let mut found = BTreeMap::new();
    for (place, (id, newer)) in newer.into_iter().enumerate() {
        let by = if newer.stays {
            vec![format!("{} is installed and changes only where others need it", named(universe, id))]
        } else if place < EXPLAINED {
            // Without budget, it is only known that something does.
            explain(universe, &mut explainer, &newer, &by_group).unwrap_or_default()
        } else {
            Vec::new()
        };
        found.insert(id, HeldBack { version: universe.nodes[newer.best].version.to_string(), by });
    }
    found
}

/// The best candidate of a package that is asked for or installed, if it is newer than the chosen one.
fn newer(universe: &Universe<'_>, group: GroupId, chosen: NodeId, homes: &Homes) -> Option<Newer> {
    let (question, name) = (universe.question, universe.groups[group].name.as_str());
    let is_required = question.required.contains_key(name);
    let hold = question.installed.get(name).map(|held| held.installed.hold).filter(|_| !is_required);
    if universe.root == Some(group) || !is_required && matches!(hold, None | Some(Hold::Pinned)) {
        return None;
    }
    let home = match hold {
        None => BTreeSet::new(),
        Some(Hold::Flexible) => own(universe, group),
        Some(_) => homes.home(universe, group),
    };
    let fits = |id: &NodeId| !is_required || universe.nodes[*id].asked;
    // The installed version has the first rank unless it may change.
    let order = |id: &NodeId| (is_foreign(universe, &home, *id), universe.nodes[*id].rank.unchanged());
    let best = universe.active(group).filter(fits).min_by_key(order)?;
    let node = &universe.nodes[chosen];
    (universe.nodes[best].version > node.version).then(|| {
        let stays = matches!(hold, Some(Hold::Flexible | Hold::Yielding)) && node.installed;
        Newer { group, best, stays }
    })
}

/// The clauses with their causes, and what those are.
struct Explainer {
    encoding: Encoding,
    causes: BTreeMap<Lit, Cause>,
}

/// Why the best candidate does not fit with what was settled before it.
fn explain(
    universe: &Universe<'_>,
    explainer: &mut Option<Explainer>,
    newer: &Newer,
    chosen: &BTreeMap<GroupId, NodeId>,
) -> Result<Vec<String>, Exceeded> {
    let explainer = if let Some(explainer) = explainer {
        explainer
    } else {
        let encoding = Encoding::of(universe, true)?;
        let causes = encoding.causes.iter().map(|(cause, literal)| (*literal, cause.clone())).collect();
        explainer.insert(Explainer { encoding, causes })
    };
    let Explainer { encoding, causes } = explainer;
    let Some(best) = encoding.node(newer.best) else { return Ok(Vec::new()) };
    let before = |group: &GroupId| order(universe, *group) < order(universe, newer.group);
    let settled: BTreeMap<Lit, NodeId> = chosen
        .iter()
        .filter(|(group, _)| before(group))
        .filter_map(|(_, id)| Some((encoding.node(*id)?, *id)))
        .collect();
    let assumptions: Vec<Lit> =
        std::iter::once(best).chain(causes.keys().copied()).chain(settled.keys().copied()).collect();
    if encoding.sat.solve(&assumptions)? {
        return Ok(Vec::new());
    }
    let core = encoding.sat.minimal_core(&assumptions)?;
    let mut because: Vec<&Cause> = core.iter().filter_map(|literal| causes.get(literal)).collect();
    because.sort();
    let lines = because.into_iter().map(|cause| line(universe, cause).to_string());
    let stays = core.iter().filter_map(|literal| settled.get(literal)).map(|id| stays(universe, *id));
    Ok(lines.chain(stays).take(LINES).collect())
}

/// The place of a package in the order in which packages are settled.
fn order<'a>(universe: &'a Universe<'_>, group: GroupId) -> (u8, &'a str) {
    let (question, name) = (universe.question, universe.groups[group].name.as_str());
    let place = match question.installed.get(name).map(|held| held.installed.hold) {
        _ if question.required.contains_key(name) => 1,
        Some(Hold::Pinned | Hold::Flexible) => 0,
        Some(Hold::Yielding) => 2,
        Some(Hold::Newest) => 3,
        None => 4,
    };
    (place, name)
}

fn stays(universe: &Universe<'_>, id: NodeId) -> String {
    let node: &Node = &universe.nodes[id];
    let name = named(universe, id);
    if universe.question.required.contains_key(universe.groups[node.group].name.as_str()) {
        format!("{name} is requested and comes first")
    } else {
        format!("{name} is installed and stays")
    }
}

fn named(universe: &Universe<'_>, id: NodeId) -> String {
    let node = &universe.nodes[id];
    format!("{} {}", universe.groups[node.group].name, node.version)
}
