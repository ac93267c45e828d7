//! The defaults that kube-apiserver 1.36 fills in on every write of a built-in kind.
//!
//! Unconditional defaults are rows of a table; what depends on other fields is code. Sources: the API reference and
//! `pkg/apis/*/v1/defaults.go` of Kubernetes. Defaults that need the cluster (addresses, generated selectors of Jobs, the default
//! ServiceAccount) are set by the server.

mod code;
mod pod;
mod rows;

use rows::Default::{self, Bool, Int, Object, Text};
use serde_json::Value;

use crate::schema::resources::GroupVersionKind;

/// A default: where, and what.
type Row = (&'static str, Default);

const TABLE: &[(&str, &str, &[Row])] = &[
    (
        "apps",
        "Deployment",
        &[
            ("spec.replicas", Int(1)),
            ("spec.revisionHistoryLimit", Int(10)),
            ("spec.progressDeadlineSeconds", Int(600)),
            ("spec.strategy", Object),
            ("spec.strategy.type", Text("RollingUpdate")),
        ],
    ),
    (
        "apps",
        "StatefulSet",
        &[
            ("spec.replicas", Int(1)),
            ("spec.revisionHistoryLimit", Int(10)),
            ("spec.podManagementPolicy", Text("OrderedReady")),
            ("spec.updateStrategy", Object),
            ("spec.updateStrategy.type", Text("RollingUpdate")),
            ("spec.persistentVolumeClaimRetentionPolicy", Object),
            ("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", Text("Retain")),
            ("spec.persistentVolumeClaimRetentionPolicy.whenScaled", Text("Retain")),
            ("spec.volumeClaimTemplates[].apiVersion", Text("v1")),
            ("spec.volumeClaimTemplates[].kind", Text("PersistentVolumeClaim")),
            ("spec.volumeClaimTemplates[].spec.volumeMode", Text("Filesystem")),
            ("spec.volumeClaimTemplates[].status", Object),
            ("spec.volumeClaimTemplates[].status.phase", Text("Pending")),
        ],
    ),
    (
        "apps",
        "DaemonSet",
        &[
            ("spec.revisionHistoryLimit", Int(10)),
            ("spec.updateStrategy", Object),
            ("spec.updateStrategy.type", Text("RollingUpdate")),
        ],
    ),
    ("apps", "ReplicaSet", &[("spec.replicas", Int(1))]),
    ("", "ReplicationController", &[("spec.replicas", Int(1))]),
    (
        "batch",
        "Job",
        &[
            ("spec.parallelism", Int(1)),
            ("spec.backoffLimit", Int(6)),
            ("spec.completionMode", Text("NonIndexed")),
            ("spec.suspend", Bool(false)),
            ("spec.manualSelector", Bool(false)),
        ],
    ),
    (
        "batch",
        "CronJob",
        &[
            ("spec.concurrencyPolicy", Text("Allow")),
            ("spec.suspend", Bool(false)),
            ("spec.successfulJobsHistoryLimit", Int(3)),
            ("spec.failedJobsHistoryLimit", Int(1)),
        ],
    ),
    (
        "",
        "Service",
        &[
            ("spec", Object),
            ("spec.type", Text("ClusterIP")),
            ("spec.sessionAffinity", Text("None")),
            ("spec.ports[].protocol", Text("TCP")),
        ],
    ),
    ("", "Endpoints", &[("subsets[].ports[].protocol", Text("TCP"))]),
    ("discovery.k8s.io", "EndpointSlice", &[("ports[].name", Text("")), ("ports[].protocol", Text("TCP"))]),
    ("", "Secret", &[("type", Text("Opaque"))]),
    ("", "Namespace", &[("status", Object), ("status.phase", Text("Active"))]),
    (
        "",
        "PersistentVolumeClaim",
        &[("spec.volumeMode", Text("Filesystem")), ("status", Object), ("status.phase", Text("Pending"))],
    ),
    (
        "",
        "PersistentVolume",
        &[
            ("spec.persistentVolumeReclaimPolicy", Text("Retain")),
            ("spec.volumeMode", Text("Filesystem")),
            ("status", Object),
            ("status.phase", Text("Pending")),
        ],
    ),
    ("storage.k8s.io", "StorageClass", &[("reclaimPolicy", Text("Delete")), ("volumeBindingMode", Text("Immediate"))]),
    (
        "storage.k8s.io",
        "CSIDriver",
        &[
            ("spec.attachRequired", Bool(true)),
            ("spec.podInfoOnMount", Bool(false)),
            ("spec.storageCapacity", Bool(false)),
            ("spec.requiresRepublish", Bool(false)),
            ("spec.seLinuxMount", Bool(false)),
            ("spec.fsGroupPolicy", Text("ReadWriteOnceWithFSType")),
        ],
    ),
    ("scheduling.k8s.io", "PriorityClass", &[("preemptionPolicy", Text("PreemptLowerPriority"))]),
    ("rbac.authorization.k8s.io", "RoleBinding", &[("roleRef.apiGroup", Text("rbac.authorization.k8s.io"))]),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding", &[("roleRef.apiGroup", Text("rbac.authorization.k8s.io"))]),
    (
        "networking.k8s.io",
        "NetworkPolicy",
        &[
            ("spec.podSelector", Object),
            ("spec.ingress[].ports[].protocol", Text("TCP")),
            ("spec.egress[].ports[].protocol", Text("TCP")),
        ],
    ),
    ("networking.k8s.io", "IngressClass", &[("spec.parameters.scope", Text("Cluster"))]),
    ("autoscaling", "HorizontalPodAutoscaler", &[("spec.minReplicas", Int(1))]),
    ("apiregistration.k8s.io", "APIService", &[("spec.service.port", Int(443))]),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &[
            ("spec.conversion", Object),
            ("spec.conversion.strategy", Text("None")),
            ("spec.conversion.webhook.clientConfig.service.port", Int(443)),
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "MutatingWebhookConfiguration",
        &[("webhooks[].reinvocationPolicy", Text("Never"))],
    ),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy", ADMISSION_POLICY),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", ADMISSION_POLICY_BINDING),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", ADMISSION_POLICY),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", ADMISSION_POLICY_BINDING),
];

/// The defaults of both kinds of admission policies.
const ADMISSION_POLICY: &[Row] = &[
    ("spec.failurePolicy", Text("Fail")),
    ("spec.matchConstraints.matchPolicy", Text("Equivalent")),
    ("spec.matchConstraints.namespaceSelector", Object),
    ("spec.matchConstraints.objectSelector", Object),
    ("spec.matchConstraints.resourceRules[].scope", Text("*")),
    ("spec.matchConstraints.excludeResourceRules[].scope", Text("*")),
];

/// The defaults of their bindings.
const ADMISSION_POLICY_BINDING: &[Row] = &[
    ("spec.matchResources.matchPolicy", Text("Equivalent")),
    ("spec.matchResources.namespaceSelector", Object),
    ("spec.matchResources.objectSelector", Object),
    ("spec.matchResources.resourceRules[].scope", Text("*")),
    ("spec.matchResources.excludeResourceRules[].scope", Text("*")),
];

/// The defaults of both kinds of webhook configurations.
const WEBHOOKS: &[Row] = &[
    ("webhooks[].clientConfig.service.port", Int(443)),
    ("webhooks[].failurePolicy", Text("Fail")),
    ("webhooks[].matchPolicy", Text("Equivalent")),
    ("webhooks[].namespaceSelector", Object),
    ("webhooks[].objectSelector", Object),
    ("webhooks[].rules[].scope", Text("*")),
    ("webhooks[].timeoutSeconds", Int(10)),
];

/// Fills in the defaults of a built-in kind, as kube-apiserver 1.36 does on every write. Other kinds stay as they are.
pub fn default(kind: &GroupVersionKind, object: &mut Value) {
    for (group, name, rows) in TABLE {
        if *group == kind.group && *name == kind.kind {
            rows::fill(object, rows);
        }
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => pod::pod(object),
        ("", "PodTemplate") => pod::template(object.get_mut("template")),
        ("apps" | "batch", _) | ("", "ReplicationController") => {
            code::controller(&kind.kind, object);
            pod::template(object.pointer_mut("/spec/template"));
            pod::template(object.pointer_mut("/spec/jobTemplate/spec/template"));
        }
        ("", "Service") => code::service(object),
        ("", "Namespace") => code::namespace(object),
        ("rbac.authorization.k8s.io", _) => code::subjects(object),
        ("networking.k8s.io", "NetworkPolicy") => code::network_policy(object),
        ("autoscaling", _) if kind.version == "v2" => code::autoscaler(object),
        ("admissionregistration.k8s.io", _) => rows::fill(object, WEBHOOKS),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => code::definition(object),
        ("resource.k8s.io", "ResourceClaim") => code::device_requests(object.pointer_mut("/spec/devices/requests")),
        ("resource.k8s.io", "ResourceClaimTemplate") => {
            code::device_requests(object.pointer_mut("/spec/spec/devices/requests"));
        }
        _ => {}
    }
}
