//! Constructs of published bundles and their results in OLM v1: a case for each row of a list from seven thousand
//! bundles, through the whole provisioner.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests may panic and print"
)]

use serde_json::{Value, json};

use crate::support::small::{CRD, Small, one};

/// The result for a member `x` of an untyped object.
fn rendered_member(text: &str) -> Value {
    let manifest = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: tides}}\n{text}");
    let release = Small::new(&["AllNamespaces"]).file("manifests/tides.yaml", &manifest).render(&json!({})).unwrap();
    assert_eq!(release.findings, [], "{text}");
    one(&release, "ConfigMap")["x"].clone()
}

#[test]
fn scalars() {
    for (text, want) in [
        // Timestamps are strings.
        ("x: 2021-01-01T00:00:00Z", json!("2021-01-01T00:00:00Z")),
        ("x: 2021-01-01", json!("2021-01-01")),
        // An absent value is null.
        ("x:", json!(null)),
        ("x: ~", json!(null)),
        ("x: ''", json!("")),
        // A plain `=` is a string, not the value tag of YAML 1.1.
        ("x: =", json!("=")),
        ("x: [=, '!=', <]", json!(["=", "!=", "<"])),
        // Tabs in block scalars are kept.
        ("x: |\n  a:\n  \tb\n", json!("a:\n\tb\n")),
        ("x: >-\n  a\n  b\n\n  c\n", json!("a b\nc")),
        // The words of YAML 1.1, as values.
        ("x: [yes, no, on, off, y, n, True, NO]", json!([true, false, true, false, true, false, true, false])),
        ("x: ['yes', \"no\"]", json!(["yes", "no"])),
        // Numbers.
        ("x: 0644", json!(420)),
        ("x: 0o17", json!(15)),
        ("x: 0x1F", json!(31)),
        ("x: 0b101", json!(5)),
        ("x: 1_000", json!(1000)),
        ("x: 08", json!(8)),
        ("x: 1.50", json!(1.5)),
        ("x: 1.0", json!(1)),
        ("x: 1e3", json!(1000)),
        ("x: 12e-1", json!(1.2)),
        ("x: 1234567890123456", json!(1_234_567_890_123_456_i64)),
        ("x: 9007199254740993", json!(9_007_199_254_740_993_i64)),
        ("x: 9223372036854775807", json!(i64::MAX)),
        ("x: 18446744073709551615", json!(u64::MAX)),
        ("x: 1e400", json!("1e400")),
        // Times of day and versions are not numbers.
        ("x: 12:30", json!("12:30")),
        ("x: 1.2.3", json!("1.2.3")),
    ] {
        assert_eq!(rendered_member(text), want, "{text}");
    }
}

#[test]
fn keys() {
    for (text, want) in [
        ("x: {yes: 1, no: 2, on: 3}", json!({"true": 3, "false": 2})),
        ("x: {y: 1}", json!({"true": 1})),
        ("x: {1: a, 0x10: b, 1.5: c}", json!({"1": "a", "16": "b", "1.5": "c"})),
        ("x: {'1': a, \"on\": b}", json!({"1": "a", "on": "b"})),
        // Equal keys with equal values.
        ("x: {a: 1, a: 1}", json!({"a": 1})),
        ("x:\n  a: [1, {b: c}]\n  a: [1, {b: c}]\n", json!({"a": [1, {"b": "c"}]})),
    ] {
        if text.contains("on: 3") {
            // Two spellings of one key are one key, with a warning.
            let release = tides(text).render(&json!({})).unwrap();
            assert_eq!((&one(&release, "ConfigMap")["x"], release.findings.len()), (&want, 1), "{text}");
        } else {
            assert_eq!(rendered_member(text), want, "{text}");
        }
    }
}

fn tides(text: &str) -> Small {
    let manifest = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: tides}}\n{text}");
    Small::new(&["AllNamespaces"]).file("manifests/tides.yaml", &manifest)
}

#[test]
fn anchors_aliases_and_merge_keys() {
    for (text, want) in [
        ("base: &b {a: 1}\nx: [*b, *b]", json!([{"a": 1}, {"a": 1}])),
        ("base: &b text\nx: *b", json!("text")),
        ("base: &b {a: 1, b: 2}\nx: {<<: *b, b: 3}", json!({"a": 1, "b": 3})),
        ("one: &o {a: 1, b: 1}\ntwo: &t {b: 2, c: 2}\nx: {<<: [*o, *t], c: 3}", json!({"a": 1, "b": 1, "c": 3})),
        ("x: {'<<': {a: 1}}", json!({"<<": {"a": 1}})),
    ] {
        assert_eq!(rendered_member(text), want, "{text}");
    }
}

#[test]
fn a_document_that_expands_without_end_is_refused() {
    let mut text = "a0: &a0 [ship, ship, ship, ship, ship, ship, ship, ship, ship, ship]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        text = format!("{text}a{level}: &a{level} [{aliases}]\n");
    }
    let refusal = tides(&text).refusal(&json!({}));
    assert!(refusal.starts_with("content\nInvalidYaml manifests/tides.yaml:1"), "{refusal}");
    assert!(refusal.contains("with aliases expanded"), "{refusal}");
    let cyclic = tides("x: &x {a: *x}\n").refusal(&json!({}));
    insta::assert_snapshot!(cyclic, @r#"
    content
    InvalidYaml manifests/tides.yaml:4:11: error parsing objects in "manifests/tides.yaml": the alias is inside its own anchor
      every file in manifests/ is parsed as YAML or JSON, whatever its name; move others elsewhere
    "#);
}

#[test]
fn the_last_duplicate_key_wins_with_a_warning() {
    let release = tides("x: {a: 1, b: 2, a: 3}\n").render(&json!({})).unwrap();
    assert_eq!(one(&release, "ConfigMap")["x"], json!({"a": 3, "b": 2}));
    assert_eq!(release.findings.len(), 1);
    insta::assert_snapshot!(release.findings[0], @r#"manifests/tides.yaml:4:17: key "a" is a duplicate with another value; the one in line 4 is ignored"#);
    // In typed objects, too.
    let crd =
        CRD.replace("JSONPath", "jsonPath").replace("      type: date\n", "      type: date\n      type: string\n");
    let release = Small::new(&["AllNamespaces"]).file("manifests/crd.yaml", &crd).render(&json!({})).unwrap();
    let column = &one(&release, "CustomResourceDefinition")["spec"]["versions"][0]["additionalPrinterColumns"][0];
    assert_eq!((&column["type"], release.findings[0].code.as_str()), (&json!("string"), "SuspiciousYaml"));
}

#[test]
fn streams_lists_and_encodings() {
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    let item = |name: &str| format!(r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}"}}}}"#);
    let (a, b, c) = (map("a1"), map("b1"), map("c1"));
    for (file, text, want) in [
        ("several.yaml", format!("---\n{a}---\n# nothing\n---\n{b}...\n---\n{c}"), vec!["a1", "b1", "c1"]),
        (
            "list.yaml",
            format!("kind: List\napiVersion: v1\nitems:\n- {}\n- {}\n", item("a1"), item("b1")),
            vec!["a1", "b1"],
        ),
        ("typed.yaml", "kind: ConfigMapList\napiVersion: v1\nitems:\n- metadata: {name: a1}\n".to_owned(), vec!["a1"]),
        (
            "nested.json",
            format!(r#"{{"kind": "List", "items": [{{"kind": "List", "items": [{}]}}]}}"#, item("a1")),
            vec!["a1"],
        ),
        ("json.json", item("a1"), vec!["a1"]),
        ("stream.json", format!("{}\n{}", item("a1"), item("b1")), vec!["a1", "b1"]),
        ("windows.yaml", format!("\u{feff}{a}").replace('\n', "\r\n"), vec!["a1"]),
        // The name of a file has no meaning.
        ("NOTES", a.clone(), vec!["a1"]),
    ] {
        let release =
            Small::new(&["AllNamespaces"]).file(&format!("manifests/{file}"), &text).render(&json!({})).unwrap();
        let maps = release.objects.iter().filter(|object| object.value["kind"] == "ConfigMap");
        let names: Vec<&str> = maps.map(|object| object.value["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, want, "{file}");
    }
}

#[test]
fn unknown_fields_are_matched_by_exact_name_and_reported() {
    let mut small = Small::new(&["AllNamespaces"]).file("manifests/crd.yaml", CRD);
    small.csv["spec"]["install"]["spec"]["permissions"][0]["rules"][0]["apigroups"] = json!(["x"]);
    let release = small.render(&json!({"compatibility": "reference"})).unwrap();
    assert_eq!(one(&release, "ClusterRole")["rules"][0].get("apigroups"), None);
    let findings: Vec<String> = release.findings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(findings.join("\n"), @r#"
    manifests/crd.yaml:16:7 (/spec/versions/0/additionalPrinterColumns/0/JSONPath): unknown field "JSONPath" is dropped (help: field names are case-sensitive; did you mean "jsonPath"?)
    manifests/csv.yaml:48:17 (/spec/install/spec/permissions/0/rules/0/apigroups): unknown field "apigroups" is dropped (help: field names are case-sensitive; did you mean "apiGroups"?)
    "#);
}

#[test]
fn v1beta1_crds_lose_their_schema_with_reference() {
    let old = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\n\
               metadata: {name: berths.example.com}\n\
               spec:\n  group: example.com\n  version: v1\n  scope: Namespaced\n\
               \x20 names: {kind: Berth, plural: berths}\n  subresources: {status: {}}\n\
               \x20 additionalPrinterColumns: [{name: Age, type: date, JSONPath: .x}]\n\
               \x20 validation: {openAPIV3Schema: {type: object}}\n  versions: [{name: v1, served: true, storage: true}]\n";
    let release = Small::new(&["AllNamespaces"])
        .file("manifests/old.yaml", old)
        .render(&json!({"compatibility": "reference"}))
        .unwrap();
    insta::assert_json_snapshot!(one(&release, "CustomResourceDefinition"), @r#"
    {
      "apiVersion": "apiextensions.k8s.io/v1beta1",
      "kind": "CustomResourceDefinition",
      "metadata": {
        "name": "berths.example.com"
      },
      "spec": {
        "group": "example.com",
        "names": {
          "kind": "Berth",
          "plural": "berths"
        },
        "scope": "Namespaced",
        "versions": [
          {
            "name": "v1",
            "served": true,
            "storage": true
          }
        ]
      }
    }
    "#);
    assert_eq!(release.findings.len(), 1);
    insta::assert_snapshot!(release.findings[0], @"manifests/old.yaml:1:13 (/apiVersion): apiextensions.k8s.io/v1beta1 is not served by Kubernetes 1.22 and newer, and the schema of this CustomResourceDefinition is lost (help: convert it to apiextensions.k8s.io/v1)");
}

#[test]
fn quantities_defaults_and_empty_fields_are_those_of_the_types() {
    let mut small = Small::new(&["AllNamespaces"]);
    let pod = &mut small.csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["template"]["spec"];
    pod["containers"] = json!([{
        "name": "op",
        "image": "",
        "args": [],
        "tty": false,
        "resources": {"limits": {"memory": "1024Mi", "cpu": "1000m"}, "requests": {"cpu": 0.5, "memory": 128}},
        "env": [{"name": "LIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
        "ports": [{"containerPort": 8080, "hostPort": 0}],
    }]);
    pod["hostNetwork"] = json!(false);
    let release = small.render(&json!({"compatibility": "reference"})).unwrap();
    let spec = &one(&release, "Deployment")["spec"];
    assert_eq!(spec["strategy"], json!({}));
    insta::assert_json_snapshot!(spec["template"]["spec"], @r#"
    {
      "containers": [
        {
          "env": [
            {
              "name": "LIMIT",
              "valueFrom": {
                "resourceFieldRef": {
                  "divisor": "0",
                  "resource": "limits.cpu"
                }
              }
            }
          ],
          "name": "op",
          "ports": [
            {
              "containerPort": 8080
            }
          ],
          "resources": {
            "limits": {
              "cpu": "1",
              "memory": "1Gi"
            },
            "requests": {
              "cpu": "500m",
              "memory": "128"
            }
          }
        }
      ]
    }
    "#);
}

#[test]
fn numbers_in_typed_places() {
    let schema = "type: object, default: {big: 12345678901234567890, exact: 9007199254740993}, maximum: 9007199254740993, \
                  minimum: 1e3, maxLength: 0x10, multipleOf: 0.10";
    let crd = CRD.replace("JSONPath", "jsonPath").replace("type: object, nullable: false", schema);
    let release = Small::new(&["AllNamespaces"]).file("manifests/crd.yaml", &crd).render(&json!({})).unwrap();
    let schema = &one(&release, "CustomResourceDefinition")["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    // Untyped values keep every digit, doubles as many as a double has.
    assert_eq!(schema["default"], json!({"big": 12_345_678_901_234_567_890_u64, "exact": 9_007_199_254_740_993_i64}));
    assert_eq!(schema["maximum"].as_f64(), Some(9_007_199_254_740_992.0));
    let others = ["minimum", "maxLength", "multipleOf"].map(|field| schema[field].clone());
    assert_eq!(others, [json!(1000), json!(16), json!(0.1)]);

    let mut small = Small::new(&["AllNamespaces"]);
    small.csv["spec"]["install"]["spec"]["deployments"][0]["spec"]["replicas"] = json!(12_345_678_901_i64);
    insta::assert_snapshot!(small.refusal(&json!({})), @r#"
    content
    InvalidObject manifests/csv.yaml:18:27 (/spec/install/spec/deployments/0/spec/replicas): error parsing objects in "manifests/csv.yaml": value out of range: int32
      got integer, want integer of 32 bits
    "#);
}

#[test]
fn a_webhook_without_a_container_port() {
    let small = Small::new(&["AllNamespaces"]).webhook("ValidatingAdmissionWebhook", "v.example.com");
    let seen = |compatibility: &str| {
        let release = small.render(&json!({"certificateProvider": "none", "compatibility": compatibility})).unwrap();
        let webhook = one(&release, "ValidatingWebhookConfiguration");
        (
            webhook["webhooks"][0]["clientConfig"]["service"]["port"].clone(),
            one(&release, "Service")["spec"]["ports"][0]["port"].clone(),
            webhook["metadata"].get("namespace").cloned(),
        )
    };
    assert_eq!(seen("reference"), (json!(0), json!(443), Some(json!("ns"))));
    assert_eq!(seen("extended"), (json!(443), json!(443), None));
}

#[test]
fn kinds_of_other_groups_and_without_a_version() {
    let service = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: s1, namespace: elsewhere}\n";
    let secret = "kind: Secret\nmetadata: {name: s2}\n";
    let role = "apiVersion: security.example.com/v1\nkind: Role\nmetadata: {name: r1}\n";
    let small = Small::new(&["AllNamespaces"])
        .file("manifests/a.yaml", service)
        .file("manifests/b.yaml", secret)
        .file("manifests/c.yaml", role);
    let seen = |compatibility: &str| {
        let release = small.render(&json!({"compatibility": compatibility})).unwrap();
        let namespace = |kind: &str| one(&release, kind)["metadata"].get("namespace").cloned();
        (namespace("Service"), namespace("Role"), one(&release, "Secret")["apiVersion"].clone())
    };
    assert_eq!(seen("reference"), (Some(json!("ns")), Some(json!("ns")), json!("v1")));
    // Only the object and the host know whether a kind of another group is namespaced.
    assert_eq!(seen("extended"), (Some(json!("ns")), None, json!("v1")));
}
