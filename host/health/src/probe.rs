//! Whether an object meets a rule of the release.
//!
//! A rule is a CEL expression over `self`, the live object, with the functions that Kubernetes adds to CEL. Rules come from
//! plugins, so they are bounded: in length, in operators (which bounds how deep the parser and the evaluation go), and in how
//! many steps the macros that iterate could take over this object.

use std::fmt;

use cel::{Context, Program, Value as CelValue};
use chandler_core::{ObjectKey, Probe};
use kube_cel::KubeCelExt as _;
use serde_json::Value;

/// The longest rule, in bytes.
const RULE_BYTES: usize = 2048;
/// The most operators, brackets and separators in a rule.
const OPERATORS: usize = 256;
/// The deepest nesting of brackets.
const DEPTH: usize = 24;
/// The most steps that iterating macros may take over one object.
const STEPS: usize = 200_000;

/// A probe cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("probe {rule:?} for {kind} cannot be evaluated: {problem}")]
pub struct ProbeError {
    /// The rule, or its beginning.
    pub rule: String,
    /// The kind of the objects that it is about.
    pub kind: String,
    /// What is wrong.
    pub problem: String,
}

/// The probes of a release, compiled.
pub struct Probes(Vec<Compiled>);

struct Compiled {
    probe: Probe,
    program: Program,
    macros: u32,
    splits: bool,
}

impl Probes {
    /// Compiles the probes; one that cannot be is refused before anything is written.
    pub fn compile(probes: &[Probe]) -> Result<Self, ProbeError> {
        probes.iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// What an object does not meet, as the messages of the probes.
    pub fn unmet(&self, key: &ObjectKey, object: &Value) -> Vec<String> {
        self.0
            .iter()
            .filter(|compiled| is_about(&compiled.probe, key))
            .filter_map(|compiled| compiled.unmet(object))
            .collect()
    }
}

fn compile(probe: &Probe) -> Result<Compiled, ProbeError> {
    let refused = |problem: String| ProbeError {
        rule: probe.rule.chars().take(100).collect(),
        kind: probe.kind.clone(),
        problem,
    };
    check_size(&probe.rule).map_err(refused)?;
    let program = Program::compile(&probe.rule).map_err(|error| refused(error.to_string().replace('\n', " ")))?;
    let occurrences = |name: &str| probe.rule.matches(name).count();
    let macros: usize = [".all(", ".exists(", ".exists_one(", ".map(", ".filter("].into_iter().map(occurrences).sum();
    Ok(Compiled {
        probe: probe.clone(),
        program,
        macros: u32::try_from(macros).unwrap_or(u32::MAX),
        // Functions that make lists as long as a text.
        splits: ["split(", "findAll("].into_iter().any(|name| occurrences(name) > 0),
    })
}

fn check_size(rule: &str) -> Result<(), String> {
    if rule.len() > RULE_BYTES {
        return Err(format!("the rule is longer than {RULE_BYTES} bytes"));
    }
    if rule.chars().filter(char::is_ascii_punctuation).count() > OPERATORS {
        return Err(format!("the rule has more than {OPERATORS} operators"));
    }
    let mut depth = 0_usize;
    for character in rule.chars() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            return Err(format!("the rule nests deeper than {DEPTH}"));
        }
    }
    Ok(())
}

fn is_about(probe: &Probe, key: &ObjectKey) -> bool {
    probe.kind == key.kind
        && probe.api_version == key.api_version()
        && probe.name.as_ref().is_none_or(|name| *name == key.name)
        && probe.namespace.as_ref().is_none_or(|namespace| Some(namespace) == key.namespace.as_ref())
}

impl Compiled {
    fn unmet(&self, object: &Value) -> Option<String> {
        match self.evaluate(object) {
            Ok(true) => None,
            Ok(false) => Some(self.probe.message.clone()),
            Err(problem) => Some(format!("{} ({problem})", self.probe.message)),
        }
    }

    fn evaluate(&self, object: &Value) -> Result<bool, String> {
        if widest(object, self.splits).saturating_pow(self.macros) > STEPS {
            return Err("the rule iterates too often over an object of this size".to_owned());
        }
        let mut context = Context::default().with_all();
        let live = cel::to_value(object).map_err(|error| error.to_string())?;
        context.add_variable_from_value("self", live);
        match self.program.execute(&context) {
            Ok(CelValue::Bool(met)) => Ok(met),
            Ok(_) => Err("the rule is neither true nor false".to_owned()),
            Err(error) => Err(Bounded(error.to_string()).to_string()),
        }
    }
}

/// The most steps that one iteration over a part of this value can take.
fn widest(value: &Value, splits: bool) -> usize {
    match value {
        Value::Array(items) => items.iter().map(|item| widest(item, splits)).max().unwrap_or(1).max(items.len()),
        Value::Object(map) => map.values().map(|item| widest(item, splits)).max().unwrap_or(1).max(map.len()),
        Value::String(text) if splits => text.len().max(1),
        _ => 1,
    }
}

/// An error of the evaluation may quote whole objects.
struct Bounded(String);

impl fmt::Display for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().take(200).try_for_each(|character| write!(f, "{character}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn probe(rule: &str) -> Probe {
        Probe {
            api_version: "a.b/v1".into(),
            kind: "X".into(),
            namespace: None,
            name: None,
            rule: rule.into(),
            message: "not yet".into(),
        }
    }

    fn key() -> ObjectKey {
        ObjectKey {
            group: "a.b".into(),
            kind: "X".into(),
            namespace: Some("n".into()),
            name: "x".into(),
            version: "v1".into(),
        }
    }

    fn unmet(rule: &str, object: &Value) -> Vec<String> {
        Probes::compile(&[probe(rule)]).unwrap().unmet(&key(), object)
    }

    #[test]
    fn rules_are_about_the_live_object() {
        let object =
            json!({"spec": {"replicas": 2}, "status": {"ready": 2, "conditions": [{"type": "Up", "status": "True"}]}});
        for met in [
            "self.status.ready == self.spec.replicas",
            "self.status.conditions.exists(c, c.type == 'Up' && c.status == 'True')",
            "has(self.status) && !has(self.metadata)",
            "'Up'.lowerAscii() == 'up'",
        ] {
            assert_eq!(unmet(met, &object), [""; 0], "{met}");
        }
        assert_eq!(unmet("self.status.ready > 2", &object), ["not yet"]);
        assert_eq!(unmet("self.status.ready", &object), ["not yet (the rule is neither true nor false)"]);
        let absent = unmet("self.status.absent == 1", &object);
        assert!(absent[0].starts_with("not yet ("), "{absent:?}");
    }

    #[test]
    fn a_probe_is_about_the_objects_that_it_names() {
        let mut other = probe("false");
        for (change, unmet) in [
            (&(|_: &mut Probe| ()) as &dyn Fn(&mut Probe), 1),
            (&|probe: &mut Probe| probe.name = Some("x".into()), 1),
            (&|probe: &mut Probe| probe.namespace = Some("other".into()), 0),
            (&|probe: &mut Probe| probe.kind = "Y".into(), 0),
        ] {
            change(&mut other);
            assert_eq!(Probes::compile(&[other.clone()]).unwrap().unmet(&key(), &json!({})).len(), unmet);
        }
    }

    #[test]
    fn rules_are_bounded() {
        let refused = |rule: String| Probes::compile(&[probe(&rule)]).err().unwrap().to_string();
        assert!(refused("x".repeat(3000)).ends_with("the rule is longer than 2048 bytes"));
        assert!(refused("!".repeat(300)).ends_with("the rule has more than 256 operators"));
        assert!(refused(format!("{}1{}", "(".repeat(30), ")".repeat(30))).ends_with("the rule nests deeper than 24"));
        assert!(refused("self.".into()).starts_with("probe \"self.\" for X cannot be evaluated: "));
        let many: Vec<i32> = (0..1000).collect();
        assert_eq!(
            unmet("self.a.all(x, self.a.exists(y, x == y))", &json!({"a": many})),
            ["not yet (the rule iterates too often over an object of this size)"]
        );
    }
}
