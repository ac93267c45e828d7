//! `chandler render`.

use std::collections::BTreeMap;

use crate::support::{self, chandler};

const HARBOUR: &str = "tests/fixtures/registry/harbour-operator.v0.1.0";
const LIGHTHOUSE: &str = "tests/fixtures/plain/lighthouse";

#[test]
fn a_registry_bundle() {
    let outcome = chandler(["render", HARBOUR], "");
    insta::assert_snapshot!(outcome.stderr, @"10 objects in 1 stage for harbour-operator in namespace harbour-operator-system, by core-rukpak-io-registry (registry+v1), release sha256:3624a7ba38a06549f2487a6ff4614d5a3d6375ef26d7931a240cd3246099ade4");
    insta::assert_snapshot!("harbour-operator.v0.1.0", outcome.data());
}

#[test]
fn the_next_version_of_a_registry_bundle() {
    let bundle = "tests/fixtures/registry/harbour-operator.v0.2.0";
    insta::assert_snapshot!("harbour-operator.v0.2.0", chandler(["render", bundle], "").data());
}

#[test]
fn a_plain_bundle() {
    let outcome = chandler(["render", LIGHTHOUSE], "");
    insta::assert_snapshot!(outcome.stderr, @"6 objects in 3 stages for lighthouse in namespace lighthouse-system, by core-rukpak-io-plain (plain+v0), release sha256:f913abce0851d2bcd4d495e84f97a74831854ca419e941ff7ace4fbe1b2f691a");
    insta::assert_snapshot!("lighthouse", outcome.data());
}

#[test]
fn a_url_renders_to_the_same_bytes_and_must_have_the_digest_that_it_names() {
    let packed = support::packed(LIGHTHOUSE);
    let digest = chandler_core::Digest::of(&packed);
    let url = format!("http://{}/bundles/lighthouse-v1.tgz", support::web_server(packed));
    let from_directory = chandler(["render", LIGHTHOUSE], "").data();
    let named = ["--name", "lighthouse"];
    for url in [url.clone(), format!("{url}#sha256={}", digest.hex())] {
        assert_eq!(chandler([&["render", url.as_str()], &named[..]].concat(), "").data(), from_directory, "{url}");
        assert_eq!(chandler(["lint", url.as_str()], "").code, Some(0), "{url}");
        let rules = |bundle: &str| {
            chandler([&["rbac", bundle, "--service-account", "deployer"], &named[..]].concat(), "").data()
        };
        assert_eq!(rules(&url), rules(LIGHTHOUSE), "{url}");
    }
    let other = format!("{url}#sha256={}", "0".repeat(64));
    let refused = chandler(["render", &other], "");
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("its SHA-256 digest is") && refused.stderr.contains("hint: check the digest"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_directory_an_archive_and_an_image_render_to_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let archive = directory.path().join("lighthouse.tar.gz");
    let packed = std::process::Command::new("tar")
        .args(["--create", "--gzip", "--file"])
        .arg(&archive)
        .args(["--directory", LIGHTHOUSE, "."])
        .current_dir(support::root())
        .status();
    assert!(packed.unwrap().success());
    let from_directory = chandler(["render", LIGHTHOUSE], "").data();
    let from_archive = chandler([std::ffi::OsStr::new("render"), archive.as_os_str()], "");
    assert_eq!(from_archive.data(), from_directory);

    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (registry, image) = runtime.block_on(async {
        let registry = chandler_devregistry::Registry::start(chandler_devregistry::Options::default()).await.unwrap();
        let bundle = support::root().join(LIGHTHOUSE);
        let pushed = registry.push_bundle_directory("lighthouse", "v1", &bundle, &BTreeMap::new()).await.unwrap();
        (registry, pushed.reference)
    });
    assert_eq!(chandler(["render", &image], "").data(), from_directory);
    drop(registry);
    // The content is in the cache, but the tag is resolved each time.
    let gone = chandler(["render", &image], "");
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("hint: try again"), "{}", gone.stderr);
}

#[test]
fn json_is_a_list_of_the_same_objects_in_the_same_order() {
    let json = chandler(["render", HARBOUR, "-o", "json"], "").data();
    let list: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&list["apiVersion"], &list["kind"]), (&"v1".into(), &"List".into()));
    let yaml = chandler(["render", HARBOUR], "").data();
    assert_eq!(list["items"].as_array().unwrap(), &support::documents(&yaml));
}

#[test]
fn an_invalid_configuration_is_shown_with_its_line() {
    let outcome = chandler(["render", HARBOUR, "--config", "-"], "# mine\nwatchNamespaces: x\n");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""));
    insta::assert_snapshot!(outcome.stderr, @r#"
    error[UnknownField]

      x unknown field "watchNamespaces"
       ,-[standard input:2:1]
     1 | # mine
     2 | watchNamespaces: x
       : ^^^^^^^|^^^^^^^
       :        `-- /watchNamespaces
       `----
      help: this operator supports the install modes [AllNamespaces OwnNamespace SingleNamespace] only

    error: the configuration is invalid
      hint: fix the fields that the findings name; `chandler lint BUNDLE --config FILE` checks the configuration
    "#);
}

#[test]
fn an_invalid_bundle_or_argument_has_an_error() {
    for (arguments, code) in [
        (vec!["render", "./not-there"], 2),
        (vec!["render", "not-there"], 2),
        (vec!["render", "docs"], 1),
        (vec!["render", HARBOUR, "--provisioner", "nobody"], 2),
        (vec!["render", HARBOUR, "--config", "not-there.yaml"], 2),
        (vec!["render", "README.md"], 1),
    ] {
        let outcome = chandler(&arguments, "");
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.starts_with("error: "), "{arguments:?}: {}", outcome.stderr);
    }
}
