//! Charts of Helm repositories, ordinary and hostile ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex},
};

use chandler_content::{
    ChartVersion, ContentError, Credentials, FailureClass, ImageAccess, ImageOptions, Images, Limits, ResolvedChart,
    Tree,
};
use chandler_core::Digest;
use tempfile::TempDir;

use crate::common::{
    Tar, files,
    server::{Server, Then, response},
    store,
};

fn chart(version: &str) -> Vec<u8> {
    Tar::new().file("web/Chart.yaml", &format!("version: {version}")).file("web/templates/a.yaml", "a").gzip()
}

/// The index of a repository with the chart `web`: version, URL, and whether the digest of [`chart`] is in it.
fn index(versions: &[(&str, &str, bool)]) -> String {
    let mut text = "apiVersion: v1\nentries:\n  other:\n  - version: 9.9.9\n    urls: [other.tgz]\n  web:\n".to_owned();
    for (version, url, has_digest) in versions {
        let digest = if *has_digest { Digest::of(&chart(version)).hex().to_owned() } else { String::new() };
        writeln!(text, "  - version: {version}\n    digest: \"{digest}\"\n    urls:\n    - {url}").unwrap();
    }
    text
}

struct Setup {
    images: Images,
    _directory: TempDir,
}

fn setup() -> Setup {
    let (directory, store) = store(Limits::default());
    Setup { images: Images::new(store, ImageOptions::default()), _directory: directory }
}

impl Setup {
    async fn resolve(&self, repository: &str, version: &str) -> Result<ResolvedChart, ContentError> {
        self.resolve_as(repository, version, &ImageAccess::default()).await
    }

    async fn resolve_as(
        &self,
        repository: &str,
        version: &str,
        access: &ImageAccess,
    ) -> Result<ResolvedChart, ContentError> {
        let version = ChartVersion::parse(version).unwrap();
        self.images.charts().resolve((&repository.parse().unwrap(), "web"), &version, access).await
    }

    async fn fetch(&self, chart: &ResolvedChart) -> Result<Tree, ContentError> {
        self.images.charts().fetch(chart, &ImageAccess::default()).await
    }

    async fn get(&self, repository: &str, version: &str) -> Result<Tree, ContentError> {
        self.fetch(&self.resolve(repository, version).await?).await
    }
}

fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap_or_default()
}

/// A repository whose index is this text at the time. Archives are `/charts/web-VERSION.tgz`.
async fn repository(index: Arc<Mutex<String>>) -> Server {
    Server::start(Then::Close, move |head| match path(head) {
        "/charts/index.yaml" => {
            let text = index.lock().unwrap().clone();
            let etag = format!("\"{}\"", Digest::of(text.as_bytes()).hex());
            if head.contains(&format!("if-none-match: {etag}")) {
                return response("304 Not Modified", "", b"");
            }
            response("200 OK", &format!("ETag: {etag}\r\n"), text.as_bytes())
        }
        path => match path.strip_prefix("/charts/web-").and_then(|rest| rest.strip_suffix(".tgz")) {
            Some(version) => response("200 OK", "", &chart(version)),
            None => response("404 Not Found", "", b""),
        },
    })
    .await
}

#[tokio::test]
async fn the_newest_version_of_a_range_is_fetched_and_followed() {
    let text = Arc::new(Mutex::new(index(&[("1.2.0", "web-1.2.0.tgz", true), ("2.0.0", "web-2.0.0.tgz", true)])));
    let server = repository(Arc::clone(&text)).await;
    let (setup, url) = (setup(), server.url("charts/"));
    let resolved = setup.resolve(&url, "^1").await.unwrap();
    assert_eq!((resolved.version.as_str(), &resolved.digest), ("1.2.0", &Digest::of(&chart("1.2.0"))));
    let tree = setup.fetch(&resolved).await.unwrap();
    let expected = [("Chart.yaml", "version: 1.2.0"), ("templates/a.yaml", "a")];
    assert_eq!(files(&tree), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let before = server.requests().len();

    // Nothing of what the store has is requested again, but whether the index is the same.
    setup.fetch(&resolved).await.unwrap();
    assert_eq!(server.requests().len(), before);
    assert_eq!(setup.resolve(&url, "^1").await.unwrap(), resolved);
    assert_eq!(setup.resolve(&url, "2.0.0").await.unwrap().version, "2.0.0");
    assert!(server.requests().iter().skip(before).all(|head| head.contains("if-none-match")));
    assert_eq!(server.requests().len(), before + 2);

    *text.lock().unwrap() = index(&[("1.3.0", "web-1.3.0.tgz", true), ("1.2.0", "web-1.2.0.tgz", true)]);
    let followed = setup.resolve(&url, "^1").await.unwrap();
    assert_eq!(followed.version, "1.3.0");
    setup.fetch(&followed).await.unwrap();
    // The store has the earlier version while the server is away.
    drop(server);
    setup.fetch(&resolved).await.unwrap();
    assert_eq!(setup.resolve(&url, "^1").await.unwrap_err().class(), FailureClass::Transient);
}

#[tokio::test]
async fn an_index_without_digests_names_what_is_downloaded() {
    let server = repository(Arc::new(Mutex::new(index(&[("1.2.0", "web-1.2.0.tgz", false)])))).await;
    let (setup, url) = (setup(), server.url("charts"));
    let resolved = setup.resolve(&url, "1.2.0").await.unwrap();
    assert_eq!(resolved.digest, Digest::of(&chart("1.2.0")));
    setup.fetch(&resolved).await.unwrap();
    let paths: Vec<String> = server.requests().iter().map(|head| path(head).to_owned()).collect();
    assert_eq!(paths.iter().filter(|path| path.starts_with("/charts/web-")).count(), 1, "{paths:?}");
}

#[tokio::test]
async fn what_a_repository_does_not_have_is_refused_by_name() {
    let versions = [("1.2.0", "oci://registry.example.com/charts/web:1.2.0", true), ("1.1.0", "web-9.9.9.tgz", true)];
    let server = repository(Arc::new(Mutex::new(index(&versions)))).await;
    let (setup, url) = (setup(), server.url("charts"));
    let place = server.address.to_string();
    let message = |error: ContentError| {
        assert_eq!(error.class(), FailureClass::Unavailable, "{error}");
        format!("{} {}", error.reason(), error.to_string().replace(&place, "SERVER"))
    };
    let none = setup.resolve(&url, "^3").await.unwrap_err();
    assert_eq!(
        message(none),
        "ChartNotFound Helm repository http://SERVER/charts: it does not have a version ^3 of the chart web; the newest is 1.2.0"
    );
    let in_registry = setup.resolve(&url, "*").await.unwrap_err();
    assert_eq!(
        message(in_registry),
        "ChartInRegistry Helm repository http://SERVER/charts: version 1.2.0 is in a registry: set the source to type image, with the ref \
         registry.example.com/charts/web:1.2.0"
    );
    let replaced = setup.get(&url, "1.1.0").await.unwrap_err();
    assert!(message(replaced).starts_with("ChecksumMismatch archive http://SERVER/charts/web-9.9.9.tgz: its SHA-256"));
    let absent = setup.resolve(&server.url("elsewhere"), "*").await.unwrap_err();
    assert_eq!(
        message(absent),
        "IndexNotFound index of the Helm repository http://SERVER/elsewhere/index.yaml: SERVER answered 404 Not Found"
    );
    let archive = setup.resolve(&server.url("charts/web-1.2.0.tgz?"), "*").await.unwrap_err();
    assert_eq!(archive.reason(), "IndexNotFound");
}

#[tokio::test]
async fn a_version_that_was_replaced_is_not_fetched() {
    let text = Arc::new(Mutex::new(index(&[("1.2.0", "web-1.2.0.tgz", true)])));
    let server = repository(Arc::clone(&text)).await;
    let url = server.url("charts");
    let pinned = setup().resolve(&url, "1.2.0").await.unwrap();
    let changed = text.lock().unwrap().replace(pinned.digest.hex(), &"0".repeat(64));
    *text.lock().unwrap() = changed;
    // Another machine, which does not have the content.
    let error = setup().fetch(&pinned).await.unwrap_err();
    let expected = format!(
        "version 1.2.0 has another archive: its digest in the index is sha256:{}, not {}",
        "0".repeat(64),
        pinned.digest
    );
    assert!(error.to_string().ends_with(&expected), "{error}");
}

#[tokio::test]
async fn an_archive_is_fetched_with_the_rules_for_redirects() {
    let other = Server::start(Then::Close, |head| {
        let version = path(head).trim_start_matches("/web-").trim_end_matches(".tgz").to_owned();
        response("200 OK", "", &chart(&version))
    })
    .await;
    let elsewhere = other.url("web-1.2.0.tgz");
    let own = ("1.1.0", "web-1.1.0.tgz", true);
    let server = repository(Arc::new(Mutex::new(index(&[("1.2.0", &elsewhere, true), own])))).await;
    let credentials = Credentials::Basic { username: "user".to_owned(), password: "s3cret".to_owned() };
    let access = ImageAccess { credentials: Some(credentials), ..ImageAccess::default() };
    let (setup, url) = (setup(), server.url("charts"));
    for version in ["1.2.0", "1.1.0"] {
        let resolved = setup.resolve_as(&url, version, &access).await.unwrap();
        setup.images.charts().fetch(&resolved, &access).await.unwrap();
    }
    let is_authorized = |head: &String| head.to_lowercase().contains("authorization: basic");
    assert!(!server.requests().is_empty() && server.requests().iter().all(is_authorized));
    assert!(other.requests().len() == 1 && !other.requests().iter().any(is_authorized));
    // Content that was fetched with credentials is not for others.
    setup.get(&url, "1.1.0").await.unwrap();
    assert!(server.requests().iter().any(|head| !is_authorized(head)));

    for astray in ["http://169.254.169.254/latest/meta-data", "http://0.0.0.0/a.tgz"] {
        let server = repository(Arc::new(Mutex::new(index(&[("1.2.0", astray, true)])))).await;
        let error = setup.get(&server.url("charts"), "1.2.0").await.unwrap_err();
        assert_eq!(error.reason(), "AddressNotAllowed", "{error}");
    }
}
