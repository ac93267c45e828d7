//! The resources that a cluster serves: names, scope, subresources.

use std::fmt;

use crate::schema::{model::Schema, table};

/// A kind, fully named.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: String,
    /// API version, e.g. `v1`.
    pub version: String,
    /// Kind, e.g. `Deployment`.
    pub kind: String,
}

impl GroupVersionKind {
    /// Names a kind.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Reads `apiVersion` (`v1`, `apps/v1`) and `kind`.
    pub fn from_api_version(api_version: &str, kind: impl Into<String>) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// The value of `apiVersion`: `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

/// Where the scale subresource finds its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// Path of the wanted number, e.g. `.spec.replicas`.
    pub spec_replicas: String,
    /// Path of the actual number, e.g. `.status.replicas`.
    pub status_replicas: String,
    /// Path of the selector: a string in custom resources, a LabelSelector or a map in built-in ones.
    pub label_selector: Option<String>,
}

/// A resource as discovery shows it, with its type.
#[derive(Debug, Clone)]
pub struct ResourceType {
    /// Its kind.
    pub group_version_kind: GroupVersionKind,
    /// The name in URLs, e.g. `deployments`.
    pub plural: String,
    /// The name for one object, e.g. `deployment`.
    pub singular: String,
    /// Abbreviations, e.g. `deploy`.
    pub short_names: Vec<String>,
    /// Groups of resources such as `all`.
    pub categories: Vec<String>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether there is a `status` subresource: the main endpoint then ignores `status`.
    pub status: bool,
    /// The scale subresource, if any.
    pub scale: Option<Scale>,
    /// Further subresources, e.g. `token`, `finalize`, `log`.
    pub subresources: Vec<String>,
    /// Whether objects are only answered, never stored (reviews).
    pub virtual_resource: bool,
    /// Its type.
    pub schema: Schema,
    /// The name of the type's definition, e.g. `io.k8s.api.apps.v1.Deployment`.
    pub definition: String,
}

/// One row: kind, plural, short names, scope, subresources, categories.
struct Row(&'static str, &'static str, &'static str, Scope, &'static str, &'static str);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Namespaced,
    Cluster,
    /// Answered, not stored; cluster-scoped.
    Review,
    /// Answered, not stored; namespaced.
    NamespacedReview,
}

use Scope::{Cluster, Namespaced, NamespacedReview, Review};

/// API group, version, package of the definitions, rows. The core group comes first, then the order of discovery.
type Group = (&'static str, &'static str, &'static str, &'static [Row]);

const GROUPS: &[Group] = &[
    (
        "",
        "v1",
        "io.k8s.api.core.v1",
        &[
            Row("Binding", "bindings", "", NamespacedReview, "", ""),
            Row("ComponentStatus", "componentstatuses", "cs", Cluster, "", ""),
            Row("ConfigMap", "configmaps", "cm", Namespaced, "", ""),
            Row("Endpoints", "endpoints", "ep", Namespaced, "", ""),
            Row("Event", "events", "ev", Namespaced, "", ""),
            Row("LimitRange", "limitranges", "limits", Namespaced, "", ""),
            Row("Namespace", "namespaces", "ns", Cluster, "status finalize", ""),
            Row("Node", "nodes", "no", Cluster, "status proxy", ""),
            Row("PersistentVolume", "persistentvolumes", "pv", Cluster, "status", ""),
            Row("PersistentVolumeClaim", "persistentvolumeclaims", "pvc", Namespaced, "status", ""),
            Row(
                "Pod",
                "pods",
                "po",
                Namespaced,
                "status log exec attach portforward proxy eviction binding ephemeralcontainers resize",
                "all",
            ),
            Row("PodTemplate", "podtemplates", "", Namespaced, "", ""),
            Row("ReplicationController", "replicationcontrollers", "rc", Namespaced, "status scale", "all"),
            Row("ResourceQuota", "resourcequotas", "quota", Namespaced, "status", ""),
            Row("Secret", "secrets", "", Namespaced, "", ""),
            Row("Service", "services", "svc", Namespaced, "status proxy", "all"),
            Row("ServiceAccount", "serviceaccounts", "sa", Namespaced, "token", ""),
        ],
    ),
    (
        "apiregistration.k8s.io",
        "v1",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
        &[Row("APIService", "apiservices", "", Cluster, "status", "api-extensions")],
    ),
    (
        "apps",
        "v1",
        "io.k8s.api.apps.v1",
        &[
            Row("ControllerRevision", "controllerrevisions", "", Namespaced, "", ""),
            Row("DaemonSet", "daemonsets", "ds", Namespaced, "status", "all"),
            Row("Deployment", "deployments", "deploy", Namespaced, "status scale", "all"),
            Row("ReplicaSet", "replicasets", "rs", Namespaced, "status scale", "all"),
            Row("StatefulSet", "statefulsets", "sts", Namespaced, "status scale", "all"),
        ],
    ),
    ("events.k8s.io", "v1", "io.k8s.api.events.v1", &[Row("Event", "events", "ev", Namespaced, "", "")]),
    (
        "authentication.k8s.io",
        "v1",
        "io.k8s.api.authentication.v1",
        &[
            Row("SelfSubjectReview", "selfsubjectreviews", "", Review, "", ""),
            Row("TokenReview", "tokenreviews", "", Review, "", ""),
        ],
    ),
    (
        "authorization.k8s.io",
        "v1",
        "io.k8s.api.authorization.v1",
        &[
            Row("LocalSubjectAccessReview", "localsubjectaccessreviews", "", NamespacedReview, "", ""),
            Row("SelfSubjectAccessReview", "selfsubjectaccessreviews", "", Review, "", ""),
            Row("SelfSubjectRulesReview", "selfsubjectrulesreviews", "", Review, "", ""),
            Row("SubjectAccessReview", "subjectaccessreviews", "", Review, "", ""),
        ],
    ),
    (
        "autoscaling",
        "v2",
        "io.k8s.api.autoscaling.v2",
        &[Row("HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", Namespaced, "status", "all")],
    ),
    (
        "autoscaling",
        "v1",
        "io.k8s.api.autoscaling.v1",
        &[Row("HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", Namespaced, "status", "all")],
    ),
    (
        "batch",
        "v1",
        "io.k8s.api.batch.v1",
        &[
            Row("CronJob", "cronjobs", "cj", Namespaced, "status", "all"),
            Row("Job", "jobs", "", Namespaced, "status", "all"),
        ],
    ),
    (
        "certificates.k8s.io",
        "v1",
        "io.k8s.api.certificates.v1",
        &[Row("CertificateSigningRequest", "certificatesigningrequests", "csr", Cluster, "status approval", "")],
    ),
    (
        "networking.k8s.io",
        "v1",
        "io.k8s.api.networking.v1",
        &[
            Row("IPAddress", "ipaddresses", "ip", Cluster, "", ""),
            Row("Ingress", "ingresses", "ing", Namespaced, "status", ""),
            Row("IngressClass", "ingressclasses", "", Cluster, "", ""),
            Row("NetworkPolicy", "networkpolicies", "netpol", Namespaced, "", ""),
            Row("ServiceCIDR", "servicecidrs", "", Cluster, "status", ""),
        ],
    ),
    (
        "policy",
        "v1",
        "io.k8s.api.policy.v1",
        &[Row("PodDisruptionBudget", "poddisruptionbudgets", "pdb", Namespaced, "status", "")],
    ),
    (
        "rbac.authorization.k8s.io",
        "v1",
        "io.k8s.api.rbac.v1",
        &[
            Row("ClusterRole", "clusterroles", "", Cluster, "", ""),
            Row("ClusterRoleBinding", "clusterrolebindings", "", Cluster, "", ""),
            Row("Role", "roles", "", Namespaced, "", ""),
            Row("RoleBinding", "rolebindings", "", Namespaced, "", ""),
        ],
    ),
    (
        "storage.k8s.io",
        "v1",
        "io.k8s.api.storage.v1",
        &[
            Row("CSIDriver", "csidrivers", "", Cluster, "", ""),
            Row("CSINode", "csinodes", "", Cluster, "", ""),
            Row("CSIStorageCapacity", "csistoragecapacities", "", Namespaced, "", ""),
            Row("StorageClass", "storageclasses", "sc", Cluster, "", ""),
            Row("VolumeAttachment", "volumeattachments", "", Cluster, "status", ""),
            Row("VolumeAttributesClass", "volumeattributesclasses", "vac", Cluster, "", ""),
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "io.k8s.api.admissionregistration.v1",
        &[
            Row("MutatingAdmissionPolicy", "mutatingadmissionpolicies", "", Cluster, "", "api-extensions"),
            Row("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", "", Cluster, "", "api-extensions"),
            Row("MutatingWebhookConfiguration", "mutatingwebhookconfigurations", "", Cluster, "", "api-extensions"),
            Row("ValidatingAdmissionPolicy", "validatingadmissionpolicies", "", Cluster, "status", "api-extensions"),
            Row(
                "ValidatingAdmissionPolicyBinding",
                "validatingadmissionpolicybindings",
                "",
                Cluster,
                "",
                "api-extensions",
            ),
            Row("ValidatingWebhookConfiguration", "validatingwebhookconfigurations", "", Cluster, "", "api-extensions"),
        ],
    ),
    (
        "apiextensions.k8s.io",
        "v1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
        &[Row(
            "CustomResourceDefinition",
            "customresourcedefinitions",
            "crd crds",
            Cluster,
            "status",
            "api-extensions",
        )],
    ),
    (
        "scheduling.k8s.io",
        "v1",
        "io.k8s.api.scheduling.v1",
        &[Row("PriorityClass", "priorityclasses", "pc", Cluster, "", "")],
    ),
    ("coordination.k8s.io", "v1", "io.k8s.api.coordination.v1", &[Row("Lease", "leases", "", Namespaced, "", "")]),
    ("node.k8s.io", "v1", "io.k8s.api.node.v1", &[Row("RuntimeClass", "runtimeclasses", "", Cluster, "", "")]),
    (
        "discovery.k8s.io",
        "v1",
        "io.k8s.api.discovery.v1",
        &[Row("EndpointSlice", "endpointslices", "", Namespaced, "", "")],
    ),
    (
        "resource.k8s.io",
        "v1",
        "io.k8s.api.resource.v1",
        &[
            Row("DeviceClass", "deviceclasses", "", Cluster, "", ""),
            Row("ResourceClaim", "resourceclaims", "", Namespaced, "status", ""),
            Row("ResourceClaimTemplate", "resourceclaimtemplates", "", Namespaced, "", ""),
            Row("ResourceSlice", "resourceslices", "", Cluster, "", ""),
        ],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "io.k8s.api.flowcontrol.v1",
        &[
            Row("FlowSchema", "flowschemas", "", Cluster, "status", ""),
            Row("PriorityLevelConfiguration", "prioritylevelconfigurations", "", Cluster, "status", ""),
        ],
    ),
];

/// Every resource, in the order of discovery.
pub(crate) fn all() -> Vec<ResourceType> {
    GROUPS
        .iter()
        .flat_map(|(group, version, package, rows)| rows.iter().map(move |row| resource(group, version, package, row)))
        .collect()
}

fn resource(group: &str, version: &str, package: &str, row: &Row) -> ResourceType {
    let Row(kind, plural, short_names, scope, subresources, categories) = row;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let definition = format!("{package}.{kind}");
    let mut subresources = words(subresources);
    let mut take = |name: &str| {
        let before = subresources.len();
        subresources.retain(|subresource| subresource != name);
        subresources.len() != before
    };
    let status = take("status");
    let scale = take("scale").then(|| Scale {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        label_selector: Some(".spec.selector".to_owned()),
    });
    ResourceType {
        group_version_kind: GroupVersionKind::new(group, version, *kind),
        plural: (*plural).to_owned(),
        singular: kind.to_lowercase(),
        short_names: words(short_names),
        categories: words(categories),
        namespaced: matches!(scope, Namespaced | NamespacedReview),
        status,
        scale,
        subresources,
        virtual_resource: matches!(scope, Review | NamespacedReview),
        schema: table::table().schema(&definition).unwrap_or_else(Schema::any),
        definition,
    }
}
