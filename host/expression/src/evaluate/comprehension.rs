//! Loops: `all`, `exists`, `exists_one`, `map` and `filter`, which the parser makes comprehensions of.

use std::sync::Arc;

use cel::{
    IdedExpr, Value,
    common::ast::{CallExpr, ComprehensionExpr, Expr, operators},
};

use super::{
    EvaluationError, Evaluator, Outcome,
    meter::{ITEM, as_u64},
};

impl<'a> Evaluator<'a> {
    pub(super) fn comprehension(&mut self, comprehension: &'a ComprehensionExpr) -> Outcome {
        let range = self.evaluate(&comprehension.iter_range)?;
        let result = self.evaluate(&comprehension.accu_init);
        let height = self.bound.len();
        self.bound.push((&comprehension.accu_var, result));
        let outcome = self.run(comprehension, &range);
        self.bound.truncate(height);
        outcome
    }

    fn run(&mut self, comprehension: &'a ComprehensionExpr, range: &Value) -> Outcome {
        let height = self.bound.len();
        let step = |this: &mut Self, item: Value| {
            this.meter.charge(1)?;
            let condition = this.evaluate(&comprehension.loop_cond)?;
            if condition != Value::Bool(true) {
                return Ok(false);
            }
            this.bound.push((&comprehension.iter_var, Ok(item)));
            let result = this.step(&comprehension.loop_step, &comprehension.accu_var, height.saturating_sub(1));
            this.bound.truncate(height);
            if let Err(exceeded) = &result
                && exceeded.is_final()
            {
                return result.map(|_| false);
            }
            if let Some((_, place)) = this.bound.last_mut() {
                *place = result;
            }
            Ok(true)
        };
        match range {
            Value::List(list) => {
                for item in list.iter() {
                    if !step(self, item.clone())? {
                        break;
                    }
                }
            }
            Value::Map(map) => {
                self.meter.charge(as_u64(map.map.len()))?;
                self.meter.take(map.map.len().saturating_mul(2 * size_of::<usize>()))?;
                // In a definite order, so that the same request has the same result.
                let mut keys: Vec<_> = map.map.keys().collect();
                keys.sort();
                for key in keys {
                    if !step(self, Value::from(key))? {
                        break;
                    }
                }
            }
            _ => return Err(EvaluationError::NoSuchOverload),
        }
        self.evaluate(&comprehension.result)
    }

    /// A step of a loop. The steps of `map` and `filter` append to the result instead of copying it.
    fn step(&mut self, step: &'a IdedExpr, result: &str, place: usize) -> Outcome {
        let Expr::Call(call) = &step.expr else { return self.evaluate(step) };
        match (call.func_name.as_str(), call.args.as_slice()) {
            (operators::CONDITIONAL, [condition, then, otherwise]) if is_named(otherwise, result) => {
                if let Expr::Call(then) = &then.expr
                    && let Some(items) = appended(then, result)
                {
                    return match self.evaluate(condition)? {
                        Value::Bool(true) => self.append(items, place),
                        Value::Bool(false) => self.take(place),
                        _ => Err(EvaluationError::NoSuchOverload),
                    };
                }
                self.evaluate(step)
            }
            _ => match appended(call, result) {
                Some(items) => self.append(items, place),
                None => self.evaluate(step),
            },
        }
    }

    fn append(&mut self, items: &'a [IdedExpr], place: usize) -> Outcome {
        self.meter.take(items.len() * ITEM)?;
        let items = self.all(items)?;
        let mut list = self.take(place)?;
        if let Value::List(list) = &mut list {
            Arc::make_mut(list).extend(items);
        }
        Ok(list)
    }

    /// Takes the result of a loop from its place, so that it is not shared and can be changed.
    fn take(&mut self, place: usize) -> Outcome {
        match self.bound.get_mut(place) {
            Some((_, result)) => std::mem::replace(result, Ok(Value::Null)),
            None => Ok(Value::Null),
        }
    }
}

fn is_named(expression: &IdedExpr, name: &str) -> bool {
    matches!(&expression.expr, Expr::Ident(found) if found == name)
}

/// The items of `result + [items]`.
fn appended<'a>(call: &'a CallExpr, result: &str) -> Option<&'a [IdedExpr]> {
    match call.args.as_slice() {
        [left, right] if call.func_name == operators::ADD && is_named(left, result) => match &right.expr {
            Expr::List(list) if list.optional_indices.is_empty() => Some(&list.elements),
            _ => None,
        },
        _ => None,
    }
}
