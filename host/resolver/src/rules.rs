//! CEL rules about the properties of a bundle: compiled once, and evaluated within a budget.

use std::{cmp::Ordering, collections::BTreeMap};

use cel::{
    Value as CelValue,
    common::ast::{CallExpr, Expr},
};
use chandler_expression::{
    Meter, Names, Patterns, Program, depth, evaluate,
    evaluate::{EvaluationError, Outcome},
    json::to_value,
    loops, on_large_stack,
    tree::children,
};
use semver::Version;
use serde_json::Value;

use crate::{error::Exceeded, sat::Steps};

/// The deepest tree of a rule, over which the evaluator recurses.
const DEPTH: u32 = 48;
/// The deepest nesting of loops in a rule.
const LOOPS: u32 = 2;
/// The most memory of the regular expressions of a rule, in bytes.
const PATTERNS: usize = 1 << 20;
/// The most steps of a rule about one bundle.
const STEPS: u64 = 1_000_000;
/// The functions of the language, and of OLM. Those that Kubernetes adds are unknown, as in OLM.
const FUNCTIONS: &[&str] = &[
    "bytes",
    "contains",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "int",
    "matches",
    "max",
    "min",
    "none",
    "of",
    "ofNonZeroValue",
    "or",
    "orValue",
    "semver_compare",
    "size",
    "startsWith",
    "string",
    "timestamp",
    "type",
    "uint",
    "value",
];

/// The rules of one resolution.
#[derive(Default)]
pub(crate) struct Rules {
    compiled: BTreeMap<String, Option<Program>>,
}

impl Rules {
    /// Whether the properties of a bundle meet a rule. A rule that is malformed or fails is not met.
    pub(crate) fn holds(&mut self, rule: &str, properties: &[Value], steps: &Steps) -> Result<bool, Exceeded> {
        if !self.compiled.contains_key(rule) {
            steps.take(5_000)?;
            self.compiled.insert(rule.to_owned(), compiled(rule));
        }
        let Some(Some(rule)) = self.compiled.get(rule) else { return Ok(false) };
        let size: u64 = 1 + properties.iter().map(size).sum::<u64>();
        steps.take(size.saturating_mul(2))?;
        let properties = Properties(CelValue::List(properties.iter().map(to_value).collect::<Vec<_>>().into()));
        let most = STEPS.min(steps.left());
        let meter = Meter::new(most);
        let met = evaluate(rule, &properties, &meter);
        steps.take(meter.used())?;
        match met {
            Err(EvaluationError::Exhausted) if most < STEPS => Err(Exceeded::Steps),
            Err(exceeded) if exceeded.is_final() => Err(Exceeded::Rule),
            met => Ok(met == Ok(CelValue::Bool(true))),
        }
    }
}

/// The only variable of a rule.
struct Properties(CelValue);

impl Names for Properties {
    fn variable(&self, name: &str) -> Option<Outcome> {
        (name == "properties").then(|| Ok(self.0.clone()))
    }

    fn call(&self, function: &str, target: &CelValue, arguments: &[CelValue], meter: &Meter) -> Option<Outcome> {
        chandler_expression::evaluate::member(function, target, arguments, meter)
    }

    fn function(&self, function: &str, arguments: &[CelValue], meter: &Meter) -> Option<Outcome> {
        if function != "semver_compare" {
            return None;
        }
        let [CelValue::String(one), CelValue::String(other)] = arguments else {
            return Some(Err(EvaluationError::NoSuchOverload));
        };
        Some(meter.charge_text(one.len().saturating_add(other.len())).and_then(|()| semver_compare(one, other)))
    }
}

/// Whether a rule can be evaluated: it compiles within the bounds, and calls only functions that rules have.
pub(crate) fn is_valid(rule: &str) -> bool {
    compiled(rule).is_some()
}

fn compiled(rule: &str) -> Option<Program> {
    let program = Program::parse(rule).ok()?;
    let tree = &program.expression().expr;
    let is_bounded = on_large_stack(|| {
        let patterns = Patterns::of(tree).total(tree);
        depth(tree) <= DEPTH && loops(tree) <= LOOPS && patterns <= PATTERNS && is_known(tree)
    });
    // A catalog has many rules, and the patterns of each take memory.
    is_bounded.is_ok_and(|is_bounded| is_bounded).then(|| program.without_patterns())
}

/// Whether an expression uses only functions that rules may use.
fn is_known(expression: &Expr) -> bool {
    let is_function = |call: &CallExpr| call.func_name.starts_with(|first: char| first.is_ascii_alphabetic());
    let known = match expression {
        Expr::Call(call) if is_function(call) => FUNCTIONS.contains(&call.func_name.as_str()),
        _ => true,
    };
    known && children(expression).into_iter().all(is_known)
}

/// The number of values, and of eights of bytes in texts.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 8,
        Value::Array(items) => 1 + items.iter().map(size).sum::<u64>(),
        Value::Object(map) => 1 + map.values().map(size).sum::<u64>(),
        _ => 1,
    }
}

/// `-1`, `0` or `1`, as OLM's function of that name.
fn semver_compare(one: &str, other: &str) -> Outcome {
    let parse = |text: &str| {
        Version::parse(text).map_err(|error| EvaluationError::Function {
            name: "semver_compare".to_owned(),
            message: error.to_string(),
        })
    };
    Ok(CelValue::Int(match parse(one)?.cmp_precedence(&parse(other)?) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}
