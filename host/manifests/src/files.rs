//! The files of `deploy/`, which are the only source of the objects.

use serde_json::Value;

use crate::{
    condition::{self, Condition},
    render::ManifestsError,
};

/// A file of `deploy/`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// Its name.
    pub(crate) name: &'static str,
    text: &'static str,
}

macro_rules! file {
    ($name:literal) => {
        File { name: $name, text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/", $name)) }
    };
}

/// All files that `chandler manifests` prints, with the settings that select each. The CRDs come from `chandler_api`, which also generates
/// `deploy/crds.yaml`.
pub(crate) const FILES: &[(File, Condition)] = &[
    (file!("rbac.yaml"), condition::ALWAYS),
    (file!("rbac-users.yaml"), condition::ALWAYS),
    (file!("rbac-cluster-admin.yaml"), condition::CLUSTER_ADMIN),
    (file!("rbac-watch.yaml"), condition::WATCH),
    (file!("rbac-openshift.yaml"), condition::OPENSHIFT),
    (file!("rbac-registries.yaml"), condition::OPENSHIFT),
    (file!("tenants.yaml"), condition::MULTI_TENANT),
    (file!("critical-pods.yaml"), condition::SYSTEM_PRIORITY),
    (file!("flow-schemas.yaml"), condition::ALWAYS),
    (file!("admission-policies.yaml"), condition::ADMISSION_POLICIES),
    (file!("metrics.yaml"), condition::METRICS),
    (file!("content.yaml"), condition::CONTENT),
    (file!("receiver.yaml"), condition::RECEIVER),
    (file!("network-policy.yaml"), condition::NETWORK_POLICY),
    (file!("disruption-budget.yaml"), condition::ALWAYS),
    (file!("controller.yaml"), condition::ALWAYS),
    (file!("monitoring-service-monitor.yaml"), condition::SERVICE_MONITOR),
    (file!("monitoring-rules.yaml"), condition::RULES),
    (file!("monitoring-dashboard.yaml"), condition::DASHBOARD),
];

impl File {
    /// The objects in the file.
    pub(crate) fn objects(&self) -> Result<Vec<Value>, ManifestsError> {
        serde_saphyr::from_multiple(self.text)
            .map_err(|error| ManifestsError::File { name: self.name, message: error.to_string() })
    }
}
