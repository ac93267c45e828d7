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
    let crds: Result<Vec<Value>, _> = chandler_api::crds().iter().map(serde_json::to_value).collect();
    let mut objects = crds.map_err(ManifestsError::Crd)?;
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

/// The place of an object in [`ORDER`].
pub(crate) fn rank(object: &Value) -> usize {
    let kind = object.get("kind").and_then(Value::as_str);
    ORDER.iter().position(|known| kind == Some(known)).unwrap_or(ORDER.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, SETTINGS};

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

    #[test]
    fn every_setting_changes_something_or_is_the_default() {
        let examples = [
            ("image", "registry.corp.example/chandler:v1"),
            ("imagePullSecret", "pull"),
            ("namespace", "platform-chandler"),
            ("replicas", "3"),
            ("permissions", "cluster-admin"),
            ("admissionPolicies", "false"),
            ("watch", "true"),
            ("metrics", "false"),
            ("metrics.tlsSecret", "metrics"),
            ("content", "true"),
            ("cache.claim", "cache"),
            ("logFormat", "text"),
            ("priorityClass", "platform"),
            ("resources.requests.cpu", "1"),
            ("resources.requests.memory", "1Gi"),
            ("resources.limits.cpu", "2"),
            ("resources.limits.memory", "2Gi"),
            ("nodeSelector", "node-role.kubernetes.io/infra="),
            ("tolerations", "node-role.kubernetes.io/infra"),
            ("networkPolicy", "false"),
            ("monitoring.serviceMonitor", "true"),
            ("monitoring.rules", "true"),
            ("monitoring.dashboard", "true"),
            ("arg", "--concurrency=16"),
        ];
        let keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
        assert_eq!(keys, examples.map(|(key, _)| key));
        let before = objects(&Settings::of(Profile::Standalone)).unwrap();
        for (key, value) in examples {
            let mut settings = Settings::of(Profile::Standalone);
            settings.set(&format!("{key}={value}")).unwrap();
            assert_ne!(objects(&settings).unwrap(), before, "{key}");
        }
    }
}
