//! The rules of a schema in CEL. They come from a bundle, so each is evaluated within a budget.

use std::collections::{BTreeMap, BTreeSet};

use cel::Value as CelValue;
use chandler_core::Budget;
use chandler_expression::{
    Program,
    evaluate::{Outcome, RuleVariables, is_transition, run},
};
use serde_json::Value;

use super::{
    limit::Excess,
    schema::{MESSAGE, VIOLATIONS},
    value::{Format, convert},
};
use crate::finding::cut;

/// The deepest tree that is evaluated.
const TREE_DEPTH: u32 = 40;
/// The maximum cost of one rule for one value; the unit is a step of [`run`].
const STEPS: u64 = 10_000_000;
/// The maximum depth of the walk over a schema.
const SCHEMA_DEPTH: usize = 64;
/// The longest text of a rule in a note, in bytes.
const SHOWN: usize = 100;

/// A schema with the rules of its places.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword of a schema")]
pub(super) struct Rules {
    own: Vec<Rule>,
    pub(super) properties: BTreeMap<String, Rules>,
    pub(super) items: Option<Box<Rules>>,
    pub(super) others: Option<Box<Rules>>,
    /// Whether names are data, and not property names.
    pub(super) is_map: bool,
    pub(super) preserves_unknown: bool,
    pub(super) is_embedded: bool,
    pub(super) format: Format,
    branches: Vec<Rules>,
    /// Whether there is a rule here or anywhere below.
    any: bool,
}

#[derive(Debug)]
struct Rule {
    text: String,
    program: Program,
    message: Option<String>,
    message_program: Option<Program>,
    field_path: Option<String>,
    optional_old_self: bool,
    /// Whether it is about a change. There is no old value here.
    is_transition: bool,
}

/// What rules have against a value.
pub(super) struct Refusal {
    pub(super) place: String,
    pub(super) rule: String,
    pub(super) message: String,
}

impl Rules {
    /// The rules of a schema; those that cannot be evaluated are noted.
    pub(super) fn of(schema: &Value, notes: &mut BTreeSet<String>) -> Self {
        Self::read(schema, notes, 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.any
    }

    /// What the rules have against an object. A rule that cannot be evaluated, or only with more memory than one may take, is noted.
    ///
    /// # Errors
    /// If they take more steps than the budget has left.
    pub(super) fn check(
        &self,
        object: &Value,
        budget: &Budget,
        notes: &mut BTreeSet<String>,
    ) -> Result<Vec<Refusal>, Excess> {
        let mut run = Run { budget, notes, refusals: Vec::new() };
        run.walk(self, object, "")?;
        Ok(run.refusals)
    }

    fn read(schema: &Value, notes: &mut BTreeSet<String>, depth: usize) -> Self {
        let mut found = Self::default();
        let Value::Object(keywords) = schema else { return found };
        if depth > SCHEMA_DEPTH {
            return found;
        }
        let mut inner = |schema: &Value| Self::read(schema, notes, depth + 1);
        let fields = keywords.get("properties").and_then(Value::as_object).into_iter().flatten();
        found.properties = fields.map(|(name, field)| (name.clone(), inner(field))).collect();
        found.items = keywords.get("items").map(|items| Box::new(inner(items)));
        let others = keywords.get("additionalProperties");
        found.others = others.filter(|others| others.is_object()).map(|others| Box::new(inner(others)));
        found.is_map = !matches!(others, None | Some(Value::Bool(false)));
        let is_set = |keyword: &str| keywords.get(keyword) == Some(&Value::Bool(true));
        found.preserves_unknown = is_set("x-kubernetes-preserve-unknown-fields");
        found.is_embedded = is_set("x-kubernetes-embedded-resource");
        found.format = Format::of(keywords);
        for keyword in ["allOf", "oneOf", "anyOf"] {
            let branches = keywords.get(keyword).and_then(Value::as_array).into_iter().flatten();
            found.branches.extend(branches.map(&mut inner));
        }
        let rules = keywords.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
        for rule in rules {
            match Rule::read(rule) {
                Some(rule) => found.own.push(rule),
                None => unusable(rule.get("rule").and_then(Value::as_str).unwrap_or_default(), SHOWN, notes),
            }
        }
        let below = found.properties.values().chain(found.items.as_deref()).chain(found.others.as_deref());
        found.any = !found.own.is_empty() || below.chain(&found.branches).any(|rules| rules.any);
        found
    }
}

impl Rule {
    /// The rule, or `None` if it does not compile within bounds.
    fn read(rule: &Value) -> Option<Self> {
        let text = |name: &str| rule.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let source = text("rule")?;
        let program = program(source)?;
        Some(Self {
            text: source.to_owned(),
            is_transition: is_transition(&program),
            program,
            message: text("message").map(str::to_owned),
            message_program: match text("messageExpression") {
                Some(message) => Some(self::program(message)?),
                None => None,
            },
            field_path: text("fieldPath").map(str::to_owned),
            optional_old_self: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
        })
    }
}

fn program(text: &str) -> Option<Program> {
    let program = Program::parse(text).ok()?;
    // A schema has many rules, and the patterns of each take memory.
    (program.depth() <= TREE_DEPTH).then(|| program.without_patterns())
}

fn unusable(rule: &str, shown: usize, notes: &mut BTreeSet<String>) {
    notes.insert(format!("the validation rule {:?} could not be evaluated", cut(rule, shown)));
}

/// One check of an object.
struct Run<'a> {
    budget: &'a Budget,
    notes: &'a mut BTreeSet<String>,
    refusals: Vec<Refusal>,
}

impl Run<'_> {
    fn walk(&mut self, rules: &Rules, value: &Value, place: &str) -> Result<(), Excess> {
        if !rules.any {
            return Ok(());
        }
        self.budget.step()?;
        if !rules.own.is_empty() {
            let this = convert(rules, value, self.budget)?;
            for rule in &rules.own {
                self.rule(rule, &this, place)?;
            }
        }
        let child = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
        if let Value::Object(fields) = value {
            for (name, field) in fields {
                let others = rules.others.as_deref().filter(|_| !rules.preserves_unknown);
                if let Some(schema) = rules.properties.get(name).or(others) {
                    self.walk(schema, field, &child(name))?;
                }
            }
        }
        if let (Value::Array(list), Some(schema)) = (value, &rules.items) {
            for (index, item) in list.iter().enumerate() {
                self.walk(schema, item, &format!("{place}[{index}]"))?;
            }
        }
        rules.branches.iter().try_for_each(|branch| self.walk(branch, value, place))
    }

    fn rule(&mut self, rule: &Rule, this: &CelValue, place: &str) -> Result<(), Excess> {
        if !rule.optional_old_self && rule.is_transition {
            return Ok(());
        }
        let old = rule.optional_old_self.then_some(CelValue::Null);
        let variables = RuleVariables { this: this.clone(), old };
        match self.evaluate(&rule.program, &variables)? {
            Ok(CelValue::Bool(true)) => {}
            Ok(CelValue::Bool(false)) => {
                let message = match &rule.message_program {
                    Some(program) => self.evaluate(program, &variables)?.ok(),
                    None => None,
                };
                let message = match (message, &rule.message) {
                    (Some(CelValue::String(text)), _) => cut(&text, MESSAGE),
                    (_, Some(message)) => cut(message, MESSAGE),
                    _ => cut(&format!("failed rule: {}", rule.text), MESSAGE),
                };
                let place = match rule.field_path.as_deref() {
                    Some(path) if path.starts_with('.') => format!("{place}{path}"),
                    Some(path) if !place.is_empty() => format!("{place}.{path}"),
                    Some(path) => path.to_owned(),
                    None => place.to_owned(),
                };
                // More are not reported, and a schema may have a rule for each item of a list.
                if self.refusals.len() < VIOLATIONS {
                    self.refusals.push(Refusal { place, rule: rule.text.clone(), message });
                }
            }
            Err(exceeded) if exceeded.is_final() => {
                let rule = cut(&rule.text, SHOWN);
                self.notes.insert(format!("the validation rule {rule:?} was not run to its end: {exceeded}"));
            }
            Ok(_) | Err(_) => unusable(&rule.text, MESSAGE, self.notes),
        }
        Ok(())
    }

    fn evaluate(&self, program: &Program, variables: &RuleVariables) -> Result<Outcome, Excess> {
        let left = self.budget.left();
        let (outcome, used) = run(program, variables, STEPS.min(left));
        self.budget.take(used)?;
        Ok(outcome)
    }
}
