use std::collections::BTreeSet;

use chandler_core::{Content, MemoryContent};
use chandler_test_support::needs::fixture;
use proptest::prelude::*;

use super::*;
use crate::{CatalogError, Directory, Item, Limits, Meta, read};

/// Sorts on the disk as soon as it can.
fn limits() -> Limits {
    Limits { sort_bytes: 300, ..Limits::default() }
}

fn index(content: &dyn Content) -> Index {
    let directory = tempfile::tempdir().unwrap();
    Indexes::open(directory.path().join("indexes")).unwrap().get_or_build(content, &limits()).unwrap()
}

fn metas(content: &dyn Content) -> Vec<Meta> {
    let mut metas = Vec::new();
    read(content, &Limits::default(), |item| {
        if let Item::Meta(meta) = item {
            metas.push(*meta);
        }
        Ok::<_, CatalogError>(())
    })
    .unwrap();
    metas
}

const CATALOG: &str = "\
schema: olm.package
name: b
defaultChannel: stable
icon: {base64data: eA==, mediatype: image/png}
---
schema: olm.bundle
package: b
name: b.v1
image: i
properties:
- {type: olm.gvk, value: {group: g.example.com, kind: K, version: v1}}
- {type: olm.bundle.object, value: {data: eA==}}
---
schema: custom
package: b
name: b.v1
x: {z: 1, a: [yes, 0644]}
---
schema: olm.channel
package: b
name: stable
entries: [{name: b.v1}]
---
schema: custom
y: 1
";

fn sample() -> MemoryContent {
    let other = r#"{"schema": "olm.bundle", "package": "a", "name": "b.v1", "properties": [
        {"type": "olm.gvk", "value": {"group": "g.example.com", "kind": "K", "version": "v2"}}]}"#;
    MemoryContent::new([("b.yaml", CATALOG), ("a/x.json", other)])
}

#[test]
fn a_package_is_read_alone() {
    let content = sample();
    let index = index(&content);
    let packages: Vec<_> = index.packages().map(|it| it.map(|it| (it.name, it.documents)).unwrap()).collect();
    assert_eq!(packages, [("a".to_owned(), 1), ("b".to_owned(), 4)]);
    let b = index.package("b").unwrap().unwrap();
    assert!(b.packages[0].value.has_icon);
    assert_eq!(b.channels, index.channels("b").unwrap());
    assert_eq!(b.bundles, index.bundles("b").unwrap());
    assert_eq!((b.bundles.len(), b.channels.len(), b.others.len()), (1, 1, 1));
    assert_eq!(b.bundles[0].span.place.to_string(), "b.yaml:6");
    assert_eq!(b.channels[0].value.entries[0].line, 22);
    for missing in ["", "c", "b\0olm.bundle", "\u{ff}"] {
        assert_eq!(index.package(missing).unwrap(), None, "{missing:?}");
    }
    let global: Vec<_> = index.without_package().map(|it| it.unwrap().span.place.line).collect();
    assert_eq!(global, [24]);
}

#[test]
fn what_stays_in_the_files_is_read_on_demand() {
    let content = sample();
    let index = index(&content);
    let records = index.find("b", "custom", "b.v1").unwrap();
    let span = &records[0].span;
    assert_eq!(span.raw(&content).unwrap(), b"schema: custom\npackage: b\nname: b.v1\nx: {z: 1, a: [yes, 0644]}\n");
    let json = span.json(&content, &limits()).unwrap();
    assert_eq!(json, br#"{"name":"b.v1","package":"b","schema":"custom","x":{"a":[true,420],"z":1}}"#);
    let other = MemoryContent::new([("b.yaml", "short")]);
    assert!(matches!(span.raw(&other), Err(RawError::Moved(_))));
    assert!(matches!(span.raw(&MemoryContent::new([("c", "")])), Err(RawError::Content(_))));
}

#[test]
fn providers_of_a_kind_are_found() {
    let index = index(&sample());
    let found = |version| -> Vec<_> {
        let providers = index.providers("g.example.com", "K", version).unwrap();
        providers.into_iter().map(|it| format!("{} {} {}", it.version, it.package, it.bundle)).collect()
    };
    assert_eq!(found(None), ["v1 b b.v1", "v2 a b.v1"]);
    assert_eq!(found(Some("v2")), ["v2 a b.v1"]);
    assert_eq!(found(Some("v")), [""; 0]);
    assert_eq!(index.providers("g.example.com", "", None).unwrap(), []);
}

#[test]
fn queries_answer_in_the_order_of_the_files() {
    let index = index(&sample());
    let find = |schema, package, name| -> Vec<_> {
        let metas = index.metas(Query { schema, package, name }).unwrap();
        metas.map(|it| it.unwrap().span.place.to_string()).collect()
    };
    assert_eq!(find(None, None, None), ["a/x.json:1", "b.yaml:1", "b.yaml:6", "b.yaml:14", "b.yaml:19", "b.yaml:24"]);
    assert_eq!(find(Some("custom"), None, None), ["b.yaml:14", "b.yaml:24"]);
    // As catalogd answers: the blob of the package names no package.
    assert_eq!(find(None, Some("b"), None), ["b.yaml:6", "b.yaml:14", "b.yaml:19"]);
    assert_eq!(find(Some("olm.bundle"), None, Some("b.v1")), ["a/x.json:1", "b.yaml:6"]);
    assert_eq!(find(None, Some(""), None), ["b.yaml:1", "b.yaml:24"]);
}

#[test]
fn the_catalogs_of_the_seeds_are_indexed() {
    let Some(catalogs) = fixture("catalogs") else { return };
    let content = Directory::open(catalogs, 100).unwrap();
    let index = index(&content);
    let names: Vec<_> = index.packages().map(|it| it.unwrap().name).collect();
    assert_eq!(names, ["combo", "test-package"]);
    assert_eq!(index.providers("combo.io", "Template", Some("v1alpha1")).unwrap()[0].bundle, "combo.v0.0.1");
}

#[test]
fn an_empty_catalog_has_an_index() {
    let index = index(&MemoryContent::new([("a.yaml", "")]));
    assert!(index.is_empty());
    assert_eq!(index.packages().count(), 0);
    assert_eq!(index.metas(Query::default()).unwrap().count(), 0);
}

/// A few names, so that documents share them.
fn catalog() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["", "a", "b", "ab", "a.v1", "\u{e4}"]);
    let schema = prop::sample::select(vec!["olm.package", "olm.channel", "olm.bundle", "olm.deprecations", "x", "olm"]);
    let document = (schema, name(), name(), name()).prop_map(|(schema, package, name, kind)| {
        let package = if schema == "olm.package" { "" } else { package };
        serde_json::json!({"schema": schema, "package": package, "name": name,
            "properties": [{"type": "olm.gvk", "value": {"group": "g", "kind": kind, "version": name}}]})
        .to_string()
    });
    prop::collection::vec(document, 0..20).prop_map(|documents| documents.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is asked, the index answers what a search of all documents answers.
    #[test]
    fn lookups_equal_a_linear_search(text in catalog()) {
        let content = MemoryContent::new([("a.json", text)]);
        let metas = metas(&content);
        let index = index(&content);
        prop_assert_eq!(index.len(), metas.len() as u64);
        let some = |parts: BTreeSet<String>| -> Vec<Option<String>> {
            parts.into_iter().map(Some).chain([None, Some("?".to_owned())]).collect()
        };
        let schemas = some(metas.iter().map(|it| it.schema.clone()).collect());
        let packages = some(metas.iter().map(|it| it.package.clone()).collect());
        let names = some(metas.iter().map(|it| it.name.clone()).collect());
        for schema in &schemas {
            for package in &packages {
                for name in &names {
                    let query = Query { schema: schema.as_deref(), package: package.as_deref(), name: name.as_deref() };
                    let found: Vec<_> = index.metas(query).unwrap().map(|it| it.unwrap().span).collect();
                    let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|it| it == value);
                    let expected: Vec<_> = metas.iter()
                        .filter(|it| is(schema, &it.schema) && is(package, &it.package) && is(name, &it.name))
                        .map(|it| it.span.clone()).collect();
                    prop_assert_eq!(found, expected, "{:?}", query);
                    if let (Some(schema), Some(package), Some(name)) = (schema, package, name) {
                        let found = index.find(package, schema, name).unwrap().into_iter().map(|it| it.span).collect::<Vec<_>>();
                        let expected: Vec<_> = metas.iter()
                            .filter(|it| it.schema == *schema && it.owner() == package && it.name == *name)
                            .map(|it| it.span.clone()).collect();
                        prop_assert_eq!(found, expected, "{:?}", query);
                    }
                }
            }
        }
        let owners: BTreeSet<&str> = metas.iter().map(Meta::owner).filter(|owner| !owner.is_empty()).collect();
        let listed: Vec<_> = index.packages().map(|it| it.unwrap().name).collect();
        prop_assert_eq!(listed, owners.into_iter().map(str::to_owned).collect::<Vec<_>>());
        for kind in ["", "a", "b", "ab", "a.v1", "\u{e4}"] {
            let found = index.providers("g", kind, None).unwrap();
            let expected = metas.iter().filter(|meta| matches!(&meta.blob, crate::Blob::Bundle(it) if it.provides().any(|gvk| gvk.kind == kind)));
            prop_assert_eq!(found.len(), expected.count());
        }
    }
}
