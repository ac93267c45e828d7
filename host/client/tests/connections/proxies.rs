//! Connections through proxies on the loopback interface.

use chandler_test_support::proxy::Proxy;
use http::Version;
use kube::Client;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::{
    send,
    server::{PATIENCE, Server},
    text,
};

/// A client of a server that is known as `127.0.0.1`, without a port that is open: only a proxy leads there.
fn client(server: &Server, proxy: &str) -> Client {
    let mut config = server.config("127.0.0.1:1".parse().unwrap());
    config.proxy_url = Some(proxy.parse().unwrap());
    chandler_client::client(config).unwrap()
}

#[tokio::test]
async fn a_tunnel_carries_both_versions_of_http() {
    for (server, version) in [(Server::start().await, Version::HTTP_2), (Server::http1().await, Version::HTTP_11)] {
        let proxy = Proxy::start(server.address, None).await;
        let client = client(&server, &format!("http://ann:s%40cret@{}", proxy.address));
        assert_eq!(send(&client, "/api/v1/pods").await.version(), version);
        assert_eq!(text(&client, "/api/v1/pods").await, "{}");
        let asked: Vec<String> = proxy.heads().iter().flat_map(|head| head.lines()).map(str::to_owned).collect();
        assert!(asked.contains(&"CONNECT 127.0.0.1:1 HTTP/1.1".to_owned()), "{asked:?}");
        // `ann:s@cret`.
        assert!(asked.contains(&"Proxy-Authorization: Basic YW5uOnNAY3JldA==".to_owned()), "{asked:?}");
    }
}

#[tokio::test]
async fn socks_resolves_names_at_the_proxy() {
    let server = Server::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, target) = (listener.local_addr().unwrap(), server.address);
    let proxy = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 3];
        client.read_exact(&mut greeting).await.unwrap();
        client.write_all(&[5, 0]).await.unwrap();
        // The version, CONNECT, a reserved byte, a domain and its length.
        let mut head = [0; 5];
        client.read_exact(&mut head).await.unwrap();
        let mut rest = vec![0; usize::from(head[4]) + 2];
        client.read_exact(&mut rest).await.unwrap();
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        tokio::spawn(async move {
            let mut server = TcpStream::connect(target).await.unwrap();
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
        (head, rest)
    });
    let mut config = server.config("127.0.0.1:1".parse().unwrap());
    config.cluster_url = "https://api.invalid".parse().unwrap();
    config.tls_server_name = Some("127.0.0.1".to_owned());
    config.proxy_url = Some(format!("socks5://{address}").parse().unwrap());
    let client = chandler_client::client(config).unwrap();
    assert_eq!(text(&client, "/api/v1/pods").await, "{}");
    let (head, rest) = proxy.await.unwrap();
    assert_eq!((head[1], head[3], &rest[..]), (1, 3, &b"api.invalid\x01\xbb"[..]));
}

#[tokio::test]
async fn a_refusal_names_the_proxy_without_its_password() {
    let server = Server::start().await;
    for (status, expected) in [
        ("407 Proxy Authentication Required", "the proxy requires credentials"),
        ("403 Forbidden", "the proxy refused to connect"),
    ] {
        let proxy = Proxy::start(server.address, Some(status)).await;
        let client = client(&server, &format!("http://ann:s3cret@{}", proxy.address));
        let error = tokio::time::timeout(PATIENCE, client.apiserver_version()).await.unwrap().unwrap_err();
        let causes: Vec<_> = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
            .map(ToString::to_string)
            .collect();
        let through = format!("failed to connect through the proxy http://{}", proxy.address);
        assert!(causes.contains(&through), "{causes:?}");
        let refusal = causes.last().and_then(|cause| chandler_proxies::refusal(cause)).unwrap();
        assert!(refusal.starts_with(expected), "{causes:?}");
        assert!(!format!("{error:?} {causes:?}").contains("s3cret"), "{error:?}");
    }
}
