//! The order of kinds inside a stage, and of the members of a set.
//!
//! The thirteen phases of OLM v1's applier (`internal/operator-controller/applier/phase.go`): kinds that other kinds need come
//! first, kinds that expose or intercept come last, and every kind that the table does not name is applied with the workloads.

use std::fmt;

use crate::{Object, ObjectKey};

/// On a BundleDeployment of a set: the names of the members of the set that must be healthy before it is created, with commas between
/// them. It waits for these members, and for no other member of an earlier stage.
pub const DEPENDS_ON_ANNOTATION: &str = "resolveset.chandler.dev/depends-on";

/// The place of an object in a sequence, as `NAME/NUMBER`. Within their stage the objects of one sequence are applied one after the other, by their
/// numbers and not by their kinds; sequences do not wait for one another. The host reads it and removes it from the object.
pub const SEQUENCE_ANNOTATION: &str = "chandler.dev/sequence";

/// With the value `true` on an object: it is created if it does not exist, and never changed. The host reads it and removes it from the object.
pub const CREATE_ONLY_ANNOTATION: &str = "chandler.dev/create-only";

/// The place of an object in a sequence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The name of the sequence.
    pub sequence: String,
    /// The number of the object in it.
    pub number: u32,
}

impl Place {
    /// Parses the value of [`SEQUENCE_ANNOTATION`]; `None` if it has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let (sequence, number) = text.rsplit_once('/')?;
        Some(Self { sequence: sequence.to_owned(), number: number.parse().ok()? })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.sequence, self.number)
    }
}

/// A group of kinds that are applied together. The variants are in the order of application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Namespaces.
    Namespaces,
    /// Kinds that limit other objects: NetworkPolicy, PodDisruptionBudget, PriorityClass, ResourceQuota, LimitRange.
    Policies,
    /// ServiceAccounts.
    Identity,
    /// Secrets and ConfigMaps.
    Configuration,
    /// Volumes, claims and storage classes.
    Storage,
    /// CustomResourceDefinitions.
    CustomResourceDefinitions,
    /// Roles and ClusterRoles.
    Roles,
    /// RoleBindings and ClusterRoleBindings.
    Bindings,
    /// Services and certificates.
    Infrastructure,
    /// Workloads, and every kind that no other phase names.
    Deploy,
    /// Autoscalers.
    Scaling,
    /// Ingresses, routes, monitoring and console.
    Publish,
    /// Webhook configurations and admission policies.
    Admission,
}

/// The phase of a kind.
pub fn phase(group: &str, kind: &str) -> Phase {
    match (group, kind) {
        ("", "Namespace") => Phase::Namespaces,
        ("networking.k8s.io", "NetworkPolicy")
        | ("policy", "PodDisruptionBudget")
        | ("scheduling.k8s.io", "PriorityClass")
        | ("", "ResourceQuota" | "LimitRange") => Phase::Policies,
        ("", "ServiceAccount") => Phase::Identity,
        ("", "Secret" | "ConfigMap") => Phase::Configuration,
        ("", "PersistentVolume" | "PersistentVolumeClaim") | ("storage.k8s.io", "StorageClass") => Phase::Storage,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Phase::CustomResourceDefinitions,
        ("rbac.authorization.k8s.io", "ClusterRole" | "Role") => Phase::Roles,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => Phase::Bindings,
        ("", "Service") | ("cert-manager.io", "Issuer" | "ClusterIssuer" | "Certificate") => Phase::Infrastructure,
        ("autoscaling.k8s.io", "VerticalPodAutoscaler") | ("autoscaling", "HorizontalPodAutoscaler") => Phase::Scaling,
        ("monitoring.coreos.com", "PrometheusRule" | "ServiceMonitor" | "PodMonitor")
        | ("networking.k8s.io", "Ingress")
        | ("route.openshift.io", "Route")
        | (
            "console.openshift.io",
            "ConsoleYAMLSample" | "ConsoleQuickStart" | "ConsoleCLIDownload" | "ConsoleLink" | "ConsolePlugin",
        ) => Phase::Publish,
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration"
            | "MutatingWebhookConfiguration"
            | "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding",
        )
        | ("apiregistration.k8s.io", "APIService") => Phase::Admission,
        _ => Phase::Deploy,
    }
}

/// The phase of an object.
pub fn phase_of(key: &ObjectKey) -> Phase {
    phase(&key.group, &key.kind)
}

/// Sorts objects in the order of application: by stage, phase, group, version, kind, namespace and name.
pub fn sort(objects: &mut [Object]) {
    objects.sort_by(|a, b| rank(a).cmp(&rank(b)));
}

fn rank(object: &Object) -> (u32, Phase, &str, &str, &str, Option<&str>, &str) {
    let key = &object.key;
    (object.stage, phase_of(key), &key.group, &key.version, &key.kind, key.namespace.as_deref(), &key.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_come_first() {
        let order = [
            phase("", "Namespace"),
            phase("", "ServiceAccount"),
            phase("", "ConfigMap"),
            phase("apiextensions.k8s.io", "CustomResourceDefinition"),
            phase("rbac.authorization.k8s.io", "ClusterRole"),
            phase("rbac.authorization.k8s.io", "RoleBinding"),
            phase("", "Service"),
            phase("apps", "Deployment"),
            phase("example.com", "Anything"),
            phase("networking.k8s.io", "Ingress"),
            phase("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ];
        assert!(order.is_sorted());
    }

    #[test]
    fn a_place_is_written_as_it_is_read() {
        for (text, place) in [
            ("olm/3", Some(("olm", 3))),
            ("/0", Some(("", 0))),
            ("a/b/1", Some(("a/b", 1))),
            ("olm", None),
            ("olm/-1", None),
        ] {
            let parsed = Place::parse(text);
            assert_eq!(parsed.as_ref().map(|it| (it.sequence.as_str(), it.number)), place, "{text}");
            assert!(parsed.is_none_or(|it| it.to_string() == text));
        }
    }

    #[test]
    fn the_group_of_a_kind_counts() {
        assert_eq!(phase("example.com", "Secret"), Phase::Deploy);
    }
}
