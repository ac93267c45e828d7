//! What Deppy's solver gives: variables with constraints, chosen in the order of the input.
//!
//! Mandatory variables are assumed in input order; the dependencies of each chosen variable are tried in their order of
//! preference; then the number of further variables is minimised. The result is in input order.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

use serde::{Deserialize, Serialize};

use crate::{
    error::Exceeded,
    problem::Budget,
    sat::{Lit, Sat, Steps, Taken},
};

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variables {
    /// The variables; their order matters.
    pub variables: Vec<Variable>,
    /// The limits of the work.
    #[serde(default)]
    pub budget: Budget,
}

/// What may be chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// The name, which no other variable has.
    pub id: String,
    /// What must hold.
    #[serde(default)]
    pub constraints: Vec<Constraint>,
}

/// A constraint of a variable, its subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Constraint {
    /// The subject is chosen.
    Mandatory,
    /// The subject is not chosen.
    Prohibited,
    /// With the subject, one of these is chosen; the first that is possible.
    Dependency {
        /// The variables in the order of preference.
        ids: Vec<String>,
    },
    /// Not with the subject.
    Conflict {
        /// The other variable.
        id: String,
    },
    /// Not more than `n` of these, whether the subject is chosen or not.
    AtMost {
        /// The number.
        n: usize,
        /// The variables.
        ids: Vec<String>,
    },
    /// The subject or another variable, each possibly negated.
    Or {
        /// The other variable.
        id: String,
        /// Whether the subject is negated.
        #[serde(default)]
        negate_subject: bool,
        /// Whether the other variable is negated.
        #[serde(default)]
        negate_operand: bool,
    },
}

/// A constraint that contradicts others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Applied {
    /// The subject.
    pub variable: String,
    /// The constraint.
    pub constraint: Constraint,
}

/// There is no solution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeppyError {
    /// A variable is there twice.
    #[error("duplicate identifier {0:?} in input")]
    Duplicate(String),
    /// Constraints name variables that are not there.
    #[error("{}", unknown(.0))]
    Unknown(Vec<String>),
    /// The constraints contradict each other; without any one of these they would not.
    #[error("constraints not satisfiable:\n{}", lines(.0))]
    NotSatisfiable(Vec<Applied>),
    /// The limits of the work were reached.
    #[error("the question exceeds the budget of {0}")]
    BudgetExceeded(#[from] Exceeded),
}

fn unknown(names: &[String]) -> String {
    let each: Vec<String> = names.iter().map(|name| format!("variable {name:?} referenced but not provided")).collect();
    format!("{} errors encountered: {}", names.len(), each.join(", "))
}

fn lines(core: &[Applied]) -> String {
    core.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Applied {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = &self.variable;
        match &self.constraint {
            Constraint::Mandatory => write!(to, "{subject} is mandatory"),
            Constraint::Prohibited => write!(to, "{subject} is prohibited"),
            Constraint::Dependency { ids } if ids.is_empty() => {
                write!(to, "{subject} has a dependency without any candidates to satisfy it")
            }
            Constraint::Dependency { ids } => write!(to, "{subject} requires at least one of {}", ids.join(", ")),
            Constraint::Conflict { id } => write!(to, "{subject} conflicts with {id}"),
            Constraint::AtMost { n, ids } => write!(to, "{subject} permits at most {n} of {}", ids.join(", ")),
            Constraint::Or { id, negate_subject, negate_operand } => {
                let not = |negated: &bool| if *negated { "not " } else { "" };
                write!(to, "{}{subject} or {}{id}", not(negate_subject), not(negate_operand))
            }
        }
    }
}

impl Constraint {
    fn names(&self) -> Vec<&String> {
        match self {
            Self::Mandatory | Self::Prohibited => Vec::new(),
            Self::Dependency { ids } | Self::AtMost { ids, .. } => ids.iter().collect(),
            Self::Conflict { id } | Self::Or { id, .. } => vec![id],
        }
    }
}

/// Chooses variables. The result is in the order of the input.
///
/// # Errors
/// If the input is malformed, the constraints contradict each other, or the budget does not suffice.
pub fn solve(question: &Variables) -> Result<Vec<String>, DeppyError> {
    let variables = &question.variables;
    let mut search = Search::new(question)?;
    let anchors: Vec<Lit> = variables
        .iter()
        .filter(|variable| variable.constraints.contains(&Constraint::Mandatory))
        .filter_map(|variable| search.literals.get(variable.id.as_str()).copied())
        .collect();
    let everything: Vec<Lit> = search.selectors.iter().map(|(selector, _)| *selector).collect();
    if !search.sat.solve(&everything)? {
        let core: BTreeSet<Lit> = search.sat.minimal_core(&everything)?.into_iter().collect();
        let applied = search.selectors.iter().filter(|(selector, _)| core.contains(selector));
        return Err(DeppyError::NotSatisfiable(applied.map(|(_, applied)| applied.clone()).collect()));
    }
    let chosen = search.guess(everything, anchors, variables)?;
    let ordered: Vec<Lit> =
        variables.iter().filter_map(|variable| search.literals.get(variable.id.as_str()).copied()).collect();
    search.fewest(chosen, &ordered)?;
    let picked = variables.iter().zip(&ordered).filter(|(_, literal)| search.sat.value(**literal));
    Ok(picked.map(|(variable, _)| variable.id.clone()).collect())
}

struct Search<'a> {
    sat: Sat,
    literals: BTreeMap<&'a str, Lit>,
    selectors: Vec<(Lit, Applied)>,
}

impl<'a> Search<'a> {
    fn new(question: &'a Variables) -> Result<Self, DeppyError> {
        let steps = Steps::new(&question.budget, &Taken::default());
        let mut sat = Sat::new(&question.budget, &steps);
        let mut literals = BTreeMap::new();
        for variable in &question.variables {
            if literals.insert(variable.id.as_str(), sat.variable()).is_some() {
                return Err(DeppyError::Duplicate(variable.id.clone()));
            }
        }
        let constraints = || question.variables.iter().flat_map(|variable| &variable.constraints);
        let missing: BTreeSet<&String> =
            constraints().flat_map(Constraint::names).filter(|name| !literals.contains_key(name.as_str())).collect();
        if !missing.is_empty() {
            return Err(DeppyError::Unknown(missing.into_iter().cloned().collect()));
        }
        let mut search = Self { sat, literals, selectors: Vec::new() };
        for variable in &question.variables {
            for constraint in &variable.constraints {
                search.add(&variable.id, constraint)?;
            }
        }
        Ok(search)
    }

    fn literal(&self, name: &str) -> Result<Lit, DeppyError> {
        self.literals.get(name).copied().ok_or_else(|| DeppyError::Unknown(vec![name.to_owned()]))
    }

    fn all(&self, names: &[String]) -> Result<Vec<Lit>, DeppyError> {
        names.iter().map(|name| self.literal(name)).collect()
    }

    fn add(&mut self, id: &str, constraint: &Constraint) -> Result<(), DeppyError> {
        let subject = self.literal(id)?;
        let selector = self.sat.variable();
        let mut clause = vec![!selector];
        match constraint {
            Constraint::Mandatory => clause.push(subject),
            Constraint::Prohibited => clause.push(!subject),
            Constraint::Dependency { ids } => {
                clause.push(!subject);
                clause.extend(self.all(ids)?);
            }
            Constraint::Conflict { id } => clause.extend([!subject, !self.literal(id)?]),
            Constraint::AtMost { n, ids } => {
                let literals: BTreeSet<Lit> = self.all(ids)?.into_iter().collect();
                let literals: Vec<Lit> = literals.into_iter().collect();
                let counts = self.sat.count(&literals, n.saturating_add(1).min(literals.len()))?;
                match counts.get(*n) {
                    Some(&more) => clause.push(!more),
                    // There are not more than `n` of them.
                    None => clause.push(selector),
                }
            }
            Constraint::Or { id, negate_subject, negate_operand } => {
                let other = self.literal(id)?;
                clause.push(if *negate_subject { !subject } else { subject });
                clause.push(if *negate_operand { !other } else { other });
            }
        }
        self.sat.clause(clause)?;
        self.selectors.push((selector, Applied { variable: id.to_owned(), constraint: constraint.clone() }));
        Ok(())
    }

    /// Chooses the mandatory variables, and for each dependency of what is chosen the first variable that is possible. Every
    /// choice is possible together with those before it, so that none is ever taken back.
    fn guess(&mut self, mut held: Vec<Lit>, anchors: Vec<Lit>, all: &[Variable]) -> Result<Vec<Lit>, DeppyError> {
        let owners: BTreeMap<Lit, &Variable> =
            all.iter().filter_map(|variable| Some((*self.literals.get(variable.id.as_str())?, variable))).collect();
        let mut chosen = BTreeSet::new();
        let mut choices: VecDeque<Vec<Lit>> = anchors.into_iter().map(|anchor| vec![anchor]).collect();
        while let Some(choice) = choices.pop_front() {
            if choice.iter().any(|literal| chosen.contains(literal)) {
                continue;
            }
            for literal in choice {
                held.push(literal);
                if !self.sat.solve(&held)? {
                    held.pop();
                    continue;
                }
                chosen.insert(literal);
                for constraint in owners.get(&literal).map_or(&[][..], |variable| &variable.constraints) {
                    if let Constraint::Dependency { ids } = constraint {
                        choices.push_back(self.all(ids)?);
                    }
                }
                break;
            }
        }
        Ok(held)
    }

    /// Chooses as few further variables as possible, and of those that are as few the first of the input.
    fn fewest(&mut self, mut held: Vec<Lit>, ordered: &[Lit]) -> Result<(), DeppyError> {
        let kept: BTreeSet<Lit> = held.iter().copied().collect();
        let extras: Vec<Lit> = ordered.iter().copied().filter(|literal| !kept.contains(literal)).collect();
        self.sat.solve(&held)?;
        let found = |sat: &Sat| extras.iter().filter(|literal| sat.value(**literal)).count();
        let mut most = found(&self.sat);
        if most == 0 {
            return Ok(());
        }
        let counts = self.sat.count(&extras, most)?;
        while let Some(&at_least) = most.checked_sub(1).and_then(|index| counts.get(index)) {
            held.push(!at_least);
            if !self.sat.solve(&held)? {
                held.pop();
                break;
            }
            most = found(&self.sat);
        }
        for literal in extras {
            held.push(literal);
            if !self.sat.solve(&held)? {
                held.pop();
            }
        }
        self.sat.solve(&held)?;
        Ok(())
    }
}
