//! The requests of the controller to the API server, by verb and resource, do not grow.

use std::{collections::BTreeSet, env, fs, path::PathBuf};

use chandler_tests::{
    Cluster, World,
    requests::{
        Workload,
        expected::{Expected, differences, recorded},
        measure,
    },
};

/// Set: the test records the counts that it finds.
const RECORD: &str = "CHANDLER_RECORD_REQUESTS";

/// The number of bundles: small, so that the test is short, and more than one, so that cost for each of them shows.
const BUNDLES: usize = 5;

/// How often the workload is measured before counts that differ fail the test. How many changes of an object one reconcile
/// sees depends on the speed of the machine; a controller that sends more requests sends them every time.
const ATTEMPTS: usize = 4;

/// Of how many measurements the median is recorded.
const RECORDED: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_an_account_for_each_bundle_do_not_grow() {
    check("with an account for each bundle", true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_with_the_rights_of_the_controller_do_not_grow() {
    check("with the rights of the controller", false).await;
}

/// Measures the workload and compares with the counts that were recorded under this name.
async fn check(name: &str, accounts: bool) {
    let file = directory().join(format!("{}.json", name.replace(' ', "-")));
    if env::var_os(RECORD).is_some() {
        let mut measurements = Vec::new();
        for _ in 0..RECORDED {
            measurements.push(counts(accounts).await.0);
        }
        let text = serde_json::to_string_pretty(&median(&measurements)).expect("JSON");
        fs::write(&file, text + "\n").expect("the file can be written");
        return;
    }
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let expected: Expected = serde_json::from_str(&text).expect("recorded counts");
    let mut fewest: Option<Vec<String>> = None;
    for _ in 0..ATTEMPTS {
        let (found, embedded) = counts(accounts).await;
        // The counts were recorded on the embedded server. Another one needs more time for some steps, so that more of what
        // happens in between is reported.
        let differences = if embedded {
            differences(&expected, &found, u64::try_from(BUNDLES).expect("a small number"))
        } else {
            large_totals(&expected, &found)
        };
        if differences.is_empty() {
            return;
        }
        if fewest.as_ref().is_none_or(|fewest| differences.len() < fewest.len()) {
            fewest = Some(differences);
        }
    }
    panic!(
        "The requests for {BUNDLES} bundles {name} changed by more than a tenth and two, in each of {ATTEMPTS} measurements:\n  {}\n\
         If that is intended, record the new counts: {RECORD}=1 cargo test --workspace --test e2e request_counts",
        fewest.unwrap_or_default().join("\n  ")
    );
}

/// The steps that took more than one and a half times the recorded requests.
fn large_totals(expected: &Expected, found: &Expected) -> Vec<String> {
    let total = |all: &Expected, step: &String| all.get(step).map_or(0, |counts| counts.values().sum::<u64>());
    let steps = found.keys().map(|step| (step, total(expected, step), total(found, step)));
    let large = steps.filter(|(_, expected, found)| found * 2 > expected * 3);
    large.map(|(step, expected, found)| format!("{step}: all requests grew from {expected} to {found}")).collect()
}

/// Measures the workload once. Returns whether it ran on the embedded server.
async fn counts(accounts: bool) -> (Expected, bool) {
    let cluster = Cluster::acquire().await;
    let embedded = cluster.is_embedded();
    let world = World::without_controller(cluster).await;
    let steps = measure(&world, Workload { bundles: BUNDLES, accounts }).await;
    world.finish().await;
    (recorded(&steps), embedded)
}

/// The median of each count.
fn median(measurements: &[Expected]) -> Expected {
    let steps: BTreeSet<&String> = measurements.iter().flat_map(Expected::keys).collect();
    let of_step = |step: &String| {
        let kinds = measurements.iter().filter_map(|all| all.get(step)).flat_map(|counts| counts.keys());
        let kinds: BTreeSet<&String> = kinds.collect();
        let counts = kinds.into_iter().map(|kind| {
            let count = |all: &Expected| all.get(step).and_then(|counts| counts.get(kind)).copied().unwrap_or_default();
            let mut counts: Vec<u64> = measurements.iter().map(count).collect();
            counts.sort_unstable();
            (kind.clone(), counts[counts.len() / 2])
        });
        counts.filter(|(_, count)| *count > 0).collect()
    };
    steps.into_iter().map(|step| (step.clone(), of_step(step))).collect()
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/request_counts")
}
