//! The configuration of a provisioner: the defaults of its class, the values of `spec.valuesFrom` and `spec.config`, each over the one
//! before.

use chandler_api::Revision;
use chandler_core::{Digest, nesting};
use chandler_values::Values;
use serde_json::{Map, Value};

use super::{revisions, spec_error::SpecError};

/// How members of a configuration begin that only Chandler itself sets.
const RESERVED: &str = "chandler.dev/";

/// A configuration that a provisioner may get.
#[derive(Clone, PartialEq)]
pub struct Config {
    all: Map<String, Value>,
    /// The digest for the history, where values of Secrets are part of the configuration: the history must not hold them, nor a digest
    /// that they can be guessed from.
    digest: Option<Digest>,
    /// The digest of what the BundleDeployment sets, without the defaults of the class. Of values of Secrets it covers the versions only.
    own: Digest,
    /// The digest of the spec's configuration and references, where it has references.
    spec: Option<Digest>,
}

impl Config {
    /// The defaults of a class with the configuration of a BundleDeployment over them, member by member.
    pub fn layered(
        class: &str,
        defaults: &Map<String, Value>,
        values: &Values,
        config: Option<&Map<String, Value>>,
    ) -> Result<Self, SpecError> {
        let layered = Self::unchecked(defaults, values, config);
        if layered.all.values().any(nesting::is_too_deep) {
            return Err(SpecError::ConfigTooDeep { class: class.to_owned(), levels: nesting::DEEPEST });
        }
        // `chandler test` renders the tests of a chart with such a member. In a release they would replace everything else.
        if let Some(member) = layered.all.keys().find(|member| member.starts_with(RESERVED)) {
            return Err(SpecError::ReservedConfig { class: class.to_owned(), member: member.clone() });
        }
        Ok(layered)
    }

    fn unchecked(defaults: &Map<String, Value>, values: &Values, config: Option<&Map<String, Value>>) -> Self {
        if values.is_empty() {
            let own = digest_of(&config.cloned().unwrap_or_default());
            return Self { all: layer(defaults, config), digest: None, own, spec: None };
        }
        let spec = Some(values.references_digest(config));
        let (below, public) = (values.below(config), values.public_below(config));
        let all = layer(defaults, Some(&below));
        if !values.has_secrets() {
            return Self { all, digest: None, own: digest_of(&below), spec };
        }
        let digest = values.digest(&layer(defaults, Some(&public)));
        Self { all, digest: Some(digest), own: values.digest(&public), spec }
    }

    /// The configuration of a revision. The history does not keep a long one; the spec's may still be the same. `None` if
    /// it is not.
    pub fn of_revision(
        revision: &Revision,
        defaults: &Map<String, Value>,
        values: &Values,
        config: Option<&Map<String, Value>>,
    ) -> Option<Self> {
        if let Some(kept) = &revision.config {
            let Self { own, spec, .. } = Self::unchecked(defaults, values, config);
            return Some(Self { all: kept.clone(), digest: None, own, spec });
        }
        let layered = Self::unchecked(defaults, values, config);
        (layered.digest().as_str() == revision.config_digest).then_some(layered)
    }

    /// The digest that the history has of it.
    pub fn digest(&self) -> Digest {
        self.digest.clone().unwrap_or_else(|| digest_of(&self.all))
    }

    /// The digest of what the BundleDeployment sets, without the defaults of the class.
    pub fn own(&self) -> &Digest {
        &self.own
    }

    /// The digest of `spec.config` and `spec.valuesFrom`, without the values of the objects; `None` without references, where the own
    /// configuration is the spec's.
    pub fn spec(&self) -> Option<&Digest> {
        self.spec.as_ref()
    }

    /// What the provisioner gets: what the BundleDeployment sets, over the defaults of the class.
    pub fn get(&self) -> &Map<String, Value> {
        &self.all
    }

    /// Whether values of Secrets are part of it.
    pub fn is_secret(&self) -> bool {
        self.digest.is_some()
    }

    /// What the history records of it.
    pub fn recorded(&self) -> revisions::Config {
        match &self.digest {
            Some(digest) => revisions::Config::Digest(digest.to_string()),
            None => revisions::Config::Known(self.all.clone()),
        }
    }
}

fn digest_of(config: &Map<String, Value>) -> Digest {
    Digest::of(Value::Object(config.clone()).to_string().as_bytes())
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
        let none = Values::default();
        let layered = |config| Value::Object(Config::layered("c", &defaults, &none, config).unwrap().all);
        assert_eq!(layered(Some(&config)), json!({"a": {"y": 2}, "b": 1, "c": null}));
        assert_eq!(layered(None), Value::Object(defaults.clone()));
    }

    #[test]
    fn a_member_that_only_chandler_sets_is_refused() {
        let reserved = map(json!({"chandler.dev/render": "tests"}));
        let (empty, none) = (Map::new(), Values::default());
        for (defaults, config) in [(&empty, Some(&reserved)), (&reserved, None)] {
            let Err(refused) = Config::layered("c", defaults, &none, config) else { panic!("it is taken") };
            assert!(matches!(&refused, SpecError::ReservedConfig { member, .. } if member == "chandler.dev/render"));
        }
    }

    #[test]
    fn the_configuration_of_a_revision_is_the_kept_one_or_that_of_the_spec_with_the_same_digest() {
        let (defaults, config) = (map(json!({"a": 1})), map(json!({"b": 2})));
        let merged = map(json!({"a": 1, "b": 2}));
        let of = |revision: &Revision| {
            Config::of_revision(revision, &defaults, &Values::default(), Some(&config)).map(|config| config.all)
        };
        let kept = Revision { config: Some(map(json!({"z": 1}))), ..Revision::default() };
        assert_eq!(of(&kept), Some(map(json!({"z": 1}))));
        let digest = Digest::of(Value::Object(merged.clone()).to_string().as_bytes()).to_string();
        assert_eq!(of(&Revision { config_digest: digest, ..Revision::default() }), Some(merged));
        assert_eq!(of(&Revision::default()), None);
    }

    #[test]
    fn the_own_part_does_not_change_with_the_defaults_of_the_class() {
        let config = map(json!({"b": 2}));
        let layered = |defaults: Value, config: &Map<String, Value>| {
            let layered = Config::layered("c", &map(defaults), &Values::default(), Some(config)).unwrap();
            (layered.own().clone(), layered.digest())
        };
        let (one, other) = (layered(json!({"a": 1}), &config), layered(json!({"a": 2}), &config));
        assert!(one.0 == other.0 && one.1 != other.1);
        assert_ne!(one.0, layered(json!({"a": 1}), &map(json!({"b": 3}))).0);
    }
}
