//! What a provisioner is asked.

use serde::{Deserialize, Serialize};

/// What the objects are for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The name of the BundleDeployment.
    pub name: String,
    /// The namespace to install into.
    pub namespace: String,
    /// The version of the API server, such as `v1.36.0`; empty where no cluster is known.
    #[serde(default)]
    pub kubernetes_version: String,
    /// The kinds that the API server serves, as `group/version/Kind` (`v1/Kind` for the core group); empty where no
    /// cluster is known.
    #[serde(default)]
    pub api_kinds: Vec<String>,
}

/// One request to provision.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The configuration; an empty object where there is none.
    pub config: serde_json::Map<String, serde_json::Value>,
    /// What the objects are for.
    pub target: Target,
}
