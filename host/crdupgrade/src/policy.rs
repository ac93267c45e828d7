//! Which enforcement a policy gives to a finding. The settings themselves are in `chandler_core::crd_upgrade`.

use chandler_core::crd_upgrade::{Enforcement, Policy, Rule, RulePolicy};

use crate::finding::Effect;

/// How many custom resources of one CRD are validated if the policy sets no number.
const SAMPLE_SIZE: u32 = 1000;

/// The enforcement of a finding of this rule about this CRD; `default` applies if the policy does not set one.
pub(crate) fn enforcement(policy: &Policy, crd: &str, rule: Rule, effect: Effect, default: Enforcement) -> Enforcement {
    let crd = policy.crds.iter().find(|policy| policy.name == crd);
    if let Some(setting) = crd.and_then(|crd| named(&crd.rules, rule)) {
        return of_rule(setting, effect, default);
    }
    let general = named(&policy.rules, rule);
    let mild = match general {
        Some(setting) => of_rule(setting, effect, default),
        None if effect == Effect::Loosens => default.min(policy.loosening.unwrap_or_default()),
        None => default,
    };
    match (crd.and_then(|crd| crd.enforcement), general) {
        (Some(cap), _) => mild.min(cap),
        (None, Some(_)) => mild,
        (None, None) => mild.min(policy.enforcement.unwrap_or_default()),
    }
}

/// How many custom resources of this CRD are validated, at most.
pub(crate) fn sample_size(policy: &Policy, crd: &str) -> u32 {
    let size = policy.sample_size.map_or(SAMPLE_SIZE, |size| u32::try_from(size).unwrap_or(0));
    match enforcement(policy, crd, Rule::ExistingCustomResources, Effect::Tightens, Enforcement::Strict) {
        Enforcement::None => 0,
        _ if policy.disabled => 0,
        _ => size,
    }
}

fn of_rule(setting: &RulePolicy, effect: Effect, default: Enforcement) -> Enforcement {
    match (effect, setting.loosening) {
        (Effect::Loosens, Some(loosening)) => loosening,
        (Effect::Loosens, None) => setting.enforcement.min(default),
        _ => setting.enforcement,
    }
}

/// The setting of a rule, or else of its family.
fn named(policies: &[RulePolicy], rule: Rule) -> Option<&RulePolicy> {
    let of = |rule: Rule| policies.iter().find(|policy| policy.name == rule);
    of(rule).or_else(|| of(rule.family()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        Enforcement::{None, Strict, Warn},
        *,
    };

    #[test]
    fn the_most_specific_setting_applies() {
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
            assert_eq!(enforcement(&parsed, "a", *rule, *effect, *default), *expected, "{policy} {rule}");
        }
    }

    #[test]
    fn ignored_rules_sample_no_objects() {
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
            assert_eq!(sample_size(&parsed, "a"), expected, "{policy}");
        }
    }
}
