//! The answer to a question with one change.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use chandler_resolver::{Problem, resolve, what_if::what_if};
use serde_json::{Value, json};

use crate::support::examples::{Bundle, catalog};

fn changes(bundles: Vec<Bundle>, problem: Value) -> Vec<(String, Vec<String>)> {
    let catalogs = catalog(&[("c", bundles)]);
    let mut problem: Problem = serde_json::from_value(problem).unwrap();
    problem.catalogs = vec![chandler_resolver::Source { name: "c".to_owned(), ..Default::default() }];
    let answer = resolve(&problem, &catalogs).unwrap();
    let alternatives = what_if(&problem, &answer, &catalogs).unwrap();
    let members = |it: &chandler_resolver::Decision| {
        it.members.iter().map(|member| format!("{} {}", member.package, member.version)).collect()
    };
    alternatives.into_iter().map(|it| (it.change, members(&it.decision))).collect()
}

#[test]
fn each_change_that_helps_is_named_with_its_decision() {
    let bundles = vec![
        Bundle::new("shop", "3.1.0").requires_package("database", ">=2.0.0"),
        Bundle::new("database", "1.5.0"),
        Bundle::new("database", "2.0.0").replaces("1.5.0"),
    ];
    let pinned = json!({"required": [{"package": "shop"}],
        "installed": [{"package": "database", "name": "database.v1.5.0", "version": "1.5.0"}]});
    assert_eq!(
        changes(bundles, pinned),
        [
            ("database 1.5.0 could change".to_owned(), vec!["database 2.0.0".to_owned(), "shop 3.1.0".to_owned()]),
            ("dependencies were ignored".to_owned(), vec!["database 1.5.0".to_owned(), "shop 3.1.0".to_owned()]),
        ]
    );
}

#[test]
fn a_decision_has_alternatives_too_and_changes_without_effect_are_left_out() {
    let bundles = || {
        vec![
            Bundle::new("a", "1.0.0"),
            Bundle::new("a", "2.0.0").min_kubernetes("1.40.0"),
            Bundle::new("a", "3.0.0-rc.1"),
        ]
    };
    let named = |changes: Vec<(String, Vec<String>)>| changes.into_iter().map(|(change, _)| change).collect::<Vec<_>>();
    let ranged = json!({"required": [{"package": "a", "range": "<2"}], "cluster": {"kubernetes": "1.36.0"}});
    assert_eq!(changes(bundles(), ranged), [], "each change alone leaves 1.0.0");
    let limited = json!({"required": [{"package": "a"}], "cluster": {"kubernetes": "1.36.0"}});
    assert_eq!(
        named(changes(bundles(), limited)),
        ["pre-releases were allowed", "the version of Kubernetes did not matter"]
    );
}
