//! A control plane in this process: API server, registry and controller.

use std::{path::Path, time::Duration};

use chandler_controller::{ControllerError, Options};
use chandler_devcluster::{DevCluster, faults::Exposure, store::DataDirectory};
use chandler_devregistry::Registry;
use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
    runtime::wait::{await_condition, conditions},
};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    CommandError,
    cluster_arguments::{ClusterArguments, not_started, unusable},
    provision,
};

/// Who writes what the command itself puts into the cluster.
pub const FIELD_MANAGER: &str = "chandler-dev";
/// The name under which the registry's port is kept.
const REGISTRY_PORT: &str = "registry.port";
/// How long the CRDs may take to be served.
const ESTABLISHED: Duration = Duration::from_secs(30);
/// How long the controller may take to finish what it has begun.
const GRACE: Duration = Duration::from_secs(10);

/// A running API server and registry. They are gone when it is dropped.
pub struct ControlPlane {
    cluster: DevCluster,
    registry: Registry,
    client: Client,
    data: Option<DataDirectory>,
}

/// The controller of a control plane.
pub struct RunningController {
    task: JoinHandle<Result<(), ControllerError>>,
    stop: oneshot::Sender<()>,
}

impl ControlPlane {
    /// Starts everything and waits until the CRDs are served.
    pub async fn start(cache: &Path, arguments: &ClusterArguments) -> Result<(Self, RunningController), CommandError> {
        let cluster = DevCluster::start(arguments.options()?).await.map_err(|error| not_started(&error))?;
        // Nobody else can have it now.
        let data = arguments.data.as_deref().map(DataDirectory::open).transpose().map_err(|error| unusable(&error))?;
        let registry = start_registry(data.as_ref())
            .await
            .map_err(|error| CommandError::failed("failed to start the registry").because(&error))?;
        // What the command itself asks is not what is to be tried.
        let client = cluster.service().exposed(Exposure::Spared).client();
        let options = Options {
            cache_directory: cache.to_owned(),
            compiler: provision::compiler()?,
            plain_http_registries: vec![registry.host()],
            ..Options::default()
        };
        install_crds(&client)
            .await
            .map_err(|error| CommandError::failed("failed to install the CRDs").because(error.as_ref()))?;
        ensure_namespace(&client, &options.system_namespace).await?;
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            // That the sender is dropped means the same.
            let _ = stopped.await;
        };
        let task = tokio::spawn(chandler_controller::run(cluster.client(), options, shutdown));
        Ok((Self { cluster, registry, client, data }, RunningController { task, stop }))
    }

    /// A client with all rights.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Stops the API server and the registry.
    pub async fn stop(self) {
        drop(self.registry);
        self.cluster.stop().await;
    }

    /// Where the state is kept.
    pub fn data(&self) -> Option<&DataDirectory> {
        self.data.as_ref()
    }

    /// The API server.
    pub fn cluster(&self) -> &DevCluster {
        &self.cluster
    }
}

impl RunningController {
    /// Waits until it ends, which it does by itself only when it fails.
    pub async fn ended(&mut self) -> CommandError {
        match (&mut self.task).await {
            Ok(Ok(())) => CommandError::failed("the controller stopped"),
            Ok(Err(error)) => CommandError::failed("the controller failed").because(&error),
            Err(error) => CommandError::failed("the controller crashed").because(&error),
        }
    }

    /// Lets it finish what it has begun, and ends it.
    pub async fn stop(mut self) {
        drop(self.stop);
        // It was told to end; how it does is no longer of interest, and what it works on is gone after it anyway.
        if !self.task.is_finished() && tokio::time::timeout(GRACE, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

/// Starts the registry where kept BundleDeployments look for it, if that port is free. What it holds is not kept: content
/// that was unpacked is found in the cache.
async fn start_registry(data: Option<&DataDirectory>) -> Result<Registry, chandler_devregistry::StartError> {
    let kept = data.and_then(|data| data.secret(REGISTRY_PORT).ok()?).and_then(|port| port.trim().parse().ok());
    let listen = |port| Registry::start(chandler_devregistry::Options { port, ..Default::default() });
    let registry = match kept {
        Some(port) => match listen(port).await {
            Ok(registry) => registry,
            Err(error) => {
                tracing::warn!(%error, "the registry gets another port than the last time");
                listen(0).await?
            }
        },
        None => listen(0).await?,
    };
    if let (Some(data), Some((_, port))) = (data, registry.host().rsplit_once(':'))
        && let Err(error) = data.keep_secret(REGISTRY_PORT, port)
    {
        tracing::warn!(%error, "the port of the registry is not kept");
    }
    Ok(registry)
}

/// Creates a namespace where it does not exist.
pub async fn ensure_namespace(client: &Client, name: &str) -> Result<(), CommandError> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace {
        metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..kube::api::ObjectMeta::default() },
        ..Namespace::default()
    };
    match namespaces.create(&kube::api::PostParams::default(), &namespace).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(CommandError::failed(format!("failed to create namespace {name}")).because(&error)),
    }
}

async fn install_crds(client: &Client) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in chandler_api::crds() {
        let name = crd.name_any();
        crds.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&crd)).await?;
        let established = await_condition(crds.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(ESTABLISHED, established).await??;
    }
    Ok(())
}
