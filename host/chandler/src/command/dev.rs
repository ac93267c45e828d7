//! `chandler dev`.

use std::{
    collections::BTreeMap,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use chandler_api::{BundleDeployment, Reason};
use chandler_core::{Request, Target};
use chandler_engine::Limits;
use kube::Api;
use tempfile::NamedTempFile;

use crate::{
    CommandError, arguments, cache,
    configuration::Configuration,
    control_plane::{ControlPlane, ensure_namespace},
    diagnostics::Sources,
    installation::{Ended, Installation},
    live, naming, output,
    progress::{Progress, seconds},
    provision::{self, Chosen},
    signals::StopSignals,
    source::{self, Bundle, Origin, RegistryOptions},
    terminal::Terminal,
    text::count,
    tree,
};

/// Try a bundle on a control plane that lives in this process
///
/// Starts an in-memory Kubernetes API server, a registry on the loopback interface and the controller; nothing else is
/// needed and nothing is left behind. With --bundle, packages the directory as an image, installs it with a
/// BundleDeployment and follows it until it is healthy or has failed. Workloads are simulated: no container runs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Progress, the object tree and the verdict on standard error.
  With --keep, one line `export KUBECONFIG=...` on standard output.

Exit codes: 0 healthy, 1 failed (the cause is shown), 2 wrong usage, 3 not healthy in time

Examples:
  chandler dev --bundle ./my-operator
  With a configuration:
    chandler dev --bundle ./my-operator --namespace tenant --config values.yaml
  Keep the control plane and look around with kubectl:
    chandler dev --bundle ./my-operator --keep
    (in another shell)  export KUBECONFIG=...; kubectl get bundledeployments
  Only a control plane with the controller:
    chandler dev --keep")]
pub struct Dev {
    /// The bundle's directory
    #[arg(long, value_name = "DIR", required_unless_present = "keep")]
    pub bundle: Option<PathBuf>,

    /// The namespace to install into [default: NAME-system]
    #[arg(long, value_name = "NAMESPACE", value_parser = arguments::dns_label)]
    pub namespace: Option<String>,

    /// The name of the BundleDeployment [default: made from the directory's name]
    #[arg(long, value_name = "NAME", value_parser = arguments::deployment_name)]
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
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = arguments::duration)]
    pub timeout: Duration,

    /// Where unpacked bundles and compiled components are kept
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

/// A bundle that can be installed.
struct Prepared {
    bundle: Bundle,
    chosen: Chosen,
    configuration: Option<Configuration>,
    name: String,
    namespace: String,
}

impl Dev {
    /// Runs the control plane.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let mut signals = StopSignals::listen()
            .map_err(|error| CommandError::failed("failed to listen for signals").because(&error))?;
        let cache = cache::directory(self.cache_directory.as_deref())?;
        let mut progress = Progress::new(terminal);
        // What is wrong with the bundle itself shows before anything is started.
        let prepared = match &self.bundle {
            Some(directory) => Some(self.prepare(directory, &cache, &progress).await?),
            None => None,
        };
        progress.busy("starting the control plane");
        let (plane, mut controller) = ControlPlane::start(&cache).await?;
        progress.step("cluster", "an API server, a registry and the controller in this process");
        let kubeconfig = if self.keep { Some(self.publish(&plane, &progress)?) } else { None };

        let verdict = tokio::select! {
            verdict = self.install(&plane, prepared, &mut progress) => verdict,
            error = controller.ended() => Err(error),
            () = signals.received() => Err(CommandError::interrupted()),
        };
        progress.finish();
        let verdict = match verdict {
            Err(error) if self.keep && error.kind() != crate::error::Kind::Interrupted => {
                terminal.line(error.to_string());
                terminal.line("\nstays up until Ctrl-C");
                signals.received().await;
                Err(error)
            }
            Ok(()) if self.keep => {
                terminal.line("\nstays up until Ctrl-C");
                signals.received().await;
                Ok(())
            }
            verdict => verdict,
        };
        drop(kubeconfig);
        controller.stop().await;
        plane.stop().await;
        verdict
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

    /// Writes the kubeconfig and tells where it is. The file goes with the value.
    fn publish(&self, plane: &ControlPlane, progress: &Progress) -> Result<NamedTempFile, CommandError> {
        let failed =
            |error: &dyn std::error::Error| CommandError::failed("failed to write the kubeconfig").because(error);
        // The mode of such files is 0600.
        let mut file = tempfile::Builder::new()
            .prefix("chandler-")
            .suffix(".kubeconfig")
            .tempfile()
            .map_err(|error| failed(&error))?;
        let kubeconfig = plane.cluster().kubeconfig();
        file.write_all(kubeconfig.as_bytes()).and_then(|()| file.flush()).map_err(|error| failed(&error))?;
        progress.step("kubeconfig", &file.path().display().to_string());
        output::print(&format!("export KUBECONFIG={}\n", file.path().display()))?;
        Ok(file)
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
        let format = prepared.chosen.format.as_deref().unwrap_or("not detected");
        progress.step("bundle", &format!("{} ({format})", directory.display()));
        ensure_namespace(plane.client(), &installation.namespace).await?;
        installation.create(plane.client()).await?;
        progress.step(
            "created",
            &format!("BundleDeployment {} for namespace {}", installation.name, installation.namespace),
        );
        let ended = installation.follow(plane.client(), progress, self.timeout).await;
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
            configuration: self.configuration.as_ref(),
        };
        let config = self.configuration.as_ref().map(|configuration| configuration.value.clone());
        let target = Target { name: self.name.clone(), namespace: self.namespace.clone(), ..Target::default() };
        let request = Request { config: config.unwrap_or_default(), target };
        let content = Arc::clone(&self.bundle.content);
        let error = self.chosen.provisioner.provision(&request, content, &Limits::default()).await.err()?;
        Some(provision::call_failed(&self.chosen.name, &error, &sources))
    }
}

/// Shows the objects that the BundleDeployment has now.
async fn show_objects(plane: &ControlPlane, name: &str, progress: &Progress) {
    let deployments: Api<BundleDeployment> = Api::all(plane.client().clone());
    let Ok(deployment) = deployments.get(name).await else {
        return;
    };
    let members = live::members(plane.client(), &deployment).await;
    let (healthy, all) = tree::healthy(&members.objects);
    progress.step("objects", &format!("{healthy} of {} healthy", count(all, "object")));
    for line in tree::lines(&members.objects) {
        progress.line(&line);
    }
    for problem in &members.unreadable {
        progress.step("unreadable", problem);
    }
}
