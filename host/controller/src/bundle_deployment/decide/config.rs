//! The configuration of a provisioner: the defaults of its class with `spec.config` over them.

use chandler_api::Revision;
use chandler_core::{Digest, nesting};
use serde_json::{Map, Value};

use super::spec_error::SpecError;

/// A configuration that a provisioner may get.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config(Map<String, Value>);

impl Config {
    /// The defaults of a class with the configuration of a BundleDeployment over them, member by member.
    pub(crate) fn layered(
        class: &str,
        defaults: &Map<String, Value>,
        config: Option<&Map<String, Value>>,
    ) -> Result<Self, SpecError> {
        let layered = layer(defaults, config);
        if layered.values().any(nesting::is_too_deep) {
            return Err(SpecError::ConfigTooDeep { class: class.to_owned(), levels: nesting::DEEPEST });
        }
        Ok(Self(layered))
    }

    /// The configuration of a revision. The history does not keep a long one; that of the spec may still be the same. None where
    /// it is not.
    pub(crate) fn of_revision(
        revision: &Revision,
        defaults: &Map<String, Value>,
        config: Option<&Map<String, Value>>,
    ) -> Option<Self> {
        if let Some(kept) = &revision.config {
            return Some(Self(kept.clone()));
        }
        let layered = layer(defaults, config);
        let digest = Digest::of(Value::Object(layered.clone()).to_string().as_bytes());
        (digest.as_str() == revision.config_digest).then_some(Self(layered))
    }

    pub(crate) fn get(&self) -> &Map<String, Value> {
        &self.0
    }
}

fn layer(defaults: &Map<String, Value>, config: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut result = defaults.clone();
    result.extend(config.cloned().unwrap_or_default());
    result
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn spec_config_overrides_the_defaults_of_the_class_member_by_member() {
        let defaults = map(json!({"a": {"x": 1}, "b": 1}));
        let config = map(json!({"a": {"y": 2}, "c": null}));
        let layered = |config| Value::Object(Config::layered("c", &defaults, config).unwrap().0);
        assert_eq!(layered(Some(&config)), json!({"a": {"y": 2}, "b": 1, "c": null}));
        assert_eq!(layered(None), Value::Object(defaults.clone()));
    }

    #[test]
    fn the_configuration_of_a_revision_is_the_kept_one_or_that_of_the_spec_with_the_same_digest() {
        let (defaults, config) = (map(json!({"a": 1})), map(json!({"b": 2})));
        let merged = map(json!({"a": 1, "b": 2}));
        let of = |revision: &Revision| Config::of_revision(revision, &defaults, Some(&config)).map(|config| config.0);
        let kept = Revision { config: Some(map(json!({"z": 1}))), ..Revision::default() };
        assert_eq!(of(&kept), Some(map(json!({"z": 1}))));
        let digest = Digest::of(Value::Object(merged.clone()).to_string().as_bytes()).to_string();
        assert_eq!(of(&Revision { config_digest: digest, ..Revision::default() }), Some(merged));
        assert_eq!(of(&Revision::default()), None);
    }
}
