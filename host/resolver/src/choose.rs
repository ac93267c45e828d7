//! The best of all sets that fit, in an order that people can predict:
//!
//! 1. what is installed stays as it is, package by package in alphabetical order;
//! 2. each package that is asked for, in alphabetical order: its best candidate that is possible with those before;
//! 3. what is installed and yields to these stays as it is, package by package;
//! 4. what is installed and is to be the newest, in alphabetical order: its best candidate;
//! 5. as few further packages as possible;
//! 6. of the sets of as few, the one with the first package in the order: it has bundles that are not deprecated, the priority of
//!    its catalogs, its name;
//! 7. each further package, in alphabetical order: its best candidate.
//!
//! [`Hold`] says which of 1, 3 and 4 an installed package belongs to.
//!
//! The best candidate is in the default channel, not deprecated, of the highest version, of the catalog with the highest
//! priority, in this order ([`Rank`](crate::universe::Rank)).

use std::collections::BTreeSet;

use crate::{
    encode::Encoding,
    error::ResolveError,
    problem::Hold,
    sat::Lit,
    universe::{GroupId, NodeId, Universe},
};

/// The best set; `None` if none fits.
pub(crate) fn choose(
    universe: &Universe<'_>,
    encoding: &mut Encoding,
) -> Result<Option<BTreeSet<NodeId>>, ResolveError> {
    if !encoding.sat.solve(&[])? {
        return Ok(None);
    }
    let question = universe.question;
    let (mut held, mut required, mut yielding, mut newest, mut extras) =
        <(Vec<_>, Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
    for (name, &group) in &universe.by_name {
        match question.installed.get(name.as_str()).map(|held| held.installed.hold) {
            _ if question.required.contains_key(name.as_str()) => required.push(group),
            Some(Hold::Pinned | Hold::Flexible) => held.push(group),
            Some(Hold::Yielding) => yielding.push(group),
            Some(Hold::Newest) => newest.push(group),
            None if encoding.present(group).is_some() => extras.push(group),
            None => {}
        }
    }
    for group in held.into_iter().chain(required).chain(yielding).chain(newest) {
        best(universe, encoding, group)?;
    }
    few(encoding, &extras)?;
    let chosen = first(universe, encoding, &extras)?;
    for group in chosen {
        best(universe, encoding, group)?;
    }
    encoding.sat.solve(&[])?;
    Ok(Some(universe.nodes.ids().filter(|id| encoding.chosen(*id)).collect()))
}

/// Settles the best candidate of a package that is chosen.
fn best(universe: &Universe<'_>, encoding: &mut Encoding, group: GroupId) -> Result<(), ResolveError> {
    let ladder = encoding.prefixes.get(&group).cloned().unwrap_or_default();
    let position = |encoding: &Encoding| ladder.iter().position(|(id, _)| encoding.chosen(*id)).unwrap_or(ladder.len());
    encoding.sat.solve(&[])?;
    // The best is not before `low`, and not after `high`.
    let (mut low, mut high, mut stride) = (0, position(encoding), 0);
    while low < high {
        let Some(&(_, prefix)) = ladder.get((low + stride).min(high - 1)) else { break };
        if encoding.sat.fixed(prefix) != Some(false) && encoding.sat.solve(&[prefix])? {
            high = position(encoding);
            stride = (high - low) / 2;
        } else {
            low = (low + stride).min(high - 1) + 1;
            stride = stride * 2 + 1;
            encoding.sat.clause([!prefix])?;
        }
    }
    let Some(&(chosen, _)) = ladder.get(high) else { return Ok(()) };
    let rank = &universe.nodes[chosen].rank;
    for &(other, _) in ladder.iter().skip(high + 1).take_while(|(id, _)| universe.nodes[*id].rank.ties(rank)) {
        let Some(literal) = encoding.node(other) else { continue };
        if encoding.sat.solve(&[literal])? {
            let name = |id: NodeId| universe.source(&universe.nodes[id]).map(|source| source.name.clone());
            return Err(ResolveError::Ambiguous {
                package: universe.groups[group].name.clone(),
                version: universe.nodes[chosen].version.to_string(),
                catalogs: [chosen, other].into_iter().filter_map(name).collect(),
            });
        }
    }
    if let Some(literal) = encoding.node(chosen) {
        encoding.sat.clause([literal])?;
    }
    Ok(())
}

/// Settles that there are as few further packages as possible.
fn few(encoding: &mut Encoding, extras: &[GroupId]) -> Result<(), ResolveError> {
    encoding.sat.solve(&[])?;
    let open: Vec<Lit> = extras
        .iter()
        .filter_map(|group| encoding.present(*group))
        .filter(|literal| encoding.sat.fixed(*literal).is_none())
        .collect();
    let found = |encoding: &Encoding| open.iter().filter(|literal| encoding.sat.value(**literal)).count();
    let mut most = found(encoding);
    let absent: Vec<Lit> = open.iter().map(|literal| !*literal).collect();
    if most > 0 && encoding.sat.solve(&absent)? {
        most = 0;
    }
    if most == 0 {
        for literal in absent {
            encoding.sat.clause([literal])?;
        }
        return Ok(());
    }
    let counts = encoding.sat.count(&open, most + 1)?;
    while let Some(&at_least) = most.checked_sub(1).and_then(|index| counts.get(index)) {
        if !encoding.sat.solve(&[!at_least])? {
            break;
        }
        most = found(encoding);
    }
    if let Some(&more) = counts.get(most) {
        encoding.sat.clause([!more])?;
    }
    Ok(())
}

/// Settles which further packages there are. Returns them in alphabetical order.
fn first(universe: &Universe<'_>, encoding: &mut Encoding, extras: &[GroupId]) -> Result<Vec<GroupId>, ResolveError> {
    let preference = |group: &GroupId| {
        let nodes = || universe.groups[*group].nodes.iter().map(|id| &universe.nodes[*id].rank);
        let deprecated = nodes().all(|rank| rank.deprecated);
        (deprecated, nodes().map(|rank| rank.priority).min(), universe.groups[*group].name.clone())
    };
    let mut ordered = extras.to_vec();
    ordered.sort_by_cached_key(preference);
    encoding.sat.solve(&[])?;
    for group in ordered {
        let Some(present) = encoding.present(group) else { continue };
        if encoding.sat.fixed(present).is_some() {
            continue;
        }
        let possible = encoding.sat.value(present) || encoding.sat.solve(&[present])?;
        encoding.sat.clause([if possible { present } else { !present }])?;
        encoding.sat.solve(&[])?;
    }
    let chosen = |group: &GroupId| encoding.present(*group).is_some_and(|literal| encoding.sat.value(literal));
    let mut chosen: Vec<GroupId> = extras.iter().copied().filter(chosen).collect();
    chosen.sort_by_key(|group| &universe.groups[*group].name);
    Ok(chosen)
}
