//! Renders the BundleDeployments of a class with the component that rendered what they run and with the one that the class has now, and
//! compares the releases.
//!
//! Both run on this machine: the API server is asked for the BundleDeployments and the values of their configurations alone, so that a
//! comparison of thousands costs it little, and the user sees what the user may read.

use std::{collections::HashMap, path::Path};

use chandler_api::{BundleDeployment, ProvisionerInUse};
use chandler_builtin::Provisioners;
use chandler_core::Release;
use chandler_engine::{CallError, Provisioner};
use futures::{StreamExt as _, stream};
use kube::{Api, Client, Discovery, ResourceExt as _};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::{
    classes, cluster,
    deployed::{self, Place},
    preflight,
    provisioner::ChosenProvisioner,
    rendering::{BundleOptions, OpenedBundle},
};
use crate::{
    CommandError,
    view::{
        preflight::{Checked, Outcome},
        summary,
    },
};

/// How many BundleDeployments are fetched and rendered at once.
const AT_ONCE: usize = 8;
/// How many earlier components are in memory at once.
const EARLIER: usize = 8;

/// The component of a class, and what is needed to compare with it.
pub struct ClassDiff<'a> {
    /// The cluster.
    pub client: &'a Client,
    /// Where ConfigMaps with files are.
    pub system_namespace: &'a str,
    /// How registries are reached.
    pub options: &'a BundleOptions,
    /// The engine.
    pub provisioners: &'a Provisioners,
    /// The cache.
    pub cache: &'a Path,
    /// The class.
    pub class: &'a str,
    /// The component to compare with.
    pub newest: &'a ChosenProvisioner,
}

/// What provisioners may ask about the cluster.
struct Facts {
    kubernetes_version: String,
    api_kinds: Vec<String>,
}

/// The components that rendered releases, or why they cannot be had, by digest.
type Earlier = Mutex<HashMap<String, Result<Provisioner, String>>>;

impl ClassDiff<'_> {
    /// Compares the BundleDeployments of the class, by name. Few are in memory at once: `each` takes one after the other.
    ///
    /// # Errors
    /// The BundleDeployments cannot be listed, the APIs of the cluster cannot be discovered, or `each` fails. Failures of one
    /// BundleDeployment are passed to `each`.
    pub async fn run(&self, mut each: impl FnMut(Checked) -> Result<(), CommandError>) -> Result<(), CommandError> {
        let failed =
            |error: kube::Error| CommandError::failed("failed to discover the APIs of the cluster").because(&error);
        let names = preflight::names(self.client, None).await?;
        let discovery = Discovery::new(self.client.clone()).run_aggregated().await.map_err(failed)?;
        let kubernetes_version = self.client.apiserver_version().await.map_err(failed)?.git_version;
        let facts = &Facts { kubernetes_version, api_kinds: chandler_client::kinds(&discovery) };
        let earlier = &Earlier::default();
        let checks = names.iter().map(|name| Box::pin(self.named(name, facts, earlier)));
        let mut checks = stream::iter(checks).buffered(AT_ONCE);
        while let Some(checked) = checks.next().await {
            if let Some(checked) = checked {
                each(checked)?;
            }
        }
        Ok(())
    }

    /// Compares one; `None` if it uses another class, or is gone or being deleted.
    async fn named(&self, name: &str, facts: &Facts, earlier: &Earlier) -> Option<Checked> {
        let deployments: Api<BundleDeployment> = Api::all(self.client.clone());
        let deployment = match deployments.get_opt(name).await {
            Ok(found) => found?,
            Err(error) => {
                let reason = format!("it cannot be read: {}", cluster::cause(&error));
                return Some(Checked::new(name, "", Outcome::Unchecked).because([reason]));
            }
        };
        if deployment.metadata.deletion_timestamp.is_some() || summary::class(&deployment) != Some(self.class) {
            return None;
        }
        Some(self.deployment(&deployment, facts, earlier).await)
    }

    async fn deployment(&self, deployment: &BundleDeployment, facts: &Facts, earlier: &Earlier) -> Checked {
        let mut checked = Checked::new(&deployment.name_any(), &deployment.spec.install_namespace, Outcome::Unchecked);
        checked.class = self.class.to_owned();
        let current = deployment.status.as_ref().and_then(|status| status.history.last());
        let Some(current) = current else {
            return checked
                .because(["no release of it is installed, so that the newest component renders it".to_owned()]);
        };
        let place = Place { provisioners: self.provisioners, cache: self.cache };
        let newest = self.newest.clone();
        let opened =
            deployed::open_with(self.client, self.system_namespace, self.options, deployment, (place, newest)).await;
        let mut opened = match opened {
            Ok(opened) => opened,
            Err(error) => return checked.because([error.explained()]),
        };
        let has_it = current.provisioner.digest == self.newest.provisioner.digest().as_str();
        let before = current.config.clone().unwrap_or_else(|| opened.request.config.clone());
        if has_it && before == opened.request.config {
            checked.outcome = Outcome::Unchanged;
            return checked;
        }
        let installed = match self.earlier(&current.provisioner, earlier).await {
            Ok(installed) => installed,
            Err(reason) => return checked.because([reason]),
        };
        opened.request.target.kubernetes_version.clone_from(&facts.kubernetes_version);
        opened.request.target.api_kinds.clone_from(&facts.api_kinds);
        let new = opened.provision().await;
        let old = with(&mut opened, installed, before).await;
        checked.compared(old, new, opened.redactor())
    }

    /// The component that rendered what is installed.
    async fn earlier(&self, installed: &ProvisionerInUse, earlier: &Earlier) -> Result<Provisioner, String> {
        if installed.digest == self.newest.provisioner.digest().as_str() {
            return Ok(self.newest.provisioner.clone());
        }
        // One is loaded at a time: most installations have the same.
        let mut all = earlier.lock().await;
        if let Some(known) = all.get(&installed.digest) {
            return known.clone();
        }
        let loaded = classes::load_earlier(installed, self.provisioners, self.cache, &self.options.registry).await;
        let loaded = loaded.map_err(|error| error.explained());
        if all.len() >= EARLIER {
            all.clear();
        }
        all.insert(installed.digest.clone(), loaded.clone());
        loaded
    }
}

/// Renders a bundle with another component and configuration.
async fn with(
    opened: &mut OpenedBundle,
    provisioner: Provisioner,
    config: Map<String, Value>,
) -> Result<Release, CallError> {
    opened.chosen.provisioner = provisioner;
    opened.request.config = config;
    opened.provision().await
}
