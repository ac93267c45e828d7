//! A resolver that is slow and obvious: it looks at every set.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use chandler_resolver::{Hold, Limit, Line};
use semver::Version;

use super::random::{CATALOGS, Candidate, Need, Random};

/// A set of candidates, by their indices.
pub(crate) type Set = Vec<usize>;

/// The order of the candidates of a package.
type Rank = (bool, bool, bool, Reverse<Version>, Reverse<i32>);

pub(crate) struct Oracle<'a> {
    question: &'a Random,
    /// The candidate that is installed.
    held: Option<usize>,
    blocked: Vec<BTreeSet<&'static str>>,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(question: &'a Random) -> Self {
        let mut oracle = Self { question, held: None, blocked: Vec::new() };
        if let Some((package, version, _)) = &question.installed {
            let same = |index: &usize| {
                let one = &question.candidates[*index];
                one.package == *package && one.version == *version
            };
            oracle.held = (0..question.candidates.len()).filter(same).min_by_key(|index| oracle.rank(*index));
        }
        oracle.blocked = (0..question.candidates.len()).map(|index| oracle.blocks(index)).collect();
        oracle
    }

    fn one(&self, index: usize) -> &'a Candidate {
        &self.question.candidates[index]
    }

    fn required(&self, package: &str) -> Option<&'a (String, Version, Vec<String>)> {
        self.question.required.iter().find(|(name, _, _)| name == package)
    }

    fn is_asked(&self, index: usize) -> bool {
        let one = self.one(index);
        self.required(&one.package).is_some_and(|(_, least, channels)| {
            one.version >= *least && (channels.is_empty() || channels.iter().any(|name| one.channels.contains(name)))
        })
    }

    fn pinned(&self, package: &str) -> bool {
        self.required(package).is_none() && self.has_hold(package, &[Hold::Pinned])
    }

    /// Whether upgrades lead from what is installed to a candidate, over candidates that can be installed.
    fn reachable(&self, index: usize) -> bool {
        let goal = self.one(index);
        let Some((_, from, _)) = &self.question.installed else { return true };
        let channels = self.required(&goal.package).map(|(_, _, channels)| channels.clone()).unwrap_or_default();
        let mut reached = BTreeSet::from([from.clone()]);
        loop {
            let next = self.question.candidates.iter().filter(|one| {
                one.package == goal.package
                    && one.catalog == goal.catalog
                    && !one.limited
                    && (channels.is_empty() || channels.iter().any(|name| one.channels.contains(name)))
                    && one.replaces.as_ref().is_some_and(|before| reached.contains(before))
            });
            let before = reached.len();
            let next: Vec<Version> = next.map(|one| one.version.clone()).collect();
            reached.extend(next);
            if reached.len() == before {
                let upgrades = goal.replaces.as_ref().is_some_and(|before| reached.contains(before));
                let listed = channels.is_empty() || channels.iter().any(|name| goal.channels.contains(name));
                return goal.version == *from || upgrades && listed;
            }
        }
    }

    fn blocks(&self, index: usize) -> BTreeSet<&'static str> {
        let one = self.one(index);
        let mut blocks = BTreeSet::new();
        if self.held == Some(index) {
            return blocks;
        }
        if one.limited {
            blocks.insert("kubernetes");
        }
        let held = self.question.installed.as_ref().is_some_and(|(package, _, _)| *package == one.package);
        if held && !self.pinned(&one.package) && !self.question.self_certified && !self.reachable(index) {
            blocks.insert("upgrade");
        }
        blocks
    }

    /// Whether a package is installed with one of these holds.
    fn has_hold(&self, package: &str, holds: &[Hold]) -> bool {
        self.question
            .installed
            .as_ref()
            .is_some_and(|(installed, _, hold)| installed == package && holds.contains(hold))
    }

    fn rank(&self, index: usize) -> Rank {
        let one = self.one(index);
        let held = self.question.installed.as_ref().is_some_and(|(package, _, _)| *package == one.package);
        let channels = self.required(&one.package).map(|(_, _, channels)| channels.clone()).unwrap_or_default();
        let stable =
            one.channels.contains("stable") && (channels.is_empty() || channels.contains(&"stable".to_owned()));
        let stays = held && !self.has_hold(&one.package, &[Hold::Newest]);
        let changed = stays && self.required(&one.package).is_none() && self.held != Some(index);
        let priority = CATALOGS.iter().find(|(name, _)| *name == one.catalog).unwrap().1;
        (changed, !stable, one.deprecated, Reverse(one.version.clone()), Reverse(priority))
    }

    fn holds(&self, need: &Need, of: usize, set: &[usize]) -> bool {
        match need {
            Need::Kind(kind) => {
                let own = self.held.is_some_and(|held| self.one(held).provides.as_ref() == Some(kind));
                self.question.served.contains(kind) && !own
                    || set.iter().any(|index| self.one(*index).provides.as_ref() == Some(kind))
            }
            Need::Package(name, least) => {
                set.iter().any(|index| self.one(*index).package == *name && self.one(*index).version >= *least)
            }
            Need::Any(parts) => parts.iter().any(|part| self.holds(part, of, set)),
            Need::None(parts) => {
                let others: Vec<usize> = set.iter().copied().filter(|index| *index != of).collect();
                !parts.iter().any(|part| self.holds(part, of, &others))
            }
        }
    }

    /// Whether a requirement counts: what is installed keeps what it has, and no more.
    fn counts(&self, need: &Need, of: usize) -> bool {
        if self.held != Some(of) || self.required(&self.one(of).package).is_some() {
            return true;
        }
        self.holds(need, of, &[of])
    }

    /// Checks a set against every constraint, and names the first that it breaks.
    pub(crate) fn broken(&self, set: &[usize]) -> Option<String> {
        let packages: BTreeSet<&str> = set.iter().map(|index| self.one(*index).package.as_str()).collect();
        if packages.len() != set.len() {
            return Some("two versions of a package".to_owned());
        }
        for (package, _, _) in &self.question.required {
            if !set.iter().any(|index| self.one(*index).package == *package && self.is_asked(*index)) {
                return Some(format!("{package} is asked for"));
            }
        }
        if let Some((package, _, _)) = &self.question.installed {
            let kept = set.iter().any(|index| self.held == Some(*index));
            if self.pinned(package) && !kept || !packages.contains(package.as_str()) {
                return Some(format!("{package} is installed"));
            }
        }
        for &index in set {
            if !self.blocked[index].is_empty() {
                return Some(format!("{:?} is blocked", self.one(index)));
            }
            for need in &self.one(index).needs {
                if self.counts(need, index) && !self.holds(need, index, set) {
                    return Some(format!("{:?} of {:?}", need, self.one(index)));
                }
            }
        }
        let kinds: Vec<&String> = set.iter().filter_map(|index| self.one(*index).provides.as_ref()).collect();
        let distinct: BTreeSet<&&String> = kinds.iter().collect();
        (distinct.len() != kinds.len()).then(|| "two owners of a kind".to_owned())
    }

    /// How good a set is; the smallest is the best.
    fn quality(&self, set: &[usize]) -> impl Ord + use<> {
        let installed = self.question.installed.as_ref().map(|(package, _, _)| package.as_str());
        let by_name: BTreeMap<&str, usize> =
            set.iter().map(|index| (self.one(*index).package.as_str(), *index)).collect();
        let ranks = |wanted: &dyn Fn(&str) -> bool| -> Vec<Rank> {
            by_name.iter().filter(|(name, _)| wanted(name)).map(|(_, index)| self.rank(*index)).collect()
        };
        let is_required = |name: &str| self.required(name).is_some();
        let with = |name: &str, holds: &[Hold]| self.has_hold(name, holds) && !is_required(name);
        let is_held = |name: &str| with(name, &[Hold::Pinned, Hold::Flexible]);
        let is_yielding = |name: &str| with(name, &[Hold::Yielding]);
        let is_newest = |name: &str| with(name, &[Hold::Newest]);
        let is_extra = |name: &str| !is_required(name) && installed != Some(name);
        let mut extras: Vec<(bool, Reverse<i32>, String)> = Vec::new();
        for name in by_name.keys().filter(|name| is_extra(name)) {
            let all = || (0..self.question.candidates.len()).filter(|index| self.one(*index).package == **name);
            let deprecated = all().all(|index| self.one(index).deprecated);
            extras.push((deprecated, all().map(|index| self.rank(index).4).min().unwrap(), (*name).to_owned()));
        }
        extras.sort();
        let settled = (ranks(&is_held), ranks(&is_required), ranks(&is_yielding), ranks(&is_newest));
        (settled, extras.len(), extras, ranks(&is_extra))
    }

    /// The best of all sets.
    pub(crate) fn best(&self) -> Option<Set> {
        let fits = self.sets().filter(|set| self.broken(set).is_none());
        fits.min_by_key(|set| self.quality(set))
    }

    fn sets(&self) -> impl Iterator<Item = Set> + use<> {
        let count = self.question.candidates.len();
        (0_u32..1 << count).map(move |bits| (0..count).filter(|index| bits & (1 << index) != 0).collect())
    }

    /// Whether some set, possibly with several versions of a package, meets all of these lines.
    pub(crate) fn satisfiable(&self, lines: &[&Line]) -> bool {
        self.sets().any(|set| lines.iter().all(|line| self.meets(line, &set)))
    }

    fn meets(&self, line: &Line, set: &[usize]) -> bool {
        let of = |package: &String| {
            let package = package.clone();
            set.iter().copied().filter(move |index| self.one(*index).package == package)
        };
        match line {
            Line::Required { package, .. } => of(package).any(|index| self.is_asked(index)),
            Line::Installed { package, pinned, .. } => of(package).any(|index| !pinned || self.held == Some(index)),
            Line::Needs { package, need, .. } => of(package).all(|index| {
                let mut needs = self.one(index).needs.iter().filter(|one| one.text() == *need);
                needs.all(|one| !self.counts(one, index) || self.holds(one, index, set))
            }),
            Line::Limited { package, limit, .. } => {
                let block = match limit {
                    Limit::Kubernetes { .. } => "kubernetes",
                    Limit::Upgrade { .. } => "upgrade",
                    _ => return true,
                };
                of(package).all(|index| !self.blocked[index].contains(block))
            }
            Line::OneOwner { kind, .. } => {
                let provides = |index: &&usize| {
                    self.one(**index).provides.as_ref().is_some_and(|own| format!("{own}.example.com") == *kind)
                };
                let owners = set.iter().filter(provides).map(|index| &self.one(*index).package);
                owners.collect::<BTreeSet<_>>().len() <= 1
            }
            Line::OneVersion { package } => of(package).count() <= 1,
            Line::Constraint { .. } => unreachable!("the questions of the oracle have no constraints"),
        }
    }
}
