//! The SAT solver, and the only module that names it.
//!
//! `batsat` is MiniSat in Rust without dependencies. The resolver needs what package solvers such as `resolvo` do not offer: a
//! question under *assumptions*, answered by the same solver hundreds of times, since the best choice is found by asking whether a
//! better one exists; and the *core* of the assumptions that contradict each other, which the explanation is made of.

use std::{cell::Cell, rc::Rc};

use batsat::{Callbacks, Lit as Literal, Solver, SolverInterface as _, SolverOpts, lbool};

use crate::{error::Exceeded, problem::Budget};

/// A variable or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lit(Literal);

impl std::ops::Not for Lit {
    type Output = Self;

    fn not(self) -> Self {
        Self(!self.0)
    }
}

/// What is left of the steps, shared by all parts of one search.
#[derive(Clone, Debug)]
pub(crate) struct Steps {
    left: Rc<Cell<u64>>,
    taken: Taken,
}

/// The steps that all searches of a question have taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken(Rc<Cell<u64>>);

impl Taken {
    pub(crate) fn count(&self) -> u64 {
        self.0.get()
    }
}

impl Steps {
    /// The steps of a budget. Used steps are added to `taken`.
    pub(crate) fn new(budget: &Budget, taken: &Taken) -> Self {
        Self { left: Rc::new(Cell::new(budget.steps)), taken: taken.clone() }
    }

    /// Takes steps, if there are as many.
    pub(crate) fn take(&self, count: u64) -> Result<(), Exceeded> {
        let left = self.left.get().checked_sub(count);
        self.left.set(left.unwrap_or(0));
        self.taken.0.set(self.taken.0.get().saturating_add(count));
        left.map(|_| ()).ok_or(Exceeded::Steps)
    }

    /// How many are left.
    pub(crate) fn left(&self) -> u64 {
        self.left.get()
    }
}

struct Meter {
    steps: Steps,
    /// The price of a decision, which grows with what it may propagate to.
    price: Rc<Cell<u64>>,
    /// Literals of clauses that the solver has learnt.
    learnt: Rc<Cell<usize>>,
    most_learnt: usize,
}

impl Callbacks for Meter {
    fn on_new_clause(&mut self, clause: &[Literal], _: batsat::ClauseKind) {
        self.learnt.set(self.learnt.get() + clause.len());
        // The search stops at its next decision.
        let _ = self.steps.take(self.price.get());
    }

    fn on_delete_clause(&mut self, clause: &[Literal]) {
        self.learnt.set(self.learnt.get().saturating_sub(clause.len()));
    }

    fn stop(&self) -> bool {
        self.learnt.get() > self.most_learnt || self.steps.take(self.price.get()).is_err()
    }
}

/// A set of clauses, and what satisfies them.
pub(crate) struct Sat {
    solver: Solver<Meter>,
    model: Vec<bool>,
    literals: usize,
    price: Rc<Cell<u64>>,
    variables: u64,
}

impl Sat {
    pub(crate) fn new(budget: &Budget, steps: &Steps) -> Self {
        let price = Rc::new(Cell::new(8));
        let meter = Meter {
            steps: steps.clone(),
            price: Rc::clone(&price),
            learnt: Rc::default(),
            most_learnt: budget.literals,
        };
        let solver = Solver::new(SolverOpts::default(), meter);
        Self { solver, model: Vec::new(), literals: budget.literals, price, variables: 0 }
    }

    /// A new variable. The solver tries it as false first.
    pub(crate) fn variable(&mut self) -> Lit {
        self.variables += 1;
        self.price.set(8 + self.variables / 128);
        Lit(Literal::new(self.solver.new_var(lbool::FALSE, true), true))
    }

    /// Adds a clause: one of the literals holds.
    pub(crate) fn clause(&mut self, literals: impl IntoIterator<Item = Lit>) -> Result<(), Exceeded> {
        let mut clause: Vec<Literal> = literals.into_iter().map(|literal| literal.0).collect();
        self.literals = self.literals.checked_sub(clause.len()).ok_or(Exceeded::Literals)?;
        self.solver.add_clause_reuse(&mut clause);
        Ok(())
    }

    /// Whether all clauses and assumptions can hold together.
    pub(crate) fn solve(&mut self, assumptions: &[Lit]) -> Result<bool, Exceeded> {
        let assumptions: Vec<Literal> = assumptions.iter().map(|literal| literal.0).collect();
        let result = self.solver.solve_limited(&assumptions);
        if result == lbool::UNDEF {
            return Err(Exceeded::Steps);
        }
        let found = result == lbool::TRUE;
        if found {
            self.model.clear();
            self.model.extend(self.solver.get_model().iter().map(|value| *value == lbool::TRUE));
        }
        Ok(found)
    }

    /// The value of a literal where everything held the last time.
    pub(crate) fn value(&self, literal: Lit) -> bool {
        let index = usize::try_from(literal.0.var().idx()).unwrap_or(usize::MAX);
        self.model.get(index).copied().unwrap_or(false) == literal.0.sign()
    }

    /// The value of a literal that no assumption can change, if that is known.
    pub(crate) fn fixed(&self, literal: Lit) -> Option<bool> {
        match self.solver.value_lvl_0(literal.0) {
            value if value == lbool::TRUE => Some(true),
            value if value == lbool::FALSE => Some(false),
            _ => None,
        }
    }

    /// The assumptions that contradicted each other the last time. Not minimal. The solver keeps them negated.
    pub(crate) fn core(&self, assumptions: &[Lit]) -> Vec<Lit> {
        let contains = |literal: &Lit| self.solver.unsat_core_contains_lit(!literal.0);
        assumptions.iter().copied().filter(contains).collect()
    }

    /// The smallest part of some assumptions that contradict each other, such that none can be left out. Those at the end are
    /// left out first.
    pub(crate) fn minimal_core(&mut self, assumptions: &[Lit]) -> Result<Vec<Lit>, Exceeded> {
        let mut core = self.core(assumptions);
        let mut index = core.len();
        while index > 0 {
            index -= 1;
            let Some(&tried) = core.get(index) else { break };
            let rest: Vec<Lit> = core.iter().copied().filter(|literal| *literal != tried).collect();
            if !self.solve(&rest)? {
                core = self.core(&rest);
                index = index.min(core.len());
            }
        }
        Ok(core)
    }

    /// At most one of the literals holds, unless one of `unless` does. Returns for each literal whether it or one before it
    /// holds.
    pub(crate) fn at_most_one(&mut self, unless: &[Lit], literals: &[Lit]) -> Result<Vec<Lit>, Exceeded> {
        let mut prefixes: Vec<Lit> = Vec::with_capacity(literals.len());
        for &literal in literals {
            let prefix = self.variable();
            self.clause([!literal, prefix])?;
            match prefixes.last().copied() {
                Some(before) => {
                    self.clause([!before, prefix])?;
                    self.clause([!prefix, before, literal])?;
                    self.clause(unless.iter().copied().chain([!before, !literal]))?;
                }
                None => self.clause([!prefix, literal])?,
            }
            prefixes.push(prefix);
        }
        Ok(prefixes)
    }

    /// Counts literals up to `most`. The literal at index `n` of the result must hold where more than `n` of them do; so its
    /// negation allows `n`.
    pub(crate) fn count(&mut self, literals: &[Lit], most: usize) -> Result<Vec<Lit>, Exceeded> {
        let mut counts: Vec<Lit> = Vec::new();
        for &literal in literals {
            let width = (counts.len() + 1).min(most);
            let next: Vec<Lit> = (0..width).map(|_| self.variable()).collect();
            for (index, &now) in next.iter().enumerate() {
                if let Some(&before) = counts.get(index) {
                    self.clause([!before, now])?;
                }
                match index.checked_sub(1).map(|below| counts.get(below).copied()) {
                    None => self.clause([!literal, now])?,
                    Some(Some(below)) => self.clause([!literal, !below, now])?,
                    Some(None) => {}
                }
            }
            counts = next;
        }
        Ok(counts)
    }
}
