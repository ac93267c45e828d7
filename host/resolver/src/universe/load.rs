//! The candidates of one package.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Block, Group, GroupId, Node, Rank, Universe};
use crate::{
    catalog::{Bundle, CatalogError, Package},
    error::{Exceeded, ResolveError},
    need::Need,
    problem::{Hold, Upgrades},
    question::Held,
    upgrade::Paths,
    version::{VersionRelease, masterminds},
};

/// The name of the package that represents the constraints of the question. No package of a catalog is loaded under it, and no request can
/// name it.
const CONSTRAINTS: &str = "the constraints";

impl Universe<'_> {
    /// The candidates of a package in all catalogs.
    pub(super) fn load(&mut self, name: &str) -> Result<GroupId, ResolveError> {
        if let Some(group) = self.by_name.get(name) {
            return Ok(*group);
        }
        let group = self.groups.push(Group { name: name.to_owned(), nodes: Vec::new(), paths: BTreeMap::new() });
        self.by_name.insert(name.to_owned(), group);
        let mut nodes = Vec::new();
        for (index, source) in self.question.sources.iter().enumerate() {
            let Some(package) = self.catalogs.package(&source.name, name)? else { continue };
            if let Some(message) = package.fault.clone() {
                return Err(CatalogError { catalog: source.name.clone(), message }.into());
            }
            let count = self.nodes.len() + nodes.len() + package.bundles.len();
            if count > self.question.problem.budget.bundles {
                return Err(Exceeded::Bundles.into());
            }
            self.steps.take(package.bundles.len() as u64)?;
            let paths = self.paths(&package)?;
            for bundle in package.bundles.values() {
                let completed = self.question.completed(name, bundle).map(Arc::new);
                let bundle = completed.unwrap_or_else(|| Arc::clone(bundle));
                nodes.push(self.node(group, index, &package, bundle, paths.as_ref()));
            }
            if let Some(paths) = paths {
                self.groups[group].paths.insert(index, paths);
            }
        }
        if let Some(held) = self.question.installed.get(name) {
            self.hold(group, held, &mut nodes);
        }
        nodes.sort_by(|one, other| one.rank.cmp(&other.rank));
        for node in nodes {
            let id = self.nodes.push(node);
            self.groups[group].nodes.push(id);
        }
        Ok(group)
    }

    /// The constraints of the question as what a bundle needs that is always chosen.
    pub(super) fn constrain(&mut self) -> Result<(), ResolveError> {
        let constraints = &self.question.problem.constraints;
        if constraints.is_empty() {
            return Ok(());
        }
        let needs: Result<Vec<Need>, String> = constraints.iter().map(Need::of_property).collect();
        let needs = needs.map_err(ResolveError::Constraints)?;
        let bundle = Arc::new(Bundle { name: CONSTRAINTS.to_owned(), needs, ..Bundle::default() });
        let group = self.groups.push(Group { name: CONSTRAINTS.to_owned(), nodes: Vec::new(), paths: BTreeMap::new() });
        let (version, rank) = (VersionRelease::none(), Rank::unranked(CONSTRAINTS, VersionRelease::none()));
        let (source, package, blocks) = (None, None, BTreeSet::new());
        let (asked, installed, active, needs) = (false, false, false, Vec::new());
        let node = Node { group, source, package, bundle, version, rank, blocks, asked, installed, active, needs };
        let id = self.nodes.push(node);
        self.groups[group].nodes.push(id);
        self.by_name.insert(CONSTRAINTS.to_owned(), group);
        self.root = Some(group);
        Ok(())
    }

    /// The upgrades of an installed package that is not pinned.
    fn paths(&self, package: &Package) -> Result<Option<Paths>, Exceeded> {
        let name = package.name.as_str();
        let Some(held) = self.question.installed.get(name) else { return Ok(None) };
        if self.question.is_pinned(name) {
            return Ok(None);
        }
        let all = BTreeSet::new();
        let channels = self.question.required.get(name).map_or(&all, |wanted| &wanted.channels);
        let installable = |bundle: &str| {
            let Some(bundle) = package.bundles.get(bundle) else { return false };
            let completed = self.question.completed(name, bundle);
            let limits = self.limits(name, completed.as_ref().unwrap_or(bundle));
            limits.is_empty()
        };
        let offered = |bundle: &str| installable(bundle) && package.skipped_by(bundle, channels).is_none();
        let installed = (held.installed.name.as_str(), &held.version);
        let mut paths = Paths::from(package, channels, installed, &offered, &self.steps)?;
        // A skipped bundle is on the path only if no other path leads to the goal.
        if package.channels.values().any(|channel| !channel.skipped.is_empty()) {
            paths.extend(Paths::from(package, channels, installed, &installable, &self.steps)?);
        }
        Ok(Some(paths))
    }

    /// What keeps a bundle from this cluster.
    fn limits(&self, package: &str, bundle: &Bundle) -> BTreeSet<Block> {
        let mut blocks = BTreeSet::new();
        if let Some(why) = self.question.excluded.get(&(package, bundle.name.as_str())) {
            blocks.insert(Block::Excluded((*why).to_owned()));
        }
        if let Some(fault) = bundle.faults.first() {
            blocks.insert(Block::Malformed(fault.clone()));
        }
        if bundle.withdrawn {
            blocks.insert(Block::Withdrawn);
        }
        if let (Some(least), Some(version)) = (&bundle.min_kubernetes, &self.question.kubernetes)
            && version < least
        {
            blocks.insert(Block::Kubernetes(least.clone()));
        }
        if let (Some(most), Some(version)) = (&bundle.max_openshift, &self.question.openshift)
            && version > most
        {
            blocks.insert(Block::OpenShift(*most));
        }
        blocks
    }

    fn node(
        &self,
        group: GroupId,
        index: usize,
        package: &Arc<Package>,
        bundle: Arc<Bundle>,
        paths: Option<&Paths>,
    ) -> Node {
        let question = self.question;
        let (wanted, held) =
            (question.required.get(package.name.as_str()), question.installed.get(package.name.as_str()));
        let source = question.sources.get(index);
        let version = bundle.version.clone();
        let malformed = version.is_none();
        let version = version.unwrap_or_else(VersionRelease::none);
        let mut blocks = self.limits(&package.name, &bundle);
        if malformed {
            blocks.insert(Block::Malformed("it has no version".to_owned()));
        }
        let all = BTreeSet::new();
        let channels = wanted.map_or(&all, |wanted| &wanted.channels);
        let in_channel = package.channels_of(&bundle.name, channels).next().is_some();
        let channel = package.offer(&bundle.name, channels).or_else(|| package.channel_of(&bundle.name, channels));
        let in_default = channel.is_some() && channel == package.default_channel.as_deref();
        let deprecated = package.deprecated(&bundle.name).is_some();
        if deprecated && !question.problem.policy.deprecated {
            blocks.insert(Block::Deprecated);
        }
        let any_change = held.is_some() && question.problem.policy.upgrades == Upgrades::SelfCertified;
        if let Some(by) = package.skipped_by(&bundle.name, channels).filter(|_| !any_change) {
            blocks.insert(Block::Skipped(by.to_owned()));
        }
        let same = held.is_some_and(|held| held.version == version && !malformed);
        if let Some(paths) = paths
            && question.problem.policy.upgrades == Upgrades::CatalogProvided
            && !same
            && !paths.reach(&bundle.name)
        {
            blocks.insert(Block::Unreachable);
        }
        let asked = wanted.zip(source).is_some_and(|(wanted, source)| {
            let range = wanted.range.as_ref();
            let prerelease = !version.is_prerelease()
                || question.problem.policy.prereleases
                || range.is_some_and(masterminds::Range::names_prerelease)
                || held.is_some_and(|held| held.version.is_prerelease());
            wanted.required.catalogs.matches(&source.name, &source.labels)
                && (channels.is_empty() || in_channel)
                && range.is_none_or(|range| range.matches(version.version()))
                && prerelease
                && !malformed
        });
        let catalog = source.map(|source| source.name.clone()).unwrap_or_default();
        let own = held.and_then(|held| held.installed.catalog.as_ref());
        let rank = Rank {
            changed: wanted.is_none() && held.is_some_and(|held| held.installed.hold != Hold::Newest),
            not_default: !in_default,
            deprecated,
            version: Reverse(version.clone()),
            priority: Reverse(source.map_or(0, |source| source.priority)),
            other_catalog: own != Some(&catalog),
            catalog,
            bundle: bundle.name.clone(),
        };
        let package = Some(Arc::clone(package));
        let source = Some(index);
        let (installed, active, needs) = (false, false, Vec::new());
        Node { group, source, package, bundle, version, rank, blocks, asked, installed, active, needs }
    }

    /// Marks what is installed among the candidates, or adds it.
    fn hold(&self, group: GroupId, held: &Held<'_>, nodes: &mut Vec<Node>) {
        let wanted = self.question.required.get(held.installed.package.as_str());
        let is_it = |node: &Node| node.bundle.name == held.installed.name && node.version == held.version;
        let best = (0..nodes.len())
            .filter(|index| nodes.get(*index).is_some_and(is_it))
            .min_by_key(|index| nodes.get(*index).map(|node| (node.rank.other_catalog, node.rank.clone())));
        if let Some(node) = best.and_then(|index| nodes.get_mut(index)) {
            node.installed = true;
            node.rank.changed = false;
            node.blocks.clear();
            return;
        }
        let one = held.installed;
        let asked = wanted
            .is_some_and(|wanted| wanted.range.as_ref().is_none_or(|range| range.matches(held.version.version())));
        let bundle = Bundle::new(&one.name, &one.image, &one.package, one.properties.clone());
        let bundle = Arc::new(self.question.completed(&one.package, &bundle).unwrap_or(bundle));
        let rank = Rank::unranked(&one.name, held.version.clone());
        nodes.push(Node {
            group,
            source: None,
            package: None,
            bundle,
            version: held.version.clone(),
            rank,
            blocks: BTreeSet::new(),
            asked,
            installed: true,
            active: false,
            needs: Vec::new(),
        });
    }
}
