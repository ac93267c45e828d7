//! The schema of the values accepts what the settings accept.

use chandler_manifests::{Profile, SETTINGS, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{defaults, helm};

/// The value at a path with dots.
fn at(path: &str, value: Value) -> Value {
    path.rsplit('.').fold(value, |value, key| json!({ key: value }))
}

/// Whether the setting and the chart accept a text.
fn accepted(key: &str, text: &str) -> (bool, bool) {
    let setting = SETTINGS.iter().find(|setting| setting.key == key).unwrap();
    let mut settings = Settings::of(Profile::Standalone);
    let is_set = settings.set(&format!("{key}={text}")).is_ok();
    let value = match key {
        "arg" => json!([text]),
        _ => json!(text),
    };
    (is_set, helm::SCHEMA.is_valid(&at(setting.chart, value)))
}

#[test]
fn texts_are_accepted_by_both_or_by_neither() {
    let digest = format!("localhost:5000/chandler@sha256:{}", "0".repeat(64));
    let long = "a".repeat(254);
    for (key, good, bad) in [
        (
            "image",
            vec!["registry.corp.example/chandler:v1", &digest, "a/b/c_d/e--f:1.0_x", "127.0.0.1:5000/x"],
            vec!["chandler", "", "a b/c", "localhost:5000/a@sha256:", "registry.corp.example/Chandler:v1", "x/y:v1\nz"],
        ),
        ("imagePullSecret", vec!["a", "a.b-c"], vec!["A", "-a", "a..b", "a/b", &long]),
        ("metrics.tlsSecret", vec!["a"], vec!["a_b"]),
        ("cache.claim", vec!["a"], vec!["a."]),
        ("priorityClass", vec!["", "system-node-critical"], vec!["A", "a b"]),
        ("permissions", vec!["cluster-admin"], vec!["admin", ""]),
        ("logFormat", vec!["text"], vec!["yaml", ""]),
        ("resources.requests.cpu", vec!["100m", "2", "1.5", ".5", "5."], vec!["", ".", "-1", "1.2.3", "256MB", "1 Gi"]),
        ("resources.limits.memory", vec!["1Gi", "5u"], vec!["Mi", "1e3x"]),
        ("arg", vec!["--concurrency=16", "--x=ü \"y\""], vec!["-c", "", "--a\n--b", "--a\u{85}"]),
    ] {
        for (texts, wanted) in [(good, true), (bad, false)] {
            for text in texts {
                assert_eq!(accepted(key, text), (wanted, wanted), "{key}: {text:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn names_and_quantities_are_accepted_by_both_or_by_neither(
        key in prop::sample::select(vec!["imagePullSecret", "resources.requests.cpu", "arg", "image"]),
        text in "[-a.0-9mMiG/:_\n]{1,8}",
    ) {
        let (setting, chart) = accepted(key, &text);
        prop_assert_eq!(setting, chart, "{}: {:?}", key, text);
    }

    #[test]
    fn labels_are_accepted_by_both_or_by_neither(name in "[-aA0._/=]{1,7}", value in "[-a0._]{0,4}") {
        let mut settings = Settings::of(Profile::Standalone);
        prop_assume!(!name.contains('='));
        let setting = settings.set(&format!("nodeSelector={name}={value}")).is_ok();
        let chart = helm::SCHEMA.is_valid(&json!({"nodeSelector": {(name.clone()): value.clone()}}));
        prop_assert_eq!(setting, chart, "{}={}", name, value);
    }
}

#[test]
fn values_that_do_not_exist_or_have_another_type_are_refused() {
    for (values, words) in [
        (json!({"replica": 3}), "replica"),
        (json!({"metrics": {"enable": true}}), "/metrics"),
        (json!({"metrics": true}), "/metrics"),
        (json!({"replicas": 6}), "/replicas"),
        (json!({"replicas": "2"}), "/replicas"),
        (json!({"watch": "true"}), "/watch"),
        (json!({"profile": "multitenant"}), "/profile"),
        (json!({"tolerations": [{"operator": "Equals"}]}), "/tolerations/0/operator"),
        (json!({"tolerations": [{"keys": "a"}]}), "/tolerations/0"),
        (json!({"args": ["--a\n--b"]}), "/args/0"),
        (json!({"nodeSelector": {"a": 1}}), "/nodeSelector/a"),
    ] {
        let error = helm::template(defaults(), "chandler-system", &values).unwrap_err();
        assert!(error.contains(words), "{values}: {error}");
    }
}

#[test]
fn numbers_and_null_are_values_too() {
    let values = json!({"replicas": null, "resources": {"limits": {"cpu": 2}}, "monitoring": {"rules": null}});
    let objects = helm::template(defaults(), "chandler-system", &values).unwrap();
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let limits = deployment.pointer("/spec/template/spec/containers/0/resources/limits").unwrap();
    assert_eq!((&limits["cpu"], &deployment["spec"]["replicas"]), (&json!("2"), &json!(2)));
}
