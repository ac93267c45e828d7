//! How much work one answer may take.

use std::cell::Cell;

use chandler_resolver::{Answer, Budget, Catalogs, Exceeded, Problem, ResolveError, resolve_counted};

/// How many times the steps of one question an answer may take.
const QUESTIONS: u64 = 4;

/// The steps that all questions for one answer may take together. Each has a budget of its own, but an optional package that does not fit, and
/// each alternative, leads to further ones.
#[derive(Debug)]
pub struct Allowance {
    all: u64,
    left: Cell<u64>,
}

impl Allowance {
    /// Four times the steps of one question, which is enough for hundreds of questions of the usual size.
    pub fn new(budget: &Budget) -> Self {
        let all = budget.steps.saturating_mul(QUESTIONS);
        Self { all, left: Cell::new(all) }
    }

    /// The steps that the questions have taken so far.
    pub fn taken(&self) -> u64 {
        self.all.saturating_sub(self.left.get())
    }

    /// Asks the resolver, with what is left of the steps.
    ///
    /// # Errors
    /// As [`resolve_counted`]; and if no steps are left.
    pub fn resolve(&self, problem: &Problem, catalogs: &dyn Catalogs) -> Result<Answer, ResolveError> {
        let left = self.left.get();
        if left == 0 {
            return Err(Exceeded::Steps.into());
        }
        let mut limited = problem.clone();
        limited.budget.steps = limited.budget.steps.min(left);
        let (answer, taken) = resolve_counted(&limited, catalogs);
        self.left.set(left.saturating_sub(taken));
        answer
    }
}

#[cfg(test)]
mod tests {
    use chandler_resolver::MemoryCatalogs;
    use serde_json::json;

    use super::*;

    #[test]
    fn many_questions_have_one_allowance() {
        let bundle = |version: &str| {
            json!({"schema": "olm.bundle", "package": "app", "name": format!("app.v{version}"), "image": "example.com/app",
                   "properties": [{"type": "olm.package", "value": {"packageName": "app", "version": version}}]})
        };
        let entries = json!([{"name": "app.v1.0.0"}, {"name": "app.v1.1.0", "replaces": "app.v1.0.0"}]);
        let catalogs = MemoryCatalogs::new().with(
            "main",
            [
                json!({"schema": "olm.package", "name": "app", "defaultChannel": "stable"}),
                json!({"schema": "olm.channel", "package": "app", "name": "stable", "entries": entries}),
                bundle("1.0.0"),
                bundle("1.1.0"),
            ],
        );
        let question = json!({"required": [{"package": "app"}], "catalogs": [{"name": "main"}]});
        let mut problem: Problem = serde_json::from_value(question).unwrap();
        let (answer, taken) = resolve_counted(&problem, &catalogs);
        assert!(taken > 0 && taken < problem.budget.steps);
        // Each question is within its own budget.
        problem.budget.steps = taken;
        let allowance = Allowance::new(&problem.budget);
        for _ in 0..QUESTIONS {
            assert_eq!(allowance.resolve(&problem, &catalogs), answer);
        }
        assert_eq!(allowance.taken(), QUESTIONS * taken);
        assert_eq!(allowance.resolve(&problem, &catalogs), Err(ResolveError::BudgetExceeded(Exceeded::Steps)));
    }
}
