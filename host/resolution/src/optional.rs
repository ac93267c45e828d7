//! Which optional packages are left out if not all of them fit.
//!
//! The order of the list decides: a package is in if it fits with the required ones and with those before it that are in. So adding a
//! package to the end of the list changes nothing for those before it. A member of the set that is left out stays as it is if that fits
//! with those before it, and is removed otherwise.

use std::collections::BTreeSet;

use chandler_api::{LeftOut, Reason};
use chandler_resolver::{
    Answer, Exceeded, Explanation, Hold, Installed, Problem, ResolveError, version::masterminds::Range,
};

use crate::Question;

/// The most lines of the explanation of a package.
pub const LINES: usize = 10;
/// The most questions for the resolver.
const QUESTIONS: usize = 1_000;

/// An answer, and the question that it answers: the Resolution's question without the packages that are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Settled {
    /// The question that has the answer.
    pub problem: Problem,
    /// The members of the set that stay as they are.
    pub staying: BTreeSet<String>,
    /// The packages that the resolver refused.
    pub left_out: Vec<LeftOut>,
    /// The answer.
    pub answer: Result<Answer, ResolveError>,
}

impl Settled {
    /// The question that has the answer, with what else is known of it.
    pub fn question(&self, asked: &Question) -> Question {
        let mut left_out = asked.left_out.clone();
        left_out.extend(self.left_out.iter().cloned());
        left_out.sort_by(|one, other| one.package.cmp(&other.package));
        Question { problem: self.problem.clone(), staying: self.staying.clone(), left_out, ..asked.clone() }
    }
}

/// Asks the resolver, and leaves out the optional packages that do not fit. `may_remove` says whether members of the set may be removed
/// to make room for others; without it, the question is refused instead. The number of questions grows with the number of packages that are
/// left out.
pub fn settle(
    asked: &Question,
    may_remove: bool,
    resolve: impl FnMut(&Problem) -> Result<Answer, ResolveError>,
) -> Settled {
    let search = Search { asked, resolve, questions: 0, staying: BTreeSet::new(), left_out: Vec::new() };
    search.run(may_remove)
}

/// The resolver's answer about a part of the packages.
enum Attempt {
    /// They fit, or that is unknown.
    Settled(Result<Answer, ResolveError>),
    /// They do not fit.
    Refused(Explanation),
    /// The checks of the members refused one of them, for these reasons.
    FailedChecks(Vec<String>),
    /// The question is too large or ambiguous with them.
    Undecided(ResolveError),
}

struct Search<'a, F> {
    asked: &'a Question,
    resolve: F,
    questions: usize,
    staying: BTreeSet<String>,
    left_out: Vec<LeftOut>,
}

impl<F: FnMut(&Problem) -> Result<Answer, ResolveError>> Search<'_, F> {
    fn run(mut self, may_remove: bool) -> Settled {
        let asked = self.asked;
        let mut kept: Vec<&str> = Vec::new();
        let mut rest: Vec<&str> = asked.optional.iter().map(String::as_str).collect();
        let mut required_fit = rest.is_empty();
        loop {
            let all = [&kept[..], &rest].concat();
            let refused = match self.attempt(&all) {
                Attempt::Settled(answer) => return self.settled(&all, answer),
                refused if rest.is_empty() => return self.refused(&kept, refused),
                refused => refused,
            };
            if !required_fit {
                match self.attempt(&[]) {
                    Attempt::Settled(Ok(_)) => required_fit = true,
                    Attempt::Settled(error) => return self.settled(&[], error),
                    refused => return self.refused(&[], refused),
                }
            }
            let (fitting, reason) = match self.longest(&kept, &rest, refused) {
                Ok(found) => found,
                Err(error) => return self.settled(&kept, Err(error)),
            };
            let (fits, others) = rest.split_at(fitting.min(rest.len()));
            kept.extend(fits);
            let Some((&package, others)) = others.split_first() else { continue };
            if let Err(failed) = self.leave_out(package, &kept, reason, may_remove) {
                return self.refused(&kept, failed);
            }
            rest = others.to_vec();
        }
    }

    /// How many packages at the beginning of `rest` fit, and why one more does not. All of them together do not.
    fn longest(&mut self, kept: &[&str], rest: &[&str], all: Attempt) -> Result<(usize, Attempt), ResolveError> {
        let (mut fitting, mut failing, mut reason) = (0, rest.len(), all);
        // The first that does not fit is likely to be near, or the only one: strides grow until one is too long.
        let (mut stride, mut is_near) = (1, false);
        while fitting + 1 < failing {
            let step = if is_near { (failing - fitting) / 2 } else { stride };
            let next = (fitting + step.max(1)).min(failing - 1);
            let some = rest.get(..next).unwrap_or_default();
            match self.attempt(&[kept, some].concat()) {
                Attempt::Settled(Ok(_)) => (fitting, stride) = (next, stride * 2),
                Attempt::Settled(Err(error)) => return Err(error),
                refused => (failing, reason, is_near) = (next, refused, true),
            }
        }
        Ok((fitting, reason))
    }

    /// Leaves a package out. Fails if it is a member of the set that would be removed and may not be.
    fn leave_out(&mut self, package: &str, kept: &[&str], reason: Attempt, may_remove: bool) -> Result<(), Attempt> {
        let mut explanation = explanation(&reason);
        let member = self.asked.problem.installed.iter().find(|it| it.package == package && it.hold != Hold::Pinned);
        if let Some(member) = member {
            self.staying.insert(package.to_owned());
            let stays = match self.attempt(kept) {
                Attempt::Settled(answer) => answer.map(|_| true).map_err(Attempt::Undecided),
                Attempt::Refused(_) if may_remove => Ok(false),
                failed => Err(failed),
            };
            if !matches!(stays, Ok(true)) {
                self.staying.remove(package);
            }
            stays?;
            explanation.truncate(LINES - 1);
            explanation.push(outcome(member, self.staying.contains(package)));
        }
        explanation.truncate(LINES);
        let reason = match reason {
            Attempt::FailedChecks(_) => Reason::PreflightFailed,
            _ => Reason::NotSatisfiable,
        };
        self.left_out.push(LeftOut { package: package.to_owned(), reason: reason.to_string(), explanation });
        Ok(())
    }

    fn attempt(&mut self, optional: &[&str]) -> Attempt {
        if let Some(reasons) = optional.iter().find_map(|package| self.asked.refused.get(*package)) {
            return Attempt::FailedChecks(reasons.clone());
        }
        self.questions += 1;
        if self.questions > QUESTIONS {
            return Attempt::Settled(Err(ResolveError::BudgetExceeded(Exceeded::Steps)));
        }
        let problem = self.problem(optional);
        // A range that cannot be parsed makes the whole question an error.
        let malformed = problem.required.iter().filter(|it| optional.contains(&it.package.as_str())).find_map(|it| {
            let range = it.range.chars().take(64).collect();
            Range::parse(&it.range)
                .err()
                .filter(|_| !it.range.is_empty())
                .map(|error| ResolveError::Range { range, error })
        });
        if let Some(error) = malformed {
            return Attempt::Refused(Explanation { message: error.to_string(), ..Explanation::default() });
        }
        match (self.resolve)(&problem) {
            Ok(Answer::Refusal(explanation)) => Attempt::Refused(explanation),
            Err(error @ (ResolveError::Ambiguous { .. } | ResolveError::BudgetExceeded(_))) => {
                Attempt::Undecided(error)
            }
            answer => Attempt::Settled(answer),
        }
    }

    /// The question with these optional packages.
    fn problem(&self, optional: &[&str]) -> Problem {
        let is_out = |package: &String| self.asked.optional.contains(package) && !optional.contains(&package.as_str());
        let mut problem = self.asked.problem.clone();
        problem.required.retain(|it| !is_out(&it.package));
        problem.installed.retain(|it| !is_out(&it.package) || self.staying.contains(&it.package));
        for installed in problem.installed.iter_mut().filter(|it| self.staying.contains(&it.package)) {
            installed.hold = Hold::Pinned;
        }
        problem
    }

    fn settled(self, kept: &[&str], answer: Result<Answer, ResolveError>) -> Settled {
        let problem = self.problem(kept);
        Settled { problem, staying: self.staying, left_out: self.left_out, answer }
    }

    /// Not even these packages fit.
    fn refused(self, kept: &[&str], refused: Attempt) -> Settled {
        let answer = match refused {
            Attempt::Settled(answer) => answer,
            Attempt::Refused(explanation) => Ok(Answer::Refusal(explanation)),
            Attempt::FailedChecks(reasons) => {
                Ok(Answer::Refusal(Explanation { message: reasons.join("; "), ..Explanation::default() }))
            }
            Attempt::Undecided(error) => Err(error),
        };
        self.settled(kept, answer)
    }
}

fn explanation(reason: &Attempt) -> Vec<String> {
    match reason {
        Attempt::FailedChecks(reasons) => reasons.clone(),
        Attempt::Refused(explanation) if explanation.lines.is_empty() => vec![explanation.message.clone()],
        Attempt::Refused(explanation) => {
            let lines = explanation.lines.iter().map(ToString::to_string);
            lines.chain(explanation.near_misses.iter().cloned()).collect()
        }
        Attempt::Undecided(error) | Attempt::Settled(Err(error)) => vec![error.to_string()],
        Attempt::Settled(Ok(_)) => Vec::new(),
    }
}

fn outcome(member: &Installed, stays: bool) -> String {
    let Installed { package, version, .. } = member;
    if stays {
        format!("{package} {version} stays installed")
    } else {
        format!("{package} {version} does not fit with what is preferred, and is removed")
    }
}

#[cfg(test)]
pub(crate) mod tests;
