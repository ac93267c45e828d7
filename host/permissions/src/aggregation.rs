//! Aggregated ClusterRoles (`aggregationRule`), as the ClusterRole aggregation controller computes them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use crate::{role::Role, rule::PolicyRule};

/// A label selector of `meta/v1`; an empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be set.
    pub match_labels: BTreeMap<String, String>,
    /// Further conditions.
    pub match_expressions: Vec<Requirement>,
}

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// The comparison.
    pub operator: Operator,
    /// The values to compare with.
    #[serde(default)]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is set.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl LabelSelector {
    fn selects(&self, labels: &BTreeMap<&str, &str>) -> bool {
        let requirement = |Requirement { key, operator, values }: &Requirement| {
            let value = labels.get(key.as_str());
            let among = || value.is_some_and(|value| values.iter().any(|wanted| wanted == value));
            match operator {
                Operator::In => among(),
                Operator::NotIn => !among(),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        };
        self.match_labels.iter().all(|(key, value)| labels.get(key.as_str()) == Some(&value.as_str()))
            && self.match_expressions.iter().all(requirement)
    }
}

/// The rules of an aggregated ClusterRole, collected from all ClusterRoles in the order of their names; each rule once.
/// `None` if the role is not aggregated or its selectors are malformed: its rules then stay unchanged.
pub fn aggregate<'a>(role: &Value, all: impl Iterator<Item = &'a Value>) -> Option<Vec<PolicyRule>> {
    let mut unlimited = usize::MAX;
    aggregate_within(role, all, &mut unlimited).ok().flatten()
}

/// Collecting the rules of an aggregated ClusterRole takes too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it selects too many rules, with too many selectors")]
pub struct TooMuchToCollect;

/// Like [`aggregate`], in a number of steps: one for each comparison of a selector with a role, and for each rule of a selected role.
///
/// # Errors
/// More steps are needed than are left.
pub fn aggregate_within<'a>(
    role: &Value,
    all: impl Iterator<Item = &'a Value>,
    left: &mut usize,
) -> Result<Option<Vec<PolicyRule>>, TooMuchToCollect> {
    let Some(selectors) = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array) else {
        return Ok(None);
    };
    let mut take = |steps: usize| -> Result<(), TooMuchToCollect> {
        *left = left.checked_sub(steps).ok_or(TooMuchToCollect)?;
        Ok(())
    };
    let own = name(role);
    let mut others: Vec<(BTreeMap<&str, &str>, &Value)> =
        all.filter(|other| name(other) != own).map(|other| (labels(other), other)).collect();
    take(others.len())?;
    let (mut rules, mut known) = (Vec::new(), BTreeSet::new());
    for selector in selectors {
        let Ok(selector) = LabelSelector::deserialize(selector) else { return Ok(None) };
        take(others.len())?;
        // The rules of a role are collected once, whatever else selects it.
        for (_, other) in others.extract_if(.., |(labels, _)| selector.selects(labels)) {
            let found = Role::read(other).rules;
            take(found.len())?;
            rules.extend(found.into_iter().filter(|rule| known.insert(rule.clone())));
        }
    }
    Ok(Some(rules))
}

fn name(role: &Value) -> Option<&str> {
    role.pointer("/metadata/name").and_then(Value::as_str)
}

fn labels(role: &Value) -> BTreeMap<&str, &str> {
    let labels = role.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn role(name: &str, labels: Value, rules: &[&str]) -> Value {
        let rules: Vec<Value> =
            rules.iter().map(|verb| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]})).collect();
        json!({"metadata": {"name": name, "labels": labels}, "rules": rules})
    }

    fn verbs(selectors: Value) -> Option<Vec<String>> {
        let all = [
            role("a", json!({"to": "view"}), &["get", "list"]),
            role("b", json!({"to": "edit", "also": "view"}), &["list", "update"]),
            role("c", json!(null), &["delete"]),
            role("whole", json!({"to": "view"}), &["own"]),
        ];
        let whole = json!({"metadata": {"name": "whole"}, "aggregationRule": {"clusterRoleSelectors": selectors}});
        let rules = aggregate(&whole, all.iter())?;
        Some(rules.into_iter().flat_map(|rule| rule.verbs).collect())
    }

    #[test]
    fn rules_of_selected_roles_are_collected_once_and_in_order() {
        let expression = |key: &str, operator: &str, values: &[&str]| {
            json!([{"matchExpressions": [
            {"key": key, "operator": operator, "values": values}]}])
        };
        let cases = [
            (json!([{"matchLabels": {"to": "view"}}]), "get list"),
            (json!([{"matchLabels": {"to": "edit"}}, {"matchLabels": {"to": "view"}}]), "list update get"),
            (json!([{"matchLabels": {"to": "edit", "also": "edit"}}]), ""),
            (json!([{}]), "get list update delete"),
            (json!([]), ""),
            (expression("to", "In", &["edit", "x"]), "list update"),
            (expression("to", "NotIn", &["view"]), "list update delete"),
            (expression("also", "Exists", &[]), "list update"),
            (expression("to", "DoesNotExist", &[]), "delete"),
        ];
        for (selectors, expected) in cases {
            let gathered = verbs(selectors.clone()).unwrap();
            assert_eq!(gathered.join(" "), expected, "{selectors}");
        }
        assert_eq!(verbs(expression("to", "Like", &[])), None);
        assert_eq!(aggregate(&role("plain", json!({}), &[]), std::iter::empty()), None);
    }
}
