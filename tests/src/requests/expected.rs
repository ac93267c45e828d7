//! Compares counts with an earlier measurement.

use std::collections::{BTreeMap, BTreeSet};

use crate::requests::{Step, table::by_name};

/// The requests of each step, by `verb resource`.
pub type Expected = BTreeMap<String, BTreeMap<String, u64>>;

/// The name of the total of a step.
const TOTAL: &str = "all requests";

/// The difference that a step may have besides a tenth: how many events one reconcile sees depends on time.
const ALLOWANCE: u64 = 2;

/// A reconcile looks at the ServiceAccount again if it did so longer than five seconds ago: a slow machine may do so once in each step.
const BY_TIME: &str = "get serviceaccounts";

/// A rollout that takes longer than two seconds has an Event about its beginning, too: a slow machine may have one more for each bundle.
const OF_SLOW_ROLLOUTS: &str = "create events";

/// The counts of a measurement, to be recorded.
pub fn recorded(steps: &[Step]) -> Expected {
    steps.iter().map(|step| (step.name.to_owned(), by_name(step))).collect()
}

/// Describes every count that differs by more than a tenth and two requests, and every such total of a step. The ServiceAccount of
/// each of the `bundles` may be read once in each step, and each may have one more Event.
pub fn differences(expected: &Expected, found: &Expected, bundles: u64) -> Vec<String> {
    let none = BTreeMap::new();
    let steps: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let differences = steps.into_iter().flat_map(|step| {
        let expected = expected.get(step).unwrap_or(&none);
        let found = with_total(&without_late_events(expected, found.get(step).unwrap_or(&none), bundles), bundles);
        let expected = with_total(expected, bundles);
        let kinds: BTreeSet<String> = expected.keys().chain(found.keys()).cloned().collect();
        kinds.into_iter().filter_map(move |kind| {
            let count = |counts: &BTreeMap<String, u64>| counts.get(&kind).copied().unwrap_or_default();
            let (expected, found) = (count(&expected), count(&found));
            let verb = if found > expected { "grew" } else { "shrank" };
            let differs = found.abs_diff(expected) > expected.div_ceil(10) + ALLOWANCE;
            differs.then(|| format!("{step}: {kind} {verb} from {expected} to {found}"))
        })
    });
    differences.collect()
}

/// The counts that were found, without the Events that only a slow machine has.
fn without_late_events(
    expected: &BTreeMap<String, u64>,
    found: &BTreeMap<String, u64>,
    bundles: u64,
) -> BTreeMap<String, u64> {
    let mut found = found.clone();
    let recorded = expected.get(OF_SLOW_ROLLOUTS).copied().unwrap_or_default();
    if let Some(count) = found.get_mut(OF_SLOW_ROLLOUTS).filter(|count| **count > recorded) {
        *count = recorded.max(count.saturating_sub(bundles));
    }
    found
}

fn with_total(counts: &BTreeMap<String, u64>, bundles: u64) -> BTreeMap<String, u64> {
    let mut counts = counts.clone();
    counts.retain(|kind, count| kind != BY_TIME || *count > bundles);
    counts.insert(TOTAL.to_owned(), counts.values().sum());
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: u64, get: u64) -> Expected {
        let requests = BTreeMap::from([("list pods".to_owned(), list), ("get nodes".to_owned(), get)]);
        [("install".to_owned(), requests)].into()
    }

    #[test]
    fn a_count_may_differ_by_a_tenth_and_two() {
        let cases: [(u64, u64, &[&str]); 5] = [
            (100, 0, &[]),
            (110, 2, &[]),
            (113, 0, &["install: all requests grew from 100 to 113", "install: list pods grew from 100 to 113"]),
            (87, 0, &["install: all requests shrank from 100 to 87", "install: list pods shrank from 100 to 87"]),
            (100, 3, &["install: get nodes grew from 0 to 3"]),
        ];
        for (list, get, expected) in cases {
            assert_eq!(differences(&counts(100, 0), &counts(list, get), 5), expected, "{list} {get}");
        }
    }

    #[test]
    fn a_missing_step_differs() {
        assert_eq!(
            differences(&counts(5, 0), &Expected::new(), 5),
            ["install: all requests shrank from 5 to 0", "install: list pods shrank from 5 to 0"]
        );
    }

    #[test]
    fn each_account_may_be_read_once_in_a_step() {
        let reads = |count: u64| -> Expected {
            let requests = BTreeMap::from([(BY_TIME.to_owned(), count)]);
            [("upgrade".to_owned(), requests)].into()
        };
        assert_eq!(differences(&reads(0), &reads(5), 5), Vec::<String>::new());
        assert_eq!(
            differences(&reads(0), &reads(6), 5),
            ["upgrade: all requests grew from 0 to 6", "upgrade: get serviceaccounts grew from 0 to 6"]
        );
    }

    #[test]
    fn each_bundle_may_have_one_more_event_in_a_step() {
        let events = |count: u64| -> Expected {
            let requests = BTreeMap::from([(OF_SLOW_ROLLOUTS.to_owned(), count)]);
            [("upgrade".to_owned(), requests)].into()
        };
        for count in [3, 5, 10, 13] {
            assert_eq!(differences(&events(5), &events(count), 5), Vec::<String>::new(), "{count}");
        }
        assert_eq!(
            differences(&events(5), &events(14), 5),
            ["upgrade: all requests grew from 5 to 9", "upgrade: create events grew from 5 to 9"]
        );
    }

    #[test]
    fn small_growth_of_many_counts_shows_in_the_total() {
        let list = |count: u64| -> Expected {
            let requests = (0..10).map(|number| (format!("list {number}"), count)).collect();
            [("install".to_owned(), requests)].into()
        };
        assert_eq!(differences(&list(10), &list(12), 5), ["install: all requests grew from 100 to 120"]);
    }
}
