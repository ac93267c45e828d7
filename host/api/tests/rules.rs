//! What the CEL rules accept and refuse.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail by panicking")]

use chandler_api::crds;
use kube_cel::Validator;
use serde_json::{Value, json};

const REF: &str = "spec.source.git.ref: exactly one of branch, tag, commit, semver must be set";
const DIRECTORY: &str = "spec.source.git.directory: directory must define a path within the repository";
const PATH: &str = "spec.source.configMaps[0].path: path is outside the bundle root";
const ONE: &str = "spec.source: exactly one of image, git, configMaps, http, upload must be set";

/// What the rules have against a source.
fn refusals(source: &Value) -> Vec<String> {
    let crd = serde_json::to_value(&crds()[0]).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let object = json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "x"},
        "spec": {"installNamespace": "n", "provisionerClassName": "p", "source": source}
    });
    match Validator::new().validate(schema, &object, None) {
        Ok(()) => Vec::new(),
        Err(errors) => {
            errors.into_vec().into_iter().map(|error| format!("{}: {}", error.field_path, error.message)).collect()
        }
    }
}

#[test]
fn a_source_has_the_field_of_its_type_and_paths_stay_inside_the_bundle() {
    let image = json!({"ref": "a:b"});
    let git = |reference: Value| json!({"type": "git", "git": {"repository": "u", "ref": reference}});
    let chart = |fields: Value| {
        let mut repository = json!({"url": "u", "chart": "c"});
        repository.as_object_mut().unwrap().extend(fields.as_object().cloned().unwrap());
        json!({"type": "http", "http": repository})
    };
    let directory =
        |path: &str| json!({"type": "git", "git": {"repository": "u", "ref": {"tag": "t"}, "directory": path}});
    let config_map =
        |path: &str| json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "c"}, "path": path}]});
    for accepted in [
        json!({"type": "image", "image": image}),
        json!({"type": "http", "http": {"url": "u"}}),
        json!({"type": "configMaps", "configMaps": [{"configMap": {"name": "c"}}]}),
        chart(json!({})),
        chart(json!({"version": "1.2.3", "sha256": "0".repeat(64)})),
        git(json!({"branch": "b"})),
        directory("a/b"),
        directory("./a"),
        directory("..a/b..c"),
        config_map("manifests"),
    ] {
        assert_eq!(refusals(&accepted), [""; 0], "{accepted}");
    }
    for (refused, messages) in [
        (git(json!({})), vec![REF]),
        (git(json!({"branch": "b", "commit": "c"})), vec![REF]),
        (directory("../a"), vec![DIRECTORY]),
        (directory(".."), vec![DIRECTORY]),
        (directory("a/../../b"), vec![DIRECTORY]),
        (directory("/a"), vec![DIRECTORY]),
        (config_map("a/.."), vec![PATH]),
        (config_map("/etc"), vec![PATH]),
        (json!({"type": "image"}), vec![ONE, "spec.source: image must be set for source type \"image\""]),
        (json!({"type": "image", "image": image, "http": {"url": "u"}}), vec![ONE]),
        (json!({"type": "http", "image": image}), vec!["spec.source: http must be set for source type \"http\""]),
        (
            json!({"type": "ftp", "image": image}),
            vec!["spec.source: type must be one of image, git, configMaps, http, upload"],
        ),
    ] {
        assert_eq!(refusals(&refused), messages, "{refused}");
    }
}

#[test]
fn a_policy_for_signatures_demands_something_that_is_possible() {
    let with = |verification: Value| json!({"type": "image", "image": {"ref": "a:b", "verification": verification}});
    let (action, key) = (json!({"githubAction": {"owner": "o"}}), json!({"publicKey": {"key": "k"}}));
    let both = json!({"githubAction": {"owner": "o"}, "publicKey": {"key": "k"}});
    let one_signer = |path: &str| {
        format!("spec.source.image.verification.{path}: exactly one of publicKey, keyless, githubAction must be set")
    };
    for accepted in [
        json!({"allOf": [action, key]}),
        json!({"anyOf": {"minimumMatches": 2, "signers": [action, key]}}),
        json!({"allOf": [key], "anyOf": {"minimumMatches": 1, "signers": [action]}}),
        json!({"anyOf": {"signers": [key]}}),
    ] {
        assert_eq!(refusals(&with(accepted.clone())), [""; 0], "{accepted}");
    }
    let nothing = "spec.source.image.verification: at least one of allOf, anyOf must be set".to_owned();
    let too_many = "spec.source.image.verification.anyOf: minimumMatches must not be more than the number of signers";
    for (refused, message) in [
        (json!({}), nothing.clone()),
        (json!({"allOf": []}), nothing),
        (json!({"allOf": [{}]}), one_signer("allOf[0]")),
        (json!({"allOf": [key, both]}), one_signer("allOf[1]")),
        (json!({"anyOf": {"minimumMatches": 1, "signers": [both]}}), one_signer("anyOf.signers[0]")),
        (json!({"anyOf": {"minimumMatches": 2, "signers": [key]}}), too_many.to_owned()),
    ] {
        assert_eq!(refusals(&with(refused.clone())), [message], "{refused}");
    }
}

#[test]
fn an_approval_cannot_be_changed() {
    let crds = crds();
    let crd = crds.iter().find(|crd| crd.metadata.name.as_deref() == Some("changeapprovals.chandler.dev")).unwrap();
    let crd = serde_json::to_value(crd).unwrap();
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let approval = |by: &str| {
        json!({
            "apiVersion": "chandler.dev/v1alpha1", "kind": "ChangeApproval", "metadata": {"name": "x"},
            "spec": {"bundleDeployment": "x", "bundleDeploymentUID": "1", "change": "sha256:1", "approvedBy": by},
        })
    };
    assert!(Validator::new().validate(schema, &approval("alice"), Some(&approval("alice"))).is_ok());
    assert!(Validator::new().validate(schema, &approval("mallory"), None).is_ok(), "the rule is about changes");
    let refused = Validator::new().validate(schema, &approval("mallory"), Some(&approval("alice"))).unwrap_err();
    let refused: Vec<String> = refused.into_vec().into_iter().map(|error| error.message).collect();
    assert_eq!(refused, ["an approval cannot be changed: delete it and approve again"]);
}
