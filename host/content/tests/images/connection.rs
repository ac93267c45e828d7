//! Certificates, credentials and redirects.

use std::sync::Arc;

use chandler_content::{Credentials, FailureClass, ImageAccess, ImageOptions, Images, Limits};
use chandler_devregistry::{Authentication, Fault, FaultOn, Image, Layer, Options, Registry};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    common::store,
    images::setup::{layer, setup},
};

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
        // This holds for a registry on this machine, too: it is not asked without TLS, since it speaks TLS.
        (ImageAccess::default(), "CertificateNotTrusted"),
    ] {
        let error = setup.images.resolve(&reference, &access).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        messages.push(setup.message(&error));
    }
    insta::assert_snapshot!(messages.join("\n"), @"
    image registry/x:v1: the connection to registry is not trusted: its certificate is not signed by the authority that it names
    the certificate data is not usable: it holds no certificate in PEM
    the certificate data is not usable: its certificate cannot be parsed
    the certificate data is not usable: its certificate cannot be parsed
    the certificate data is not usable: it holds no certificate in PEM
    image registry/x:v1: the connection to registry is not trusted: its certificate is signed by an unknown authority
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
async fn a_registry_of_this_machine_without_tls_gets_no_credentials_unless_it_is_listed() {
    let authentication = Authentication::Basic { username: "user".to_owned(), password: "s3cret".to_owned() };
    let open = Registry::start(Options::default()).await.unwrap();
    let locked = Registry::start(Options { authentication, ..Options::default() }).await.unwrap();
    for registry in [&open, &locked] {
        registry.push_image("x", "v1", Image::of_layers(vec![Layer::tar_gzip(layer())])).unwrap();
    }
    let credentials = Some(Credentials::Basic { username: "user".to_owned(), password: "s3cret".to_owned() });
    let access = ImageAccess { credentials, ..ImageAccess::default() };
    let pull = async |registry: &Registry, listed: &[&Registry]| {
        let (_directory, store) = store(Limits::default());
        let plain_http_registries = listed.iter().map(|registry| registry.host()).collect();
        let images = Images::new(store, ImageOptions { plain_http_registries, ..ImageOptions::default() });
        let image = images.resolve(&format!("{}/x:v1", registry.host()).parse().unwrap(), &access).await?;
        images.fetch(&image, &access).await.map(drop)
    };
    pull(&open, &[]).await.unwrap();
    let error = pull(&locked, &[&open]).await.unwrap_err();
    assert_eq!(error.reason(), "CredentialsNotSent", "{error}");
    let expected = format!(
        "image {host}/x:v1: {host} wants credentials and does not speak TLS; on this machine, they are sent without TLS only if \
         --plain-http-registry lists it",
        host = locked.host()
    );
    assert_eq!(error.to_string(), expected);
    pull(&locked, &[&locked]).await.unwrap();
}

#[tokio::test]
async fn a_server_that_closes_the_connection_may_speak_tls() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        while requests.len() < 2 {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).await.unwrap_or_default();
            requests.push(bytes[..read].to_vec());
        }
        requests
    });
    let (_directory, store) = store(Limits::default());
    let images = Images::new(store, ImageOptions::default());
    for _ in 0..2 {
        let image = format!("{host}/x:v1").parse().unwrap();
        let error = images.resolve(&image, &ImageAccess::default()).await.unwrap_err();
        assert_eq!(error.reason(), "NetworkFailed", "{error}");
    }
    // The first byte of a handshake, and no method of HTTP.
    assert!(server.await.unwrap().iter().all(|request| request.first() == Some(&0x16)));
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

/// A registry behind TLS with a certificate of its own, as `openssl req -x509` makes it: self-signed, with `CA:TRUE`.
async fn self_signed(name: &str, expired: bool) -> (String, String) {
    let mut certificate = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    certificate.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    if expired {
        certificate.not_before = rcgen::date_time_ymd(2020, 1, 1);
        certificate.not_after = rcgen::date_time_ymd(2021, 1, 1);
    }
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = acceptor.accept(stream).await {
                // The message does not matter: only clients that trust the registry receive it.
                let answer = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            }
        }
    });
    (address.to_string(), certificate.pem())
}

#[tokio::test]
async fn a_self_signed_authority_is_trusted_as_a_server_where_the_source_names_it() {
    let (_directory, store) = store(Limits::default());
    let images = Images::new(store, ImageOptions::default());
    let (host, pem) = self_signed("127.0.0.1", false).await;
    let (expired_host, expired) = self_signed("127.0.0.1", true).await;
    let (named_host, named) = self_signed("registry.example.com", false).await;
    for (host, pem, reason, words) in [
        (&host, &pem, "RateLimited", "answered 429"),
        // Of another authority, although both have the same name.
        (&host, &named, "CertificateNotTrusted", "is not trusted: its certificate"),
        (&expired_host, &expired, "CertificateNotTrusted", "its certificate has expired"),
        (&named_host, &named, "CertificateNotTrusted", "its certificate is for another host name"),
    ] {
        let access = ImageAccess { certificate_authority: Some(pem.clone().into()), ..ImageAccess::default() };
        let error = images.resolve(&format!("{host}/x:v1").parse().unwrap(), &access).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}
