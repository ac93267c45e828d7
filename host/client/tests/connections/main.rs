//! The client against a TLS server on the loopback interface, which counts connections and streams.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot continue must fail"
)]

mod proxies;
mod server;

use std::time::Duration;

use bytes::Bytes;
use chandler_client::{KeepAlive, MAX_STREAMS, with_keep_alive};
use futures::future::join_all;
use http::{Request, Response, Version};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};

use self::server::{PATIENCE, Server, Silence};

const WATCH: &str = "/api/v1/pods?&watch=true&timeoutSeconds=290";

/// Sends a request, and waits for the head of the response.
async fn send(client: &Client, path: &str) -> Response<Body> {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = tokio::time::timeout(PATIENCE, client.send(request)).await;
    let response = response.unwrap_or_else(|_| panic!("{path} is not answered")).unwrap();
    assert_eq!(response.status(), 200);
    response
}

/// Opens watches at once, and waits for the first event of each.
async fn watches(client: &Client, count: usize) -> Vec<Response<Body>> {
    join_all((0..count).map(|_| async move {
        let mut watch = send(client, WATCH).await;
        assert!(event(&mut watch).await.is_some());
        watch
    }))
    .await
}

/// The next piece of a watch; `None` at its end and after an error.
async fn event(watch: &mut Response<Body>) -> Option<Bytes> {
    let frame = tokio::time::timeout(PATIENCE, watch.body_mut().frame()).await.expect("an event or the end");
    frame.and_then(Result::ok).and_then(|frame| frame.into_data().ok())
}

async fn text(client: &Client, path: &str) -> Bytes {
    send(client, path).await.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn watches_and_requests_share_few_connections() {
    let server = Server::start().await;
    let client = server.client();
    let (watches, answers) =
        tokio::join!(watches(&client, 200), join_all((0..100).map(|_| text(&client, "/api/v1/pods"))));
    assert!(answers.iter().all(|answer| answer == "{}"));
    assert_eq!(server.watches(), 200);
    let connections = server.accepted();
    assert!(connections <= 200_usize.div_ceil(MAX_STREAMS) + 100_usize.div_ceil(MAX_STREAMS), "{connections}");
    assert!(watches.iter().all(|watch| watch.version() == Version::HTTP_2));
}

#[tokio::test]
async fn a_closed_watch_frees_its_place() {
    let server = Server::start().await;
    let client = server.client();
    let mut open = watches(&client, MAX_STREAMS).await;
    assert_eq!(server.accepted(), 1);
    for _ in 0..3 {
        open.truncate(10);
        server.watches_become(10).await;
        open.extend(watches(&client, MAX_STREAMS - 10).await);
        assert_eq!(server.accepted(), 1);
    }
    open.extend(watches(&client, 1).await);
    assert_eq!(server.accepted(), 2);
}

#[tokio::test]
async fn a_cancelled_request_frees_its_place() {
    let server = Server::start().await;
    let client = server.client();
    for _ in 0..3 {
        let requests = (0..MAX_STREAMS).map(|_| tokio::spawn(send_forever(client.clone()))).collect::<Vec<_>>();
        server.unanswered_become(MAX_STREAMS).await;
        for request in requests {
            request.abort();
        }
        server.unanswered_become(0).await;
    }
    assert_eq!(server.accepted(), 1);
}

async fn send_forever(client: Client) {
    let request = Request::get(server::UNANSWERED).body(Body::empty()).unwrap();
    let _ = client.send(request).await;
}

#[tokio::test]
async fn surplus_connections_are_closed_after_a_burst() {
    let server = Server::start().await;
    let client = server.client();
    let mut open = watches(&client, 3 * MAX_STREAMS).await;
    assert_eq!(server.connections(), 3);
    open.truncate(1);
    server.watches_become(1).await;
    open.extend(watches(&client, 1).await);
    server.connections_become(2).await;
}

#[tokio::test]
async fn the_limit_of_the_server_is_respected() {
    let server = Server::with_streams(10).await;
    let client = server.client();
    let open = watches(&client, 25).await;
    assert_eq!((open.len(), server.accepted()), (25, 3));
    assert_eq!(text(&client, "/api/v1/pods").await, "{}");
}

#[tokio::test]
async fn a_watch_that_is_not_read_delays_no_other() {
    let server = Server::start().await;
    let client = server.client();
    let flooded = join_all((1..MAX_STREAMS).map(|_| send(&client, server::FLOOD))).await;
    // Each has received as much as it may.
    server.floods_stall(flooded.len()).await;
    let mut watch = send(&client, WATCH).await;
    assert!(event(&mut watch).await.is_some());
    assert_eq!(server.accepted(), 1);
}

#[tokio::test]
async fn a_server_without_http2_is_spoken_to_in_http1() {
    let server = Server::http1().await;
    let client = server.client();
    let open = watches(&client, 3).await;
    assert!(open.iter().all(|watch| watch.version() == Version::HTTP_11));
    assert_eq!(text(&client, "/api/v1/pods").await, "{}");
    // The version is asked for once.
    let connections = server.accepted();
    for _ in 0..3 {
        assert_eq!(text(&client, "/api/v1/pods").await, "{}");
    }
    assert_eq!(server.accepted(), connections);
}

#[tokio::test]
async fn a_silent_connection_ends_its_watches() {
    let server = Server::start().await;
    let silence = Silence::before(&server).await;
    // The server answers pings within the timeout before the silence, and after it on the new connection, even on a busy machine.
    let keep_alive = KeepAlive { interval: Duration::from_millis(100), timeout: Duration::from_secs(2) };
    let client = with_keep_alive(server.config(silence.address), keep_alive).unwrap().build();
    let mut open = watches(&client, 3).await;
    silence.begin();
    for watch in &mut open {
        assert_eq!(event(watch).await, None);
    }
    // New connections pass.
    assert_eq!(watches(&client, 1).await.len(), 1);
}

#[tokio::test]
async fn an_idle_watch_stays_open_while_the_server_answers_pings() {
    let server = Server::start().await;
    let silence = Silence::before(&server).await;
    let keep_alive = KeepAlive { interval: Duration::from_millis(5), timeout: PATIENCE };
    let mut config = server.config(silence.address);
    config.read_timeout = Some(Duration::from_secs(2));
    let client = with_keep_alive(config, keep_alive).unwrap().build();
    let mut watch = send(&client, WATCH).await;
    assert!(event(&mut watch).await.is_some());
    // 500 pings and their answers, which take longer than the timeout.
    silence.bytes_pass(500 * 78).await;
    server.send_event();
    assert!(event(&mut watch).await.is_some());
}

#[tokio::test]
async fn the_head_of_a_response_has_a_timeout() {
    let server = Server::start().await;
    let mut config = server.config(server.address);
    config.read_timeout = Some(Duration::from_millis(20));
    let client = chandler_client::client(config).unwrap();
    let request = Request::get(server::UNANSWERED).body(Body::empty()).unwrap();
    let error = client.send(request).await.unwrap_err();
    assert!(error.to_string().contains("did not answer within 20ms"), "{error}");
}

#[tokio::test]
async fn a_connection_that_the_server_closes_is_replaced() {
    let server = Server::start().await;
    let client = server.client();
    let mut watch = send(&client, WATCH).await;
    assert!(event(&mut watch).await.is_some());
    for _ in 0..3 {
        assert_eq!(text(&client, "/api/v1/pods").await, "{}");
        server.close_gracefully();
    }
    assert_eq!(text(&client, "/api/v1/pods").await, "{}");
    // The watch continues on a connection that takes no new stream.
    server.send_event();
    assert!(event(&mut watch).await.is_some());
}

#[tokio::test]
async fn a_failed_connection_fails_all_that_wait_for_it_and_is_tried_again() {
    let server = Server::start().await;
    let silence = Silence::before(&server).await;
    silence.refuse(true);
    let client = chandler_client::client(server.config(silence.address)).unwrap();
    let request = || client.send(Request::get(WATCH).body(Body::empty()).unwrap());
    for failed in join_all((0..10).map(|_| request())).await {
        let error = failed.unwrap_err().to_string();
        assert!(error.contains("failed to connect to https://127.0.0.1"), "{error}");
    }
    silence.refuse(false);
    assert_eq!(watches(&client, 1).await.len(), 1);
}

#[tokio::test]
async fn a_server_that_hangs_up_before_its_settings_fails_the_request() {
    let server = Server::hanging_up().await;
    let mut config = server.config(server.address);
    // With a timeout, it would end the wait.
    config.connect_timeout = None;
    let client = chandler_client::client(config).unwrap();
    let request = client.send(Request::get(WATCH).body(Body::empty()).unwrap());
    let failed = tokio::time::timeout(PATIENCE, request).await.expect("an error, not silence").unwrap_err();
    assert!(failed.to_string().contains("failed to connect to https://127.0.0.1"), "{failed}");
}

#[tokio::test]
async fn requests_name_the_program_and_its_version() {
    for server in [Server::start().await, Server::http1().await] {
        text(&server.client(), "/api/v1/pods").await;
        assert_eq!(server.agent(), concat!("chandler/", env!("CARGO_PKG_VERSION")));
        let mut config = server.config(server.address);
        config.headers.push((http::header::USER_AGENT, http::HeaderValue::from_static("mine/1")));
        text(&chandler_client::client(config).unwrap(), "/api/v1/pods").await;
        assert_eq!(server.agent(), "mine/1");
    }
}
