//! Columns of built-in kinds, as users of kubectl know them (`k8s.io/kubernetes/pkg/printers/internalversion`).

mod access;
mod autoscaler;
mod cluster;
mod configuration;
mod event;
mod network;
mod node;
mod pod;
mod storage;
mod workload;

use chandler_devcluster_apimachinery::schema::GroupVersionKind;

use super::{
    cell::{AGE, CREATED_AT, NAME},
    column::Column,
};

pub(super) use pod::row_conditions;

const NAME_AND_AGE: &[Column] = &[NAME, AGE];
const NAME_AND_CREATION: &[Column] = &[NAME, CREATED_AT];

/// The columns of a kind; those that no kind has are name and time of creation.
pub(super) fn columns(kind: &GroupVersionKind) -> &'static [Column] {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "ComponentStatus") => cluster::COMPONENT_STATUS,
        ("", "ConfigMap") => configuration::CONFIG_MAP,
        ("", "Endpoints") => network::ENDPOINTS,
        ("" | "events.k8s.io", "Event") => event::EVENT,
        ("", "Namespace") => cluster::NAMESPACE,
        ("", "Node") => node::NODE,
        ("", "PersistentVolume") => storage::PERSISTENT_VOLUME,
        ("", "PersistentVolumeClaim") => storage::PERSISTENT_VOLUME_CLAIM,
        ("", "Pod") => pod::POD,
        ("", "PodTemplate") => workload::POD_TEMPLATE,
        ("", "ReplicationController") => workload::REPLICATION_CONTROLLER,
        ("", "ResourceQuota") => configuration::RESOURCE_QUOTA,
        ("", "Secret") => configuration::SECRET,
        ("", "Service") => network::SERVICE,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => cluster::MUTATING_ADMISSION_POLICY,
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => cluster::VALIDATING_ADMISSION_POLICY,
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding") => {
            cluster::ADMISSION_POLICY_BINDING
        }
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            cluster::WEBHOOK_CONFIGURATION
        }
        ("apiregistration.k8s.io", "APIService") => cluster::API_SERVICE,
        ("apps", "ControllerRevision") => workload::CONTROLLER_REVISION,
        ("apps", "DaemonSet") => workload::DAEMON_SET,
        ("apps", "Deployment") => workload::DEPLOYMENT,
        ("apps", "ReplicaSet") => workload::REPLICA_SET,
        ("apps", "StatefulSet") => workload::STATEFUL_SET,
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler::HORIZONTAL_POD_AUTOSCALER,
        ("batch", "CronJob") => workload::CRON_JOB,
        ("batch", "Job") => workload::JOB,
        ("certificates.k8s.io", "CertificateSigningRequest") => access::CERTIFICATE_SIGNING_REQUEST,
        ("coordination.k8s.io", "Lease") => configuration::LEASE,
        ("discovery.k8s.io", "EndpointSlice") => network::ENDPOINT_SLICE,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => cluster::FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => cluster::PRIORITY_LEVEL,
        ("networking.k8s.io", "Ingress") => network::INGRESS,
        ("networking.k8s.io", "IngressClass") => network::INGRESS_CLASS,
        ("networking.k8s.io", "IPAddress") => network::IP_ADDRESS,
        ("networking.k8s.io", "NetworkPolicy") => network::NETWORK_POLICY,
        ("networking.k8s.io", "ServiceCIDR") => network::SERVICE_CIDR,
        ("node.k8s.io", "RuntimeClass") => node::RUNTIME_CLASS,
        ("policy", "PodDisruptionBudget") => configuration::POD_DISRUPTION_BUDGET,
        ("rbac.authorization.k8s.io", "ClusterRoleBinding" | "RoleBinding") => access::BINDING,
        ("resource.k8s.io", "ResourceClaim") => node::RESOURCE_CLAIM,
        ("resource.k8s.io", "ResourceSlice") => node::RESOURCE_SLICE,
        ("scheduling.k8s.io", "PriorityClass") => configuration::PRIORITY_CLASS,
        ("storage.k8s.io", "CSIDriver") => storage::CSI_DRIVER,
        ("storage.k8s.io", "CSINode") => storage::CSI_NODE,
        ("storage.k8s.io", "StorageClass") => storage::STORAGE_CLASS,
        ("storage.k8s.io", "VolumeAttachment") => storage::VOLUME_ATTACHMENT,
        ("storage.k8s.io", "VolumeAttributesClass") => storage::VOLUME_ATTRIBUTES_CLASS,
        ("", "ServiceAccount") | ("resource.k8s.io", "DeviceClass" | "ResourceClaimTemplate") => NAME_AND_AGE,
        _ => NAME_AND_CREATION,
    }
}

#[cfg(test)]
mod tests;
