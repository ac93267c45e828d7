//! Questions and catalogs of any content have an answer or an error, always the same, within the budget.

use std::collections::BTreeMap;

use chandler_resolver::{Answer, Budget, MemoryCatalogs, Problem, Source, deppy, resolve};
use serde::Deserialize;
use serde_json::Value;

/// A question, and the metas of catalogs by name.
#[derive(Deserialize)]
struct Input {
    problem: Problem,
    #[serde(default)]
    catalogs: BTreeMap<String, Vec<Value>>,
}

/// A budget that one run of a fuzzer has time for.
const BUDGET: Budget = Budget { steps: 200_000, bundles: 2_000, literals: 200_000 };

pub(crate) fn holds(input: &[u8]) {
    if let Ok(question) = serde_json::from_slice::<deppy::Variables>(input) {
        variables(&deppy::Variables { budget: BUDGET, ..question });
    }
    let Ok(Input { mut problem, catalogs }) = serde_json::from_slice::<Input>(input) else { return };
    problem.budget = BUDGET;
    let mut memory = MemoryCatalogs::new();
    for (name, metas) in catalogs {
        if problem.catalogs.iter().all(|source| source.name != name) {
            problem.catalogs.push(Source { name: name.clone(), ..Source::default() });
        }
        memory = memory.with(&name, metas);
    }
    let text = serde_json::to_string(&problem).expect("a problem is JSON");
    assert_eq!(serde_json::from_str::<Problem>(&text).expect("it is read back"), problem);
    let first = resolve(&problem, &memory);
    problem.required.reverse();
    problem.installed.reverse();
    problem.catalogs.reverse();
    let second = resolve(&problem, &memory);
    if let (Ok(first), Ok(second)) = (&first, &second) {
        assert_eq!(first, second, "the order of the input changes nothing");
    }
    assert_eq!(first.is_ok(), second.is_ok());
    if let Ok(answer) = first {
        let text = serde_json::to_string(&answer).expect("an answer is JSON");
        assert_eq!(serde_json::from_str::<Answer>(&text).expect("it is read back"), answer);
        if let Answer::Refusal(explanation) = answer {
            assert!(!explanation.message.is_empty(), "a refusal says why");
        }
    }
}

/// The choice contains the mandatory items, in the order of the input.
fn variables(question: &deppy::Variables) {
    let Ok(chosen) = deppy::solve(question) else { return };
    let mut rest = question.variables.iter();
    assert!(chosen.iter().all(|id| rest.any(|variable| variable.id == *id)), "the order of the input");
    let mandatory = question.variables.iter().filter(|one| one.constraints.contains(&deppy::Constraint::Mandatory));
    assert!(mandatory.into_iter().all(|one| chosen.contains(&one.id)), "what is mandatory is chosen");
}
