//! The values of variables. Composed ones are evaluated when they are first used.

use std::cell::{Cell, RefCell};

use cel::Value;
use chandler_expression::{
    EvaluationError, Meter, Names, evaluate,
    evaluate::{MEMORY, Outcome},
};

use crate::policies::{authorizer, cluster::Cluster, compile::Compiled, limits};

/// The values that a request gives.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// `object`.
    pub object: Value,
    /// `oldObject`.
    pub old_object: Value,
    /// `request`.
    pub request: Value,
    /// `namespaceObject`.
    pub namespace: Value,
    /// `authorizer`.
    pub authorizer: Value,
    /// `authorizer.requestResource`.
    pub request_resource: Value,
}

/// The variables of the expressions of a policy.
pub struct Activation<'a> {
    policy: &'a Compiled,
    inputs: &'a Inputs,
    params: &'a Value,
    cluster: &'a dyn Cluster,
    /// Whether `authorizer` has a value.
    authorizer: bool,
    /// The composed variables that were used.
    composed: RefCell<Vec<Option<Outcome>>>,
    /// The cost since the last call.
    cost: Cell<u64>,
    /// The memory of the composed variables, in bytes.
    memory: Cell<usize>,
}

impl<'a> Activation<'a> {
    /// No composed variable is evaluated yet.
    pub fn new(
        policy: &'a Compiled,
        inputs: &'a Inputs,
        params: &'a Value,
        cluster: &'a dyn Cluster,
        authorizer: bool,
    ) -> Self {
        let composed = RefCell::new(vec![None; policy.variables.len()]);
        Self { policy, inputs, params, cluster, authorizer, composed, cost: Cell::new(0), memory: Cell::new(0) }
    }

    /// The cost of composed variables since the last call.
    pub fn take_cost(&self) -> u64 {
        self.cost.take()
    }

    fn composed(&self, name: &str) -> Option<Outcome> {
        let index = self.policy.variables.iter().rposition(|(found, _)| found == name)?;
        let (_, variable) = self.policy.variables.get(index)?;
        if let Some(Some(known)) = self.composed.borrow().get(index) {
            return Some(known.clone());
        }
        let outcome = match &variable.program {
            Err(error) => {
                Err(EvaluationError::other(format!("composited variable {name:?} fails to compile: {error}")))
            }
            Ok(program) => {
                let meter = Meter::new(limits::EXPRESSION).with_memory(MEMORY.saturating_sub(self.memory.get()));
                let outcome = evaluate(program, self, &meter);
                if outcome.is_ok() {
                    self.memory.set(self.memory.get().saturating_add(meter.memory()));
                }
                self.cost.set(self.cost.get().saturating_add(meter.used()));
                outcome.map_err(|error| {
                    EvaluationError::other(format!("composited variable {name:?} fails to evaluate: {error}"))
                })
            }
        };
        if let Some(place) = self.composed.borrow_mut().get_mut(index) {
            *place = Some(outcome.clone());
        }
        Some(outcome)
    }
}

impl Names for Activation<'_> {
    fn variable(&self, name: &str) -> Option<Outcome> {
        Some(Ok(match name {
            "object" => self.inputs.object.clone(),
            "oldObject" => self.inputs.old_object.clone(),
            "params" => self.params.clone(),
            "request" => self.inputs.request.clone(),
            "namespaceObject" => self.inputs.namespace.clone(),
            "authorizer" if self.authorizer => self.inputs.authorizer.clone(),
            _ => return None,
        }))
    }

    fn field(&self, variable: &str, field: &str) -> Option<Outcome> {
        match (variable, field) {
            ("variables", name) => self.composed(name),
            ("authorizer", "requestResource") if self.authorizer => Some(Ok(self.inputs.request_resource.clone())),
            _ => None,
        }
    }

    fn call(&self, function: &str, target: &Value, arguments: &[Value], meter: &Meter) -> Option<Outcome> {
        authorizer::call(function, target, arguments, self.cluster, meter)
    }
}
