//! A validator keyword for patterns: all patterns of a CRD share one budget, unlike in the validator.

use std::sync::Arc;

use chandler_core::Budget;
use chandler_expression::re2::{Pattern, Patterns};
use jsonschema::{Keyword, ValidationError, paths::Location};
use serde_json::{Map, Value};

/// Its name. It is not `pattern`, which the validator handles itself.
pub(super) const KEYWORD: &str = "x-pattern";

/// A pattern that strings must match.
struct Matches {
    text: String,
    pattern: Arc<Pattern>,
    budget: Budget,
}

impl Matches {
    fn matches(&self, value: &Value) -> bool {
        let Value::String(text) = value else { return true };
        // A string that is not checked passes, and the caller detects that the budget is used up.
        self.budget.take(self.pattern.steps(text)).is_err() || self.pattern.is_match(text)
    }
}

impl<'i> Keyword<'i> for Matches {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.matches(value) {
            return Ok(());
        }
        Err(ValidationError::custom(format!("value does not match {:?}", self.text)))
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.matches(value)
    }
}

type Made<'a> = Result<Box<dyn for<'i> Keyword<'i>>, ValidationError<'a>>;

/// The factory of the keyword, for patterns that were compiled before.
pub(super) fn factory(
    patterns: &Arc<Patterns>,
    budget: &Budget,
) -> impl for<'a> Fn(&'a Map<String, Value>, &'a Value, Location) -> Made<'a> + Send + Sync + 'static {
    let (patterns, budget) = (Arc::clone(patterns), budget.clone());
    move |_, value, _| {
        let text = value.as_str().unwrap_or_default();
        let pattern = patterns.get(text).map_err(|error| ValidationError::custom(error.to_string()))?;
        Ok(Box::new(Matches { text: text.to_owned(), pattern, budget: budget.clone() }))
    }
}
