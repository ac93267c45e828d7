//! The fields that the specifications require, and that the references within a document are complete.

use std::{collections::BTreeSet, io::Read as _};

use super::*;
use crate::dist::{crates::tests::small, time::tests::of_test};

fn subject(hash: &str) -> Subject<'_> {
    Subject { hash, rustc: "rustc 1.95.0 (59807616e 2026-04-14)", glibc: Some("2.36"), time: of_test() }
}

/// The texts at a member of each element of a list.
fn texts<'a>(list: &'a Value, member: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|element| element[member].as_str().unwrap()).collect()
}

#[test]
fn cyclonedx_has_each_crate_once_and_resolves_every_dependency() {
    let hash = "cd".repeat(32);
    let bom = cyclonedx(&small(), &subject(&hash)).unwrap();
    assert_eq!(
        (&bom["bomFormat"], &bom["specVersion"], &bom["version"]),
        (&json!("CycloneDX"), &json!("1.6"), &json!(1))
    );
    // The pattern of the schema.
    let serial = bom["serialNumber"].as_str().unwrap();
    let pattern = "^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
    assert!(regex::Regex::new(pattern).unwrap().is_match(serial), "{serial}");
    let command = &bom["metadata"]["component"];
    assert_eq!((&command["type"], &command["name"]), (&json!("application"), &json!("chandler")));
    assert_eq!(command["hashes"][0], json!({"alg": "SHA-256", "content": hash}));
    let names = texts(&bom["components"], "name");
    assert_eq!(names, ["bytes", "log", "macros", "rust-std", "glibc"]);
    assert_eq!(texts(&bom["components"], "scope"), ["required", "required", "excluded", "required", "required"]);
    let log = &bom["components"][1];
    assert_eq!(log["purl"], "pkg:cargo/log@0.4.1");
    assert_eq!(log["licenses"], json!([{"expression": "MIT OR Apache-2.0"}]));
    assert_eq!(bom["components"][4]["version"], "2.36");

    let mut known: BTreeSet<&str> = texts(&bom["components"], "bom-ref").into_iter().collect();
    assert_eq!(known.len(), names.len());
    known.insert(command["bom-ref"].as_str().unwrap());
    for dependency in bom["dependencies"].as_array().unwrap() {
        assert!(known.contains(dependency["ref"].as_str().unwrap()), "{dependency}");
        for on in dependency["dependsOn"].as_array().unwrap() {
            assert!(known.contains(on.as_str().unwrap()), "{dependency}");
        }
    }
}

#[test]
fn spdx_has_the_required_fields_and_resolves_every_relationship() {
    let hash = "cd".repeat(32);
    let document = spdx(&small(), &subject(&hash)).unwrap();
    for (member, expected) in [
        ("spdxVersion", "SPDX-2.3"),
        ("dataLicense", "CC0-1.0"),
        ("SPDXID", "SPDXRef-DOCUMENT"),
        ("name", "chandler-0.1.0"),
    ] {
        assert_eq!(document[member], expected);
    }
    assert!(document["documentNamespace"].as_str().unwrap().starts_with("https://"));
    assert_eq!(document["creationInfo"]["created"], "1970-01-02T00:00:00Z");
    assert!(document["creationInfo"]["creators"][0].as_str().unwrap().starts_with("Tool: "));
    let packages = document["packages"].as_array().unwrap();
    for package in packages {
        for member in
            ["name", "versionInfo", "downloadLocation", "licenseDeclared", "licenseConcluded", "copyrightText"]
        {
            assert!(package[member].is_string(), "{member} of {package}");
        }
        assert_eq!(package["filesAnalyzed"], false);
    }
    let mut known: BTreeSet<&str> = texts(&document["packages"], "SPDXID").into_iter().collect();
    assert_eq!(known.len(), packages.len());
    let pattern = regex::Regex::new("^SPDXRef-[a-zA-Z0-9.-]+$").unwrap();
    assert!(known.iter().all(|identifier| pattern.is_match(identifier)), "{known:?}");
    known.insert("SPDXRef-DOCUMENT");
    let relationships = document["relationships"].as_array().unwrap();
    for relationship in relationships {
        for member in ["spdxElementId", "relatedSpdxElement"] {
            assert!(known.contains(relationship[member].as_str().unwrap()), "{relationship}");
        }
    }
    let expected = json!({
        "spdxElementId": "SPDXRef-macros-2.0.0", "relationshipType": "BUILD_DEPENDENCY_OF", "relatedSpdxElement": "SPDXRef-chandler-0.1.0",
    });
    assert!(relationships.contains(&expected), "{relationships:?}");
}

#[test]
fn the_list_in_the_binary_is_what_cargo_auditable_writes() {
    let list = auditable(&small()).unwrap();
    let mut text = String::new();
    flate2::read::ZlibDecoder::new(list.as_slice()).read_to_string(&mut text).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(texts(&list["packages"], "name"), ["bytes", "chandler", "log", "macros"]);
    let expected =
        json!({"name": "chandler", "version": "0.1.0", "source": "local", "dependencies": [0, 2, 3], "root": true});
    assert_eq!(list["packages"][1], expected);
    assert_eq!(list["packages"][3]["kind"], "build");
}

#[test]
fn the_same_binary_has_the_same_documents() {
    let (one, other) = ("cd".repeat(32), "ef".repeat(32));
    let serial = |hash: &str| cyclonedx(&small(), &subject(hash)).unwrap()["serialNumber"].clone();
    assert_eq!(serial(&one), serial(&one));
    assert_ne!(serial(&one), serial(&other));
}
