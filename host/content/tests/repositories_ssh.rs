//! Git repositories over SSH, served by sshd and git themselves, and servers that mean harm.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::time::Duration;

use chandler_content::{
    Checkout, ContentError, Credentials, FailureClass, ImageAccess, ImageOptions, Images, Limits, Repositories, SshKey,
    SshKeyError,
};
use chandler_git::Revision;
use chandler_test_support::git::{KeyPair, Repository, SshServer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::common::{files, store};

const FILE: &str = "100644";

fn repositories(limits: Limits) -> (TempDir, Repositories) {
    repositories_with(limits, ImageOptions::default())
}

fn repositories_with(limits: Limits, options: ImageOptions) -> (TempDir, Repositories) {
    let (directory, store) = store(limits);
    (directory, Images::new(store, options).repositories())
}

fn access_with(private_key: &str, known_hosts: &str) -> ImageAccess {
    let key = SshKey::parse(None, private_key, known_hosts).unwrap();
    ImageAccess { credentials: Some(Credentials::SshKey(key)), ..ImageAccess::default() }
}

fn access(server: &SshServer) -> ImageAccess {
    access_with(server.private_key(), &server.known_hosts())
}

fn checkout(url: &str, commit: &str, directory: &str) -> Checkout {
    Checkout { url: url.parse().unwrap(), commit: commit.parse().unwrap(), directory: directory.to_owned() }
}

fn main() -> Revision {
    Revision::Branch("main".to_owned())
}

fn sample(repository: &Repository) -> String {
    repository.commit("main", &[(FILE, "README.md", b"about"), (FILE, "bundles/bell/bell.yaml", b"tone: low")])
}

/// The error of an attempt to find the branch `main`: class, reason and text.
async fn refusal(url: &str, access: &ImageAccess) -> (FailureClass, &'static str, String) {
    let options = ImageOptions { idle_timeout: Duration::from_secs(20), ..ImageOptions::default() };
    let (_cache, repositories) = repositories_with(Limits::default(), options);
    let error = repositories.resolve(&url.parse().unwrap(), &main(), access).await.unwrap_err();
    (error.class(), error.reason(), error.to_string())
}

#[tokio::test]
async fn revisions_are_found_and_a_directory_is_fetched_once() {
    let Some(server) = SshServer::start_for_git() else { return };
    let repository = server.repository("a'b c!d");
    let first = sample(&repository);
    repository.tag("v1.2.0", &first);
    let second = repository.commit("main", &[(FILE, "b", b"2")]);
    let (url, access) = (server.url("a'b c!d"), access(&server));
    let (_cache, repositories) = repositories(Limits::default());
    for (revision, expected) in [(main(), &second), (Revision::range("^1").unwrap(), &first)] {
        let selected = repositories.resolve(&url.parse().unwrap(), &revision, &access).await.unwrap();
        assert_eq!(selected.commit.to_string(), *expected);
    }
    let tree = repositories.fetch(&checkout(&url, &first, "bundles/bell"), &access).await.unwrap();
    assert_eq!(files(&tree), [("bell.yaml".to_owned(), "tone: low".to_owned())]);
    let tree = repositories.fetch(&checkout(&url, &second, ""), &access).await.unwrap();
    assert_eq!(files(&tree), [("b".to_owned(), "2".to_owned())]);
    repository.allow_filter();
    let (_cache, others) = self::repositories(Limits::default());
    let again = others.fetch(&checkout(&url, &first, "bundles/bell"), &access).await.unwrap();
    assert_eq!(files(&again), [("bell.yaml".to_owned(), "tone: low".to_owned())]);
    let error = repositories.resolve(&url.parse().unwrap(), &Revision::Tag("v9".to_owned()), &access).await;
    assert_eq!(error.unwrap_err().reason(), "RevisionNotFound");
    // Fetched content is served from the cache while the server is unreachable.
    drop(server);
    repositories.fetch(&checkout(&url, &first, "bundles/bell"), &access).await.unwrap();
    let error = repositories.fetch(&checkout(&url, &first, ""), &access).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "NetworkFailed"), "{error}");
    assert!(error.silent_registry().is_some(), "{error}");
}

#[tokio::test]
async fn all_types_of_keys_prove_a_user_and_a_server() {
    for (kind, arguments) in [
        ("ed25519", &[][..]),
        ("ecdsa", &["-b", "256"]),
        ("ecdsa", &["-b", "521"]),
        ("rsa", &["-b", "2048"]),
        ("rsa", &["-b", "2048", "-m", "PEM"]),
        ("ecdsa", &["-m", "PKCS8"]),
    ] {
        let key = || KeyPair::generate(kind, arguments);
        let server = SshServer::start(key(), key(), "AcceptEnv GIT_PROTOCOL");
        let Some(server) = server else { return };
        let commit = sample(&server.repository("a"));
        let (_cache, repositories) = repositories(Limits::default());
        let found = repositories.resolve(&server.url("a").parse().unwrap(), &main(), &access(&server)).await;
        let found = found.unwrap_or_else(|error| panic!("{kind} {arguments:?}: {error}"));
        assert_eq!(found.commit.to_string(), commit);
    }
}

#[tokio::test]
async fn a_server_without_the_known_host_key_is_refused() {
    let Some(server) = SshServer::start_for_git() else { return };
    sample(&server.repository("a"));
    let (url, other) = (server.url("a"), KeyPair::generate("ed25519", &[]).public);
    let (port, known) = (server.port(), server.known_hosts());
    for (known_hosts, expected) in [
        (format!("127.0.0.1 {other}"), "the known hosts have no key for [127.0.0.1]:"),
        (format!("[127.0.0.1]:{port} {other}"), "is none that the known hosts have for [127.0.0.1]:"),
        (format!("@cert-authority * {other}"), "has a certificate authority for [127.0.0.1]:"),
        (format!("{known}@revoked {known}"), "line 2 of the known hosts revokes its host key"),
        (
            known.replace("ssh-ed25519", "ssh-rsa").replace("AAAAC3NzaC1lZDI1NTE5", "AAAAB3NzaC1yc2EAAAAD"),
            "no host key of the types",
        ),
    ] {
        let mut access = access_with(server.private_key(), &known_hosts);
        // Nothing turns the check off.
        access.insecure_skip_tls_verify = true;
        let (class, reason, text) = refusal(&url, &access).await;
        assert_eq!((class, reason), (FailureClass::Unavailable, "HostKeyNotTrusted"), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn cached_content_grants_no_access_to_other_keys() {
    let Some(server) = SshServer::start_for_git() else { return };
    let first = sample(&server.repository("a"));
    let (_cache, repositories) = repositories(Limits::default());
    let checkout = checkout(&server.url("a"), &first, "");
    repositories.fetch(&checkout, &access(&server)).await.unwrap();
    let other = KeyPair::generate("ed25519", &[]);
    let error = repositories.fetch(&checkout, &access_with(&other.private, &server.known_hosts())).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "Unauthorized"), "{error}");
    assert!(error.to_string().contains("does not accept the private key for user"), "{error}");
    // Nor where another server could be believed.
    let others = access_with(server.private_key(), &format!("[127.0.0.1]:{} {}", server.port(), other.public));
    assert_eq!(repositories.fetch(&checkout, &others).await.unwrap_err().reason(), "HostKeyNotTrusted");
    let error = repositories.fetch(&checkout, &ImageAccess::default()).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "InvalidAccess"), "{error}");
    // And over http, the key is not sent.
    let error = refusal("http://127.0.0.1:1/a", &access(&server)).await;
    assert_eq!(error.1, "InvalidAccess", "{}", error.2);
}

#[tokio::test]
async fn what_the_server_says_is_reported() {
    let Some(server) = SshServer::start_for_git() else { return };
    let first = sample(&server.repository("a"));
    let (class, reason, text) = refusal(&server.url("b"), &access(&server)).await;
    assert_eq!((class, reason), (FailureClass::Unavailable, "ServerRefused"), "{text}");
    assert!(text.contains("does not appear to be a git repository"), "{text}");
    let (_cache, repositories) = repositories(Limits { download_bytes: 50, ..Limits::default() });
    let error = repositories.fetch(&checkout(&server.url("a"), &"1".repeat(40), ""), &access(&server)).await;
    assert!(error.unwrap_err().to_string().contains("not our ref"));
    let error = repositories.fetch(&checkout(&server.url("a"), &first, ""), &access(&server)).await.unwrap_err();
    assert!(error.to_string().ends_with("it is larger than 50 bytes"), "{error}");
}

#[tokio::test]
async fn servers_that_serve_no_git_of_version_2_are_named() {
    let key = || KeyPair::generate("ed25519", &[]);
    for (settings, class, reason, expected) in [
        ("", FailureClass::Permanent, "InvalidResponse", "AcceptEnv GIT_PROTOCOL"),
        ("ForceCommand echo Welcome!", FailureClass::Permanent, "InvalidResponse", "or this is not a git repository"),
        (
            "ForceCommand echo no project named so >&2; exit 1",
            FailureClass::Unavailable,
            "ServerRefused",
            "answered: no project named so",
        ),
        ("ForceCommand exit 1", FailureClass::Transient, "InvalidResponse", "the response ends too early"),
        ("ForceCommand yes error >&2", FailureClass::Permanent, "InvalidResponse", "sent too much"),
        ("ForceCommand yes 0005a | tr -d '\\n'", FailureClass::Permanent, "InvalidResponse", "a response is too long"),
        ("DenyUsers *", FailureClass::Unavailable, "Unauthorized", "does not accept the private key"),
    ] {
        let Some(server) = SshServer::start(key(), key(), settings) else { return };
        sample(&server.repository("a"));
        let (found, why, text) = refusal(&server.url("a"), &access(&server)).await;
        assert_eq!((found, why), (class, reason), "{settings}: {text}");
        assert!(text.contains(expected), "{settings}: {text}");
        assert!(!text.contains("PRIVATE"), "{text}");
    }
}

/// git-upload-pack, whose output a filter of the shell changes.
async fn fetch_through(filter: &str, options: ImageOptions) -> Option<Result<(), ContentError>> {
    let key = || KeyPair::generate("ed25519", &[]);
    let settings = format!("AcceptEnv GIT_PROTOCOL\nForceCommand eval \"$SSH_ORIGINAL_COMMAND\" | {filter}");
    let server = SshServer::start(key(), key(), &settings)?;
    let repository = server.repository("a");
    let noise: Vec<u8> = (0..200_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let commit = repository.commit("main", &[(FILE, "noise", &noise)]);
    let (_cache, repositories) = repositories_with(Limits::default(), options);
    let fetched = repositories.fetch(&checkout(&server.url("a"), &commit, ""), &access(&server)).await;
    Some(fetched.map(|_| ()))
}

#[tokio::test]
async fn a_pack_is_fetched_whole_and_in_time_or_not_at_all() {
    let honest = fetch_through("cat", ImageOptions::default()).await;
    let Some(honest) = honest else { return };
    honest.unwrap();
    // Bytes are passed on one by one, since other programs would keep the first response in a buffer.
    let some = "dd bs=1 count=40000 2>/dev/null";
    let cut = fetch_through(some, ImageOptions::default()).await.unwrap().unwrap_err();
    assert_eq!((cut.class(), cut.reason()), (FailureClass::Transient, "InvalidResponse"), "{cut}");
    let quick = ImageOptions { idle_timeout: Duration::from_secs(5), ..ImageOptions::default() };
    let silent = fetch_through(&format!("{{ {some}; sleep 60; }}"), quick).await.unwrap().unwrap_err();
    assert_eq!((silent.class(), silent.reason()), (FailureClass::Transient, "NetworkFailed"), "{silent}");
    assert!(silent.to_string().ends_with("did not answer in time"), "{silent}");
    let window = Duration::from_millis(500);
    let fast = ImageOptions { minimum_rate: 1 << 30, rate_window: window, ..ImageOptions::default() };
    let slow = format!("{{ {some}; while sleep 0.1; do printf x; done; }}");
    let slow = fetch_through(&slow, fast).await.unwrap().unwrap_err();
    assert_eq!((slow.class(), slow.reason()), (FailureClass::Transient, "TooSlow"), "{slow}");
    let lacking = format!("{{ {some}; dd bs=1 count=1 >/dev/null 2>&1; cat; }}");
    let damaged = fetch_through(&lacking, ImageOptions::default()).await.unwrap().unwrap_err();
    assert_eq!((damaged.class(), damaged.reason()), (FailureClass::Permanent, "InvalidResponse"), "{damaged}");
}

#[tokio::test]
async fn other_servers_are_no_ssh_servers() {
    let key = KeyPair::generate_here();
    let Some(key) = key else { return };
    for (greeting, class, reason, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], FailureClass::Transient, "NetworkFailed", "broke the connection"),
        (b"", FailureClass::Transient, "NetworkFailed", "broke the connection"),
        (&[b'x'; 5000], FailureClass::Permanent, "InvalidResponse", "is not an SSH server"),
    ] {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(greeting).await.unwrap();
            stream.shutdown().await.unwrap();
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
        let access = access_with(&key.private, &format!("[127.0.0.1]:{port} {}", key.public));
        let (found, why, text) = refusal(&format!("ssh://git@127.0.0.1:{port}/a"), &access).await;
        assert_eq!((found, why), (class, reason), "{text}");
        assert!(text.contains(expected), "{text}");
        answer.await.unwrap();
    }
}

#[tokio::test]
async fn keys_that_are_not_used_are_named() {
    let Some(key) = KeyPair::generate_here() else { return };
    let known = format!("example.com {}", key.public);
    let of = |username: Option<&str>, private: &str, known: &str| {
        SshKey::parse(username.map(str::to_owned), private, known).unwrap_err()
    };
    let encrypted = KeyPair::generate("ed25519", &["-N", "secret phrase"]);
    let pem = KeyPair::generate("rsa", &["-b", "2048", "-m", "PEM", "-N", "secret phrase"]);
    for private in [encrypted.private, pem.private] {
        assert!(of(None, &private, &known).to_string().starts_with("the key ssh-privatekey is encrypted"));
    }
    assert!(of(None, &key.public, &known).to_string().starts_with("the key ssh-privatekey is a public key"));
    assert!(of(None, &key.private, &key.public).to_string().starts_with("the key ssh-knownhosts line 1: it has to be"));
    assert_eq!(of(Some("-oProxyCommand=id"), &key.private, &known), SshKeyError::Username);
    let key = SshKey::parse(None, &key.private, &known).unwrap();
    assert_eq!(format!("{:?}", Credentials::SshKey(key)), "SshKey(redacted)");
}
