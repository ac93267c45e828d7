//! The control plane, the registry and the BundleDeployments.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    time::{Duration, Instant},
};

use chandler_api::{BundleDeployment, ConditionType, find_condition};
use chandler_devcluster::{
    DevCluster, Fault,
    faults::{Exposure, Verb},
};
use chandler_devregistry::Registry;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, PostParams},
    runtime::wait::{await_condition, conditions},
};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::{
    Error,
    bundles::{Kind, Mix},
    controller::Controller,
    one_of_hundred,
};

/// The number of objects that this program creates concurrently.
const CLIENTS: usize = 8;

/// A running control plane and registry.
pub(crate) struct Plane {
    cluster: DevCluster,
    registry: Registry,
    client: Client,
    kubeconfig: NamedTempFile,
}

/// The number of requests by verb; dry runs are counted separately.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Requests(BTreeMap<&'static str, u64>);

const DRY_RUN: &str = "dry run";

impl Requests {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.values().all(|count| *count == 0)
    }

    pub(crate) fn without_watches(&self) -> u64 {
        self.0.iter().filter(|(verb, _)| **verb != Verb::Watch.name()).map(|(_, count)| count).sum()
    }

    pub(crate) fn since(&self, before: &Self) -> Self {
        let count = |verb: &str| before.0.get(verb).copied().unwrap_or_default();
        Self(self.0.iter().map(|(verb, now)| (*verb, now - count(verb))).collect())
    }
}

impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.0.iter().filter(|(_, count)| **count > 0);
        let counts: Vec<String> = counts.map(|(verb, count)| format!("{count} {verb}")).collect();
        f.write_str(if counts.is_empty() { "none".to_owned() } else { counts.join(", ") }.as_str())
    }
}

impl Plane {
    /// Starts one that answers each request of the controller after this time.
    pub(crate) async fn start(latency: Duration) -> Result<Self, Error> {
        let cluster = DevCluster::start(chandler_devcluster::Options::default()).await?;
        let registry = Registry::start(chandler_devregistry::Options::default()).await?;
        let client = cluster.service().exposed(Exposure::Spared).client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in chandler_api::crds() {
            crds.create(&PostParams::default(), &crd).await?;
            await_condition(crds.clone(), &crd.name_any(), conditions::is_crd_established()).await?;
        }
        let kubeconfig = NamedTempFile::new()?;
        std::fs::write(kubeconfig.path(), cluster.kubeconfig())?;
        // A fault counts what it strikes, also without a latency.
        for verb in Verb::ALL {
            cluster.inject(Fault::latency(latency).verb(*verb).dry_run(false));
        }
        cluster.inject(Fault::latency(latency).dry_run(true));
        let plane = Self { cluster, registry, client, kubeconfig };
        plane.namespace("chandler-system").await?;
        Ok(plane)
    }

    pub(crate) fn kubeconfig(&self) -> &str {
        self.kubeconfig.path().to_str().unwrap_or_default()
    }

    pub(crate) fn registry_host(&self) -> String {
        self.registry.host()
    }

    /// The number of requests to the registry. It counts at most ten thousand.
    pub(crate) fn pulls(&self) -> usize {
        self.registry.requests().len()
    }

    /// The requests of the controller to the API server.
    pub(crate) fn requests(&self) -> Requests {
        let counted = self.cluster.faults().into_iter().map(|report| {
            let verb = report.fault.matcher().verbs.first();
            (verb.map_or(DRY_RUN, |verb| verb.name()), report.matched)
        });
        Requests(counted.collect())
    }

    /// A client whose requests are not counted.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) async fn namespace(&self, name: &str) -> Result<(), Error> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let namespace: Namespace = serde_json::from_value(namespace)?;
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(())
    }

    /// Creates a BundleDeployment for each bundle, each with its own namespace.
    pub(crate) async fn install(&self, mix: &Mix, tags: usize) -> Result<(), Error> {
        // All tenants have the same bundle, as they would.
        let mut shared = HashMap::new();
        for (number, kind) in mix.kinds() {
            if *kind == Kind::Tenant && shared.contains_key(kind) {
                continue;
            }
            let directory = tempfile::tempdir()?;
            kind.write(number, directory.path())?;
            let name = kind.image(number);
            let pushed = self.registry.push_bundle_directory(&name, "v1", directory.path(), &BTreeMap::new()).await?;
            let (repository, _) = pushed.reference.rsplit_once(':').ok_or("the image has no tag")?;
            let images = (pushed.reference.clone(), format!("{repository}@{}", pushed.digest));
            if *kind == Kind::Tenant {
                shared.insert(*kind, images);
            } else {
                self.create(number, *kind, tags, &images).await?;
            }
        }
        let tenants = mix.kinds().filter(|(_, kind)| **kind == Kind::Tenant);
        let created = tenants.filter_map(|(number, kind)| {
            let images = shared.get(kind)?;
            Some(self.create(number, *kind, tags, images))
        });
        stream::iter(created.collect::<Vec<_>>()).buffer_unordered(CLIENTS).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    async fn create(&self, number: usize, kind: Kind, tags: usize, images: &(String, String)) -> Result<(), Error> {
        let name = format!("bundle-{number}");
        self.namespace(&name).await?;
        let image = if one_of_hundred(number, tags) { &images.0 } else { &images.1 };
        let deployment: BundleDeployment = serde_json::from_value(json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": name},
            "spec": {
                "installNamespace": name, "provisionerClassName": kind.class(),
                "source": {"type": "image", "image": {"ref": image}},
            },
        }))?;
        Api::all(self.client.clone()).create(&PostParams::default(), &deployment).await?;
        Ok(())
    }

    /// Waits until this number of BundleDeployments is ready.
    pub(crate) async fn all_ready(&self, count: usize, controller: &mut Controller) -> Result<(), Error> {
        let deployments: Api<BundleDeployment> = Api::all(self.client.clone());
        let deadline = Instant::now() + Duration::from_mins(30);
        loop {
            controller.check()?;
            let all = deployments.list(&ListParams::default()).await?;
            let waiting = all.iter().find(|deployment| !is_ready(deployment));
            match waiting {
                None if all.items.len() == count => return Ok(()),
                Some(waiting) if Instant::now() > deadline => {
                    let conditions = waiting.status.as_ref().map(|status| &status.conditions);
                    return Err(format!("{} is not ready: {conditions:?}", waiting.name_any()).into());
                }
                _ => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
    }
}

fn is_ready(deployment: &BundleDeployment) -> bool {
    let conditions = deployment.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    find_condition(conditions, ConditionType::Ready).is_some_and(|ready| ready.status == "True")
}
