//! `chandler controller`.

use std::{net::IpAddr, path::PathBuf, pin::pin, time::Duration};

use chandler_api::OlmCatalogs;
use chandler_controller::{
    ClusterOperatorMode, ClusterOperatorNames, ClusterOperatorSettings, ControllerError, Election, ElectionError,
    MirrorSets, Options, PlatformPackages, TargetOptions, WatchSelector,
    options::{INSTALLATIONS_NAMESPACE, LEASE, lease_name},
};
use chandler_engine::CONTRACT_VERSIONS;
use chandler_permissions::{AccountPolicy, DefaultAccount};
use chandler_registries::Registries;
use chandler_tls::TlsSettings;
use tokio::sync::oneshot;

use crate::{
    CommandError,
    arguments::{
        content_service::ContentServiceArguments, monitoring::MonitoringArguments, receiver::ReceiverArguments,
        tls::TlsArguments, traces::TracesArguments, values,
    },
    read::{
        cluster::{self, ConnectionOptions},
        dev_controller, image_rules, provisioner,
    },
    signals::StopSignals,
};

/// Run the controller
///
/// Reconciles BundleDeployments, ProvisionerClasses, Catalogs, Resolutions, PlatformOperators, PlatformPolicies and Receivers until SIGTERM or SIGINT. It then
/// finishes the running reconciles and exits with 0; a second signal exits immediately. In a pod it uses the service account of the pod, elsewhere a
/// kubeconfig.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Nothing on standard output; logs go to standard error.

Exit codes: 0 stopped by a signal, 1 failed, 2 wrong usage

Examples:
  In a pod:
    chandler controller --log-format json
  On a workstation, for the cluster of the current context, with a registry that uses HTTP:
    chandler controller --plain-http-registry localhost:5000 --log-level chandler_controller=debug")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Controller {
    /// Namespace of pull secrets, of ConfigMaps with bundle content, and of the controller's records
    #[arg(long, value_name = "NAMESPACE", default_value = "chandler-system", env = "CHANDLER_SYSTEM_NAMESPACE", hide_env_values = true,
          value_parser = values::dns_label)]
    pub system_namespace: String,

    /// Reconcile only BundleDeployments, ProvisionerClasses, Catalogs, Resolutions and PlatformOperators whose labels match [default: all]
    ///
    /// The syntax is the same as for `kubectl --selector`: `key=value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key` and `!key`,
    /// separated by commas. Several controllers can share a cluster if no object matches the selectors of two. Each needs its own cache
    /// directory.
    #[arg(long, value_name = "SELECTOR", env = "CHANDLER_WATCH_SELECTOR", hide_env_values = true)]
    pub watch_selector: Option<WatchSelector>,

    /// Wait until no other controller holds the Lease of this one, and hold it while running
    ///
    /// The Lease is `chandler-controller` in the system namespace; with --watch-selector its name ends with a digest of the selector, so that
    /// controllers of different objects do not wait for each other. A controller that loses the Lease exits with 1.
    ///
    /// A controller without --watch-selector also holds the Lease `chandler-controller` of --cluster-lease-namespace, so that controllers with
    /// different system namespaces do not reconcile the same objects.
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set, default_value_t = true, default_missing_value = "true",
          num_args = 0..=1, require_equals = true)]
    pub leader_elect: bool,

    /// Namespace of the Lease that all controllers on the cluster have in common. Only administrators may be able to write Leases in it
    ///
    /// All controllers on the cluster need the same one. Another one than the default is for clusters whose provider lets no Lease be written
    /// in kube-system.
    #[arg(long, value_name = "NAMESPACE", default_value = INSTALLATIONS_NAMESPACE, value_parser = values::dns_label)]
    pub cluster_lease_namespace: String,

    /// Leave BundleDeployments alone whose provisionerClassName begins with this: another provisioner handles them. Repeatable
    ///
    /// One that this controller has installed before stays its own until it is deleted.
    #[arg(long = "foreign-class-prefix", value_name = "PREFIX", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub foreign_class_prefixes: Vec<String>,

    /// Directory for unpacked bundles and compiled components. No other user may have write access
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/cache/chandler",
        env = "CHANDLER_CACHE_DIRECTORY",
        hide_env_values = true
    )]
    pub cache_directory: PathBuf,

    /// Most bytes of content on the disk: a quantity such as 8Gi. Beyond half of it, unused content is removed
    ///
    /// Content in use and what is being fetched count, and each file counts as at least 16 KiB. Where it is full, content of the namespaces with the most
    /// gives way to namespaces with less. The volume of --cache-directory needs 4 GiB more, for compiled components, catalog indexes and releases.
    #[arg(long, value_name = "QUANTITY", default_value = "8Gi", value_parser = values::bytes)]
    pub content_cache_limit: u64,

    /// Most bytes of records and releases in Secrets of the system namespace, for all ServiceAccounts of a namespace together: a quantity such as 256Mi
    ///
    /// Beyond it no further revision begins; what is installed stays and is repaired. With --accounts-in it is the limit of each ServiceAccount.
    /// Records of BundleDeployments without one do not count.
    #[arg(long, value_name = "QUANTITY", default_value = "256Mi", value_parser = values::bytes)]
    pub release_storage_limit: u64,

    /// Kubeconfig file [default: the service account of the pod, else $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Use HTTP for this registry (host or host:port). Repeatable. Loopback addresses need not be listed, except for a registry without TLS
    /// that asks for credentials
    #[arg(long = "plain-http-registry", value_name = "HOST")]
    pub plain_http_registries: Vec<String>,

    /// Whether and where it serves content.
    #[command(flatten)]
    pub content: ContentServiceArguments,

    /// IP address of this replica for the other ones, which pass connections for content and webhooks on to the leader: in a Pod its own
    /// (status.podIP) [default: the address of --content-address or --receiver-address, if it names one]
    #[arg(long, value_name = "IP", env = "CHANDLER_ADVERTISE_ADDRESS", hide_env_values = true)]
    pub advertise_address: Option<IpAddr>,

    /// Where it answers probes and serves metrics.
    #[command(flatten)]
    pub monitoring: MonitoringArguments,

    /// Where it receives webhooks.
    #[command(flatten)]
    pub receiver: ReceiverArguments,

    /// What TLS connections may negotiate.
    #[command(flatten)]
    pub tls: TlsArguments,

    /// Where it exports traces.
    #[command(flatten)]
    pub traces: TracesArguments,

    /// File with mirrors, blocked and insecure registries: a registries.conf of version 2. It is read at the start [default: none]
    #[arg(long, value_name = "FILE")]
    pub registries_conf: Option<PathBuf>,

    /// Directory with certificates for registries, as /etc/containers/certs.d: a directory HOST or HOST:PORT for each, with CAs (*.crt) and
    /// a client certificate (*.cert and *.key). Repeatable [default: none]
    #[arg(long = "registry-certs", value_name = "DIR")]
    pub registry_certs: Vec<PathBuf>,

    /// Use the mirrors of these objects of the cluster: imagedigestmirrorsets, imagetagmirrorsets (config.openshift.io/v1), separated by
    /// commas [default: none]
    ///
    /// The controller needs permission to list and watch them: deploy/rbac-registries.yaml.
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub mirrors_from: Vec<MirrorSets>,

    /// Use these catalogs of OLM like Catalogs: clustercatalogs (of OLM v1), catalogsources/NAMESPACE (of OLM v0, in one namespace, with an
    /// image), separated by commas [default: none]
    ///
    /// The controller needs permission to list and watch them: deploy/rbac-olm-catalogs.yaml. It writes nothing to them.
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub catalogs_from: Vec<OlmCatalogs>,

    /// Pull images whose source names no pull secret with the pull secrets of this ServiceAccount in the system namespace [default:
    /// anonymously]
    ///
    /// Any user who may create BundleDeployments can then install every image that these pull secrets can read. The annotations for grants
    /// also apply to them.
    #[arg(long, value_name = "SERVICEACCOUNT", value_parser = values::dns_label)]
    pub pull_secrets_of: Option<String>,

    /// Maximum number of concurrent reconciles of BundleDeployments
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,

    /// Maximum number of kubeconfigs with which bundles are installed into other clusters (spec.kubeConfig); 0 allows no other cluster
    ///
    /// Users who may write BundleDeployments and read Secrets in their namespace then make the controller connect to the servers of their
    /// kubeconfigs, from its network position. What their servers answer may take 8 MiB of memory for each, and 384 MiB together.
    #[arg(long, value_name = "NUMBER", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=256))]
    pub target_clusters: u16,

    /// Interval at which objects in other clusters are compared with their bundles: they are not watched
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = values::duration)]
    pub target_poll_interval: Duration,

    /// Allow kubeconfigs in spec.kubeConfig whose server is on this machine, for tests
    #[arg(long)]
    pub allow_loopback_targets: bool,

    /// Interval at which image tags are resolved again
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = values::duration)]
    pub image_poll_interval: Duration,

    /// How long a BundleDeployment that was restored from a backup waits for its objects to be restored. Then the missing ones are created
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = values::duration)]
    pub restore_wait: Duration,

    /// Interval at which the version and the kinds of the API server are checked. If they change, bundles are rendered again
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    pub cluster_poll_interval: Duration,

    /// Allow ProvisionerClasses whose component needs no signature, since neither spec.verification nor a rule of --image-verification
    /// demands one
    #[arg(long)]
    pub allow_unsigned: bool,

    /// File with the signatures that images of bundles and catalogs and components of provisioners must have (docs/sources.md)
    ///
    /// It has rules for registries and repositories. They hold beside the policies of sources and ProvisionerClasses, which can demand more and never less. The
    /// file is read once: restart the controller after a change.
    #[arg(long, value_name = "FILE")]
    pub image_verification: Option<PathBuf>,

    /// Trusted root of Sigstore (trusted_root.json) that signatures are verified with [default: the public instance's, as of this release]
    #[arg(long, value_name = "FILE")]
    pub trusted_root: Option<PathBuf>,

    /// Refuse BundleDeployments without spec.serviceAccount, so that no bundle is installed with the permissions of the controller.
    /// No effect with --default-service-account
    #[arg(long)]
    pub require_service_account: bool,

    /// ServiceAccount of BundleDeployments without spec.serviceAccount. Without NAMESPACE it is in spec.installNamespace
    ///
    /// Without NAMESPACE it is not for clusters with tenants: the author of a BundleDeployment chooses the namespace, and with it the account.
    #[arg(long, value_name = "[NAMESPACE/]NAME")]
    pub default_service_account: Option<DefaultAccount>,

    /// Install only on behalf of ServiceAccounts of this namespace; may be repeated [default: of all namespaces]
    ///
    /// Name a namespace in which tenants may write nothing: a tenant who may create ServiceAccounts and roles can make an account that grants
    /// its use to every BundleDeployment.
    #[arg(long, value_name = "NAMESPACE", value_parser = values::dns_label)]
    pub accounts_in: Vec<String>,

    /// Name of the Resolution that is made from all PlatformOperators, of the PlatformPolicy that limits them, and of the namespace of what their packages
    /// need
    ///
    /// Controllers with different selectors need a name each.
    #[arg(long, value_name = "NAME", default_value = "platform-operators", value_parser = values::dns_label)]
    pub platform_resolution: String,

    /// ServiceAccount of the system namespace that installs the packages of PlatformOperators [default: as for a BundleDeployment that names
    /// none]
    #[arg(long, value_name = "SERVICEACCOUNT", value_parser = values::dns_label)]
    pub platform_service_account: Option<String>,

    /// The only packages that new PlatformOperators may want [default: all]
    ///
    /// A PlatformPolicy limits them without a restart. If there is one, both must allow a package.
    #[arg(long, value_name = "PACKAGE", value_delimiter = ',')]
    pub platform_packages: Vec<String>,

    /// Refuse new PlatformOperators of packages that no catalog calls platform operators, by the property chandler.dev/platform-operator of the
    /// newest version
    #[arg(long)]
    pub require_platform_property: bool,

    /// ClusterOperators that report PlatformOperators and the controller to OpenShift: one for all packages and one for the controller, these
    /// and one for each package, or none (docs/cluster-operators.md)
    ///
    /// Nothing is written where the cluster does not serve the kind. The controller needs the permissions of deploy/rbac-openshift.yaml.
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = ClusterOperators::Aggregated)]
    pub cluster_operators: ClusterOperators,

    /// Text behind the names of ClusterOperators, for controllers that share a cluster [default: none]
    #[arg(long, value_name = "TEXT")]
    pub cluster_operator_suffix: Option<String>,

    /// Version that the ClusterOperators report once everything is rolled out [default: the version of this command]
    #[arg(long, value_name = "VERSION", env = "RELEASE_VERSION", hide_env_values = true)]
    pub release_version: Option<String>,

    /// PlatformOperators without which the platform is incomplete, such as the ones in the release payload: until they exist and are
    /// installed, platform-operators-aggregated reports no version, and is not available for the first time
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub expected_platform_operators: Vec<String>,

    /// Report Upgradeable=False while a bundle is installed that its catalog deprecates
    #[arg(long)]
    pub deprecated_blocks_upgrades: bool,

    /// Use a pull secret only for the BundleDeployments, ProvisionerClasses and Catalogs that its annotations
    /// chandler.dev/bundledeployments, chandler.dev/provisionerclasses and chandler.dev/catalogs list
    #[arg(long)]
    pub require_pull_secret_grant: bool,

    /// Install on behalf of a ServiceAccount only the BundleDeployments and the sets of Resolutions that its annotations
    /// chandler.dev/bundledeployments and chandler.dev/resolutions list
    #[arg(long)]
    pub require_service_account_grant: bool,

    /// Install the sets that ConfigMaps of the system namespace decide: decisions of other resolvers (docs/resolutions.md)
    ///
    /// Apply deploy/admission-policies.yaml first. Without these policies, who may write ConfigMaps in the system namespace can have any
    /// ServiceAccount install a set.
    #[arg(long)]
    pub decisions_from_config_maps: bool,

    /// Format of log lines
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How long running reconciles may take after a signal: less than the 30 s that a kubelet waits by default.
const GRACE_PERIOD: Duration = Duration::from_secs(25);

/// Which ClusterOperators there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ClusterOperators {
    /// One for all packages, and one for the controller
    Aggregated,
    /// Like aggregated, and one for each package
    Each,
    /// None
    None,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
}

impl Controller {
    /// What TLS connections may negotiate.
    pub(crate) fn tls(&self) -> Result<TlsSettings, CommandError> {
        let settings = self.tls.settings();
        settings.map_err(|error| CommandError::usage("the TLS settings are not usable").because(&error))
    }

    /// Runs the controller until a signal arrives.
    pub async fn run(&self) -> Result<(), CommandError> {
        // No option is secret: they name files and objects with credentials, and URLs without.
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            contracts = CONTRACT_VERSIONS.join(","),
            options = ?self,
            "the controller starts"
        );
        let mut signals = StopSignals::listen()
            .map_err(|error| CommandError::failed("failed to listen for signals").because(&error))?;
        let (client, config) =
            cluster::connect(&ConnectionOptions { kubeconfig: self.kubeconfig.clone(), context: None }).await?;
        self.check_alone(&client).await?;
        let watch_selector = self.watch_selector.clone().unwrap_or_default();
        let options = Options {
            leader_election: self.leader_elect.then(|| self.election(config, &watch_selector)),
            watch_selector,
            foreign_class_prefixes: self.foreign_class_prefixes.clone(),
            system_namespace: self.system_namespace.clone(),
            cache_directory: self.cache_directory.clone(),
            compiler: provisioner::compiler()?,
            plain_http_registries: self.plain_http_registries.clone(),
            content: self.content.options(),
            advertised_address: self.advertise_address,
            probe_address: self.monitoring.probe_address,
            metrics: self.monitoring.metrics(),
            receiver: self.receiver.options(),
            tls: self.tls()?,
            follow_tls_profile: self.tls.tls_profile_from.is_some(),
            registries: self.registries()?,
            registry_certificates: self.registry_certs.clone(),
            mirrors_from: self.mirrors_from.clone(),
            catalogs_from: self.catalogs_from.clone(),
            pull_secrets_of: self.pull_secrets_of.clone(),
            content_cache_bytes: self.content_cache_limit,
            stored_release_bytes: self.release_storage_limit,
            concurrency: self.concurrency,
            targets: TargetOptions {
                most: self.target_clusters,
                poll_interval: self.target_poll_interval,
                allow_loopback: self.allow_loopback_targets,
            },
            image_poll_interval: self.image_poll_interval,
            restore_wait: self.restore_wait,
            cluster_poll_interval: self.cluster_poll_interval,
            allow_unsigned: self.allow_unsigned,
            image_rules: image_rules::read(self.image_verification.as_deref(), self.trusted_root.as_deref())?,
            accounts: self.accounts()?,
            require_pull_secret_grant: self.require_pull_secret_grant,
            require_service_account_grant: self.require_service_account_grant,
            decisions_from_config_maps: self.decisions_from_config_maps,
            platform_resolution: self.platform_resolution.clone(),
            platform_account: self.platform_service_account.clone(),
            platform_packages: PlatformPackages {
                allowed: self.platform_packages.iter().cloned().collect(),
                must_be_operators: self.require_platform_property,
            },
            cluster_operators: self.cluster_operators(),
            ..Options::default()
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let shutdown = async {
            // A dropped sender stops the controller, too.
            let _ = stopped.await;
        };
        let mut running = pin!(chandler_controller::run(client, options, shutdown));
        tokio::select! {
            ended = &mut running => return command_result(ended),
            () = signals.received() => {}
        }
        tracing::info!("stopping");
        drop(stop);
        tokio::select! {
            ended = running => command_result(ended),
            () = signals.received() => Err(CommandError::interrupted()),
            () = tokio::time::sleep(GRACE_PERIOD) => {
                Err(CommandError::failed(format!("running reconciles did not end within {} s", GRACE_PERIOD.as_secs())))
            }
        }
    }
}

impl Controller {
    /// Which ServiceAccounts install bundles. The accounts that the options name must be among them.
    ///
    /// # Errors
    /// They are not.
    pub(crate) fn accounts(&self) -> Result<AccountPolicy, CommandError> {
        let policy = AccountPolicy::new(self.require_service_account, self.default_service_account.clone());
        let policy = policy.within(self.accounts_in.iter().cloned()).map_err(|error| {
            CommandError::usage("--default-service-account and --accounts-in exclude each other")
                .because(&error)
                .hint("write --default-service-account NAMESPACE/NAME, with a NAMESPACE of --accounts-in")
        })?;
        let system = &self.system_namespace;
        if let Some(platform) = self.platform_service_account.as_ref().filter(|_| !policy.admits(system)) {
            return Err(CommandError::usage(format!(
                "--platform-service-account {platform} is in the namespace {system}, which --accounts-in does not name"
            ))
            .hint(format!("add --accounts-in {system}")));
        }
        Ok(policy)
    }

    /// How PlatformOperators and this controller are reported.
    fn cluster_operators(&self) -> ClusterOperatorSettings {
        let defaults = ClusterOperatorSettings::default();
        ClusterOperatorSettings {
            mode: match self.cluster_operators {
                ClusterOperators::Aggregated => ClusterOperatorMode::Aggregated,
                ClusterOperators::Each => ClusterOperatorMode::Each,
                ClusterOperators::None => ClusterOperatorMode::None,
            },
            names: ClusterOperatorNames::with_suffix(self.cluster_operator_suffix.clone().unwrap_or_default()),
            version: self.release_version.clone().unwrap_or(defaults.version),
            deprecated_blocks_upgrades: self.deprecated_blocks_upgrades,
            expected: self.expected_platform_operators.iter().cloned().collect(),
            ..defaults
        }
    }

    /// The settings for registries.
    fn registries(&self) -> Result<Registries, CommandError> {
        Registries::read(self.registries_conf.as_deref(), &[]).map_err(|error| {
            CommandError::failed("failed to read the settings for registries")
                .because(&error)
                .hint("docs/sources.md describes the file (--registries-conf)")
        })
    }

    /// The election among the controllers of the same objects.
    fn election(&self, config: kube::Config, selector: &WatchSelector) -> Election {
        // Name and ID of a process may recur, in a restarted container, or in containers that share the network of a node.
        let identity = format!("{}_{}", host_name(), uuid::Uuid::new_v4());
        let connect = move || chandler_client::client(config.clone());
        let election = Election::new(connect, &self.system_namespace, &lease_name(selector), identity);
        if selector.selects_all() {
            return election.among_installations(&self.cluster_lease_namespace, LEASE, &self.system_namespace);
        }
        // The administrator has shared out the objects.
        election
    }

    /// Fails beside the controller of a `chandler dev`: both would reconcile every object. With a selector they can share the cluster.
    async fn check_alone(&self, client: &kube::Client) -> Result<(), CommandError> {
        if self.watch_selector.is_some() {
            return Ok(());
        }
        match dev_controller::process(client, &self.system_namespace).await {
            None => Ok(()),
            Some(holder) => Err(CommandError::failed(format!("a controller already runs on this cluster: {holder}"))
                .hint("use that one; stop it before you start another; or let this one reconcile a part of the objects: --watch-selector")),
        }
    }
}

fn command_result(ended: Result<(), ControllerError>) -> Result<(), CommandError> {
    ended.map_err(|error| {
        let failed = CommandError::failed("the controller failed").because(&error);
        match error {
            ControllerError::Election(ElectionError::Refused {
                source: kube::Error::Api(status), namespace, ..
            }) => failed.hint(lease_hint(status.code, &namespace)),
            _ => failed,
        }
    })
}

/// What helps if the API server refuses the Lease.
fn lease_hint(code: u16, namespace: &str) -> String {
    match code {
        404 => format!(
            "create the namespace {namespace} (`kubectl apply -f deploy/rbac.yaml` creates the system namespace), or name another one with \
             --system-namespace or --cluster-lease-namespace"
        ),
        _ => format!(
            "grant get, create and update on leases in the namespace {namespace} (`kubectl apply -f deploy/rbac.yaml`), or run exactly one \
             controller with --leader-elect=false"
        ),
    }
}

/// The name of this host; in a pod, the name of the pod.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::env::var("HOSTNAME"));
    name.map(|name| name.trim().to_owned()).ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}
