//! Constraints that an administrator sets outside of the spec of a Resolution.
//!
//! They hold for every answer. Installed packages may violate them when they are set or changed: then nothing changes, since a constraint
//! that is meant to keep a cluster in order must not uninstall what runs.

use std::collections::BTreeSet;

use chandler_api::SetConstraint;
use chandler_resolver::{Answer, Explanation, Hold, Installed, Problem, ResolveError, explain::CONSTRAINT};

use crate::{
    Question, Settled,
    optional::{LINES, settle},
    plan,
    question::constraint,
};

/// Where constraints come from that the spec of a Resolution does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invariants {
    /// What has them, such as `PlatformPolicy platform-operators`.
    pub source: String,
    /// How many there are.
    pub count: usize,
}

impl Invariants {
    /// Says in an explanation where its constraints come from.
    fn explain(&self, explanation: &mut Vec<String>) {
        if explanation.iter().any(|line| line.starts_with(CONSTRAINT)) {
            explanation.truncate(LINES - 1);
            explanation.push(format!("the request includes constraints of {}", self.source));
        }
    }

    /// The answer if the constraints would uninstall these packages.
    fn refusal(&self, uninstalled: &BTreeSet<String>, settled: &Settled) -> Explanation {
        let packages = uninstalled.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let message = format!(
            "the constraints of {} do not hold for what is installed, and would uninstall {packages}. Nothing changes until the \
             constraints or the wanted packages do",
            self.source
        );
        let out = settled.left_out.iter().filter(|it| uninstalled.contains(&it.package));
        let lines = out.flat_map(|it| it.explanation.iter().filter(|line| line.starts_with(CONSTRAINT)));
        let near_misses = lines.take(LINES).cloned().collect();
        Explanation { message, near_misses, ..Explanation::default() }
    }
}

impl Question {
    /// Adds constraints that the spec does not have.
    pub fn constrain(&mut self, source: &str, constraints: &[SetConstraint]) {
        self.problem.constraints.extend(constraints.iter().map(constraint));
        let invariants = Invariants { source: source.to_owned(), count: constraints.len() };
        self.invariants = Some(invariants).filter(|it| it.count > 0);
    }
}

/// Like [`settle`], except that invariants uninstall nothing: an answer that lacks a member of the set only because of them is a refusal.
pub fn settle_within(
    asked: &Question,
    may_remove: bool,
    mut resolve: impl FnMut(&Problem) -> Result<Answer, ResolveError>,
) -> Settled {
    let mut settled = settle(asked, may_remove, &mut resolve);
    let Some(invariants) = &asked.invariants else { return settled };
    let members = || asked.problem.installed.iter().filter(|it| it.hold != Hold::Pinned);
    let lacks = |settled: &Settled| -> BTreeSet<String> {
        let Some(kept) = kept(asked, settled) else { return BTreeSet::new() };
        members().map(|it| &it.package).filter(|package| !kept.contains(*package)).cloned().collect()
    };
    if kept(asked, &settled).is_none() || !lacks(&settled).is_empty() {
        let mut free = asked.clone();
        let count = free.problem.constraints.len().saturating_sub(invariants.count);
        free.problem.constraints.truncate(count);
        // An answer that cannot be found uninstalls nothing.
        let anyway = lacks(&settle(&free, may_remove, &mut resolve));
        let is_settled = |settled: &Settled| kept(asked, settled).is_some() && lacks(settled).is_subset(&anyway);
        if !is_settled(&settled) {
            // Installed packages take precedence over preferred ones, and packages that are no longer needed do not conflict.
            let mut ordered = asked.clone();
            ordered.optional.sort_by_key(|package| !members().any(|member| member.package == *package));
            let goes = |it: &Installed| it.automatic && it.hold != Hold::Pinned && anyway.contains(&it.package);
            ordered.problem.installed.retain(|it| !goes(it));
            settled = settle(&ordered, may_remove, &mut resolve);
        }
        let uninstalled = &lacks(&settled) - &anyway;
        if !uninstalled.is_empty() {
            settled.answer = Ok(Answer::Refusal(invariants.refusal(&uninstalled, &settled)));
            settled.left_out.clear();
        }
    }
    settled.left_out.iter_mut().for_each(|it| invariants.explain(&mut it.explanation));
    if let Ok(Answer::Refusal(explanation)) = &mut settled.answer
        && explanation.lines.iter().any(|line| line.to_string().starts_with(CONSTRAINT))
    {
        explanation.message = format!("{}; constraints of {} hold, too", explanation.message, invariants.source);
    }
    settled
}

/// The packages that a set keeps with an answer; `None` if it changes nothing.
fn kept(asked: &Question, settled: &Settled) -> Option<BTreeSet<String>> {
    match &settled.answer {
        Ok(Answer::Decision(decision)) => Some(plan::kept(decision, asked)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
