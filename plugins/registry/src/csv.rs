//! The fields of a ClusterServiceVersion that the provisioner uses, after the normalization by [`crate::typed`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A ClusterServiceVersion. Absent or null lists and maps are empty.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Csv {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
}

/// Its metadata.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Metadata {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// Its specification.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Spec {
    /// The version of the operator, if it is a string.
    #[serde(default)]
    pub(crate) version: Value,
    pub(crate) install: Install,
    #[serde(default, rename = "installModes")]
    pub(crate) install_modes: Vec<InstallMode>,
    #[serde(default)]
    pub(crate) customresourcedefinitions: Declared<DeclaredCrd>,
    #[serde(default)]
    pub(crate) apiservicedefinitions: Declared<ApiService>,
    #[serde(default)]
    pub(crate) webhookdefinitions: Vec<Webhook>,
    /// The oldest Kubernetes that the operator runs on; empty if not set.
    #[serde(default, rename = "minKubeVersion")]
    pub(crate) min_kube_version: String,
    /// Kinds that the API server itself must serve.
    #[serde(default, rename = "nativeAPIs")]
    pub(crate) native_apis: Vec<GroupVersionKind>,
}

/// How the operator is installed.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Install {
    /// The name of the strategy. There is only `deployment`; OLM v1 does not check it.
    #[serde(default)]
    pub(crate) strategy: String,
    #[serde(default)]
    pub(crate) spec: Strategy,
}

/// The install strategy `deployment`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Strategy {
    #[serde(default)]
    pub(crate) deployments: Vec<DeploymentSpec>,
    #[serde(default)]
    pub(crate) permissions: Vec<Permission>,
    #[serde(default)]
    pub(crate) cluster_permissions: Vec<Permission>,
}

/// A Deployment of the operator.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DeploymentSpec {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) label: BTreeMap<String, String>,
    pub(crate) spec: Value,
}

impl DeploymentSpec {
    /// The service account of its pods.
    pub(crate) fn service_account(&self) -> &str {
        let named = |field: &str| self.spec.pointer(field).and_then(Value::as_str).filter(|name| !name.is_empty());
        // The second is the name of the field in the first versions of Kubernetes; API servers still accept it.
        named("/template/spec/serviceAccountName")
            .or_else(|| named("/template/spec/serviceAccount"))
            .unwrap_or("default")
    }
}

/// The permissions of a service account of the operator.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Permission {
    #[serde(default)]
    pub(crate) service_account_name: String,
    /// None if the manifest has no rules at all: the hash in the role's name distinguishes it from an empty list.
    #[serde(default)]
    pub(crate) rules: Option<Vec<PolicyRule>>,
}

/// `rbac/v1.PolicyRule`. The fields have the order of the Go struct, since names are hashes of its JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyRule {
    #[serde(default)]
    pub(crate) verbs: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", rename = "nonResourceURLs")]
    pub(crate) non_resource_urls: Vec<String>,
}

/// An install mode, and whether it is supported.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct InstallMode {
    #[serde(default, rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) supported: bool,
}

/// The APIs that the operator provides, and those that it requires.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Declared<T> {
    #[serde(default = "Vec::new")]
    pub(crate) owned: Vec<T>,
    #[serde(default = "Vec::new")]
    pub(crate) required: Vec<T>,
}

impl<T> Default for Declared<T> {
    fn default() -> Self {
        Self { owned: Vec::new(), required: Vec::new() }
    }
}

/// A CustomResourceDefinition in these lists.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct DeclaredCrd {
    /// `<plural>.<group>`.
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) version: String,
}

/// The group in the name of a CustomResourceDefinition, which is `<plural>.<group>`.
pub(crate) fn group_of(crd: &str) -> &str {
    crd.split_once('.').map_or("", |(_, group)| group)
}

/// An API in these lists that an aggregated API server serves.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApiService {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) group: String,
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) kind: String,
    /// The Deployment of the operator that serves it.
    #[serde(default)]
    pub(crate) deployment_name: String,
    /// The port of the container and of the Service; zero if not set.
    #[serde(default)]
    pub(crate) container_port: i32,
}

impl ApiService {
    /// The name of the APIService object, which API servers prescribe.
    pub(crate) fn object_name(&self) -> String {
        format!("{}.{}", self.version, self.group)
    }

    /// The port of the Service, 443 if not set.
    pub(crate) fn service_port(&self) -> i32 {
        if self.container_port > 0 { self.container_port } else { 443 }
    }
}

/// A kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GroupVersionKind {
    #[serde(default)]
    pub(crate) group: String,
    #[serde(default)]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) kind: String,
}

/// The purpose of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WebhookKind {
    /// Validates objects.
    Validating,
    /// Mutates objects.
    Mutating,
    /// Converts custom resources between versions.
    Conversion,
}

/// A webhook of the operator. Fields that only the API server uses stay JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Webhook {
    #[serde(default)]
    pub(crate) generate_name: String,
    /// `ValidatingAdmissionWebhook`, `MutatingAdmissionWebhook` or `ConversionWebhook`; others generate nothing.
    #[serde(default, rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) deployment_name: String,
    /// The port of the Service; zero if not set.
    #[serde(default)]
    pub(crate) container_port: i32,
    /// The port of the container.
    pub(crate) target_port: Option<Value>,
    #[serde(default)]
    pub(crate) rules: Vec<WebhookRule>,
    pub(crate) failure_policy: Option<Value>,
    pub(crate) match_policy: Option<Value>,
    pub(crate) object_selector: Option<Value>,
    pub(crate) side_effects: Option<Value>,
    pub(crate) timeout_seconds: Option<Value>,
    pub(crate) admission_review_versions: Option<Value>,
    pub(crate) reinvocation_policy: Option<Value>,
    #[serde(rename = "webhookPath")]
    pub(crate) path: Option<String>,
    #[serde(default, rename = "conversionCRDs")]
    pub(crate) conversion_crds: Vec<String>,
}

impl Webhook {
    /// Its purpose, if its type is known.
    pub(crate) fn webhook_kind(&self) -> Option<WebhookKind> {
        match self.kind.as_str() {
            "ValidatingAdmissionWebhook" => Some(WebhookKind::Validating),
            "MutatingAdmissionWebhook" => Some(WebhookKind::Mutating),
            "ConversionWebhook" => Some(WebhookKind::Conversion),
            _ => None,
        }
    }

    /// The name of its configuration.
    pub(crate) fn object_name(&self) -> &str {
        self.generate_name.strip_suffix('-').unwrap_or(&self.generate_name)
    }

    /// Whether it converts custom resources.
    pub(crate) fn is_conversion(&self) -> bool {
        self.webhook_kind() == Some(WebhookKind::Conversion)
    }

    /// The port of the Service, 443 if not set.
    pub(crate) fn service_port(&self) -> i32 {
        if self.container_port > 0 { self.container_port } else { 443 }
    }
}

/// `admissionregistration/v1.RuleWithOperations`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookRule {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) operations: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_versions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<String>,
}
