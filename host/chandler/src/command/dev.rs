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
    CommandError, cache,
    cluster_arguments::ClusterArguments,
    configuration::Configuration,
    control_plane::{ControlPlane, RunningController, ensure_namespace},
    diagnostics::Sources,
    fault_arguments::FaultArguments,
    installation::{Ended, Installation},
    live, naming, output,
    progress::{Progress, seconds},
    provision::{self, Chosen},
    signals::StopSignals,
    source::{self, Bundle, Origin, RegistryOptions},
    terminal::Terminal,
    text::count,
    tree, values,
};

/// Try a bundle on a control plane that lives in this process
///
/// Starts an in-memory Kubernetes API server, a registry on the loopback interface and the controller; nothing else is
/// needed and nothing is left behind unless --data says where. With --bundle, packages the directory as an image, installs it with a
/// BundleDeployment and follows it until it is healthy or has failed. Workloads are simulated: no container runs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress, the object tree and the verdict on standard error.
  With --keep, one line `export KUBECONFIG=...` on standard output. With --data, that file stays.

Exit codes: 0 healthy, 1 failed (the cause is shown), 2 wrong usage, 3 not healthy in time

Examples:
  chandler dev --bundle ./my-operator
  With a configuration:
    chandler dev --bundle ./my-operator --namespace tenant --config values.yaml
  Keep the control plane and look around with kubectl:
    chandler dev --bundle ./my-operator --keep
    (in another shell)  export KUBECONFIG=...; kubectl get bundledeployments
  See how the bundle and the controller bear a bad day:
    chandler dev --bundle ./my-operator --fault internal-error-after-write,verb=patch,every=3
  Only a control plane with the controller:
    chandler dev --keep
  The same control plane again tomorrow, with what is installed on it:
    chandler dev --keep --data ~/chandler-dev
    export KUBECONFIG=~/chandler-dev/kubeconfig")]
pub struct Dev {
    /// The bundle's directory
    #[arg(long, value_name = "DIR", required_unless_present = "keep")]
    pub bundle: Option<PathBuf>,

    /// The namespace to install into [default: NAME-system]
    #[arg(long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// The name of the BundleDeployment [default: made from the directory's name]
    #[arg(long, value_name = "NAME", value_parser = values::deployment_name)]
    pub name: Option<String>,

    /// The configuration, YAML or JSON; `-` is standard input
    #[arg(long, value_name = "FILE", requires = "bundle")]
    pub config: Option<PathBuf>,

    /// The provisioner class [default: detected]
    #[arg(long, value_name = "CLASS", requires = "bundle")]
    pub provisioner: Option<String>,

    /// Stay up until interrupted
    #[arg(long)]
    pub keep: bool,

    /// How long to wait until the bundle is healthy
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    pub timeout: Duration,

    /// Where unpacked bundles and compiled components are kept
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,

    // Last, since their headings would go on with what comes after them.
    #[command(flatten)]
    #[expect(missing_docs, reason = "it would be taken for the help of the command")]
    pub cluster: ClusterArguments,

    #[command(flatten)]
    #[expect(missing_docs, reason = "it would be taken for the help of the command")]
    pub faults: FaultArguments,
}

/// The name of the kubeconfig in a directory of kept state.
const KUBECONFIG: &str = "kubeconfig";

/// A bundle that can be installed.
struct Prepared {
    bundle: Bundle,
    chosen: Chosen,
    configuration: Option<Configuration>,
    name: String,
    namespace: String,
}

/// What runs.
struct Started {
    prepared: Option<Prepared>,
    plane: ControlPlane,
    controller: RunningController,
    kubeconfig: Option<Published>,
}

impl Dev {
    /// Runs the control plane.
    pub async fn run(&self, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        let mut signals = StopSignals::listen()
            .map_err(|error| CommandError::failed("failed to listen for signals").because(&error))?;
        let mut progress = Progress::new(terminal);
        let Started { prepared, plane, mut controller, kubeconfig } = tokio::select! {
            started = self.start(&progress) => started?,
            () = signals.received() => return Err(CommandError::interrupted()),
        };
        // The inner result is what became of the bundle; the outer one fails where nothing can go on.
        let verdict = tokio::select! {
            verdict = self.install(&plane, prepared, &mut progress) => Ok(verdict),
            error = controller.ended() => Err(error),
            () = signals.received() => Err(CommandError::interrupted()),
        };
        progress.finish();
        for line in self.faults.report(plane.cluster()) {
            progress.step("fault", &line);
        }
        let code = match verdict {
            Ok(verdict) if self.keep => {
                let code = verdict.map_or_else(|error| error.report(terminal), |()| ExitCode::SUCCESS);
                terminal.line("\nstays up until Ctrl-C");
                tokio::select! {
                    () = signals.received() => Ok(code),
                    error = controller.ended() => Err(error),
                }
            }
            Ok(verdict) => verdict.map(|()| ExitCode::SUCCESS),
            Err(error) => Err(error),
        };
        drop(kubeconfig);
        controller.stop().await;
        plane.stop().await;
        code
    }

    async fn start(&self, progress: &Progress) -> Result<Started, CommandError> {
        let cache = cache::directory(self.cache_directory.as_deref())?;
        // What is wrong with the bundle itself shows before anything is started.
        let prepared = match &self.bundle {
            Some(directory) => Some(self.prepare(directory, &cache, progress).await?),
            None => None,
        };
        progress.busy("starting the control plane");
        let (plane, controller) = ControlPlane::start(&cache, &self.cluster).await?;
        progress.step("cluster", "an API server, a registry and the controller in this process");
        if let Some(recovered) = plane.cluster().recovered() {
            progress.step("recovered", &recovered.to_string());
        }
        self.faults.inject(plane.cluster());
        let kubeconfig = if self.keep { Some(publish(&plane, progress)?) } else { None };
        Ok(Started { prepared, plane, controller, kubeconfig })
    }

    async fn prepare(&self, directory: &Path, cache: &Path, progress: &Progress) -> Result<Prepared, CommandError> {
        if !directory.is_dir() {
            return Err(CommandError::usage(format!("{}: no such directory", directory.display()))
                .hint("`chandler render` takes archives and images, too"));
        }
        let configuration = self.config.as_deref().map(Configuration::read).transpose()?;
        progress.busy("looking at the bundle");
        let origin = Origin::Directory(directory.to_owned());
        let bundle = source::open(&origin, cache, &RegistryOptions::default()).await?;
        let provisioners = provision::provisioners(cache)?;
        let chosen = match &self.provisioner {
            Some(class) if chandler_builtin::find(class).is_none() => {
                return Err(CommandError::usage(format!("no built-in provisioner class {class:?}")));
            }
            Some(class) => provision::named(&provisioners, class).await?,
            None => provision::detected(&provisioners, &bundle.content).await?,
        };
        let name = self.name.clone().unwrap_or_else(|| naming::deployment(&directory.to_string_lossy()));
        let namespace = self.namespace.clone().unwrap_or_else(|| naming::namespace(&name));
        Ok(Prepared { bundle, chosen, configuration, name, namespace })
    }

    async fn install(
        &self,
        plane: &ControlPlane,
        prepared: Option<Prepared>,
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
        progress.step("bundle", &format!("{} ({format})", directory.display()));
        ensure_namespace(plane.client(), &installation.namespace).await?;
        installation.apply(plane.client()).await?;
        progress.step(
            "created",
            &format!("BundleDeployment {} for namespace {}", installation.name, installation.namespace),
        );
        let ended = installation.follow(plane.client(), progress, self.timeout).await;
        progress.finish();
        show_objects(plane, &installation.name, progress).await;
        match ended {
            Ended::Healthy => {
                progress.line(&format!("healthy in {}", seconds(progress.elapsed())));
                Ok(())
            }
            Ended::TimedOut(error) => Err(error),
            Ended::Failed { reason, error } => Err(prepared.explain(reason).await.unwrap_or(error)),
        }
    }
}

impl Prepared {
    /// The findings of the provisioner with the lines of the bundle, where it was the provisioner that refused: the
    /// status holds only words.
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
        Some(provision::call_failed(&self.chosen.name, &error, &sources))
    }
}

/// A kubeconfig that was written.
enum Published {
    /// It goes with the value.
    Temporary(NamedTempFile),
    /// It stays.
    Kept(PathBuf),
}

impl Published {
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(file) => file.path(),
            Self::Kept(path) => path,
        }
    }
}

/// Writes the kubeconfig and tells where it is.
fn publish(plane: &ControlPlane, progress: &Progress) -> Result<Published, CommandError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        CommandError::failed("failed to write the kubeconfig").because(error)
    };
    let kubeconfig = plane.cluster().kubeconfig();
    let published = match plane.data() {
        Some(data) => {
            data.keep_secret(KUBECONFIG, &kubeconfig).map_err(|error| failed(&error))?;
            Published::Kept(std::path::absolute(data.path().join(KUBECONFIG)).map_err(|error| failed(&error))?)
        }
        None => Published::Temporary(temporary(&kubeconfig).map_err(|error| failed(&error))?),
    };
    let path = published.path().display();
    progress.step("kubeconfig", &path.to_string());
    output::print(&format!("export KUBECONFIG={path}\n"))?;
    Ok(published)
}

/// A file that goes with the value and that only its owner can read.
fn temporary(text: &str) -> std::io::Result<NamedTempFile> {
    // The mode of such files is 0600.
    let mut file = tempfile::Builder::new().prefix("chandler-").suffix(".kubeconfig").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// Shows the objects that the BundleDeployment has now.
async fn show_objects(plane: &ControlPlane, name: &str, progress: &Progress) {
    let deployments: Api<BundleDeployment> = Api::all(plane.client().clone());
    let Ok(deployment) = deployments.get(name).await else {
        return;
    };
    let members = live::members(plane.client(), &deployment).await;
    let (healthy, all) = tree::healthy(&members.objects);
    if all == 0 && members.unreadable.is_empty() {
        return;
    }
    progress.step("objects", &format!("{healthy} of {} healthy", count(all, "object")));
    for line in tree::lines(&members.objects, |mark| progress.terminal().sign(mark)) {
        progress.line(&line);
    }
    for problem in &members.unreadable {
        progress.step("unreadable", problem);
    }
}
