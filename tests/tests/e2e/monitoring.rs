//! The probes and the metrics of the controller.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
};

use chandler_certificates::{Policy, ServingCertificate};
use chandler_controller::{Options, ServiceOptions, Timing};
use chandler_tests::{
    ContentClient, World, bundles::Bundle, controller_thread::ControllerThread, crash_point::CrashPoint, wait,
};
use http::StatusCode;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::PostParams};
use serde_json::json;

use crate::{PLAIN, content_service::user, leader_election};

/// A free address on loopback.
pub(crate) fn address() -> SocketAddr {
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    socket.local_addr().expect("an address")
}

/// The status and the last line of the answer to a probe, or nothing if no one listens.
fn probe(address: SocketAddr, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer.lines().last()?.to_owned()))
}

/// Waits until a probe has this answer.
pub(crate) async fn answers(address: SocketAddr, path: &str, status: u16, text: &str) {
    let expected = Some((status, text.to_owned()));
    wait::eventually(&format!("{path}: {status} {text}"), async || {
        let answer = tokio::task::spawn_blocking({
            let path = path.to_owned();
            move || probe(address, &path)
        });
        answer.await.expect("an answer") == expected
    })
    .await;
}

/// A Secret with a certificate for loopback, and its authority.
pub(crate) async fn certificate(world: &World) -> String {
    let names = ["127.0.0.1".to_owned()].into();
    let serving = ServingCertificate::issue(&names, time::OffsetDateTime::now_utc(), &Policy::default());
    let serving = serving.expect("a certificate");
    let secret: Secret = serde_json::from_value(json!({
        "metadata": {"name": "metrics"}, "type": "kubernetes.io/tls",
        "stringData": {"tls.crt": serving.certificate, "tls.key": serving.key},
    }))
    .expect("a Secret");
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
    secrets.create(&PostParams::default(), &secret).await.expect("a Secret");
    serving.authority
}

pub(crate) fn metrics_at(address: SocketAddr) -> ServiceOptions {
    ServiceOptions { address, service: "chandler-metrics".to_owned(), tls_secret: Some("metrics".to_owned()) }
}

#[tokio::test]
async fn a_running_controller_is_ready_and_has_metrics_for_callers_who_may_read_them() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let authority = certificate(&world).await;
    let (probes, metrics) = (address(), address());
    world.start_controller_changed(|options| {
        options.probe_address = Some(probes);
        options.metrics = Some(metrics_at(metrics));
    });
    answers(probes, "/readyz", 200, "the controller reconciles").await;
    answers(probes, "/livez", 200, "the controller reconciles").await;

    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\n";
    let image = world.push(&Bundle::empty().with("manifests/bell.yaml", map)).await;
    world.deploy(&world.name(), PLAIN, &image).await;
    world.ready(&world.name()).await;

    let url = format!("https://{metrics}");
    let anonymous = ContentClient::at(&url, &authority, None);
    assert_eq!(anonymous.get("/metrics", &[]).await.status, StatusCode::UNAUTHORIZED);
    let stranger = ContentClient::at(&url, &authority, Some(user(&world, "stranger", &["/bundles/*"]).await));
    assert_eq!(stranger.get("/metrics", &[]).await.status, StatusCode::FORBIDDEN);
    let reader = ContentClient::at(&url, &authority, Some(user(&world, "reader", &["/metrics"]).await));
    assert_eq!(reader.get("/bundles/x.tgz", &[]).await.status, StatusCode::FORBIDDEN);

    let answer = reader.get("/metrics", &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = answer.text();
    for line in [
        "chandler_leader 1",
        "chandler_objects{kind=\"BundleDeployment\"} 1",
        "chandler_conditions{kind=\"BundleDeployment\",condition=\"Ready\",status=\"True\",reason=\"Succeeded\"} 1",
        "chandler_provisioner_calls_total{class=\"core-rukpak-io-plain\",outcome=\"completed\"} 1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
    for beginning in [
        "chandler_reconciles_total{kind=\"BundleDeployment\",outcome=\"completed\",reason=\"",
        "chandler_fetches_total{source=\"image\",host=\"private\",outcome=\"completed\"} ",
        "chandler_reconcile_step_duration_seconds_count{step=\"roll_out\"} ",
        "chandler_revisions{outcome=\"Succeeded\"} 1",
        "chandler_api_requests_total{verb=\"create\",resource=\"configmaps\",code=\"201\"} ",
        "process_resident_memory_bytes ",
    ] {
        assert!(text.lines().any(|line| line.starts_with(beginning)), "{beginning}\n{text}");
    }
    // A user who may read metrics learns nothing of tenants.
    for secret in [world.name(), world.namespace.clone(), image] {
        assert!(!text.contains(&secret), "{secret}\n{text}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_controller_that_waits_for_the_lease_is_ready_and_says_so() {
    let world = leader_election::world().await;
    let candidate = |identity: &str| {
        let probes = address();
        let options = leader_election::candidate(&world, world.client.clone(), identity, Timing::default());
        let options = Options { probe_address: Some(probes), ..options };
        (ControllerThread::start(world.config(), options, CrashPoint::Never), probes)
    };
    let (first, first_probes) = candidate("first");
    answers(first_probes, "/readyz", 200, "the controller reconciles").await;
    let (second, second_probes) = candidate("second");
    answers(second_probes, "/readyz", 200, "another controller holds the Lease; this one waits for it").await;
    first.stop().await;
    assert_eq!(probe(first_probes, "/livez"), None, "it has ended");
    answers(second_probes, "/readyz", 200, "the controller reconciles").await;
    second.stop().await;
    world.finish().await;
}
