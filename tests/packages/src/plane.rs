//! A control plane in this process, and the `chandler` command for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, anyhow};
use chandler::write::control_plane::{ControlPlane, ControlPlaneOptions, RunningController};
use chandler_api::BundleDeployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Discovery, ResourceExt as _,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
    discovery::verbs,
    runtime::wait::{await_condition, conditions},
};
use serde_json::Value;
use tempfile::NamedTempFile;

/// The environment variable with which this binary is the `chandler` command.
pub const IS_COMMAND: &str = "CHANDLER_PACKAGES_IS_COMMAND";
/// How much longer than its timeout a command may run.
const MARGIN: Duration = Duration::from_mins(1);
/// How long the garbage collector may take after an uninstallation.
const COLLECTION: Duration = Duration::from_secs(20);
/// How often objects are counted meanwhile.
const COUNT_INTERVAL: Duration = Duration::from_millis(200);
/// What a control plane creates in every namespace.
const OF_NAMESPACE: [&str; 2] = ["ServiceAccount default", "ConfigMap kube-root-ca.crt"];

/// How the command is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The cache directory.
    pub cache: PathBuf,
    /// The timeout of commands that wait.
    pub timeout: Duration,
}

/// A control plane.
pub struct Plane {
    embedded: ControlPlane,
    controller: RunningController,
    kubeconfig: NamedTempFile,
    settings: Settings,
}

/// What a command printed.
#[derive(Clone, Debug)]
pub struct Output {
    /// The exit code, or `None` if the command did not end by itself.
    pub code: Option<i32>,
    /// Standard output, then standard error.
    pub text: String,
}

impl Output {
    /// Whether the command succeeded.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }
}

impl Plane {
    /// Starts it.
    pub async fn start(settings: Settings) -> anyhow::Result<Self> {
        let started = ControlPlane::start(&settings.cache, &ControlPlaneOptions::default()).await;
        let (embedded, controller) = started.map_err(|error| anyhow!("{error}"))?;
        let mut kubeconfig = NamedTempFile::new()?;
        kubeconfig.write_all(embedded.cluster().kubeconfig().as_bytes())?;
        kubeconfig.flush()?;
        Ok(Self { embedded, controller, kubeconfig, settings })
    }

    /// Stops it.
    pub async fn stop(self) {
        self.controller.stop().await;
        self.embedded.stop().await;
    }

    /// Runs a command that waits until something is done.
    pub async fn run_waiting<S: AsRef<str>>(&self, arguments: &[S]) -> anyhow::Result<Output> {
        let timeout = format!("{}s", self.settings.timeout.as_secs());
        let mut all: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
        if !all.contains(&"--timeout") {
            all.extend(["--timeout", &timeout]);
        }
        self.run(&all).await
    }

    /// Runs a command.
    pub async fn run<S: AsRef<str>>(&self, arguments: &[S]) -> anyhow::Result<Output> {
        let mut command = tokio::process::Command::new(env::current_exe()?);
        command
            .args(arguments.iter().map(AsRef::as_ref))
            .env(IS_COMMAND, "1")
            .env("KUBECONFIG", self.kubeconfig.path())
            .env("CHANDLER_CACHE_DIRECTORY", &self.settings.cache)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let ended = tokio::time::timeout(self.settings.timeout + MARGIN, command.output()).await;
        let Ok(ended) = ended else {
            return Ok(Output { code: None, text: "the command did not end after its timeout".to_owned() });
        };
        let output = ended.context("failed to run the command")?;
        let text = [output.stdout, output.stderr].concat();
        Ok(Output { code: output.status.code(), text: String::from_utf8_lossy(&text).into_owned() })
    }

    /// Pushes a directory to the registry, and returns the image.
    pub async fn push(&self, name: &str, tag: &str, directory: &Path) -> anyhow::Result<String> {
        let image = self.embedded.registry().push_bundle_directory(name, tag, directory, &BTreeMap::default()).await?;
        Ok(image.reference)
    }

    /// Reads a BundleDeployment.
    pub async fn deployment(&self, name: &str) -> anyhow::Result<Option<BundleDeployment>> {
        Ok(self.deployments().get_opt(name).await?)
    }

    /// Applies a merge patch to a BundleDeployment.
    pub async fn patch(&self, name: &str, patch: &Value) -> anyhow::Result<()> {
        self.deployments().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        Ok(())
    }

    fn deployments(&self) -> Api<BundleDeployment> {
        Api::all(self.embedded.client().clone())
    }

    /// Creates a namespace unless it exists.
    pub async fn ensure_namespace(&self, name: &str) -> anyhow::Result<()> {
        let created = chandler::write::control_plane::ensure_namespace(self.embedded.client(), name).await;
        created.map_err(|error| anyhow!("{error}"))
    }

    /// Deletes a namespace, and waits until it is gone.
    pub async fn delete_namespace(&self, name: &str) -> anyhow::Result<()> {
        let namespaces: Api<Namespace> = Api::all(self.embedded.client().clone());
        let Some(namespace) = namespaces.get_opt(name).await? else { return Ok(()) };
        namespaces.delete(name, &DeleteParams::default()).await?;
        let uid = namespace.uid().unwrap_or_default();
        let gone = await_condition(namespaces, name, conditions::is_deleted(&uid));
        let gone = tokio::time::timeout(self.settings.timeout, gone).await;
        gone.with_context(|| format!("namespace {name} is still there"))??;
        Ok(())
    }

    /// All objects but Events, as `Kind.group namespace/name`.
    pub async fn objects(&self) -> anyhow::Result<BTreeSet<String>> {
        let client = self.embedded.client();
        let discovery = Discovery::new(client.clone()).run_aggregated().await?;
        let mut found = BTreeSet::new();
        for (resource, capabilities) in discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources) {
            if !capabilities.supports_operation(verbs::LIST) || resource.kind == "Event" {
                continue;
            }
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
            let group = if resource.group.is_empty() { String::new() } else { format!(".{}", resource.group) };
            // The kind may be deleted meanwhile.
            let Ok(list) = api.list_metadata(&ListParams::default()).await else { continue };
            for object in list {
                let namespace = object.namespace().map(|namespace| namespace + "/").unwrap_or_default();
                found.insert(format!("{}{group} {namespace}{}", resource.kind, object.name_any()));
            }
        }
        Ok(found)
    }

    /// The objects that were not there before, without these namespaces and what every namespace has. The garbage collector has some
    /// time to delete them.
    pub async fn leftovers(&self, before: &BTreeSet<String>, namespaces: &[String]) -> anyhow::Result<Vec<String>> {
        let of_namespace = |object: &String| {
            namespaces.iter().any(|namespace| {
                *object == format!("Namespace {namespace}")
                    || OF_NAMESPACE.iter().any(|own| Some(object.as_str()) == within(own, namespace).as_deref())
            })
        };
        let mut interval = tokio::time::interval(COUNT_INTERVAL);
        let until = tokio::time::Instant::now() + COLLECTION;
        loop {
            interval.tick().await;
            let now = self.objects().await?;
            let left: Vec<String> = now.difference(before).filter(|object| !of_namespace(object)).cloned().collect();
            if left.is_empty() || tokio::time::Instant::now() > until {
                return Ok(left);
            }
        }
    }
}

/// `Kind name` with the namespace in between.
fn within(object: &str, namespace: &str) -> Option<String> {
    let (kind, name) = object.split_once(' ')?;
    Some(format!("{kind} {namespace}/{name}"))
}
