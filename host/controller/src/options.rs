//! The options that an administrator sets.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use chandler_api::OlmCatalogs;
use chandler_certificates::Policy;
use chandler_core::Digest;
use chandler_engine::{Compiler, Limits};
use chandler_permissions::AccountPolicy;
use chandler_registries::Registries;
use chandler_releases::Budget;
use chandler_runtime::{Election, WatchSelector};
use chandler_source::ImageRules;
use chandler_tls::TlsSettings;

use crate::{ClusterOperatorSettings, MirrorSets};

/// The Lease of controllers without a selector, in their system namespace. All of them on a cluster share a second one of this name in
/// [`INSTALLATIONS_NAMESPACE`], since two system namespaces do not see each other's Leases.
pub const LEASE: &str = "chandler-controller";

/// The namespace of the Lease that all installations of a cluster share: a namespace that every cluster has, and in which only
/// administrators can write.
pub const INSTALLATIONS_NAMESPACE: &str = "kube-system";

/// How the controller runs.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option")]
pub struct Options {
    /// Selects by label the BundleDeployments, ProvisionerClasses, Catalogs, Resolutions and PlatformOperators that this controller reconciles. It neither reads nor writes
    /// others. Default: all. Several controllers on one cluster need disjoint selectors and a cache directory each.
    pub watch_selector: WatchSelector,
    /// The election that this controller waits to win, and whose Lease it holds while it runs. Default: none, for a controller that runs
    /// alone.
    pub leader_election: Option<Election>,
    /// BundleDeployments whose class begins with one of these are left alone, unless this controller installed them: another provisioner
    /// handles them. Default: none. The status of such a BundleDeployment says so if its class does not exist.
    pub foreign_class_prefixes: Vec<String>,
    /// The namespace of pull secrets and content ConfigMaps. Default `chandler-system`.
    pub system_namespace: String,
    /// The directory for cached content, compiled code and releases. It can be deleted while no controller runs.
    pub cache_directory: PathBuf,
    /// Where untrusted components are compiled. Default: in this process; the command uses a limited child process.
    pub compiler: Compiler,
    /// The content service. Default: none.
    pub content: Option<chandler_serve::Options>,
    /// The address of this replica for the others, in a Pod its own, for services that listen on all addresses. Default: none, and replicas
    /// that wait serve neither content nor webhooks then.
    pub advertised_address: Option<IpAddr>,
    /// The address on which the probes of the kubelet are answered over HTTP. Default: none.
    pub probe_address: Option<SocketAddr>,
    /// Where metrics are served. Default: nowhere.
    pub metrics: Option<chandler_serve::ServiceOptions>,
    /// Where webhooks of registries and git servers are received. Default: nowhere.
    pub receiver: Option<chandler_serve::ServiceOptions>,
    /// What TLS connections may negotiate: those that this controller accepts, and those to registries and web servers. Default: TLS 1.2 and
    /// 1.3. Connections to the API server use the process-wide default of rustls ([`TlsSettings::install`]).
    pub tls: TlsSettings,
    /// Whether accepted connections follow the TLS profile of an OpenShift cluster instead of [`tls`](Self::tls). Default: no.
    pub follow_tls_profile: bool,
    /// Registries, as `host` or `host:port`, that are accessed without TLS. On loopback, only a registry that
    /// asks for credentials must be listed.
    pub plain_http_registries: Vec<String>,
    /// Mirrors, blocked and insecure registries. Default none.
    pub registries: Registries,
    /// Directories with certificates for registries, as containers-certs.d(5) describes them. Default none.
    pub registry_certificates: Vec<PathBuf>,
    /// The kinds of mirror sets of the cluster that are read. Default none.
    pub mirrors_from: Vec<MirrorSets>,
    /// The kinds of catalogs of OLM that are used like Catalogs. Default none.
    pub catalogs_from: Vec<OlmCatalogs>,
    /// The ServiceAccount of the system namespace whose pull secrets are used for images whose source names none. Default none: then
    /// they are pulled anonymously.
    pub pull_secrets_of: Option<String>,
    /// The most bytes of content on the disk, what is in use and what is being fetched included. Nothing is written beyond. Unused content is removed
    /// beyond half of it. Default 8 GiB; `deploy/controller.yaml` gives the volume of the caches a higher limit.
    pub content_cache_bytes: u64,
    /// The maximum size of all indexes of catalogs in bytes. A catalog that does not fit is refused. Default 1 GiB.
    pub catalog_index_bytes: u64,
    /// The budgets of the cache of releases.
    pub releases: Budget,
    /// The most bytes of records and releases in Secrets of the system namespace, for the accounts of one namespace together, or for each account
    /// where [`accounts`](Self::accounts) limits their namespaces. Beyond it no further revision begins. What is installed with the permissions
    /// of the controller does not count. Default 256 MiB.
    pub stored_release_bytes: u64,
    /// The number of BundleDeployments that are reconciled at once. Default 8.
    pub concurrency: u16,
    /// The interval at which a tag is resolved again. Default ten minutes.
    pub image_poll_interval: Duration,
    /// How long a BundleDeployment that was restored from a backup waits for the objects that its record lists. Default ten minutes.
    pub restore_wait: Duration,
    /// The interval at which the version and the kinds of the API server are read. If they changed, every BundleDeployment is
    /// reconciled. Default five minutes.
    pub cluster_poll_interval: Duration,
    /// Whether components of ProvisionerClasses run without a verified signature. Default no.
    pub allow_unsigned: bool,
    /// The signatures that images of bundles and catalogs must have, in addition to the signatures that their sources require. Default:
    /// none, and the trusted root of Sigstore's public instance.
    pub image_rules: ImageRules,
    /// Which ServiceAccounts install BundleDeployments, and how the ones that name none are installed. Default: all, and with the
    /// controller's permissions.
    pub accounts: AccountPolicy,
    /// Whether a pull secret needs an annotation that grants its use. Default no: every BundleDeployment may reference a Secret without the
    /// annotation.
    pub require_pull_secret_grant: bool,
    /// Whether a ServiceAccount needs an annotation that grants its use. Default no: every BundleDeployment may name a ServiceAccount
    /// without the annotations.
    pub require_service_account_grant: bool,
    /// Whether ConfigMaps of the system namespace may decide sets. Default no: with this, the admission policies of deploy/ must be in
    /// force, since the author of such a ConfigMap names the account that installs the set.
    pub decisions_from_config_maps: bool,
    /// The lifetime of serving certificates that releases request, and when they are replaced.
    pub certificates: Policy,
    /// The name of the Resolution that this controller makes from all PlatformOperators, and of the namespace for their dependencies.
    /// Default `platform-operators`. Controllers with disjoint selectors need a name each.
    pub platform_resolution: String,
    /// The ServiceAccount of the system namespace that installs the packages of PlatformOperators. Default: as for a BundleDeployment that
    /// names none.
    pub platform_account: Option<String>,
    /// Which packages PlatformOperators may want.
    pub platform_packages: PlatformPackages,
    /// The ClusterOperators that report PlatformOperators and the controller, if the cluster serves the kind.
    pub cluster_operators: ClusterOperatorSettings,
    /// Whether and how bundles are installed into other clusters.
    pub targets: TargetOptions,
    /// The upper bounds of the limits that a class sets for one call of its provisioner.
    pub ceiling: Limits,
}

/// The name of the Lease of controllers with this selector, in the system namespace: controllers that reconcile different objects have
/// different Leases.
pub fn lease_name(selector: &WatchSelector) -> String {
    if selector.selects_all() {
        return LEASE.to_owned();
    }
    format!("{LEASE}-{}", Digest::of(selector.to_string().as_bytes()).short())
}

impl Options {
    /// The bytes of content beyond which unused content is removed.
    pub(crate) fn unused_content_bytes(&self) -> u64 {
        self.content_cache_bytes / 2
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            watch_selector: WatchSelector::default(),
            leader_election: None,
            foreign_class_prefixes: Vec::new(),
            system_namespace: "chandler-system".to_owned(),
            cache_directory: PathBuf::from("/var/cache/chandler"),
            compiler: Compiler::InProcess,
            content: None,
            advertised_address: None,
            probe_address: None,
            metrics: None,
            receiver: None,
            tls: TlsSettings::default(),
            follow_tls_profile: false,
            plain_http_registries: Vec::new(),
            registries: Registries::default(),
            registry_certificates: Vec::new(),
            mirrors_from: Vec::new(),
            catalogs_from: Vec::new(),
            pull_secrets_of: None,
            content_cache_bytes: 8 << 30,
            catalog_index_bytes: 1 << 30,
            releases: Budget::default(),
            stored_release_bytes: 256 << 20,
            concurrency: 8,
            image_poll_interval: Duration::from_mins(10),
            restore_wait: Duration::from_mins(10),
            cluster_poll_interval: Duration::from_mins(5),
            allow_unsigned: false,
            image_rules: ImageRules::default(),
            accounts: AccountPolicy::default(),
            require_pull_secret_grant: false,
            require_service_account_grant: false,
            decisions_from_config_maps: false,
            certificates: Policy::default(),
            platform_resolution: "platform-operators".to_owned(),
            platform_account: None,
            platform_packages: PlatformPackages::default(),
            cluster_operators: ClusterOperatorSettings::default(),
            targets: TargetOptions::default(),
            ceiling: Limits::default(),
        }
    }
}

/// Whether and how bundles are installed into other clusters (`spec.kubeConfig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetOptions {
    /// The maximum number of kubeconfigs in use. Default 0: bundles are installed into this cluster only. The answers of
    /// each cluster may take 8 MiB of memory, and 384 MiB of all together.
    pub most: u16,
    /// How often objects in another cluster are compared with their release: they are not watched. Default one minute.
    pub poll_interval: Duration,
    /// Whether a kubeconfig may name a server on this machine (loopback), as in tests. Default no.
    pub allow_loopback: bool,
}

impl Default for TargetOptions {
    fn default() -> Self {
        Self { most: 0, poll_interval: Duration::from_mins(1), allow_loopback: false }
    }
}

/// Which packages PlatformOperators may want. Installed packages stay, even if this is changed later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformPackages {
    /// The only packages; empty means all.
    pub allowed: BTreeSet<String>,
    /// Whether a catalog must say that a package is a platform operator. Default: no.
    pub must_be_operators: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_of_different_objects_have_different_leases() {
        let name = |selector: &str| lease_name(&selector.parse().unwrap());
        assert_eq!(lease_name(&WatchSelector::default()), "chandler-controller");
        assert_eq!(name("shard=a"), name("shard=a"));
        assert_ne!(name("shard=a"), name("shard=b"));
        for selector in ["shard=a", "shard in (a,b),!other"] {
            let name = name(selector);
            assert!(name.starts_with("chandler-controller-") && name.len() <= 63, "{name}");
        }
    }
}
