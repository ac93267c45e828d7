//! What the content service may show.

use std::sync::Arc;

use chandler_core::Digest;
use chandler_decisions::account::requester;
use chandler_serve::{Holding, Holdings, Target, UploadAccount};
use kube::ResourceExt as _;

use crate::{bundle_deployment::Installer, catalog::CatalogStates, signals::Signal};

/// The content of BundleDeployments and Catalogs.
pub(crate) struct Held {
    pub(crate) installer: Arc<Installer>,
    pub(crate) catalogs: Arc<CatalogStates>,
}

impl Held {
    /// The content in the status, as before a restart, if the record has a revision with it: other clients may write a status.
    fn recorded(&self, name: &str) -> Option<Digest> {
        let guarded = self.installer.deployments.guarded(name)?;
        let described = guarded.0.as_ref().ok()?.status.as_ref()?.content_digest.clone()?;
        let state = self.installer.records.known(name)?.state();
        let is_recorded = state.history.iter().any(|revision| revision.content_digest == described);
        described.parse().ok().filter(|_| is_recorded)
    }
}

impl Holdings for Held {
    fn bundle(&self, name: &str) -> Holding {
        let noted = self.installer.memory.contents.get(name);
        if matches!(noted, Holding::Content(_)) {
            return noted;
        }
        match self.recorded(name) {
            Some(content) => Holding::Content(content),
            None if self.installer.deployments.guarded(name).is_none() => Holding::Nothing,
            None => noted,
        }
    }

    fn catalog(&self, name: &str) -> Option<Digest> {
        self.catalogs.digest_in_use(name)
    }

    fn target(&self, name: &str) -> Target {
        let guarded = self.installer.deployments.guarded(name);
        let Some(deployment) = guarded.as_ref().and_then(|guarded| guarded.0.as_ref().ok()) else {
            return Target::Absent;
        };
        let spec = &deployment.spec;
        match &spec.source.upload {
            Some(upload) => Target::Upload {
                uid: deployment.uid().unwrap_or_default(),
                digest: upload.digest.clone(),
                account: spec.service_account.as_ref().map(|named| UploadAccount {
                    namespace: named.namespace.clone().unwrap_or_else(|| spec.install_namespace.clone()),
                    name: named.name.clone(),
                }),
                requester: requester(deployment, &self.installer.cluster.options.accounts),
            },
            None => Target::Other(spec.source.kind.clone()),
        }
    }

    fn stored(&self, content: &Digest, bytes: u64) {
        self.installer.memory.growth.add(content, bytes, self.installer.cluster.options.unused_content_bytes());
    }

    fn uploaded(&self, name: &str) {
        self.installer.signals.send(Signal::DeploymentInputChanged(name));
    }
}
