//! CEL rules (`x-kubernetes-validations`).

use std::sync::Arc;

use cel::{Value as CelValue, objects::OptionalValue};
use chandler_expression::{
    EvaluationError, Program,
    evaluate::{Outcome, RuleVariables, run},
};
use serde_json::Value;

use super::rule_value;
use crate::schema::{
    error::FieldError,
    expression::{CompiledRule, compile},
    model::{Rule, Schema},
    path::FieldPath,
};

/// The cost limits of one rule, and of all rules of one object; the unit is a step of [`run`].
const RULE_BUDGET: u64 = 10_000_000;
const OBJECT_BUDGET: u64 = 100_000_000;

/// The remaining cost budget of the rules of one object.
pub(super) struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(OBJECT_BUDGET)
    }
}

impl Budget {
    fn evaluate(&mut self, program: &Program, variables: &RuleVariables) -> Outcome {
        let (outcome, used) = run(program, variables, RULE_BUDGET.min(self.0));
        self.0 = self.0.saturating_sub(used);
        outcome
    }
}

/// Runs the rules of one place.
///
/// Rules that mention `oldSelf` run only where there is an old value; the others not where the value is unchanged.
pub(super) fn check(
    schema: &Schema,
    new: &Value,
    old: Option<&Value>,
    path: &FieldPath<'_>,
    budget: &mut Budget,
    errors: &mut Vec<FieldError>,
) {
    let convert = |value: &Value| match path {
        FieldPath::Root => rule_value::root(schema, value),
        _ => rule_value::convert(schema, value),
    };
    let unchanged = old == Some(new);
    let new_value = convert(new);
    let old_value = old.map(convert);
    for rule in &schema.rules {
        let compiled = match rule.compiled.get_or_init(|| compile(&rule.rule, rule.message_expression.as_deref())) {
            Ok(compiled) => compiled,
            Err(error) => {
                let detail = format!("rule compile error: compilation failed: {error}");
                errors.push(FieldError::invalid(path, shown(new), detail));
                continue;
            }
        };
        let optional = rule.optional_old_self;
        let skipped = if compiled.uses_old_self { old_value.is_none() && !optional } else { unchanged };
        if skipped {
            continue;
        }
        let old_self = if optional {
            let held = old_value.clone().map_or_else(OptionalValue::none, OptionalValue::of);
            Some(CelValue::Opaque(Arc::new(held)))
        } else {
            old_value.clone()
        };
        let variables = RuleVariables { this: new_value.clone(), old: old_self };
        match budget.evaluate(&compiled.program, &variables) {
            Ok(CelValue::Bool(true)) => {}
            Ok(CelValue::Bool(false)) => {
                errors.push(violation(rule, message(rule, compiled, &variables, budget), new, path));
            }
            Ok(_) => errors.push(FieldError::invalid(path, shown(new), "cel expression evaluated to a non-boolean")),
            Err(EvaluationError::Exhausted) => {
                let detail =
                    "validation failed due to running out of cost budget, no further validation rules will be run";
                errors.push(FieldError::invalid(path, shown(new), detail));
                return;
            }
            Err(error) => {
                let detail = format!("rule evaluation error: {error}");
                errors.push(FieldError::invalid(path, shown(new), detail));
            }
        }
    }
}

fn message(rule: &Rule, compiled: &CompiledRule, variables: &RuleVariables, budget: &mut Budget) -> String {
    if let Some(Ok(CelValue::String(text))) =
        compiled.message.as_ref().map(|message| budget.evaluate(message, variables))
    {
        let text = text.trim();
        if !text.is_empty() && !text.contains('\n') {
            return text.to_owned();
        }
    }
    match rule.message.as_deref() {
        Some(message) if !message.is_empty() => message.to_owned(),
        _ => format!("failed rule: {}", rule.rule.trim()),
    }
}

fn violation(rule: &Rule, detail: String, value: &Value, path: &FieldPath<'_>) -> FieldError {
    let field = format!("{path}{}", relative(rule.field_path.as_deref().unwrap_or_default()));
    let field = field.strip_prefix('.').map(str::to_owned).unwrap_or(field);
    match rule.reason.as_deref() {
        Some("FieldValueForbidden") => FieldError::forbidden(&field, detail),
        Some("FieldValueRequired") => FieldError::required(&field, detail),
        Some("FieldValueDuplicate") => FieldError::duplicate(&field, shown(value)),
        _ => FieldError::invalid(&field, shown(value), detail),
    }
}

/// Converts `.a['b.c']` to the form of field paths: `.a[b.c]`.
fn relative(field_path: &str) -> String {
    field_path.replace("['", "[").replace("']", "]")
}

/// How an error shows a value: scalars themselves, of others the type.
fn shown(value: &Value) -> Value {
    match value {
        Value::Object(_) | Value::Array(_) => super::scalar::type_name(value).into(),
        scalar => scalar.clone(),
    }
}
