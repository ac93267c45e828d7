//! Bundles that a catalog has and does not offer.

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use std::sync::Arc;

use chandler_catalog::{IndexCatalogs, Indexes, Limits};
use chandler_core::MemoryContent;
use chandler_resolver::{Answer, Problem, Required, Source, resolve};

/// The answer for a package whose only bundle has this image, package and version.
fn answer(image: &str, package: &str, version: &str) -> Answer {
    let documents = serde_json::json!([
        {"schema": "olm.package", "name": "harbour", "defaultChannel": "s"},
        {"schema": "olm.channel", "package": "harbour", "name": "s", "entries": [{"name": "harbour.v1.0.0"}]},
        {"schema": "olm.bundle", "package": "harbour", "name": "harbour.v1.0.0", "image": image,
         "properties": [{"type": "olm.package", "value": {"packageName": package, "version": version}}]},
    ]);
    let text = documents.as_array().unwrap().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let index = indexes.get_or_build(&MemoryContent::new([("catalog.json", text)]), &Limits::default()).unwrap();
    let source = Source { name: "evil".to_owned(), ..Source::default() };
    let catalogs = IndexCatalogs::new().with(source.clone(), Arc::new(index));
    let required = vec![Required { package: "harbour".to_owned(), ..Required::default() }];
    resolve(&Problem { required, catalogs: vec![source], ..Problem::default() }, &catalogs).unwrap()
}

#[test]
fn a_bundle_whose_image_is_no_reference_is_not_offered() {
    let decision = answer("quay.io/example/harbour:v1.0.0", "harbour", "1.0.0");
    assert!(decision.decision().is_some(), "{decision:?}");
    // Every one of these is, or could be, a file of the machine that installs it, or text that forges a message.
    for image in [
        "/tmp/victim",
        "./victim",
        "~/.ssh",
        "git+https://example.com/a.git?branch=a",
        "https://e.com/a.tgz",
        "x y\nerror: forged",
    ] {
        let refused = answer(image, "harbour", "1.0.0");
        let refusal = refused.refusal().unwrap_or_else(|| unreachable!("{image}: {refused:?}"));
        let said = format!("{} {:?}", refusal.message, refusal.near_misses);
        assert!(said.contains("is malformed: its image is not an image reference"), "{image}: {said}");
        assert!(!said.contains(image), "{said}");
    }
}

#[test]
fn a_bundle_without_a_version_is_named_with_what_is_wrong() {
    for (package, version, fault) in [
        ("harbour", "v1", "olm.package: \"v1\" is not a semantic version"),
        ("quay", "1.0.0", "olm.package: it names package \"quay\""),
    ] {
        let refused = answer("quay.io/example/harbour:v1.0.0", package, version);
        let misses = refused.refusal().map(|refusal| refusal.near_misses.join("\n")).unwrap_or_default();
        let expected = format!("catalog evil has bundle harbour.v1.0.0 of harbour, which is malformed: {fault}");
        assert!(misses.starts_with(&expected) && !misses.contains("0.0.0 in"), "{misses}");
    }
}
