//! Images and components of a registry, over http and https.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

mod common;

use std::{collections::BTreeMap, fs, time::Duration};

use chandler_content::{
    ContentError, Credentials, FailureClass, ImageAccess, ImageOptions, ImageReference, Images, Limits, ResolvedImage,
    Store, Tree,
};
use chandler_core::{Content, Digest};
use chandler_devregistry::{Authentication, Fault, FaultOn, Image, Layer, Options, Registry};
use common::{Tar, files, store};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

struct Setup {
    registry: Registry,
    images: Images,
    access: ImageAccess,
    directory: TempDir,
}

async fn setup(options: Options) -> Setup {
    let registry = Registry::start(options).await.unwrap();
    let (directory, store) = store(Limits { entries: 100, ..Limits::default() });
    let images = Images::new(store, ImageOptions::default());
    let certificate_authority = registry.certificate_authority().map(|pem| pem.as_bytes().to_vec());
    let access = ImageAccess { certificate_authority, ..ImageAccess::default() };
    Setup { registry, images, access, directory }
}

impl Setup {
    fn reference(&self, name: &str) -> ImageReference {
        format!("{}/{name}", self.registry.host()).parse().unwrap()
    }

    async fn resolve(&self, name: &str) -> Result<ResolvedImage, ContentError> {
        self.images.resolve(&self.reference(name), &self.access).await
    }

    async fn fetch(&self, name: &str) -> Result<Tree, ContentError> {
        self.images.fetch(&self.resolve(name).await?, &self.access).await
    }

    /// Puts an image of these layers there, and fetches it.
    async fn fetch_layers(&self, layers: Vec<Vec<u8>>) -> Result<Tree, ContentError> {
        let layers = layers.into_iter().map(Layer::tar_gzip).collect();
        self.registry.push_image("x", "v1", Image::of_layers(layers)).unwrap();
        self.fetch("x:v1").await
    }

    /// The error without what differs between runs, or with the version of the compressor.
    fn message(&self, error: &ContentError) -> String {
        let text = error.to_string().replace(&self.registry.host(), "registry");
        let is_digest = |word: &str| matches!(word.len(), 12 | 64) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let words = text.split_inclusive(|character: char| !character.is_ascii_alphanumeric());
        words
            .map(|word| {
                let bare = word.trim_end_matches(|character: char| !character.is_ascii_alphanumeric());
                if is_digest(bare) { word.replace(bare, "…") } else { word.to_owned() }
            })
            .collect()
    }
}

/// The body of what a registry answers.
async fn get(registry: &Registry, path: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(registry.address()).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", registry.host());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    answer.split_off(end + 4)
}

fn owned(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}

fn layer() -> Vec<u8> {
    Tar::new().directory("manifests").file("manifests/a.yaml", "a").plain()
}

#[tokio::test]
async fn a_directory_comes_back_and_is_cached() {
    let source = tempfile::tempdir().unwrap();
    fs::create_dir(source.path().join("manifests")).unwrap();
    fs::write(source.path().join("manifests/a.yaml"), "a").unwrap();
    for tls in [false, true] {
        let setup = setup(Options { tls, ..Options::default() }).await;
        let labels = BTreeMap::new();
        let pushed = setup.registry.push_bundle_directory("team/app", "v1", source.path(), &labels).await.unwrap();
        let image = setup.resolve("team/app:v1").await.unwrap();
        assert_eq!(*image.digest(), pushed.digest);
        assert_eq!(image.pinned(), setup.reference(&format!("team/app@{}", pushed.digest)));
        let tree = setup.images.fetch(&image, &setup.access).await.unwrap();
        assert_eq!(files(&tree), owned(&[("manifests/a.yaml", "a")]));
        assert_eq!(setup.images.store().import_directory(source.path()).await.unwrap().digest(), tree.digest());
        // Nothing is asked for twice, and a digest not even once.
        let requests = setup.registry.requests();
        assert_eq!(requests.len(), 3, "{requests:?}");
        let pinned = setup.images.resolve(&image.pinned(), &setup.access).await.unwrap();
        drop(tree);
        setup.images.fetch(&pinned, &setup.access).await.unwrap();
        assert_eq!(setup.registry.requests(), requests);
    }
}

#[tokio::test]
async fn content_in_the_cache_is_for_those_to_whom_its_registry_gives_it() {
    let password =
        |password: &str| Some(Credentials::Basic { username: "user".to_owned(), password: password.to_owned() });
    let authentication = Authentication::Basic { username: "user".to_owned(), password: "s3cret".to_owned() };
    let mut setup = setup(Options { authentication, ..Options::default() }).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    setup.registry.push_component("plugin", "v1", b"\0asm".to_vec()).unwrap();
    setup.access.credentials = password("s3cret");
    let image = setup.resolve("x:v1").await.unwrap();
    let plugin = setup.resolve("plugin:v1").await.unwrap();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    setup.images.fetch_component(&plugin, &setup.access, 9).await.unwrap();
    for credentials in [None, password("wr0ng")] {
        let access = ImageAccess { credentials, ..setup.access.clone() };
        // A tag, a digest, and a digest that a status named.
        let tag = setup.images.resolve(image.reference(), &access).await.unwrap_err();
        let pinned = setup.images.resolve(&image.pinned(), &access).await.unwrap();
        let digest = setup.images.fetch(&pinned, &access).await.unwrap_err();
        let component = setup.images.fetch_component(&plugin, &access, 9).await.unwrap_err();
        for error in [tag, digest, component] {
            assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "Unauthorized"), "{error}");
        }
    }
    // Another process knows who was given what, and asks nobody for it; nor does it need the registry.
    let requests = setup.registry.requests().len();
    let store = || Store::open(&setup.directory.path().join("cache"), Limits::default()).unwrap();
    Images::new(store(), ImageOptions::default()).fetch(&image, &setup.access).await.unwrap();
    assert_eq!(setup.registry.requests().len(), requests);
    // No file of the cache shows the credentials.
    for entry in fs::read_dir(setup.directory.path().join("cache/images")).unwrap() {
        let text = fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("s3cret"));
    }
}

#[tokio::test]
async fn other_credentials_are_proven_with_the_manifest_and_the_content_comes_from_the_cache() {
    let mut setup = setup(Options::default()).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    setup.access.credentials = Some(Credentials::RegistryToken("t0ken".to_owned()));
    let before = setup.registry.requests().len();
    let asked = || setup.registry.requests()[before..].to_vec();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(asked(), [format!("GET /v2/x/manifests/{}", image.digest())]);
    setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(asked().len(), 1);
    // What was proven serves while the registry is away; what was not does not.
    setup.registry.set_fault(Some((FaultOn::Everything, Fault::Status(503))));
    setup.images.fetch(&image, &setup.access).await.unwrap();
    setup.images.fetch(&image, &ImageAccess::default()).await.unwrap();
    setup.access.credentials = Some(Credentials::RegistryToken("0ther".to_owned()));
    let error = setup.images.fetch(&image, &setup.access).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "RegistryUnavailable"));
}

#[tokio::test]
async fn a_digest_that_another_place_names_is_fetched_from_there() {
    let setup = setup(Options::default()).await;
    let pushed = setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    let other = Registry::start(Options::default()).await.unwrap();
    let at = |place: &str| {
        let reference: ImageReference = format!("{place}@{}", pushed.digest).parse().unwrap();
        ResolvedImage::new(reference, pushed.digest.clone())
    };
    for place in [format!("{}/y", setup.registry.host()), format!("{}/x", other.host())] {
        let error = setup.images.fetch(&at(&place), &setup.access).await.unwrap_err();
        assert_eq!(error.reason(), "ImageNotFound", "{place}: {error}");
    }
    // A registry of a tenant that has the manifest, which may be known, and none of the layers.
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = get(&setup.registry, &format!("/v2/x/manifests/{}", pushed.digest)).await;
    other.push_manifest("x", "v1", media_type, manifest).unwrap();
    let error = setup.images.fetch(&at(&format!("{}/x", other.host())), &setup.access).await.unwrap_err();
    assert_eq!(error.reason(), "ImageNotFound", "{error}");
    // One that has everything is asked for everything.
    other.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let before = other.requests().len();
    setup.images.fetch(&at(&format!("{}/x", other.host())), &setup.access).await.unwrap();
    assert_eq!(other.requests().len(), before + 2);
}

#[tokio::test]
async fn a_record_that_somebody_altered_counts_as_absent() {
    let setup = setup(Options::default()).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    let records = || fs::read_dir(setup.directory.path().join("cache/images")).unwrap();
    let path = records().next().unwrap().unwrap().path();
    let good = fs::read(&path).unwrap();
    for at in [0, 31, 32, good.len() / 2, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&path, bad).unwrap();
        let before = setup.registry.requests().len();
        setup.images.fetch(&image, &setup.access).await.unwrap();
        assert_eq!(setup.registry.requests().len(), before + 2, "{at}");
        assert_eq!(fs::read(&path).unwrap(), good);
    }
    // That of another cache, made with another key.
    let other = tempfile::tempdir().unwrap();
    let root = other.path().join("cache");
    let images = Images::new(Store::open(&root, Limits::default()).unwrap(), ImageOptions::default());
    fs::copy(&path, root.join("images").join(path.file_name().unwrap())).unwrap();
    setup.registry.set_fault(Some((FaultOn::Everything, Fault::Status(503))));
    assert_eq!(images.fetch(&image, &setup.access).await.unwrap_err().reason(), "RegistryUnavailable");
}

#[tokio::test]
async fn layers_lie_over_one_another() {
    let setup = setup(Options::default()).await;
    let lower = Tar::new()
        .file("kept", "lower")
        .file("replaced", "lower")
        .file("hidden", "lower")
        .file("directory/hidden", "lower")
        .file("emptied/old", "lower")
        .file("file-then-directory", "lower")
        .file("directory-then-file/a", "lower")
        .file("data/real", "lower");
    let upper = Tar::new()
        // The order in the layer does not matter.
        .file("emptied/new", "upper")
        .file("emptied/.wh..wh..opq", "")
        .file(".wh.hidden", "")
        .file(".wh.directory", "")
        .file(".wh.never-there", "")
        .file(".wh..wh.plnk", "")
        .file("replaced", "upper")
        .directory("file-then-directory")
        .file("file-then-directory/a", "upper")
        .file("directory-then-file", "upper")
        .hard_link("hard", "data/real")
        .link("absolute", "/data/real");
    let tree = setup.fetch_layers(vec![lower.gzip(), upper.gzip()]).await.unwrap();
    assert_eq!(
        files(&tree),
        owned(&[
            ("absolute", "lower"),
            ("data/real", "lower"),
            ("directory-then-file", "upper"),
            ("emptied/new", "upper"),
            ("file-then-directory/a", "upper"),
            ("hard", "lower"),
            ("kept", "lower"),
            ("replaced", "upper"),
        ])
    );
}

#[tokio::test]
async fn hostile_layers_are_refused() {
    let setup = setup(Options::default()).await;
    let base = || Tar::new().file("b", "x").link("link", "b").gzip();
    let mut messages = Vec::new();
    for layers in [
        vec![Tar::new().file("../a", "x").gzip()],
        vec![Tar::new().file(".wh...", "").gzip()],
        vec![Tar::new().file("a/.wh.", "").gzip()],
        vec![Tar::new().file(".wh.a/b", "").link("c", "/../d").gzip()],
        vec![base(), Tar::new().file("link/a", "x").gzip()],
        vec![base(), Tar::new().file("b/a", "x").gzip()],
        vec![base(), Tar::new().file(".wh.b", "").gzip()],
        vec![Tar::new().file("a", "x").plain()[..700].to_vec()],
    ] {
        let error = setup.fetch_layers(layers).await.unwrap_err();
        assert_eq!(error.class(), FailureClass::Permanent, "{error}");
        messages.push(setup.message(&error));
    }
    insta::assert_snapshot!(messages.join("\n"), @r#"
    layer … of image registry/x@sha256:…: entry "../a": the path has a `..` part
    layer … of image registry/x@sha256:…: entry ".wh...": the path has a `..` part
    layer … of image registry/x@sha256:…: entry "a/.wh.": has no name
    image registry/x@sha256:…: entry "c": links to "/../d", which is outside
    layer … of image registry/x@sha256:…: entry "link/a": lies below "link", which is not a directory
    layer … of image registry/x@sha256:…: entry "b/a": lies below "b", which is not a directory
    image registry/x@sha256:…: entry "link": links to "b", which does not exist
    layer … of image registry/x@sha256:…: is not a readable tar archive: unexpected EOF during skip
    "#);
}

#[tokio::test]
async fn an_image_may_have_no_layer_or_the_same_twice() {
    let setup = setup(Options::default()).await;
    assert!(setup.fetch_layers(vec![]).await.unwrap().is_empty());
    assert_eq!(setup.fetch_layers(vec![layer(), layer()]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_tag_that_moves_between_resolving_and_fetching_changes_nothing() {
    let setup = setup(Options::default()).await;
    let old = setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    let new = Tar::new().file("new", "x").gzip();
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(new)])).unwrap();
    let tree = setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(*image.digest(), old.digest);
    assert_eq!(files(&tree), owned(&[("manifests/a.yaml", "a")]));
    assert_eq!(files(&setup.fetch("x:v1").await.unwrap()), owned(&[("new", "x")]));
}

#[tokio::test]
async fn a_digest_is_made_where_none_is_announced() {
    let setup = setup(Options::default()).await;
    let pushed = setup.registry.push_image("x", "v1", Image::of_layers(vec![])).unwrap();
    setup.registry.set_fault(Some((FaultOn::Manifests, Fault::NoDigestHeader)));
    assert_eq!(*setup.resolve("x:v1").await.unwrap().digest(), pushed.digest);
}

#[tokio::test]
async fn what_registries_do_wrong_is_told_apart() {
    let setup = setup(Options::default()).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let mut messages = Vec::new();
    for (on, fault, class, reason) in [
        (FaultOn::Everything, Fault::Status(500), FailureClass::Transient, "RegistryUnavailable"),
        (FaultOn::Everything, Fault::Status(429), FailureClass::Transient, "RateLimited"),
        (FaultOn::Everything, Fault::Status(401), FailureClass::Unavailable, "Unauthorized"),
        (FaultOn::Everything, Fault::Status(403), FailureClass::Unavailable, "Unauthorized"),
        (FaultOn::Blobs, Fault::Status(404), FailureClass::Unavailable, "ImageNotFound"),
        (FaultOn::Everything, Fault::Status(418), FailureClass::Permanent, "RegistryProtocol"),
        (FaultOn::Manifests, Fault::WrongBytes, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Manifests, Fault::Truncated, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Blobs, Fault::WrongBytes, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Blobs, Fault::Truncated, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Blobs, Fault::Longer, FailureClass::Transient, "InvalidImage"),
        (FaultOn::Blobs, Fault::Broken, FailureClass::Transient, "NetworkFailed"),
    ] {
        setup.registry.set_fault(Some((on, fault)));
        let error = setup.fetch("x:v1").await.unwrap_err();
        assert_eq!((error.class(), error.reason()), (class, reason), "{fault:?}: {error}");
        // The same words at each attempt.
        let again = setup.fetch("x:v1").await.unwrap_err();
        assert_eq!(error.to_string(), again.to_string());
        messages.push(format!("{on:?} {fault:?}: {}", setup.message(&error)));
    }
    setup.registry.set_fault(None);
    setup.fetch("x:v1").await.unwrap();
    for name in ["x:v2", "y:v1"] {
        let error = setup.fetch(name).await.unwrap_err();
        assert_eq!(error.class(), FailureClass::Unavailable);
        messages.push(setup.message(&error));
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    Everything Status(500): image registry/x:v1: registry answered 500 Internal Server Error
    Everything Status(429): image registry/x:v1: registry answered 429 Too Many Requests
    Everything Status(401): image registry/x:v1: registry answered 401 Unauthorized
    Everything Status(403): image registry/x:v1: registry answered 403 Forbidden
    Blobs Status(404): image registry/x@sha256:…: registry answered 404 Not Found: failing on purpose
    Everything Status(418): image registry/x:v1: registry answered 418 I'm a teapot
    Manifests WrongBytes: image registry/x@sha256:…: the manifest has the digest sha256:…; sha256:… was asked for
    Manifests Truncated: image registry/x@sha256:…: the manifest has the digest sha256:…; sha256:… was asked for
    Blobs WrongBytes: image registry/x@sha256:…: layer … has the digest sha256:…; sha256:… was asked for
    Blobs Truncated: image registry/x@sha256:…: layer … has 1280 bytes; the manifest says 2560
    Blobs Longer: image registry/x@sha256:…: layer … has more than 2560 bytes; the manifest says 2560
    Blobs Broken: image registry/x@sha256:…: registry broke the connection (asked without TLS): connection closed before message completed
    image registry/x:v2: registry answered 404 Not Found
    image registry/y:v1: registry answered 404 Not Found
    ");
}

#[tokio::test]
async fn a_registry_that_wants_to_be_left_alone_is_heard() {
    let setup = setup(Options::default()).await;
    setup.registry.set_fault(Some((FaultOn::Everything, Fault::Status(429))));
    let Err(ContentError::Registry(error)) = setup.resolve("x:v1").await else { panic!("it answered") };
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn silence_and_absence_end_in_time() {
    let (_directory, store) = store(Limits::default());
    let registry = Registry::start(Options::default()).await.unwrap();
    registry.set_fault(Some((FaultOn::Everything, Fault::Silent)));
    let reference: ImageReference = format!("{}/x:v1", registry.host()).parse().unwrap();
    let short = Duration::from_millis(50);
    for (options, reason, message) in [
        (ImageOptions { idle_timeout: short, ..ImageOptions::default() }, "NetworkFailed", "did not answer in time"),
        (ImageOptions { total_timeout: short, ..ImageOptions::default() }, "Timeout", "not fetched within"),
    ] {
        let images = Images::new(store.clone(), options);
        let error = images.resolve(&reference, &ImageAccess::default()).await.unwrap_err();
        assert_eq!((error.class(), error.reason()), (FailureClass::Transient, reason));
        assert!(error.to_string().contains(message), "{error}");
    }
    // A port that was just given back.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let reference: ImageReference = format!("{gone}/x:v1").parse().unwrap();
    let images = Images::new(store, ImageOptions::default());
    let error = images.resolve(&reference, &ImageAccess::default()).await.unwrap_err();
    assert_eq!((error.class(), error.reason()), (FailureClass::Transient, "NetworkFailed"));
    let expected =
        format!("image {gone}/x:v1: {gone} cannot be reached (asked without TLS): Connection refused (os error 111)");
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn certificates_are_checked_unless_told_otherwise() {
    let setup = setup(Options { tls: true, ..Options::default() }).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![])).unwrap();
    let reference = setup.reference("x:v1");
    let other = Registry::start(Options { tls: true, ..Options::default() }).await.unwrap();
    let pem = |pem: &str| ImageAccess { certificate_authority: Some(pem.into()), ..ImageAccess::default() };
    setup.images.resolve(&reference, &setup.access).await.unwrap();
    let skip = ImageAccess { insecure_skip_tls_verify: true, ..ImageAccess::default() };
    setup.images.resolve(&reference, &skip).await.unwrap();
    let mut messages = Vec::new();
    for (access, reason) in [
        (pem(other.certificate_authority().unwrap()), "CertificateNotTrusted"),
        (pem("nonsense"), "InvalidAccess"),
        (pem("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n"), "InvalidAccess"),
        (pem("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), "InvalidAccess"),
        (ImageAccess { insecure_skip_tls_verify: true, ..pem("nonsense") }, "InvalidAccess"),
        // Without certificates a registry on this machine is spoken to in plain text, which this one does not understand.
        (ImageAccess::default(), "NetworkFailed"),
    ] {
        let error = setup.images.resolve(&reference, &access).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        messages.push(setup.message(&error));
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    image registry/x:v1: the connection to registry is not trusted: invalid peer certificate: BadSignature
    the certificate data is not usable: it holds no certificate in PEM
    the certificate data is not usable: invalid peer certificate: BadEncoding
    the certificate data is not usable: invalid peer certificate: BadEncoding
    the certificate data is not usable: it holds no certificate in PEM
    image registry/x:v1: registry broke the connection (asked without TLS): invalid HTTP version parsed
    ");
}

#[tokio::test]
async fn credentials_are_shown_and_never_told() {
    let (username, password) = ("user".to_owned(), "s3cret".to_owned());
    let basic = Some(Credentials::Basic { username: username.clone(), password: password.clone() });
    let wrong = Some(Credentials::Basic { username: username.clone(), password: "wr0ng".to_owned() });
    let identity = Some(Credentials::IdentityToken(password.clone()));
    let bearer = Some(Credentials::RegistryToken(password.clone()));
    let with_token = Authentication::Token { username: username.clone(), password: password.clone() };
    let with_basic = Authentication::Basic { username, password };
    for (authentication, credentials, allowed) in [
        (with_basic.clone(), basic.clone(), true),
        (with_basic.clone(), wrong.clone(), false),
        (with_basic.clone(), identity.clone(), false),
        (with_basic, None, false),
        (with_token.clone(), basic, true),
        (with_token.clone(), wrong, false),
        (with_token.clone(), identity, true),
        (with_token.clone(), bearer, false),
        (with_token, None, false),
    ] {
        let tls = allowed;
        let mut setup = setup(Options { tls, authentication, ..Options::default() }).await;
        setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
        setup.access.credentials = credentials;
        match setup.fetch("x:v1").await {
            Ok(_) => assert!(allowed, "{:?}", setup.access),
            Err(error) => {
                assert!(!allowed, "{error}");
                assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "Unauthorized"));
                let told = format!("{error} {error:?} {:?}", setup.access);
                assert!(!told.contains("s3cret") && !told.contains("wr0ng"), "{told}");
            }
        }
    }
}

#[tokio::test]
async fn no_redirect_leads_out_of_tls() {
    let plain = Registry::start(Options::default()).await.unwrap();
    let setup = setup(Options { tls: true, ..Options::default() }).await;
    setup.registry.set_fault(Some((FaultOn::Everything, Fault::RedirectToPlain(plain.address().port()))));
    let error = setup.resolve("x:v1").await.unwrap_err();
    assert_eq!(error.reason(), "RegistryProtocol", "{error}");
    assert_eq!(plain.requests(), [""; 0]);
}

#[tokio::test]
async fn an_index_leads_to_the_image_for_the_platform() {
    let setup = setup(Options::default()).await;
    let mut entries = Vec::new();
    for (os, architecture) in [("linux", "arm64"), ("linux", "amd64")] {
        let layer = Tar::new().file(architecture, os).gzip();
        let pushed =
            setup.registry.push_image("x", architecture, Image::of_layers(vec![Layer::tar_gzip(layer)])).unwrap();
        entries.push(json!({
            "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": pushed.digest, "size": 1,
            "platform": {"os": os, "architecture": architecture}
        }));
    }
    let push = |tag: &str, media_type: &str, manifests: &[serde_json::Value]| {
        let index = json!({"schemaVersion": 2, "mediaType": media_type, "manifests": manifests});
        setup.registry.push_manifest("x", tag, media_type, index.to_string().into_bytes()).unwrap()
    };
    let oci = "application/vnd.oci.image.index.v1+json";
    let docker = "application/vnd.docker.distribution.manifest.list.v2+json";
    for (tag, media_type) in [("oci", oci), ("docker", docker)] {
        let pushed = push(tag, media_type, &entries);
        let image = setup.resolve(&format!("x:{tag}")).await.unwrap();
        assert_eq!(*image.digest(), pushed.digest);
        assert_eq!(files(&setup.images.fetch(&image, &setup.access).await.unwrap()), owned(&[("amd64", "linux")]));
    }
    // Another platform is another tree of the same image.
    let options = ImageOptions { platform: "linux/arm64".parse().unwrap(), ..ImageOptions::default() };
    let images = Images::new(setup.images.store().clone(), options);
    let tree = images.fetch(&setup.resolve("x:oci").await.unwrap(), &setup.access).await.unwrap();
    assert_eq!(files(&tree), owned(&[("arm64", "linux")]));
    push("other", oci, &entries[..1]);
    let nested = push("oci", oci, &entries);
    let platform = json!({"os": "linux", "architecture": "amd64"});
    push("nested", oci, &[json!({"mediaType": oci, "digest": nested.digest, "size": 1, "platform": platform})]);
    push("lying", oci, &[json!({"digest": nested.digest, "size": 1, "platform": platform})]);
    for (tag, expected) in [
        ("other", "the index has no image for linux/amd64; it has linux/arm64"),
        ("nested", "the index has no image for linux/amd64; it has none that names its platform"),
        ("lying", "the index leads to another index"),
    ] {
        let error = setup.fetch(&format!("x:{tag}")).await.unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    let image = setup.resolve("x:oci").await.unwrap();
    let error = setup.images.fetch_component(&image, &setup.access, 1000).await.unwrap_err();
    assert!(error.to_string().ends_with("it is an index; a component is one manifest for all platforms"), "{error}");
}

#[tokio::test]
async fn manifests_that_lie_are_refused() {
    let setup = setup(Options::default()).await;
    let bytes = layer();
    setup.registry.push_blob("x", "", bytes.clone()).unwrap();
    let (digest, size) = (Digest::of(&bytes), bytes.len());
    let media_type = "application/vnd.oci.image.layer.v1.tar+gzip";
    let of = |layer: serde_json::Value| json!({"schemaVersion": 2, "config": {}, "layers": [layer]});
    let mut messages = Vec::new();
    for manifest in [
        json!({"schemaVersion": 1}),
        json!({"schemaVersion": 2, "config": {}, "layers": [], "manifests": []}),
        json!({"schemaVersion": 2, "mediaType": "text/plain", "layers": []}),
        json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "layers": []}),
        json!({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "manifests": []}),
        of(json!({"mediaType": "text/plain", "digest": digest, "size": size})),
        of(json!({"mediaType": media_type, "digest": "sha256:../../etc", "size": size})),
        of(json!({"mediaType": media_type, "digest": digest, "size": -1})),
        of(json!({"mediaType": media_type, "digest": digest, "size": 1_u64 << 40})),
        of(json!({"mediaType": media_type, "digest": digest, "size": size - 1})),
        of(json!({"mediaType": media_type, "digest": digest, "size": size + 1})),
        json!({"schemaVersion": 2, "config": {}, "layers": vec![json!({"mediaType": media_type, "digest": digest, "size": size}); 129]}),
    ] {
        setup.registry.push_manifest("x", "v1", "", manifest.to_string().into_bytes()).unwrap();
        messages.push(setup.message(&setup.fetch("x:v1").await.unwrap_err()));
    }
    setup.registry.push_manifest("x", "v1", "", vec![b' '; (4 << 20) + 1]).unwrap();
    messages.push(setup.message(&setup.fetch("x:v1").await.unwrap_err()));
    insta::assert_snapshot!(messages.join("\n"), @r#"
    image registry/x@sha256:…: the manifest cannot be read: it has the schema version 1
    image registry/x@sha256:…: the manifest is an image and an index at once
    image registry/x@sha256:…: the manifest has the media type "text/plain", which is not supported
    image registry/x@sha256:…: the manifest cannot be read: it is not what its media type says
    image registry/x@sha256:…: the manifest cannot be read: it is not what its media type says
    image registry/x@sha256:…: layer 0 has the media type "text/plain", which is not a bundle's
    image registry/x@sha256:…: the manifest cannot be read: "sha256:../../etc" is not a digest: want `sha256:` and 64 lower-case hexadecimal digits at line 1 column 51
    image registry/x@sha256:…: the manifest cannot be read: invalid value: integer `-1`, expected u64 at line 1 column 174
    image registry/x@sha256:…: its layers are larger than 256 MiB together
    image registry/x@sha256:…: layer … has more than 2559 bytes; the manifest says 2559
    image registry/x@sha256:…: layer … has 2560 bytes; the manifest says 2561
    image registry/x@sha256:…: it has more than 128 layers
    image registry/x@sha256:…: its manifest is larger than 4 MiB
    "#);
}

#[tokio::test]
async fn docker_manifests_are_read() {
    let setup = setup(Options::default()).await;
    let layer = setup.registry.push_blob("x", "application/vnd.docker.image.rootfs.diff.tar.gzip", layer()).unwrap();
    let media_type = "application/vnd.docker.distribution.manifest.v2+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": {}, "layers": [layer]});
    setup.registry.push_manifest("x", "v1", media_type, manifest.to_string().into_bytes()).unwrap();
    assert_eq!(setup.fetch("x:v1").await.unwrap().len(), 1);
}

#[tokio::test]
async fn components_are_one_layer_of_wasm() {
    let setup = setup(Options::default()).await;
    setup.registry.push_component("plugin", "v1", b"\0asm".to_vec()).unwrap();
    let image = setup.resolve("plugin:v1").await.unwrap();
    let fetch = async |image: &ResolvedImage, most| setup.images.fetch_component(image, &setup.access, most).await;
    let error = fetch(&image, 3).await.unwrap_err();
    assert!(error.to_string().ends_with("its component is larger than 3 bytes"), "{error}");
    assert_eq!(fetch(&image, 4).await.unwrap(), b"\0asm");
    // From the store, and under the bound of the one who asks.
    let requests = setup.registry.requests().len();
    assert_eq!(fetch(&image, 4).await.unwrap(), b"\0asm");
    let error = fetch(&image, 3).await.unwrap_err();
    assert!(error.to_string().ends_with("its component is larger than 3 bytes"), "{error}");
    assert_eq!(setup.registry.requests().len(), requests);
    // A component is no bundle.
    let error = setup.images.fetch(&image, &setup.access).await.unwrap_err();
    assert!(error.to_string().ends_with("layer 0 has the media type \"application/wasm\", which is not a bundle's"));
    let wasm = |media_type: &str| Layer { media_type: media_type.to_owned(), bytes: b"\0asm".to_vec() };
    let legacy = wasm("application/vnd.wasm.content.layer.v1+wasm");
    for (layers, expected) in [
        (vec![legacy], Ok(())),
        (vec![], Err("this has none")),
        (vec![wasm("application/wasm"), wasm("application/wasm")], Err("this has 2 layers")),
        (vec![wasm("text/plain")], Err("this has one of the media type \"text/plain\"")),
    ] {
        setup.registry.push_image("other", "v1", Image::of_layers(layers)).unwrap();
        let image = setup.resolve("other:v1").await.unwrap();
        match (fetch(&image, 100).await, expected) {
            (Ok(bytes), Ok(())) => assert_eq!(bytes, b"\0asm"),
            (Err(error), Err(expected)) => assert!(error.to_string().ends_with(expected), "{error}"),
            (outcome, _) => panic!("{outcome:?}"),
        }
    }
    setup.registry.push_component("spoiled", "v1", b"other".to_vec()).unwrap();
    setup.registry.set_fault(Some((FaultOn::Blobs, Fault::WrongBytes)));
    let image = setup.resolve("spoiled:v1").await.unwrap();
    assert_eq!(fetch(&image, 100).await.unwrap_err().class(), FailureClass::Transient);
}

#[tokio::test]
async fn the_same_image_is_fetched_once() {
    let setup = setup(Options::default()).await;
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    let before = setup.registry.requests().len();
    let (one, two) = tokio::join!(setup.images.fetch(&image, &setup.access), setup.images.fetch(&image, &setup.access));
    assert_eq!(one.unwrap().digest(), two.unwrap().digest());
    assert_eq!(setup.registry.requests().len(), before + 2);
    // Another process, with a store of its own over the same directory, needs nothing more.
    let store = Store::open(&setup.directory.path().join("cache"), Limits::default()).unwrap();
    let images = Images::new(store, ImageOptions::default());
    images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(setup.registry.requests().len(), before + 2);
}

#[tokio::test]
async fn a_fetch_that_nobody_waits_for_ends_at_once() {
    let setup = setup(Options::default()).await;
    let file = |number: u8| (0..4_u32 << 20).map(|at| at.to_be_bytes()[2] ^ number).map(char::from).collect::<String>();
    let tar = (0..6).fold(Tar::new(), |tar, number| tar.file(&format!("{number}"), &file(number)));
    setup.registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(tar.plain())])).unwrap();
    let image = setup.resolve("x:v1").await.unwrap();
    let cache = setup.directory.path().join("cache");
    let below = |name: &str| fs::read_dir(cache.join(name)).unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let begun = || {
        let mut packs = below("work").map(|work| work.join("tree/pack"));
        packs.any(|pack| fs::metadata(pack).is_ok_and(|metadata| metadata.len() > 0))
    };
    let mut fetch = Box::pin(setup.images.fetch(&image, &setup.access));
    while !begun() {
        tokio::select! {
            biased;
            ended = &mut fetch => panic!("{ended:?} before it was seen to unpack"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(fetch);
    while below("work").next().is_some() {
        std::thread::yield_now();
    }
    // It did not unpack to the end first.
    assert_eq!(below("trees").count(), 0);
    assert_eq!(setup.fetch("x:v1").await.unwrap().len(), 6);
}
