//! A Helm chart that generates a password and a certificate: the host generates both, keeps them, and no value is in the release.

use std::collections::BTreeMap;

use chandler_helm::Helm;
use chandler_sdk::{Request, testing};
use chandler_tests::{World, bundles::Bundle, wait};
use k8s_openapi::api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Secret};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::PLAIN;

/// A password as charts make it, kept with `lookup`, in two Secrets and in a text.
const SECRETS: &str = r#"{{- $found := lookup "v1" "Secret" .Release.Namespace "harbour" }}
{{- $password := randAlphaNum 10 }}
{{- if $found }}{{ $password = index $found.data "password" | b64dec }}{{ end }}
apiVersion: v1
kind: Secret
metadata: {name: harbour}
data:
  user: {{ "admin" | b64enc }}
  password: {{ $password | b64enc | quote }}
---
apiVersion: v1
kind: Secret
metadata: {name: harbour-clients}
stringData:
  url: {{ printf "redis://:%s@harbour:6379/%s" $password .Chart.Version }}
  copy: {{ $password }}
"#;

const WEBHOOK: &str = r#"{{- $ca := genCA "harbour-ca" 3650 }}
{{- $cert := genSignedCert "harbour" nil (list (printf "harbour.%s.svc" .Release.Namespace)) 365 $ca }}
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: harbour-tls}
data: {tls.crt: {{ $cert.Cert | b64enc }}, tls.key: {{ $cert.Key | b64enc }}}
---
apiVersion: v1
kind: Service
metadata: {name: harbour}
spec: {ports: [{port: 443}], selector: {app: harbour}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: {{ .Release.Name }}}
webhooks:
- name: berths.example.com
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig:
    caBundle: {{ $ca.Cert | b64enc }}
    service: {name: harbour, namespace: {{ .Release.Namespace }}, path: /}
  rules: [{apiGroups: [harbour.example.com], apiVersions: [v1], resources: [berths], operations: [CREATE]}]
"#;

/// A server that only Pods call.
const SERVER: &str = r#"{{- $ca := genCA "harbour-db-ca" 365 }}
{{- $names := list "harbour-db" (printf "*.harbour-db.%s.svc" .Release.Namespace) "localhost" }}
{{- $cert := genSignedCert "harbour-db" (list "127.0.0.1") $names 365 $ca }}
apiVersion: v1
kind: Secret
type: kubernetes.io/tls
metadata: {name: harbour-db-crt}
data: {tls.crt: {{ $cert.Cert | b64enc }}, tls.key: {{ $cert.Key | b64enc }}, ca.crt: {{ $ca.Cert | b64enc }}}
---
apiVersion: v1
kind: Service
metadata: {name: harbour-db}
spec: {ports: [{port: 5432}], selector: {app: harbour-db}}
"#;

/// What the provisioner makes of the chart, as a bundle of manifests: the component itself is compiled from the same code.
fn bundle(world: &World, name: &str, version: &str) -> Bundle {
    let chart = testing::Bundle::new([
        ("Chart.yaml", format!("apiVersion: v2\nname: harbour\nversion: {version}\n")),
        ("templates/secrets.yaml", SECRETS.to_owned()),
        ("templates/webhook.yaml", WEBHOOK.to_owned()),
        ("templates/server.yaml", SERVER.to_owned()),
    ]);
    let request = Request::new().with_name(name).with_namespace(world.namespace.as_str());
    let recorder = testing::run::<Helm>(&chart, &request).expect("the chart renders");
    let manifests = recorder.objects.iter().enumerate();
    manifests.fold(Bundle::empty(), |bundle, (number, object)| {
        bundle.with(&format!("manifests/{number}.yaml"), &object.value.to_string())
    })
}

fn texts(secret: &Secret) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    secret.data.iter().flatten().map(|(name, value)| (name.clone(), text(&value.0))).collect()
}

#[tokio::test]
async fn passwords_and_certificates_of_a_chart_are_generated_and_kept() {
    let world = World::new().await;
    let name = world.name();
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let image = world.push(&bundle(&world, &name, "1.0.0")).await;
    world.deploy(&name, PLAIN, &image).await;
    let deployment = world.ready(&name).await;
    let own = texts(&secrets.get("harbour").await.expect("the Secret"));
    let password = own["password"].clone();
    assert!(password.len() == 10 && password.bytes().all(|byte| byte.is_ascii_alphanumeric()), "not a password");
    assert_eq!(own.keys().collect::<Vec<_>>(), ["password", "user"]);
    let clients = texts(&secrets.get("harbour-clients").await.expect("the Secret"));
    let expected = |version: &str, password: &str| {
        BTreeMap::from([
            ("copy".to_owned(), password.to_owned()),
            ("url".to_owned(), format!("redis://:{password}@harbour:6379/{version}")),
        ])
    };
    assert_eq!(clients, expected("1.0.0", &password));
    assert!(!serde_json::to_string(&deployment).expect("JSON").contains(&password), "the password is disclosed");

    // The webhook trusts the certificate that the host issued into the Secret of the chart.
    let certificate = secrets.get("harbour-tls").await.expect("the Secret");
    let webhooks: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
    let webhook = webhooks.get(&name).await.expect("the webhook");
    let trusted = webhook.webhooks.expect("webhooks")[0].client_config.ca_bundle.clone().expect("a caBundle");
    assert_eq!(texts(&certificate)["ca.crt"].as_bytes(), trusted.0);
    assert_ne!(texts(&certificate)["tls.key"], "");

    // So does what reads the authority of the server from its Secret.
    let server = texts(&secrets.get("harbour-db-crt").await.expect("the Secret"));
    assert!(server["ca.crt"].starts_with("-----BEGIN CERTIFICATE-----") && server["ca.crt"] != server["tls.crt"]);
    assert!(server["tls.key"].contains("PRIVATE KEY"));

    // An upgrade keeps the password, and renders the text around it anew.
    let image = world.push(&bundle(&world, &name, "2.0.0")).await;
    world.deploy(&name, PLAIN, &image).await;
    let has =
        |wanted: BTreeMap<String, String>| move |secret: Option<&Secret>| secret.map(texts) == Some(wanted.clone());
    wait::until(&secrets, "harbour-clients", "upgraded", has(expected("2.0.0", &password))).await;
    assert_eq!(texts(&secrets.get("harbour").await.expect("the Secret")), own);
    assert_eq!(texts(&secrets.get("harbour-db-crt").await.expect("the Secret")), server, "the certificate is kept");

    // A value that is set by hand is kept, and everything that contains it follows.
    let patch = json!({"stringData": {"password": "by-hand"}});
    secrets.patch("harbour", &PatchParams::default(), &Patch::Merge(patch)).await.expect("the edit is accepted");
    wait::until(&secrets, "harbour-clients", "following", has(expected("2.0.0", "by-hand"))).await;
    world.ready(&name).await;

    world.delete(&name).await;
    for secret in ["harbour", "harbour-clients", "harbour-tls", "harbour-db-crt"] {
        assert!(secrets.get_opt(secret).await.expect("a response").is_none(), "{secret} is deleted with its owner");
    }
    world.finish().await;
}
