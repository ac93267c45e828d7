//! Runs the examples of docs/resolving.md.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use chandler_resolver::{Answer, Decision, MemoryCatalogs, Problem, Reason, resolve};

use crate::support::examples::{Bundle, metas};

const PAGE: &str = include_str!("../../../docs/resolving.md");

/// A bundle of a line such as `shop 3.1.0 in edge; needs kind K; replaces 1.0.0`.
fn bundle(line: &str) -> Bundle {
    let mut words = line.splitn(3, ' ');
    let (package, version) = (words.next().unwrap(), words.next().unwrap());
    let mut bundle = Bundle::new(package, version);
    for clause in words.next().unwrap_or_default().split("; ").filter(|clause| !clause.is_empty()) {
        let (verb, rest) = clause.split_once(' ').unwrap_or((clause, ""));
        bundle = match (verb, rest.split_once(' ')) {
            ("deprecated", _) => bundle.deprecated(),
            ("in", _) => bundle.channel(rest),
            ("replaces", _) => bundle.replaces(rest),
            ("skipRange", _) => bundle.skip_range(rest),
            ("provides", _) => bundle.provides(rest),
            ("needs", Some(("kind", kind))) => bundle.requires_kind(kind),
            ("needs", Some(("Kubernetes", version))) => bundle.min_kubernetes(version),
            ("needs", Some(("package", what))) => {
                let (name, range) = what.split_once(' ').unwrap();
                bundle.requires_package(name, range)
            }
            _ => panic!("{clause:?} of {line:?}"),
        };
    }
    bundle
}

fn decision(decision: &Decision) -> Vec<String> {
    let reason = |reason: &Reason| match reason {
        Reason::Requested { .. } => "requested".to_owned(),
        Reason::Installed => "installed".to_owned(),
        Reason::NeededBy { package, version, need } => format!("{package} {version} needs {need}"),
        Reason::Constraint { need } => format!("a constraint asks for {need}"),
    };
    let each = decision.members.iter().map(|member| {
        let reasons: Vec<String> = member.reasons.iter().map(reason).collect();
        let steps: Vec<String> =
            member.steps.iter().map(|step| format!("{} ({:?})", step.version, step.edge)).collect();
        let steps = if steps.is_empty() { String::new() } else { format!("; by {}", steps.join(", ")) };
        let catalog = member.catalog.as_deref().unwrap_or("nowhere");
        format!("{} {} from {catalog}: {}{steps}", member.package, member.version, reasons.join(", "))
    });
    each.collect()
}

#[test]
fn the_examples_are_true() {
    let (mut catalogs, mut answer, mut examples) = (MemoryCatalogs::new(), Vec::new(), 0);
    let mut lines = PAGE.lines();
    while let Some(line) = lines.next() {
        let Some(kind) = line.strip_prefix("```").filter(|kind| !kind.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match kind.split_once(' ') {
            Some(("text", "answer")) => {
                assert_eq!(answer, block, "example {examples}");
                examples += 1;
                catalogs = MemoryCatalogs::new();
            }
            Some(("text", catalog)) => {
                let bundles: Vec<Bundle> = block.iter().map(|line| bundle(line)).collect();
                catalogs = catalogs.with(catalog.trim_start_matches("catalog "), metas(&bundles));
            }
            Some(("json", "problem")) => {
                let problem: Problem = serde_json::from_str(&block.join("\n")).unwrap();
                answer = match resolve(&problem, &catalogs).unwrap() {
                    Answer::Decision(chosen) => decision(&chosen),
                    Answer::Refusal(why) => {
                        let misses = why.near_misses.iter().map(|miss| format!("near miss: {miss}"));
                        why.lines.iter().map(ToString::to_string).chain(misses).collect()
                    }
                };
            }
            _ => {}
        }
    }
    assert_eq!(examples, 7);
}
