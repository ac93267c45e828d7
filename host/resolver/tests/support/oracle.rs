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
type Rank = (bool, bool, bool, bool, Reverse<Version>, Reverse<i32>);

/// The catalogs of what needs each package.
type Homes = BTreeMap<String, BTreeSet<String>>;

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
            let rank = |index: &usize| oracle.rank(*index, &Homes::new());
            oracle.held = (0..question.candidates.len()).filter(same).min_by_key(rank);
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
                    && one.upgrades().is_some_and(|before| reached.contains(before))
            });
            let before = reached.len();
            let next: Vec<Version> = next.map(|one| one.version.clone()).collect();
            reached.extend(next);
            if reached.len() == before {
                let upgrades = goal.upgrades().is_some_and(|before| reached.contains(before));
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
        if !(held && self.question.self_certified) && self.offers(index).is_empty() && !self.channels(index).is_empty()
        {
            blocks.insert("skipped");
        }
        blocks
    }

    /// The channels of a candidate among those that are asked for.
    fn channels(&self, index: usize) -> Vec<&'a str> {
        let one = self.one(index);
        let among = self.required(&one.package).map(|(_, _, channels)| channels.clone()).unwrap_or_default();
        one.channels.iter().filter(|name| among.is_empty() || among.contains(name)).map(String::as_str).collect()
    }

    /// The channels in which no other candidate skips it.
    fn offers(&self, index: usize) -> Vec<&'a str> {
        let one = self.one(index);
        let skips = |other: &Candidate, channel: &str| {
            (&other.package, &other.catalog) == (&one.package, &one.catalog)
                && other.channels.contains(channel)
                && other.skips.as_ref() == Some(&one.version)
        };
        let is_skipped = |channel: &str| self.question.candidates.iter().any(|other| skips(other, channel));
        self.channels(index).into_iter().filter(|channel| !is_skipped(channel)).collect()
    }

    /// Whether a package is installed with one of these holds.
    fn has_hold(&self, package: &str, holds: &[Hold]) -> bool {
        self.question
            .installed
            .as_ref()
            .is_some_and(|(installed, _, hold)| installed == package && holds.contains(hold))
    }

    fn rank(&self, index: usize, homes: &Homes) -> Rank {
        let one = self.one(index);
        let held = self.question.installed.as_ref().is_some_and(|(package, _, _)| *package == one.package);
        let offers = self.offers(index);
        let stable = if offers.is_empty() { self.channels(index) } else { offers }.contains(&"stable");
        let stays = held && !self.has_hold(&one.package, &[Hold::Newest]);
        let changed = stays && self.required(&one.package).is_none() && self.held != Some(index);
        let priority = CATALOGS.iter().find(|(name, _)| *name == one.catalog).unwrap().1;
        let foreign = self.at_home(&one.package, homes) && !homes[&one.package].contains(&one.catalog);
        (changed, foreign, !stable, one.deprecated, Reverse(one.version.clone()), Reverse(priority))
    }

    /// Whether a catalog of what needs a package has a candidate of it.
    fn at_home(&self, package: &str, homes: &Homes) -> bool {
        let Some(home) = homes.get(package) else { return false };
        (0..self.question.candidates.len())
            .filter(|index| self.blocked[*index].is_empty())
            .any(|index| self.one(index).package == package && home.contains(&self.one(index).catalog))
    }

    /// Whether a package is asked for, or stays as it is before anything else counts.
    fn is_settled(&self, package: &str) -> bool {
        self.required(package).is_some() || self.has_hold(package, &[Hold::Pinned, Hold::Flexible])
    }

    /// The candidates that meet a part of a need.
    fn meeting(&self, need: &Need, met: &mut Vec<Vec<usize>>) {
        let possible = || (0..self.question.candidates.len()).filter(|index| self.blocked[*index].is_empty());
        match need {
            Need::Kind(kind) => {
                let own = self.held.is_some_and(|held| self.one(held).provides.as_ref() == Some(kind));
                if own || !self.question.served.contains(kind) {
                    met.push(possible().filter(|index| self.one(*index).provides.as_ref() == Some(kind)).collect());
                }
            }
            Need::Package(name, least) => {
                let meets = |index: &usize| self.one(*index).package == *name && self.one(*index).version >= *least;
                met.push(possible().filter(meets).collect());
            }
            Need::Any(parts) => parts.iter().for_each(|part| self.meeting(part, met)),
            Need::None(_) => {}
        }
    }

    /// The catalogs of what needs each package that a set does not settle.
    fn homes(&self, set: &[usize]) -> Homes {
        let mut homes = Homes::new();
        let settled = set.iter().copied().filter(|index| self.is_settled(&self.one(*index).package));
        let open = (0..self.question.candidates.len()).filter(|index| {
            let package = &self.one(*index).package;
            self.has_hold(package, &[Hold::Yielding, Hold::Newest]) && self.required(package).is_none()
        });
        let mut open: Vec<usize> = settled.chain(open.filter(|index| self.blocked[*index].is_empty())).collect();
        let mut followed: BTreeSet<usize> = open.iter().copied().collect();
        while let Some(index) = open.pop() {
            let mut met = Vec::new();
            for need in self.one(index).needs.iter().filter(|need| self.counts(need, index)) {
                self.meeting(need, &mut met);
            }
            for mut meeting in met {
                meeting.retain(|other| !self.is_settled(&self.one(*other).package));
                for other in &meeting {
                    let home = homes.entry(self.one(*other).package.clone()).or_default();
                    home.insert(self.one(index).catalog.clone());
                }
                if meeting.iter().any(|other| self.one(*other).catalog == self.one(index).catalog) {
                    meeting.retain(|other| self.one(*other).catalog == self.one(index).catalog);
                }
                open.extend(meeting.into_iter().filter(|other| followed.insert(*other)));
            }
        }
        homes
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

    /// Whether a requirement counts: installed bundles keep the dependencies that they have, and get no others.
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
        let (homes, none) = (self.homes(set), Homes::new());
        let ranks = |wanted: &dyn Fn(&str) -> bool, homes: &Homes| -> Vec<Rank> {
            by_name.iter().filter(|(name, _)| wanted(name)).map(|(_, index)| self.rank(*index, homes)).collect()
        };
        let is_required = |name: &str| self.required(name).is_some();
        let with = |name: &str, holds: &[Hold]| self.has_hold(name, holds) && !is_required(name);
        let is_held = |name: &str| with(name, &[Hold::Pinned, Hold::Flexible]);
        let is_yielding = |name: &str| with(name, &[Hold::Yielding]);
        let is_newest = |name: &str| with(name, &[Hold::Newest]);
        let is_extra = |name: &str| !is_required(name) && installed != Some(name);
        let mut extras: Vec<(bool, bool, Reverse<i32>, String)> = Vec::new();
        for name in by_name.keys().filter(|name| is_extra(name)) {
            let all = || (0..self.question.candidates.len()).filter(|index| self.one(*index).package == **name);
            let deprecated = all().all(|index| self.one(index).deprecated);
            let away = homes.contains_key(*name) && !self.at_home(name, &homes);
            let priority = all().map(|index| self.rank(index, &none).5).min().unwrap();
            extras.push((deprecated, away, priority, (*name).to_owned()));
        }
        extras.sort();
        let settled = (ranks(&is_held, &none), ranks(&is_required, &none));
        let installed = (ranks(&is_yielding, &homes), ranks(&is_newest, &homes));
        (settled, installed, extras.len(), extras, ranks(&is_extra, &homes))
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
                    Limit::Skipped { .. } => "skipped",
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
