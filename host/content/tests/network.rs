//! What a hostile registry can make this process send, ask and wait for.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use chandler_content::{
    ContentError, Credentials, FailureClass, ImageAccess, ImageOptions, ImageReference, Images, Limits,
    RegistrySettings,
};
use chandler_registries::Registries;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::common::store;

/// What a server makes of the head of a request, and of its own address.
type Answer = dyn Fn(&str, SocketAddr) -> String + Send + Sync;

/// A server that answers as it likes, and remembers what it was sent.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    _accepting: JoinSet<()>,
}

impl Server {
    async fn start(answer: impl Fn(&str, SocketAddr) -> String + Send + Sync + 'static) -> Self {
        Self::serve(Arc::new(answer), None).await
    }

    /// Sends what `answer` says at once, and then one byte after the other.
    async fn dripping(answer: impl Fn(&str, SocketAddr) -> String + Send + Sync + 'static) -> Self {
        Self::serve(Arc::new(answer), Some(Duration::from_millis(5))).await
    }

    async fn serve(answer: Arc<Answer>, drip: Option<Duration>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let remembered = Arc::clone(&requests);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, remembered) = (Arc::clone(&answer), Arc::clone(&remembered));
                connections.spawn(async move {
                    let _ = connection(stream, address, &*answer, &remembered, drip).await;
                });
            }
        });
        Self { address, requests, _accepting: accepting }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Answers one request, and closes.
async fn connection(
    stream: TcpStream,
    address: SocketAddr,
    answer: &Answer,
    remembered: &Mutex<Vec<String>>,
    drip: Option<Duration>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    head.push_str(&String::from_utf8_lossy(&body));
    let text = answer(&head, address);
    remembered.lock().unwrap().push(head);
    stream.write_all(text.as_bytes()).await?;
    stream.flush().await?;
    if let Some(pause) = drip {
        // Until the other end has enough of it.
        loop {
            stream.write_all(b"x").await?;
            stream.flush().await?;
            tokio::time::sleep(pause).await;
        }
    }
    Ok(())
}

fn response(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

fn redirect(to: &str) -> String {
    response("307 Temporary Redirect", &format!("Location: {to}\r\n"), "")
}

fn challenged(challenge: &str) -> String {
    response("401 Unauthorized", &format!("WWW-Authenticate: {challenge}\r\n"), "")
}

fn basic() -> Credentials {
    Credentials::Basic { username: "user".to_owned(), password: "s3cret".to_owned() }
}

async fn resolve(
    server: SocketAddr,
    credentials: Option<Credentials>,
    mut options: ImageOptions,
) -> Result<(), ContentError> {
    // Most of these servers ask for credentials, which a registry without TLS gets only if it is listed.
    options.plain_http_registries.push(server.to_string());
    let (_directory, store) = store(Limits::default());
    let reference: ImageReference = format!("{server}/x:v1").parse().unwrap();
    let access = ImageAccess { credentials, ..ImageAccess::default() };
    Images::new(store, options).resolve(&reference, &access).await.map(drop)
}

fn authorized(request: &str) -> bool {
    request.to_ascii_lowercase().contains("authorization:")
}

#[tokio::test]
async fn what_a_token_server_is_sent_follows_no_redirect() {
    for credentials in [basic(), Credentials::IdentityToken("s3cret".to_owned())] {
        for status in ["301", "302", "303", "307", "308"] {
            let thief = Server::start(|_, _| response("200 OK", "", "{\"token\": \"t\"}")).await;
            let to = thief.address;
            let registry = Server::start(move |request, here| {
                if request.contains(" /token") {
                    response(&format!("{status} Moved"), &format!("Location: http://{to}/token\r\n"), "")
                } else {
                    challenged(&format!("Bearer realm=\"http://{here}/token\""))
                }
            })
            .await;
            let error =
                resolve(registry.address, Some(credentials.clone()), ImageOptions::default()).await.unwrap_err();
            assert_eq!(error.reason(), "RegistryProtocol", "{error}");
            assert!(error.to_string().ends_with("credentials follow no redirect"), "{error}");
            assert_eq!(thief.requests(), [""; 0], "{status}");
        }
    }
}

#[tokio::test]
async fn a_password_goes_to_the_registry_alone() {
    let back = Arc::new(Mutex::new(None::<SocketAddr>));
    let home = Arc::clone(&back);
    let elsewhere = Server::start(move |_, _| {
        let home = home.lock().unwrap().unwrap();
        redirect(&format!("http://{home}/back"))
    })
    .await;
    let to = elsewhere.address;
    let registry = Server::start(move |request, _| {
        if request.contains(" /back") {
            response("404 Not Found", "", "")
        } else if authorized(request) {
            redirect(&format!("http://name:password@{to}/storage"))
        } else {
            challenged("Basic realm=\"r\"")
        }
    })
    .await;
    *back.lock().unwrap() = Some(registry.address);
    let error = resolve(registry.address, Some(basic()), ImageOptions::default()).await.unwrap_err();
    assert_eq!(error.reason(), "ImageNotFound", "{error}");
    let sent = registry.requests();
    // The manifest with HEAD and with GET, and the tags, which show whether the repository exists.
    let expected = [false, true, false, true, false, true, false];
    assert_eq!(sent.iter().map(|request| authorized(request)).collect::<Vec<_>>(), expected, "{sent:?}");
    let stored = elsewhere.requests();
    assert!(stored.len() == 3 && stored.iter().all(|request| !authorized(request)), "{stored:?}");
}

#[tokio::test]
async fn whom_a_registry_leads_to_is_shown_nothing_and_is_not_quoted() {
    for challenge in ["Basic realm=\"r\"", "Bearer realm=\"http://127.0.0.1:1/token\""] {
        let elsewhere = Server::start(move |_, _| {
            let quoted = "{\"errors\": [{\"code\": \"X\", \"message\": \"inner matters\"}]}";
            response("401 Unauthorized", &format!("WWW-Authenticate: {challenge}\r\n"), quoted)
        })
        .await;
        let to = elsewhere.address;
        let registry = Server::start(move |request, _| {
            if request.starts_with("HEAD") {
                response("200 OK", "", "")
            } else {
                redirect(&format!("http://{to}/inner"))
            }
        })
        .await;
        let error = resolve(registry.address, Some(basic()), ImageOptions::default()).await.unwrap_err();
        assert_eq!(error.reason(), "Unauthorized", "{error}");
        assert!(!error.to_string().contains("inner matters"), "{error}");
        let asked = elsewhere.requests();
        assert!(asked.len() == 1 && !authorized(&asked[0]), "{asked:?}");
    }
}

#[tokio::test]
async fn nothing_leads_to_where_clouds_keep_credentials() {
    let targets = ["http://169.254.169.254/latest", "http://[fe80::1]/", "http://0.0.0.0:1/", "http://2852039166/"];
    let mut messages = Vec::new();
    for target in targets {
        let redirects = Server::start(move |_, _| redirect(target)).await;
        let names = Server::start(move |_, _| challenged(&format!("Bearer realm=\"{target}\""))).await;
        for (server, allowed) in
            [(&redirects, Vec::new()), (&names, vec![target.split('/').nth(2).unwrap().to_owned()])]
        {
            let options = ImageOptions { plain_http_registries: allowed, ..ImageOptions::default() };
            let error = resolve(server.address, None, options).await.unwrap_err();
            // An address that is spelled as a number is not the one that is listed.
            if error.reason() == "RegistryProtocol" && target.contains("2852039166") {
                continue;
            }
            assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "AddressNotAllowed"), "{error}");
            messages.push(error.to_string().replace(&server.address.to_string(), "registry"));
        }
    }
    messages.sort();
    messages.dedup();
    insta::assert_snapshot!(messages.join("\n"), @"
    image registry/x:v1: registry leads to 0.0.0.0:1, which is not connected to: its address is one that no server of a source may have (link-local, multicast or unspecified)
    image registry/x:v1: registry leads to 169.254.169.254, which is not connected to: its address is one that no server of a source may have (link-local, multicast or unspecified)
    image registry/x:v1: registry leads to [fe80::1], which is not connected to: its address is one that no server of a source may have (link-local, multicast or unspecified)
    ");
    let reference: ImageReference = "169.254.169.254/x:v1".parse().unwrap();
    let (_directory, store) = store(Limits::default());
    let images = Images::new(store, ImageOptions::default());
    let error = images.resolve(&reference, &ImageAccess::default()).await.unwrap_err();
    assert_eq!(error.reason(), "AddressNotAllowed", "{error}");
}

#[tokio::test]
async fn a_registry_of_this_machine_may_lead_to_another_of_it() {
    let elsewhere = Server::start(|_, _| response("404 Not Found", "", "")).await;
    let port = elsewhere.address.port();
    let registry = Server::start(move |_, _| redirect(&format!("http://localhost:{port}/storage"))).await;
    let error = resolve(registry.address, None, ImageOptions::default()).await.unwrap_err();
    assert_eq!(error.reason(), "ImageNotFound", "{error}");
    // The manifest with HEAD and with GET, and the tags, which show whether the repository exists.
    assert_eq!(elsewhere.requests().len(), 3);
}

/// Options with the text of a registries.conf.
fn with_settings(text: &str) -> ImageOptions {
    let mut registries = Registries::default();
    registries.add_file("registries.conf".as_ref(), text).unwrap();
    let registries = RegistrySettings::new(registries, Vec::new());
    ImageOptions { registries, ..ImageOptions::default() }
}

#[tokio::test]
async fn nothing_leads_to_a_blocked_registry() {
    let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let blocked = Server::start(move |_, _| {
        response("200 OK", &format!("Docker-Content-Digest: {digest}\r\n"), "{\"token\": \"t\"}")
    })
    .await;
    let port = blocked.address.port();
    for (scope, host, is_refused) in [
        ("127.0.0.1", "127.0.0.1", true),
        ("localhost", "LOCALHOST", true),
        // Other spellings of the address.
        ("127.0.0.1", "127.1", true),
        ("127.0.0.1", "2130706433", true),
        ("127.0.0.1", "[::ffff:127.0.0.1]", true),
        // Only the images that are named so.
        ("127.0.0.1/team", "127.0.0.1", false),
    ] {
        let (name, path) =
            scope.split_once('/').map_or((scope, String::new()), |(name, path)| (name, format!("/{path}")));
        let settings = format!("[[registry]]\nlocation = \"{name}:{port}{path}\"\nblocked = true\n");
        let target = format!("http://{host}:{port}");
        let to = target.clone();
        let redirects = Server::start(move |_, _| redirect(&format!("{to}/storage"))).await;
        let realm = target.clone();
        let names = Server::start(move |request, _| {
            if authorized(request) {
                response("200 OK", &format!("Docker-Content-Digest: {digest}\r\n"), "")
            } else {
                challenged(&format!("Bearer realm=\"{realm}/token\""))
            }
        })
        .await;
        // Without TLS, a token server has to have an address of this machine in its usual form.
        let servers = [&redirects, &names].into_iter().take(if host.starts_with('[') { 1 } else { 2 });
        for server in servers {
            let outcome = resolve(server.address, Some(basic()), with_settings(&settings)).await;
            assert_eq!(outcome.is_err(), is_refused, "{settings} {target}: {outcome:?}");
            if let Err(error) = outcome {
                assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "Blocked"), "{error}");
                let expected = format!(
                    ", which is not contacted: {name}:{port} is blocked by the settings for registries (`blocked`, or `NeverContactSource`)"
                );
                assert!(error.to_string().contains(" leads to ") && error.to_string().ends_with(&expected), "{error}");
            }
        }
        assert_eq!(blocked.requests().is_empty(), is_refused, "{settings} {target}");
    }
}

#[tokio::test]
async fn a_mirror_of_a_blocked_registry_does_not_lead_to_it() {
    let blocked = Server::start(|_, _| response("200 OK", "", "{}")).await;
    let to = blocked.address;
    let mirror = Server::start(move |_, _| redirect(&format!("http://{to}/v2/x/manifests/v1"))).await;
    let settings = format!(
        "[[registry]]\nlocation = \"{to}\"\nblocked = true\n[[registry.mirror]]\nlocation = \"{}\"\n",
        mirror.address
    );
    let mut options = with_settings(&settings);
    options.plain_http_registries.push(mirror.address.to_string());
    let error = resolve(to, None, options).await.unwrap_err();
    assert_eq!(error.reason(), "Blocked", "{error}");
    assert_eq!((mirror.requests().len(), blocked.requests().len()), (1, 0));
}

#[tokio::test]
async fn a_blocked_registry_with_an_image_that_is_not_blocked_leads_to_itself() {
    let registry = Server::start(|request, here| {
        if request.contains(" /storage") {
            response("404 Not Found", "", "")
        } else if authorized(request) {
            redirect(&format!("http://{here}/storage"))
        } else if request.contains(" /token") {
            response("200 OK", "", "{\"token\": \"t\"}")
        } else {
            challenged(&format!("Bearer realm=\"http://{here}/token\""))
        }
    })
    .await;
    let here = registry.address;
    let settings =
        format!("[[registry]]\nlocation = \"{here}\"\nblocked = true\n[[registry]]\nlocation = \"{here}/x\"\n");
    let error = resolve(here, None, with_settings(&settings)).await.unwrap_err();
    assert_eq!(error.reason(), "ImageNotFound", "{error}");
    assert!(registry.requests().iter().any(|request| request.contains(" /storage")), "{:?}", registry.requests());
}

#[tokio::test]
async fn a_token_server_that_finds_nothing_says_nothing_about_the_repository() {
    for (status, reason) in [
        ("404 Not Found", "Unauthorized"),
        ("403 Forbidden", "Unauthorized"),
        ("500 Internal Server Error", "RegistryUnavailable"),
    ] {
        let tokens = Server::start(move |_, _| response(status, "", "")).await;
        let realm = tokens.address;
        let registry = Server::start(move |_, _| challenged(&format!("Bearer realm=\"http://{realm}/token\""))).await;
        let error = resolve(registry.address, Some(basic()), ImageOptions::default()).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        assert!(error.to_string().ends_with(&format!("{realm} answered {status}")), "{error}");
        assert_eq!(registry.requests().len(), 1, "the tags are not asked for");
    }
}

#[tokio::test]
async fn a_registry_without_head_is_asked_with_get() {
    // The server behind signs its addresses for GET alone.
    let signed = Server::start(|request, _| {
        if request.starts_with("HEAD") { response("403 Forbidden", "", "") } else { response("200 OK", "", "{}") }
    })
    .await;
    let location = format!("Location: http://{}/signed\r\n", signed.address);
    for (status, headers) in [
        ("404 Not Found", ""),
        ("405 Method Not Allowed", ""),
        ("400 Bad Request", ""),
        ("307 Temporary Redirect", location.as_str()),
    ] {
        let (refusal, is_redirect) = (response(status, headers, ""), !headers.is_empty());
        let registry = Server::start(move |request, _| {
            if request.starts_with("HEAD") || is_redirect { refusal.clone() } else { response("200 OK", "", "{}") }
        })
        .await;
        let resolved = resolve(registry.address, None, ImageOptions::default()).await;
        assert!(resolved.is_ok(), "{status}: {resolved:?}");
    }
}

#[tokio::test]
async fn what_a_registry_says_of_a_refusal_is_shown() {
    let denied = "{\"errors\": [{\"code\": \"DENIED\", \"message\": \"the trial has ended\"}]}";
    let registry = Server::start(|request, _| {
        if request.starts_with("HEAD") {
            response("400 Bad Request", "", "")
        } else {
            response("400 Bad Request", "", denied)
        }
    })
    .await;
    let error = resolve(registry.address, None, ImageOptions::default()).await.unwrap_err();
    assert!(error.to_string().ends_with("400 Bad Request: the trial has ended"), "{error}");
}

#[tokio::test]
async fn a_circle_of_redirects_ends() {
    let registry = Server::start(|_, here| redirect(&format!("http://{here}/again"))).await;
    let error = resolve(registry.address, None, ImageOptions::default()).await.unwrap_err();
    assert!(error.to_string().ends_with("redirects too often"), "{error}");
    assert_eq!(registry.requests().len(), 6);
}

#[tokio::test]
async fn a_body_that_drips_ends() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    let registry = Server::dripping(move |request, _| {
        if request.starts_with("HEAD") { "HTTP/1.1 200 OK\r\n\r\n".to_owned() } else { head.to_owned() }
    })
    .await;
    // A byte is never long in coming, so that only the rate is too low.
    let options = ImageOptions { rate_window: Duration::from_millis(160), ..ImageOptions::default() };
    let error = resolve(registry.address, None, options).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "TooSlow"), "{error}");
    let expected = format!("image {0}/x:v1: {0} sent less than 1024 bytes a second", registry.address);
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_head_that_drips_ends() {
    let registry = Server::dripping(|_, _| "HTTP/1.1 200 OK\r\nName: ".to_owned()).await;
    let options = ImageOptions { idle_timeout: Duration::from_millis(200), ..ImageOptions::default() };
    let error = resolve(registry.address, None, options).await.unwrap_err();
    assert_eq!(error.reason(), "NetworkFailed", "{error}");
    assert!(error.to_string().ends_with("did not answer in time"), "{error}");
}
