//! A sample of the oracle: public charts, and what Helm renders from them, object by object.
//!
//! `cargo run --release -p chandler-helm --example oracle` compares all of them.

#![expect(clippy::unwrap_used, reason = "test helpers may panic, too")]

mod pairs;

use std::{
    path::Path,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use chandler_test_support::needs;
use pairs::{Class, Pair, Provisioned};

/// One pair of so many is compared.
const SAMPLE: u64 = 16;

/// The pairs of the sample that differ, and how. The list may not grow; a pair that is equal now leaves it.
const KNOWN: [(&str, Class); 0] = [];

/// Whether the sample contains a pair: its name decides, so that further pairs do not move it.
fn is_in_sample(pair: &Pair) -> bool {
    // FNV-1a.
    let hash = pair
        .id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    (hash >> 32).is_multiple_of(SAMPLE)
}

fn unpack(archive: &Path, to: &Path) {
    let status = Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(to).status().unwrap();
    assert!(status.success(), "tar cannot unpack {}", archive.display());
}

/// The pairs that differ, with how and where.
fn different(pairs: &[Pair], folder: &Path) -> Vec<(String, Class, String)> {
    let capabilities = pairs::capabilities(folder);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let compared = pairs::compare(pair, &capabilities);
            if !matches!(compared.class, Class::Equal | Class::SameError | Class::SamePlace) {
                found.push((pair.id.clone(), compared.class, compared.detail));
            }
        }
        found
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let mut found: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    found.sort();
    found
}

#[test]
fn charts_render_as_helm_renders_them() {
    let Some(archive) = needs::fixture("helm/dev.tar.xz") else { return };
    if !needs::xz() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    unpack(&archive, folder.path());
    let sample: Vec<Pair> = pairs::pairs(folder.path()).into_iter().filter(is_in_sample).collect();
    assert!(sample.len() > 50, "only {} pairs are in the sample", sample.len());
    let found = different(&sample, folder.path());
    let classes: Vec<(&str, Class)> = found.iter().map(|(id, class, _)| (id.as_str(), *class)).collect();
    let details: Vec<String> = found.iter().map(|(id, class, detail)| format!("{class:?} {id}\n  {detail}")).collect();
    assert_eq!(classes, KNOWN, "of {} pairs:\n{}", sample.len(), details.join("\n"));
}

/// Charts that generate values are provisioned with requests for them, or refused with what is needed: no placeholder is installed.
#[test]
fn charts_that_generate_values_are_provisioned_or_refused_by_name() {
    let Some(archive) = needs::fixture("helm/dev.tar.xz") else { return };
    if !needs::xz() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    unpack(&archive, folder.path());
    let (mut requesting, mut failures) = (0, Vec::new());
    for pair in pairs::pairs(folder.path()).iter().filter(|pair| is_in_sample(pair)) {
        match pairs::provision(pair) {
            None => {}
            Some(Provisioned::Objects(objects, requests)) => {
                requesting += usize::from(requests);
                if objects.iter().any(|object| object.contains("Chgen")) {
                    failures.push(format!("{}: a placeholder is left", pair.id));
                }
            }
            Some(Provisioned::Refused(why))
                if ["the result of ", "is not available", "a generated value"]
                    .iter()
                    .any(|known| why.contains(known)) => {}
            // Helm renders an object without a name, which no cluster takes.
            Some(Provisioned::Failed(why)) if why.contains("has no metadata.name") => {}
            Some(other) => failures.push(format!("{}: {other:?}", pair.id)),
        }
    }
    assert_eq!(failures, Vec::<String>::new());
    assert!(requesting > 0, "no chart of the sample generates a value");
}
