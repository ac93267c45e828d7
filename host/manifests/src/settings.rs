//! What users choose.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;

use crate::{NAMESPACE, PLACEHOLDER, Profile, VERSION, condition::CONTRADICTIONS, table::SETTINGS};

/// A setting is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// It is not `KEY=VALUE`.
    #[error("{0:?} is not a setting: write KEY=VALUE")]
    Syntax(String),
    /// There is no such key.
    #[error("there is no setting {0:?}")]
    Unknown(String),
    /// The value has another syntax.
    #[error("{value:?} is not a value of {key}: {wanted}")]
    Value {
        /// The setting.
        key: &'static str,
        /// What was written.
        value: String,
        /// What to write.
        wanted: String,
    },
    /// Two settings contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
}

/// Which permissions the controller has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// The permissions of `deploy/rbac.yaml`: every BundleDeployment names a ServiceAccount.
    #[default]
    ServiceAccounts,
    /// All: every user who may create a BundleDeployment is an administrator of the cluster.
    ClusterAdmin,
}

impl Permissions {
    /// The value of the setting.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ServiceAccounts => "service-accounts",
            Self::ClusterAdmin => "cluster-admin",
        }
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object per line.
    #[default]
    Json,
    /// Human-readable text.
    Text,
}

impl LogFormat {
    /// The value of the setting.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
        }
    }
}

/// Requests and limits of the container, as quantities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resources {
    /// `requests.cpu`.
    pub requests_cpu: String,
    /// `requests.memory`.
    pub requests_memory: String,
    /// `limits.cpu`; `None` is unlimited.
    pub limits_cpu: Option<String>,
    /// `limits.memory`.
    pub limits_memory: String,
}

impl Default for Resources {
    fn default() -> Self {
        Self {
            requests_cpu: "100m".to_owned(),
            requests_memory: "256Mi".to_owned(),
            limits_cpu: None,
            limits_memory: "1Gi".to_owned(),
        }
    }
}

/// What users choose; see [`SETTINGS`] for the meaning of each.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Settings {
    /// The profile, which also decided the defaults.
    pub profile: Profile,
    /// The image; `None` is the placeholder.
    pub image: Option<String>,
    /// The Secret that the image is pulled with.
    pub image_pull_secret: Option<String>,
    /// The namespace of the controller.
    pub namespace: String,
    /// The number of replicas; `None` is the number that fits the other settings.
    pub replicas: Option<u8>,
    /// The permissions of the controller.
    pub permissions: Permissions,
    /// Whether the admission policies are printed.
    pub admission_policies: bool,
    /// Whether the controller may watch the kinds of most bundles.
    pub watch: bool,
    /// Whether metrics are served.
    pub metrics: bool,
    /// The Secret with the certificate of the metrics.
    pub metrics_tls_secret: Option<String>,
    /// Whether content is served.
    pub content: bool,
    /// Whether webhooks are received.
    pub receiver: bool,
    /// The Secret with the certificate for webhooks.
    pub receiver_tls_secret: Option<String>,
    /// The claim of the volume with the caches; `None` is a volume that ends with the Pod.
    pub cache_claim: Option<String>,
    /// The format of log lines.
    pub log_format: LogFormat,
    /// The priority class of the Pods.
    pub priority_class: Option<String>,
    /// Requests and limits.
    pub resources: Resources,
    /// Labels of nodes, in addition to the operating system.
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that do not matter.
    pub tolerations: Vec<Toleration>,
    /// Whether a NetworkPolicy is printed.
    pub network_policy: bool,
    /// Whether a ServiceMonitor is printed.
    pub service_monitor: bool,
    /// Whether a PrometheusRule is printed.
    pub rules: bool,
    /// Whether a dashboard is printed.
    pub dashboard: bool,
    /// Further options of `chandler controller`.
    pub arguments: Vec<String>,
}

impl Settings {
    /// The defaults of a profile.
    pub fn of(profile: Profile) -> Self {
        let monitored = profile.is_monitored();
        Self {
            profile,
            image: None,
            image_pull_secret: None,
            namespace: NAMESPACE.to_owned(),
            replicas: None,
            permissions: Permissions::default(),
            admission_policies: true,
            watch: false,
            metrics: true,
            metrics_tls_secret: None,
            content: false,
            receiver: false,
            receiver_tls_secret: None,
            cache_claim: None,
            log_format: LogFormat::default(),
            priority_class: Some("system-cluster-critical".to_owned()),
            resources: Resources::default(),
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            network_policy: true,
            service_monitor: monitored,
            rules: monitored,
            dashboard: false,
            arguments: Vec::new(),
        }
    }

    /// Changes a setting: `KEY=VALUE`. A later one replaces an earlier one, except for `arg`, which collects its values.
    ///
    /// # Errors
    /// The key does not exist, or the value has another syntax.
    pub fn set(&mut self, setting: &str) -> Result<(), SettingError> {
        let (key, value) = setting.split_once('=').ok_or_else(|| SettingError::Syntax(setting.to_owned()))?;
        let known = SETTINGS.iter().find(|known| known.key == key);
        let known = known.ok_or_else(|| SettingError::Unknown(key.to_owned()))?;
        let refused = |wanted| SettingError::Value { key: known.key, value: value.to_owned(), wanted };
        (known.change)(self, value).map_err(refused)
    }

    /// Refuses settings that contradict each other.
    ///
    /// # Errors
    /// [`SettingError::Contradiction`].
    pub fn check(&self) -> Result<(), SettingError> {
        let found = CONTRADICTIONS.iter().find(|found| (found.condition.holds)(self));
        found.map_or(Ok(()), |found| Err(SettingError::Contradiction(found.message)))
    }

    /// The image: the one that was chosen, or the placeholder with the version of this build.
    pub fn image(&self) -> String {
        self.image.clone().unwrap_or_else(|| format!("{PLACEHOLDER}:v{VERSION}"))
    }

    /// The number of replicas. A claim is not assumed to be usable on several nodes.
    pub fn replicas(&self) -> u8 {
        self.replicas.unwrap_or(if self.cache_claim.is_some() { 1 } else { 2 })
    }
}
