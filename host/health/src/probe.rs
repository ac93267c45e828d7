//! Whether objects meet rules in CEL: those of the release, and those of whoever installs it.
//!
//! A rule is an expression over `self`, the live object, with functions that Kubernetes adds to CEL. Rules and objects are
//! untrusted, so everything is bounded: how long a rule is and how deep it nests, which functions it may call (none whose
//! result can be much larger than what goes in), and how many steps it takes over an object, counted before it runs.
//!
//! | module | holds |
//! |---|---|
//! | `compile` | text in, a checked expression or an error with its position out |
//! | `cost` | how many steps an expression can take over an object |
//! | `evaluate` | an expression and an object in, a verdict out |

mod compile;
mod cost;
mod evaluate;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use chandler_core::{ObjectKey, Probe};
use serde_json::Value;

use self::{
    compile::Expression,
    evaluate::{Live, Outcome},
};
use crate::health::Health;

/// How many steps all rules together may take in one pass over a release. A step takes about a microsecond.
pub const STEPS_PER_PASS: u64 = 3_000_000;
/// How many compiled rules are remembered.
const REMEMBERED: usize = 1024;
/// The longest text that a rule may give, in bytes.
const TEXT_BYTES: usize = 512;

/// A rule, as somebody wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Where it stands, as in `spec.probes[0]`.
    pub origin: String,
    /// Which objects it is about.
    pub selector: Selector,
    /// The expression that must be true.
    pub rule: String,
    /// What to say while it is not; a text about the rule where there is none.
    pub message: Option<String>,
    /// The expression that gives what to say.
    pub message_expression: Option<String>,
}

/// Which objects a rule is about. What is none or empty is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The API group.
    pub group: String,
    /// The version.
    pub version: Option<String>,
    /// The kind.
    pub kind: String,
    /// The namespace.
    pub namespace: Option<String>,
    /// The name.
    pub name: Option<String>,
    /// Labels of the live object.
    pub labels: BTreeMap<String, String>,
}

impl Selector {
    fn selects(&self, key: &ObjectKey, object: &Value) -> bool {
        let label = |name: &str| object.get("metadata")?.get("labels")?.get(name)?.as_str();
        self.kind == key.kind
            && self.group == key.group
            && self.version.as_ref().is_none_or(|version| *version == key.version)
            && self.name.as_ref().is_none_or(|name| *name == key.name)
            && self.namespace.as_ref().is_none_or(|namespace| Some(namespace) == key.namespace.as_ref())
            && self.labels.iter().all(|(name, value)| label(name) == Some(value))
    }
}

impl Rule {
    /// The rule of a probe that a provisioner emitted, the one with this number of its release.
    pub fn of_release(number: usize, probe: &Probe) -> Self {
        let Probe { selector, rule, message, message_expression } = probe;
        Self {
            origin: format!("probe {number} of the release"),
            selector: Selector {
                group: selector.group.clone(),
                version: None,
                kind: selector.kind.clone(),
                namespace: selector.namespace.clone(),
                name: selector.name.clone(),
                labels: selector.labels.clone(),
            },
            rule: rule.clone(),
            message: message.clone().filter(|message| !message.is_empty()),
            message_expression: message_expression.clone(),
        }
    }
}

/// A rule cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}.{field}{}: {problem}", position.map(|(line, column)| format!(", line {line}, column {column}")).unwrap_or_default())]
pub struct RuleError {
    /// Where the rule stands.
    pub origin: String,
    /// Which of its expressions: `rule` or `messageExpression`.
    pub field: &'static str,
    /// The line and the column in the expression, counted from 1; the column in characters.
    pub position: Option<(usize, usize)>,
    /// What is wrong.
    pub problem: String,
}

/// Compiled expressions, so that each is compiled once and not at each look.
#[derive(Debug, Default)]
pub struct Compiler(Mutex<HashMap<String, Arc<Expression>>>);

impl Compiler {
    fn compile(&self, text: &str) -> Result<Arc<Expression>, compile::Error> {
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Ok(Arc::clone(known));
        }
        let compiled = Arc::new(Expression::compile(text)?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(text.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }
}

/// The rules that objects of a release must meet, compiled.
#[derive(Debug, Default)]
pub struct Probes(Vec<Compiled>);

#[derive(Debug)]
struct Compiled {
    source: Rule,
    rule: Arc<Expression>,
    message: Option<Arc<Expression>>,
}

/// How many steps the rules may still take in a pass.
#[derive(Debug)]
pub struct Budget(u64);

impl Default for Budget {
    fn default() -> Self {
        Self(STEPS_PER_PASS)
    }
}

impl Probes {
    /// Compiles rules. One that cannot be used is an error, so that it is found before anything is written.
    pub fn compile(compiler: &Compiler, rules: impl IntoIterator<Item = Rule>) -> Result<Self, RuleError> {
        let checked = rules.into_iter().map(|source| {
            let expression = |field, text: &str| {
                compiler.compile(text).map_err(|error| RuleError {
                    origin: source.origin.clone(),
                    field,
                    position: error.position,
                    problem: error.problem,
                })
            };
            let rule = expression("rule", &source.rule)?;
            let message = source.message_expression.as_deref();
            let message = message.map(|text| expression("messageExpression", text)).transpose()?;
            Ok(Compiled { source, rule, message })
        });
        checked.collect::<Result<_, _>>().map(Self)
    }

    /// These and others.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What the rules say of an object: that it is healthy where it meets all that are about it.
    pub fn assess(&self, key: &ObjectKey, object: &Value, budget: &mut Budget) -> Health {
        let mut live = None;
        let mut unmet: Vec<String> = Vec::new();
        for compiled in self.0.iter().filter(|compiled| compiled.source.selector.selects(key, object)) {
            let live = live.get_or_insert_with(|| Live::new(object));
            unmet.extend(compiled.unmet(live, budget));
        }
        if unmet.is_empty() { Health::healthy() } else { Health::progressing(unmet.join("; ")) }
    }
}

impl Compiled {
    /// What to say of an object that does not meet the rule.
    fn unmet(&self, live: &Live<'_>, budget: &mut Budget) -> Option<String> {
        let problem = match live.evaluate(&self.rule, &mut budget.0) {
            Outcome::Bool(true) => return None,
            Outcome::Bool(false) => None,
            Outcome::Missing(field) => Some(format!("{field} is not there yet")),
            Outcome::Text(_) | Outcome::Other => Some("the rule is neither true nor false".to_owned()),
            Outcome::Error(problem) => Some(problem),
        };
        let given = self.message.as_ref().and_then(|message| match live.evaluate(message, &mut budget.0) {
            Outcome::Text(text) => Some(bounded(&text)).filter(|text| !text.is_empty()),
            _ => None,
        });
        let message = given.or_else(|| self.source.message.clone());
        let message = message.unwrap_or_else(|| format!("does not meet {:?}", bounded(&self.source.rule)));
        Some(match problem {
            Some(problem) => format!("{message}: {problem}"),
            None => message,
        })
    }
}

/// One line, not longer than a message can bear: texts come from objects that others write.
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
