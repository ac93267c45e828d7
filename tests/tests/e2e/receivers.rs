//! Webhooks of registries and git servers: a request has sources polled at once, and does nothing else.

use std::{net::SocketAddr, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_api::{Catalog, ConditionType, Receiver, find_condition};
use chandler_controller::ServiceOptions;
use chandler_tests::{ContentClient, World, bundles::Bundle, content_service::Answer, oidc_issuer::OidcIssuer, wait};
use hmac::{Hmac, Mac as _};
use http::StatusCode;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::{
    PLAIN, catalogs,
    class_updates::{self, PLAIN_COMPONENT},
    events::notes,
    monitoring::{address, certificate},
};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210";
const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";

/// A world whose controller polls every hour, and receives webhooks.
struct Hooks {
    world: World,
    address: SocketAddr,
    sender: ContentClient,
}

impl Hooks {
    async fn new() -> Self {
        let mut world = World::new().await;
        world.stop_controller().await;
        let authority = certificate(&world).await;
        let address = address();
        world.start_controller_changed(|options| {
            let (service, tls_secret) = ("chandler-receiver".to_owned(), Some("metrics".to_owned()));
            options.receiver = Some(ServiceOptions { address, service, tls_secret });
            options.image_poll_interval = Duration::from_hours(1);
        });
        let sender = ContentClient::at(&format!("https://{address}"), &authority, None);
        let hooks = Self { world, address, sender };
        hooks.secret("token", TOKEN).await;
        hooks
    }

    fn receivers(&self) -> Api<Receiver> {
        Api::all(self.world.client.clone())
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.world.client.clone(), &self.world.system_namespace)
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.world.run())
    }

    async fn secret(&self, name: &str, token: &str) {
        let secret = json!({"metadata": {"name": name}, "stringData": {"token": token}});
        let secret: Secret = serde_json::from_value(secret).expect("a Secret");
        self.secrets().create(&PostParams::default(), &secret).await.expect("a Secret");
    }

    /// Creates a Receiver for all BundleDeployments of the run.
    async fn create(&self, name: &str, kind: &str, secret: &str) -> Receiver {
        let spec = json!({"type": kind, "secretRef": {"name": secret},
                          "resources": [{"kind": "BundleDeployment", "name": "*"}]});
        self.world.create(json!({"metadata": {"name": self.name(name)}, "spec": spec})).await
    }

    /// The path of a Receiver whose condition Ready has this reason.
    async fn path(&self, name: &str, reason: &str) -> Option<String> {
        let (name, receivers) = (self.name(name), self.receivers());
        let found = wait::until(&receivers, &name, reason, |receiver| {
            let status = receiver.and_then(|receiver| receiver.status.as_ref());
            let ready = status.and_then(|status| find_condition(&status.conditions, ConditionType::Ready));
            let generation = receiver.and_then(|receiver| receiver.metadata.generation);
            ready.is_some_and(|ready| ready.reason == reason && ready.observed_generation == generation)
        });
        found.await.expect("it exists").status.expect("a status").webhook_path
    }

    /// Waits until a request has an answer: the address is bound, and the certificate is there.
    async fn listening(&self) {
        wait::eventually("the controller listens", async || {
            tokio::net::TcpStream::connect(self.address).await.is_ok()
                && self.sender.send(http::Method::GET, "/", &[]).await.is_ok()
        })
        .await;
    }

    async fn push(&self, text: &str) -> (String, String) {
        let image = self.world.push(&Bundle::empty().with("manifests/note.yaml", text)).await;
        let (repository, digest) = image.split_once('@').expect("an image by digest");
        (repository.to_owned(), digest.to_owned())
    }

    async fn runs(&self, name: &str, digest: &str) {
        wait::until(&self.world.deployments(), name, "the new image", |deployment| {
            let status = deployment.and_then(|deployment| deployment.status.as_ref());
            let source = status.and_then(|status| status.resolved_source.as_ref()?.image.as_ref());
            source.is_some_and(|image| image.reference.ends_with(digest))
        })
        .await;
    }

    /// The requests for manifests to the registry so far.
    fn polls(&self) -> usize {
        self.world.registry.requests().iter().filter(|text| text.contains("/manifests/")).count()
    }
}

fn signature(token: &str, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(token.as_bytes()).expect("any length");
    format!("sha256={}", hex::encode(mac.chain_update(body).finalize().into_bytes()))
}

async fn signed(sender: &ContentClient, path: &str, token: &str, body: &Value) -> Answer {
    let body = body.to_string();
    let answer = sender.post(path, &[("x-signature", &signature(token, body.as_bytes()))], body.as_bytes()).await;
    assert!(answer.body.is_empty(), "{}", answer.text());
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_installed_when_its_webhook_arrives_and_by_no_other_request() {
    let hooks = Hooks::new().await;
    let (repository, first) = hooks.push(NOTE).await;
    let name = hooks.world.name();
    hooks.world.deploy(&name, PLAIN, &format!("{repository}:latest")).await;
    hooks.runs(&name, &first).await;
    hooks.world.ready(&name).await;
    hooks.create("pushes", "generic-hmac", "token").await;
    hooks.secret("other", OTHER).await;
    hooks.create("others", "generic-hmac", "other").await;
    let path = hooks.path("pushes", "ReceiverReady").await.expect("a path");
    let others = hooks.path("others", "ReceiverReady").await.expect("a path");
    assert_ne!(path, others);
    hooks.listening().await;

    let (_, second) = hooks.push(&NOTE.replace("note", "second")).await;
    let (body, sender) = (json!({"image": format!("{repository}:latest")}), &hooks.sender);
    let before = hooks.polls();
    let elsewhere = json!({"image": "registry.example.com/team/elsewhere:latest"});
    for (answer, expected) in [
        (signed(sender, &path, OTHER, &body).await, StatusCode::UNAUTHORIZED),
        (signed(sender, &others, TOKEN, &body).await, StatusCode::UNAUTHORIZED),
        (sender.post(&path, &[], body.to_string().as_bytes()).await, StatusCode::UNAUTHORIZED),
        (signed(sender, &format!("{path}0"), TOKEN, &body).await, StatusCode::NOT_FOUND),
        (signed(sender, "/hooks/", TOKEN, &body).await, StatusCode::NOT_FOUND),
        (sender.get(&path, &[]).await, StatusCode::NOT_FOUND),
        (signed(sender, &path, TOKEN, &elsewhere).await, StatusCode::ACCEPTED),
    ] {
        assert_eq!(answer.status, expected);
    }
    assert_eq!(hooks.polls(), before, "none of these polls the source");
    assert_eq!(signed(sender, &path, TOKEN, &body).await.status, StatusCode::ACCEPTED);
    hooks.runs(&name, &second).await;
    hooks.world.ready(&name).await;

    // The same request again changes nothing.
    let version = hooks.world.deployments().get(&name).await.expect("it exists").metadata.generation;
    assert_eq!(signed(sender, &path, TOKEN, &body).await.status, StatusCode::ACCEPTED);
    let (_, third) = hooks.push(&NOTE.replace("note", "third")).await;
    assert_eq!(signed(sender, &path, TOKEN, &json!({})).await.status, StatusCode::ACCEPTED, "it names nothing");
    hooks.runs(&name, &third).await;
    assert_eq!(hooks.world.deployments().get(&name).await.expect("it exists").metadata.generation, version);
    hooks.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_and_a_class_follow_a_push_long_before_their_interval() {
    let hooks = Hooks::new().await;
    let (world, sender) = (&hooks.world, &hooks.sender);
    let (catalog, class) = (hooks.name("offers"), hooks.name("renders"));
    let index = catalogs::push(&world.registry, &[("a.yaml", &catalogs::package("a", &["1.0.0"]))]).await;
    let spec = json!({"source": {"type": "image", "image": {"ref": index}}});
    let _: Catalog = world.create(json!({"metadata": {"name": catalog}, "spec": spec})).await;
    let first = catalogs::digest(&catalogs::ready(world, &catalog).await);
    let (component, digest) = class_updates::push(world, class_updates::wasm(PLAIN_COMPONENT));
    class_updates::create_class(world, &class, json!({}), &component, &digest).await;
    let resources = json!([{"kind": "Catalog", "name": catalog}, {"kind": "ProvisionerClass", "name": "*"}]);
    let spec = json!({"type": "generic-hmac", "secretRef": {"name": "token"}, "resources": resources});
    let _: Receiver = world.create(json!({"metadata": {"name": hooks.name("pushes")}, "spec": spec})).await;
    let path = hooks.path("pushes", "ReceiverReady").await.expect("a path");
    hooks.listening().await;

    catalogs::push(&world.registry, &[("a.yaml", &catalogs::package("a", &["1.0.0", "1.1.0"]))]).await;
    let (_, second) = class_updates::push(world, class_updates::rebuilt(class_updates::wasm(PLAIN_COMPONENT)));
    let before = hooks.polls();
    let send = async |image: &str| signed(sender, &path, TOKEN, &json!({"image": image})).await.status;
    assert_eq!(send("registry.example.com/team/elsewhere:latest").await, StatusCode::ACCEPTED);
    assert_eq!(hooks.polls(), before, "this polls neither");
    assert_eq!(send(&index).await, StatusCode::ACCEPTED);
    wait::until(&Api::<Catalog>::all(world.client.clone()), &catalog, "the new content", |catalog| {
        let digest = catalog.and_then(|catalog| catalog.status.as_ref()?.digest.as_ref());
        digest.is_some_and(|digest| *digest != first)
    })
    .await;
    assert_eq!(send(&component).await, StatusCode::ACCEPTED);
    class_updates::has_component(world, &class, &second).await;
    hooks.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_installed_with_an_identity_token_of_the_issuer_and_with_no_other_one() {
    let hooks = Hooks::new().await;
    let (issuer, stranger) = (OidcIssuer::start().await, OidcIssuer::start().await);
    let (repository, first) = hooks.push(NOTE).await;
    let name = hooks.world.name();
    hooks.world.deploy(&name, PLAIN, &format!("{repository}:latest")).await;
    hooks.runs(&name, &first).await;
    hooks.world.ready(&name).await;
    let with_authority = Patch::Merge(json!({"stringData": {"ca.crt": issuer.authority()}}));
    hooks.secrets().patch("token", &PatchParams::default(), &with_authority).await.expect("it is changed");
    let resources = json!([{"kind": "BundleDeployment", "name": "*"}]);
    let oidc = json!({"issuer": issuer.url(), "audience": "pushes", "claims": {"email": "robot@example.com"}});
    let spec = json!({"type": "google-pubsub", "secretRef": {"name": "token"}, "resources": resources, "oidc": oidc});
    let _: Receiver = hooks.world.create(json!({"metadata": {"name": hooks.name("pushes")}, "spec": spec})).await;
    let path = hooks.path("pushes", "ReceiverReady").await.expect("a path");
    hooks.listening().await;

    let (_, second) = hooks.push(&NOTE.replace("note", "second")).await;
    let image = repository.split_once('/').map(|(_, path)| path).expect("a path");
    let data = json!({"action": "INSERT", "tag": format!("europe-docker.pkg.dev/{image}:latest")}).to_string();
    let body =
        json!({"message": {"data": STANDARD.encode(data), "messageId": "1"}, "subscription": "pushes"}).to_string();
    let send = async |token: &str| {
        let authorization = format!("Bearer {token}");
        hooks.sender.post(&path, &[("authorization", &authorization)], body.as_bytes()).await.status
    };
    let claims = |changes: Value| {
        let mut claims = json!({"aud": "pushes", "email": "robot@example.com", "email_verified": true});
        claims.as_object_mut().expect("claims").extend(changes.as_object().expect("claims").clone());
        claims
    };
    let robot = claims(json!({}));
    let before = hooks.polls();
    for token in [
        TOKEN.to_owned(),
        issuer.sign(&claims(json!({"email": "other@example.com"}))),
        issuer.sign(&claims(json!({"email_verified": false}))),
        issuer.sign(&claims(json!({"aud": "others"}))),
        issuer.sign(&claims(json!({"exp": 1}))),
        stranger.sign(&robot),
    ] {
        assert_eq!(send(&token).await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!((issuer.fetches(), stranger.fetches()), (0, 0), "claims are compared before anything is fetched");
    for token in [
        stranger.sign(&claims(json!({"iss": issuer.url()}))),
        issuer.sign_with_another_key("one", &robot),
        issuer.sign_with_another_key("two", &robot),
    ] {
        assert_eq!(send(&token).await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(hooks.polls(), before, "none of these polls the source");
    assert_eq!(send(&issuer.sign(&robot)).await, StatusCode::ACCEPTED);
    hooks.runs(&name, &second).await;
    hooks.world.ready(&name).await;
    assert_eq!((issuer.fetches(), stranger.fetches()), (1, 0), "the keys are kept");
    hooks.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_would_accept_everyone_accepts_no_requests() {
    let hooks = Hooks::new().await;
    let receiver = |oidc: &Value| {
        let resources = json!([{"kind": "BundleDeployment", "name": "*"}]);
        json!({"type": "oidc", "secretRef": {"name": "token"}, "resources": resources, "oidc": oidc})
    };
    let issuer = "https://issuer.example.com";
    let name = hooks.name("pushes");
    let everyone = json!({"issuer": issuer});
    let _: Receiver = hooks.world.create(json!({"metadata": {"name": name}, "spec": receiver(&everyone)})).await;
    assert_eq!(hooks.path("pushes", "InvalidOidc").await, None);
    let merge = PatchParams::default();
    let one = Patch::Merge(json!({"spec": receiver(&json!({"issuer": issuer, "subjects": ["robot"]}))}));
    hooks.receivers().patch(&name, &merge, &one).await.expect("it is changed");
    assert!(hooks.path("pushes", "ReceiverReady").await.is_some());
    let broken = Patch::Merge(json!({"stringData": {"ca.crt": "no certificate"}}));
    hooks.secrets().patch("token", &merge, &broken).await.expect("it is changed");
    assert_eq!(hooks.path("pushes", "InvalidOidc").await, None);
    for oidc in [
        json!({"issuer": "http://issuer.example.com", "subjects": ["x"]}),
        json!({"issuer": issuer, "subjects": ["*"]}),
    ] {
        let refused = hooks.receivers().patch(&name, &merge, &Patch::Merge(json!({"spec": receiver(&oidc)}))).await;
        assert!(refused.is_err(), "{oidc}");
    }
    hooks.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_follows_its_secret_and_its_spec() {
    let hooks = Hooks::new().await;
    hooks.create("pushes", "harbor", "late").await;
    assert_eq!(hooks.path("pushes", "TokenNotFound").await, None);
    hooks.secret("late", "too short").await;
    assert_eq!(hooks.path("pushes", "InvalidToken").await, None);
    let token = |token: &str| Patch::Merge(json!({"stringData": {"token": token}}));
    let merge = PatchParams::default();
    hooks.secrets().patch("late", &merge, &token(TOKEN)).await.expect("it is changed");
    let path = hooks.path("pushes", "ReceiverReady").await.expect("a path");
    hooks.listening().await;
    let body =
        json!({"type": "PUSH_ARTIFACT", "event_data": {"repository": {"repo_full_name": "team/shop"}}}).to_string();
    let send = async |path: &str, token: &str| {
        hooks.sender.post(path, &[("authorization", token)], body.as_bytes()).await.status
    };
    assert_eq!(send(&path, TOKEN).await, StatusCode::ACCEPTED);

    let name = hooks.name("pushes");
    let suspend = |suspend: bool| Patch::Merge(json!({"spec": {"suspend": suspend}}));
    hooks.receivers().patch(&name, &merge, &suspend(true)).await.expect("it is changed");
    assert_eq!(hooks.path("pushes", "Suspended").await.as_deref(), Some(path.as_str()));
    assert_eq!(send(&path, TOKEN).await, StatusCode::FORBIDDEN);
    hooks.receivers().patch(&name, &merge, &suspend(false)).await.expect("it is changed");
    hooks.path("pushes", "ReceiverReady").await;

    // Another token: the earlier path is unknown.
    hooks.secrets().patch("late", &merge, &token(OTHER)).await.expect("it is changed");
    wait::eventually("the path changes", async || {
        hooks.path("pushes", "ReceiverReady").await.is_some_and(|now| now != path)
    })
    .await;
    let renewed = hooks.path("pushes", "ReceiverReady").await.expect("a path");
    assert_eq!(send(&path, TOKEN).await, StatusCode::NOT_FOUND);
    assert_eq!(send(&renewed, TOKEN).await, StatusCode::UNAUTHORIZED);
    assert_eq!(send(&renewed, OTHER).await, StatusCode::ACCEPTED);

    hooks.secrets().delete("late", &DeleteParams::default()).await.expect("it is deleted");
    assert_eq!(hooks.path("pushes", "TokenNotFound").await, None);
    assert_eq!(send(&renewed, OTHER).await, StatusCode::NOT_FOUND);
    for reason in ["TokenNotFound", "InvalidToken", "ReceiverReady", "Suspended"] {
        wait::eventually(reason, async || !notes(&hooks.world, &name, reason).await.is_empty()).await;
    }
    hooks.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_address_a_receiver_says_what_is_missing() {
    let world = World::new().await;
    let name = format!("{}-pushes", world.run());
    let spec = json!({"type": "quay", "secretRef": {"name": "token"}, "resources": [{"kind": "Catalog", "name": "*"}]});
    let _: Receiver = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    wait::until(&Api::<Receiver>::all(world.client.clone()), &name, "not served", |receiver| {
        let status = receiver.and_then(|receiver| receiver.status.as_ref());
        let ready = status.and_then(|status| find_condition(&status.conditions, ConditionType::Ready));
        ready.is_some_and(|ready| ready.reason == "ReceiversNotServed" && ready.message.contains("--receiver-address"))
    })
    .await;
    world.finish().await;
}
