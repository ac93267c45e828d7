//! The answer to a question with one change.

use serde::{Deserialize, Serialize};

use crate::{
    answer::{Answer, Decision},
    catalog::Catalogs,
    error::ResolveError,
    problem::{Dependencies, Hold, Mode, Problem, Upgrades},
    resolve::resolve,
};

/// The most changes that are tried.
const MOST: usize = 32;

/// A change of a question, and its other answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Alternative {
    /// The change, in words: `any version of shop were allowed`.
    pub change: String,
    /// The answer to the changed question.
    pub decision: Decision,
}

/// Tries changes of a question, one at a time, and returns those with another decision than `answer`. A changed question without a
/// decision, or with an error such as an exceeded budget, is left out.
///
/// # Errors
/// If a catalog cannot be read.
pub fn what_if(problem: &Problem, answer: &Answer, catalogs: &dyn Catalogs) -> Result<Vec<Alternative>, ResolveError> {
    let chosen = |decision: &Decision| -> Vec<(String, String, Option<String>)> {
        let members = decision.members.iter();
        members.map(|it| (it.package.clone(), it.version.clone(), it.release.clone())).collect()
    };
    let before = answer.decision().map(chosen);
    let mut alternatives: Vec<Alternative> = Vec::new();
    for (change, changed) in changes(problem).into_iter().take(MOST) {
        match resolve(&changed, catalogs) {
            Ok(Answer::Decision(decision)) if before.as_ref() != Some(&chosen(&decision)) => {
                alternatives.push(Alternative { change, decision });
            }
            Err(error @ ResolveError::Catalog(_)) => return Err(error),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(alternatives)
}

/// The changed questions, each with its change in words.
fn changes(problem: &Problem) -> Vec<(String, Problem)> {
    let mut changes = Vec::new();
    let mut with = |change: String, edit: &dyn Fn(&mut Problem)| {
        let mut other = problem.clone();
        edit(&mut other);
        changes.push((change, other));
    };
    for (index, required) in problem.required.iter().enumerate() {
        let at = move |problem: &mut Problem| problem.required.get_mut(index).map(std::mem::take).unwrap_or_default();
        let put = move |problem: &mut Problem, required| {
            if let Some(place) = problem.required.get_mut(index) {
                *place = required;
            }
        };
        if !required.range.is_empty() {
            with(format!("any version of {} were allowed", required.package), &|problem| {
                let mut required = at(problem);
                required.range.clear();
                put(problem, required);
            });
        }
        if !required.channels.is_empty() {
            with(format!("any channel of {} were allowed", required.package), &|problem| {
                let mut required = at(problem);
                required.channels.clear();
                put(problem, required);
            });
        }
    }
    for installed in &problem.installed {
        let asked = problem.required.iter().any(|required| required.package == installed.package);
        if !asked && installed.hold == Hold::Pinned {
            with(format!("{} {} could change", installed.package, installed.version), &|problem| {
                let same = problem.installed.iter_mut().filter(|it| it.package == installed.package);
                same.for_each(|it| it.hold = Hold::Flexible);
            });
        }
    }
    let policy = problem.policy;
    if policy.upgrades == Upgrades::CatalogProvided && !problem.installed.is_empty() {
        with("upgrades that no channel provides were allowed".to_owned(), &|problem| {
            problem.policy.upgrades = Upgrades::SelfCertified;
        });
    }
    if !policy.prereleases && problem.mode == Mode::Default {
        with("pre-releases were allowed".to_owned(), &|problem| problem.policy.prereleases = true);
    }
    if !policy.deprecated {
        with("deprecated bundles were allowed".to_owned(), &|problem| problem.policy.deprecated = true);
    }
    if problem.cluster.kubernetes.is_some() {
        with("the version of Kubernetes did not matter".to_owned(), &|problem| problem.cluster.kubernetes = None);
    }
    if problem.cluster.openshift.is_some() {
        with("the version of OpenShift did not matter".to_owned(), &|problem| problem.cluster.openshift = None);
    }
    if policy.dependencies == Dependencies::Install && problem.mode == Mode::Default {
        with("dependencies were ignored".to_owned(), &|problem| {
            problem.policy.dependencies = Dependencies::Ignore;
        });
    }
    changes
}
