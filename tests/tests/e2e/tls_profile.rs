//! The TLS profile of an OpenShift cluster: what the controller accepts follows it, with the shipped permissions.

use std::{
    net::{SocketAddr, TcpStream},
    sync::Arc,
};

use chandler_controller::{Options, ServiceOptions};
use chandler_tests::{World, wait};
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    version::{TLS12, TLS13},
};
use serde_json::{Value, json};

use crate::{
    controller_rights::deployed,
    monitoring::{address, certificate},
    permissions::apply,
    registries::define,
};

/// Sets the profile of the cluster.
async fn set(api: &Api<DynamicObject>, profile: Value) {
    let object = json!({"apiVersion": "config.openshift.io/v1", "kind": "APIServer", "metadata": {"name": "cluster"},
                        "spec": {"tlsSecurityProfile": profile}});
    let parameters = PatchParams::apply("e2e").force();
    api.patch("cluster", &parameters, &Patch::Apply(object)).await.expect("the object is accepted");
}

/// Whether the server completes a handshake of this version.
fn accepts(server: SocketAddr, authority: &str, version: &'static SupportedProtocolVersion) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).expect("a certificate")).expect("an authority");
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_protocol_versions(&[version]).expect("a version of the provider");
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").expect("an address");
    let mut connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let Ok(mut stream) = TcpStream::connect(server) else { return false };
    while connection.is_handshaking() {
        if connection.complete_io(&mut stream).is_err() {
            return false;
        }
    }
    true
}

/// Waits until the server accepts TLS 1.2, or refuses it. It accepts TLS 1.3 in both cases.
async fn tls_12_is(accepted: bool, server: SocketAddr, authority: &str) {
    wait::eventually(&format!("TLS 1.2 accepted: {accepted}"), async || {
        let authority = authority.to_owned();
        let answers = tokio::task::spawn_blocking(move || {
            (accepts(server, &authority, &TLS13), accepts(server, &authority, &TLS12))
        });
        answers.await.expect("an answer") == (true, accepted)
    })
    .await;
}

#[tokio::test]
async fn connections_follow_the_profile_of_the_cluster() {
    let mut world = World::new().await;
    if !world.is_embedded() {
        eprintln!("skipped: a cluster that is shared gets no CRD of OpenShift");
        return world.finish().await;
    }
    world.stop_controller().await;
    let api = define(&world, "APIServer", "apiservers").await;
    for file in ["rbac.yaml", "rbac-openshift.yaml"] {
        apply(&world, &deployed(&world, file)).await;
    }
    let (metrics, authority) = (address(), certificate(&world).await);
    set(&api, json!({"type": "Modern", "modern": {}})).await;
    let change = |options: &mut Options| {
        let (service, tls_secret) = ("chandler-metrics".to_owned(), Some("metrics".to_owned()));
        options.metrics = Some(ServiceOptions { address: metrics, service, tls_secret });
        options.follow_tls_profile = true;
    };
    world.start_controller_deployed(change).await;
    tls_12_is(false, metrics, &authority).await;
    // Without a restart.
    set(&api, json!({"type": "Intermediate", "intermediate": {}})).await;
    tls_12_is(true, metrics, &authority).await;
    let custom = json!({"ciphers": ["ECDHE-ECDSA-AES128-GCM-SHA256"], "minTLSVersion": "VersionTLS12"});
    set(&api, json!({"type": "Custom", "custom": custom})).await;
    tls_12_is(true, metrics, &authority).await;
    set(&api, json!({"type": "Custom", "custom": {"ciphers": ["ECDHE-RSA-AES128-GCM-SHA256"]}})).await;
    // The certificate has a key for ECDSA, which this suite cannot use.
    tls_12_is(false, metrics, &authority).await;
    // Before its account is deleted with the world.
    world.stop_controller().await;
    world.start_controller();
    world.finish().await;
}
