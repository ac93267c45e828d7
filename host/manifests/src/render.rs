//! From settings to objects.

use serde_json::Value;

use crate::{SettingError, Settings, adapt::adapt, files::FILES};

/// The objects cannot be printed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    /// The settings are wrong.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A file in this program is not what the program expects, which is a bug.
    #[error("deploy/{name} in this program is wrong: {message}")]
    File {
        /// The file.
        name: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The chart cannot be written, which is a bug.
    #[error("the chart cannot be written: {message}")]
    Chart {
        /// What is wrong.
        message: String,
    },
    /// YAML cannot be written, which is a bug.
    #[error("YAML cannot be written: {message}")]
    Yaml {
        /// What is wrong.
        message: String,
    },
    /// The CRDs cannot be written as JSON, which is a bug.
    #[error("a CRD cannot be written")]
    Crd(#[source] serde_json::Error),
}

/// The kinds in the order in which they are applied: what others refer to comes first, and what an API server may not serve comes last.
pub(crate) const ORDER: &[&str] = &[
    "Namespace",
    "CustomResourceDefinition",
    "ResourceQuota",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "FlowSchema",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "NetworkPolicy",
    "Service",
    "ConfigMap",
    "PodDisruptionBudget",
    "Deployment",
    "ServiceMonitor",
    "PrometheusRule",
];

/// All objects that a cluster needs to run the controller with these settings, in an order that can be applied.
///
/// # Errors
/// The settings contradict each other.
pub fn objects(settings: &Settings) -> Result<Vec<Value>, ManifestsError> {
    settings.check()?;
    let mut objects = crds()?;
    for (file, _) in FILES.iter().filter(|(_, selected)| (selected.holds)(settings)) {
        for object in file.objects()? {
            let adapted = adapt(object, settings);
            let adapted = adapted.map_err(|message| ManifestsError::File { name: file.name, message })?;
            objects.extend(adapted);
        }
    }
    objects.sort_by_key(rank);
    Ok(objects)
}

/// The CRDs.
pub(crate) fn crds() -> Result<Vec<Value>, ManifestsError> {
    let crds: Result<Vec<Value>, _> = chandler_api::crds().iter().map(serde_json::to_value).collect();
    crds.map_err(ManifestsError::Crd)
}

/// The place of an object in [`ORDER`].
pub(crate) fn rank(object: &Value) -> usize {
    let kind = object.get("kind").and_then(Value::as_str);
    ORDER.iter().position(|known| kind == Some(known)).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_has_objects_of_kinds_with_a_place_in_the_order() {
        for (file, _) in FILES {
            let objects = file.objects().unwrap();
            assert!(!objects.is_empty(), "{}", file.name);
            for object in objects {
                assert!(rank(&object) < ORDER.len(), "{}: {}", file.name, object["kind"]);
            }
        }
    }
}
