//! From a problem to an answer.

use crate::{
    answer::Answer,
    catalog::Catalogs,
    choose::choose,
    decide::decide,
    encode::Encoding,
    error::ResolveError,
    explain::{Explanation, explain},
    problem::{Mode, Problem},
    question::Question,
    single::single,
    universe::Universe,
};

/// Answers a question.
///
/// # Errors
/// If the question is malformed, a catalog cannot be read, two catalogs offer what is equal, or the budget does not suffice.
pub fn resolve(problem: &Problem, catalogs: &dyn Catalogs) -> Result<Answer, ResolveError> {
    resolve_counted(problem, catalogs).0
}

/// [`resolve`], and how many steps of the budget the answer and its explanation took together.
pub fn resolve_counted(problem: &Problem, catalogs: &dyn Catalogs) -> (Result<Answer, ResolveError>, u64) {
    if problem.mode == Mode::Single {
        return (single(problem, catalogs), 0);
    }
    match Question::new(problem) {
        Ok(question) => (search(&question, catalogs), question.taken.count()),
        Err(error) => (Err(error), 0),
    }
}

fn search(question: &Question<'_>, catalogs: &dyn Catalogs) -> Result<Answer, ResolveError> {
    let universe = Universe::collect(question, catalogs, false)?;
    let mut encoding = Encoding::of(&universe, false)?;
    if let Some(chosen) = choose(&universe, &mut encoding)? {
        return Ok(Answer::Decision(decide(&universe, &chosen)));
    }
    // The explanation also looks at candidates that are blocked.
    drop(encoding);
    let wider = Universe::collect(question, catalogs, true)?;
    let explanation = match explain(&wider)? {
        Some(explanation) => Some(explanation),
        None => explain(&universe)?,
    };
    Ok(Answer::Refusal(explanation.unwrap_or_else(|| Explanation::of_message("nothing fits".to_owned()))))
}
