//! What is to become of findings: configuration, as it stands in `spec.preflight.crdUpgradeSafety`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{finding::Effect, rule::Rule};

/// How many custom resources of one CRD are checked where nothing is said.
const SAMPLE_SIZE: u32 = 1000;

/// What becomes of a finding. The later, the more severe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Enforcement {
    /// It is not even told.
    None,
    /// It is told, and the upgrade goes on.
    Warn,
    /// The upgrade is refused.
    #[default]
    Strict,
}

/// How upgrades of CustomResourceDefinitions are checked before anything is written. A CRD that is new to the
/// cluster is never refused.
///
/// The most exact setting decides: that of a rule for one CRD, that of the CRD, that of a rule, that of
/// everything. A setting for everything or for a CRD makes rules milder, never more severe than they are by default;
/// a rule that is named is exactly as severe as is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Do not make this check.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,
    /// What becomes of findings: Strict refuses the upgrade, Warn only tells, None does not even tell. Strict, where this is
    /// not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enforcement")]
    pub enforcement: Option<Enforcement>,
    /// What at most becomes of changes that allow more than before, such as a removed pattern: objects stay legal, but
    /// clients may meet values that they do not know. Strict, where this is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enforcement")]
    pub loosening: Option<Enforcement>,
    /// Settings for single rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub rules: Vec<RulePolicy>,
    /// Settings for single CRDs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub crds: Vec<CrdPolicy>,
    /// How many custom resources of each CRD are held against its new schema, at most; 0 is none. 1000, where this
    /// is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "sample_size")]
    pub sample_size: Option<i32>,
}

/// How one rule is enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RulePolicy {
    /// The rule.
    pub name: Rule,
    /// What becomes of its findings.
    #[schemars(schema_with = "enforcement")]
    pub enforcement: Enforcement,
    /// What becomes of its findings about changes that allow more than before; as severe as the rule, where this is not set,
    /// but values that are added to an enum are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enforcement")]
    pub loosening: Option<Enforcement>,
}

/// How one CRD is checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrdPolicy {
    /// The name of the CustomResourceDefinition.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// What at most becomes of findings about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enforcement")]
    pub enforcement: Option<Enforcement>,
    /// Settings for single rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub rules: Vec<RulePolicy>,
}

impl Policy {
    /// What becomes of a finding of this rule about this CRD; `default` is what becomes of it where nothing is said.
    pub(crate) fn enforcement(&self, crd: &str, rule: Rule, effect: Effect, default: Enforcement) -> Enforcement {
        let crd = self.crds.iter().find(|policy| policy.name == crd);
        if let Some(policy) = crd.and_then(|crd| named(&crd.rules, rule)) {
            return policy.of(effect, default);
        }
        let general = named(&self.rules, rule);
        let mild = match general {
            Some(policy) => policy.of(effect, default),
            None if effect == Effect::Loosens => default.min(self.loosening.unwrap_or_default()),
            None => default,
        };
        match (crd.and_then(|crd| crd.enforcement), general) {
            (Some(cap), _) => mild.min(cap),
            (None, Some(_)) => mild,
            (None, None) => mild.min(self.enforcement.unwrap_or_default()),
        }
    }

    /// How many custom resources of this CRD are to be checked, at most.
    pub fn sample_size(&self, crd: &str) -> u32 {
        let size = self.sample_size.map_or(SAMPLE_SIZE, |size| u32::try_from(size).unwrap_or(0));
        let rule = Rule::ExistingCustomResources;
        match self.enforcement(crd, rule, Effect::Tightens, Enforcement::Strict) {
            Enforcement::None => 0,
            _ if self.disabled => 0,
            _ => size,
        }
    }
}

impl RulePolicy {
    fn of(&self, effect: Effect, default: Enforcement) -> Enforcement {
        match (effect, self.loosening) {
            (Effect::Loosens, Some(loosening)) => loosening,
            (Effect::Loosens, None) => self.enforcement.min(default),
            _ => self.enforcement,
        }
    }
}

/// The setting of a rule, or else that of its family.
fn named(policies: &[RulePolicy], rule: Rule) -> Option<&RulePolicy> {
    let of = |rule: Rule| policies.iter().find(|policy| policy.name == rule);
    of(rule).or_else(|| of(rule.family()?))
}

fn enforcement(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["None", "Warn", "Strict"]})
}

fn sample_size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 1_000_000})
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to skip_serializing_if")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        Enforcement::{None, Strict, Warn},
        *,
    };

    #[test]
    fn the_most_exact_setting_decides() {
        use Effect::{Alters, Loosens, Tightens};
        let rows: &[(Value, Rule, Effect, Enforcement, Enforcement)] = &[
            (json!({}), Rule::Type, Alters, Strict, Strict),
            (json!({}), Rule::Description, Alters, None, None),
            (json!({"enforcement": "Strict"}), Rule::Description, Alters, None, None),
            (json!({"enforcement": "Warn"}), Rule::Type, Alters, Strict, Warn),
            (json!({"enforcement": "None"}), Rule::Type, Alters, Strict, None),
            (
                json!({"enforcement": "Warn", "rules": [{"name": "type", "enforcement": "Strict"}]}),
                Rule::Type,
                Alters,
                Strict,
                Strict,
            ),
            (
                json!({"rules": [{"name": "description", "enforcement": "Strict"}]}),
                Rule::Description,
                Alters,
                None,
                Strict,
            ),
            (json!({"rules": [{"name": "unhandled", "enforcement": "Warn"}]}), Rule::Format, Tightens, Strict, Warn),
            (
                json!({"rules": [{"name": "unhandled", "enforcement": "Warn"}, {"name": "format", "enforcement": "None"}]}),
                Rule::Format,
                Tightens,
                Strict,
                None,
            ),
            (json!({"loosening": "Warn"}), Rule::Pattern, Loosens, Strict, Warn),
            (json!({"loosening": "Warn"}), Rule::Pattern, Tightens, Strict, Strict),
            (json!({"loosening": "Strict"}), Rule::Enum, Loosens, None, None),
            (json!({"rules": [{"name": "enum", "enforcement": "Strict"}]}), Rule::Enum, Loosens, None, None),
            (
                json!({"rules": [{"name": "enum", "enforcement": "Strict", "loosening": "Warn"}]}),
                Rule::Enum,
                Loosens,
                None,
                Warn,
            ),
            (json!({"crds": [{"name": "a", "enforcement": "Warn"}]}), Rule::Type, Alters, Strict, Warn),
            (
                json!({"enforcement": "Warn", "crds": [{"name": "a", "enforcement": "Strict"}]}),
                Rule::Type,
                Alters,
                Strict,
                Strict,
            ),
            (json!({"crds": [{"name": "b", "enforcement": "Warn"}]}), Rule::Type, Alters, Strict, Strict),
            (
                json!({"crds": [{"name": "a", "enforcement": "None", "rules": [{"name": "type", "enforcement": "Warn"}]}]}),
                Rule::Type,
                Alters,
                Strict,
                Warn,
            ),
            (
                json!({"rules": [{"name": "type", "enforcement": "None"}], "crds": [{"name": "a", "enforcement": "Strict"}]}),
                Rule::Type,
                Alters,
                Strict,
                None,
            ),
        ];
        for (policy, rule, effect, default, expected) in rows {
            let parsed: Policy = serde_json::from_value(policy.clone()).unwrap();
            assert_eq!(parsed.enforcement("a", *rule, *effect, *default), *expected, "{policy} {rule}");
        }
    }

    #[test]
    fn rules_that_tell_nothing_look_at_no_object() {
        for (policy, expected) in [
            (json!({}), 1000),
            (json!({"sampleSize": 7}), 7),
            (json!({"sampleSize": -7}), 0),
            (json!({"enforcement": "None"}), 0),
            (json!({"disabled": true}), 0),
            (json!({"rules": [{"name": "existingCustomResources", "enforcement": "None"}]}), 0),
            (json!({"rules": [{"name": "existingCustomResources", "enforcement": "Warn"}]}), 1000),
        ] {
            let parsed: Policy = serde_json::from_value(policy.clone()).unwrap();
            assert_eq!(parsed.sample_size("a"), expected, "{policy}");
        }
    }

    #[test]
    fn unknown_rules_are_refused() {
        let policy = serde_json::from_value::<Policy>(json!({"rules": [{"name": "enums", "enforcement": "Warn"}]}));
        assert!(policy.unwrap_err().to_string().contains("unknown variant `enums`"));
    }
}
