//! Expressions cost no more than their budget, in steps and in memory, whatever they are and are evaluated on.

use std::sync::LazyLock;

use cel::Value;
use chandler_expression::{
    EvaluationError, Meter, Names, Program, evaluate,
    evaluate::{MEMORY, Outcome},
    json::to_value,
};
use serde_json::json;

use crate::memory;

/// The budget of an expression in an admission policy.
const LIMIT: u64 = 1_000_000;
/// The memory that evaluation may take, beyond the expression and the object: for values and regular expressions.
const PEAK: usize = MEMORY + (32 << 20);
/// A smaller limit of the memory of values, and what evaluation may take then.
const SMALL: (usize, usize) = (1 << 20, 33 << 20);
/// The largest object that is tried.
const OBJECT: usize = 256 << 10;

struct Object(Value);

impl Names for Object {
    fn variable(&self, name: &str) -> Option<Outcome> {
        (name == "object").then(|| Ok(self.0.clone()))
    }
}

/// The first line is an expression, the rest an object in JSON, or a text.
pub(crate) fn holds(input: &[u8]) {
    static WARM: LazyLock<()> = LazyLock::new(|| {
        // The functions of the library are collected once.
        let program = Program::parse("'a'.charAt(0)").expect("an expression");
        evaluate(&program, &Object(Value::Null), &Meter::new(LIMIT)).expect("a value");
    });
    LazyLock::force(&WARM);
    let text = String::from_utf8_lossy(input);
    let (expression, object) = text.split_once('\n').unwrap_or((&text, "{}"));
    let Ok(program) = Program::parse(expression) else { return };
    let object: String = object.chars().take(OBJECT / 4).collect();
    let object = Object(to_value(&serde_json::from_str(&object).unwrap_or_else(|_| json!({"text": object}))));
    for (limit, (memory, allowed)) in [(LIMIT, (MEMORY, PEAK)), (LIMIT, SMALL), (LIMIT / 100, (MEMORY, PEAK))] {
        let meter = Meter::new(limit).with_memory(memory);
        let (outcome, peak) = memory::measured(|| evaluate(&program, &object, &meter));
        assert!(peak <= allowed, "{peak} bytes at a time, {allowed} are allowed");
        let is_too_large = matches!(outcome, Err(EvaluationError::OutOfMemory { .. }));
        assert_eq!(is_too_large, meter.memory() > memory, "{outcome:.200?}");
        assert!(meter.used() <= limit + 1, "{} of {limit} were used", meter.used());
        assert_eq!(outcome == Err(EvaluationError::Exhausted), meter.used() > limit, "{outcome:.200?}");
    }
}
