//! What an administrator sets.

use std::{path::PathBuf, time::Duration};

use chandler_certificates::Policy;
use chandler_engine::{Compiler, Limits};
use chandler_permissions::AccountPolicy;
use chandler_releases::Budget;

use crate::WatchSelector;

/// How the controller runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// The BundleDeployments and ProvisionerClasses that this controller works on, by their labels. It neither reads nor writes
    /// others. Default all of them. Whoever runs several controllers on a cluster gives them selectors of which no two select
    /// the same object, and a cache directory each.
    pub watch_selector: WatchSelector,
    /// Where pull secrets and content ConfigMaps are looked up. Default `chandler-system`.
    pub system_namespace: String,
    /// Where content, compiled code and releases are cached. What is in it can be deleted at any time while nothing runs.
    pub cache_directory: PathBuf,
    /// Where untrusted components are compiled. Default: in this process; the command uses a limited child process.
    pub compiler: Compiler,
    /// Registries, as `host` or `host:port`, that are spoken to without TLS. Those on loopback always may be.
    pub plain_http_registries: Vec<String>,
    /// How many bytes of content are kept on the disk, beside what is in use. Default 4 GiB.
    pub content_cache_bytes: u64,
    /// How much of the releases that were made is kept.
    pub releases: Budget,
    /// How many BundleDeployments are worked on at once. Default 8.
    pub concurrency: u16,
    /// How often a tag is resolved again. Default ten minutes.
    pub image_poll_interval: Duration,
    /// How often the version and the kinds of the API server are looked at. Where they are others than before, every
    /// BundleDeployment is rendered again. Default five minutes.
    pub cluster_poll_interval: Duration,
    /// Whether ProvisionerClasses are used although nobody verified a signature. Default no.
    pub allow_unsigned: bool,
    /// What is done about BundleDeployments that name no ServiceAccount. Default: they are installed with the rights of the
    /// controller.
    pub accounts: AccountPolicy,
    /// Whether a pull secret can be named only by those whom its annotation names. Default no: one without the annotation
    /// can be named by all.
    pub require_pull_secret_grant: bool,
    /// How long the serving certificates live that releases ask for, and when they are replaced.
    pub certificates: Policy,
    /// What one call of a provisioner may use at the most, whatever its class says.
    pub ceiling: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            watch_selector: WatchSelector::default(),
            system_namespace: "chandler-system".to_owned(),
            cache_directory: PathBuf::from("/var/cache/chandler"),
            compiler: Compiler::InProcess,
            plain_http_registries: Vec::new(),
            content_cache_bytes: 4 << 30,
            releases: Budget::default(),
            concurrency: 8,
            image_poll_interval: Duration::from_mins(10),
            cluster_poll_interval: Duration::from_mins(5),
            allow_unsigned: false,
            accounts: AccountPolicy::default(),
            require_pull_secret_grant: false,
            certificates: Policy::default(),
            ceiling: Limits::default(),
        }
    }
}
