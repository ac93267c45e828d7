//! `chandler dev`.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, SystemTime},
};

use chandler_api::{BundleDeployment, Reason};
use chandler_core::{Diagnostic, Release, Request, Target};
use chandler_engine::{CallError, Limits};
use kube::{Api, Discovery};
use serde_json::{Map, Value};

use crate::{
    CommandError,
    arguments::{
        cluster::ClusterArguments, configuration::ConfigurationArguments, faults::FaultArguments, kind_set, values,
    },
    read::{
        below, cache, cluster,
        configuration::{self, Configuration},
        expected_kinds, missing_kinds, naming,
        origin::Origin,
        provisioner::{self, ChosenProvisioner},
        registry_settings::RegistryOptions,
        source::{self, Bundle},
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
        dev_class::ComponentFile,
        dev_kinds::{self, KindSource},
        installation::{Installation, InstallationResult},
        kubeconfig_file::{self, KubeconfigFile},
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
    chandler dev --bundle ./my-operator --namespace tenant --config values.yaml --set replicas=2
  With a provisioner of your own, which is loaded again when you build it:
    chandler dev --keep --bundle ./my-bundle --provisioner ./target/my-format.wasm
  With kinds that the bundle expects from other software:
    chandler dev --bundle ./my-operator --with monitoring,cert-manager
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
    #[arg(short, long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub namespace: Option<String>,

    /// Name of the BundleDeployment [default: derived from the directory name]
    #[arg(long, value_name = "NAME", value_parser = values::deployment_name)]
    pub name: Option<String>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "clap would use the doc comment as the help of the command")]
    pub configuration: ConfigurationArguments,

    /// Built-in provisioner class, or a component file [default: the first class that detects the format of the bundle]
    ///
    /// A file, with a `/` in its path or a name that ends in .wasm, becomes a ProvisionerClass with the name of the file. It is loaded
    /// again each time it is built.
    #[arg(long, value_name = "CLASS|FILE")]
    pub provisioner: Option<String>,

    /// Install kinds that the bundle expects from other software: `monitoring`, `cert-manager`, or a file with CRDs. Repeatable
    ///
    /// `monitoring` has ServiceMonitor, PodMonitor, Probe, PrometheusRule, AlertmanagerConfig and ScrapeConfig; `cert-manager` has
    /// Certificate, CertificateRequest, Issuer and ClusterIssuer. These CRDs are minimal: they accept any spec, and nothing acts on
    /// their objects. Use a file to have the published schemas.
    #[arg(long, value_name = "SET|FILE", value_delimiter = ',', value_parser = kind_set::parse)]
    pub with: Vec<KindSource>,

    /// Keep the control plane running until SIGINT or SIGTERM
    #[arg(long)]
    pub keep: bool,

    /// Timeout for the bundle to become healthy
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration, requires = "bundle")]
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

/// A bundle that is ready to be installed.
struct PreparedBundle {
    bundle: Bundle,
    chosen: ChosenProvisioner,
    configuration: Option<Configuration>,
    name: String,
    namespace: String,
    /// The component file of the class, if it is not built in.
    component: Option<ComponentFile>,
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
        let component = prepared.as_ref().and_then(|prepared| prepared.component.clone());
        let since = component.as_ref().and_then(ComponentFile::written);
        // The inner result is about the bundle. The outer one fails if the command cannot continue.
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
                    () = follow_component(component.as_ref(), since, &plane, &progress) => Ok(code),
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
        if self.bundle.is_none() && (self.provisioner.is_some() || !self.configuration.options().is_empty()) {
            return Err(CommandError::usage("--provisioner, --config and --set need a bundle: --bundle DIR"));
        }
        let cache = cache::directory(self.cache_directory.as_deref())?;
        // An invalid bundle is reported before the control plane starts.
        let prepared = match &self.bundle {
            Some(directory) => Some(self.prepare(directory, &cache, progress).await?),
            None => None,
        };
        progress.busy("starting the control plane");
        let (plane, controller) = ControlPlane::start(&cache, &self.cluster.options()).await?;
        progress.report("cluster", "an API server, a registry and the controller in this process");
        progress.report("registry", &format!("{} (HTTP)", plane.registry().host()));
        if let Some(recovered) = plane.cluster().recovered() {
            progress.report("recovered", &recovered.to_string());
        }
        if !self.with.is_empty() {
            let installed = dev_kinds::install(plane.client(), &self.with).await?;
            progress.report(
                "kinds",
                &format!("{} of --with, which accept any spec unless they come from a file", count(installed, "CRD")),
            );
        }
        plane.inject(&self.faults.faults);
        let kubeconfig = if self.keep { Some(kubeconfig_file::write(&plane, progress)?) } else { None };
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
        let configuration = self.configuration()?;
        progress.busy("opening the bundle");
        let origin = Origin::Directory(directory.to_owned());
        let bundle = source::open(&origin, cache, &RegistryOptions::default()).await?;
        let provisioners = provisioner::provisioners(cache)?;
        let component = self.provisioner.as_deref().and_then(ComponentFile::of);
        let chosen = match &self.provisioner {
            Some(class) if component.is_none() && chandler_builtin::find(class).is_none() => {
                return Err(CommandError::usage(format!("no built-in provisioner class {class:?}"))
                    .hint(provisioner::classes()));
            }
            Some(class) => {
                let chosen = provisioner::named(&provisioners, class).await?;
                let name = component.as_ref().map_or_else(|| chosen.name.clone(), |component| component.class.clone());
                ChosenProvisioner { name, ..chosen }
            }
            None => provisioner::detected(&provisioners, &bundle.content).await?,
        };
        let name = self.name.clone().unwrap_or_else(|| naming::deployment(&directory.to_string_lossy()));
        let namespace = self.namespace.clone().unwrap_or_else(|| naming::namespace(&name));
        Ok(PreparedBundle { bundle, chosen, configuration, name, namespace, component })
    }

    /// The configuration: as its file is written if there is only that, so that findings can show its lines.
    fn configuration(&self) -> Result<Option<Configuration>, CommandError> {
        let options = self.configuration.options();
        match options.files.as_slice() {
            _ if options.is_empty() => Ok(None),
            [file] if options.assignments.is_empty() && options.strings.is_empty() => {
                Configuration::read(file).map(Some)
            }
            _ => {
                let value = configuration::combined(&options, Map::new())?;
                let text = output::yaml(&[Value::Object(value.clone())])?;
                Ok(Some(Configuration { name: "--config and --set".to_owned(), text, value, warnings: Vec::new() }))
            }
        }
    }

    /// Checks what a bundle needs of this control plane before anything is created for it.
    async fn check(
        &self,
        plane: &ControlPlane,
        prepared: &PreparedBundle,
        progress: &Progress,
    ) -> Result<(), CommandError> {
        let discovered = Discovery::new(plane.client().clone()).run_aggregated().await;
        let Ok(discovered) = discovered else { return Ok(()) };
        let served = chandler_client::kinds(&discovered);
        let release = match prepared.render(prepared.config(), &served).await {
            Ok(release) => release,
            Err(error) => {
                return match prepared.watch_namespace(&error, &served).await {
                    Some(namespace) => Err(CommandError::failed(format!(
                        "{} needs the namespace that it watches: watchNamespace",
                        prepared.name
                    ))
                    .hint(format!("run `{}`", self.command_with(&format!("watchNamespace={namespace}"))))),
                    // The controller reports it.
                    None => Ok(()),
                };
            }
        };
        let missing = missing_kinds::missing(&release, &served);
        for kind in &missing {
            progress.report("missing", &expected_kinds::describe(kind));
        }
        if missing.is_empty() || self.keep {
            return Ok(());
        }
        let kinds: Vec<String> = missing.iter().map(expected_kinds::describe).collect();
        Err(CommandError::failed(format!("{} needs kinds that nothing provides: {}", prepared.name, kinds.join("; "))))
    }

    /// This command with one more value of the configuration.
    fn command_with(&self, assignment: &str) -> String {
        let quoted = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', "'\\''"));
        let mut words = vec!["chandler dev".to_owned()];
        words.extend(self.bundle.iter().map(|bundle| format!("--bundle {}", quoted(bundle))));
        words.extend(self.namespace.iter().map(|namespace| format!("--namespace {namespace}")));
        words.extend(self.name.iter().map(|name| format!("--name {name}")));
        words.extend(self.configuration.files.iter().map(|file| format!("--config {}", quoted(file))));
        let strings = self.configuration.assignments.iter().map(|text| ("--set", text));
        let strings = strings.chain(self.configuration.strings.iter().map(|text| ("--set-string", text)));
        words.extend(strings.map(|(option, text)| format!("{option} {}", quoted(Path::new(text)))));
        words.push(format!("--set {assignment}"));
        words.extend(self.provisioner.iter().map(|name| format!("--provisioner {}", quoted(Path::new(name)))));
        words.extend(self.cluster.data.iter().map(|data| format!("--data {}", quoted(data))));
        words.extend(self.keep.then(|| "--keep".to_owned()));
        words.join(" ")
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
        self.check(plane, &prepared, progress).await?;
        if let Some(component) = &prepared.component {
            component.publish(plane.client(), plane.registry()).await?;
            progress.report("class", &format!("{} ({})", component.class, component.path.display()));
        }
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
            config: prepared.config(),
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
        let error = self.render(self.config(), &[]).await.err()?;
        Some(provisioner::call_failed(&self.chosen.name, &error, &sources))
    }

    fn config(&self) -> Option<Map<String, Value>> {
        self.configuration.as_ref().map(|configuration| configuration.value.clone())
    }

    /// Renders the bundle for a cluster that serves these kinds.
    async fn render(&self, config: Option<Map<String, Value>>, served: &[String]) -> Result<Release, CallError> {
        let (name, namespace) = (self.name.clone(), self.namespace.clone());
        let target = Target { name, namespace, api_kinds: served.to_vec(), ..Target::default() };
        let request = Request { config: config.unwrap_or_default(), target };
        self.chosen.provisioner.provision(&request, Arc::clone(&self.bundle.content), &Limits::default()).await
    }

    /// A namespace to watch that the bundle accepts, if it was refused because it needs one.
    async fn watch_namespace(&self, error: &CallError, served: &[String]) -> Option<&str> {
        let needed = |finding: &Diagnostic| finding.message == "required field \"watchNamespace\" is missing";
        if !error.diagnostics().iter().any(needed) {
            return None;
        }
        // Operators in the install mode SingleNamespace watch another namespace than their own; `default` exists.
        for namespace in [self.namespace.as_str(), "default"] {
            let mut config = self.config().unwrap_or_default();
            config.insert("watchNamespace".to_owned(), namespace.into());
            if self.render(Some(config), served).await.is_ok() {
                return Some(namespace);
            }
        }
        None
    }
}

/// Publishes a component file each time it is built. Never ends.
async fn follow_component(
    component: Option<&ComponentFile>,
    since: Option<SystemTime>,
    plane: &ControlPlane,
    progress: &Progress,
) {
    match component {
        Some(component) => component.follow(plane.client(), plane.registry(), progress, since).await,
        None => std::future::pending().await,
    }
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
    for line in tree::lines(&members.objects, |health| progress.terminal().look().sign(health)) {
        progress.line(&line);
    }
    for problem in &members.unreadable {
        progress.report("unreadable", problem);
    }
}
