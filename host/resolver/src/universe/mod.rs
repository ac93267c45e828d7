//! The candidates of a question: what it leads to, and nothing else. `load` reads a package; this module follows requirements.

mod load;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use crate::{
    answer::Step,
    arena::{Arena, Id},
    catalog::{Bundle, Catalogs, Package},
    error::{Exceeded, ResolveError},
    kind::Kind,
    need::{Leaf, Need, Wanted},
    platform::OpenShift,
    problem::{Dependencies, Hold, Source},
    question::Question,
    rules::Rules,
    sat::Steps,
    upgrade::Paths,
    version::VersionRelease,
};

pub(crate) type NodeId = Id<Node>;
pub(crate) type GroupId = Id<Group>;
pub(crate) type MatchId = Id<Match>;

/// A candidate: a bundle in a catalog, or what is installed.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) group: GroupId,
    /// The catalog; `None` if no catalog has the installed bundle.
    pub(crate) source: Option<usize>,
    pub(crate) package: Option<Arc<Package>>,
    pub(crate) bundle: Arc<Bundle>,
    pub(crate) version: VersionRelease,
    pub(crate) rank: Rank,
    /// Why it cannot be installed here.
    pub(crate) blocks: BTreeSet<Block>,
    /// Whether it is what the user asks for.
    pub(crate) asked: bool,
    /// Whether it is what is installed.
    pub(crate) installed: bool,
    /// Whether it takes part.
    pub(crate) active: bool,
    /// What it requires, with the index of the requirement in its bundle.
    pub(crate) needs: Vec<(usize, Formula)>,
}

/// A package of the question.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// The candidates, the best first.
    pub(crate) nodes: Vec<NodeId>,
    /// The steps of upgrades, by catalog.
    pub(crate) paths: BTreeMap<usize, Paths>,
}

/// The order of the candidates of a package; the smallest is the best.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::struct_excessive_bools, reason = "each is one criterion of the order")]
pub(crate) struct Rank {
    pub(crate) changed: bool,
    pub(crate) not_default: bool,
    pub(crate) deprecated: bool,
    pub(crate) version: Reverse<VersionRelease>,
    pub(crate) priority: Reverse<i32>,
    pub(crate) other_catalog: bool,
    catalog: String,
    bundle: String,
}

impl Rank {
    /// The rank of what no catalog has.
    fn unranked(bundle: &str, version: VersionRelease) -> Self {
        Self {
            changed: false,
            not_default: true,
            deprecated: false,
            version: Reverse(version),
            priority: Reverse(i32::MIN),
            other_catalog: true,
            catalog: String::new(),
            bundle: bundle.to_owned(),
        }
    }

    /// The rank that it would have if what is installed were not before others.
    pub(crate) fn unchanged(&self) -> Self {
        Self { changed: false, ..self.clone() }
    }

    /// Whether two candidates differ only in the name of the catalog.
    pub(crate) fn ties(&self, other: &Self) -> bool {
        let part = |rank: &Self| (rank.changed, rank.not_default, rank.deprecated, rank.priority, rank.other_catalog);
        part(self) == part(other) && self.version == other.version && self.catalog != other.catalog
    }
}

/// Why a candidate cannot be installed on this cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Block {
    Malformed(String),
    Kubernetes(semver::Version),
    OpenShift(OpenShift),
    /// The files of the bundle say why.
    Excluded(String),
    /// The bundle has the property `olm.deprecated`.
    Withdrawn,
    Deprecated,
    /// An entry of its channels skips it: the name of that entry.
    Skipped(String),
    Unreachable,
}

/// The candidates that meet a leaf.
#[derive(Debug)]
pub(crate) struct Match {
    pub(crate) text: String,
    pub(crate) leaf: Leaf,
    /// Whether the cluster has it.
    pub(crate) served: bool,
    /// Those that may be chosen for it.
    pub(crate) nodes: Vec<NodeId>,
    /// Pre-releases that meet it as well.
    pub(crate) prereleases: Vec<NodeId>,
}

/// A requirement over matches.
#[derive(Clone, Debug)]
pub(crate) enum Formula {
    Leaf(MatchId),
    All(Vec<Formula>),
    Any(Vec<Formula>),
    Not(Vec<Formula>),
}

/// All candidates of a question.
pub(crate) struct Universe<'a> {
    pub(crate) question: &'a Question<'a>,
    catalogs: &'a dyn Catalogs,
    pub(crate) steps: Steps,
    pub(crate) nodes: Arena<Node>,
    pub(crate) groups: Arena<Group>,
    pub(crate) matches: Arena<Match>,
    pub(crate) by_name: BTreeMap<String, GroupId>,
    /// Represents the constraints of the question: a package with one candidate, which is always chosen.
    pub(crate) root: Option<GroupId>,
    by_text: BTreeMap<String, MatchId>,
    rules: Rules,
    open: VecDeque<NodeId>,
    /// Whether candidates that are blocked take part, for an explanation.
    blocked: bool,
    /// The kinds of installed bundles, which are not the cluster's own.
    owned: BTreeSet<Kind>,
    /// Requirements that what is installed does not meet already.
    pub(crate) unmet: Vec<(NodeId, usize)>,
}

impl<'a> Universe<'a> {
    /// Collects what a question leads to.
    pub(crate) fn collect(
        question: &'a Question<'a>,
        catalogs: &'a dyn Catalogs,
        blocked: bool,
    ) -> Result<Self, ResolveError> {
        let mut universe = Self {
            question,
            catalogs,
            steps: Steps::new(&question.problem.budget, &question.taken),
            nodes: Arena::default(),
            groups: Arena::default(),
            matches: Arena::default(),
            by_name: BTreeMap::new(),
            root: None,
            by_text: BTreeMap::new(),
            rules: Rules::default(),
            open: VecDeque::new(),
            blocked,
            owned: BTreeSet::new(),
            unmet: Vec::new(),
        };
        for package in question.installed.keys() {
            let group = universe.load(package)?;
            for id in universe.groups[group].nodes.clone() {
                if universe.nodes[id].installed {
                    let provides = universe.nodes[id].bundle.provides.clone();
                    universe.owned.extend(provides);
                }
            }
        }
        for package in question.required.keys() {
            universe.load(package)?;
        }
        universe.constrain()?;
        universe.activate_roots();
        while let Some(node) = universe.open.pop_front() {
            universe.expand(node)?;
        }
        universe.forgive();
        Ok(universe)
    }

    /// The catalog of a candidate.
    pub(crate) fn source(&self, node: &Node) -> Option<&'a Source> {
        self.question.sources.get(node.source?).copied()
    }

    /// The candidates of a package that take part, the best first.
    pub(crate) fn active(&self, group: GroupId) -> impl Iterator<Item = NodeId> {
        self.groups[group].nodes.iter().copied().filter(|id| self.nodes[*id].active)
    }

    /// The shortest path from what is installed to a candidate.
    pub(crate) fn path(&self, node: &Node) -> Option<Vec<Step>> {
        self.groups[node.group].paths.get(&node.source?)?.to(&node.bundle.name)
    }

    fn activate_roots(&mut self) {
        let groups: Vec<GroupId> = self.by_name.values().copied().collect();
        for group in groups {
            let name = &self.groups[group].name;
            let required = self.question.required.contains_key(name.as_str());
            let held = self.question.installed.get(name.as_str());
            let flexible = held.is_some_and(|held| held.installed.hold != Hold::Pinned);
            for id in self.groups[group].nodes.clone() {
                let node = &self.nodes[id];
                let root = self.root == Some(group);
                if if required { node.asked } else { root || held.is_some() && (node.installed || flexible) } {
                    self.activate(id);
                }
            }
        }
    }

    fn activate(&mut self, id: NodeId) {
        let node = &mut self.nodes[id];
        let usable = node.blocks.is_empty() || self.blocked && !node.blocks.iter().any(Block::is_malformed);
        if usable && !node.active {
            node.active = true;
            self.open.push_back(id);
        }
    }

    fn expand(&mut self, id: NodeId) -> Result<(), ResolveError> {
        let is_root = self.root == Some(self.nodes[id].group);
        if self.question.problem.policy.dependencies == Dependencies::Ignore && !is_root {
            return Ok(());
        }
        let bundle = Arc::clone(&self.nodes[id].bundle);
        // The conflict that is found first comes first in an explanation: by its text, since the order of properties in a catalog means
        // nothing.
        let mut needs: Vec<(usize, &Need)> = bundle.needs.iter().enumerate().collect();
        needs.sort_by_cached_key(|(_, need)| need.to_string());
        let mut formulas = Vec::with_capacity(needs.len());
        for (index, need) in needs {
            formulas.push((index, self.formula(need, false)?));
        }
        self.nodes[id].needs = formulas;
        Ok(())
    }

    fn formula(&mut self, need: &Need, negated: bool) -> Result<Formula, ResolveError> {
        let parts = |universe: &mut Self, parts: &[Need], negated| -> Result<Vec<Formula>, ResolveError> {
            parts.iter().map(|part| universe.formula(part, negated)).collect()
        };
        Ok(match need {
            Need::Leaf(leaf) => {
                let id = self.find(leaf)?;
                if !negated && !self.matches[id].served {
                    for node in self.matches[id].nodes.clone() {
                        self.activate(node);
                    }
                }
                Formula::Leaf(id)
            }
            Need::All(all) => Formula::All(parts(self, all, negated)?),
            Need::Any(any) => Formula::Any(parts(self, any, negated)?),
            Need::Not(none) => Formula::Not(parts(self, none, !negated)?),
        })
    }

    /// The candidates that meet a leaf. All that could meet it are loaded.
    fn find(&mut self, leaf: &Leaf) -> Result<MatchId, ResolveError> {
        let text = leaf.to_string();
        if let Some(id) = self.by_text.get(&text) {
            return Ok(*id);
        }
        let served = match &leaf.wanted {
            Wanted::Kind(kind) => {
                leaf.rules.is_empty() && self.question.served.contains(kind) && !self.owned.contains(kind)
            }
            _ => false,
        };
        let names = self.names(leaf)?;
        let (mut nodes, mut prereleases) = (Vec::new(), Vec::new());
        for name in names {
            let group = self.load(&name)?;
            let candidates = self.groups[group].nodes.clone();
            self.steps.take(candidates.len() as u64)?;
            for id in candidates {
                if self.meets(id, leaf)? {
                    let list = if self.is_usable(id, leaf) { &mut nodes } else { &mut prereleases };
                    list.push(id);
                }
            }
        }
        let id = self.matches.push(Match { text: text.clone(), leaf: leaf.clone(), served, nodes, prereleases });
        self.by_text.insert(text, id);
        Ok(id)
    }

    /// The packages whose bundles may meet a leaf.
    fn names(&self, leaf: &Leaf) -> Result<BTreeSet<String>, ResolveError> {
        let mut names = BTreeSet::new();
        match &leaf.wanted {
            Wanted::Package { name, .. } => drop(names.insert(name.clone())),
            Wanted::Kind(kind) => {
                for source in &self.question.sources {
                    names.extend(self.catalogs.providers(&source.name, kind)?);
                }
                names.extend(self.question.installed.keys().map(|&name| name.to_owned()));
                names.extend(self.question.contents.keys().map(|(package, _)| (*package).to_owned()));
            }
            Wanted::Label(_) | Wanted::Any => {
                for source in &self.question.sources {
                    names.extend(self.catalogs.packages(&source.name)?);
                }
                names.extend(self.question.installed.keys().map(|&name| name.to_owned()));
            }
        }
        Ok(names)
    }

    fn meets(&mut self, id: NodeId, leaf: &Leaf) -> Result<bool, Exceeded> {
        let node = &self.nodes[id];
        let wanted = match &leaf.wanted {
            Wanted::Package { range, .. } => range.matches(node.version.version()),
            Wanted::Kind(kind) => node.bundle.provides.contains(kind),
            Wanted::Label(label) => node.bundle.labels.contains(label),
            Wanted::Any => true,
        };
        if !wanted {
            return Ok(false);
        }
        for rule in &leaf.rules {
            if !self.rules.holds(rule, &node.bundle.properties, &self.steps)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Pre-releases are chosen where they are allowed, named, or asked for.
    fn is_usable(&self, id: NodeId, leaf: &Leaf) -> bool {
        let node = &self.nodes[id];
        let named = match &leaf.wanted {
            Wanted::Package { range, .. } => range.names_prerelease(),
            _ => false,
        };
        !node.version.is_prerelease()
            || named
            || self.question.problem.policy.prereleases
            || node.installed
            || node.asked
    }

    /// Installed packages keep their dependencies. A requirement that is not met now binds no other package.
    fn forgive(&mut self) {
        let installed: BTreeSet<NodeId> = self.nodes.ids().filter(|id| self.nodes[*id].installed).collect();
        for id in installed.clone() {
            let name = &self.groups[self.nodes[id].group].name;
            if self.question.required.contains_key(name.as_str()) {
                continue;
            }
            let needs = std::mem::take(&mut self.nodes[id].needs);
            let (met, unmet): (Vec<_>, Vec<_>) =
                needs.into_iter().partition(|(_, need)| self.holds(need, id, &installed));
            self.nodes[id].needs = met;
            self.unmet.extend(unmet.into_iter().map(|(index, _)| (id, index)));
        }
    }

    /// Whether a requirement of a candidate holds for a set.
    pub(crate) fn holds(&self, formula: &Formula, of: NodeId, set: &BTreeSet<NodeId>) -> bool {
        match formula {
            Formula::Leaf(id) => {
                let found = &self.matches[*id];
                found.served || found.nodes.iter().chain(&found.prereleases).any(|node| set.contains(node))
            }
            Formula::All(parts) => parts.iter().all(|part| self.holds(part, of, set)),
            Formula::Any(parts) => parts.iter().any(|part| self.holds(part, of, set)),
            Formula::Not(parts) => {
                let mut others = set.clone();
                others.remove(&of);
                !parts.iter().any(|part| self.holds(part, of, &others))
            }
        }
    }
}

impl Block {
    pub(crate) fn is_malformed(&self) -> bool {
        matches!(self, Self::Malformed(_))
    }
}
