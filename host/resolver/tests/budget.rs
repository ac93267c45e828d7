//! Hostile catalogs end with an error of their own, in bounded memory. The allocator counts, so this is a test binary of its own.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

mod support;

use chandler_resolver::{Budget, Exceeded, MemoryCatalogs, Problem, ResolveError, resolve};
use peak_alloc::PeakAlloc;
use serde_json::json;
use support::examples::{Bundle, metas};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most memory in MiB that an answer may take on top of the catalog.
const ALLOWED: f32 = 150.0;

fn ask(bundles: &[Bundle], required: &[&str], budget: Budget) -> (Result<bool, ResolveError>, f32) {
    let catalogs = MemoryCatalogs::new().with("c", metas(bundles));
    let required: Vec<_> = required.iter().map(|package| json!({"package": package})).collect();
    let mut problem: Problem =
        serde_json::from_value(json!({"required": required, "catalogs": [{"name": "c"}]})).unwrap();
    problem.budget = budget;
    let before = MEMORY.current_usage_as_mb();
    MEMORY.reset_peak_usage();
    let answer = resolve(&problem, &catalogs).map(|answer| answer.decision().is_some());
    (answer, MEMORY.peak_usage_as_mb() - before)
}

/// `count` packages, each with one version less that provides one of as many kinds: a contradiction that a solver of this
/// kind only finds by trying nearly everything.
fn pigeons(count: u32) -> Vec<Bundle> {
    let bundle = |package: u32, kind: u32| {
        Bundle::new(&format!("p{package}"), &format!("1.{kind}.0")).provides(&format!("K{kind}"))
    };
    (0..count).flat_map(|package| (1..count).map(move |kind| bundle(package, kind))).collect()
}

/// One test, since all share the memory that is counted.
#[test]
fn hostile_catalogs_end() {
    let small = Budget { steps: 300_000, ..Budget::default() };

    // Versions that all need a kind that all provide, and each other.
    let crowd: Vec<Bundle> = (0..10_000_u32)
        .map(|patch| {
            let version = format!("1.0.{patch}");
            Bundle::new("crowd", &version)
                .provides(&format!("K{}", patch % 7))
                .requires_kind("K3")
                .requires_package("crowd", ">=1.0.9999")
        })
        .collect();
    let (answer, memory) = ask(&crowd, &["crowd"], Budget::default());
    println!("crowd: {answer:?} in {memory} MiB");
    assert!(memory < ALLOWED, "{memory} MiB");
    assert!(matches!(answer, Ok(_) | Err(ResolveError::BudgetExceeded(_))), "{answer:?}");

    let names: Vec<String> = (0..12).map(|package| format!("p{package}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (answer, memory) = ask(&pigeons(12), &names, small);
    println!("pigeons: {answer:?} in {memory} MiB");
    assert_eq!(answer, Err(ResolveError::BudgetExceeded(Exceeded::Steps)));
    assert!(memory < ALLOWED, "{memory} MiB");
    let few = &names[..5];
    assert_eq!(ask(&pigeons(5), few, Budget::default()).0, Ok(false), "a small one has an answer");

    let (answer, _) = ask(&crowd, &["crowd"], Budget { bundles: 9_999, ..Budget::default() });
    assert_eq!(answer, Err(ResolveError::BudgetExceeded(Exceeded::Bundles)));
    let (answer, _) = ask(&crowd, &["crowd"], Budget { literals: 1_000, ..Budget::default() });
    assert_eq!(answer, Err(ResolveError::BudgetExceeded(Exceeded::Literals)));

    // Ten thousand ranges, each of which leads to the next version only.
    let ranges: Vec<Bundle> = (0..10_000)
        .map(|patch: u32| {
            let (from, to) = (patch.saturating_sub(1), patch);
            Bundle::new("long", &format!("1.0.{patch}")).skip_range(&format!(">=1.0.{from} <1.0.{to}"))
        })
        .collect();
    let catalogs = MemoryCatalogs::new().with("c", metas(&ranges));
    let mut problem: Problem =
        serde_json::from_value(json!({"required": [{"package": "long"}], "catalogs": [{"name": "c"}],
        "installed": [{"package": "long", "name": "long.v1.0.0", "version": "1.0.0"}]}))
        .unwrap();
    problem.budget = small;
    let error = resolve(&problem, &catalogs).unwrap_err();
    assert_eq!(error, ResolveError::BudgetExceeded(Exceeded::Steps));

    // A rule whose values grow: each loop makes texts four times as long, and its range is the loop before.
    let rule =
        |loops: usize| format!("[{}'x'].map{} != []", "'x',".repeat(50), vec!["(s,s+s+s+s)"; loops].join(".map"));
    let constrained = |rule: String| {
        let constraint = json!({"failureMessage": "no", "cel": {"rule": rule}});
        vec![Bundle::new("app", "1.0.0").property("olm.constraint", constraint), Bundle::new("db", "1.0.0")]
    };
    assert_eq!(ask(&constrained(rule(2)), &["app"], Budget::default()).0, Ok(true), "a small one has an answer");
    let (answer, memory) = ask(&constrained(rule(10)), &["app"], Budget::default());
    println!("growing values: {answer:?} in {memory} MiB");
    assert!(memory < 40.0, "{memory} MiB");
    assert_eq!(answer, Err(ResolveError::BudgetExceeded(Exceeded::Rule)));
}
