//! Certificates, credentials and redirects.

use chandler_content::{Credentials, FailureClass, ImageAccess};
use chandler_devregistry::{Authentication, Fault, FaultOn, Image, Layer, Options, Registry};

use crate::setup::{layer, setup};

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
