//! Label selectors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The label that is the name of a catalog.
pub const NAME: &str = "olm.operatorframework.io/metadata.name";

/// A label selector of Kubernetes. An empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Selector {
    /// Labels that must have these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions that must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Expression>,
}

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expression {
    /// The name of the label.
    pub key: String,
    /// The comparison.
    pub operator: Operator,
    /// The values, for `In` and `NotIn`.
    #[serde(default)]
    pub values: Vec<String>,
}

/// The comparison of an [`Expression`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// It has none of the values, or is missing.
    NotIn,
    /// It is there.
    Exists,
    /// It is missing.
    DoesNotExist,
}

impl Selector {
    /// Selects one catalog.
    pub fn name(name: &str) -> Self {
        let match_labels = BTreeMap::from([(NAME.to_owned(), name.to_owned())]);
        Self { match_labels, match_expressions: Vec::new() }
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether it selects a catalog.
    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let get = |key: &str| if key == NAME { Some(name) } else { labels.get(key).map(String::as_str) };
        let holds = |expression: &Expression| {
            let value = get(&expression.key);
            let listed = value.is_some_and(|value| expression.values.iter().any(|one| one == value));
            match expression.operator {
                Operator::In => listed,
                Operator::NotIn => !listed,
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        };
        self.match_labels.iter().all(|(key, want)| get(key) == Some(want)) && self.match_expressions.iter().all(holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_are_selected_by_name_and_labels() {
        let labels = BTreeMap::from([("tier".to_owned(), "gold".to_owned())]);
        let with = |operator, values: &[&str]| Selector {
            match_expressions: vec![Expression {
                key: "tier".to_owned(),
                operator,
                values: values.iter().map(|&value| value.to_owned()).collect(),
            }],
            ..Selector::default()
        };
        let cases = [
            (Selector::default(), true),
            (Selector::name("a"), true),
            (Selector::name("b"), false),
            (with(Operator::In, &["gold", "silver"]), true),
            (with(Operator::NotIn, &["gold"]), false),
            (with(Operator::NotIn, &["silver"]), true),
            (with(Operator::Exists, &[]), true),
            (with(Operator::DoesNotExist, &[]), false),
        ];
        for (selector, want) in cases {
            assert_eq!(selector.matches("a", &labels), want, "{selector:?}");
        }
    }
}
