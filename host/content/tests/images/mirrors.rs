//! Mirrors, blocked and insecure registries, and certificates that an administrator sets.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use chandler_content::{
    ContentError, Credentials, FailureClass, ImageAccess, ImageOptions, ImageReference, Images, Limits, PullSecrets,
    RegistrySettings, Tree,
};
use chandler_devregistry::{Authentication, Fault, FaultOn, Image, Layer, Options, Registry};
use chandler_registries::Registries;
use chandler_test_support::signatures::{Key, Sigstore, push_bundle};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    common::{files, store},
    images::{
        setup::{layer, owned},
        signatures,
    },
};

/// The registry of a source, a mirror of it, and a client.
struct Mirrored {
    source: Registry,
    mirror: Registry,
    images: Images,
    access: ImageAccess,
    _directory: TempDir,
}

/// The text of a registries.conf, in which `SOURCE` and `MIRROR` are hosts.
fn settings(text: &str, source: &str, mirror: &str) -> Registries {
    let mut registries = Registries::default();
    let text = text.replace("SOURCE", source).replace("MIRROR", mirror);
    registries.add_file("registries.conf".as_ref(), &text).unwrap();
    registries
}

const MIRROR: &str = "[[registry]]\nlocation = \"SOURCE/team\"\n[[registry.mirror]]\nlocation = \"MIRROR/copies/of\"\n";
const BLOCKED: &str =
    "[[registry]]\nlocation = \"SOURCE/team\"\nblocked = true\n[[registry.mirror]]\nlocation = \"MIRROR/copies/of\"\n";

async fn mirrored(text: &str, source: Options, mirror: Options) -> Mirrored {
    mirrored_within(ImageOptions::default().idle_timeout, text, source, mirror).await
}

/// Like [`mirrored`], with a time within which a registry has to answer.
async fn mirrored_within(idle_timeout: Duration, text: &str, source: Options, mirror: Options) -> Mirrored {
    let (source, mirror) = (Registry::start(source).await.unwrap(), Registry::start(mirror).await.unwrap());
    let (directory, store) = store(Limits::default());
    let registries = RegistrySettings::new(settings(text, &source.host(), &mirror.host()), Vec::new());
    let plain = [&source, &mirror].into_iter().filter(|registry| registry.certificate_authority().is_none());
    let plain_http_registries = plain.map(Registry::host).collect();
    let options = ImageOptions { registries, idle_timeout, plain_http_registries, ..ImageOptions::default() };
    let images = Images::new(store, options);
    for (registry, name) in [(&source, "team/app"), (&mirror, "copies/of/app")] {
        registry.push_image(name, "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    }
    Mirrored { source, mirror, images, access: ImageAccess::default(), _directory: directory }
}

impl Mirrored {
    fn image(&self) -> ImageReference {
        format!("{}/team/app:v1", self.source.host()).parse().unwrap()
    }

    async fn fetch(&self, image: &ImageReference) -> Result<Tree, ContentError> {
        self.images.fetch(&self.images.resolve(image, &self.access).await?, &self.access).await
    }

    /// The numbers of requests to the source and to the mirror.
    fn asked(&self) -> (usize, usize) {
        (self.source.requests().len(), self.mirror.requests().len())
    }
}

fn basic(password: &str) -> Credentials {
    Credentials::Basic { username: "user".to_owned(), password: password.to_owned() }
}

/// A pull secret with credentials for these hosts.
fn secret(entries: &[(&str, &str)]) -> PullSecrets {
    let entries = entries
        .iter()
        .map(|(host, password)| format!("\"{host}\": {{\"username\": \"user\", \"password\": \"{password}\"}}"));
    let text = format!("{{\"auths\": {{{}}}}}", entries.collect::<Vec<_>>().join(", "));
    PullSecrets::new([text.as_bytes()]).unwrap()
}

#[tokio::test]
async fn a_mirror_is_asked_instead_of_the_source() {
    let setup = mirrored(MIRROR, Options::default(), Options::default()).await;
    let image = setup.images.resolve(&setup.image(), &setup.access).await.unwrap();
    assert_eq!(image.pinned().to_string(), format!("{}/team/app@{}", setup.source.host(), image.digest()));
    let tree = setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(files(&tree), owned(&[("manifests/a.yaml", "a")]));
    let asked = setup.asked();
    assert_eq!(asked, (0, 3), "{:?}", setup.mirror.requests());
    setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(setup.asked(), asked);
    // Images beside those that are mirrored are not.
    let other = format!("{}/teams/app:v1", setup.source.host()).parse().unwrap();
    assert_eq!(setup.fetch(&other).await.unwrap_err().reason(), "ImageNotFound");
    assert_eq!(setup.asked().1, asked.1);
}

#[tokio::test]
async fn the_signatures_of_an_image_come_from_where_it_comes_from() {
    let key = Key::default();
    for (signed_mirror, signed_source) in [(true, false), (false, true), (false, false)] {
        let mut setup = mirrored(MIRROR, Options::default(), Options::default()).await;
        setup.access.signatures = Some(signatures::required(&Sigstore::new(), &signatures::by(&key)));
        let image = setup.images.resolve(&setup.image(), &setup.access).await.unwrap();
        for (signed, registry, name) in
            [(signed_mirror, &setup.mirror, "copies/of/app"), (signed_source, &setup.source, "team/app")]
        {
            if signed {
                push_bundle(registry, name, image.digest(), &[key.bundle(image.digest(), None)]);
            }
        }
        let fetched = setup.images.fetch(&image, &setup.access).await;
        let asked = setup.asked();
        match (signed_mirror, signed_source) {
            // A rule for the source holds for its mirrors: the name in the reference counts.
            (true, _) => assert_eq!((fetched.unwrap().len(), asked.0), (1, 0)),
            // Nothing is unpacked that came from the mirror.
            (false, true) => {
                assert_eq!(fetched.unwrap().len(), 1);
                assert!(!setup.mirror.requests().iter().any(|request| request.contains("/blobs/")));
                setup.images.fetch(&image, &setup.access).await.unwrap();
                assert_eq!(setup.asked(), asked);
            }
            (false, false) => {
                let error = fetched.unwrap_err();
                assert_eq!((error.class(), error.reason()), (FailureClass::Unavailable, "NoMatchingSignature"));
                assert_eq!(error.to_string().matches("it is not signed").count(), 2, "{error}");
            }
        }
    }
}

#[tokio::test]
async fn whatever_fails_at_a_mirror_the_source_is_asked() {
    for (on, fault) in [
        (FaultOn::Everything, Fault::Status(500)),
        (FaultOn::Everything, Fault::Status(429)),
        (FaultOn::Everything, Fault::Status(401)),
        (FaultOn::Everything, Fault::Status(404)),
        (FaultOn::Everything, Fault::Silent),
        (FaultOn::Manifests, Fault::WrongBytes),
        (FaultOn::Manifests, Fault::Truncated),
        (FaultOn::Blobs, Fault::WrongBytes),
        (FaultOn::Blobs, Fault::Longer),
        (FaultOn::Blobs, Fault::Broken),
    ] {
        // Only a silent mirror needs a short time; the source has to answer within it, too, whatever else the machine does.
        let seconds = if matches!(fault, Fault::Silent) { 2 } else { 30 };
        let within = Duration::from_secs(seconds);
        let setup = mirrored_within(within, MIRROR, Options::default(), Options::default()).await;
        setup.mirror.set_fault(Some((on, fault)));
        let tree = setup.fetch(&setup.image()).await.unwrap_or_else(|error| panic!("{on:?} {fault:?}: {error}"));
        assert_eq!(files(&tree), owned(&[("manifests/a.yaml", "a")]));
        let (source, mirror) = setup.asked();
        assert!(source > 0 && mirror > 0, "{on:?} {fault:?}");
        // The content from the source is in the cache, so the mirror is not asked for it.
        let image = setup.images.resolve(&setup.image(), &setup.access).await.unwrap();
        let before = setup.asked();
        setup.images.fetch(&image, &setup.access).await.unwrap();
        assert_eq!(setup.asked(), before, "{on:?} {fault:?}");
    }
}

#[tokio::test]
async fn the_error_names_all_that_were_asked() {
    let setup = mirrored(MIRROR, Options::default(), Options::default()).await;
    let absent = format!("{}/team/absent:v1", setup.source.host()).parse().unwrap();
    let error = setup.fetch(&absent).await.unwrap_err();
    assert_eq!((error.reason(), error.class()), ("ImageNotFound", FailureClass::Unavailable));
    let (source, mirror) = (setup.source.host(), setup.mirror.host());
    let expected = format!(
        "image {source}/team/absent:v1: no endpoint served it: {mirror}/copies/of/absent:v1: {mirror} has no repository \
         copies/of/absent; {source}/team/absent:v1: {source} has no repository team/absent"
    );
    assert_eq!(error.to_string(), expected);
    // That one may answer soon decides, wherever it is in the order.
    setup.mirror.set_fault(Some((FaultOn::Everything, Fault::Status(503))));
    let error = setup.fetch(&absent).await.unwrap_err();
    assert_eq!((error.reason(), error.class()), ("RegistryUnavailable", FailureClass::Transient), "{error}");
    assert_eq!(error.silent_registry(), Some(mirror.as_str()));
    // Many mirrors make no endless message.
    let mirrors = (0..32).map(|number| format!("[[registry.mirror]]\nlocation = \"MIRROR/m{number}\"\n"));
    let text = format!("[[registry]]\nlocation = \"SOURCE/team\"\n{}", mirrors.collect::<String>());
    setup.images.registry_settings().set(settings(&text, &source, &mirror));
    let error = setup.fetch(&absent).await.unwrap_err().to_string();
    assert!(error.ends_with("; and 28 more") && error.len() < 3000, "{error}");
}

#[tokio::test]
async fn a_blocked_source_is_never_contacted() {
    let setup = mirrored(BLOCKED, Options::default(), Options::default()).await;
    setup.fetch(&setup.image()).await.unwrap();
    setup.mirror.set_fault(Some((FaultOn::Everything, Fault::Status(500))));
    let error = setup.images.resolve(&setup.image(), &setup.access).await.unwrap_err();
    assert_eq!(error.class(), FailureClass::Transient, "{error}");
    let text = "[[registry]]\nlocation = \"SOURCE\"\nblocked = true\n";
    setup.images.registry_settings().set(settings(text, &setup.source.host(), ""));
    let error = setup.images.resolve(&setup.image(), &setup.access).await.unwrap_err();
    assert_eq!((error.reason(), error.class()), ("Blocked", FailureClass::Unavailable));
    let blocked = format!("images of {} are blocked by the settings for registries", setup.source.host());
    assert!(error.to_string().contains(&blocked), "{error}");
    assert_eq!(setup.asked().0, 0);
}

#[tokio::test]
async fn a_mirror_of_digests_is_not_asked_for_tags() {
    let text = MIRROR.replace("[[registry.mirror]]", "mirror-by-digest-only = true\n[[registry.mirror]]");
    let setup = mirrored(&text, Options::default(), Options::default()).await;
    let image = setup.images.resolve(&setup.image(), &setup.access).await.unwrap();
    assert_eq!(setup.asked(), (1, 0));
    setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(setup.asked(), (1, 2));
}

/// A server that wants a password, and notes what it is sent.
async fn curious() -> (String, Arc<Mutex<String>>) {
    let (listener, heard) = (TcpListener::bind("127.0.0.1:0").await.unwrap(), Arc::<Mutex<String>>::default());
    let (host, notes) = (listener.local_addr().unwrap().to_string(), Arc::clone(&heard));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 8192];
            let read = stream.read(&mut request).await.unwrap_or_default();
            request.truncate(read);
            notes.lock().unwrap().push_str(&String::from_utf8_lossy(&request).to_ascii_lowercase());
            let answer = "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic realm=\"x\"\r\ncontent-length: 0\r\n\
                          connection: close\r\n\r\n";
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (host, heard)
}

#[tokio::test]
async fn the_credentials_of_a_source_are_not_for_its_mirrors() {
    let authentication = Authentication::Basic { username: "user".to_owned(), password: "s3cret".to_owned() };
    let mut setup = mirrored(MIRROR, Options { authentication, ..Options::default() }, Options::default()).await;
    let (mirror, heard) = curious().await;
    let source = setup.source.host();
    let registries = RegistrySettings::new(settings(MIRROR, &source, &mirror), Vec::new());
    let plain_http_registries = vec![source.clone(), mirror.clone()];
    let options = ImageOptions { registries, plain_http_registries, ..ImageOptions::default() };
    setup.images = Images::new(setup.images.store().clone(), options);
    let encoded = "dxnlcjpzm2nyzxq="; // user:s3cret, in lower case
    let of_mirror = "dxnlcjptaxjyb3i="; // user:mirror, in lower case
    for (entries, sent) in [
        (vec![(source.as_str(), "s3cret")], None),
        (vec![(source.as_str(), "s3cret"), (&mirror, "mirror")], Some(of_mirror)),
        (vec![(&source, "s3cret"), (&format!("{mirror}/copies"), "mirror"), (&mirror, "other")], Some(of_mirror)),
        (vec![(&source, "s3cret"), (&format!("{mirror}/team"), "mirror")], None),
    ] {
        heard.lock().unwrap().clear();
        setup.access.credentials = Some(basic("s3cret"));
        setup.access.keyring = Some(Arc::new(secret(&entries)));
        setup.fetch(&setup.image()).await.unwrap();
        let heard = heard.lock().unwrap().clone();
        assert!(heard.contains("head /v2/copies/of/app/manifests/v1"), "{heard}");
        assert!(!heard.contains(encoded), "{entries:?}: {heard}");
        assert_eq!(heard.contains("authorization:"), sent.is_some(), "{entries:?}: {heard}");
        assert!(sent.is_none_or(|sent| heard.contains(sent)), "{entries:?}: {heard}");
    }
}

#[tokio::test]
async fn what_a_mirror_served_to_one_is_not_for_another() {
    let authentication = Authentication::Basic { username: "user".to_owned(), password: "mirror".to_owned() };
    let mut setup = mirrored(BLOCKED, Options::default(), Options { authentication, ..Options::default() }).await;
    let mirror = setup.mirror.host();
    setup.access.keyring = Some(Arc::new(secret(&[(&mirror, "mirror")])));
    let image = setup.images.resolve(&setup.image(), &setup.access).await.unwrap();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    let before = setup.asked();
    setup.images.fetch(&image, &setup.access).await.unwrap();
    assert_eq!(setup.asked(), before, "it is in the cache");
    let source_only = ImageAccess { credentials: Some(basic("mirror")), ..ImageAccess::default() };
    let wrong = ImageAccess { keyring: Some(Arc::new(secret(&[(&mirror, "wr0ng")]))), ..ImageAccess::default() };
    for access in [ImageAccess::default(), source_only, wrong] {
        let error = setup.images.fetch(&image, &access).await.unwrap_err();
        assert_eq!(error.reason(), "Unauthorized", "{error}");
    }
    // Nor does it prove anything to the source, when that is asked again.
    setup.images.registry_settings().set(Registries::default());
    setup.source.set_fault(Some((FaultOn::Everything, Fault::Status(401))));
    assert_eq!(setup.images.fetch(&image, &setup.access).await.unwrap_err().reason(), "Unauthorized");
}

#[tokio::test]
async fn an_insecure_mirror_is_asked_over_tls_and_then_without() {
    let insecure = format!("{BLOCKED}insecure = true\n");
    for (text, tls, works) in [(&insecure, true, true), (&insecure, false, true), (&BLOCKED.to_owned(), true, false)] {
        let setup = mirrored(text, Options::default(), Options { tls, ..Options::default() }).await;
        let fetched = setup.fetch(&setup.image()).await;
        assert_eq!(fetched.is_ok(), works, "{text} {tls} {fetched:?}");
    }
    // An answer over TLS counts.
    let setup = mirrored(&insecure, Options::default(), Options { tls: true, ..Options::default() }).await;
    let absent = format!("{}/team/absent:v1", setup.source.host()).parse().unwrap();
    let error = setup.fetch(&absent).await.unwrap_err();
    assert!(matches!(error, ContentError::Registry(_)), "{error}");
}

/// A directory certs.d with files for a registry.
fn certificates(registry: &str, contents: &[(&str, &str)]) -> (TempDir, Vec<PathBuf>) {
    let directory = tempfile::tempdir().unwrap();
    let of_registry = directory.path().join(registry);
    fs::create_dir(&of_registry).unwrap();
    for (name, text) in contents {
        fs::write(of_registry.join(name), text).unwrap();
    }
    let paths = vec![directory.path().to_owned()];
    (directory, paths)
}

async fn resolve_with(certificates: Vec<PathBuf>, image: &str) -> Result<(), ContentError> {
    let (_directory, store) = store(Limits::default());
    let registries = RegistrySettings::new(Registries::default(), certificates);
    let images = Images::new(store, ImageOptions { registries, ..ImageOptions::default() });
    images.resolve(&image.parse().unwrap(), &ImageAccess::default()).await.map(drop)
}

#[tokio::test]
async fn authorities_of_a_registry_are_trusted_for_it_only() {
    let registry = Registry::start(Options { tls: true, ..Options::default() }).await.unwrap();
    let other = Registry::start(Options { tls: true, ..Options::default() }).await.unwrap();
    registry.push_image("x", "v1", Image::of_layers(vec![])).unwrap();
    let (pem, wrong) = (registry.certificate_authority().unwrap(), other.certificate_authority().unwrap());
    let image = format!("{}/x:v1", registry.host());
    for (host, contents, reason) in [
        (registry.host(), vec![("ca.crt", pem)], None),
        (registry.host(), vec![("a.crt", wrong), ("b.crt", pem)], None),
        (registry.host(), vec![("a.crt", wrong)], Some("CertificateNotTrusted")),
        (registry.host(), vec![("a.crt", "nonsense")], Some("InvalidAccess")),
        (registry.host(), vec![("a.cert", pem)], Some("InvalidAccess")),
        (registry.host(), vec![("a.cert", pem), ("a.key", "s3cret")], Some("InvalidAccess")),
        // The certificates of another registry.
        (other.host(), vec![("ca.crt", pem)], Some("CertificateNotTrusted")),
    ] {
        let (_kept, directories) = certificates(&host, &contents);
        let resolved = resolve_with(directories, &image).await;
        assert_eq!(resolved.as_ref().err().map(ContentError::reason), reason, "{contents:?} {resolved:?}");
        assert!(!format!("{resolved:?}").contains("s3cret"), "{resolved:?}");
    }
}

/// A registry that wants a certificate of the client. Returns its host, its authority, and the client's certificate and key.
async fn wants_a_certificate() -> (String, String, [String; 2]) {
    let issue = |name: &str| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
        certificate.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let issuer = certificate.self_signed(&key).unwrap();
        let leaf_key = rcgen::KeyPair::generate().unwrap();
        let signer = rcgen::Issuer::new(certificate, key);
        let leaf = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&leaf_key, &signer).unwrap();
        (issuer, leaf, leaf_key)
    };
    let (authority, server, server_key) = issue("127.0.0.1");
    let (client_authority, client, client_key) = issue("client");
    let mut roots = RootCertStore::empty();
    roots.add(client_authority.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![server.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ndocker-content-digest: {digest}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                );
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    (host, authority.pem(), [client.pem(), client_key.serialize_pem()])
}

#[tokio::test]
async fn a_registry_gets_the_certificate_of_the_client() {
    let (host, authority, [certificate, key]) = wants_a_certificate().await;
    let image = format!("{host}/x:v1");
    let ca = ("ca.crt", authority.as_str());
    let (_kept, directories) = certificates(&host, &[ca, ("client.cert", &certificate), ("client.key", &key)]);
    resolve_with(directories, &image).await.unwrap();
    let (_kept, directories) = certificates(&host, &[ca]);
    resolve_with(directories, &image).await.unwrap_err();
    // The key of another certificate.
    let (_, _, [_, other]) = wants_a_certificate().await;
    let (_kept, directories) = certificates(&host, &[ca, ("client.cert", &certificate), ("client.key", &other)]);
    assert_eq!(resolve_with(directories, &image).await.unwrap_err().reason(), "InvalidAccess");
}
