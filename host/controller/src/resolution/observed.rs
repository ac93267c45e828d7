//! Gathers what is known about the BundleDeployments of the cluster: records, and the catalogs' bundles of the packages that they claim to
//! be ([`chandler_resolution::observed`]).

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use chandler_api::{BundleDeployment, Resolution, Revision};
use chandler_catalog::{IndexCatalogs, Indexes};
use chandler_core::Digest;
use chandler_decisions::account;
use chandler_records::RecordError;
use chandler_resolution::{
    Claim, InstalledImage, Observed,
    evidence::{self, Entry},
    observed::{self, Decided, Fact},
    question,
};
use chandler_resolver::{Installed, Source};
use kube::ResourceExt as _;
use parking_lot::Mutex;

use super::{
    answer::open,
    decisions::{Decision, Decisions},
    membership::Membership,
    reconciler::Resolutions,
};
use crate::catalog::KnownCatalog;

/// The maximum number of packages whose bundles are kept.
const KNOWN: usize = 20_000;

/// Why it is unknown what is installed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObserveError {
    /// A record cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A catalog cannot be read.
    #[error("failed to read a catalog: {0}")]
    Catalog(String),
}

/// The bundles of packages, by the digest of the catalog and the package.
type Listed = HashMap<(Digest, String), Arc<[Entry]>>;

/// The bundles of packages that BundleDeployments claim to be.
#[derive(Default)]
pub(super) struct Entries(Mutex<Listed>);

impl Entries {
    /// What is known, and what has to be read. Forgets bundles that no catalog has any more, and everything if too much is known: the
    /// author of a bundle chooses which package it claims to be.
    fn known(
        &self,
        digests: &BTreeSet<&Digest>,
        packages: &BTreeSet<String>,
        all: &BTreeSet<Digest>,
    ) -> (Listed, Vec<(Digest, String)>) {
        let mut known = self.0.lock();
        known.retain(|(digest, _), _| all.contains(digest));
        if known.len() > KNOWN {
            known.clear();
        }
        let (mut listed, mut missing) = (Listed::new(), Vec::new());
        for digest in digests {
            for package in packages {
                let key = ((*digest).clone(), package.clone());
                match known.get(&key) {
                    Some(entries) => drop(listed.insert(key, Arc::clone(entries))),
                    None => missing.push(key),
                }
            }
        }
        (listed, missing)
    }

    fn add(&self, read: &Listed) {
        let read = read.iter().map(|(key, entries)| (key.clone(), Arc::clone(entries)));
        self.0.lock().extend(read);
    }
}

/// Reads the bundles of packages. A package that cannot be read has none: the resolver reports it if the question leads there.
fn read(indexes: &Indexes, missing: Vec<(Digest, String)>) -> Result<Listed, String> {
    let mut by_digest: BTreeMap<Digest, Vec<String>> = BTreeMap::new();
    for (digest, package) in missing {
        by_digest.entry(digest).or_default().push(package);
    }
    let mut found = Listed::new();
    for (digest, packages) in by_digest {
        let source = Source { name: digest.to_string(), ..Source::default() };
        let catalogs = IndexCatalogs::new().with(source, Arc::new(open(indexes, &digest)?));
        for package in packages {
            let entries = evidence::entries(&catalogs, &digest.to_string(), &package).unwrap_or_default();
            found.insert((digest.clone(), package), entries.into());
        }
    }
    Ok(found)
}

/// The bundle with this image, in the catalogs from which the Resolution may take the package.
fn proven(
    resolution: &Resolution,
    image: &InstalledImage,
    package: &str,
    catalogs: &[&KnownCatalog],
    listed: &Listed,
) -> Option<Installed> {
    let request = resolution.spec.packages.iter().find(|request| request.name == package);
    let selects = question::selected(request.and_then(|request| request.catalogs.as_ref()));
    let of_package = catalogs.iter().filter(|it| selects.matches(&it.source.name, &it.source.labels));
    let sources: Vec<Source> = of_package.map(|it| it.source.clone()).collect();
    let entries = |source: &Source| {
        let digest = catalogs.iter().find(|it| it.source.name == source.name).and_then(|it| it.digest.clone());
        let entries = digest.and_then(|digest| listed.get(&(digest, package.to_owned())));
        entries.map(|entries| &**entries).unwrap_or_default()
    };
    evidence::proven(image, package, &sources, entries)
}

impl Resolutions {
    /// The bundles of the BundleDeployments of the cluster. `catalogs` are the catalogs that the Resolution selects and that can be read.
    pub(super) async fn observe(
        &self,
        resolution: &Resolution,
        (current, decisions): (Option<&Decision>, &Decisions),
        catalogs: &[&KnownCatalog],
    ) -> Result<Observed, ObserveError> {
        let membership = Membership::read(&self.sets, resolution).await?;
        let members = current.map(Decision::members).unwrap_or_default();
        let decided = Decided::of(members, decisions.newest_first().flat_map(Decision::members));
        let all = self.deployments.all();
        let mut facts = Vec::new();
        for deployment in all.iter().filter_map(|guarded| guarded.0.as_ref().ok()) {
            let is_member = membership.has(deployment);
            // What is installed in another cluster satisfies and blocks nothing in this one.
            if deployment.spec.kube_config.is_some() {
                continue;
            }
            // A BundleDeployment that says nothing about its bundle needs no record.
            if deployment.metadata.deletion_timestamp.is_none()
                && (is_member || Claim::of(deployment).is_some())
                && let Some(history) = self.history(deployment).await?
            {
                facts.push(Fact { deployment, history, is_member });
            }
        }
        let listed = self.listed(catalogs, &observed::packages(&facts, &decided)).await?;
        let proven = |image: &InstalledImage, package: &str| proven(resolution, image, package, catalogs, &listed);
        Ok(observed::observe(&facts, &decided, proven))
    }

    /// The revisions of a BundleDeployment, as its record has them; `None` if the record says that they are installed in another cluster, whatever
    /// the spec says now.
    async fn history(&self, deployment: &BundleDeployment) -> Result<Option<Vec<Revision>>, RecordError> {
        let uid = deployment.uid().unwrap_or_default();
        let account = account::recorded(deployment, &self.cluster.options.accounts);
        let state = self.records.read(&deployment.name_any(), &uid, account.as_deref()).await?;
        let Some(state) = state else { return Ok(Some(Vec::new())) };
        Ok(state.target.is_none().then(|| state.history.clone()))
    }

    /// The catalogs' bundles of packages.
    async fn listed(&self, catalogs: &[&KnownCatalog], packages: &BTreeSet<String>) -> Result<Listed, ObserveError> {
        let digests: BTreeSet<&Digest> = catalogs.iter().filter_map(|catalog| catalog.digest.as_ref()).collect();
        let all = self.catalogs.known().into_iter().filter_map(|catalog| catalog.digest).collect();
        let (mut listed, missing) = self.entries.known(&digests, packages, &all);
        if !missing.is_empty() {
            let indexes = self.indexes.clone();
            let read = tokio::task::spawn_blocking(move || read(&indexes, missing)).await;
            let read = read.unwrap_or_else(|error| Err(error.to_string())).map_err(ObserveError::Catalog)?;
            self.entries.add(&read);
            listed.extend(read);
        }
        Ok(listed)
    }
}
