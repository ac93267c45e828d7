//! Git repositories, served by git itself, and servers that mean harm.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::time::Duration;

use chandler_content::{
    Checkout, ContentError, Credentials, FailureClass, ImageAccess, ImageOptions, Images, Limits, Repositories, Tree,
};
use chandler_git::Revision;
use chandler_test_support::git::{GitServer, Repository};
use tempfile::TempDir;

use crate::common::{files, store};

const FILE: &str = "100644";
const LINK: &str = "120000";

fn repositories(limits: Limits) -> (TempDir, Repositories) {
    let (directory, store) = store(limits);
    (directory, Images::new(store, ImageOptions::default()).repositories())
}

fn anonymous() -> ImageAccess {
    ImageAccess::default()
}

fn basic(username: &str, password: &str) -> ImageAccess {
    let credentials = Credentials::Basic { username: username.to_owned(), password: password.to_owned() };
    ImageAccess { credentials: Some(credentials), ..ImageAccess::default() }
}

fn checkout(url: &str, commit: &str, directory: &str) -> Checkout {
    Checkout { url: url.parse().unwrap(), commit: commit.parse().unwrap(), directory: directory.to_owned() }
}

async fn fetch(limits: Limits, server: &GitServer, commit: &str, directory: &str) -> Result<Tree, ContentError> {
    let (_cache, repositories) = repositories(limits);
    repositories.fetch(&checkout(&server.url("a"), commit, directory), &anonymous()).await
}

fn sample(repository: &Repository) -> String {
    repository.commit(
        "main",
        &[
            (FILE, "README.md", b"about"),
            ("100755", "bundles/bell/manifests/bell.yaml", b"tone: low"),
            (LINK, "bundles/bell/manifests/copy.yaml", b"bell.yaml"),
            (FILE, "bundles/whistle/whistle.yaml", b"tone: high"),
        ],
    )
}

#[tokio::test]
async fn a_directory_of_a_commit_is_fetched_once() {
    let Some(server) = GitServer::start().await else { return };
    let repository = server.repository("a");
    let first = sample(&repository);
    let second = repository.commit("main", &[(FILE, "bundles/bell/new", b"x")]);
    let (_cache, repositories) = repositories(Limits::default());
    let of = |commit: &str, directory: &str| checkout(&server.url("a"), commit, directory);
    let tree = repositories.fetch(&of(&first, "bundles/bell"), &anonymous()).await.unwrap();
    let expected = [("manifests/bell.yaml", "tone: low"), ("manifests/copy.yaml", "tone: low")];
    assert_eq!(files(&tree), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    let after = server.requests().len();
    assert_eq!(after, 2, "{:?}", server.requests());
    repositories.fetch(&of(&first, "bundles/bell"), &anonymous()).await.unwrap();
    assert_eq!(server.requests().len(), after);
    let tree = repositories.fetch(&of(&second, ""), &anonymous()).await.unwrap();
    assert_eq!(files(&tree), [("bundles/bell/new".to_owned(), "x".to_owned())]);
}

#[tokio::test]
async fn only_files_of_the_directory_are_downloaded_where_the_server_filters() {
    let Some(server) = GitServer::start().await else { return };
    let repository = server.repository("a");
    // It does not compress.
    let large: Vec<u8> = (0..20_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    let commit = repository.commit(
        "main",
        &[
            (FILE, "bundles/bell/bell.yaml", b"tone: low"),
            (FILE, "bundles/bell/part/same.yaml", b"tone: low"),
            (LINK, "bundles/bell/copy.yaml", b"bell.yaml"),
            (FILE, "bundles/large", &large),
        ],
    );
    let limits = Limits { download_bytes: 40_000, ..Limits::default() };
    let fetch = async |directory: &str| {
        let before = server.requests().len();
        let fetched = fetch(limits.clone(), &server, &commit, directory).await;
        let fetched = fetched.map(|tree| files(&tree)).map_err(|error| error.reason());
        (fetched, server.requests().len() - before)
    };
    assert_eq!(fetch("bundles/bell").await, (Err("InvalidRepository"), 2));
    repository.allow_filter();
    let expected = ["bell.yaml", "copy.yaml", "part/same.yaml"].map(|path| (path.to_owned(), "tone: low".to_owned()));
    assert_eq!(fetch("bundles/bell").await, (Ok(expected.to_vec()), 3));
    // All files are wanted: they come with the commit.
    assert_eq!(fetch("").await, (Err("InvalidRepository"), 2));
    assert_eq!(fetch("bundles/gong").await, (Err("DirectoryNotFound"), 2));
}

#[tokio::test]
async fn branches_tags_and_ranges_name_commits() {
    let Some(server) = GitServer::start().await else { return };
    let repository = server.repository("a");
    let first = sample(&repository);
    repository.tag("v1.2.0", &first);
    let second = repository.commit("main", &[(FILE, "b", b"2")]);
    repository.tag("v1.10.0", &second);
    let third = repository.commit("release/2", &[(FILE, "b", b"3")]);
    repository.tag("v2.0.0-rc.1", &third);
    let (_cache, repositories) = repositories(Limits::default());
    let resolve = async |revision: Revision| {
        let url = server.url("a").parse().unwrap();
        repositories.resolve(&url, &revision, &anonymous()).await.map(|selected| selected.commit.to_string())
    };
    assert_eq!(resolve(Revision::Branch("main".to_owned())).await.unwrap(), second);
    assert_eq!(resolve(Revision::Branch("release/2".to_owned())).await.unwrap(), third);
    assert_eq!(resolve(Revision::Tag("v1.2.0".to_owned())).await.unwrap(), first);
    assert_eq!(resolve(Revision::range(">=1").unwrap()).await.unwrap(), second);
    assert_eq!(resolve(Revision::range("~1.2").unwrap()).await.unwrap(), first);
    let before = server.requests().len();
    assert_eq!(resolve(Revision::Commit(first.parse().unwrap())).await.unwrap(), first);
    assert_eq!(server.requests().len(), before, "a commit needs no request");
    let error = resolve(Revision::Branch("mian".to_owned())).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "RevisionNotFound"));
    assert_eq!(error.to_string(), format!("git repository {}: it has no branch \"mian\"", server.url("a")));
}

#[tokio::test]
async fn what_is_absent_is_named() {
    let Some(server) = GitServer::start().await else { return };
    let first = sample(&server.repository("a"));
    let error = fetch(Limits::default(), &server, &first, "bundles/gong").await.unwrap_err();
    assert_eq!(error.reason(), "DirectoryNotFound");
    let expected = "it has no directory \"bundles/gong\" at this commit";
    assert_eq!(error.to_string(), format!("git repository {}: {expected}", server.url("a")));
    let error = fetch(Limits::default(), &server, &"1".repeat(40), "").await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "ServerRefused"));
    assert!(error.to_string().contains("not our ref"), "{error}");
    let (_cache, repositories) = repositories(Limits::default());
    let error = repositories.fetch(&checkout(&server.url("b"), &first, ""), &anonymous()).await.unwrap_err();
    assert_eq!(error.reason(), "RepositoryNotFound", "{error}");
}

#[tokio::test]
async fn files_that_no_bundle_may_have_are_refused_by_name() {
    let Some(server) = GitServer::start().await else { return };
    let repository = server.repository("a");
    let lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    let other = sample(&repository);
    let small = Limits { file_bytes: 100_000, total_bytes: 150_000, entries: 8, depth: 3, ..Limits::default() };
    let big = vec![b'x'; 90_000];
    let too_big = vec![b'x'; 100_001];
    let other = other.as_bytes();
    for (name, content, expected) in [
        ("submodule", vec![("160000", "b", other)], "\"b\": is a submodule"),
        ("a pointer of LFS", vec![(FILE, "b", &lfs[..])], "\"b\": is a pointer of Git LFS"),
        ("a link out", vec![(LINK, "b/c", b"../../x")], "links to \"../../x\", which is outside"),
        ("an absolute link", vec![(LINK, "b", b"/etc/passwd")], "outside"),
        ("a link to a directory", vec![(FILE, "b/c", b"x"), (LINK, "d", b"b")], "which is a directory"),
        ("a link in a circle", vec![(LINK, "b", b"b")], "too many links"),
        ("too deep", vec![(FILE, "a/b/c/d/e", b"x")], "lies deeper than 3 directories"),
        ("a control character", vec![(FILE, "a\x1bb", b"x")], "the path has a control character"),
        (
            "many",
            (0..9).map(|n| (FILE, ["a", "b", "c", "d", "e", "f", "g", "h", "i"][n], &b"x"[..])).collect(),
            "8 entries",
        ),
        ("large together", vec![(FILE, "a", &big[..]), (FILE, "b", &big[..])], "its files are larger than"),
    ] {
        let commit = repository.commit("hostile", &content);
        let error = fetch(small.clone(), &server, &commit, "").await.unwrap_err();
        assert_eq!((error.class(), error.reason()), (FailureClass::Permanent, "InvalidRepository"), "{name}: {error}");
        assert!(error.to_string().contains(expected), "{name}: {error}");
    }
    let commit = repository.commit("hostile", &[(FILE, "a", &too_big)]);
    let error = fetch(small.clone(), &server, &commit, "").await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Permanent, "InvalidRepository"), "{error}");
    let few = Limits { download_bytes: 50, ..small };
    let error = fetch(few, &server, &commit, "").await.unwrap_err();
    assert!(error.to_string().ends_with("it is larger than 50 bytes"), "{error}");
}

#[tokio::test]
async fn a_tree_that_contains_itself_many_times_over_is_not_walked_to_its_end() {
    let Some(server) = GitServer::start().await else { return };
    let repository = server.repository("a");
    let blob = repository.git(&["hash-object", "-w", "--stdin"], b"x");
    // 10 entries in each of 10 levels: 10,000,000,000 files in 11 objects.
    let mut inner = repository.git(&["mktree"], format!("100644 blob {blob}\tf\n").as_bytes());
    for _ in 0..10 {
        let level: String = (0..10).fold(String::new(), |text, n| format!("{text}040000 tree {inner}\td{n}\n"));
        inner = repository.git(&["mktree"], level.as_bytes());
    }
    let commit = repository.git(&["commit-tree", &inner, "-m", "a bomb"], b"");
    repository.git(&["update-ref", "refs/heads/bomb", &commit], b"");
    let error = fetch(Limits::default(), &server, &commit, "").await.unwrap_err();
    assert!(error.to_string().ends_with("it has more than 20000 entries"), "{error}");
}

#[tokio::test]
async fn credentials_are_sent_and_cached_content_grants_no_access() {
    let Some(server) = GitServer::start().await else { return };
    let first = sample(&server.repository("a"));
    server.require("alice", "s3cret");
    let (_cache, repositories) = repositories(Limits::default());
    let checkout = checkout(&server.url("a"), &first, "");
    repositories.fetch(&checkout, &basic("alice", "s3cret")).await.unwrap();
    for access in [anonymous(), basic("alice", "guess")] {
        let error = repositories.fetch(&checkout, &access).await.unwrap_err();
        assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "Unauthorized"), "{error}");
        assert!(!error.to_string().contains("guess"), "{error}");
    }
}

#[tokio::test]
async fn history_is_not_fetched() {
    let Some(server) = GitServer::start().await else { return };
    let repository = server.repository("a");
    let noise: Vec<u8> = (0..400_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
    repository.commit("main", &[(FILE, "noise", &noise)]);
    let second = repository.commit("main", &[(FILE, "b", b"x")]);
    let limits = Limits { download_bytes: 100_000, ..Limits::default() };
    assert_eq!(files(&fetch(limits, &server, &second, "").await.unwrap()), [("b".to_owned(), "x".to_owned())]);
}

#[tokio::test]
async fn without_tls_only_a_commit_is_fetched_from_elsewhere() {
    let (_cache, repositories) = repositories(Limits::default());
    let url = "http://git.example.com/a".parse().unwrap();
    let error = repositories.resolve(&url, &Revision::Branch("main".to_owned()), &anonymous()).await.unwrap_err();
    let expected = "others could replace the git repository; use https, or set ref.commit";
    assert!(error.to_string().ends_with(expected), "{error}");
}

#[tokio::test]
async fn other_servers_are_no_git_servers() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    let answer = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        let _ = stream.read(&mut request).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>")
            .await
            .unwrap();
        tokio::time::timeout(Duration::from_mins(1), stream.read(&mut request)).await.ok();
    });
    let (_cache, repositories) = repositories(Limits::default());
    let revision = Revision::Branch("main".to_owned());
    let error = repositories.resolve(&url.parse().unwrap(), &revision, &anonymous()).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Permanent, "InvalidResponse"));
    assert!(error.to_string().ends_with("or this is not a git repository"), "{error}");
    answer.abort();
}
