//! A universe as clauses.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    error::Exceeded,
    problem::Hold,
    sat::{Lit, Sat},
    universe::{Block, Formula, GroupId, MatchId, NodeId, Universe},
};

/// What a clause is there for: a line of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    /// The user asks for a package.
    Required(GroupId),
    /// Candidates of a package need something.
    Needs(GroupId, String),
    /// Candidates of a package are blocked.
    Blocked(GroupId, BlockKind),
    /// A package is installed.
    Installed(GroupId),
    /// A kind has one owner.
    OneOwner(String),
    /// A package has one version.
    OneVersion(GroupId),
}

/// The kind of a [`Block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BlockKind {
    Kubernetes,
    OpenShift,
    Excluded,
    Withdrawn,
    Deprecated,
    Skipped,
    Unreachable,
    Malformed,
}

impl Block {
    pub(crate) fn kind(&self) -> BlockKind {
        match self {
            Self::Malformed(_) => BlockKind::Malformed,
            Self::Kubernetes(_) => BlockKind::Kubernetes,
            Self::OpenShift(_) => BlockKind::OpenShift,
            Self::Excluded(_) => BlockKind::Excluded,
            Self::Withdrawn => BlockKind::Withdrawn,
            Self::Deprecated => BlockKind::Deprecated,
            Self::Skipped(_) => BlockKind::Skipped,
            Self::Unreachable => BlockKind::Unreachable,
        }
    }
}

/// The clauses of a universe.
pub(crate) struct Encoding {
    pub(crate) sat: Sat,
    /// The literal of each candidate that takes part.
    nodes: BTreeMap<NodeId, Lit>,
    /// For each package: its candidates, the best first, each with whether it or a better one is chosen.
    pub(crate) prefixes: BTreeMap<GroupId, Vec<(NodeId, Lit)>>,
    matches: BTreeMap<MatchId, Option<Lit>>,
    /// What holds only if it is assumed; empty unless the clauses are for an explanation.
    pub(crate) causes: BTreeMap<Cause, Lit>,
    explain: bool,
}

impl Encoding {
    /// Writes the clauses. With `explain`, each cause has a literal that must be assumed.
    pub(crate) fn of(universe: &Universe<'_>, explain: bool) -> Result<Self, Exceeded> {
        let sat = Sat::new(&universe.question.problem.budget, &universe.steps);
        let mut encoding = Self {
            sat,
            nodes: BTreeMap::new(),
            prefixes: BTreeMap::new(),
            matches: BTreeMap::new(),
            causes: BTreeMap::new(),
            explain,
        };
        for &group in universe.by_name.values() {
            encoding.package(universe, group)?;
        }
        for id in universe.nodes.ids().filter(|id| universe.nodes[*id].active) {
            encoding.needs(universe, id)?;
        }
        encoding.owners(universe)?;
        Ok(encoding)
    }

    /// The literal of a candidate that takes part.
    pub(crate) fn node(&self, id: NodeId) -> Option<Lit> {
        self.nodes.get(&id).copied()
    }

    /// Whether a candidate is chosen in the last model.
    pub(crate) fn chosen(&self, id: NodeId) -> bool {
        self.node(id).is_some_and(|literal| self.sat.value(literal))
    }

    /// Whether a package is chosen.
    pub(crate) fn present(&self, group: GroupId) -> Option<Lit> {
        Some(self.prefixes.get(&group)?.last()?.1)
    }

    /// Candidates of a package in an order that differs from the ranks, each with whether it or one before it is chosen.
    pub(crate) fn ladder(&mut self, order: &[NodeId]) -> Result<Vec<(NodeId, Lit)>, Exceeded> {
        let mut ladder: Vec<(NodeId, Lit)> = Vec::with_capacity(order.len());
        for &id in order {
            let Some(literal) = self.node(id) else { continue };
            let prefix = self.sat.variable();
            let before = ladder.last().map(|(_, before)| *before);
            self.sat.clause([!literal, prefix])?;
            if let Some(before) = before {
                self.sat.clause([!before, prefix])?;
            }
            self.sat.clause([!prefix, literal].into_iter().chain(before))?;
            ladder.push((id, prefix));
        }
        Ok(ladder)
    }

    /// The beginning of a clause that has a cause.
    fn guard(&mut self, cause: impl FnOnce() -> Cause) -> Vec<Lit> {
        if !self.explain {
            return Vec::new();
        }
        let sat = &mut self.sat;
        vec![!*self.causes.entry(cause()).or_insert_with(|| sat.variable())]
    }

    fn package(&mut self, universe: &Universe<'_>, group: GroupId) -> Result<(), Exceeded> {
        let active: Vec<NodeId> = universe.active(group).collect();
        let literals: Vec<Lit> = active.iter().map(|_| self.sat.variable()).collect();
        self.nodes.extend(active.iter().copied().zip(literals.iter().copied()));
        let unless = if active.len() > 1 { self.guard(|| Cause::OneVersion(group)) } else { Vec::new() };
        let prefixes = self.sat.at_most_one(&unless, &literals)?;
        self.prefixes.insert(group, active.iter().copied().zip(prefixes).collect());
        for (&id, &literal) in active.iter().zip(&literals) {
            let kinds: BTreeSet<BlockKind> = universe.nodes[id].blocks.iter().map(Block::kind).collect();
            for kind in kinds {
                let mut clause = self.guard(|| Cause::Blocked(group, kind));
                clause.push(!literal);
                self.sat.clause(clause)?;
            }
        }
        if universe.root == Some(group) {
            return literals.iter().try_for_each(|literal| self.sat.clause([*literal]));
        }
        let name = universe.groups[group].name.as_str();
        let question = universe.question;
        let held = question.installed.get(name);
        let root = if question.required.contains_key(name) { Cause::Required(group) } else { Cause::Installed(group) };
        let wanted = |id: &NodeId| {
            let node = &universe.nodes[*id];
            match held {
                _ if question.required.contains_key(name) => node.asked,
                Some(held) => node.installed || held.installed.hold != Hold::Pinned,
                None => false,
            }
        };
        if question.required.contains_key(name) || held.is_some() {
            let mut wants = self.guard(|| root);
            wants.extend(active.iter().zip(&literals).filter(|(id, _)| wanted(id)).map(|(_, literal)| *literal));
            self.sat.clause(wants)?;
        }
        Ok(())
    }

    fn needs(&mut self, universe: &Universe<'_>, id: NodeId) -> Result<(), Exceeded> {
        let node = &universe.nodes[id];
        let Some(literal) = self.node(id) else { return Ok(()) };
        for (index, formula) in &node.needs {
            let text = || node.bundle.needs.get(*index).map(ToString::to_string).unwrap_or_default();
            let mut clause = self.guard(|| Cause::Needs(node.group, text()));
            clause.push(!literal);
            let parts = Parts { universe, of: id };
            self.require(&parts, &clause, formula, false)?;
        }
        Ok(())
    }

    /// Unless one of `clause` holds, the formula does. Inside of a `not`, the bundle itself does not count.
    fn require(
        &mut self,
        parts: &Parts<'_, '_>,
        clause: &[Lit],
        formula: &Formula,
        aside: bool,
    ) -> Result<(), Exceeded> {
        let with = |literals: Vec<Lit>| clause.iter().copied().chain(literals);
        match formula {
            Formula::Leaf(id) if parts.universe.matches[*id].served => Ok(()),
            Formula::Leaf(id) => {
                let literals = if aside { self.except(parts, *id) } else { self.shared(parts.universe, *id)? };
                self.sat.clause(with(literals))
            }
            Formula::All(all) => all.iter().try_for_each(|part| self.require(parts, clause, part, aside)),
            Formula::Any(any) => {
                let mut literals = Vec::new();
                for part in any {
                    let literal = self.sat.variable();
                    self.require(parts, &[!literal], part, aside)?;
                    literals.push(literal);
                }
                self.sat.clause(with(literals))
            }
            Formula::Not(none) => none.iter().try_for_each(|part| self.refuse(parts, clause, part)),
        }
    }

    /// Unless one of `clause` holds, the formula does not.
    fn refuse(&mut self, parts: &Parts<'_, '_>, clause: &[Lit], formula: &Formula) -> Result<(), Exceeded> {
        match formula {
            Formula::Leaf(id) if parts.universe.matches[*id].served => self.sat.clause(clause.iter().copied()),
            Formula::Leaf(id) => {
                let found = &parts.universe.matches[*id];
                let others = found.nodes.iter().chain(&found.prereleases).filter(|id| **id != parts.of);
                let literals: Vec<Lit> = others.filter_map(|id| self.node(*id)).collect();
                for literal in literals {
                    self.sat.clause(clause.iter().copied().chain([!literal]))?;
                }
                Ok(())
            }
            Formula::Any(any) => any.iter().try_for_each(|part| self.refuse(parts, clause, part)),
            Formula::All(all) => {
                let mut literals = Vec::new();
                for part in all {
                    let literal = self.sat.variable();
                    self.refuse(parts, &[!literal], part)?;
                    literals.push(literal);
                }
                self.sat.clause(clause.iter().copied().chain(literals))
            }
            Formula::Not(some) => self.require(parts, clause, &Formula::Any(some.clone()), true),
        }
    }

    /// The candidates that meet a leaf, without the bundle itself.
    fn except(&self, parts: &Parts<'_, '_>, id: MatchId) -> Vec<Lit> {
        let found = &parts.universe.matches[id];
        let others = found.nodes.iter().chain(&found.prereleases).filter(|id| **id != parts.of);
        others.filter_map(|id| self.node(*id)).collect()
    }

    /// A literal that holds only if some candidate meets a leaf; the same for all who need that. None if no candidate does.
    fn shared(&mut self, universe: &Universe<'_>, id: MatchId) -> Result<Vec<Lit>, Exceeded> {
        if let Some(known) = self.matches.get(&id) {
            return Ok(known.iter().copied().collect());
        }
        let found = &universe.matches[id];
        let literals: Vec<Lit> = found.nodes.iter().chain(&found.prereleases).filter_map(|id| self.node(*id)).collect();
        let shared = match literals.as_slice() {
            [] => None,
            [one] => Some(*one),
            several => {
                let shared = self.sat.variable();
                self.sat.clause(several.iter().copied().chain([!shared]))?;
                Some(shared)
            }
        };
        self.matches.insert(id, shared);
        Ok(shared.into_iter().collect())
    }

    /// Each kind has one owner.
    fn owners(&mut self, universe: &Universe<'_>) -> Result<(), Exceeded> {
        let mut owners: BTreeMap<String, BTreeMap<GroupId, Vec<NodeId>>> = BTreeMap::new();
        for id in universe.nodes.ids().filter(|id| universe.nodes[*id].active) {
            let node = &universe.nodes[id];
            let owned: BTreeSet<String> = node.bundle.provides.iter().map(crate::kind::Kind::owned).collect();
            for kind in owned {
                owners.entry(kind).or_default().entry(node.group).or_default().push(id);
            }
        }
        for (kind, groups) in owners.iter().filter(|(_, groups)| groups.len() > 1) {
            let unless = self.guard(|| Cause::OneOwner(kind.clone()));
            let mut literals = Vec::new();
            let mut held = false;
            for (&group, nodes) in groups {
                // Packages that are installed together stay together.
                let pinned = universe.question.is_pinned(&universe.groups[group].name);
                if pinned && nodes.iter().any(|id| universe.nodes[*id].installed) {
                    if held {
                        continue;
                    }
                    held = true;
                }
                let owner = self.sat.variable();
                for id in nodes {
                    if let Some(node) = self.node(*id) {
                        self.sat.clause([!node, owner])?;
                    }
                }
                literals.push(owner);
            }
            self.sat.at_most_one(&unless, &literals)?;
        }
        Ok(())
    }
}

/// A bundle whose requirement is written.
struct Parts<'a, 'b> {
    universe: &'a Universe<'b>,
    of: NodeId,
}
