//! Rules reviews: what an account may do, as the API server lists it.

use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::{PolicyRule, Scope};

/// Stands for the whole cluster in a rules review, which requires a namespace. No namespace can have this name, so it contains
/// no RoleBinding.
const NO_NAMESPACE: &str = "-";

/// The rules of an account in one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReviewedRules {
    /// The rules. One that cannot be read is left out: it grants nothing.
    pub rules: Vec<PolicyRule>,
    /// Whether an authorizer could not list all of them.
    pub incomplete: bool,
}

impl ReviewedRules {
    /// The `SelfSubjectRulesReview` (`authorization.k8s.io/v1`) that asks for the rules in a scope.
    pub fn request(scope: &Scope) -> Value {
        let namespace = scope.namespace().unwrap_or(NO_NAMESPACE);
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}})
    }

    /// The number of texts in all rules.
    pub fn texts(&self) -> usize {
        self.rules.iter().map(PolicyRule::texts).fold(0, usize::saturating_add)
    }

    /// Reads the status of a review.
    pub fn of_status(status: &Value) -> Self {
        let lists = ["resourceRules", "nonResourceRules"].map(|field| status.get(field).and_then(Value::as_array));
        let rules = lists.into_iter().flatten().flatten();
        let rules = rules.filter_map(|rule| PolicyRule::deserialize(rule).ok()).collect();
        Self { rules, incomplete: status.get("incomplete").and_then(Value::as_bool).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_review_asks_for_one_scope() {
        for (scope, namespace) in [(Scope::Cluster, "-"), (Scope::Namespace("shop".into()), "shop")] {
            assert_eq!(ReviewedRules::request(&scope)["spec"], json!({"namespace": namespace}));
        }
    }

    #[test]
    fn rules_are_read_from_both_lists_of_a_review() {
        let status = json!({
            "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, "not a rule"],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
        });
        let shown: Vec<String> = ReviewedRules::of_status(&status).rules.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#,
                r#"{NonResourceURLs:["/healthz"], Verbs:["get"]}"#
            ]
        );
        assert_eq!(ReviewedRules::of_status(&Value::Null), ReviewedRules::default());
        assert!(ReviewedRules::of_status(&json!({"incomplete": true})).incomplete);
    }
}
