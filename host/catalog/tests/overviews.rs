//! What people see of catalogs, and how two of them differ.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that cannot continue panics")]

use std::sync::Arc;

use chandler_catalog::{Index, Indexes, Limits, difference, overview, upgrade};
use chandler_core::MemoryContent;
use chandler_resolver::Installed;

const BEFORE: &str = "
schema: olm.package
name: shop
defaultChannel: stable
description: Sells things
---
schema: olm.channel
package: shop
name: stable
entries:
- name: shop.v1.0.0
- name: shop.v1.1.0
  replaces: shop.v1.0.0
---
schema: olm.bundle
package: shop
name: shop.v1.0.0
image: example.com/shop:1.0.0
properties:
- {type: olm.package, value: {packageName: shop, version: 1.0.0}}
---
schema: olm.bundle
package: shop
name: shop.v1.1.0
image: example.com/shop:1.1.0
properties:
- {type: olm.package, value: {packageName: shop, version: 1.1.0}}
- {type: olm.gvk, value: {group: example.com, version: v1, kind: Shop}}
- {type: olm.package.required, value: {packageName: database, versionRange: '>=2.0.0'}}
- type: olm.csv.metadata
  value:
    displayName: The Shop
    annotations: {description: Sells everything}
    provider: {name: Example}
    keywords: [retail]
    minKubeVersion: 1.30.0
";

const AFTER: &str = "
---
schema: olm.channel
package: shop
name: edge
entries:
- name: shop.v2.0.0
  skipRange: '>=1.0.0 <2.0.0'
- name: shop.v1.1.0
---
schema: olm.bundle
package: shop
name: shop.v2.0.0
image: example.com/shop:2.0.0
properties:
- {type: olm.package, value: {packageName: shop, version: 2.0.0}}
---
schema: olm.deprecations
package: shop
entries:
- {reference: {schema: olm.bundle, name: shop.v1.0.0}, message: too old}
---
schema: olm.package
name: new
";

fn index(text: &str) -> Arc<Index> {
    let directory = tempfile::tempdir().unwrap();
    let indexes = Indexes::open(directory.path().join("indexes")).unwrap();
    let content = MemoryContent::new([("catalog.yaml", text)]);
    Arc::new(indexes.get_or_build(&content, &Limits::default()).unwrap())
}

#[test]
fn an_overview_has_what_people_look_for() {
    let index = index(&(BEFORE.to_owned() + AFTER));
    let overview = overview::package("c", "shop", &index).unwrap().unwrap();
    insta::assert_json_snapshot!(overview);
    for text in ["everything", "RETAIL", "the shop", "things", "example"] {
        assert!(overview.mentions(text), "{text}");
    }
    assert!(!overview.mentions("database"));
    assert_eq!(overview::package("c", "absent", &index).unwrap(), None);
    assert_eq!(overview::packages("c", &index).unwrap().len(), 2);
}

#[test]
fn a_difference_names_what_changed() {
    let (before, after) = (index(BEFORE), index(&(BEFORE.replace("shop:1.1.0", "shop:1.1.0-rebuilt") + AFTER)));
    assert_eq!(difference::of(&before, &before).unwrap(), []);
    insta::assert_json_snapshot!(difference::of(&before, &after).unwrap());
    // Different lines do not count.
    let moved = index(&format!("# a comment\n{BEFORE}"));
    assert_eq!(difference::of(&before, &moved).unwrap(), []);
}

#[test]
fn the_next_bundle_is_that_of_the_first_step() {
    // With one head in each channel.
    let index = index(&(BEFORE.to_owned() + &AFTER.replace("\n- name: shop.v1.1.0\n", "\n")));
    let next = |version: &str, channels: &[&str]| {
        let installed = Installed {
            package: "shop".to_owned(),
            name: format!("shop.v{version}"),
            version: version.to_owned(),
            ..Installed::default()
        };
        let channels: Vec<String> = channels.iter().map(|&channel| channel.to_owned()).collect();
        upgrade::next(&index, installed, &channels).unwrap()
    };
    assert_eq!(next("1.0.0", &[]).as_deref(), Some("shop.v1.1.0"));
    assert_eq!(next("1.0.0", &["edge"]).as_deref(), Some("shop.v2.0.0"));
    assert_eq!(next("1.1.0", &["stable"]), None);
}
