//! What a bundle requires of the set that it is installed with.

use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use crate::{kind::Kind, rules, version::blang::Range};

/// The deepest nesting of a compound constraint.
const DEPTH: usize = 16;
/// The most parts of one compound constraint.
const PARTS: usize = 256;

/// A requirement. It holds for a set of bundles on a cluster, never for one bundle alone.
#[derive(Clone, Debug)]
pub enum Need {
    /// Some bundle of the set matches, or the cluster has it.
    Leaf(Leaf),
    /// All parts hold.
    All(Vec<Need>),
    /// At least one part holds.
    Any(Vec<Need>),
    /// No part holds, the bundle itself aside.
    Not(Vec<Need>),
}

/// What one bundle can meet.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// What is looked for.
    pub wanted: Wanted,
    /// CEL rules that the properties of the same bundle meet.
    pub rules: Vec<String>,
}

/// What a [`Leaf`] looks for.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// A bundle of a package in a range.
    Package {
        /// The name of the package.
        name: String,
        /// The versions.
        range: Range,
    },
    /// A bundle that provides a kind, or a cluster that serves it.
    Kind(Kind),
    /// A bundle with a label.
    Label(String),
    /// Any bundle: the rules of the leaf decide.
    Any,
}

/// Why a requirement cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{property}: {message}")]
pub struct NeedError {
    /// The type of the property.
    pub property: String,
    /// What is wrong.
    pub message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackageValue {
    #[serde(alias = "name")]
    package_name: String,
    #[serde(alias = "version")]
    version_range: String,
}

/// Checks a constraint of a question, rules included. A catalog may have a rule that cannot be evaluated, and it is never met; in a `not`, it would
/// always hold. Use this where a constraint must not be ineffective because of a mistake.
///
/// # Errors
/// A message that says what is wrong.
pub fn check(property: &Value) -> Result<(), String> {
    let need = Need::of_property(property)?;
    let mut invalid = None;
    need.leaves(false, &mut |leaf, _| {
        invalid = invalid.take().or_else(|| leaf.rules.iter().find(|rule| !rules::is_valid(rule)));
    });
    let Some(rule) = invalid else { return Ok(()) };
    let rule: String = rule.chars().take(128).collect();
    Err(format!("olm.constraint: cel: the rule {rule:?} does not compile, is too large, or calls an unknown function"))
}

impl Need {
    /// Reads the value of a property `olm.package.required`, or of a dependency `olm.package`.
    pub(crate) fn package(value: &Value) -> Result<Self, String> {
        let read: PackageValue = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        let range = Range::parse(&read.version_range).map_err(|error| error.to_string())?;
        let wanted = Wanted::Package { name: read.package_name, range };
        Ok(Self::Leaf(Leaf { wanted, rules: Vec::new() }))
    }

    /// Reads the value of a property `olm.gvk.required`, or of a dependency `olm.gvk`.
    pub(crate) fn kind(value: &Value) -> Result<Self, String> {
        Kind::read(value).map(Self::of_kind)
    }

    /// A requirement of a kind.
    pub(crate) fn of_kind(kind: Kind) -> Self {
        Self::Leaf(Leaf { wanted: Wanted::Kind(kind), rules: Vec::new() })
    }

    /// A requirement of a bundle with a label.
    pub(crate) fn of_label(label: String) -> Self {
        Self::Leaf(Leaf { wanted: Wanted::Label(label), rules: Vec::new() })
    }

    /// Reads the value of a property `olm.constraint`.
    pub(crate) fn constraint(value: &Value) -> Result<Self, String> {
        let mut parts = 0;
        let mut need = read(value, 0, &mut parts)?;
        need.spread(&[]);
        Ok(need)
    }

    /// Reads a constraint of a question: a property of one of the three types above.
    pub(crate) fn of_property(property: &Value) -> Result<Self, String> {
        let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
        let value = property.get("value").unwrap_or(&Value::Null);
        let read = match kind {
            "olm.package.required" => Self::package(value),
            "olm.gvk.required" => Self::kind(value),
            "olm.constraint" => Self::constraint(value),
            _ => Err("the type is none of olm.package.required, olm.gvk.required and olm.constraint".to_owned()),
        };
        read.map_err(|error| format!("{kind}: {error}"))
    }

    /// Rules beside packages and kinds of an `all` are about the bundles that these select.
    fn spread(&mut self, rules: &[String]) {
        match self {
            Self::Leaf(leaf) => {
                if !matches!(leaf.wanted, Wanted::Any) {
                    leaf.rules.extend_from_slice(rules);
                }
            }
            Self::All(parts) => {
                let rule = |part: &Need| match part {
                    Self::Leaf(Leaf { wanted: Wanted::Any, rules }) => rules.clone(),
                    _ => Vec::new(),
                };
                let selects = parts.iter().any(Self::selects);
                let mut all = rules.to_vec();
                if selects {
                    all.extend(parts.iter().flat_map(rule));
                    parts.retain(|part| rule(part).is_empty());
                }
                for part in parts {
                    part.spread(&all);
                }
            }
            Self::Any(parts) => parts.iter_mut().for_each(|part| part.spread(rules)),
            Self::Not(parts) => parts.iter_mut().for_each(|part| part.spread(&[])),
        }
    }

    /// Whether it selects a bundle by package or kind.
    fn selects(&self) -> bool {
        match self {
            Self::Leaf(leaf) => !matches!(leaf.wanted, Wanted::Any),
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::selects),
            Self::Not(_) => false,
        }
    }

    /// Calls `visit` with each leaf, and with whether it is one that must not be met.
    pub fn leaves<'a>(&'a self, negated: bool, visit: &mut impl FnMut(&'a Leaf, bool)) {
        match self {
            Self::Leaf(leaf) => visit(leaf, negated),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.leaves(negated, visit)),
            Self::Not(parts) => parts.iter().for_each(|part| part.leaves(!negated, visit)),
        }
    }
}

fn read(value: &Value, depth: usize, parts: &mut usize) -> Result<Need, String> {
    *parts += 1;
    if depth > DEPTH || *parts > PARTS {
        return Err(format!("a constraint may have {PARTS} parts, nested {DEPTH} deep"));
    }
    let members = value.as_object().ok_or("a constraint is an object")?;
    let mut conditions = members.iter().filter(|(name, _)| *name != "failureMessage");
    let (Some((name, value)), None) = (conditions.next(), conditions.next()) else {
        return Err("a constraint has one of gvk, package, cel, all, any and not".to_owned());
    };
    let mut list = || -> Result<Vec<Need>, String> {
        let list = value.get("constraints").and_then(Value::as_array).filter(|list| !list.is_empty());
        let list = list.ok_or("a compound constraint has a list of constraints")?;
        list.iter().map(|part| read(part, depth + 1, parts)).collect()
    };
    match name.as_str() {
        "gvk" => Need::kind(value),
        "package" => Need::package(value),
        "cel" => {
            let rule = value.get("rule").and_then(Value::as_str).ok_or("cel has a rule")?;
            Ok(Need::Leaf(Leaf { wanted: Wanted::Any, rules: vec![rule.to_owned()] }))
        }
        "all" => Ok(Need::All(list()?)),
        "any" => Ok(Need::Any(list()?)),
        "not" => Ok(Need::Not(list()?)),
        _ => Err(format!("unknown constraint {:?}", name.chars().take(64).collect::<String>())),
    }
}

impl fmt::Display for Need {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |to: &mut fmt::Formatter<'_>, before: &str, parts: &[Need], between: &str| {
            write!(to, "{before}(")?;
            for (index, part) in parts.iter().enumerate() {
                write!(to, "{}{part}", if index == 0 { "" } else { between })?;
            }
            write!(to, ")")
        };
        match self {
            Self::Leaf(leaf) => leaf.fmt(to),
            Self::All(parts) => list(to, "all of ", parts, " and "),
            Self::Any(parts) => list(to, "any of ", parts, " or "),
            Self::Not(parts) => list(to, "none of ", parts, " or "),
        }
    }
}

impl fmt::Display for Leaf {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.wanted {
            Wanted::Package { name, range } => write!(to, "package {name} {}", range.as_str())?,
            Wanted::Kind(kind) => write!(to, "kind {kind}")?,
            Wanted::Label(label) => write!(to, "a bundle with label {label}")?,
            Wanted::Any => write!(to, "a bundle")?,
        }
        for (index, rule) in self.rules.iter().enumerate() {
            write!(to, "{} {rule}", if index == 0 { " with" } else { " and" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_about_the_bundle_that_is_selected_beside_them() {
        let cel = json!({"cel": {"rule": "true"}});
        let package = json!({"package": {"packageName": "p", "versionRange": ">=1.0.0"}});
        let kind = json!({"gvk": {"group": "x.io", "version": "v1", "kind": "X"}, "failureMessage": "no X"});
        let of = |name: &str, parts: &[&Value]| json!({name: {"constraints": parts}});
        let cases = [
            (of("all", &[&package, &cel]), "all of (package p >=1.0.0 with true)"),
            (
                of("all", &[&of("any", &[&package, &kind]), &cel]),
                "all of (any of (package p >=1.0.0 with true or kind x.io/v1/X with true))",
            ),
            (of("all", &[&cel, &cel]), "all of (a bundle with true and a bundle with true)"),
            (of("any", &[&package, &cel]), "any of (package p >=1.0.0 or a bundle with true)"),
            (of("all", &[&of("not", &[&kind]), &cel]), "all of (none of (kind x.io/v1/X) and a bundle with true)"),
            (cel.clone(), "a bundle with true"),
        ];
        for (value, want) in cases {
            assert_eq!(Need::constraint(&value).unwrap().to_string(), want);
        }
    }

    #[test]
    fn a_rule_that_cannot_be_evaluated_is_found_wherever_it_is() {
        let constraint = |value: Value| check(&json!({"type": "olm.constraint", "value": value}));
        let cel = |rule: &str| json!({"cel": {"rule": rule}});
        let not = |part: Value| json!({"not": {"constraints": [part]}});
        assert_eq!(constraint(not(cel("properties.exists(p, p.type == 'certified')"))), Ok(()));
        let package = json!({"package": {"packageName": "a", "versionRange": ">=1.0.0"}});
        for rule in ["properties.exists(", "unknown(properties)", ""] {
            let all = json!({"all": {"constraints": [package.clone(), cel(rule)]}});
            for value in [cel(rule), not(cel(rule)), all.clone(), not(all)] {
                assert!(constraint(value.clone()).is_err_and(|error| error.contains("cel")), "{value}");
            }
        }
        assert!(check(&json!({"type": "olm.label", "value": "x"})).is_err());
    }

    #[test]
    fn malformed_constraints_are_refused() {
        let deep = (0..20).fold(json!({"cel": {"rule": "true"}}), |inner, _| json!({"all": {"constraints": [inner]}}));
        for value in
            [json!([]), json!({}), json!({"all": {}}), json!({"vibes": {}}), json!({"gvk": {}, "cel": {}}), deep]
        {
            assert!(Need::constraint(&value).is_err(), "{value}");
        }
    }
}
