//! The chosen candidates as a decision, with who needs each and why.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    answer::{Change, Decision, Edge, Member, Reason, Step},
    held_back::held_back,
    problem::Dependencies,
    question,
    universe::{Formula, MatchId, Node, NodeId, Universe},
};

/// The decision for a chosen set.
pub(crate) fn decide(universe: &Universe<'_>, chosen: &BTreeSet<NodeId>) -> Decision {
    let reasons = reasons(universe, chosen);
    let mut held_back = held_back(universe, chosen);
    let mut decision = Decision::default();
    let question = universe.question;
    for &id in chosen.iter().filter(|id| universe.root != Some(universe.nodes[**id].group)) {
        let node = &universe.nodes[id];
        let name = universe.groups[node.group].name.as_str();
        let mut member = member(universe, node, reasons.get(&id).cloned().unwrap_or_default());
        member.held_back = held_back.remove(&id);
        let held = question.installed.get(name);
        let is_constraint = |reason: &Reason| matches!(reason, Reason::Constraint { .. });
        let known = question.required.contains_key(name) || held.is_some() || member.reasons.iter().any(is_constraint);
        if held.is_some_and(|held| held.installed.automatic) && member.reasons == [Reason::Installed] {
            decision.unneeded.push(name.to_owned());
        }
        let report = question.problem.policy.dependencies == Dependencies::Report;
        if report && !known { &mut decision.missing } else { &mut decision.members }.push(member);
    }
    decision.members.sort_by(|one, other| one.package.cmp(&other.package));
    decision.missing.sort_by(|one, other| one.package.cmp(&other.package));
    decision.unneeded.sort();
    for (id, index) in &universe.unmet {
        let node = &universe.nodes[*id];
        let need = node.bundle.needs.get(*index).map(ToString::to_string).unwrap_or_default();
        let name = &universe.groups[node.group].name;
        decision.notes.push(format!("{name} {} is installed although nothing meets its need: {need}", node.version));
    }
    decision.notes.sort();
    decision
}

fn member(universe: &Universe<'_>, node: &Node, mut reasons: BTreeSet<Reason>) -> Member {
    let name = universe.groups[node.group].name.as_str();
    let question = universe.question;
    let (wanted, held) = (question.required.get(name), question.installed.get(name));
    if let Some(wanted) = wanted {
        reasons.insert(Reason::Requested { range: wanted.required.range.clone() });
    }
    if held.is_some() {
        reasons.insert(Reason::Installed);
    }
    let change = question::change(held.map(|held| &held.version), &node.version);
    let steps = if held.is_none() || change == Change::Keep && node.installed {
        Vec::new()
    } else {
        universe.path(node).unwrap_or_else(|| if change == Change::Keep { Vec::new() } else { forced(node) })
    };
    let all = BTreeSet::new();
    let channels = wanted.map_or(&all, |wanted| &wanted.channels);
    let package = node.package.as_ref();
    Member {
        package: name.to_owned(),
        name: node.bundle.name.clone(),
        version: node.version.version().to_string(),
        release: node.version.release().map(str::to_owned),
        catalog: universe.source(node).map(|source| source.name.clone()),
        channel: package
            .and_then(|it| it.offer(&node.bundle.name, channels).or_else(|| it.channel_of(&node.bundle.name, channels)))
            .map(str::to_owned),
        image: node.bundle.image.clone(),
        change,
        steps,
        reasons: reasons.into_iter().collect(),
        deprecated: package.and_then(|package| package.deprecated(&node.bundle.name)).map(str::to_owned),
        held_back: None,
    }
}

fn forced(node: &Node) -> Vec<Step> {
    let version = node.version.to_string();
    let (name, image) = (node.bundle.name.clone(), node.bundle.image.clone());
    vec![Step { name, version, image, channel: None, edge: Edge::Forced }]
}

/// Who needs each chosen candidate, and why.
fn reasons(universe: &Universe<'_>, chosen: &BTreeSet<NodeId>) -> BTreeMap<NodeId, BTreeSet<Reason>> {
    let mut reasons: BTreeMap<NodeId, BTreeSet<Reason>> = BTreeMap::new();
    for &id in chosen {
        let node = &universe.nodes[id];
        let mut leaves = Vec::new();
        node.needs.iter().for_each(|(_, formula)| positive(formula, &mut leaves));
        for leaf in leaves {
            let found = &universe.matches[leaf];
            if found.served {
                continue;
            }
            let met = found.nodes.iter().chain(&found.prereleases).filter(|met| **met != id && chosen.contains(met));
            for met in met {
                let need = found.text.clone();
                let package = universe.groups[node.group].name.clone();
                reasons.entry(*met).or_default().insert(if universe.root == Some(node.group) {
                    Reason::Constraint { need }
                } else {
                    Reason::NeededBy { package, version: node.version.to_string(), need }
                });
            }
        }
    }
    reasons
}

/// The leaves that a formula asks for.
pub(crate) fn positive(formula: &Formula, leaves: &mut Vec<MatchId>) {
    match formula {
        Formula::Leaf(id) => leaves.push(*id),
        Formula::All(parts) | Formula::Any(parts) => parts.iter().for_each(|part| positive(part, leaves)),
        Formula::Not(_) => {}
    }
}
