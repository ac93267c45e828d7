//! Tests the registry with the clients of other tools.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{collections::BTreeMap, fs};

use chandler_devregistry::{Authentication, Fault, FaultOn, Options, Registry};
use oci_client::{
    Client, Reference,
    client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol, Config, ImageLayer},
    secrets::RegistryAuth,
};
use reqwest::{Method, StatusCode, header::CONTENT_TYPE};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

fn install_provider() {
    // Fails harmlessly if another test in this process has installed it.
    rustls::crypto::ring::default_provider().install_default().ok();
}

fn client(registry: &Registry) -> Client {
    install_provider();
    let mut config = ClientConfig { protocol: ClientProtocol::Http, ..ClientConfig::default() };
    if let Some(pem) = registry.certificate_authority() {
        config.protocol = ClientProtocol::Https;
        config.extra_root_certificates =
            vec![Certificate { encoding: CertificateEncoding::Pem, data: pem.as_bytes().to_vec() }];
    }
    Client::try_from(config).unwrap()
}

fn basic() -> RegistryAuth {
    RegistryAuth::Basic("user".to_owned(), "secret".to_owned())
}

#[tokio::test]
async fn oci_client_pushes_and_pulls() {
    for (tls, authentication, auth) in [
        (false, Authentication::None, RegistryAuth::Anonymous),
        (true, Authentication::None, RegistryAuth::Anonymous),
        (true, Authentication::Basic { username: "user".to_owned(), password: "secret".to_owned() }, basic()),
        (false, Authentication::Token { username: "user".to_owned(), password: "secret".to_owned() }, basic()),
    ] {
        let name = format!("tls {tls}, {authentication:?}");
        let registry = Registry::start(Options { tls, authentication, ..Options::default() }).await.unwrap();
        let client = client(&registry);
        let reference: Reference = format!("{}/team/app:v1", registry.host()).parse().unwrap();
        let layers = [b"one".to_vec(), vec![7; 3 << 20]].map(|bytes| ImageLayer {
            data: bytes.into(),
            media_type: LAYER.to_owned(),
            annotations: None,
        });
        let config = Config::oci_v1(b"{}".to_vec(), None);
        client.push(&reference, &layers, config, &auth, None).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let pulled = client.pull(&reference, &auth, vec![LAYER]).await.unwrap();
        assert_eq!(
            pulled.layers.iter().map(|layer| &layer.data).collect::<Vec<_>>(),
            layers.each_ref().map(|it| &it.data)
        );
        let tags = client.list_tags(&reference, &auth, None, None).await.unwrap();
        assert_eq!(tags.tags, ["v1"], "{name}");
    }
}

#[tokio::test]
async fn requests_without_valid_credentials_are_rejected() {
    for authentication in [
        Authentication::Basic { username: "user".to_owned(), password: "other".to_owned() },
        Authentication::Token { username: "user".to_owned(), password: "other".to_owned() },
    ] {
        let registry = Registry::start(Options { authentication, ..Options::default() }).await.unwrap();
        registry.push_component("c", "v1", b"wasm".to_vec()).unwrap();
        let reference: Reference = format!("{}/c:v1", registry.host()).parse().unwrap();
        for auth in [RegistryAuth::Anonymous, basic()] {
            client(&registry).pull_manifest(&reference, &auth).await.unwrap_err();
        }
    }
}

#[tokio::test]
async fn responses_follow_the_specification() {
    install_provider();
    let registry = Registry::start(Options { most_bytes: 100, ..Options::default() }).await.unwrap();
    registry.push_blob("a", "text/plain", b"blob".to_vec()).unwrap();
    let base = format!("http://{}", registry.host());
    let blob = "sha256:fa2c8cc4f28176bbeed4b736df569a34c79cd3723e9ec42f9674b4d46ac6b8b8";
    let none = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let http = reqwest::Client::new();
    let long = "x".repeat(101);
    for (method, path, body, status, code) in [
        (Method::GET, "/v2/".to_owned(), "", StatusCode::OK, "{}"),
        (Method::GET, "/".to_owned(), "", StatusCode::NOT_FOUND, "UNSUPPORTED"),
        (Method::GET, format!("/v2/a/blobs/{blob}"), "", StatusCode::OK, "blob"),
        (Method::GET, format!("/v2/b/blobs/{blob}"), "", StatusCode::NOT_FOUND, "BLOB_UNKNOWN"),
        (Method::GET, format!("/v2/a/blobs/{none}"), "", StatusCode::NOT_FOUND, "BLOB_UNKNOWN"),
        (Method::GET, "/v2/a/manifests/v1".to_owned(), "", StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN"),
        (Method::GET, "/v2/A/manifests/v1".to_owned(), "", StatusCode::BAD_REQUEST, "NAME_INVALID"),
        (Method::GET, "/v2/nothing/tags/list".to_owned(), "", StatusCode::NOT_FOUND, "NAME_UNKNOWN"),
        (Method::DELETE, "/v2/a/manifests/v1".to_owned(), "", StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED"),
        (Method::PUT, "/v2/a/manifests/v1".to_owned(), "{", StatusCode::BAD_REQUEST, "MANIFEST_INVALID"),
        (Method::PUT, format!("/v2/a/manifests/{none}"), "{}", StatusCode::BAD_REQUEST, "DIGEST_INVALID"),
        (Method::PUT, "/v2/a/manifests/.v1".to_owned(), "{}", StatusCode::BAD_REQUEST, "TAG_INVALID"),
        (Method::POST, format!("/v2/a/blobs/uploads/?digest={none}"), "x", StatusCode::BAD_REQUEST, "DIGEST_INVALID"),
        (Method::POST, format!("/v2/b/blobs/uploads/?mount={blob}&from=a"), "", StatusCode::CREATED, ""),
        (Method::GET, format!("/v2/b/blobs/{blob}"), "", StatusCode::OK, "blob"),
        (Method::POST, "/v2/a/blobs/uploads/".to_owned(), &long, StatusCode::BAD_REQUEST, "SIZE_INVALID"),
    ] {
        let request = http.request(method.clone(), format!("{base}{path}"));
        let response = request.header(CONTENT_TYPE, "x").body(body.to_owned()).send().await.unwrap();
        assert_eq!(response.status(), status, "{method} {path}");
        let text = response.text().await.unwrap();
        assert!(text.contains(code), "{method} {path}: {text}");
    }
}

#[tokio::test]
async fn manifests_must_refer_to_pushed_content() {
    install_provider();
    let registry = Registry::start(Options::default()).await.unwrap();
    let missing = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let manifest = format!("{{\"layers\":[{{\"digest\":\"{missing}\"}}]}}");
    let url = format!("http://{}/v2/a/manifests/v1", registry.host());
    let response = reqwest::Client::new().put(url).body(manifest).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert!(response.text().await.unwrap().contains("MANIFEST_BLOB_UNKNOWN"));
}

#[tokio::test]
async fn the_same_directory_gives_the_same_image() {
    let one = tempfile::tempdir().unwrap();
    let two = tempfile::tempdir().unwrap();
    for (directory, names) in [(&one, ["b", "a"]), (&two, ["a", "b"])] {
        fs::create_dir(directory.path().join("manifests")).unwrap();
        for name in names {
            fs::write(directory.path().join("manifests").join(name), name).unwrap();
        }
    }
    let registry = Registry::start(Options::default()).await.unwrap();
    let labels = BTreeMap::from([("label".to_owned(), "value".to_owned())]);
    let first = registry.push_bundle_directory("x", "v1", one.path(), &labels).await.unwrap();
    let second = registry.push_bundle_directory("x", "v2", two.path(), &labels).await.unwrap();
    assert_eq!(first.digest, second.digest);
    assert_eq!(first.reference, format!("{}/x:v1", registry.host()));
}

#[tokio::test]
async fn links_out_of_the_directory_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc/hostname", directory.path().join("link")).unwrap();
    let registry = Registry::start(Options::default()).await.unwrap();
    let error = registry.push_bundle_directory("x", "v1", directory.path(), &BTreeMap::new()).await.unwrap_err();
    assert!(error.to_string().contains("link: is neither"), "{error}");
}

#[tokio::test]
async fn the_size_is_bounded_and_faults_are_injected() {
    install_provider();
    let registry = Registry::start(Options { most_bytes: 10, ..Options::default() }).await.unwrap();
    let error = registry.push_component("x", "v1", vec![0; 11]).unwrap_err();
    assert_eq!(error.to_string(), "the registry is limited to 10 bytes");
    registry.set_fault(Some((FaultOn::Everything, Fault::Status(429))));
    let url = format!("http://{}/v2/", registry.host());
    let response = reqwest::get(&url).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    registry.set_fault(None);
    assert_eq!(reqwest::get(&url).await.unwrap().status(), StatusCode::OK);
    assert_eq!(registry.requests(), ["GET /v2/", "GET /v2/"]);
    let address = registry.address();
    drop(registry);
    // The port closes once the task has ended; then connecting fails.
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// The status of a request with these headers that starts an upload; also checks that no upload was started if it
/// failed.
async fn upload(registry: &Registry, headers: &[(&str, &str)]) -> StatusCode {
    let url = format!("http://{}/v2/team/app/blobs/uploads/", registry.host());
    let mut request = reqwest::Client::new().request(Method::POST, url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    assert_eq!(response.headers().contains_key("location"), response.status().is_success());
    response.status()
}

#[tokio::test]
async fn web_pages_can_neither_push_nor_pull() {
    install_provider();
    let registry = Registry::start(Options::default()).await.unwrap();
    registry.push_component("c", "v1", b"wasm".to_vec()).unwrap();
    let rebound = ("host", "attacker.example:5000");
    for headers in [
        &[rebound][..],
        &[rebound, ("origin", "http://attacker.example:5000")],
        &[("origin", "https://attacker.example")],
        &[("origin", "http://localhost:3000"), ("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site")],
        &[("origin", "null")],
    ] {
        assert_eq!(upload(&registry, headers).await, StatusCode::FORBIDDEN, "{headers:?}");
        let url = format!("http://{}/v2/c/manifests/v1", registry.host());
        let mut request = reqwest::Client::new().get(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{headers:?}");
        assert!(response.text().await.unwrap().contains("DENIED"));
    }
    assert!(registry.requests().is_empty(), "{:?}", registry.requests());
    // The headers of docker, oras, crane and oci-client: a host, and none of the browser headers.
    for host in [registry.host(), "localhost:5000".to_owned(), "host.docker.internal:5000".to_owned()] {
        assert_eq!(upload(&registry, &[("host", &host), ("user-agent", "docker/28.0")]).await, StatusCode::ACCEPTED);
    }
}

#[tokio::test]
async fn content_in_a_directory_is_there_after_a_restart() {
    install_provider();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("registry");
    let start =
        async || Registry::start(Options { directory: Some(path.clone()), ..Options::default() }).await.unwrap();
    let first = start().await;
    let pushed = first.push_component("team/app", "v1", b"wasm".to_vec()).unwrap();
    first.push_component("team/app", "broken", b"other".to_vec()).unwrap();
    drop(first);

    let other = chandler_core::Digest::of(b"other");
    std::fs::write(path.join("team+app/blobs").join(other.hex()), "damaged").unwrap();
    let second = start().await;
    let read = async |path: String| {
        let response = reqwest::get(format!("http://{}/v2/team/app/{path}", second.host())).await.unwrap();
        (response.status(), response.headers().get(CONTENT_TYPE).cloned(), response.bytes().await.unwrap())
    };
    let (status, media_type, manifest) = read("manifests/v1".to_owned()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(media_type.unwrap(), "application/vnd.oci.image.manifest.v1+json");
    assert_eq!(chandler_core::Digest::of(&manifest), pushed.digest);
    let (status, _, blob) = read(format!("blobs/{}", chandler_core::Digest::of(b"wasm"))).await;
    assert_eq!((status, &blob[..]), (StatusCode::OK, &b"wasm"[..]));
    assert_eq!(read(format!("blobs/{other}")).await.0, StatusCode::NOT_FOUND, "it does not match its digest");
}
