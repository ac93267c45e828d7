//! The graph of upgrades of a package: which bundles can be reached from an installed one, and by which steps.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    answer::{Edge, Step},
    catalog::{Entry, Package},
    error::Exceeded,
    sat::Steps,
    version::VersionRelease,
};

/// Whether an entry upgrades a bundle directly.
pub fn edge(entry: &Entry, name: &str, version: &VersionRelease) -> Option<Edge> {
    if entry.replaces.as_deref() == Some(name) {
        Some(Edge::Replaces)
    } else if entry.skips.contains(name) {
        Some(Edge::Skips)
    } else {
        let range = entry.skip_range.as_ref()?;
        range.matches(version.version()).then_some(Edge::SkipRange)
    }
}

/// The bundles that can be reached, each with the last step of a shortest path to it.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    last: BTreeMap<String, (String, Step)>,
}

impl Paths {
    /// Follows the edges of some channels, or of all if there are none. Every step but the last is installable.
    ///
    /// Of several shortest paths it takes the one over the highest versions.
    pub(crate) fn from(
        package: &Package,
        channels: &BTreeSet<String>,
        installed: (&str, &VersionRelease),
        installable: &dyn Fn(&str) -> bool,
        steps: &Steps,
    ) -> Result<Self, Exceeded> {
        let mut open = Open::of(package, channels, installed.0);
        let mut paths = Self::default();
        let mut level = vec![(installed.1.clone(), installed.0.to_owned())];
        while !level.is_empty() {
            let mut next = BTreeMap::new();
            for (version, name) in &level {
                for (to, channel, edge) in open.successors(name, version, steps)? {
                    let Some(bundle) = package.bundles.get(&to) else { continue };
                    let Some(reached) = &bundle.version else { continue };
                    let (version, image) = (reached.to_string(), bundle.image.clone());
                    let step = Step { name: to.clone(), version, image, channel: Some(channel), edge };
                    paths.last.insert(to.clone(), (name.clone(), step));
                    // A bundle that cannot be installed may be a goal, which has its own explanation, but not a step on the way.
                    if installable(&to) {
                        next.insert(to, reached.clone());
                    }
                }
            }
            level = next.into_iter().map(|(name, version)| (version, name)).collect();
            level.sort_by(|one, other| other.cmp(one));
        }
        Ok(paths)
    }

    /// Adds the paths of others to what these do not reach. What both reach keeps its path.
    pub(crate) fn extend(&mut self, others: Self) {
        for (name, last) in others.last {
            self.last.entry(name).or_insert(last);
        }
    }

    /// The steps to a bundle; `None` if it cannot be reached.
    pub(crate) fn to(&self, name: &str) -> Option<Vec<Step>> {
        let mut steps = Vec::new();
        let mut at = name;
        while let Some((before, step)) = self.last.get(at) {
            steps.push(step.clone());
            at = before;
        }
        steps.reverse();
        (!steps.is_empty()).then_some(steps)
    }

    /// Whether a bundle can be reached.
    pub(crate) fn reach(&self, name: &str) -> bool {
        self.last.contains_key(name)
    }
}

/// The entries that were not reached yet, by what leads to them.
struct Open<'a> {
    named: BTreeMap<&'a str, Vec<(&'a str, &'a str, Edge)>>,
    ranges: Vec<(&'a str, &'a str, &'a Entry)>,
    reached: BTreeSet<&'a str>,
}

impl<'a> Open<'a> {
    fn of(package: &'a Package, channels: &BTreeSet<String>, installed: &'a str) -> Self {
        let selected = package.channels.iter().filter(|(name, _)| channels.is_empty() || channels.contains(*name));
        let default = package.default_channel.as_deref();
        let mut selected: Vec<_> = selected.collect();
        selected.sort_by_key(|(name, _)| (Some(name.as_str()) != default, *name));
        let mut open = Self { named: BTreeMap::new(), ranges: Vec::new(), reached: BTreeSet::from([installed]) };
        for (channel, entries) in selected {
            for (name, entry) in &entries.entries {
                let mut add = |from: &'a str, edge| open.named.entry(from).or_default().push((channel, name, edge));
                if let Some(replaced) = &entry.replaces {
                    add(replaced, Edge::Replaces);
                }
                entry.skips.iter().for_each(|skipped| add(skipped, Edge::Skips));
                if entry.skip_range.is_some() {
                    open.ranges.push((channel, name, entry));
                }
            }
        }
        open
    }

    /// The direct upgrades of a bundle that were not reached before.
    fn successors(
        &mut self,
        name: &str,
        version: &VersionRelease,
        steps: &Steps,
    ) -> Result<Vec<(String, String, Edge)>, Exceeded> {
        let named = self.named.get(name).map_or(&[][..], Vec::as_slice);
        steps.take(named.len() as u64 + self.ranges.len() as u64 + 1)?;
        let mut found = Vec::new();
        for &(channel, to, edge) in named {
            if self.reached.insert(to) {
                found.push((to.to_owned(), channel.to_owned(), edge));
            }
        }
        let reached = &mut self.reached;
        self.ranges.retain(|&(channel, to, entry)| {
            if reached.contains(to) {
                return false;
            }
            let in_range = entry.skip_range.as_ref().is_some_and(|range| range.matches(version.version()));
            if in_range {
                reached.insert(to);
                found.push((to.to_owned(), channel.to_owned(), Edge::SkipRange));
            }
            !in_range
        });
        Ok(found)
    }
}
