//! An API server with a BundleDeployment, and releases for it.

#![expect(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "helpers of tests fail by panicking")]
#![expect(clippy::needless_pass_by_value, reason = "values are made where they are handed over")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use chandler_api::{BundleDeployment, BundleDeploymentSpec, BundleSource, ImageSource};
use chandler_core::{Object, ObjectKey, Probe, ProbeSelector, Release};
use chandler_devcluster::{DevCluster, Options as DevOptions, workloads::Rules};
use chandler_rollout::{
    Changes, Dependencies, InMemory, Options, Owner, Progress, Rollout, RolloutError, RolloutRequest, Teardown,
    Unhealthy, assess,
};
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    client::ClientBuilder,
    config::{KubeConfigOptions, Kubeconfig},
    core::GroupVersionKind,
    runtime::{conditions, wait::await_condition},
};
use serde_json::{Value, json};

/// The timeout for everything that a test waits for.
const PATIENCE: Duration = Duration::from_mins(4);

/// A cluster with the namespace `install` and the BundleDeployment `demo`.
pub(crate) struct Stage {
    pub(crate) cluster: DevCluster,
    /// The client of the administrator.
    pub(crate) client: Client,
    pub(crate) rollout: Rollout,
    pub(crate) owner: Owner,
    /// The simulated workloads.
    pub(crate) rules: Rules,
    /// The rollout's requests that would change an object, as `METHOD path`.
    requests: Arc<Mutex<Vec<String>>>,
    /// The rollout's requests that only read, as path and query, and dry runs.
    reads: Arc<Mutex<Vec<String>>>,
}

impl Stage {
    pub(crate) async fn set() -> Self {
        let rules = Rules::default();
        let options = DevOptions { rules: rules.clone(), ..DevOptions::default() };
        let cluster = DevCluster::start(options).await.unwrap();
        let client = cluster.client();
        let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
        for crd in chandler_api::crds() {
            crds.create(&PostParams::default(), &crd).await.unwrap();
            let name = crd.metadata.name.as_deref().unwrap();
            within(await_condition(crds.clone(), name, conditions::is_crd_established())).await.unwrap();
        }
        make_namespace(&client, "install").await;
        let owner = make_owner(&client, "demo").await;
        let requests = Arc::new(Mutex::new(Vec::new()));
        let reads = Arc::new(Mutex::new(Vec::new()));
        let recording = recording_client(&cluster, Arc::clone(&requests), Arc::clone(&reads)).await;
        Self { rollout: Rollout::new(recording, Options::default()), cluster, client, owner, rules, requests, reads }
    }

    /// The rollout of a restarted process, with an empty memory.
    pub(crate) async fn restart(&mut self) {
        let recording = recording_client(&self.cluster, Arc::clone(&self.requests), Arc::clone(&self.reads)).await;
        self.rollout = Rollout::new(recording, Options::default());
    }

    /// A client whose requests are recorded as the rollout's.
    pub(crate) async fn rollout_client(&self) -> Client {
        recording_client(&self.cluster, Arc::clone(&self.requests), Arc::clone(&self.reads)).await
    }

    /// The write requests since the last call.
    pub(crate) fn writes(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }

    /// The read requests since the last call.
    pub(crate) fn reads(&self) -> Vec<String> {
        std::mem::take(&mut *self.reads.lock().unwrap())
    }

    pub(crate) async fn advance(&self, release: &Release) -> Result<Progress, RolloutError> {
        self.rollout.advance(&RolloutRequest::new(&self.owner, release)).await
    }

    /// Advances until the release is complete, each time after the awaited change; returns all changes.
    pub(crate) async fn complete(&self, release: &Release) -> Changes {
        let mut all = Changes::default();
        loop {
            match self.advance(release).await.unwrap() {
                Progress::Complete { changes, .. } => {
                    merge(&mut all, changes);
                    return all;
                }
                Progress::Waiting { waiting, changes, .. } => {
                    merge(&mut all, changes);
                    self.settle(&waiting).await;
                }
            }
        }
    }

    /// Advances until a call fails.
    pub(crate) async fn fail(&self, release: &Release) -> RolloutError {
        loop {
            match self.advance(release).await {
                Err(error) => return error,
                Ok(Progress::Waiting { waiting, .. }) => self.settle(&waiting).await,
                Ok(Progress::Complete { changes, .. }) => panic!("nothing failed: {changes}"),
            }
        }
    }

    /// Tears down until every object is gone; returns the deleted objects in order.
    pub(crate) async fn tear_down(&self) -> Vec<ObjectKey> {
        let mut all = Vec::new();
        loop {
            match self.rollout.teardown(&self.owner).await.unwrap() {
                Teardown::Complete { deleted, .. } => {
                    all.extend(deleted);
                    return all;
                }
                Teardown::Held { in_use } => panic!("{}", chandler_rollout::deletion_plan::held(&in_use)),
                Teardown::Waiting { waiting, deleted, .. } => {
                    all.extend(deleted);
                    self.settle(&waiting).await;
                }
            }
        }
    }

    /// Waits until these objects are healthy, or gone when they are being deleted.
    async fn settle(&self, waiting: &[Unhealthy]) {
        for unhealthy in waiting {
            let (api, name) = (self.api(&unhealthy.object), &unhealthy.object.name);
            let settled = |object: Option<&DynamicObject>| {
                object.is_none_or(|object| {
                    assess(&serde_json::to_value(object).unwrap(), &Dependencies::default()).is_healthy()
                })
            };
            within(await_condition(api, name, settled)).await.unwrap();
        }
    }

    /// Objects of this kind in the namespace of the key.
    pub(crate) fn api(&self, key: &ObjectKey) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(&key.group, &key.version, &key.kind);
        let resource = match key.kind.as_str() {
            "Ox" => ApiResource::from_gvk_with_plural(&kind, "oxen"),
            _ => ApiResource::from_gvk(&kind),
        };
        match &key.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// An object as the API server stores it.
    pub(crate) async fn live(&self, key: &ObjectKey) -> Option<Value> {
        let found = self.api(key).get_opt(&key.name).await.unwrap()?;
        Some(serde_json::to_value(found).unwrap())
    }

    /// Changes an object as another client.
    pub(crate) async fn meddle(&self, key: &ObjectKey, patch: Value) {
        let other_client = PatchParams { field_manager: Some("kubectl".into()), ..PatchParams::default() };
        self.api(key).patch(&key.name, &other_client, &Patch::Merge(patch)).await.unwrap();
    }

    /// Makes the ConfigMap `gate` meet [`gate_probe`].
    pub(crate) async fn open_gate(&self) {
        self.meddle(&config_map_key("gate"), json!({"metadata": {"annotations": {"open": "yes"}}})).await;
    }

    /// Creates an object as another client.
    pub(crate) async fn make(&self, key: &ObjectKey, object: Value) {
        let other_client = PostParams { field_manager: Some("kubectl".into()), ..PostParams::default() };
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        self.api(key).create(&other_client, &object).await.unwrap();
    }

    /// Deletes an object and waits until it is gone.
    pub(crate) async fn remove(&self, key: &ObjectKey) {
        self.api(key).delete(&key.name, &DeleteParams::default()).await.unwrap();
        let gone = |object: Option<&DynamicObject>| object.is_none();
        within(await_condition(self.api(key), &key.name, gone)).await.unwrap();
    }

    /// The BundleDeployment.
    pub(crate) async fn parent(&self) -> BundleDeployment {
        Api::all(self.client.clone()).get(&self.owner.name).await.unwrap()
    }
}

/// The future's result, unless it takes too long.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("in time")
}

/// Polls until the condition holds, for state that cannot be watched.
pub(crate) async fn eventually<F: Future<Output = bool>>(mut condition: impl FnMut() -> F) {
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    within(async {
        loop {
            tick.tick().await;
            if condition().await {
                return;
            }
        }
    })
    .await;
}

fn merge(all: &mut Changes, changes: Changes) {
    all.created.extend(changes.created);
    all.updated.extend(changes.updated);
    all.recovered.extend(changes.recovered);
    all.pruned.extend(changes.pruned);
    all.unchanged = changes.unchanged;
}

pub(crate) async fn make_namespace(client: &Client, name: &str) {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(name.to_owned());
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
}

pub(crate) async fn make_owner(client: &Client, name: &str) -> Owner {
    let spec = BundleDeploymentSpec {
        install_namespace: "install".into(),
        provisioner_class_name: "core-rukpak-io-plain".into(),
        source: BundleSource::image(ImageSource { reference: "example.com/demo:v1".into(), ..ImageSource::default() }),
        ..BundleDeploymentSpec::default()
    };
    let deployment = BundleDeployment::new(name, spec);
    let made: BundleDeployment = Api::all(client.clone()).create(&PostParams::default(), &deployment).await.unwrap();
    let owner = Owner::of(&made, "install").unwrap();
    let ledger = Arc::new(InMemory::new(&owner.uid));
    owner.recorded_in(ledger)
}

async fn recording_client(
    cluster: &DevCluster,
    requests: Arc<Mutex<Vec<String>>>,
    reads: Arc<Mutex<Vec<String>>>,
) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let record = tower::util::MapRequestLayer::new(move |request: http::Request<kube::client::Body>| {
        let dry = request.uri().query().is_some_and(|query| query.contains("dryRun"));
        if request.method() != http::Method::GET && !dry {
            requests.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
        } else {
            reads.lock().unwrap().push(request.uri().to_string());
        }
        request
    });
    ClientBuilder::try_from(config).unwrap().with_layer(&record).build()
}

/// A release of these objects, each with its stage.
pub(crate) fn release<'a>(objects: impl IntoIterator<Item = &'a (u32, Value)>) -> Release {
    release_with_probes(objects, vec![])
}

pub(crate) fn release_with_probes<'a>(
    objects: impl IntoIterator<Item = &'a (u32, Value)>,
    probes: Vec<Probe>,
) -> Release {
    let objects = objects
        .into_iter()
        .map(|(stage, value)| Object::parse(value.to_string().as_bytes(), *stage, None).unwrap())
        .collect();
    Release::new(objects, probes, vec![])
}

pub(crate) fn key(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ObjectKey {
        group: group.into(),
        kind: kind.into(),
        namespace: namespace.map(str::to_owned),
        name: name.into(),
        version: version.into(),
    }
}

pub(crate) fn config_map_key(name: &str) -> ObjectKey {
    key("v1", "ConfigMap", Some("install"), name)
}

pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

pub(crate) fn deployment(name: &str, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "creationTimestamp": null},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}, "creationTimestamp": null},
            "spec": {"containers": [{"name": "main", "image": image,
                "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}},
                "ports": [{"containerPort": 80}]}]}}}})
}

/// The CRD of the kind Ox, with these fields of its spec.
pub(crate) fn oxen(fields: Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "oxen.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Ox", "listKind": "OxList", "plural": "oxen", "singular": "ox"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": fields},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}})
}

pub(crate) fn ox(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Ox", "metadata": {"name": name}, "spec": spec})
}

/// Met after [`Stage::open_gate`] was called.
pub(crate) fn gate_probe() -> Probe {
    Probe {
        selector: ProbeSelector { kind: "ConfigMap".into(), name: Some("gate".into()), ..ProbeSelector::default() },
        rule: "'open' in self.metadata.annotations".into(),
        message: Some("the gate is closed".into()),
        message_expression: None,
    }
}
