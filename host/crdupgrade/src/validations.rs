//! Compares rules in CEL (`x-kubernetes-validations`), identified by their expressions.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    Enforcement, Rule,
    change::Change,
    finding::Effect::{Alters, Loosens, Tightens},
    keywords::unhandled,
};

const KEYWORD: &str = "x-kubernetes-validations";
/// The members that affect the result of a rule, besides its expression.
const DECISIVE: [&str; 1] = ["optionalOldSelf"];

pub(crate) fn compare(before: Option<&Value>, after: Option<&Value>) -> Vec<Change> {
    let (old, new) = (by_expression(before), by_expression(after));
    let mut changes = Vec::new();
    let mut add = |effect, old: Option<&Value>, new: Option<&Value>| {
        changes.push(Change::new(Rule::Validations, effect, unhandled(KEYWORD, old, new)).of(old, new));
    };
    for (expression, rule) in &new {
        match old.get(expression) {
            None => add(Tightens, None, rule.get("rule")),
            Some(was) if decisive(was) != decisive(rule) => {
                add(Alters, Some(&Value::Object((*was).clone())), Some(&Value::Object((*rule).clone())));
            }
            Some(_) => {}
        }
    }
    for (_, rule) in old.iter().filter(|(expression, _)| !new.contains_key(*expression)) {
        add(Loosens, rule.get("rule"), None);
    }
    if changes.is_empty() {
        let change =
            Change::new(Rule::Description, Alters, format!("{KEYWORD}: only the message of a violation changed"));
        changes.push(change.of(before, after).by_default(Enforcement::None));
    }
    changes
}

fn by_expression(rules: Option<&Value>) -> BTreeMap<&str, &Map<String, Value>> {
    let rules = rules.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    rules.map(|rule| (rule.get("rule").and_then(Value::as_str).unwrap_or_default().trim(), rule)).collect()
}

fn decisive(rule: &Map<String, Value>) -> [Option<&Value>; 1] {
    DECISIVE.map(|keyword| rule.get(keyword).filter(|value| **value != Value::Bool(false)))
}
