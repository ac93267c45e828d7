//! The decisions of one policy about one request.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cel::Value;
use chandler_expression::{EvaluationError, Meter, evaluate};

use crate::policies::{
    activation::{Activation, Inputs},
    cluster::Cluster,
    compile::{Compiled, CompiledValidation, Expression},
    limits,
    model::FailurePolicy,
};

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// Why a policy is against a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The message.
    pub message: String,
    /// The reason in the response.
    pub reason: String,
    /// Whether the actions of the binding say what follows; otherwise the request is denied.
    pub by_actions: bool,
}

impl Objection {
    /// The request has cost all that it may.
    pub fn out_of_budget() -> Self {
        Self::error(OUT_OF_BUDGET)
    }

    /// An error under the failure policy `Fail`.
    pub fn error(message: impl Into<String>) -> Self {
        Self { message: message.into(), reason: "Invalid".to_owned(), by_actions: true }
    }
}

/// What all evaluations of a request may still cost.
#[derive(Debug)]
pub struct Budget(AtomicU64);

impl Default for Budget {
    fn default() -> Self {
        Self::new(limits::REQUEST)
    }
}

impl Budget {
    /// So much may be spent.
    pub fn new(limit: u64) -> Self {
        Self(AtomicU64::new(limit))
    }

    /// What may still be spent.
    pub fn left(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Spends a cost.
    pub fn take(&self, cost: u64) {
        self.0.store(self.left().saturating_sub(cost), Relaxed);
    }
}

/// The expressions cost more than they may.
#[derive(Clone, Copy, Debug)]
struct OutOfBudget;

/// What one policy may still cost.
struct Remaining<'a> {
    own: u64,
    request: &'a Budget,
}

impl<'a> Remaining<'a> {
    fn new(own: u64, request: &'a Budget) -> Self {
        Self { own, request }
    }

    /// Evaluates an expression; the inner error is its message.
    fn evaluate(
        &mut self,
        expression: &Expression,
        activation: &Activation<'_>,
    ) -> Result<Result<Value, String>, OutOfBudget> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(error) => return Ok(Err(format!("compilation error: {error}"))),
        };
        let left = self.own.min(self.request.left());
        let meter = Meter::new(limits::EXPRESSION.min(left));
        let outcome = evaluate(program, activation, &meter);
        let cost = meter.used().saturating_add(activation.take_cost());
        self.request.take(cost);
        self.own = self.own.saturating_sub(cost);
        if cost > left || (left < limits::EXPRESSION && outcome == Err(EvaluationError::Exhausted)) {
            return Err(OutOfBudget);
        }
        Ok(outcome.map_err(|error| format!("expression '{}' resulted in error: {error}", expression.text)))
    }
}

/// Evaluates a policy for one binding and one parameter, null for none.
pub fn objections(
    policy: &Compiled,
    failure_policy: FailurePolicy,
    inputs: &Inputs,
    params: &Value,
    cluster: &dyn Cluster,
    budget: &Budget,
) -> Vec<Objection> {
    let failed = |message: String| match failure_policy {
        FailurePolicy::Fail => Some(Objection::error(message)),
        FailurePolicy::Ignore => None,
    };
    let activation = Activation::new(policy, inputs, params, cluster, true);
    match conditions_hold(policy, &activation, budget) {
        Ok(true) => {}
        Ok(false) => return Vec::new(),
        Err(message) => return failed(message).into_iter().collect(),
    }
    let mut remaining = Remaining::new(limits::POLICY, budget);
    let mut outcomes = Vec::with_capacity(policy.validations.len());
    for validation in &policy.validations {
        match remaining.evaluate(&validation.expression, &activation) {
            Ok(outcome) => outcomes.push(outcome),
            Err(OutOfBudget) => return failed(OUT_OF_BUDGET.to_owned()).into_iter().collect(),
        }
    }
    // Messages are not worth a right: they cannot ask the authorizer.
    let messages = Activation::new(policy, inputs, params, cluster, false);
    let mut objections = Vec::new();
    for (validation, outcome) in policy.validations.iter().zip(outcomes) {
        match outcome {
            Ok(Value::Bool(true)) => {}
            Ok(_) => match message(validation, &messages, &mut remaining) {
                Ok(message) => {
                    objections.push(Objection { message, reason: validation.reason.clone(), by_actions: true });
                }
                Err(OutOfBudget) => {
                    objections.extend(failed(format!("failed messageExpression: {OUT_OF_BUDGET}")));
                }
            },
            Err(message) => objections.extend(failed(message)),
        }
    }
    // The values of annotations are for the audit log; their errors count.
    let annotations = Activation::new(policy, inputs, params, cluster, false);
    let mut remaining = Remaining::new(limits::POLICY, budget);
    for annotation in &policy.annotations {
        match remaining.evaluate(annotation, &annotations) {
            Ok(Ok(Value::String(_) | Value::Null)) => {}
            Ok(Ok(other)) => objections.push(Objection {
                by_actions: false,
                ..Objection::error(format!(
                    "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string or null.",
                    annotation.text,
                    other.type_of()
                ))
            }),
            Ok(Err(message)) => {
                objections.extend(failed(message).map(|objection| Objection { by_actions: false, ..objection }));
            }
            Err(OutOfBudget) => return failed(OUT_OF_BUDGET.to_owned()).into_iter().collect(),
        }
    }
    objections
}

/// Whether the match conditions hold: one that does not outweighs errors in others.
fn conditions_hold(policy: &Compiled, activation: &Activation<'_>, budget: &Budget) -> Result<bool, String> {
    let mut remaining = Remaining::new(limits::MATCH_CONDITIONS, budget);
    let mut errors = Vec::new();
    for condition in &policy.conditions {
        match remaining.evaluate(condition, activation) {
            Ok(Ok(Value::Bool(false))) => return Ok(false),
            Ok(Ok(_)) => {}
            Ok(Err(message)) => errors.push(message),
            Err(OutOfBudget) => return Err(OUT_OF_BUDGET.to_owned()),
        }
    }
    match errors.as_slice() {
        [] => Ok(true),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// The message of a validation that does not hold.
fn message(
    validation: &CompiledValidation,
    activation: &Activation<'_>,
    remaining: &mut Remaining<'_>,
) -> Result<String, OutOfBudget> {
    if let Some(expression) = &validation.message_expression
        && let Ok(Value::String(text)) = remaining.evaluate(expression, activation)?
    {
        let text = text.trim();
        if !text.is_empty() && text.len() <= limits::MESSAGE_BYTES && !text.contains('\n') {
            return Ok(text.to_owned());
        }
    }
    if validation.message.is_empty() {
        return Ok(format!("failed expression: {}", validation.expression.text.trim()));
    }
    Ok(validation.message.clone())
}
