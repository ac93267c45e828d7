use serde_json::json;

use super::*;

fn object(value: &Value) -> Object {
    Object::parse(value.to_string().as_bytes(), 0, None).unwrap()
}

fn release(objects: impl IntoIterator<Item = Value>) -> Release {
    Release::new(objects.into_iter().map(|value| object(&value)).collect(), vec![], vec![])
}

fn service(name: &str, namespace: Option<&str>, secret: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {
        "name": name, "namespace": namespace, "annotations": {SERVING_SECRET: secret}}})
}

fn webhook(kind: &str, services: &[(&str, &str)], inject: &str) -> Value {
    let webhooks: Vec<Value> = services
        .iter()
        .map(|(namespace, name)| json!({"clientConfig": {"service": {"namespace": namespace, "name": name}}}))
        .collect();
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "w", "annotations": {INJECT_CA: inject}}, "webhooks": webhooks})
}

fn crd() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "d", "annotations": {INJECT_CA: "true"}},
        "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {
            "service": {"namespace": "n", "name": "a", "port": 443}}}}}})
}

fn api_service() -> Value {
    json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.x", "annotations": {INJECT_CA: "true"}},
        "spec": {"service": {"namespace": "n", "name": "a"}}})
}

#[test]
fn every_kind_that_calls_a_service_is_a_target() {
    let release = release([
        service("a", None, "s"),
        webhook("ValidatingWebhookConfiguration", &[("n", "a"), ("elsewhere", "a")], "true"),
        webhook("MutatingWebhookConfiguration", &[("n", "a")], "true"),
        crd(),
        api_service(),
    ]);
    let declarations = Declarations::of(&release, "n").unwrap();
    let targets: Vec<String> = declarations.targets().iter().map(|target| target.object.to_string()).collect();
    assert_eq!(
        targets,
        [
            "CustomResourceDefinition.apiextensions.k8s.io d",
            "MutatingWebhookConfiguration.admissionregistration.k8s.io w",
            "ValidatingWebhookConfiguration.admissionregistration.k8s.io w",
            "APIService.apiregistration.k8s.io v1.x",
        ]
    );
    assert!(declarations.targets().iter().all(|target| target.certificates == BTreeSet::from([0])));
    let [certificate] = declarations.certificates() else { panic!("one certificate") };
    assert_eq!(certificate.secret.to_string(), "Secret n/s");
    assert_eq!(Vec::from_iter(certificate.names()), ["a.n", "a.n.svc", "a.n.svc.cluster.local"]);
}

#[test]
fn services_may_share_a_secret_and_secrets_a_target() {
    let both = webhook("ValidatingWebhookConfiguration", &[("n", "c"), ("n", "a")], "true");
    let release = release([
        service("a", Some("n"), "s"),
        service("b", Some("n"), "s"),
        service("c", Some("n"), "t"),
        service("a", Some("m"), "s"),
        both,
    ]);
    let declarations = Declarations::of(&release, "n").unwrap();
    let shown: Vec<(String, usize)> = declarations
        .certificates()
        .iter()
        .map(|certificate| (certificate.secret.to_string(), certificate.services.len()))
        .collect();
    assert_eq!(shown, [("Secret m/s".to_owned(), 1), ("Secret n/s".to_owned(), 2), ("Secret n/t".to_owned(), 1)]);
    assert_eq!(declarations.targets()[0].certificates, BTreeSet::from([1, 2]));
}

#[test]
fn a_release_without_annotations_requests_nothing() {
    let declarations =
        Declarations::of(&release([webhook("MutatingWebhookConfiguration", &[], "false")]), "n").unwrap();
    assert!(declarations.is_empty() && declarations.targets().is_empty());
}

#[test]
fn secrets_come_first_but_not_before_their_namespace() {
    let mut objects = vec![
        Object { stage: 7, ..object(&service("a", Some("n"), "s")) },
        Object { stage: 7, ..object(&service("a", Some("m"), "s")) },
        Object { stage: 3, ..object(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})) },
    ];
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "m"}});
    objects.push(Object { stage: 5, ..object(&namespace) });
    let declarations = Declarations::of(&Release::new(objects, vec![], vec![]), "n").unwrap();
    let stages: Vec<(String, u32)> = declarations
        .certificates()
        .iter()
        .map(|certificate| (certificate.secret.to_string(), certificate.stage))
        .collect();
    assert_eq!(stages, [("Secret m/s".to_owned(), 5), ("Secret n/s".to_owned(), 3)]);
}

#[test]
fn all_errors_are_reported_at_once() {
    let annotated = |kind: &str, annotation: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "k", "annotations": {annotation: "true"}}});
    let release = release([
        service("a", None, "Not A Secret"),
        service("dotted.name", None, "s"),
        service("b", None, "taken"),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "taken"}}),
        annotated("ConfigMap", SERVING_SECRET),
        annotated("Pod", INJECT_CA),
        webhook("ValidatingWebhookConfiguration", &[("n", "unknown")], "true"),
        webhook("MutatingWebhookConfiguration", &[("n", "b")], "yes"),
    ]);
    insta::assert_snapshot!(Declarations::of(&release, "n").unwrap_err(), @r#"
    ConfigMap k: annotation certificates.chandler.dev/serving-secret is not supported on this kind
    Service a: annotation certificates.chandler.dev/serving-secret is "Not A Secret"; it must be the name of a Secret
    Service dotted.name: name and namespace of a Service with a certificate must be DNS labels
    Pod k: annotation certificates.chandler.dev/inject-ca is not supported on this kind
    MutatingWebhookConfiguration.admissionregistration.k8s.io w: annotation certificates.chandler.dev/inject-ca is "yes"; it must be "true"
    ValidatingWebhookConfiguration.admissionregistration.k8s.io w: annotation certificates.chandler.dev/inject-ca is set, but the object refers to no Service of the release with annotation certificates.chandler.dev/serving-secret
    Secret taken is in the release, but annotation certificates.chandler.dev/serving-secret makes Chandler create it; remove the Secret or the annotation
    "#);
}

#[test]
fn certificates_are_counted() {
    let release = super::tests::release(
        (0..=MAX_CERTIFICATES).map(|number| service(&format!("a{number}"), None, &format!("s{number}"))),
    );
    let error = Declarations::of(&release, "n").unwrap_err();
    assert_eq!(error, DeclarationError::TooMany(MAX_CERTIFICATES + 1));
}

#[test]
fn names_are_validated_like_kubernetes() {
    for (name, label, subdomain) in [
        ("a", true, true),
        ("a-1", true, true),
        ("a.b", false, true),
        ("", false, false),
        ("-a", false, false),
        ("a.", false, false),
        ("A", false, false),
        ("ä", false, false),
        (&"a".repeat(64), false, true),
        (&"a".repeat(254), false, false),
    ] {
        assert_eq!((dns_name::is_label(name), dns_name::is_subdomain(name)), (label, subdomain), "{name}");
    }
}

#[test]
fn a_service_may_have_further_names() {
    let of = |names: &str| {
        let mut service = service("a", Some("n"), "s");
        service["metadata"]["annotations"][PEER_NAMES] = json!(names);
        Declarations::of(&release([service]), "n")
    };
    let declarations = of("a, *.a.n.svc, 127.0.0.1, 0:0:0:0:0:0:0:1").unwrap();
    assert_eq!(
        Vec::from_iter(declarations.certificates()[0].names()),
        ["*.a.n.svc", "127.0.0.1", "::1", "a", "a.n", "a.n.svc", "a.n.svc.cluster.local"]
    );
    let many = (0..51).map(|number| format!("a{number}")).collect::<Vec<_>>().join(",");
    for refused in ["", "a,,b", "A", "a.*.b", "*", "**.a", "a b", &many] {
        assert!(matches!(of(refused), Err(DeclarationError::Value { annotation: PEER_NAMES, .. })), "{refused:?}");
    }
    let mut alone = service("a", None, "s");
    alone["metadata"]["annotations"] = json!({PEER_NAMES: "a"});
    assert!(matches!(
        Declarations::of(&release([alone]), "n"),
        Err(DeclarationError::Kind { annotation: PEER_NAMES, .. })
    ));
}
