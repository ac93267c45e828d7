//! How upgrades of CustomResourceDefinitions are checked: the settings of `spec.preflight.crdUpgradeSafety`.
//!
//! Plain types, so that the API types can hold them without the code that makes the checks. `host/crdupgrade` applies them.

mod rule;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

pub use self::rule::Rule;

/// What the controller does about a finding, from the mildest to the most severe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Enforcement {
    /// It ignores the finding.
    None,
    /// It reports the finding and upgrades the CRD.
    Warn,
    /// It refuses the upgrade.
    #[default]
    Strict,
}

/// How upgrades of CustomResourceDefinitions are checked before the controller writes anything. A CRD that is new to the
/// cluster is never refused.
///
/// The most specific setting applies: first a rule of a CRD, then the CRD, then a rule, then the general setting. The general
/// setting and the setting of a CRD only make rules milder than their defaults. The setting of a rule applies exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    /// Skip this check.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,
    /// What the controller does about findings: Strict refuses the upgrade, Warn reports the finding, None ignores it.
    /// Default: Strict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enforcement")]
    pub enforcement: Option<Enforcement>,
    /// The most severe enforcement for changes that accept more than before, such as a removed pattern. Stored objects stay
    /// valid, but clients may read values that they do not know. Default: Strict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enforcement")]
    pub loosening: Option<Enforcement>,
    /// Settings of individual rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub rules: Vec<RulePolicy>,
    /// Settings of individual CRDs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub crds: Vec<CrdPolicy>,
    /// How many existing custom resources of each CRD are validated against its new schema; 0 skips the validation.
    /// Default: 1000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "sample_size")]
    pub sample_size: Option<i32>,
}

/// How one rule is enforced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RulePolicy {
    /// The name of the rule.
    pub name: Rule,
    /// What the controller does about findings of this rule.
    #[schemars(schema_with = "enforcement")]
    pub enforcement: Enforcement,
    /// What the controller does about findings of this rule that accept more than before. Default: the value of enforcement,
    /// except that new values of an enum are accepted.
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
    /// The most severe enforcement for findings about this CRD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enforcement")]
    pub enforcement: Option<Enforcement>,
    /// Settings of individual rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub rules: Vec<RulePolicy>,
}

fn enforcement(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["None", "Warn", "Strict"]})
}

fn sample_size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 1_000_000})
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to skip_serializing_if")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_rules_are_refused() {
        let policy = serde_json::from_value::<Policy>(json!({"rules": [{"name": "enums", "enforcement": "Warn"}]}));
        assert!(policy.unwrap_err().to_string().contains("unknown variant `enums`"));
    }
}
