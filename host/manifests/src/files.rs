//! The files of `deploy/`, which are the only source of the objects.

use serde_json::Value;

use crate::{Permissions, Profile, Settings, render::ManifestsError};

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

/// The files that settings select, with the condition.
type Selected = (File, fn(&Settings) -> bool);

/// All files that `chandler manifests` prints. The CRDs come from `chandler_api`, which also generates `deploy/crds.yaml`.
pub(crate) const FILES: &[Selected] = &[
    (file!("rbac.yaml"), |_| true),
    (file!("rbac-users.yaml"), |_| true),
    (file!("rbac-cluster-admin.yaml"), |settings| settings.permissions == Permissions::ClusterAdmin),
    (file!("rbac-watch.yaml"), |settings| settings.watch),
    (file!("rbac-openshift.yaml"), |settings| settings.profile == Profile::OpenShift),
    (file!("rbac-registries.yaml"), |settings| settings.profile == Profile::OpenShift),
    (file!("tenants.yaml"), |settings| settings.profile == Profile::MultiTenant),
    (file!("critical-pods.yaml"), |settings| settings.priority_class.as_deref().is_some_and(is_system)),
    (file!("flow-schemas.yaml"), |_| true),
    (file!("admission-policies.yaml"), |settings| settings.admission_policies),
    (file!("metrics.yaml"), |settings| settings.metrics),
    (file!("content.yaml"), |settings| settings.content),
    (file!("network-policy.yaml"), |settings| settings.network_policy),
    (file!("disruption-budget.yaml"), |_| true),
    (file!("controller.yaml"), |_| true),
    (file!("monitoring-service-monitor.yaml"), |settings| settings.service_monitor),
    (file!("monitoring-rules.yaml"), |settings| settings.rules),
    (file!("monitoring-dashboard.yaml"), |settings| settings.dashboard),
];

/// Whether a priority class is one of Kubernetes itself, which providers may restrict to kube-system.
fn is_system(class: &str) -> bool {
    class.starts_with("system-")
}

impl File {
    /// The objects in the file.
    pub(crate) fn objects(&self) -> Result<Vec<Value>, ManifestsError> {
        serde_saphyr::from_multiple(self.text)
            .map_err(|error| ManifestsError::File { name: self.name, message: error.to_string() })
    }
}
