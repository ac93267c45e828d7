//! The namespaces of packages: their names, and their creation.

use std::collections::{BTreeMap, BTreeSet};

use chandler_catalog::{
    Indexes,
    platform::{self, PlatformPackage},
};
use chandler_core::Digest;
use chandler_records::MANAGED_BY;
use chandler_resolution::{
    platform::{Refused, Wanted, namespace::PACKAGE_LABEL, plan::namespace_of},
    question,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use parking_lot::Mutex;

use crate::catalog::KnownCatalog;

/// What catalogs suggest, and which namespaces are known to exist.
pub(super) struct Namespaces {
    indexes: Indexes,
    /// What a catalog suggests for a package, by the digest of its content; `None` if it does not have the package.
    suggested: Mutex<BTreeMap<(Digest, String), Option<PlatformPackage>>>,
    existing: Mutex<BTreeSet<String>>,
}

impl Namespaces {
    pub(super) fn new(indexes: &Indexes) -> Self {
        Self { indexes: indexes.clone(), suggested: Mutex::default(), existing: Mutex::default() }
    }

    /// The namespace that catalogs suggest for a package, or the one with its name. Refused if no catalog has the package or if the package
    /// must be a platform operator and no catalog says that it is one.
    pub(super) async fn suggested(
        &self,
        wanted: &Wanted,
        catalogs: &[KnownCatalog],
        must_be_operator: bool,
    ) -> Result<String, Refused> {
        let package = &wanted.request.name;
        let selects = question::selected(wanted.request.catalogs.as_ref());
        let selected = catalogs.iter().filter(|it| selects.matches(&it.source.name, &it.source.labels));
        let (mut found, mut read, mut not_ready) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_operator = false;
        for catalog in selected {
            let suggestion = match &catalog.digest {
                Some(digest) => self.look_up(digest, package).await,
                None => Err(()),
            };
            match suggestion {
                Ok(suggestion) => {
                    is_operator |= suggestion.as_ref().is_some_and(|it| it.is_operator);
                    found.extend(suggestion.map(|suggestion| (catalog.source.priority, suggestion.namespace)));
                    read.push(catalog.source.name.clone());
                }
                Err(()) => not_ready.push(catalog.source.name.clone()),
            }
        }
        if must_be_operator && !is_operator && !found.is_empty() {
            return Err(Refused::NotPlatformOperator { package: package.clone(), policy: None });
        }
        namespace_of(package, found).ok_or_else(|| Refused::Unknown {
            package: package.clone(),
            catalogs: read,
            not_ready,
        })
    }

    async fn look_up(&self, digest: &Digest, package: &str) -> Result<Option<PlatformPackage>, ()> {
        let key = (digest.clone(), package.to_owned());
        let known = || self.suggested.lock();
        if let Some(known) = known().get(&key) {
            return Ok(known.clone());
        }
        let (indexes, (digest, package)) = (self.indexes.clone(), key.clone());
        let asked = tokio::task::spawn_blocking(move || {
            let index = indexes.get(&digest).map_err(|error| error.to_string())?;
            let index = index.ok_or_else(|| "its index is gone from the cache".to_owned())?;
            platform::package(&index, &package).map_err(|error| error.to_string())
        });
        let suggestion = match asked.await {
            Ok(Ok(suggestion)) => suggestion,
            Ok(Err(error)) => {
                tracing::debug!(digest = %key.0, error, "the index of a catalog cannot be read");
                return Err(());
            }
            Err(_) => return Err(()),
        };
        known().insert(key, suggestion.clone());
        Ok(suggestion)
    }

    /// Forgets suggestions of catalogs that are not among these any more.
    pub(super) fn retain(&self, catalogs: &[KnownCatalog]) {
        let used: BTreeSet<&Digest> = catalogs.iter().filter_map(|it| it.digest.as_ref()).collect();
        let mut suggested = self.suggested.lock();
        suggested.retain(|(digest, _), _| used.contains(digest));
    }

    /// Forgets that a namespace exists, because a BundleDeployment did not find it.
    pub(super) fn missing(&self, namespace: &str) {
        self.existing.lock().remove(namespace);
    }

    /// Creates a namespace that does not exist, for a package or, with an empty one, for what all packages need.
    pub(super) async fn ensure(
        &self,
        client: &Client,
        name: &str,
        package: &str,
        labels: &BTreeMap<String, String>,
    ) -> Result<(), kube::Error> {
        let existing = || self.existing.lock();
        if existing().contains(name) {
            return Ok(());
        }
        let api: Api<Namespace> = Api::all(client.clone());
        if api.get_opt(name).await?.is_none() {
            let mut labels = labels.clone();
            labels.insert(MANAGED_BY.0.to_owned(), MANAGED_BY.1.to_owned());
            if !package.is_empty() {
                labels.insert(PACKAGE_LABEL.to_owned(), package.to_owned());
            }
            let metadata = ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() };
            let namespace = Namespace { metadata, ..Namespace::default() };
            match api.create(&PostParams::default(), &namespace).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                created => drop(created?),
            }
        }
        existing().insert(name.to_owned());
        Ok(())
    }
}
