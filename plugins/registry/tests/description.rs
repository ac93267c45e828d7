//! The description of a bundle for the status and for dependency resolvers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use chandler_sdk::{Description, testing::Recorder};
use serde_json::json;

use crate::support::small::{CRD, Small};

/// The description and its properties, one per line.
fn describe(release: &Recorder) -> String {
    let Description { name, package, version, properties } = &release.description;
    let mut lines = vec![format!("{name:?} {package:?} {version:?}")];
    lines.extend(properties.iter().map(|property| format!("{} {}", property.kind, property.value)));
    lines.join("\n")
}

#[test]
fn a_bundle_is_described_as_in_catalogs() {
    let properties = "properties:\n\
                      - {type: olm.gvk, value: {group: example.com, version: v1, kind: Berth}}\n\
                      - {type: olm.package.required, value: {packageName: quay, versionRange: '>=1.0.0'}}\n\
                      - {type: someone.elses, value: 1}\n";
    let dependencies = "dependencies:\n\
                        - {type: olm.package, value: {packageName: keycloak-operator, version: '>24.0.0'}}\n\
                        - {type: olm.gvk, value: {group: y.io, version: v1, kind: Yard}}\n\
                        - {type: olm.constraint, value: {failureMessage: needs a moon, cel: {rule: 'true'}}}\n\
                        - {type: olm.constraint, value: {some: {}}}\n";
    let mut small = Small::new(&["AllNamespaces"])
        .file("manifests/crd.yaml", &CRD.replace("JSONPath", "jsonPath"))
        .file("metadata/properties.yaml", properties)
        .file("metadata/dependencies.yaml", dependencies);
    small.csv["metadata"]["annotations"]["olm.properties"] =
        json!("[{\"type\": \"olm.maxOpenShiftVersion\", \"value\": \"4.12\"}]");
    small.csv["spec"]["version"] = json!("1.2.3");
    small.csv["spec"]["customresourcedefinitions"] = json!({
        "owned": [{"name": "berths.example.com", "kind": "Berth", "version": "v1"}],
        "required": [{"name": "certificates.cert-manager.io", "kind": "Certificate", "version": "v1"}],
    });
    let release = small.render(&json!({})).unwrap();
    insta::assert_snapshot!(describe(&release), @r#"
    Some("op.v1") Some("op") Some("1.2.3")
    olm.package {"packageName":"op","version":"1.2.3"}
    olm.maxOpenShiftVersion "4.12"
    olm.package.required {"packageName":"quay","versionRange":">=1.0.0"}
    olm.package.required {"packageName":"keycloak-operator","versionRange":">24.0.0"}
    olm.gvk.required {"group":"y.io","kind":"Yard","version":"v1"}
    olm.gvk.required {"group":"cert-manager.io","kind":"Certificate","version":"v1"}
    olm.constraint {"cel":{"rule":"true"},"failureMessage":"needs a moon"}
    olm.constraint {"some":{}}
    olm.gvk {"group":"example.com","kind":"Berth","version":"v1"}
    someone.elses 1
    "#);
}

#[test]
fn a_package_property_of_the_bundle_wins() {
    let stated = "properties: [{type: olm.package, value: {packageName: other, version: 2.0.0}}]\n";
    let mut small = Small::new(&["AllNamespaces"]).file("metadata/properties.yaml", stated);
    small.csv["spec"]["version"] = json!("1.2.3");
    insta::assert_snapshot!(describe(&small.render(&json!({})).unwrap()), @r#"
    Some("op.v1") Some("op") Some("1.2.3")
    olm.package {"packageName":"other","version":"2.0.0"}
    "#);
    // A bundle without a version is described without one.
    let small = Small::new(&["AllNamespaces"]);
    insta::assert_snapshot!(describe(&small.render(&json!({})).unwrap()), @r#"Some("op.v1") Some("op") None"#);
}
