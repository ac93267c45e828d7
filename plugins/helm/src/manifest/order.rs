//! The order of installation.

/// The kinds that Helm knows, those to install first before others.
const KINDS: [&str; 36] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Sorts by kind: known ones in the order of installation, then the others by name. Equal kinds keep their order.
pub(super) fn by_kind<T>(mut items: Vec<T>, kind: impl Fn(&T) -> &str) -> Vec<T> {
    let place = |kind: &str| KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len());
    items.sort_by(|one, other| {
        let (one, other) = (kind(one), kind(other));
        place(one)
            .cmp(&place(other))
            .then_with(|| if place(one) == KINDS.len() { one.cmp(other) } else { std::cmp::Ordering::Equal })
    });
    items
}
