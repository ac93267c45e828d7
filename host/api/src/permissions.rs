//! What the ServiceAccount of a BundleDeployment may not do.

use k8s_openapi::api::rbac::v1::PolicyRule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Permissions that a ServiceAccount lacks in one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MissingPermissions {
    /// The namespace; none for the whole cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The rules of a role that would grant them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<PolicyRule>,
}
