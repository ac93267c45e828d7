//! The best of all sets that fit, in an order that people can predict:
//!
//! 1. what is installed stays as it is, package by package in alphabetical order;
//! 2. each package that is asked for, in alphabetical order: its best candidate that is possible with those before;
//! 3. what is installed and yields to these stays as it is, package by package;
//! 4. what is installed and is to be the newest, in alphabetical order: its best candidate;
//! 5. as few further packages as possible;
//! 6. of the sets of as few, the one with the first package in the order: it has bundles that are not deprecated, it is in a catalog of
//!    what needs it, the priority of its catalogs, its name;
//! 7. each further package, in alphabetical order: its best candidate.
//!
//! [`Hold`] says which of 1, 3 and 4 an installed package belongs to.
//!
//! The best candidate is in the default channel, not deprecated, of the highest version, of the catalog with the highest
//! priority, in this order ([`Rank`](crate::universe::Rank)). For a package that is not asked for, the catalog that it comes from is before
//! all of these ([`home`](crate::home)).

use std::collections::BTreeSet;

use crate::{
    encode::Encoding,
    error::ResolveError,
    home::{Home, Homes, is_foreign, own},
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
    for &group in &held {
        best(universe, encoding, group, &own(universe, group))?;
    }
    for &group in &required {
        best(universe, encoding, group, &Home::new())?;
    }
    let homes = homes(universe, encoding, held.into_iter().chain(required))?;
    for group in yielding.into_iter().chain(newest) {
        best(universe, encoding, group, &homes.home(universe, group))?;
    }
    few(encoding, &extras)?;
    let chosen = first(universe, encoding, &extras, &homes)?;
    for group in chosen {
        best(universe, encoding, group, &homes.home(universe, group))?;
    }
    encoding.sat.solve(&[])?;
    Ok(Some(universe.nodes.ids().filter(|id| encoding.chosen(*id)).collect()))
}

/// The catalogs of dependencies, once what is asked for is settled.
fn homes(
    universe: &Universe<'_>,
    encoding: &mut Encoding,
    settled: impl Iterator<Item = GroupId>,
) -> Result<Homes, ResolveError> {
    encoding.sat.solve(&[])?;
    let settled: BTreeSet<GroupId> = settled.chain(universe.root).collect();
    let chosen = settled.iter().flat_map(|group| universe.active(*group)).filter(|id| encoding.chosen(*id));
    let installed = universe.question.installed.keys().filter_map(|name| universe.by_name.get(*name));
    let open = installed.filter(|group| !settled.contains(group)).flat_map(|group| {
        let own = own(universe, *group);
        universe.active(*group).filter(move |id| !is_foreign(universe, &own, *id))
    });
    let seeds: Vec<NodeId> = chosen.chain(open).collect();
    Ok(Homes::of(universe, seeds, &settled)?)
}

/// Settles the best candidate of a package that is chosen.
fn best(universe: &Universe<'_>, encoding: &mut Encoding, group: GroupId, home: &Home) -> Result<(), ResolveError> {
    let mut ladder = encoding.prefixes.get(&group).cloned().unwrap_or_default();
    let mut order: Vec<NodeId> = ladder.iter().map(|(id, _)| *id).collect();
    order.sort_by_key(|id| (universe.nodes[*id].rank.changed, is_foreign(universe, home, *id)));
    if order.iter().ne(ladder.iter().map(|(id, _)| id)) {
        ladder = encoding.ladder(&order)?;
    }
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
    let ties = |id: NodeId| {
        universe.nodes[id].rank.ties(rank) && is_foreign(universe, home, id) == is_foreign(universe, home, chosen)
    };
    for &(other, _) in ladder.iter().skip(high + 1).take_while(|(id, _)| ties(*id)) {
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
fn first(
    universe: &Universe<'_>,
    encoding: &mut Encoding,
    extras: &[GroupId],
    homes: &Homes,
) -> Result<Vec<GroupId>, ResolveError> {
    let preference = |group: &GroupId| {
        let nodes = || universe.groups[*group].nodes.iter().map(|id| &universe.nodes[*id].rank);
        let deprecated = nodes().all(|rank| rank.deprecated);
        let is_away = homes.is_away(universe, *group);
        (deprecated, is_away, nodes().map(|rank| rank.priority).min(), universe.groups[*group].name.clone())
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
