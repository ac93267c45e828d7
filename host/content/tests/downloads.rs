//! Archives of HTTP servers, ordinary and hostile ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::{
    Tar, ZipFile, files,
    server::{Server, Then, response},
    store, zip,
};
use chandler_content::{
    ArchiveUrl, Archives, ContentError, Credentials, FailureClass, ImageAccess, ImageOptions, Images, Limits,
    ResolvedArchive, Tree,
};
use chandler_core::Digest;
use chandler_devregistry::{Image, Layer, Options, Registry};
use chandler_turns::Requester;
use tempfile::TempDir;

fn archive() -> Vec<u8> {
    Tar::new().file("manifests/a.yaml", "a").gzip()
}

struct Setup {
    archives: Archives,
    _directory: TempDir,
}

fn setup_with(options: ImageOptions, limits: Limits) -> Setup {
    let (directory, store) = store(limits);
    Setup { archives: Images::new(store, options).archives(), _directory: directory }
}

fn setup() -> Setup {
    setup_with(ImageOptions::default(), Limits::default())
}

impl Setup {
    async fn get(&self, url: &str) -> Result<Tree, ContentError> {
        self.get_as(url, None).await
    }

    async fn get_as(&self, url: &str, credentials: Option<Credentials>) -> Result<Tree, ContentError> {
        let access = ImageAccess { credentials, ..ImageAccess::default() };
        let resolved = self.archives.resolve(&url.parse().unwrap(), &access).await?;
        self.archives.fetch(&resolved, &access).await
    }
}

fn basic() -> Credentials {
    Credentials::Basic { username: "user".to_owned(), password: "s3cret".to_owned() }
}

fn has(request: &str, header: &str) -> bool {
    request.lines().any(|line| line.eq_ignore_ascii_case(header))
}

#[tokio::test]
async fn every_format_is_the_same_tree() {
    let tar = || Tar::new().file("manifests/a.yaml", "a").plain();
    let zstd = ruzstd::encoding::compress_to_vec(tar().as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    let bodies = [tar(), archive(), zstd, zip(&[ZipFile::new("manifests/a.yaml", b"a")], false)];
    let bodies = Arc::new(bodies);
    let server = Server::start(Then::Close, move |head| {
        let number: usize = head.split(['/', ' ']).nth(2).unwrap().parse().unwrap();
        response("200 OK", "", &bodies[number])
    })
    .await;
    let setup = setup();
    for number in 0..4 {
        let tree = setup.get(&server.url(&number.to_string())).await.unwrap();
        assert_eq!(files(&tree), [("manifests/a.yaml".to_owned(), "a".to_owned())], "{number}");
    }
    assert_eq!(server.requests().len(), 4, "what was resolved is not downloaded again");
}

#[tokio::test]
async fn an_unchanged_archive_is_not_downloaded_again() {
    let noon = "Sun, 06 Nov 1994 12:00:00 GMT";
    for (validator, condition) in [
        ("ETag: \"one\"".to_owned(), "If-None-Match: \"one\"".to_owned()),
        ("ETag: W/\"one\"".to_owned(), "If-None-Match: W/\"one\"".to_owned()),
        (format!("Last-Modified: {noon}\r\nDate: Sun, 06 Nov 1994 12:00:09 GMT"), format!("If-Modified-Since: {noon}")),
    ] {
        let (sent, asked) = (format!("{validator}\r\n"), condition.clone());
        let server = Server::start(Then::Close, move |head| {
            if has(head, &asked) {
                response("304 Not Modified", "", b"")
            } else {
                response("200 OK", &sent, &archive())
            }
        })
        .await;
        let (setup, access, url) = (setup(), ImageAccess::default(), server.url("a.tgz"));
        let first = setup.archives.resolve(&url.parse().unwrap(), &access).await.unwrap();
        assert_eq!(*first.digest(), Digest::of(&archive()));
        assert!(setup.archives.is_unchanged(&first, &access).await.unwrap());
        assert_eq!(setup.archives.resolve(&url.parse().unwrap(), &access).await.unwrap(), first);
        setup.archives.fetch(&first, &access).await.unwrap();
        let conditional: Vec<bool> = server.requests().iter().map(|head| has(head, &condition)).collect();
        assert_eq!(conditional, [false, true, true], "{validator}");
        // Other credentials prove nothing, and learn nothing.
        setup.get_as(&url, Some(basic())).await.unwrap();
        assert_eq!(server.requests().iter().filter(|head| has(head, &condition)).count(), 2);
        assert!(
            !setup
                .archives
                .is_unchanged(&ResolvedArchive::new(url.parse().unwrap(), Digest::of(b"")), &access)
                .await
                .unwrap()
        );
    }
}

#[tokio::test]
async fn a_server_that_ignores_conditions_sends_no_second_body() {
    let archive = archive();
    let server = Server::start(Then::Close, move |_| response("200 OK", "ETag: \"one\"\r\n", &archive)).await;
    let (setup, access) = (setup(), ImageAccess::default());
    let url = server.url("a.tgz").parse().unwrap();
    let first = setup.archives.resolve(&url, &access).await.unwrap();
    assert!(setup.archives.is_unchanged(&first, &access).await.unwrap());
    // Without an entity tag, whether it changed is unknown.
    let silent = Server::start(Then::Close, move |_| response("200 OK", "", &self::archive())).await;
    let url = silent.url("a.tgz").parse().unwrap();
    let first = setup.archives.resolve(&url, &access).await.unwrap();
    assert!(!setup.archives.is_unchanged(&first, &access).await.unwrap());
    assert_eq!(silent.requests().len(), 1, "no request can tell");
}

#[tokio::test]
async fn an_archive_that_changes_is_another_one() {
    let version = Arc::new(Mutex::new("1"));
    let current = Arc::clone(&version);
    let server = Server::start(Then::Close, move |head| {
        let text = *current.lock().unwrap();
        if has(head, &format!("If-None-Match: \"{text}\"")) {
            return response("304 Not Modified", "", b"");
        }
        response("200 OK", &format!("ETag: \"{text}\"\r\n"), &Tar::new().file("a", text).gzip())
    })
    .await;
    let (setup, access) = (setup(), ImageAccess::default());
    let url = server.url("a.tgz").parse().unwrap();
    let first = setup.archives.resolve(&url, &access).await.unwrap();
    *version.lock().unwrap() = "2";
    assert!(!setup.archives.is_unchanged(&first, &access).await.unwrap());
    let second = setup.archives.resolve(&url, &access).await.unwrap();
    assert_ne!(first, second);
    // The earlier one is in the cache still.
    assert_eq!(files(&setup.archives.fetch(&first, &access).await.unwrap()), [("a".to_owned(), "1".to_owned())]);
    assert_eq!(files(&setup.archives.fetch(&second, &access).await.unwrap()), [("a".to_owned(), "2".to_owned())]);
    let credentials = Some(basic());
    let error = setup.archives.fetch(&first, &ImageAccess { credentials, ..access }).await.unwrap_err();
    assert_eq!((error.reason(), error.class()), ("ChecksumMismatch", FailureClass::Unavailable), "{error}");
}

#[tokio::test]
async fn a_wrong_digest_is_refused_before_anything_is_unpacked() {
    let server = Server::start(Then::Close, |_| response("200 OK", "", b"not an archive")).await;
    let wanted = ResolvedArchive::new(server.url("a.tgz").parse().unwrap(), Digest::of(b"other"));
    let error = setup().archives.fetch(&wanted, &ImageAccess::default()).await.unwrap_err();
    let expected = format!(
        "archive {}: its SHA-256 digest is {}, not {}",
        wanted.url(),
        Digest::of(b"not an archive"),
        Digest::of(b"other")
    );
    assert_eq!((error.to_string(), error.reason()), (expected, "ChecksumMismatch"));
}

#[tokio::test]
async fn credentials_are_for_the_server_of_the_url_only() {
    let token = Credentials::RegistryToken("s3cret".to_owned());
    for (credentials, header) in
        [(basic(), "Authorization: Basic dXNlcjpzM2NyZXQ="), (token, "Authorization: Bearer s3cret")]
    {
        let elsewhere = Server::start(Then::Close, |_| response("200 OK", "", &archive())).await;
        let to = elsewhere.url("b.tgz");
        let server =
            Server::start(Then::Close, move |_| response("302 Found", &format!("Location: {to}\r\n"), b"")).await;
        setup().get_as(&server.url("a.tgz"), Some(credentials)).await.unwrap();
        assert!(server.requests().iter().all(|head| has(head, header)), "{:?}", server.requests());
        let leaked = elsewhere.requests().iter().any(|head| head.to_ascii_lowercase().contains("authorization"));
        assert!(elsewhere.requests().len() == 1 && !leaked, "{:?}", elsewhere.requests());
    }
}

/// The blobs of a registry are archives as well.
#[tokio::test]
async fn the_certificate_of_a_server_is_checked() {
    let registry = Registry::start(Options { tls: true, ..Options::default() }).await.unwrap();
    let image = Image::of_layers(vec![Layer::tar_gzip(archive())]);
    registry.push_image("x", "v1", image).unwrap();
    let url: ArchiveUrl = format!("https://{}/v2/x/blobs/{}", registry.host(), Digest::of(&archive())).parse().unwrap();
    let trusting = |pem: &str| ImageAccess { certificate_authority: Some(pem.into()), ..ImageAccess::default() };
    let skipping = ImageAccess { insecure_skip_tls_verify: true, ..ImageAccess::default() };
    let setup = setup();
    for (access, expected) in [
        (ImageAccess::default(), Err("CertificateNotTrusted")),
        (trusting("nonsense"), Err("InvalidAccess")),
        (trusting(registry.certificate_authority().unwrap()), Ok(Digest::of(&archive()))),
        (skipping, Ok(Digest::of(&archive()))),
    ] {
        let outcome = setup.archives.resolve(&url, &access).await;
        assert_eq!(outcome.map(|archive| archive.digest().clone()).map_err(|error| error.reason()), expected);
    }
}

#[tokio::test]
async fn redirects_lead_to_allowed_places_only() {
    let mut messages = Vec::new();
    for to in [
        "file:///etc/passwd",
        "ftp://127.0.0.1/a.tgz",
        "gopher://127.0.0.1/",
        "data:text/plain,x",
        "javascript:alert(1)",
        "http://169.254.169.254/latest/meta-data",
        "http://[fe80::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://2852039166/",
        "http://100.100.100.200/",
        "http://0.0.0.0:1/",
        "/again",
        "\x7f",
    ] {
        let location = format!("Location: {to}\r\n");
        let server = Server::start(Then::Close, move |_| response("307 Temporary Redirect", &location, b"")).await;
        let error = setup().get(&server.url("a.tgz")).await.unwrap_err();
        let message = error.to_string().replace(&server.address.to_string(), "server");
        messages.push(format!("{}: {}: {message}", to.escape_default(), error.reason()));
        assert_eq!(server.requests().len(), if to == "/again" { 6 } else { 1 }, "{to}");
    }
    insta::assert_snapshot!(messages.join("\n"));
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let mut messages = Vec::new();
    for (status, headers) in [
        ("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n"),
        ("403 Forbidden", ""),
        ("404 Not Found", ""),
        ("429 Too Many Requests", "Retry-After: 7\r\n"),
        ("500 Internal Server Error", ""),
        ("204 No Content", ""),
        ("206 Partial Content", ""),
        ("304 Not Modified", ""),
    ] {
        let server = Server::start(Then::Close, move |_| response(status, headers, b"secret page")).await;
        let error = setup().get_as(&server.url("a.tgz"), Some(basic())).await.unwrap_err();
        let text = error.to_string().replace(&server.address.to_string(), "server");
        let waits = error.retry_after().map(|time| format!(" after {} s", time.as_secs())).unwrap_or_default();
        messages.push(format!("{:?}{waits}, {}: {text}", error.class(), error.reason()));
        assert!(!text.contains("secret") && !text.contains("s3cret"), "{text}");
        let silent = error.silent_registry().map(str::to_owned);
        assert_eq!(silent, (status.starts_with('5')).then(|| server.address.to_string()), "{status}");
    }
    insta::assert_snapshot!(messages.join("\n"));
}

#[tokio::test]
async fn without_tls_an_archive_is_named_by_its_digest() {
    let setup = setup_with(
        ImageOptions { plain_http_registries: vec!["listed.invalid".to_owned()], ..ImageOptions::default() },
        Limits::default(),
    );
    let url = |host: &str| format!("http://{host}/a.tgz").parse().unwrap();
    let access = ImageAccess::default();
    let error = setup.archives.resolve(&url("other.invalid"), &access).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "archive http://other.invalid/a.tgz: other.invalid is asked without TLS, where others could replace the archive; use https, \
         or set sha256"
    );
    let secret = ImageAccess { credentials: Some(basic()), ..ImageAccess::default() };
    for (host, access, digest, expected) in [
        ("other.invalid", &access, true, "NameNotResolved"),
        ("listed.invalid", &access, false, "NameNotResolved"),
        ("listed.invalid", &secret, false, "CredentialsNotSent"),
        ("other.invalid", &secret, true, "CredentialsNotSent"),
    ] {
        let outcome = if digest {
            setup.archives.fetch(&ResolvedArchive::new(url(host), Digest::of(b"")), access).await.map(drop)
        } else {
            setup.archives.resolve(&url(host), access).await.map(drop)
        };
        assert_eq!(outcome.unwrap_err().reason(), expected, "{host}");
    }
}

#[tokio::test]
async fn bodies_are_bounded_whatever_the_server_announces() {
    let limits = || Limits { download_bytes: 10_000, ..Limits::default() };
    let announced = Server::start(Then::Hold, |_| b"HTTP/1.1 200 OK\r\nContent-Length: 10001\r\n\r\nx".to_vec()).await;
    // One chunk of 16 bytes.
    let chunk = b"10\r\nxxxxxxxxxxxxxxxx\r\n";
    let endless = Server::start(Then::Endless(chunk, Duration::ZERO), |_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()
    })
    .await;
    for server in [announced, endless] {
        let error = setup_with(ImageOptions::default(), limits()).get(&server.url("a.tgz")).await.unwrap_err();
        assert!(error.to_string().ends_with("a.tgz: it is larger than 10000 bytes"), "{error}");
        assert_eq!((error.class(), error.reason()), (FailureClass::Permanent, "InvalidArchive"));
    }
    // Fewer bytes than announced, and a connection that ends in the header.
    for answer in ["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx", "HTTP/1.1 200 OK\r\nContent-"] {
        let server = Server::start(Then::Close, move |_| answer.as_bytes().to_vec()).await;
        let error = setup().get(&server.url("a.tgz")).await.unwrap_err();
        assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "NetworkFailed"), "{error}");
    }
    // More bytes than announced: only the announced ones count.
    let mut body = response("200 OK", "", &archive());
    body.extend_from_slice(b"more");
    let server = Server::start(Then::Close, move |_| body.clone()).await;
    setup().get(&server.url("a.tgz")).await.unwrap();
}

/// The cache has room for 832 KiB of tenants, and the archive itself would be allowed.
#[tokio::test]
async fn a_download_takes_no_more_than_the_cache_may_have() {
    const KIB: usize = 1 << 10;
    let text = "x".repeat(20 * KIB);
    let bomb = (0..80).fold(Tar::new(), |tar, number| tar.file(&number.to_string(), &format!("{number}{text}"))).gzip();
    assert!(bomb.len() < 300 * KIB);
    // It unpacks to 1600 KiB.
    let bomb = Server::start(Then::Close, move |_| response("200 OK", "", &bomb)).await;
    // It announces nothing, and sends without end.
    let chunk = [b"10000\r\n".to_vec(), vec![b'x'; 64 * KIB], b"\r\n".to_vec()].concat().leak();
    let endless = Server::start(Then::Endless(chunk, Duration::ZERO), |_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec()
    })
    .await;
    for server in [bomb, endless] {
        let (directory, store) = store(Limits::default());
        store.limit(1 << 20).unwrap();
        let archives =
            Images::new(store.clone(), ImageOptions::default()).on_behalf_of(Requester::new("a", "a")).archives();
        let error = archives.resolve(&server.url("a.tgz").parse().unwrap(), &ImageAccess::default()).await.unwrap_err();
        assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "CacheFull"), "{error}");
        assert_eq!(store.taken(), 0, "nothing stays");
        assert_eq!(std::fs::read_dir(directory.path().join("cache/work")).unwrap().count(), 0);
    }
    // It announces far more than there is room for, and sends little: only what it sends takes room.
    let (_directory, store) = store(Limits::default());
    store.limit(1 << 20).unwrap();
    let lying = Server::start(Then::Hold, |_| b"HTTP/1.1 200 OK\r\nContent-Length: 200000000\r\n\r\nx".to_vec()).await;
    let archives =
        Images::new(store.clone(), ImageOptions::default()).on_behalf_of(Requester::new("a", "a")).archives();
    let (url, access) = (lying.url("a.tgz").parse().unwrap(), ImageAccess::default());
    let mut waits = std::pin::pin!(archives.resolve(&url, &access));
    while store.taken() == 0 {
        assert!(futures::poll!(&mut waits).is_pending());
        tokio::task::yield_now().await;
    }
    for _ in 0..100 {
        assert!(futures::poll!(&mut waits).is_pending());
        tokio::task::yield_now().await;
    }
    assert!(store.taken() <= 200 << 10, "{}", store.taken());
}

#[tokio::test]
async fn slow_servers_end_a_download() {
    let brief = Duration::from_millis(200);
    let options =
        ImageOptions { idle_timeout: brief, rate_window: brief, minimum_rate: 100_000, ..ImageOptions::default() };
    let silent = Server::start(Then::Hold, |_| Vec::new()).await;
    let error = setup_with(options.clone(), Limits::default()).get(&silent.url("a.tgz")).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "NetworkFailed"), "{error}");
    let trickle = Then::Endless(b"x", Duration::from_millis(5));
    let head = |_: &str| b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".to_vec();
    let dripping = Server::start(trickle, head).await;
    let error = setup_with(options.clone(), Limits::default()).get(&dripping.url("a.tgz")).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "TooSlow"), "{error}");
    let options = ImageOptions { total_timeout: brief, minimum_rate: 0, ..ImageOptions::default() };
    let error = setup_with(options, Limits::default()).get(&dripping.url("a.tgz")).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "Timeout"), "{error}");
}

#[tokio::test]
async fn hostile_archives_are_refused_with_their_url() {
    let server = Server::start(Then::Close, |_| response("200 OK", "", &Tar::new().file("../a", "x").plain())).await;
    let error = setup().get(&server.url("a.tar")).await.unwrap_err();
    let expected = format!("archive {}: entry \"../a\": the path has a `..` part", server.url("a.tar"));
    assert_eq!((error.to_string(), error.class()), (expected, FailureClass::Permanent));
}
