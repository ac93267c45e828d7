//! Health rules in CEL, from the release and from the installer.
//!
//! A rule is an expression over `self`, the live object, with the functions that Kubernetes adds to CEL. Rules and objects are
//! untrusted, so everything is bounded: the length and nesting of a rule, the functions that it may call (none whose result can
//! be much larger than its input), and the steps and the memory of an evaluation.
//!
//! | module | contents |
//! |---|---|
//! | `compile` | from text to a checked expression or an error with its position |
//! | `evaluate` | from an expression and an object to an outcome |

mod compile;
mod evaluate;

use std::{collections::HashMap, sync::Arc};

use chandler_core::{ObjectKey, Probe, ProbeSelector};
use parking_lot::Mutex;
use serde_json::Value;

use self::{
    compile::Expression,
    evaluate::{Live, Outcome},
};
use crate::health::Health;

/// The number of steps that all rules of a release may take in one reconcile. A step takes well below a microsecond.
pub const STEPS_PER_PASS: u64 = 10_000_000;
/// The number of compiled rules in the cache.
const REMEMBERED: usize = 1024;
/// The longest text that a rule may return, in bytes.
const TEXT_BYTES: usize = 512;

/// A rule as its author wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Where it is defined, as in `spec.probes[0]`.
    pub origin: String,
    /// The objects that it applies to.
    pub selector: ProbeSelector,
    /// The expression that must be true.
    pub rule: String,
    /// The message while it is not; a text about the rule if there is none.
    pub message: Option<String>,
    /// The expression that returns the message.
    pub message_expression: Option<String>,
}

/// Whether a rule applies to an object.
fn selects(selector: &ProbeSelector, key: &ObjectKey, object: &Value) -> bool {
    let label = |name: &str| object.get("metadata")?.get("labels")?.get(name)?.as_str();
    selector.kind == key.kind
        && selector.group == key.group
        && selector.name.as_ref().is_none_or(|name| *name == key.name)
        && selector.namespace.as_ref().is_none_or(|namespace| Some(namespace) == key.namespace.as_ref())
        && selector.labels.iter().all(|(name, value)| label(name) == Some(value))
}

impl Rule {
    /// The rule for a probe that a provisioner emitted; `number` is its index in the release.
    pub fn of_release(number: usize, probe: &Probe) -> Self {
        let Probe { selector, rule, message, message_expression } = probe;
        Self {
            origin: format!("probe {number} of the release"),
            selector: selector.clone(),
            rule: rule.clone(),
            message: message.clone().filter(|message| !message.is_empty()),
            message_expression: message_expression.clone(),
        }
    }
}

/// A rule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}.{field}{}: {message}", position.map(|(line, column)| format!(", line {line}, column {column}")).unwrap_or_default())]
pub struct RuleError {
    /// Where the rule is defined.
    pub origin: String,
    /// The expression: `rule` or `messageExpression`.
    pub field: &'static str,
    /// The line and the column in the expression, counted from 1; the column counts characters.
    pub position: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
}

/// A cache of compiled expressions, so that each is compiled once and not for every check.
#[derive(Debug, Default)]
pub struct Compiler(Mutex<HashMap<String, Arc<Expression>>>);

impl Compiler {
    fn compile(&self, text: &str) -> Result<Arc<Expression>, compile::Error> {
        if let Some(known) = self.0.lock().get(text) {
            return Ok(Arc::clone(known));
        }
        let compiled = Arc::new(Expression::compile(text)?);
        let mut known = self.0.lock();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(text.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }
}

/// The compiled rules that objects of a release must meet.
#[derive(Debug, Default)]
pub struct Probes(Vec<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Rule,
    rule: Arc<Expression>,
    message: Option<Arc<Expression>>,
}

/// The number of steps that the rules may still take in this reconcile.
#[derive(Debug)]
pub struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(STEPS_PER_PASS)
    }
}

impl Probes {
    /// Compiles rules. A rule that cannot be used is an error, so that it is found before anything is written.
    pub fn compile(compiler: &Compiler, rules: impl IntoIterator<Item = Rule>) -> Result<Self, RuleError> {
        let checked = rules.into_iter().map(|source| {
            let expression = |field, text: &str| {
                compiler.compile(text).map_err(|error| RuleError {
                    origin: source.origin.clone(),
                    field,
                    position: error.position,
                    message: error.message,
                })
            };
            let rule = expression("rule", &source.rule)?;
            let message = source.message_expression.as_deref();
            let message = message.map(|text| expression("messageExpression", text)).transpose()?;
            Ok(Compiled { source, rule, message })
        });
        checked.collect::<Result<_, _>>().map(Self)
    }

    /// Adds the rules of `others`.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The health of an object by its rules: healthy if it meets every rule that applies to it.
    pub fn assess(&self, key: &ObjectKey, object: &Value, budget: &mut Budget) -> Health {
        let mut live = None;
        let mut unmet: Vec<String> = Vec::new();
        for compiled in self.0.iter().filter(|compiled| selects(&compiled.source.selector, key, object)) {
            let live = live.get_or_insert_with(|| Live::new(object));
            unmet.extend(compiled.unmet(live, budget));
        }
        if unmet.is_empty() { Health::healthy() } else { Health::progressing(unmet.join("; ")) }
    }
}

impl Compiled {
    /// The message about an object that does not meet the rule.
    fn unmet(&self, live: &Live, budget: &mut Budget) -> Option<String> {
        let detail = match live.evaluate(&self.rule, &mut budget.0) {
            Outcome::Bool(true) => return None,
            Outcome::Bool(false) => None,
            Outcome::Missing(field) => Some(format!("{field} does not exist yet")),
            Outcome::Text(_) | Outcome::Other => Some("the rule does not return a bool".to_owned()),
            Outcome::Error(error) => Some(error),
        };
        let given = self.message.as_ref().and_then(|message| match live.evaluate(message, &mut budget.0) {
            Outcome::Text(text) => Some(bounded(&text)).filter(|text| !text.is_empty()),
            _ => None,
        });
        let message = given.or_else(|| self.source.message.clone());
        let message = message.unwrap_or_else(|| format!("does not meet {:?}", bounded(&self.source.rule)));
        Some(match detail {
            Some(detail) => format!("{message}: {detail}"),
            None => message,
        })
    }
}

/// One line of limited length, since texts come from objects that other users write.
fn bounded(text: &str) -> String {
    let line = chandler_core::text::one_line(text);
    let mut end = TEXT_BYTES.min(line.len());
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    match line.split_at_checked(end) {
        Some((kept, "")) => kept.to_owned(),
        Some((kept, _)) => format!("{kept}…"),
        None => line,
    }
}

#[cfg(test)]
mod tests;
