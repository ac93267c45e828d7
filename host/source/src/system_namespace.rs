//! Secrets, ConfigMaps and ServiceAccounts of the system namespace.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::{Api, Client};

use crate::api_message;

/// Reads Secrets, ConfigMaps and ServiceAccounts of the system namespace, with the rights of the controller. [`Grantee`](crate::Grantee) decides
/// who may name them.
#[derive(Clone)]
pub struct SystemNamespace {
    client: Client,
    namespace: String,
    require_pull_secret_grant: bool,
    pull_secrets_of: Option<String>,
}

impl SystemNamespace {
    /// The namespace of this name. With `require_pull_secret_grant`, a pull secret must have an annotation that names its users.
    pub fn new(client: Client, namespace: String, require_pull_secret_grant: bool) -> Self {
        Self { client, namespace, require_pull_secret_grant, pull_secrets_of: None }
    }

    /// Uses the pull secrets of this ServiceAccount for objects that name none. Every such object can then install any image that they can
    /// read.
    #[must_use]
    pub fn with_pull_secrets_of(self, account: Option<String>) -> Self {
        Self { pull_secrets_of: account, ..self }
    }

    /// The ServiceAccount whose pull secrets are the default ones.
    pub(crate) fn pull_secrets_of(&self) -> Option<&str> {
        self.pull_secrets_of.as_deref()
    }

    pub(crate) fn requires_pull_secret_grant(&self) -> bool {
        self.require_pull_secret_grant
    }

    /// The namespace and the name of an object, for messages.
    pub(crate) fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.namespace)
    }

    /// A ConfigMap. The error is a message that is the same at each attempt.
    pub(crate) async fn config_map(&self, name: &str) -> Result<Option<ConfigMap>, String> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        api.get_opt(name).await.map_err(|error| api_message(&error))
    }

    /// A ServiceAccount. The error is a message that is the same at each attempt.
    pub(crate) async fn service_account(&self, name: &str) -> Result<Option<ServiceAccount>, String> {
        let api: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &self.namespace);
        api.get_opt(name).await.map_err(|error| api_message(&error))
    }

    /// A Secret. The error is a message that is the same at each attempt.
    pub(crate) async fn secret(&self, name: &str) -> Result<Option<Secret>, String> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        api.get_opt(name).await.map_err(|error| api_message(&error))
    }
}
