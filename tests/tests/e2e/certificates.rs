//! With the host as certificate provider, a cluster needs no cert-manager: certificates are issued, trusted and rotated.

use std::collections::BTreeMap;

use chandler_tests::{
    World,
    bundles::{self, Bundle},
    tls::{Identity, handshake},
    wait,
    world::condition,
};
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        core::v1::{Secret, Service},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{PLAIN, REGISTRY};

const SERVING_SECRET: &str = "certificates.chandler.dev/serving-secret";
const ROTATE: &str = "certificates.chandler.dev/rotate-requested-at";
const CSV: &str = "manifests/harbour-operator.clusterserviceversion.yaml";
const CRD: &str = "berths.harbour.example.com";

const WEBHOOKS: &str = "
  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: vberth.harbour.example.com
    deploymentName: harbour-operator
    containerPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    webhookPath: /validate
    rules: &rules
    - {apiGroups: [harbour.example.com], apiVersions: [v1alpha1], resources: [berths], operations: [CREATE, UPDATE]}
  - type: MutatingAdmissionWebhook
    generateName: mberth.harbour.example.com
    deploymentName: harbour-operator
    containerPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    webhookPath: /mutate
    rules: *rules
  - type: ConversionWebhook
    generateName: cberth.harbour.example.com
    deploymentName: harbour-operator
    containerPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    webhookPath: /convert
    conversionCRDs: [berths.harbour.example.com]
  install:
";

/// The sample operator with a webhook of each type.
fn webhooks() -> Bundle {
    bundles::sample("registry/harbour-operator.v0.1.0")
        .replacing(CSV, "\n  install:\n", WEBHOOKS)
        .replacing(CSV, "{type: OwnNamespace, supported: true}", "{type: OwnNamespace, supported: false}")
        .replacing(CSV, "{type: SingleNamespace, supported: true}", "{type: SingleNamespace, supported: false}")
}

async fn deploy(world: &World, name: &str) {
    let image = world.push(&webhooks()).await;
    let mut spec = world.spec(REGISTRY, &image);
    spec["config"] = json!({"certificateProvider": "host"});
    world.apply(name, spec).await;
}

/// The names of the Service with a certificate and of its Secret.
async fn service(world: &World) -> (String, String) {
    let services: Api<Service> = Api::namespaced(world.client.clone(), &world.namespace);
    for service in services.list(&ListParams::default()).await.expect("the Services") {
        if let Some(secret) = service.metadata.annotations.unwrap_or_default().remove(SERVING_SECRET) {
            return (service.metadata.name.expect("a stored object has a name"), secret);
        }
    }
    panic!("no Service requests a certificate");
}

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.client.clone(), &world.namespace)
}

fn identity(secret: &Secret) -> Identity {
    let entry = |name: &str| secret.data.as_ref().and_then(|data| data.get(name)).expect("an entry").0.clone();
    Identity { certificate: entry("tls.crt"), key: entry("tls.key") }
}

/// Every `caBundle` of the release, by its object.
async fn authorities(world: &World) -> BTreeMap<&'static str, Vec<u8>> {
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(world.client.clone());
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let validating = validating.get("vberth.harbour.example.com").await.expect("the validating webhook");
    let mutating = mutating.get("mberth.harbour.example.com").await.expect("the mutating webhook");
    let crd = crds.get(CRD).await.expect("the CRD");
    let validating = validating.webhooks.expect("webhooks").remove(0).client_config.ca_bundle;
    let mutating = mutating.webhooks.expect("webhooks").remove(0).client_config.ca_bundle;
    let conversion = crd.spec.conversion.and_then(|conversion| conversion.webhook?.client_config?.ca_bundle);
    [("validating", validating), ("mutating", mutating), ("conversion", conversion)]
        .map(|(place, bundle)| (place, bundle.expect("a CA bundle").0))
        .into()
}

/// Whether each `caBundle` trusts a server with this identity.
async fn trusted_by(world: &World, identity: &Identity, service: &str) -> BTreeMap<&'static str, Result<(), String>> {
    let name = format!("{service}.{}.svc", world.namespace);
    let trusts = |bundle: &Vec<u8>| handshake(identity, bundle, &name);
    authorities(world).await.iter().map(|(place, bundle)| (*place, trusts(bundle))).collect()
}

async fn assert_trusted(world: &World, identity: &Identity, service: &str) {
    for (place, trusted) in trusted_by(world, identity, service).await {
        assert_eq!(trusted, Ok(()), "{place}");
    }
}

fn entry<'a>(secret: Option<&'a Secret>, name: &str) -> Option<&'a [u8]> {
    Some(&secret?.data.as_ref()?.get(name)?.0)
}

async fn rotate(world: &World, name: &str, when: &str) {
    let request = Patch::Merge(json!({"metadata": {"annotations": {ROTATE: when}}}));
    world.deployments().patch(name, &PatchParams::default(), &request).await.expect("an annotation");
}

#[tokio::test]
async fn webhooks_of_all_types_keep_working_during_certificate_rotation() {
    let mut world = World::new().await;
    let name = world.name();
    deploy(&world, &name).await;
    let before = world.ready(&name).await;
    let (service, secret) = service(&world).await;
    let first = secrets(&world).get(&secret).await.expect("the Secret");
    assert_eq!(first.type_.as_deref(), Some("kubernetes.io/tls"));
    let owner = first.metadata.labels.as_ref().and_then(|labels| labels.get("core.rukpak.io/owner-name"));
    assert_eq!(owner, Some(&name));
    let old = identity(&first);
    assert_trusted(&world, &old, &service).await;

    // The new CA is announced before its certificate is served, and a controller that restarts in between continues.
    rotate(&world, &name, "2026-11-21T18:00:00Z").await;
    let announced =
        wait::until(&secrets(&world), &secret, "announced", |secret| entry(secret, "next.crt").is_some()).await;
    assert_eq!(announced.as_ref().map(identity), Some(old.clone()), "the announced certificate is not served yet");
    world.stop_controller().await;
    world.start_controller();
    let replaced = wait::until(&secrets(&world), &secret, "replaced", |secret| {
        entry(secret, "tls.crt").is_some_and(|certificate| certificate != old.certificate)
    })
    .await;
    let new = identity(&replaced.expect("the Secret"));
    assert_trusted(&world, &new, &service).await;
    // Pods may still serve the old Secret for a while.
    assert_trusted(&world, &old, &service).await;

    let after = world.ready(&name).await;
    let ready = |deployment| condition(deployment, "Ready").expect("Ready").last_transition_time.clone();
    assert_eq!(ready(&after), ready(&before), "the BundleDeployment stayed ready");
    let release = |deployment: &chandler_api::BundleDeployment| {
        deployment.status.as_ref().and_then(|status| status.release.clone()).expect("a release")
    };
    assert_eq!(release(&after), release(&before), "certificates are not part of the release");

    world.delete(&name).await;
    assert!(
        secrets(&world).get_opt(&secret).await.expect("a response").is_none(),
        "the Secret is deleted with its owner"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_deleted_certificate_is_reissued_and_the_old_one_is_no_longer_trusted() {
    let world = World::new().await;
    let name = world.name();
    deploy(&world, &name).await;
    world.ready(&name).await;
    let (service, secret) = service(&world).await;
    let first = secrets(&world).get(&secret).await.expect("the Secret");
    let old = identity(&first);

    secrets(&world).delete(&secret, &DeleteParams::default()).await.expect("the deletion is accepted");
    let again = wait::until(&secrets(&world), &secret, "created again", |secret| {
        secret.is_some_and(|secret| secret.metadata.uid != first.metadata.uid)
    })
    .await;
    let new = identity(&again.expect("the Secret"));
    wait::eventually("every caBundle trusts only the new certificate", || async {
        trusted_by(&world, &new, &service).await.values().all(Result::is_ok)
            && trusted_by(&world, &old, &service).await.values().all(Result::is_err)
    })
    .await;

    // An edited caBundle is repaired.
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
    let forged = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]);
    let forged: Patch<()> = Patch::Json(serde_json::from_value(forged).expect("a patch"));
    validating.patch("vberth.harbour.example.com", &PatchParams::default(), &forged).await.expect("an edit");
    wait::until(&validating, "vberth.harbour.example.com", "repaired", |webhook| {
        webhook.is_some_and(|webhook| {
            webhook.webhooks.iter().flatten().all(|webhook| webhook.client_config.ca_bundle.is_some())
        })
    })
    .await;
    assert_trusted(&world, &new, &service).await;
    world.ready(&name).await;
    world.finish().await;
}

#[tokio::test]
async fn a_foreign_secret_is_never_overwritten() {
    let world = World::new().await;
    let name = world.name();
    let foreign: Secret = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "harbour-operator-service-cert"}, "stringData": {"mine": "yes"}
    }))
    .expect("a Secret");
    let foreign = secrets(&world).create(&PostParams::default(), &foreign).await.expect("a Secret");
    deploy(&world, &name).await;
    let deployment = world.condition(&name, "Ready", "False", "ObjectCollision").await;
    let message = &condition(&deployment, "Ready").expect("Ready").message;
    assert!(
        message.starts_with(&format!(
            "Secret {}/harbour-operator-service-cert already exists and was created by ",
            world.namespace
        )),
        "{message}"
    );
    let now = secrets(&world).get("harbour-operator-service-cert").await.expect("the Secret");
    assert_eq!(now.metadata.resource_version, foreign.metadata.resource_version);

    secrets(&world)
        .delete("harbour-operator-service-cert", &DeleteParams::default())
        .await
        .expect("the deletion is accepted");
    world.ready(&name).await;
    world.finish().await;
}

/// Any provisioner may declare certificates: the plain one takes the declaration from the bundle.
#[tokio::test]
async fn aggregated_apis_get_a_ca_bundle_with_any_provisioner() {
    let world = World::new().await;
    let name = world.name();
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "harbour", "annotations": {SERVING_SECRET: "harbour-tls"}},
        "spec": {"ports": [{"port": 443}]},
    });
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {
            "name": "v1.tides.harbour.example.com",
            "annotations": {"certificates.chandler.dev/inject-ca": "true"},
        },
        "spec": {
            "group": "tides.harbour.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "service": {"name": "harbour", "namespace": world.namespace},
        },
    });
    let manifest = |value: &Value| serde_json::to_string(value).expect("JSON");
    let bundle = Bundle::empty()
        .with("manifests/service.json", &manifest(&service))
        .with("manifests/api.json", &manifest(&api_service));
    let image = world.push(&bundle).await;
    world.deploy(&name, PLAIN, &image).await;
    world.condition(&name, "Installed", "True", "InstallationSucceeded").await;

    let secret = secrets(&world).get("harbour-tls").await.expect("the Secret");
    let api_services: Api<APIService> = Api::all(world.client.clone());
    let api_service = api_services.get("v1.tides.harbour.example.com").await.expect("the APIService");
    let bundle = api_service.spec.and_then(|spec| spec.ca_bundle).expect("a CA bundle");
    let server = format!("harbour.{}.svc", world.namespace);
    assert_eq!(handshake(&identity(&secret), &bundle.0, &server), Ok(()));
    handshake(&identity(&secret), &bundle.0, "harbour.elsewhere.svc").expect_err("a certificate for one Service");

    // A reference to a missing Service is reported with its object.
    let lost = bundles_with_lost_target();
    let image = world.push(&lost).await;
    world.deploy(&name, PLAIN, &image).await;
    let deployment = world.condition(&name, "Ready", "False", "InvalidOutput").await;
    let message = &condition(&deployment, "Ready").expect("Ready").message;
    assert!(message.contains("APIService.apiregistration.k8s.io v1.lost.example.com: "), "{message}");
    world.finish().await;
}

fn bundles_with_lost_target() -> Bundle {
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.lost.example.com", "annotations": {"certificates.chandler.dev/inject-ca": "true"}},
        "spec": {
            "group": "lost.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "service": {"name": "nobody", "namespace": "nowhere"},
        },
    });
    Bundle::empty().with("manifests/api.json", &api_service.to_string())
}
