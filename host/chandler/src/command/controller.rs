//! `chandler controller`.

use std::{path::PathBuf, pin::pin, time::Duration};

use chandler_controller::{ControllerError, Options, WatchSelector};
use chandler_permissions::{AccountPolicy, DefaultAccount};
use tokio::sync::oneshot;

use crate::{CommandError, live, provision, signals::StopSignals};

/// Run the controller
///
/// It reconciles BundleDeployments until SIGTERM or SIGINT; what it has begun it finishes, then it exits with 0. A second
/// signal ends it at once.
/// In a cluster it uses its service account, elsewhere the kubeconfig.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Nothing on standard output; logs go to standard error.

Exit codes: 0 stopped by a signal, 1 failed, 2 wrong usage

Examples:
  In a pod:
    chandler controller --log-format json
  On a workstation, against the cluster of the current context, with a registry that speaks HTTP:
    chandler controller --plain-http-registry localhost:5000 --log-level chandler_controller=debug")]
pub struct Controller {
    /// The namespace that holds pull secrets and content of ConfigMaps
    #[arg(long, value_name = "NAMESPACE", default_value = "chandler-system", env = "CHANDLER_SYSTEM_NAMESPACE", hide_env_values = true,
          value_parser = crate::values::dns_label)]
    pub system_namespace: String,

    /// Work on the BundleDeployments and ProvisionerClasses with matching labels, and leave others alone [default: all of
    /// them]
    ///
    /// As `kubectl --selector`: `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key`, `!key`, with commas.
    /// Several controllers share a cluster when no two select the same object; each needs a cache directory of its own.
    #[arg(long, value_name = "SELECTOR", env = "CHANDLER_WATCH_SELECTOR", hide_env_values = true)]
    pub watch_selector: Option<WatchSelector>,

    /// Where unpacked bundles and compiled components are kept; nobody else may write there
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/cache/chandler",
        env = "CHANDLER_CACHE_DIRECTORY",
        hide_env_values = true
    )]
    pub cache_directory: PathBuf,

    /// The kubeconfig to use [default: the service account of the pod, else $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// A registry (host or host:port) to speak HTTP with; may be given several times
    #[arg(long = "plain-http-registry", value_name = "HOST")]
    pub plain_http_registries: Vec<String>,

    /// How many BundleDeployments are reconciled at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,

    /// How often the tag of an image is resolved again
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = crate::values::duration)]
    pub image_poll_interval: Duration,

    /// How often the version and the kinds of the API server are looked at; when they change, bundles are rendered again
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = crate::values::duration)]
    pub cluster_poll_interval: Duration,

    /// Use the components of ProvisionerClasses although nobody verified a signature
    #[arg(long)]
    pub allow_unsigned: bool,

    /// Refuse BundleDeployments that name no ServiceAccount, so that no bundle is installed with the rights of the controller;
    /// with --default-service-account none is left to refuse
    #[arg(long)]
    pub require_service_account: bool,

    /// The ServiceAccount of BundleDeployments that name none, in the namespace to install into unless it says another one
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub default_service_account: Option<DefaultAccount>,

    /// Use a pull secret only for those BundleDeployments and ProvisionerClasses that its annotations
    /// chandler.dev/bundledeployments and chandler.dev/provisionerclasses name
    #[arg(long)]
    pub require_pull_secret_grant: bool,

    /// How log lines are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How long a reconcile that is under way may take after a signal: less than the 30 s that a kubelet waits by default.
const GRACE: Duration = Duration::from_secs(25);

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object per line
    Json,
}

impl Controller {
    /// Runs until a signal comes.
    pub async fn run(&self) -> Result<(), CommandError> {
        let mut signals = StopSignals::listen()
            .map_err(|error| CommandError::failed("failed to listen for signals").because(&error))?;
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let options = Options {
            watch_selector: self.watch_selector.clone().unwrap_or_default(),
            system_namespace: self.system_namespace.clone(),
            cache_directory: self.cache_directory.clone(),
            compiler: provision::compiler()?,
            plain_http_registries: self.plain_http_registries.clone(),
            concurrency: self.concurrency,
            image_poll_interval: self.image_poll_interval,
            cluster_poll_interval: self.cluster_poll_interval,
            allow_unsigned: self.allow_unsigned,
            accounts: AccountPolicy::new(self.require_service_account, self.default_service_account.clone()),
            require_pull_secret_grant: self.require_pull_secret_grant,
            ..Options::default()
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async {
            // That the sender is dropped means the same.
            let _ = stopped.await;
        };
        let mut running = pin!(chandler_controller::run(client, options, shutdown));
        tokio::select! {
            ended = &mut running => return told(ended),
            () = signals.received() => {}
        }
        tracing::info!("stopping");
        drop(stop);
        tokio::select! {
            ended = running => told(ended),
            () = signals.received() => Err(CommandError::interrupted()),
            () = tokio::time::sleep(GRACE) => {
                Err(CommandError::failed(format!("what was under way did not end within {} s", GRACE.as_secs())))
            }
        }
    }
}

fn told(ended: Result<(), ControllerError>) -> Result<(), CommandError> {
    ended.map_err(|error| CommandError::failed("the controller failed").because(&error))
}
