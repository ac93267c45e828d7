//! A control plane in this process: API server, registry and controller (`chandler dev`).

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use chandler_controller::{
    ContentOptions, ControllerError, Election, Options,
    options::{INSTALLATIONS_NAMESPACE, LEASE},
};
use chandler_devcluster::{
    DevCluster, Fault, StartError,
    faults::Exposure,
    store::{DataDirectory, OpenError},
};
use chandler_devregistry::Registry;
use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
    runtime::wait::{await_condition, conditions},
};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    CommandError,
    read::{dev_controller, file, provisioner},
    view::text::{count, one_line},
};

/// The field manager of objects that `chandler dev` applies.
pub const FIELD_MANAGER: &str = "chandler-dev";
/// The field manager of `kubectl apply --server-side`, which updates the CRDs of any cluster: it must not conflict with this command.
const CRD_MANAGER: &str = "kubectl";
/// The file in the data directory that stores the port of the registry.
const REGISTRY_PORT: &str = "registry.port";
/// The directory in the data directory that stores the content of the registry.
const REGISTRY_CONTENT: &str = "registry";
/// The file in the data directory with the ID of the process that uses it.
const PROCESS: &str = "process";
/// The file in the data directory with the objects; it is the first one that is written.
const OBJECTS: &str = "objects.redb";
/// The largest token file, in bytes.
const TOKEN_LIMIT: u64 = 4096;
/// The timeout for the CRDs to become established.
pub(super) const ESTABLISHED_TIMEOUT: Duration = Duration::from_secs(30);
/// The timeout for the controller to finish its running reconciles.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Where the API server listens and where it stores its state.
#[derive(Clone, Debug)]
pub struct ControlPlaneOptions {
    /// The directory with the state; `None` if it does not survive the process.
    pub data: Option<PathBuf>,
    /// The address to listen on. Port 0 is any free port, or the port of the previous run on the same data.
    pub bind: SocketAddr,
    /// The file with the administrator's token; `None` for a random one.
    pub token_file: Option<PathBuf>,
}

impl Default for ControlPlaneOptions {
    fn default() -> Self {
        Self { data: None, bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), token_file: None }
    }
}

/// A running API server and registry. Dropping it stops both.
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
    /// Starts the API server, the registry and the controller, after the CRDs are established.
    pub async fn start(
        cache: &Path,
        control_plane: &ControlPlaneOptions,
    ) -> Result<(Self, RunningController), CommandError> {
        if let Some(data) = &control_plane.data {
            check_data(data)?;
        }
        let cluster = DevCluster::start(options(control_plane)?)
            .await
            .map_err(|error| not_started(&error, control_plane.data.as_deref()))?;
        // The API server holds the lock of the directory.
        let data =
            control_plane.data.as_deref().map(DataDirectory::open).transpose().map_err(|error| not_opened(&error))?;
        let process = std::process::id().to_string();
        if let Some(data) = &data {
            data.keep_secret(PROCESS, &process).map_err(|error| not_opened(&error))?;
        }
        let registry = start_registry(data.as_ref())
            .await
            .map_err(|error| CommandError::failed("failed to start the registry").because(&error))?;
        // Faults do not apply to requests of this command.
        let client = cluster.service().exposed(Exposure::Spared).client();
        let options = Options {
            cache_directory: cache.to_owned(),
            compiler: provisioner::compiler()?,
            plain_http_registries: vec![registry.host()],
            content: Some(ContentOptions::at((Ipv4Addr::LOCALHOST, 0).into())),
            // Components come from files of the user, who has no signature for them.
            allow_unsigned: true,
            ..Options::default()
        };
        install_crds(&client)
            .await
            .map_err(|error| CommandError::failed("failed to install the CRDs").because(error.as_ref()))?;
        ensure_namespace(&client, &options.system_namespace).await?;
        let leases: Api<Lease> = Api::namespaced(client.clone(), &options.system_namespace);
        forget_previous(&leases)
            .await
            .map_err(|error| CommandError::failed("failed to remove the Lease of the previous run").because(&error))?;
        let announcements: Api<ConfigMap> = Api::namespaced(client.clone(), &options.system_namespace);
        let announcement = options.content.as_ref().map(|content| content.service.clone()).unwrap_or_default();
        forget_announcement(&announcements, &announcement).await.map_err(|error| {
            CommandError::failed("failed to remove the address of the previous content service").because(&error)
        })?;
        let service = cluster.service().exposed(Exposure::Spared);
        let connect = move || Ok(service.client());
        let election = Election::new(connect, &options.system_namespace, LEASE, dev_controller::identity())
            .among_installations(INSTALLATIONS_NAMESPACE, LEASE, &options.system_namespace);
        let options = Options { leader_election: Some(election), ..options };
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            // A dropped sender stops the controller, too.
            let _ = stopped.await;
        };
        let task = tokio::spawn(chandler_controller::run(cluster.client(), options, shutdown));
        elected(leases).await?;
        announced(announcements, &announcement).await;
        Ok((Self { cluster, registry, client, data }, RunningController { task, stop }))
    }

    /// A client with all permissions.
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

    /// The directory that stores the state.
    pub fn data(&self) -> Option<&DataDirectory> {
        self.data.as_ref()
    }

    /// The API server.
    pub fn cluster(&self) -> &DevCluster {
        &self.cluster
    }

    /// Injects these faults from now on.
    pub fn inject(&self, faults: &[Fault]) {
        for fault in faults {
            self.cluster.inject(fault.clone());
        }
    }

    /// One line for each fault: how often it was injected.
    pub fn fault_report(&self) -> Vec<String> {
        let line = |(fault, injected): (&Fault, u64)| {
            let injected = usize::try_from(injected).unwrap_or(usize::MAX);
            format!("{fault}: injected {}", count(injected, "time"))
        };
        self.cluster.faults().iter().map(|report| line((&report.fault, report.struck))).collect()
    }
}

impl RunningController {
    /// Waits until the controller ends. It ends by itself only if it fails.
    pub async fn ended(&mut self) -> CommandError {
        match (&mut self.task).await {
            Ok(Ok(())) => CommandError::failed("the controller stopped"),
            Ok(Err(error)) => CommandError::failed("the controller failed").because(&error),
            Err(error) => CommandError::failed("the controller crashed").because(&error),
        }
    }

    /// Stops the controller after its running reconciles, or after the grace period.
    pub async fn stop(mut self) {
        drop(self.stop);
        // The result is ignored: the cluster that the controller works on stops next.
        if !self.task.is_finished() && tokio::time::timeout(GRACE_PERIOD, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

/// The options of the API server.
fn options(control_plane: &ControlPlaneOptions) -> Result<chandler_devcluster::Options, CommandError> {
    if !control_plane.bind.ip().is_loopback() && control_plane.token_file.is_none() {
        return Err(CommandError::usage(format!("{} is not a loopback address", control_plane.bind.ip()))
            .hint("other machines can connect to it: set the token that they need with --token-file"));
    }
    Ok(chandler_devcluster::Options {
        bind: control_plane.bind,
        token: control_plane.token_file.as_deref().map(token).transpose()?,
        data: control_plane.data.clone(),
        ..chandler_devcluster::Options::default()
    })
}

fn token(path: &Path) -> Result<String, CommandError> {
    let bytes = file::read_token(path, TOKEN_LIMIT)?;
    let token = std::str::from_utf8(&bytes).unwrap_or_default().trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CommandError::usage(format!("{} does not hold a valid token", path.display()))
            .hint("a token is one word of visible ASCII characters, for example from `openssl rand -hex 32`"));
    }
    Ok(token.to_owned())
}

/// The error for an API server that did not start: wrong usage if other arguments would help.
fn not_started(error: &StartError, data: Option<&Path>) -> CommandError {
    match (error, data) {
        (StartError::NotLoopback(_) | StartError::Token, _) => CommandError::usage(error.to_string()),
        (StartError::Data(error @ OpenError::InUse { .. }), Some(data)) => in_use(error, data),
        (StartError::Data(error), _) => not_opened(error),
        (error, _) => CommandError::failed("failed to start the API server").because(error),
    }
}

/// The error for a data directory that another process uses, with that process.
fn in_use(error: &OpenError, data: &Path) -> CommandError {
    let process = DataDirectory::open(data).ok().and_then(|directory| directory.secret(PROCESS).ok()?);
    let failed = not_opened(error);
    match process.filter(|process| process.bytes().all(|byte| byte.is_ascii_digit())) {
        Some(process) => failed.hint(format!(
            "process {process} runs `chandler dev` on it, with a controller: `kill {process}` stops it, `export KUBECONFIG={}/kubeconfig` uses it",
            data.display()
        )),
        None => failed,
    }
}

/// Refuses a directory with files of something else: keys and a kubeconfig would be written among them.
fn check_data(data: &Path) -> Result<(), CommandError> {
    // Whatever cannot be listed is reported by the API server, which opens it.
    let Ok(entries) = fs::read_dir(data) else { return Ok(()) };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    if names.iter().any(|name| name == OBJECTS) {
        return Ok(());
    }
    // What a process left that was killed while it made the file, and what the root of a volume has.
    let is_next = |name: &str| name.starts_with(OBJECTS) && Path::new(name).extension().is_some_and(|it| it == "next");
    let is_left = |name: &str| is_next(name) || name == "lost+found";
    names.retain(|name| !is_left(name));
    let Some(other) = names.iter().min() else { return Ok(()) };
    Err(CommandError::usage(format!(
        "{} is not a data directory of `chandler dev`, and not empty: it has {}",
        one_line(&data.display().to_string()),
        one_line(other)
    ))
    .hint("--data stores keys and objects: name a directory that does not exist yet, or an empty one"))
}

/// The error for a data directory that cannot be opened.
fn not_opened(error: &OpenError) -> CommandError {
    CommandError::failed("failed to open the data directory").because(error)
}

/// Removes the Lease that a killed `chandler dev` left behind: this process has the lock of its data directory.
async fn forget_previous(leases: &Api<Lease>) -> kube::Result<()> {
    if leases.get_opt(LEASE).await?.as_ref().is_some_and(dev_controller::holds) {
        leases.delete(LEASE, &DeleteParams::default()).await?;
    }
    Ok(())
}

/// Waits until the controller of this process is the leader, so that any other one finds it.
async fn elected(leases: Api<Lease>) -> Result<(), CommandError> {
    let elected =
        await_condition(leases.clone(), LEASE, |lease: Option<&Lease>| lease.is_some_and(dev_controller::holds));
    if let Ok(Ok(_)) = tokio::time::timeout(ESTABLISHED_TIMEOUT, elected).await {
        return Ok(());
    }
    let lease = leases.get_opt(LEASE).await.ok().flatten();
    let holder = lease.as_ref().and_then(dev_controller::holder).unwrap_or("no process");
    Err(CommandError::failed("the controller did not start: it waits for the Lease of another controller")
        .hint(format!("{holder} holds the Lease {LEASE} on this cluster: stop it")))
}

/// Removes the address of the content service of a previous run on the same data directory.
async fn forget_announcement(announcements: &Api<ConfigMap>, name: &str) -> kube::Result<()> {
    match announcements.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        deleted => deleted.map(drop),
    }
}

/// Waits until the controller has announced its content service: files can be uploaded as soon as this command says that it runs. Without
/// it everything else works.
async fn announced(announcements: Api<ConfigMap>, name: &str) {
    let announced = await_condition(announcements, name, |announcement: Option<&ConfigMap>| announcement.is_some());
    let _ = tokio::time::timeout(ESTABLISHED_TIMEOUT, announced).await;
}

/// Starts the registry on the port of the previous run, where stored BundleDeployments expect it, if that port is free, with the images
/// of the previous run.
async fn start_registry(data: Option<&DataDirectory>) -> Result<Registry, chandler_devregistry::StartError> {
    let previous = data.and_then(|data| data.secret(REGISTRY_PORT).ok()?).and_then(|port| port.trim().parse().ok());
    let directory = data.map(|data| data.path().join(REGISTRY_CONTENT));
    let listen = |port| {
        let directory = directory.clone();
        Registry::start(chandler_devregistry::Options { port, directory, ..Default::default() })
    };
    let registry = match previous {
        Some(port) => match listen(port).await {
            Ok(registry) => registry,
            Err(error @ chandler_devregistry::StartError::Directory { .. }) => return Err(error),
            Err(error) => {
                tracing::warn!(%error, "the registry cannot use the port of the previous run");
                listen(0).await?
            }
        },
        None => listen(0).await?,
    };
    if let (Some(data), Some((_, port))) = (data, registry.host().rsplit_once(':'))
        && let Err(error) = data.keep_secret(REGISTRY_PORT, port)
    {
        tracing::warn!(%error, "failed to store the port of the registry");
    }
    Ok(registry)
}

/// Creates a namespace unless it exists.
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
        crds.patch(&name, &PatchParams::apply(CRD_MANAGER).force(), &Patch::Apply(&crd)).await?;
        let established = await_condition(crds.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(ESTABLISHED_TIMEOUT, established).await??;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_not_written_among_other_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let write = |name: &str| fs::write(path.join(name), "").unwrap();
        assert!(check_data(&path.join("new")).is_ok() && check_data(path).is_ok());
        write("objects.redb.17.next");
        fs::create_dir(path.join("lost+found")).unwrap();
        assert!(check_data(path).is_ok(), "an earlier start was killed");
        write("notes.txt");
        write("a\u{7}.yaml");
        let refused = check_data(path).unwrap_err();
        assert_eq!(refused.kind(), crate::view::error::FailureKind::Usage);
        let text = refused.to_string().replace(path.to_str().unwrap(), "DIR");
        insta::assert_snapshot!(text, @r"
        error: DIR is not a data directory of `chandler dev`, and not empty: it has a\u{0007}.yaml
          hint: --data stores keys and objects: name a directory that does not exist yet, or an empty one
        ");
        write("objects.redb");
        assert!(check_data(path).is_ok(), "it holds state, whatever else is in it");
    }

    #[test]
    fn an_address_that_other_machines_can_reach_requires_a_token() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = ControlPlaneOptions { bind: ([0, 0, 0, 0], 0).into(), ..ControlPlaneOptions::default() };
        assert!(options(&open).is_err());
        let guarded = ControlPlaneOptions { token_file: Some(file.path().to_owned()), ..open };
        for wrong in ["", " \n", "two words", "\u{e9}"] {
            fs::write(file.path(), wrong).unwrap();
            assert!(options(&guarded).is_err(), "{wrong:?}");
        }
        fs::write(file.path(), "0123abc\n").unwrap();
        assert_eq!(options(&guarded).unwrap().token.as_deref(), Some("0123abc"));
        fs::set_permissions(file.path(), std::os::unix::fs::PermissionsExt::from_mode(0o620)).unwrap();
        let refused = options(&guarded).unwrap_err().to_string();
        assert!(refused.contains("mode 0620") && refused.contains("`chmod 600 "), "{refused}");
    }
}
