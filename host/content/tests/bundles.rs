//! Real bundles, from a directory into the cache, into a registry and back.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{collections::BTreeMap, fs, path::PathBuf};

use chandler_content::{ImageAccess, ImageOptions, Images, Limits, Store};
use chandler_core::Content;
use chandler_devregistry::{Options, Registry};
use chandler_test_support::needs::fixture;

/// The directories that hold bundles, if the fixtures are there.
fn bundles() -> Vec<PathBuf> {
    let Some(fixtures) = fixture("") else { return Vec::new() };
    let mut found: Vec<PathBuf> = ["plain", "registry", "corpus/bundles"]
        .iter()
        .flat_map(|group| fs::read_dir(fixtures.join(group)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{} holds no bundles", fixtures.display());
    found
}

#[tokio::test]
async fn real_bundles_come_back_as_they_were() {
    let bundles = bundles();
    let directory = tempfile::tempdir().unwrap();
    let registry = Registry::start(Options::default()).await.unwrap();
    let sources = Store::open(&directory.path().join("sources"), Limits::default()).unwrap();
    let store = Store::open(&directory.path().join("images"), Limits::default()).unwrap();
    let images = Images::new(store, ImageOptions::default());
    let access = ImageAccess::default();
    for bundle in bundles {
        let source = sources.import_directory(&bundle).await.unwrap();
        let pushed = registry.push_bundle_directory("bundle", "latest", &bundle, &BTreeMap::new()).await.unwrap();
        let image = images.resolve(&pushed.reference.parse().unwrap(), &access).await.unwrap();
        let tree = images.fetch(&image, &access).await.unwrap();
        assert_eq!(tree.digest(), source.digest(), "{}", bundle.display());
        for entry in tree.entries("", None, usize::MAX) {
            assert_eq!(tree.read_all(&entry.path).unwrap(), fs::read(bundle.join(&entry.path)).unwrap());
        }
    }
}
