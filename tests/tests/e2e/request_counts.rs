//! The requests of the controller to the API server, by verb and resource, do not grow.

use std::{env, fs, path::PathBuf};

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
    let world = World::without_controller(Cluster::acquire().await).await;
    let steps = measure(&world, Workload { bundles: BUNDLES, accounts }).await;
    world.finish().await;
    let found = recorded(&steps);
    let file = directory().join(format!("{}.json", name.replace(' ', "-")));
    if env::var_os(RECORD).is_some() {
        let text = serde_json::to_string_pretty(&found).expect("JSON");
        fs::write(&file, text + "\n").expect("the file can be written");
        return;
    }
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let expected: Expected = serde_json::from_str(&text).expect("recorded counts");
    let differences = differences(&expected, &found);
    assert!(
        differences.is_empty(),
        "The requests for {BUNDLES} bundles {name} changed by more than a tenth and two:\n  {}\n\
         If that is intended, record the new counts: {RECORD}=1 cargo test --workspace --test e2e request_counts",
        differences.join("\n  ")
    );
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/request_counts")
}
