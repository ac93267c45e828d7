//! The kinds that a registry+v1 bundle may contain besides its ClusterServiceVersion and its CRDs.
//!
//! The list and its scopes come from `operator-registry/pkg/lib/bundle/supported_resources.go`. Kinds are compared
//! by name alone: a Role of another API group counts as the well-known one.

/// A kind that a bundle may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SupportedKind {
    /// Its name.
    pub(crate) kind: &'static str,
    /// Whether its objects are namespaced, and so installed in the install namespace.
    pub(crate) namespaced: bool,
    /// Its apiVersion; the probable one of an object without an apiVersion.
    pub(crate) api_version: &'static str,
}

/// The kind with this name, if a bundle may contain it.
pub(crate) fn supported(kind: &str) -> Option<SupportedKind> {
    SUPPORTED.iter().find(|supported| supported.kind == kind).copied()
}

const fn namespaced(kind: &'static str, api_version: &'static str) -> SupportedKind {
    SupportedKind { kind, namespaced: true, api_version }
}

const fn cluster(kind: &'static str, api_version: &'static str) -> SupportedKind {
    SupportedKind { kind, namespaced: false, api_version }
}

const SUPPORTED: &[SupportedKind] = &[
    namespaced("ClusterServiceVersion", "operators.coreos.com/v1alpha1"),
    namespaced("ConfigMap", "v1"),
    namespaced("NetworkPolicy", "networking.k8s.io/v1"),
    namespaced("PodDisruptionBudget", "policy/v1"),
    namespaced("PodMonitor", "monitoring.coreos.com/v1"),
    namespaced("PrometheusRule", "monitoring.coreos.com/v1"),
    namespaced("Role", "rbac.authorization.k8s.io/v1"),
    namespaced("RoleBinding", "rbac.authorization.k8s.io/v1"),
    namespaced("Secret", "v1"),
    namespaced("Service", "v1"),
    namespaced("ServiceAccount", "v1"),
    namespaced("ServiceMonitor", "monitoring.coreos.com/v1"),
    cluster("ClusterRole", "rbac.authorization.k8s.io/v1"),
    cluster("ClusterRoleBinding", "rbac.authorization.k8s.io/v1"),
    cluster("ConsoleCLIDownload", "console.openshift.io/v1"),
    cluster("ConsoleLink", "console.openshift.io/v1"),
    cluster("ConsolePlugin", "console.openshift.io/v1"),
    cluster("ConsoleQuickStart", "console.openshift.io/v1"),
    cluster("ConsoleYAMLSample", "console.openshift.io/v1"),
    cluster("CustomResourceDefinition", "apiextensions.k8s.io/v1"),
    cluster("PriorityClass", "scheduling.k8s.io/v1"),
    // This kind is namespaced; the list is wrong.
    cluster("VerticalPodAutoscaler", "autoscaling.k8s.io/v1"),
];

/// The current version for a removed API version with the same schema. Published bundles contain some of each.
pub(crate) fn current_api_version(api_version: &str, kind: &str) -> Option<&'static str> {
    Some(match (api_version, kind) {
        (
            "rbac.authorization.k8s.io/v1beta1" | "rbac.authorization.k8s.io/v1alpha1",
            "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding",
        ) => "rbac.authorization.k8s.io/v1",
        ("policy/v1beta1", "PodDisruptionBudget") => "policy/v1",
        ("extensions/v1beta1", "NetworkPolicy") => "networking.k8s.io/v1",
        ("scheduling.k8s.io/v1beta1" | "scheduling.k8s.io/v1alpha1", "PriorityClass") => "scheduling.k8s.io/v1",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_api_versions() {
        assert_eq!(current_api_version("policy/v1beta1", "PodDisruptionBudget"), Some("policy/v1"));
        assert_eq!(current_api_version("policy/v1beta1", "PodSecurityPolicy"), None);
        assert_eq!(current_api_version("policy/v1", "PodDisruptionBudget"), None);
    }

    #[test]
    fn twenty_two_kinds_by_name_alone() {
        assert_eq!(SUPPORTED.len(), 22);
        assert_eq!(SUPPORTED.iter().filter(|kind| kind.namespaced).count(), 12);
        assert!(supported("Secret").is_some_and(|kind| kind.namespaced));
        assert!(supported("ClusterRole").is_some_and(|kind| !kind.namespaced));
        for refused in ["Deployment", "Job", "Namespace", "configmap", ""] {
            assert_eq!(supported(refused), None, "{refused}");
        }
    }
}
