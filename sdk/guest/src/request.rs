//! The request of a call.

use std::{collections::BTreeSet, sync::OnceLock};

use chandler_yaml::{Limits, from_node};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{Diagnostic, Failure, Location};

/// The inputs of a provisioner besides the content: the configuration, and the target of the objects.
///
/// In the sandbox each value is fetched from the host when it is first used, and the host records which values are
/// used. It renders a release again only when one of these has changed. Prefer [`serves`](Self::serves) to
/// [`api_kinds`](Self::api_kinds), which changes with every CustomResourceDefinition in the cluster.
///
/// Tests build a request by hand:
///
/// ```
/// use chandler_sdk::Request;
/// use serde_json::json;
///
/// let request = Request::new()
///     .with_config(json!({"replicas": 2}).as_object().unwrap().clone())
///     .with_namespace("harbour")
///     .with_kubernetes_version("v1.36.0")
///     .with_api_kinds(["v1/Pod", "apps/v1/Deployment"]);
/// assert_eq!(request.serves("apps/v1", "Deployment"), Some(true));
/// assert_eq!(request.serves("example.com/v1", "Ox"), Some(false));
/// assert_eq!(Request::new().serves("v1", "Pod"), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    config: OnceLock<Map<String, Value>>,
    name: OnceLock<String>,
    namespace: OnceLock<String>,
    kubernetes_version: OnceLock<Option<String>>,
    api_kinds: OnceLock<Vec<String>>,
    features: OnceLock<BTreeSet<String>>,
}

impl Request {
    /// A request with an empty configuration, without names and without a cluster. In the sandbox: the request of the
    /// call.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the configuration.
    pub fn with_config(self, config: Map<String, Value>) -> Self {
        Self { config: OnceLock::from(config), ..self }
    }

    /// Sets the name of the BundleDeployment.
    pub fn with_name(self, name: impl Into<String>) -> Self {
        Self { name: OnceLock::from(name.into()), ..self }
    }

    /// Sets the namespace.
    pub fn with_namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: OnceLock::from(namespace.into()), ..self }
    }

    /// Sets the version of the API server.
    pub fn with_kubernetes_version(self, version: impl Into<String>) -> Self {
        Self { kubernetes_version: OnceLock::from(Some(version.into())), ..self }
    }

    /// Sets the kinds that the API server serves, as `group/version/Kind` (`v1/Kind` for the core group).
    pub fn with_api_kinds<K: Into<String>>(self, kinds: impl IntoIterator<Item = K>) -> Self {
        let mut kinds: Vec<String> = kinds.into_iter().map(Into::into).collect();
        kinds.sort_unstable();
        Self { api_kinds: OnceLock::from(kinds), ..self }
    }

    /// Sets the features that the host offers.
    pub fn with_features<N: Into<String>>(self, features: impl IntoIterator<Item = N>) -> Self {
        let features: BTreeSet<String> = features.into_iter().map(Into::into).collect();
        Self { features: OnceLock::from(features), ..self }
    }

    /// The configuration. Empty by default.
    pub fn config(&self) -> &Map<String, Value> {
        self.config.get_or_init(ask::config)
    }

    /// The configuration, deserialized.
    ///
    /// # Errors
    /// [`Failure::InvalidConfig`] with the JSON pointer of the first value that is not of its type; the code is
    /// `InvalidConfiguration`.
    pub fn config_as<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let invalid = |message: String, pointer: String| {
            let finding = Diagnostic::error("InvalidConfiguration", message).at(Location::CONFIG).pointer(pointer);
            Failure::InvalidConfig(vec![finding])
        };
        let text = Value::Object(self.config().clone()).to_string();
        let documents = chandler_yaml::parse(text.as_bytes(), &Limits::default())
            .map_err(|error| invalid(error.message, String::new()))?;
        let Some(document) = documents.first() else {
            return Err(invalid("the configuration is empty".to_owned(), String::new()));
        };
        from_node(&document.root).map_err(|error| invalid(error.message, error.pointer))
    }

    /// The name of the BundleDeployment.
    pub fn name(&self) -> &str {
        self.name.get_or_init(ask::name)
    }

    /// The install namespace.
    pub fn namespace(&self) -> &str {
        self.namespace.get_or_init(ask::namespace)
    }

    /// The version of the API server, for example `v1.36.0`. None without a cluster.
    pub fn kubernetes_version(&self) -> Option<&str> {
        self.kubernetes_version.get_or_init(ask::kubernetes_version).as_deref()
    }

    /// Whether the API server serves a kind that can be read, for example `apps/v1` and `Deployment`. None without a
    /// cluster.
    pub fn serves(&self, api_version: &str, kind: &str) -> Option<bool> {
        match self.api_kinds.get() {
            Some(kinds) if kinds.is_empty() => None,
            Some(kinds) => Some(kinds.contains(&format!("{api_version}/{kind}"))),
            None => ask::serves(api_version, kind),
        }
    }

    /// All kinds that the API server serves and that can be read, as `group/version/Kind` (`v1/Kind` for the core
    /// group). Empty without a cluster.
    pub fn api_kinds(&self) -> &[String] {
        self.api_kinds.get_or_init(ask::api_kinds)
    }

    /// Whether the host offers a feature that was added after the first version of the contract: false for one that it does not
    /// know. The contract lists the names where it describes the features; it has none yet. `detect` and `config_schema` get the
    /// same answers, from `Request::new().supports(...)`.
    ///
    /// Declare a function that the provisioner can do without as [optional](crate::Facts::optional), so that hosts without it
    /// load the component.
    ///
    /// ```
    /// use chandler_sdk::Request;
    ///
    /// assert!(Request::new().with_features(["oxen"]).supports("oxen"));
    /// assert!(!Request::new().supports("oxen"));
    /// ```
    pub fn supports(&self, feature: &str) -> bool {
        self.features.get().map_or_else(|| ask::supports(feature), |features| features.contains(feature))
    }
}

/// Fetches the value from the host.
#[cfg(target_arch = "wasm32")]
use crate::guest::request as ask;

/// The value of a request that was not set.
#[cfg(not(target_arch = "wasm32"))]
mod ask {
    use serde_json::{Map, Value};

    pub(super) fn config() -> Map<String, Value> {
        Map::new()
    }

    pub(super) fn name() -> String {
        String::new()
    }

    pub(super) fn namespace() -> String {
        String::new()
    }

    pub(super) fn kubernetes_version() -> Option<String> {
        None
    }

    pub(super) fn serves(_api_version: &str, _kind: &str) -> Option<bool> {
        None
    }

    pub(super) fn api_kinds() -> Vec<String> {
        Vec::new()
    }

    pub(super) fn supports(_feature: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_deserialized() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Config {
            #[serde(default)]
            ports: Vec<u16>,
        }
        let read = |config: Value| {
            let Value::Object(config) = config else { panic!("{config}") };
            Request::new().with_config(config).config_as::<Config>()
        };
        assert_eq!(read(serde_json::json!({"ports": [1, 2]})).unwrap().ports, [1, 2]);
        assert_eq!(read(serde_json::json!({})).unwrap().ports, [0; 0]);
        insta::assert_snapshot!(read(serde_json::json!({"ports": [1, 70000]})).unwrap_err(), @r"
        invalid configuration
        config (/ports/1): invalid value: integer `70000`, expected u16
        ");
        assert!(read(serde_json::json!({"port": 1})).unwrap_err().to_string().contains("unknown field `port`"));
    }
}
