use reqwest::header::WWW_AUTHENTICATE;

use super::*;

fn client(registry: &str, credentials: Option<Credentials>, options: ImageOptions) -> Client {
    let image = format!("{registry}/x:v1").parse().unwrap();
    let access = ImageAccess { credentials, ..ImageAccess::default() };
    let endpoint = Endpoint { image, access, plain: false };
    Client::new(&endpoint, Purpose::Pull, None, &Arc::new(options), &SystemRoots::default(), &Arc::default()).unwrap()
}

fn challenge(text: &str) -> HeaderMap {
    HeaderMap::from_iter([(WWW_AUTHENTICATE, HeaderValue::from_str(text).unwrap())])
}

#[tokio::test]
async fn credentials_are_not_sent_without_tls_but_to_this_machine() {
    let credentials = || {
        let basic = Credentials::Basic { username: "user".to_owned(), password: "s3cret".to_owned() };
        [basic, Credentials::IdentityToken("s3cret".to_owned()), Credentials::RegistryToken("s3cret".to_owned())]
    };
    // That an administrator lists a registry as one without TLS is not enough.
    let listed = ["registry.lan:5000".to_owned()];
    let options = || ImageOptions { plain_http_registries: listed.to_vec(), ..ImageOptions::default() };
    for credentials in credentials() {
        for wanted in [
            "Basic realm=\"r\"",
            "Bearer realm=\"https://tokens.lan/t\"",
            "Bearer realm=\"http://registry.lan:5000/t\"",
        ] {
            let client = client("registry.lan:5000", Some(credentials.clone()), options());
            let error = client.authorize(&challenge(wanted)).await.unwrap_err();
            assert_eq!(error.failure.reason(), "CredentialsNotSent", "{wanted}: {error}");
            assert!(error.to_string().contains("certificateData") && !error.to_string().contains("s3cret"), "{error}");
        }
        // A token server that is not of this machine.
        let local = ImageOptions { plain_http_registries: vec!["127.0.0.1:5000".to_owned()], ..options() };
        let client = client("127.0.0.1:5000", Some(credentials.clone()), local);
        let outcome = client.authorize(&challenge("Bearer realm=\"http://registry.lan:5000/t\"")).await;
        if !matches!(credentials, Credentials::RegistryToken(_)) {
            assert!(outcome.unwrap_err().to_string().ends_with("without TLS"));
        }
    }
    let [basic, ..] = credentials();
    let local = || ImageOptions { plain_http_registries: vec!["127.0.0.1:5000".to_owned()], ..options() };
    let here = client("127.0.0.1:5000", Some(basic.clone()), local());
    assert!(here.connection().is_plain());
    assert!(here.authorize(&challenge("Basic realm=\"r\"")).await.unwrap().is_some());
    // One of this machine that is not listed: with TLS, or not at all.
    let unlisted = client("127.0.0.1:5000", Some(basic.clone()), options());
    assert!(!unlisted.connection().is_plain());
    assert!(unlisted.authorize(&challenge("Basic realm=\"r\"")).await.unwrap().is_some());
    let plain = unlisted.connection.without_tls().unwrap();
    assert_eq!(plain.home().as_str(), "http://127.0.0.1:5000/v2/");
    assert!(unlisted.fallback.set(plain).is_ok());
    let error = unlisted.authorize(&challenge("Basic realm=\"r\"")).await.unwrap_err();
    assert_eq!(error.failure.reason(), "CredentialsNotSent", "{error}");
    let tls = client("registry.example", Some(basic), options());
    assert!(tls.authorize(&challenge("Basic realm=\"r\"")).await.unwrap().is_some());
}

#[tokio::test]
async fn a_registry_without_a_port_keeps_the_port_of_tls() {
    let local = client("localhost", None, ImageOptions::default());
    assert_eq!(local.connection.without_tls().unwrap().home().as_str(), "http://localhost:443/v2/");
}

#[test]
fn only_this_machine_and_what_is_listed_is_asked_without_tls() {
    let listed = ["registry.lan:5000".to_owned()];
    for (registry, expected) in [
        ("localhost", true),
        ("localhost:5000", true),
        ("127.0.0.1:5000", true),
        ("127.8.9.1", true),
        ("[::1]:5000", true),
        ("registry.lan:5000", true),
        ("Registry.LAN:5000", true),
        ("LOCALHOST:5000", true),
        ("registry.lan", false),
        ("localhost.example.com", false),
        ("127.0.0.1.example.com:5000", false),
        ("10.0.0.1:5000", false),
        ("quay.io", false),
    ] {
        assert_eq!(may_be_plain(registry, &listed), expected, "{registry}");
    }
}
