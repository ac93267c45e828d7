//! The resources of the built-in kinds, for use without an API server.

use chandler_api::OwnKind;
use chandler_core::ObjectKey;

/// The resource of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The resource, e.g. `deployments`.
    pub plural: String,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
}

/// The group, its namespaced kinds, its cluster-scoped kinds.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The kinds of Kubernetes 1.36 that can be created, and the kinds of OpenShift that bundles contain.
const KINDS: &[Row] = &[
    (
        "",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
        &["Namespace", "Node", "PersistentVolume"],
    ),
    (
        "admissionregistration.k8s.io",
        &[],
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &[], &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &[], &["APIService"]),
    ("apps", &["ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"], &[]),
    ("autoscaling", &["HorizontalPodAutoscaler"], &[]),
    ("autoscaling.k8s.io", &["VerticalPodAutoscaler"], &[]),
    ("batch", &["CronJob", "Job"], &[]),
    ("certificates.k8s.io", &[], &["CertificateSigningRequest", "ClusterTrustBundle"]),
    (
        "console.openshift.io",
        &[],
        &["ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin", "ConsoleQuickStart", "ConsoleYAMLSample"],
    ),
    ("coordination.k8s.io", &["Lease"], &[]),
    ("discovery.k8s.io", &["EndpointSlice"], &[]),
    ("events.k8s.io", &["Event"], &[]),
    ("flowcontrol.apiserver.k8s.io", &[], &["FlowSchema", "PriorityLevelConfiguration"]),
    ("monitoring.coreos.com", &["PodMonitor", "Probe", "PrometheusRule", "ServiceMonitor"], &[]),
    ("networking.k8s.io", &["Ingress", "NetworkPolicy"], &["IngressClass", "IPAddress", "ServiceCIDR"]),
    ("node.k8s.io", &[], &["RuntimeClass"]),
    ("policy", &["PodDisruptionBudget"], &[]),
    ("rbac.authorization.k8s.io", &["Role", "RoleBinding"], &["ClusterRole", "ClusterRoleBinding"]),
    ("resource.k8s.io", &["ResourceClaim", "ResourceClaimTemplate"], &["DeviceClass", "ResourceSlice"]),
    ("route.openshift.io", &["Route"], &[]),
    ("scheduling.k8s.io", &[], &["PriorityClass"]),
    (
        "storage.k8s.io",
        &["CSIStorageCapacity"],
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"],
    ),
];

/// The resource of a built-in kind, or of one of Chandler, all of which are cluster-scoped.
pub fn built_in(group: &str, kind: &str) -> Option<Kind> {
    if let Some(own) = OwnKind::of(group, kind) {
        return Some(Kind { plural: own.plural().into_owned(), namespaced: false });
    }
    let (_, local, wide) = KINDS.iter().find(|(found, ..)| *found == group)?;
    let namespaced = local.contains(&kind);
    (namespaced || wide.contains(&kind)).then(|| Kind { plural: plural(kind), namespaced })
}

/// The resource of an object: of its built-in kind, or guessed as a namespaced kind with an English plural, which the
/// names of nearly all custom resources follow.
pub fn guess(key: &ObjectKey) -> Kind {
    built_in(&key.group, &key.kind).unwrap_or_else(|| Kind { plural: plural(&key.kind), namespaced: true })
}

/// The plural in lower case, as guessed by `meta.UnsafeGuessKindToResource` of Kubernetes.
fn plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    if singular.ends_with("endpoints") {
        return singular;
    }
    match singular.chars().last() {
        Some('s') => format!("{singular}es"),
        Some('y') => format!("{}ies", singular.trim_end_matches('y')),
        Some(_) => format!("{singular}s"),
        None => singular,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_kinds_have_their_resources() {
        for (group, kind, resource, namespaced) in [
            ("", "Endpoints", "endpoints", true),
            ("", "ConfigMap", "configmaps", true),
            ("", "Namespace", "namespaces", false),
            ("networking.k8s.io", "NetworkPolicy", "networkpolicies", true),
            ("networking.k8s.io", "Ingress", "ingresses", true),
            ("networking.k8s.io", "IPAddress", "ipaddresses", false),
            ("scheduling.k8s.io", "PriorityClass", "priorityclasses", false),
            ("storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", true),
            ("core.deppy.io", "Resolution", "resolutions", false),
            ("platform.openshift.io", "PlatformOperator", "platformoperators", false),
        ] {
            let found = built_in(group, kind);
            assert_eq!(found, Some(Kind { plural: resource.to_owned(), namespaced }), "{kind}.{group}");
        }
        assert_eq!(built_in("", "Deployment"), None);
        assert_eq!(built_in("example.com", "ConfigMap"), None);
    }

    #[test]
    fn other_kinds_are_guessed_as_namespaced() {
        let key = |kind: &str| ObjectKey {
            group: "example.com".into(),
            kind: kind.into(),
            namespace: None,
            name: "x".into(),
            version: "v1".into(),
        };
        for (kind, resource) in [("Lighthouse", "lighthouses"), ("Proxy", "proxies"), ("Bus", "buses")] {
            assert_eq!(guess(&key(kind)), Kind { plural: resource.to_owned(), namespaced: true });
        }
    }
}
