use reqwest::header::WWW_AUTHENTICATE;

use super::*;
use crate::ImageAccess;

fn client(registry: &str, credentials: Option<Credentials>, options: ImageOptions) -> Client {
    let image = format!("{registry}/x:v1").parse().unwrap();
    let access = ImageAccess { credentials, ..ImageAccess::default() };
    let endpoint = Endpoint { image, access, plain: false };
    Client::new(&endpoint, None, &Arc::new(options), &SystemRoots::default(), &Arc::default()).unwrap()
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
        let client = client("127.0.0.1:5000", Some(credentials.clone()), options());
        let outcome = client.authorize(&challenge("Bearer realm=\"http://registry.lan:5000/t\"")).await;
        if !matches!(credentials, Credentials::RegistryToken(_)) {
            assert!(outcome.unwrap_err().to_string().ends_with("without TLS"));
        }
    }
    let [basic, ..] = credentials();
    let here = client("127.0.0.1:5000", Some(basic.clone()), options());
    assert!(here.authorize(&challenge("Basic realm=\"r\"")).await.unwrap().is_some());
    let tls = client("registry.example", Some(basic), options());
    assert!(tls.authorize(&challenge("Basic realm=\"r\"")).await.unwrap().is_some());
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
