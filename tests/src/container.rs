//! Controllers in containers: with [`DIRECTORY`] set, as `cargo xtask test --container` does, [`World`](crate::World) starts its controllers
//! with `runc` from an image, under the security context, the flags, the mounted token and the permissions of `deploy/`.
//!
//! A controller has the permissions of `rbac.yaml` and `metrics.yaml`, and of the optional file that each of its options needs. What it
//! installs is installed on behalf of an account, since these permissions suffice for nothing else: BundleDeployments that name none get the
//! account [`INSTALLER`], which may do everything, from `--default-service-account`. The controller may impersonate every account, as if an
//! administrator had applied `rbac-service-account.yaml` for each. A test of BundleDeployments without an account has
//! [`start_controller_without_account`](crate::World::start_controller_without_account), with `rbac-cluster-admin.yaml`.

mod flags;

use std::{
    collections::BTreeMap,
    env, fs,
    net::IpAddr,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_controller::Options;
use chandler_permissions::DefaultAccount;
use chandler_test_container::{ApiServer, Container, Image, NameServer, Node, Plan, node};
use kube::{Client, Config};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::{Run, content_service, deploy, in_process::InProcess, wait::PATIENCE};

/// The variable that names the directory of an unpacked image.
pub const DIRECTORY: &str = "CHANDLER_E2E_CONTAINER";

/// The ServiceAccount, in the system namespace, of BundleDeployments that name none.
pub const INSTALLER: &str = "installer";

/// That account.
pub(crate) fn installer(run: &Run) -> DefaultAccount {
    DefaultAccount { namespace: Some(run.system_namespace()), name: INSTALLER.to_owned() }
}

/// A name that is in the certificate of the embedded API server.
const NAME: &str = "kubernetes.default.svc";

/// How often a container that ended by itself is started again. A kubelet never stops doing that.
const RESTARTS: u32 = 60;

/// The user agent of a controller that [`World::start_controller_as`](crate::World::start_controller_as) starts with this one.
pub fn agent(in_process: &'static str) -> &'static str {
    let is_container = env::var_os(DIRECTORY).is_some_and(|directory| !directory.is_empty());
    if is_container { concat!("chandler/", env!("CARGO_PKG_VERSION")) } else { in_process }
}

/// What starts the containers of a world.
pub(crate) struct Containers {
    runc: PathBuf,
    image: Image,
    /// `spec.template.spec` of the Deployment.
    pod: Value,
    /// The volume of the caches, which all controllers of the world have in turn.
    cache: TempDir,
}

/// Which permissions a controller gets when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// The ones of `deploy/`, and an account for BundleDeployments that name none.
    Granted,
    /// Like [`Granted`](Self::Granted), with `rbac-cluster-admin.yaml` in place of the account.
    ClusterAdmin,
    /// None: the test has granted some.
    OfTest,
}

impl Containers {
    /// The containers that the environment asks for.
    pub(crate) fn from_environment() -> Option<Self> {
        let directory = env::var_os(DIRECTORY).filter(|directory| !directory.is_empty())?;
        let runc = chandler_test_support::needs::runc().expect("the tests run containers");
        let deployment: Value = serde_saphyr::from_str(&deploy::text("controller.yaml")).expect("YAML");
        let cache = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(cache.path().join("code")).expect("a directory");
        let pod = deployment.pointer("/spec/template/spec").expect("a Deployment").clone();
        Some(Self { runc, image: Image::read(Path::new(&directory)), pod, cache })
    }

    /// The directory of the caches.
    pub(crate) fn cache(&self) -> &Path {
        self.cache.path()
    }

    /// What starts a controller with these options, on the API server of this configuration.
    ///
    /// # Errors
    /// An option cannot be expressed by flags.
    pub(crate) fn launch(
        &self,
        (client, config): (Client, Config),
        run: &Run,
        is_embedded: bool,
        options: Options,
        rights: Rights,
    ) -> Result<Launch, InProcess> {
        let deployed = self.pod.pointer("/containers/0/args").cloned().unwrap_or_default();
        let deployed: Vec<String> = serde_json::from_value(deployed).expect("arguments");
        let mut files = flags::files(&options);
        files.extend((rights == Rights::ClusterAdmin).then_some("rbac-cluster-admin.yaml"));
        let arguments = flags::arguments(deployed, &options)?;
        Ok(Launch {
            runc: self.runc.clone(),
            image: self.image.clone(),
            pod: self.pod.clone(),
            cache: self.cache.path().to_owned(),
            arguments,
            files,
            rights,
            client,
            config,
            run: run.clone(),
            is_embedded,
        })
    }
}

/// A controller to be started.
pub(crate) struct Launch {
    runc: PathBuf,
    image: Image,
    pod: Value,
    cache: PathBuf,
    arguments: Vec<String>,
    /// The files of `deploy/` with its permissions.
    files: Vec<&'static str>,
    rights: Rights,
    client: Client,
    config: Config,
    run: Run,
    is_embedded: bool,
}

/// Compiled code that all worlds share, as [`crate::world::empty_cache`] explains, for the user of containers.
fn code(user: Option<&Value>) -> PathBuf {
    let program = env::current_exe().expect("the path of this program");
    let code = program.parent().expect("its directory").join("code-of-containers");
    fs::create_dir_all(&code).expect("the target directory can be written");
    let user = user.and_then(Value::as_u64).and_then(|user| u32::try_from(user).ok());
    chown(&code, user, user).expect("only root can give a directory away");
    fs::set_permissions(&code, fs::Permissions::from_mode(0o700)).expect("its mode");
    code
}

/// Runs a controller until it is to stop, as a node would: it starts again where it ends by itself.
pub(crate) async fn run(launch: Launch, mut stop: oneshot::Receiver<()>) {
    let system_namespace = launch.run.system_namespace();
    if launch.rights != Rights::OfTest {
        grant(&launch).await;
    }
    let token = content_service::token_with(&launch.client, &system_namespace, "chandler").await;
    let address = node::address();
    let (api_server, _names) = api_server(&launch, address, token).await;
    let user = launch.pod.pointer("/containers/0/securityContext/runAsUser");
    let node = Node::new(&Plan {
        runc: launch.runc.clone(),
        image: &launch.image,
        pod: &launch.pod,
        arguments: launch.arguments.clone(),
        namespace: &system_namespace,
        address,
        api_server: &api_server,
        volumes: [("cache".to_owned(), launch.cache.clone())].into(),
        mounts: BTreeMap::from([("/var/cache/chandler/code".to_owned(), code(user))]),
    });
    for _ in 0..=RESTARTS {
        let mut container = node.run();
        tokio::select! {
            _ = &mut stop => return end(container).await,
            status = container.ended() => {
                let log = node.log();
                assert!(!has_panicked(&log), "{log}");
                eprintln!("the container ended with {status} and starts again, as a kubelet would start it");
            }
        }
        drop(container);
    }
    panic!("the container ended {RESTARTS} times: {}", node.log());
}

async fn end(mut container: Container<'_>) {
    // Only a process that has answered listens for signals.
    container.answers("/livez", PATIENCE).await;
    let log = container.stop(PATIENCE).await;
    if env::var_os("CHANDLER_E2E_LOG").is_some() {
        eprintln!("{log}");
    }
    assert!(!has_panicked(&log), "{log}");
}

/// Whether the controller panicked. Its log also has what provisioners write.
fn has_panicked(log: &str) -> bool {
    log.lines().any(|line| line.starts_with("thread '") && line.contains("panicked at"))
}

/// Applies the files with permissions, and what an administrator does for accounts.
async fn grant(launch: &Launch) {
    let Launch { run, client, .. } = launch;
    for file in &launch.files {
        let mut objects = deploy::objects(run, file);
        // The part for CatalogSources, whose namespace other clusters lack.
        let namespace = |object: &Value| object.pointer("/metadata/namespace").cloned();
        objects.retain(|object| namespace(object).is_none_or(|namespace| namespace != "openshift-marketplace"));
        deploy::apply(client, run, &objects).await;
    }
    let namespace = run.system_namespace();
    let subject = |name: &str| json!([{"kind": "ServiceAccount", "name": name, "namespace": namespace}]);
    let rbac = "rbac.authorization.k8s.io";
    let version = format!("{rbac}/v1");
    let (installs, acts) = (format!("{run}-container-installs"), format!("{run}-container-acts"));
    let rules = json!([{"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get", "impersonate"]}]);
    let binding = |name: &str, role: &str, account: &str| {
        json!({"apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
               "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role}, "subjects": subject(account)})
    };
    let objects = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": INSTALLER, "namespace": namespace}}),
        binding(&installs, "cluster-admin", INSTALLER),
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": acts}, "rules": rules}),
        binding(&acts, &acts, "chandler"),
    ];
    deploy::apply(client, run, &objects).await;
}

/// How the container reaches the API server, and the name server of the container if the API server has a name for it.
async fn api_server(launch: &Launch, address: IpAddr, token: String) -> (ApiServer, Option<NameServer>) {
    let url = &launch.config.cluster_url;
    let port = url.port_u16().unwrap_or(443);
    let authority = launch.config.root_cert.iter().flatten().map(|certificate| pem(certificate)).collect();
    if launch.is_embedded {
        let names = NameServer::start(address, NAME).await.expect("the address of the container is free");
        let host = NAME.to_owned();
        return (ApiServer { host, port, address: None, authority, token }, Some(names));
    }
    let host = url.host().expect("a host").trim_matches(['[', ']']).to_owned();
    let resolved = match host.parse::<IpAddr>() {
        Ok(_) => None,
        Err(_) => tokio::net::lookup_host((host.as_str(), port)).await.expect("it resolves").next().map(|it| it.ip()),
    };
    (ApiServer { host, port, address: resolved, authority, token }, None)
}

/// A certificate as PEM, from DER.
fn pem(certificate: &[u8]) -> String {
    let encoded = STANDARD.encode(certificate);
    let lines = encoded.as_bytes().chunks(64).map(String::from_utf8_lossy).collect::<Vec<_>>().join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}
