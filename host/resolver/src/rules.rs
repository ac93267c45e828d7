//! CEL rules about the properties of a bundle: compiled once, and evaluated within a budget.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, HashMap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use cel::{Context, Program, Value as CelValue};
use chandler_expression::{Patterns, compile, depth, loops, on_large_stack};
use semver::Version;
use serde_json::Value;

use crate::{error::Exceeded, sat::Steps};

/// The deepest tree of a rule, over which the interpreter recurses.
const DEPTH: u32 = 48;
/// The deepest nesting of loops in a rule.
const LOOPS: u32 = 2;
/// The most memory of the regular expressions of a rule, in bytes.
const PATTERNS: usize = 1 << 20;

/// The rules of one resolution.
#[derive(Default)]
pub(crate) struct Rules {
    compiled: BTreeMap<String, Option<Rule>>,
}

struct Rule {
    program: Program,
    loops: u32,
    /// The cost of one turn of the innermost loop.
    price: u64,
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
        steps
            .take(size.saturating_mul(2).saturating_add(rule.price.saturating_mul(size.saturating_pow(rule.loops))))?;
        let mut context = Context::default();
        context.add_function("semver_compare", semver_compare);
        context
            .add_variable_from_value("properties", CelValue::List(Arc::new(properties.iter().map(value_of).collect())));
        // The interpreter is third-party code, and both the rule and the properties are untrusted.
        let met = catch_unwind(AssertUnwindSafe(|| rule.program.execute(&context)));
        Ok(matches!(met, Ok(Ok(CelValue::Bool(true)))))
    }
}

fn compiled(rule: &str) -> Option<Rule> {
    let measured = on_large_stack(|| {
        let program = compile(rule).ok()?;
        let tree = &program.expression().expr;
        let patterns = Patterns::of(tree).total(tree);
        if depth(tree) > DEPTH || loops(tree) > LOOPS || patterns > PATTERNS {
            return None;
        }
        let price = 1 + rule.len() as u64 / 4 + patterns as u64 / 256;
        Some((loops(tree), price, program))
    });
    let (loops, price, program) = measured.ok()??;
    Some(Rule { program, loops, price })
}

fn value_of(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => CelValue::Int(int),
            (None, Some(uint)) => CelValue::UInt(uint),
            (None, None) => CelValue::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => CelValue::String(Arc::new(text.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(value_of).collect())),
        Value::Object(map) => {
            let map: HashMap<String, CelValue> =
                map.iter().map(|(name, value)| (name.clone(), value_of(value))).collect();
            CelValue::Map(map.into())
        }
    }
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
fn semver_compare(one: Arc<String>, other: Arc<String>) -> Result<i64, cel::ExecutionError> {
    let parse = |text: &str| {
        Version::parse(text).map_err(|error| cel::ExecutionError::function_error("semver_compare", error.to_string()))
    };
    Ok(match parse(&one)?.cmp_precedence(&parse(&other)?) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}
