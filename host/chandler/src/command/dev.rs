//! `chandler dev`.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use chandler_api::{BundleDeployment, Reason};
use chandler_core::{Request, Target};
use chandler_engine::Limits;
use kube::Api;
use tempfile::NamedTempFile;

use crate::{
    CommandError,
    arguments::{cluster::ClusterArguments, faults::FaultArguments, naming, registry::RegistryArguments, values},
    read::{
        below, cache, cluster,
        configuration::Configuration,
        provisioner::{self, ChosenProvisioner},
        source::{self, Bundle, Origin},
    },
    signals::StopSignals,
    view::{
        diagnostics::Sources,
        output,
        progress::{Progress, seconds},
        terminal::Terminal,
        text::count,
        tree,
    },
    write::{
        control_plane::{ControlPlane, RunningController, ensure_namespace},
        installation::{Installation, InstallationResult},
    },
};

/// Try a bundle on a control plane in this process
///
/// Starts a Kubernetes API server, a registry on a loopback address and the controller, all in this process. State is kept in memory
/// unless --data names a directory. With --bundle, it packages the directory as an image, installs the image with a BundleDeployment and
/// follows the rollout until it is healthy or has failed. Workloads are simulated: no container runs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress, the object tree and the result on standard error.
  With --keep, one line `export KUBECONFIG=...` on standard output. The kubeconfig is removed at
  the end unless --data is set.

Exit codes: 0 healthy, 1 failed, 2 wrong usage, 3 not healthy before the timeout

Examples:
  chandler dev --bundle ./my-operator
  With a configuration:
    chandler dev --bundle ./my-operator --namespace tenant --config values.yaml
  Keep the control plane running, and use kubectl:
    chandler dev --bundle ./my-operator --keep
    export KUBECONFIG=...; kubectl get bundledeployments   # in another shell
  See how the bundle and the controller tolerate API failures:
    chandler dev --bundle ./my-operator --fault internal-error-after-write,verb=patch,every=3
  Run only the control plane and the controller:
    chandler dev --keep
  Store the state, so that the next run continues with it:
    chandler dev --keep --data ~/chandler-dev
    export KUBECONFIG=~/chandler-dev/kubeconfig")]
pub struct Dev {
    /// Directory of the bundle
    #[arg(long, value_name = "DIR", required_unless_present = "keep")]
    pub bundle: Option<PathBuf>,

    /// Namespace to install into [default: NAME-system]
    #[arg(long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// Name of the BundleDeployment [default: derived from the directory name]
    #[arg(long, value_name = "NAME", value_parser = values::deployment_name)]
    pub name: Option<String>,

    /// File with the bundle's configuration (spec.config), in YAML or JSON; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "bundle")]
    pub config: Option<PathBuf>,

    /// Provisioner class [default: the first class that detects the format of the bundle]
    #[arg(long, value_name = "CLASS", requires = "bundle")]
    pub provisioner: Option<String>,

    /// Keep the control plane running until SIGINT or SIGTERM
    #[arg(long)]
    pub keep: bool,

    /// Timeout for the bundle to become healthy
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    pub timeout: Duration,

    /// Directory for unpacked bundles and compiled components
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,

    // Last, because their headings would also apply to the arguments that follow.
    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would use the doc comment as the help of the command")]
    pub cluster: ClusterArguments,

    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would use the doc comment as the help of the command")]
    pub faults: FaultArguments,
}

/// The name of the kubeconfig in the data directory.
const KUBECONFIG: &str = "kubeconfig";

/// A bundle that is ready to be installed.
struct PreparedBundle {
    bundle: Bundle,
    chosen: ChosenProvisioner,
    configuration: Option<Configuration>,
    name: String,
    namespace: String,
}

/// The running control plane, and the bundle to install on it.
struct Environment {
    prepared: Option<PreparedBundle>,
    plane: ControlPlane,
    controller: RunningController,
    kubeconfig: Option<KubeconfigFile>,
}

impl Dev {
    /// Starts the control plane and installs the bundle.
    pub async fn run(&self, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        let mut signals = StopSignals::listen()
            .map_err(|error| CommandError::failed("failed to listen for signals").because(&error))?;
        let mut progress = Progress::new(terminal);
        let Environment { prepared, plane, mut controller, kubeconfig } = tokio::select! {
            started = self.start(&progress) => started?,
            () = signals.received() => return Err(CommandError::interrupted()),
        };
        // The inner result is that of the bundle. The outer one fails if the command cannot continue.
        let result = tokio::select! {
            result = self.install(&plane, prepared, &mut progress) => Ok(result),
            error = controller.ended() => Err(error),
            () = signals.received() => Err(CommandError::interrupted()),
        };
        progress.finish();
        if !self.faults.faults.is_empty() {
            for line in plane.fault_report() {
                progress.report("fault", &line);
            }
        }
        let code = match result {
            Ok(result) if self.keep => {
                let code = result.map_or_else(|error| error.report(terminal), |()| ExitCode::SUCCESS);
                terminal.line("\nrunning until Ctrl-C");
                tokio::select! {
                    () = signals.received() => Ok(code),
                    error = controller.ended() => Err(error),
                }
            }
            Ok(result) => result.map(|()| ExitCode::SUCCESS),
            Err(error) => Err(error),
        };
        drop(kubeconfig);
        controller.stop().await;
        plane.stop().await;
        code
    }

    async fn start(&self, progress: &Progress) -> Result<Environment, CommandError> {
        let cache = cache::directory(self.cache_directory.as_deref())?;
        // An invalid bundle is reported before the control plane starts.
        let prepared = match &self.bundle {
            Some(directory) => Some(self.prepare(directory, &cache, progress).await?),
            None => None,
        };
        progress.busy("starting the control plane");
        let (plane, controller) = ControlPlane::start(&cache, &self.cluster).await?;
        progress.report("cluster", "an API server, a registry and the controller in this process");
        if let Some(recovered) = plane.cluster().recovered() {
            progress.report("recovered", &recovered.to_string());
        }
        plane.inject(&self.faults.faults);
        let kubeconfig = if self.keep { Some(write_kubeconfig(&plane, progress)?) } else { None };
        Ok(Environment { prepared, plane, controller, kubeconfig })
    }

    async fn prepare(
        &self,
        directory: &Path,
        cache: &Path,
        progress: &Progress,
    ) -> Result<PreparedBundle, CommandError> {
        if !directory.is_dir() {
            return Err(CommandError::usage(format!("{}: no such directory", directory.display()))
                .hint("`chandler render` also accepts archives and images"));
        }
        let configuration = self.config.as_deref().map(Configuration::read).transpose()?;
        progress.busy("opening the bundle");
        let origin = Origin::Directory(directory.to_owned());
        let bundle = source::open(&origin, cache, &RegistryArguments::default()).await?;
        let provisioners = provisioner::provisioners(cache)?;
        let chosen = match &self.provisioner {
            Some(class) if chandler_builtin::find(class).is_none() => {
                return Err(CommandError::usage(format!("no built-in provisioner class {class:?}"))
                    .hint(provisioner::classes()));
            }
            Some(class) => provisioner::named(&provisioners, class).await?,
            None => provisioner::detected(&provisioners, &bundle.content).await?,
        };
        let name = self.name.clone().unwrap_or_else(|| naming::deployment(&directory.to_string_lossy()));
        let namespace = self.namespace.clone().unwrap_or_else(|| naming::namespace(&name));
        Ok(PreparedBundle { bundle, chosen, configuration, name, namespace })
    }

    async fn install(
        &self,
        plane: &ControlPlane,
        prepared: Option<PreparedBundle>,
        progress: &mut Progress,
    ) -> Result<(), CommandError> {
        let (Some(prepared), Some(directory)) = (prepared, &self.bundle) else {
            return Ok(());
        };
        let image = plane
            .registry()
            .push_bundle_directory(&prepared.name, "latest", directory, &BTreeMap::new())
            .await
            .map_err(|error| CommandError::failed("failed to package the bundle").because(&error))?;
        let repository =
            image.reference.rsplit_once(':').map_or(image.reference.as_str(), |(repository, _)| repository);
        let installation = Installation {
            name: prepared.name.clone(),
            namespace: prepared.namespace.clone(),
            class: prepared.chosen.name.clone(),
            image: format!("{repository}@{}", image.digest),
            config: prepared.configuration.as_ref().map(|configuration| configuration.value.clone()),
        };
        let format = prepared.chosen.format.as_deref().unwrap_or(&prepared.chosen.name);
        progress.report("bundle", &format!("{} ({format})", directory.display()));
        ensure_namespace(plane.client(), &installation.namespace).await?;
        installation.apply(plane.client()).await?;
        progress.report(
            "created",
            &format!("BundleDeployment {} for namespace {}", installation.name, installation.namespace),
        );
        let result = installation.follow(plane.client(), progress, self.timeout).await;
        progress.finish();
        show_objects(plane, &installation.name, progress).await;
        match result {
            InstallationResult::Healthy => {
                progress.line(&format!("healthy in {}", seconds(progress.elapsed())));
                Ok(())
            }
            InstallationResult::TimedOut(error) => Err(error),
            InstallationResult::Failed { reason, error } => Err(prepared.explain(reason).await.unwrap_or(error)),
        }
    }
}

impl PreparedBundle {
    /// The findings of the provisioner with the lines of the bundle, if the provisioner refused it. The status has only their text.
    async fn explain(&self, reason: Option<Reason>) -> Option<CommandError> {
        if !matches!(reason, Some(Reason::InvalidContent | Reason::InvalidConfiguration | Reason::UnsupportedContent)) {
            return None;
        }
        let sources = Sources {
            content: Some(self.bundle.content.as_ref()),
            directory: self.bundle.directory.as_ref(),
            configuration: self.configuration.as_ref().map(Configuration::named),
        };
        let config = self.configuration.as_ref().map(|configuration| configuration.value.clone());
        let target = Target { name: self.name.clone(), namespace: self.namespace.clone(), ..Target::default() };
        let request = Request { config: config.unwrap_or_default(), target };
        let content = Arc::clone(&self.bundle.content);
        let error = self.chosen.provisioner.provision(&request, content, &Limits::default()).await.err()?;
        Some(provisioner::call_failed(&self.chosen.name, &error, &sources))
    }
}

/// A kubeconfig that was written.
enum KubeconfigFile {
    /// Dropping the value removes it.
    Temporary(NamedTempFile),
    /// It is in the data directory.
    Stored(PathBuf),
}

impl KubeconfigFile {
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(file) => file.path(),
            Self::Stored(path) => path,
        }
    }
}

/// Writes the kubeconfig and prints its path.
fn write_kubeconfig(plane: &ControlPlane, progress: &Progress) -> Result<KubeconfigFile, CommandError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        CommandError::failed("failed to write the kubeconfig").because(error)
    };
    let kubeconfig = plane.cluster().kubeconfig();
    let file = match plane.data() {
        Some(data) => {
            data.keep_secret(KUBECONFIG, &kubeconfig).map_err(|error| failed(&error))?;
            KubeconfigFile::Stored(std::path::absolute(data.path().join(KUBECONFIG)).map_err(|error| failed(&error))?)
        }
        None => KubeconfigFile::Temporary(temporary(&kubeconfig).map_err(|error| failed(&error))?),
    };
    let path = file.path().display();
    progress.report("kubeconfig", &path.to_string());
    output::print(&format!("export KUBECONFIG={path}\n"))?;
    Ok(file)
}

/// Writes a temporary file that only its owner can read.
fn temporary(text: &str) -> std::io::Result<NamedTempFile> {
    // tempfile creates files with mode 0600.
    let mut file = tempfile::Builder::new().prefix("chandler-").suffix(".kubeconfig").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// Prints the current objects of the BundleDeployment.
async fn show_objects(plane: &ControlPlane, name: &str, progress: &Progress) {
    let deployments: Api<BundleDeployment> = Api::all(plane.client().clone());
    let Ok(deployment) = deployments.get(name).await else {
        return;
    };
    let mut members = cluster::members(plane.client(), &deployment).await;
    below::explain(plane.client(), &mut members).await;
    let release = deployment.status.as_ref().and_then(|status| status.release.as_ref());
    let (healthy, all) = tree::healthy(&members.objects, release);
    if all == 0 && members.unreadable.is_empty() {
        return;
    }
    progress.report("objects", &format!("{healthy} of {} healthy", count(all, "object")));
    for line in tree::lines(&members.objects, |health| progress.terminal().sign(health)) {
        progress.line(&line);
    }
    for problem in &members.unreadable {
        progress.report("unreadable", problem);
    }
}
