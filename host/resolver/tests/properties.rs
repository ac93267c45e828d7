//! Properties of all answers, against a resolver that looks at every set.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use std::collections::BTreeSet;

use chandler_resolver::{Answer, Decision, MemoryCatalogs, Problem, resolve};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{
    examples::{Bundle, metas},
    oracle::Oracle,
    random::{CATALOGS, Dice, Random},
};

fn catalogs(question: &Random) -> MemoryCatalogs {
    CATALOGS.iter().fold(MemoryCatalogs::new(), |all, (name, _)| all.with(name, metas(&question.bundles(name))))
}

fn ask(problem: &Value, catalogs: &MemoryCatalogs) -> Answer {
    let problem: Problem = serde_json::from_value(problem.clone()).unwrap();
    resolve(&problem, catalogs).unwrap()
}

/// The members of a decision, as candidates of the question.
fn members(question: &Random, decision: &Decision) -> Vec<usize> {
    let index = |member: &chandler_resolver::Member| {
        question.candidates.iter().position(|one| {
            one.package == member.package
                && one.version.to_string() == member.version
                && Some(&one.catalog) == member.catalog.as_ref()
        })
    };
    let mut members: Vec<usize> = decision.members.iter().map(|member| index(member).unwrap()).collect();
    members.sort_unstable();
    members
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    /// The solver and the oracle accept the same sets, the best of them is chosen, and an explanation is a contradiction without a
    /// superfluous line.
    #[test]
    fn answers_are_those_of_the_oracle(seed in any::<u64>(), packages in 1_usize..5) {
        let question = Random::new(seed, packages, 9);
        let oracle = Oracle::new(&question);
        match ask(&question.problem(), &catalogs(&question)) {
            Answer::Decision(decision) => {
                prop_assert_eq!(Some(members(&question, &decision)), oracle.best(), "{:#?}", question);
            }
            Answer::Refusal(explanation) => {
                prop_assert_eq!(None, oracle.best(), "{}\n{:#?}", explanation.message, question);
                let lines: Vec<_> = explanation.lines.iter().collect();
                prop_assert!(!oracle.satisfiable(&lines), "{}\n{:#?}", explanation.message, question);
                for left_out in 0..lines.len() {
                    let mut rest = lines.clone();
                    let line = rest.remove(left_out);
                    prop_assert!(oracle.satisfiable(&rest), "{line} is superfluous: {}\n{question:#?}", explanation.message);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Large questions, too: nothing is broken, and every member has a reason.
    #[test]
    fn answers_satisfy_every_constraint(seed in any::<u64>(), packages in 5_usize..30) {
        let question = Random::new(seed, packages, 200);
        if let Answer::Decision(decision) = ask(&question.problem(), &catalogs(&question)) {
            let oracle = Oracle::new(&question);
            prop_assert_eq!(oracle.broken(&members(&question, &decision)), None);
            prop_assert!(decision.members.iter().all(|member| !member.reasons.is_empty()), "{:?}", decision);
        }
    }

    /// Neither the order of the input nor packages that nothing leads to change an answer.
    #[test]
    fn order_and_unrelated_packages_change_nothing(seed in any::<u64>(), packages in 1_usize..8) {
        let (answer, shuffled) = answers_in_two_orders(seed, packages);
        prop_assert_eq!(shuffled, answer);
    }
}

/// The answers to a question, and to the same one in another order and beside an unrelated package.
fn answers_in_two_orders(seed: u64, packages: usize) -> (Answer, Answer) {
    let question = Random::new(seed, packages, 30);
    let answer = ask(&question.problem(), &catalogs(&question));
    let mut dice = Dice::new(seed ^ 1);
    let mut problem = question.problem();
    for list in ["required", "installed", "catalogs"] {
        shuffle(&mut dice, problem[list].as_array_mut().unwrap());
    }
    let mut shuffled = MemoryCatalogs::new();
    for (name, _) in CATALOGS {
        let mut bundles = question.bundles(name);
        bundles.push(Bundle::new("unrelated", "1.0.0").provides("Unrelated").requires_kind("K0"));
        let mut metas = metas(&bundles);
        for meta in &mut metas {
            for list in ["properties", "entries"] {
                if let Some(list) = meta.get_mut(list).and_then(Value::as_array_mut) {
                    // Requirements keep their order: an explanation quotes a constraint as it is written.
                    shuffle(&mut dice, list);
                }
            }
        }
        shuffle(&mut dice, &mut metas);
        shuffled = shuffled.with(name, metas);
    }
    (answer, ask(&problem, &shuffled))
}

/// The order of the requirements of a bundle decided the order of the lines of an explanation.
#[test]
fn the_order_of_requirements_changes_no_explanation() {
    let (answer, shuffled) = answers_in_two_orders(15_547_118_363_111_718_548, 6);
    assert_eq!(shuffled, answer);
}

fn shuffle(dice: &mut Dice, list: &mut [Value]) {
    for index in (1..list.len()).rev() {
        list.swap(index, usize::try_from(dice.below(index as u64 + 1)).unwrap());
    }
}

/// The answer in JSON is read back as it was.
#[test]
fn answers_are_plain_data() {
    let mut decisions = 0;
    for seed in 0..200 {
        let question = Random::new(seed, 4, 20);
        let answer = ask(&question.problem(), &catalogs(&question));
        decisions += usize::from(answer.decision().is_some());
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
        let problem: Problem = serde_json::from_value(question.problem()).unwrap();
        let text = serde_json::to_string(&problem).unwrap();
        assert_eq!(serde_json::from_str::<Problem>(&text).unwrap(), problem);
    }
    assert!((40..160).contains(&decisions), "{decisions} decisions of 200: the random questions are of one kind");
}

/// A pinned set of many packages that need each other is kept as it is.
#[test]
fn cycles_end() {
    let bundles: Vec<Bundle> = (0..50)
        .map(|index| {
            Bundle::new(&format!("p{index}"), "1.0.0").requires_package(&format!("p{}", (index + 1) % 50), ">=1.0.0")
        })
        .collect();
    let catalogs = MemoryCatalogs::new().with("c", metas(&bundles));
    let answer = ask(&json!({"required": [{"package": "p7"}], "catalogs": [{"name": "c"}]}), &catalogs);
    let names: BTreeSet<&str> =
        answer.decision().unwrap().members.iter().map(|member| member.package.as_str()).collect();
    assert_eq!(names.len(), 50);
}
