//! Near misses: candidates that almost meet the request, and what they lack.

use std::collections::{BTreeMap, BTreeSet};

use super::bundles::{bounded, listed, named, versions};
use crate::{
    encode::Cause,
    need::Wanted,
    universe::{Block, Formula, GroupId, MatchId, Node, NodeId, Universe},
};

/// The most near misses of one explanation.
const MOST: usize = 6;
/// The most candidates of one package among them.
const CANDIDATES: usize = 2;
/// The longest near miss, in characters.
const TEXT: usize = 300;

/// Near misses of the packages that a contradiction is about, the best candidates first.
pub(super) fn near_misses(universe: &Universe<'_>, causes: &[&Cause]) -> Vec<String> {
    let mut misses = Vec::new();
    let required =
        causes.iter().filter_map(|cause| if let Cause::Required(group) = cause { Some(*group) } else { None });
    let needing =
        causes.iter().filter_map(|cause| if let Cause::Needs(group, _) = cause { Some(*group) } else { None });
    let mut seen = BTreeSet::new();
    for group in required.chain(needing) {
        if misses.len() >= MOST {
            break;
        }
        if seen.insert(group) {
            misses.extend(of_package(universe, group));
        }
    }
    misses.truncate(MOST);
    misses.iter().map(|text| bounded(text, TEXT)).collect()
}

fn of_package(universe: &Universe<'_>, group: GroupId) -> Vec<String> {
    let name = &universe.groups[group].name;
    let required = universe.question.required.contains_key(name.as_str());
    let fits = |id: &NodeId| if required { universe.nodes[*id].asked } else { universe.nodes[*id].active };
    let candidates: Vec<NodeId> = universe.groups[group].nodes.iter().copied().filter(fits).collect();
    if candidates.is_empty() {
        return vec![elsewhere(universe, group)];
    }
    let mut misses = Vec::new();
    let mut seen = BTreeSet::new();
    for id in candidates {
        let node = &universe.nodes[id];
        let lacks = lacks(universe, id);
        if !lacks.is_empty() && seen.insert(node.version.to_string()) {
            let version = if is_nameless(node) { node.bundle.name.clone() } else { node.version.to_string() };
            misses.push(format!("{name} {version} would do but {}", listed(&lacks, "and")));
        }
        if misses.len() >= CANDIDATES {
            break;
        }
    }
    misses
}

/// What there is of a package, where nothing matches.
fn elsewhere(universe: &Universe<'_>, group: GroupId) -> String {
    let found = &universe.groups[group];
    let mut catalogs: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
    for id in &found.nodes {
        let node = &universe.nodes[*id];
        if let Some(source) = universe.source(node) {
            catalogs.entry(&source.name).or_default().push(node);
        }
    }
    if catalogs.is_empty() {
        return format!("no catalog has package {}", found.name);
    }
    let each = |(catalog, nodes): (&&str, &Vec<&Node>)| {
        let (malformed, nodes): (Vec<&Node>, Vec<&Node>) = nodes.iter().copied().partition(|node| is_nameless(node));
        let malformed = malformed.first().map(|node| {
            let fault = node.bundle.faults.first().map_or("it has no version", String::as_str);
            format!("bundle {} of {}, which is malformed: {fault}", node.bundle.name, found.name)
        });
        if let (Some(malformed), []) = (&malformed, nodes.as_slice()) {
            return format!("catalog {catalog} has {malformed}");
        }
        let channels: BTreeSet<&String> =
            nodes.iter().flat_map(|node| node.package.iter()).flat_map(|package| package.channels.keys()).collect();
        let channels: Vec<String> = channels.into_iter().take(8).cloned().collect();
        let versions = listed(&versions(nodes.iter().copied()), "and");
        let within =
            if channels.is_empty() { String::new() } else { format!(" in {}", named("channel", &channels, "and")) };
        let only =
            if nodes.iter().all(|node| node.version.is_prerelease()) { ", all of them pre-releases" } else { "" };
        let also = malformed.map(|malformed| format!(", and {malformed}")).unwrap_or_default();
        format!("catalog {catalog} has {} {versions}{within}{only}{also}", found.name)
    };
    catalogs.iter().take(3).map(each).collect::<Vec<_>>().join(", ")
}

/// Whether a bundle of a catalog has no version that could be named, since its property is missing, cannot be read or is of another package.
fn is_nameless(node: &Node) -> bool {
    node.source.is_some() && node.bundle.version.is_none()
}

/// What a candidate lacks.
fn lacks(universe: &Universe<'_>, id: NodeId) -> Vec<String> {
    let node = &universe.nodes[id];
    let mut lacks: Vec<String> = node.blocks.iter().map(|block| blocked(universe, node, block)).collect();
    let mut unmet = Unmet::default();
    for (index, formula) in &node.needs {
        if possible(universe, formula) {
            continue;
        }
        let mut leaves = Vec::new();
        impossible(universe, formula, &mut leaves);
        if let [leaf] = leaves.as_slice() {
            unmet.push(universe.matches[*leaf].text.clone(), offers(universe, *leaf));
        } else {
            let text = node.bundle.needs.get(*index).map(ToString::to_string).unwrap_or_default();
            unmet.push(text, leaves.first().map(|leaf| offers(universe, *leaf)).unwrap_or_default());
        }
        if lacks.len() + unmet.count >= 3 {
            break;
        }
    }
    lacks.extend(unmet.texts());
    lacks
}

/// What a candidate needs, grouped by why nothing meets it, in the order of the needs.
#[derive(Default)]
struct Unmet {
    groups: Vec<(String, Vec<String>)>,
    count: usize,
}

impl Unmet {
    fn push(&mut self, need: String, why: String) {
        self.count += 1;
        match self.groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, needs)) => needs.push(need),
            None => self.groups.push((why, vec![need])),
        }
    }

    fn texts(&self) -> impl Iterator<Item = String> {
        self.groups.iter().map(|(why, needs)| {
            let comma = if why.is_empty() { "" } else { ", " };
            format!("needs {}{comma}{why}", listed(needs, "and"))
        })
    }
}

fn blocked(universe: &Universe<'_>, node: &Node, block: &Block) -> String {
    match block {
        Block::Malformed(fault) => format!("is malformed: {fault}"),
        Block::Kubernetes(least) => format!("needs Kubernetes {least}"),
        Block::OpenShift(most) => format!("runs on OpenShift up to {most}"),
        Block::Excluded(why) => format!("is not possible here: {why}"),
        Block::Withdrawn => "has the property olm.deprecated".to_owned(),
        Block::Deprecated => "is deprecated".to_owned(),
        Block::Skipped(by) => format!("is skipped by {by}"),
        Block::Unreachable => {
            let name = universe.groups[node.group].name.as_str();
            let from = universe.question.installed.get(name).map_or("", |held| held.installed.name.as_str());
            format!("cannot be reached by upgrades from {from}{}", barrier(universe, node))
        }
    }
}

/// The entry that blocks an upgrade: the one just before the candidate that cannot be installed.
fn barrier(universe: &Universe<'_>, node: &Node) -> String {
    let Some(package) = &node.package else { return String::new() };
    let before: BTreeSet<&String> = package
        .channels
        .values()
        .filter_map(|channel| channel.entries.get(&node.bundle.name))
        .flat_map(|entry| entry.replaces.iter().chain(&entry.skips))
        .collect();
    let sibling = |name: &&String| {
        let nodes = universe.groups[node.group].nodes.iter().map(|id| &universe.nodes[*id]);
        nodes.clone().find(|other| other.bundle.name == **name && other.source == node.source)
    };
    let limited = before.iter().filter_map(sibling).find_map(|other| {
        let limits: Vec<String> = other
            .blocks
            .iter()
            .filter(|block| !matches!(block, Block::Unreachable | Block::Deprecated | Block::Skipped(_)))
            .map(|block| blocked(universe, other, block))
            .collect();
        (!limits.is_empty()).then(|| format!(": {} on the way {}", other.bundle.name, limits.join(" and ")))
    });
    limited.unwrap_or_else(|| match before.first() {
        Some(first) => format!(": it upgrades {first}"),
        None => ": it upgrades no other bundle by name".to_owned(),
    })
}

/// Whether some candidate that is not blocked could meet a formula.
fn possible(universe: &Universe<'_>, formula: &Formula) -> bool {
    match formula {
        Formula::Leaf(id) => {
            let found = &universe.matches[*id];
            found.served || found.nodes.iter().any(|id| free(universe, *id))
        }
        Formula::All(parts) => parts.iter().all(|part| possible(universe, part)),
        Formula::Any(parts) => parts.iter().any(|part| possible(universe, part)),
        Formula::Not(_) => true,
    }
}

/// Whether nothing but other packages keeps a candidate out.
fn free(universe: &Universe<'_>, id: NodeId) -> bool {
    let node = &universe.nodes[id];
    let name = universe.groups[node.group].name.as_str();
    let excluded = universe.question.is_pinned(name) && !node.installed
        || universe.question.required.contains_key(name) && !node.asked;
    node.active && node.blocks.is_empty() && !excluded
}

fn impossible(universe: &Universe<'_>, formula: &Formula, leaves: &mut Vec<MatchId>) {
    match formula {
        Formula::Leaf(id) => {
            if !possible(universe, formula) {
                leaves.push(*id);
            }
        }
        Formula::All(parts) | Formula::Any(parts) => {
            for part in parts {
                impossible(universe, part, leaves);
            }
        }
        Formula::Not(_) => {}
    }
}

/// Who offers what meets a leaf, and why that does not help.
fn offers(universe: &Universe<'_>, leaf: MatchId) -> String {
    let found = &universe.matches[leaf];
    let lowest =
        found.nodes.iter().chain(&found.prereleases).copied().filter(|id| universe.nodes[*id].source.is_some());
    let lowest = lowest.min_by_key(|id| (universe.nodes[*id].version.clone(), *id));
    let Some(id) = lowest else {
        if let Wanted::Package { name, .. } = &found.leaf.wanted
            && let Some(group) = universe.by_name.get(name)
        {
            return elsewhere(universe, *group);
        }
        return "which no catalog provides".to_owned();
    };
    let node = &universe.nodes[id];
    let name = &universe.groups[node.group].name;
    let catalog = universe.source(node).map_or("", |source| source.name.as_str());
    let text = if is_nameless(node) {
        format!("which bundle {} of package {name} in catalog {catalog} provides", node.bundle.name)
    } else {
        format!("which package {name} in catalog {catalog} provides from {}", node.version)
    };
    let question = universe.question;
    let but = if let Some(held) = question.installed.get(name.as_str()).filter(|_| question.is_pinned(name)) {
        format!(", and {name} {} is installed and pinned", held.version)
    } else if let Some(wanted) = question.required.get(name.as_str()).filter(|_| !node.asked) {
        format!(", and {name} {} is required", wanted.required.range)
    } else if let Some(block) = node.blocks.first() {
        format!(", and that {}", blocked(universe, node, block))
    } else if found.nodes.is_empty() {
        ", a pre-release".to_owned()
    } else {
        String::new()
    };
    text + &but
}
