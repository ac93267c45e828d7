//! The Receivers that accept requests, and the objects whose sources a request concerns.

use std::{collections::BTreeMap, sync::Arc};

use chandler_api::{BundleSource, Catalog, PolledKind, ProvisionerClass, ReceiverResource, ReceiverSpec};
use chandler_content::IssuerError;
use chandler_monitoring::Metrics;
use chandler_receivers::{Expected, InvalidOidc, Named, Repository, Token, token::same};
use chandler_runtime::{Cache, Guarded, Triggers};
use chandler_serve::{Hook, Hooks};
use chandler_source::Source;
use kube::{ResourceExt as _, runtime::reflector::ObjectRef};
use parking_lot::RwLock;

use super::KnownIssuers;
use crate::{bundle_deployment::Preparer, catalog::CatalogStates};

/// The Receivers that accept requests.
pub(crate) struct Webhooks {
    entries: RwLock<BTreeMap<String, Entry>>,
    polled: Polled,
    issuers: KnownIssuers,
    metrics: Arc<Metrics>,
}

/// What the Secret of a Receiver contains.
#[derive(Debug)]
pub(crate) struct Secrets {
    pub(crate) token: Token,
    /// Certificates that are trusted for the issuer of identity tokens, in PEM.
    pub(crate) certificates: Option<Vec<u8>>,
}

/// Identity tokens of a Receiver cannot be judged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OidcError {
    #[error(transparent)]
    Spec(#[from] InvalidOidc),
    #[error("spec.oidc.issuer cannot be used: {0}")]
    Issuer(#[from] IssuerError),
}

/// The objects whose sources are polled, and how.
pub(crate) struct Polled {
    pub(crate) preparer: Arc<Preparer>,
    pub(crate) catalogs: Arc<CatalogStates>,
    pub(crate) classes: Cache<Guarded<ProvisionerClass>>,
    pub(crate) class_triggers: Triggers<ProvisionerClass>,
}

struct Entry {
    path: String,
    spec: ReceiverSpec,
    certificates: Option<Vec<u8>>,
    hook: Arc<Hook>,
}

impl Webhooks {
    /// No Receivers yet.
    pub(crate) fn new(polled: Polled, issuers: KnownIssuers, metrics: &Arc<Metrics>) -> Self {
        Self { entries: RwLock::default(), polled, issuers, metrics: Arc::clone(metrics) }
    }

    /// Waits for the first list of the objects with sources. False means that the controller is stopping.
    pub(super) async fn ready(&self) -> bool {
        let Polled { preparer, catalogs, classes, .. } = &self.polled;
        preparer.deployments.ready().await && catalogs.ready().await && classes.ready().await
    }

    /// Accepts requests for a Receiver, and returns their path. Its limits stay if neither the Secret nor the spec has changed.
    ///
    /// # Errors
    /// Its identity tokens cannot be judged.
    pub(super) fn accept(&self, name: &str, spec: &ReceiverSpec, secrets: Secrets) -> Result<String, OidcError> {
        let Secrets { token, certificates } = secrets;
        let path = token.path(name);
        let expected = Expected::new(name, spec.kind, spec.oidc.as_ref())?;
        if let Some(expected) = &expected {
            self.issuers.check(expected.issuer(), certificates.as_deref())?;
        }
        let mut entries = self.entries.write();
        let is_same = entries
            .get(name)
            .is_some_and(|known| known.path == path && known.spec == *spec && known.certificates == certificates);
        if !is_same {
            let mut hook = Hook::new(name.to_owned(), spec.kind, token, spec.events.clone(), spec.suspend);
            if let Some(expected) = expected {
                let keys = self.issuers.keys(expected.issuer(), certificates.as_deref());
                hook = hook.with_identity(expected, keys);
            }
            let entry = Entry { path: path.clone(), spec: spec.clone(), certificates, hook: Arc::new(hook) };
            entries.insert(name.to_owned(), entry);
        }
        Ok(path)
    }

    /// Accepts no requests for a Receiver any more.
    pub(super) fn forget(&self, name: &str) {
        self.entries.write().remove(name);
    }

    /// Forgets the Receivers that are not among these.
    pub(super) fn retain(&self, exists: impl Fn(&str) -> bool) {
        self.entries.write().retain(|name, _| exists(name));
    }
}

impl Hooks for Webhooks {
    /// Compares all paths, whether one is found or not.
    fn find(&self, path: &str) -> Option<Arc<Hook>> {
        let mut found = None;
        for entry in self.entries.read().values() {
            if entry.path.len() == path.len() && same(entry.path.as_bytes(), path.as_bytes()) {
                found = Some(Arc::clone(&entry.hook));
            }
        }
        found
    }

    fn wake(&self, hook: &Hook, named: &Named) -> usize {
        // The Receiver may have been deleted since the request began.
        let Some(resources) = self.entries.read().get(&hook.name).map(|entry| entry.spec.resources.clone()) else {
            return 0;
        };
        self.polled.poll(&resources, named)
    }

    fn answered(&self, outcome: &'static str) {
        self.metrics.webhook(outcome);
    }
}

impl Polled {
    fn poll(&self, resources: &[ReceiverResource], named: &Named) -> usize {
        let of_kind = |kind| resources.iter().any(|entry: &ReceiverResource| entry.kind == kind);
        let included = |kind, name: &str, labels: &BTreeMap<String, String>| {
            resources.iter().any(|entry| entry.includes(kind, name, labels))
        };
        let mut polled = 0;
        if of_kind(PolledKind::BundleDeployment) {
            for guarded in self.preparer.deployments.all() {
                let Ok(deployment) = &guarded.0 else { continue };
                let name = deployment.name_any();
                if included(PolledKind::BundleDeployment, &name, deployment.labels())
                    && !deployment.spec.suspend
                    && concerns(named, &deployment.spec.source)
                {
                    self.preparer.ask(&name);
                    polled += 1;
                }
            }
        }
        if of_kind(PolledKind::Catalog) {
            for guarded in self.catalogs.objects().state() {
                let Ok(catalog): &Result<Catalog, _> = &guarded.0 else { continue };
                let name = catalog.name_any();
                if included(PolledKind::Catalog, &name, catalog.labels())
                    && !catalog.spec.suspend
                    && concerns(named, &catalog.spec.source)
                {
                    self.catalogs.ask(&name);
                    polled += 1;
                }
            }
        }
        if of_kind(PolledKind::ProvisionerClass) {
            for guarded in self.classes.state() {
                let Ok(class) = &guarded.0 else { continue };
                let name = class.name_any();
                let repository = Repository::of_image(&class.spec.image);
                let is_fixed = class.spec.image.contains('@');
                if included(PolledKind::ProvisionerClass, &name, class.labels())
                    && !is_fixed
                    && named.concerns(repository.as_ref())
                {
                    self.preparer.classes.ask(&name);
                    // A trigger without a receiver means that the controller is stopping.
                    let _ = self.class_triggers.send(ObjectRef::new(&name));
                    polled += 1;
                }
            }
        }
        polled
    }
}

/// Whether a request concerns a source, which can have other content now.
fn concerns(named: &Named, source: &BundleSource) -> bool {
    let image = source.image.as_ref().and_then(|image| Repository::of_image(&image.reference));
    let git = source.git.as_ref().and_then(|git| Repository::of_url(&git.repository));
    let http = source.http.as_ref().and_then(|http| Repository::of_url(&http.url));
    named.concerns(image.or(git).or(http).as_ref()) && Source::parse(source).is_ok_and(|source| source.can_move())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_sources_with_the_named_repository_that_can_move_are_concerned() {
        let source = |value: serde_json::Value| -> BundleSource { serde_json::from_value(value).unwrap() };
        let image = |reference: &str| source(json!({"type": "image", "image": {"ref": reference}}));
        let git = source(json!({"type": "git", "git": {"repository": "https://git.example.com/team/shop.git",
                                                       "ref": {"branch": "main"}}}));
        let digest = format!("registry.example.com/team/shop@sha256:{}", "0".repeat(64));
        let shop = Named::Repositories([Repository::of_path("team/shop").unwrap()].into());
        for (source, by_name, by_anything) in [
            (image("registry.example.com/team/shop:v1"), true, true),
            (image("registry.example.com/team/other:v1"), false, true),
            (image(&digest), false, false),
            (git, true, true),
            (source(json!({"type": "upload", "upload": {}})), false, false),
        ] {
            assert_eq!(concerns(&shop, &source), by_name, "{source:?}");
            assert_eq!(concerns(&Named::Anything, &source), by_anything, "{source:?}");
            assert!(!concerns(&Named::Nothing, &source));
        }
    }
}
