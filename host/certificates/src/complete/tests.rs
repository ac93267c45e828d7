use serde_json::json;
use time::{Duration, macros::datetime};

use super::*;
use crate::{annotations::SERVING_SECRET, decide::decide};

fn release() -> Release {
    let workload = |name: &str, secret: &str, restart: &str| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "annotations": {RESTART: restart}},
            "spec": {"template": {"spec": {"volumes": [{"name": "v", "secret": {"secretName": secret}}]}}}})
    };
    let objects = [
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "annotations": {SERVING_SECRET: "s"}}}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "w", "annotations": {INJECT_CA: "true"}},
        "webhooks": [
            {"clientConfig": {"service": {"namespace": "n", "name": "a"}, "caBundle": "Cg=="}},
            {"clientConfig": {"url": "https://example.com", "caBundle": "Cg=="}},
            {"clientConfig": {"service": {"namespace": "n", "name": "other"}, "caBundle": "Cg=="}},
        ]}),
        workload("restarts", "s", "true"),
        workload("reloads", "s", "false"),
        workload("other", "t", "true"),
    ];
    let objects = objects.map(|value| Object::parse(value.to_string().as_bytes(), 0, None).unwrap());
    Release::new(objects.to_vec(), vec![], vec![])
}

fn material(declarations: &Declarations) -> Material {
    let (names, now, policy) =
        (declarations.certificates()[0].names(), datetime!(2026-01-01 0:00 UTC), Policy::default());
    decide(None, &names, Some("asked"), now, &policy).carry_out(&names, Some("asked"), now, &policy).unwrap()
}

fn object<'a>(release: &'a Release, name: &str) -> &'a serde_json::Map<String, Value> {
    &release.objects().iter().find(|object| object.key.name == name).unwrap().value
}

#[test]
fn secrets_are_added_and_ca_bundles_written() {
    let release = release();
    let declarations = Declarations::of(&release, "n").unwrap();
    let material = material(&declarations);
    let completed = declarations.complete(&release, std::slice::from_ref(&material), &Policy::default()).unwrap();

    let mut secret = object(&completed, "s").clone();
    let data = secret.remove("data").unwrap();
    let names: Vec<&String> = data.as_object().unwrap().keys().collect();
    assert_eq!(names, ["ca.crt", "tls.crt", "tls.key"]);
    insta::assert_json_snapshot!(secret, @r#"
    {
      "apiVersion": "v1",
      "kind": "Secret",
      "metadata": {
        "annotations": {
          "certificates.chandler.dev/not-after": "2027-01-01T00:00:00Z",
          "certificates.chandler.dev/renew-after": "2026-09-02T13:10:21Z",
          "certificates.chandler.dev/rotation-request": "asked"
        },
        "name": "s",
        "namespace": "n"
      },
      "type": "kubernetes.io/tls"
    }
    "#);
    let webhooks = &object(&completed, "w")["webhooks"];
    assert_eq!(webhooks[0]["clientConfig"]["caBundle"], json!(STANDARD.encode(material.authorities())));
    for untouched in [1, 2] {
        assert_eq!(webhooks[untouched]["clientConfig"]["caBundle"], "Cg==");
    }
    assert_eq!(completed.objects().len(), release.objects().len() + 1);
}

#[test]
fn pods_are_annotated_only_if_requested() {
    let release = release();
    let declarations = Declarations::of(&release, "n").unwrap();
    let one = material(&declarations);
    let other = material(&declarations);
    let digest = |material: &Material, name: &str| {
        let completed = declarations.complete(&release, std::slice::from_ref(material), &Policy::default()).unwrap();
        object(&completed, name)["spec"]["template"].get("metadata").map(|metadata| metadata["annotations"].clone())
    };
    let shown = digest(&one, "restarts").unwrap();
    assert_eq!(shown[SERVING_DIGEST].as_str().unwrap().len(), 64);
    assert_eq!(digest(&one, "restarts"), Some(shown.clone()), "the same certificate");
    assert_ne!(digest(&other, "restarts"), Some(shown), "another certificate");
    assert_eq!(digest(&one, "reloads"), None);
    assert_eq!(digest(&one, "other"), None);
}

#[test]
fn completing_twice_gives_the_same_release() {
    let release = release();
    let declarations = Declarations::of(&release, "n").unwrap();
    let material = material(&declarations);
    let policy = Policy::default();
    let once = declarations.complete(&release, std::slice::from_ref(&material), &policy).unwrap();
    // As the API server returns it at a later time.
    let stored = crate::Stored::read(&Value::Object(object(&once, "s").clone()));
    let (names, later) = (declarations.certificates()[0].names(), datetime!(2026-01-01 0:00 UTC) + Duration::days(100));
    let again =
        decide(Some(stored), &names, Some("asked"), later, &policy).carry_out(&names, None, later, &policy).unwrap();
    assert_eq!(declarations.complete(&release, &[again], &policy).unwrap(), once);
}

#[test]
fn an_outline_contains_the_secrets_without_keys() {
    let release = release();
    let outline = Declarations::of(&release, "n").unwrap().outline(&release).unwrap();
    assert_eq!(object(&outline, "s")["data"], json!({}));
    assert_eq!(object(&outline, "w"), object(&release, "w"));
    assert_eq!(outline.objects().len(), release.objects().len() + 1);
}
