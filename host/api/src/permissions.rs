//! Permissions that the ServiceAccount of a BundleDeployment lacks, or the user of its kubeconfig.

use k8s_openapi::api::rbac::v1::PolicyRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Permissions that a ServiceAccount, or the user of a kubeconfig, lacks in a namespace, or in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingPermissions {
    /// The namespace. Absent for the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The rules of a role that grants the permissions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PolicyRule>,
}
