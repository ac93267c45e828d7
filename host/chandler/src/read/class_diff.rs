//! Renders the BundleDeployments of a class with the component that rendered what they run and with the one that the class has now, and
//! compares the releases.
//!
//! Both run on this machine: the API server is asked for pages of BundleDeployments and the values of their configurations alone, so that a
//! comparison of thousands costs it little, and the user sees what the user may read. A BundleDeployment is a request of its own only where all
//! of them together are too large to be kept.

use std::{collections::HashMap, path::Path, sync::Arc};

use chandler_api::{BundleDeployment, ProvisionerInUse};
use chandler_builtin::Provisioners;
use chandler_core::Release;
use chandler_engine::{CallError, Provisioner};
use futures::{StreamExt as _, stream};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
};
use parking_lot::Mutex;
use serde::Deserialize as _;
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::{
    classes, cluster,
    cluster_facts::ClusterFacts,
    deployed::{self, Place},
    preflight::{self, Sides},
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
/// How many earlier components are kept in memory, besides the ones in use.
const EARLIER: usize = 8;
/// The largest number of BundleDeployments of a page: unlike names, whole ones may be large.
const PAGE: u32 = 100;
/// The largest size of the BundleDeployments that are kept from the pages, in bytes of JSON. The others are read when it is their turn.
const KEPT_BYTES: usize = 32 << 20;

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

/// A BundleDeployment of the class, with its name.
struct Listed {
    name: String,
    /// `None` if it is read when it is its turn.
    deployment: Option<Box<BundleDeployment>>,
}

/// The components that rendered releases, or why they cannot be had.
type Earlier = Loaded<Result<Provisioner, String>>;

/// A component and its artifact, as a status names them. A status may name a wrong artifact, which must not spoil the component for others.
type Named = (String, Option<String>);

/// What is loaded once for several lanes. Only the lanes that need it wait for it, however long a registry takes to answer.
struct Loaded<T>(Mutex<HashMap<Named, Arc<OnceCell<T>>>>);

impl<T: Clone> Loaded<T> {
    fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// What has this name, loaded by `load` if it is not there.
    async fn get(&self, named: Named, load: impl Future<Output = T>) -> T {
        let cell = self.cell(named);
        cell.get_or_init(|| load).await.clone()
    }

    fn cell(&self, named: Named) -> Arc<OnceCell<T>> {
        let mut all = self.0.lock();
        if all.len() >= EARLIER && !all.contains_key(&named) {
            // Lanes that load one keep its cell.
            all.clear();
        }
        Arc::clone(all.entry(named).or_default())
    }
}

impl ClassDiff<'_> {
    /// Compares the BundleDeployments of the class, by name. Few are in memory at once: `each` takes one after the other.
    ///
    /// # Errors
    /// The BundleDeployments cannot be listed, the APIs of the cluster cannot be discovered, or `each` fails. Failures of one
    /// BundleDeployment are passed to `each`.
    pub async fn run(&self, mut each: impl FnMut(Checked) -> Result<(), CommandError>) -> Result<(), CommandError> {
        let listed = self.listed(KEPT_BYTES).await?;
        let facts = &ClusterFacts::of(self.client).await?;
        let earlier = &Earlier::new();
        let checks = listed.into_iter().map(|listed| Box::pin(self.checked(listed, facts, earlier)));
        let mut checks = stream::iter(checks).buffered(AT_ONCE);
        while let Some(checked) = checks.next().await {
            if let Some(checked) = checked {
                each(checked)?;
            }
        }
        Ok(())
    }

    /// The BundleDeployments of the class, by name. They are listed before the first bundle is fetched, since the pages expire. Of those that
    /// are larger than `budget` together, the names are kept.
    async fn listed(&self, mut budget: usize) -> Result<Vec<Listed>, CommandError> {
        // One that cannot be decoded must not be a failure of all: it is read again, and reported by its name.
        let resource = ApiResource::erase::<BundleDeployment>(&());
        let deployments: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let list = async |page: &ListParams| deployments.list(page).await;
        let mut listed: Vec<Listed> = Vec::new();
        let add = |page: Vec<DynamicObject>| {
            listed.extend(page.into_iter().filter_map(|object| self.kept(object, &mut budget)));
        };
        let read = cluster::each_page(ListParams::default().limit(PAGE), list, add).await;
        read.map_err(|error| cluster::not_listed(&error))?;
        listed.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(listed)
    }

    /// What is kept of a BundleDeployment: nothing of one that does not use the class, and only the name beyond the budget.
    fn kept(&self, object: DynamicObject, budget: &mut usize) -> Option<Listed> {
        let name = object.name_any();
        let json = serde_json::to_value(object).unwrap_or_default();
        let deployment = match BundleDeployment::deserialize(&json) {
            Ok(deployment) if !self.has_class(&deployment) => return None,
            Ok(deployment) => budget.checked_sub(json.to_string().len()).map(|left| {
                *budget = left;
                Box::new(deployment)
            }),
            Err(_) => None,
        };
        Some(Listed { name, deployment })
    }

    /// Whether a BundleDeployment uses the class, and is not being deleted.
    fn has_class(&self, deployment: &BundleDeployment) -> bool {
        summary::class(deployment) == Some(self.class) && deployment.metadata.deletion_timestamp.is_none()
    }

    /// Compares one; `None` if it uses another class now, or is gone or being deleted.
    async fn checked(&self, listed: Listed, facts: &ClusterFacts, earlier: &Earlier) -> Option<Checked> {
        let deployment = match listed.deployment {
            Some(deployment) => *deployment,
            None => match preflight::existing(self.client, &listed.name).await {
                Ok(found) => found.filter(|deployment| self.has_class(deployment))?,
                Err(unchecked) => return Some(*unchecked),
            },
        };
        Some(self.deployment(&deployment, facts, earlier).await)
    }

    async fn deployment(&self, deployment: &BundleDeployment, facts: &ClusterFacts, earlier: &Earlier) -> Checked {
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
        facts.describe(&mut opened.request.target);
        let new = opened.provision().await;
        let old = with(&mut opened, installed, before).await;
        checked.compared(old, new, opened.redactor(), Sides::Components)
    }

    /// The component that rendered what is installed.
    async fn earlier(&self, installed: &ProvisionerInUse, earlier: &Earlier) -> Result<Provisioner, String> {
        if installed.digest == self.newest.provisioner.digest().as_str() {
            return Ok(self.newest.provisioner.clone());
        }
        let load = Box::pin(async {
            let loaded = classes::load_earlier(installed, self.provisioners, self.cache, &self.options.registry).await;
            loaded.map_err(|error| error.explained())
        });
        earlier.get((installed.digest.clone(), installed.image.clone()), load).await
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use futures::FutureExt as _;

    use super::*;

    fn named(digest: &str, image: &str) -> Named {
        (digest.to_owned(), Some(image.to_owned()))
    }

    #[test]
    fn a_silent_registry_delays_only_what_needs_its_component() {
        let loaded = Loaded::<u32>::new();
        let mut silent = Box::pin(loaded.get(named("one", "silent"), pending()));
        assert_eq!((&mut silent).now_or_never(), None);
        assert_eq!(loaded.get(named("two", "image"), ready(2)).now_or_never(), Some(2));
        assert_eq!(loaded.get(named("one", "image"), ready(1)).now_or_never(), Some(1), "from another artifact");
        assert_eq!(loaded.get(named("one", "silent"), ready(3)).now_or_never(), None, "it is loaded once");
        drop(silent);
        assert_eq!(loaded.get(named("one", "silent"), ready(4)).now_or_never(), Some(4), "after a lane gave up");
    }

    #[test]
    fn a_component_is_loaded_once_and_few_are_kept() {
        let loaded = Loaded::<u32>::new();
        assert_eq!(loaded.get(named("one", "image"), ready(1)).now_or_never(), Some(1));
        assert_eq!(loaded.get(named("one", "image"), pending()).now_or_never(), Some(1));
        for number in 0..20 {
            let digest = number.to_string();
            assert_eq!(loaded.get(named(&digest, "image"), ready(number)).now_or_never(), Some(number));
            assert!(loaded.0.lock().len() <= EARLIER);
        }
    }
}
