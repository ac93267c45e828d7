//! Mistakes with images and registries.

use std::{collections::BTreeMap, fs, os::unix::fs::PermissionsExt as _};

use chandler_devregistry::{Authentication, Fault, FaultOn, Image, Options, Registry};

use super::{Messages, mistake, servers::unused_port};
use crate::support::root;

const BUNDLE: &str = "tests/fixtures/plain/lighthouse";
const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

async fn registry(authentication: Authentication) -> Registry {
    let registry = Registry::start(Options { authentication, ..Options::default() }).await.unwrap();
    registry.push_bundle_directory("shop/lighthouse", "v1", &root().join(BUNDLE), &BTreeMap::new()).await.unwrap();
    registry
}

#[test]
fn an_image_that_cannot_be_pulled_names_the_registry() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let open = runtime.block_on(registry(Authentication::None));
    let (username, password) = ("ann".to_owned(), "s3cret".to_owned());
    let closed = runtime.block_on(registry(Authentication::Basic { username, password }));
    open.push_image("shop/program", "v1", Image::of_layers(Vec::new())).unwrap();
    let mut messages = Messages::new();
    let gone = unused_port();
    let (host, locked) = (open.host(), closed.host());
    messages.name(host.clone(), "REGISTRY");
    messages.name(locked.clone(), "LOCKED");
    messages.name(format!("127.0.0.1:{gone}"), "GONE");
    let of = |name: &str| format!("{host}/{name}");
    let secret = format!("{locked}/shop/lighthouse:v1");
    // `ann:wrong`.
    let login = format!(r#"{{"auths": {{"{locked}": {{"auth": "YW5uOndyb25n"}}}}}}"#);
    let login = messages.file("login.json", &login);
    let broken = messages.file("broken.json", "{\"auths\"");
    let exposed = messages.file("exposed.json", "{}");
    fs::set_permissions(&exposed, fs::Permissions::from_mode(0o666)).unwrap();
    let with = |file: &str| vec!["render".to_owned(), secret.clone(), "--registry-config".to_owned(), file.to_owned()];
    messages.check(vec![
        mistake(
            "a tag that does not exist",
            &["render", &of("shop/lighthouse:v9")],
            "has no tag v9",
            "repository shop/lighthouse",
            "skopeo list-tags",
        ),
        mistake(
            "no tag",
            &["render", &of("shop/lighthouse")],
            "has no tag latest",
            "repository shop/lighthouse",
            "skopeo list-tags",
        ),
        mistake(
            "a mistyped repository",
            &["render", &of("shop/lighthous:v1")],
            "has no repository shop/lighthous",
            &host,
            "check the name",
        ),
        mistake(
            "a digest that does not exist",
            &["render", &of(&format!("shop/lighthouse@{DIGEST}"))],
            "has no manifest sha256:",
            "repository shop/lighthouse",
            "check the name",
        ),
        mistake(
            "half a digest",
            &["render", &of("shop/lighthouse@sha256:e3b0")],
            "no valid image",
            of("shop/lighthouse@sha256:e3b0"),
            "64 hexadecimal digits",
        ),
        mistake(
            "upper case",
            &["render", "quay.io/Shop/Lighthouse:v1"],
            "no valid image",
            "quay.io/Shop/Lighthouse:v1",
            "lower case",
        ),
        mistake(
            "an image without a registry",
            &["render", "nginx"],
            "no such file or directory",
            "nginx",
            "write an image with its registry",
        ),
        mistake(
            "a registry that is not running",
            &["render", &format!("127.0.0.1:{gone}/a:v1")],
            "Connection refused",
            format!("127.0.0.1:{gone}"),
            "curl -i https://127.0.0.1:",
        ),
        mistake(
            "a mistyped host",
            &["render", "quay.invalid/a:v1"],
            "is not in DNS",
            "quay.invalid",
            "check the spelling of quay.invalid",
        ),
        mistake(
            "no credentials",
            &["render", &secret],
            "access to repository shop/lighthouse is denied",
            &locked,
            "docker login",
        ),
        mistake(
            "credentials for a registry without TLS",
            &with(&login),
            "wants credentials and does not speak TLS",
            &locked,
            "--plain-http-registry",
        ),
        mistake(
            "a wrong password",
            &[with(&login), vec!["--plain-http-registry".to_owned(), locked.clone()]].concat(),
            "access to repository shop/lighthouse is denied",
            &locked,
            "docker login",
        ),
        mistake("credentials that are not there", &with("none.json"), "failed to read", "none.json", "check the path"),
        mistake("broken credentials", &with(&broken), "failed to read the credentials", &broken, "docker login"),
        mistake(
            "credentials that others can write",
            &with(&exposed),
            "can be written by other users",
            &exposed,
            "chmod 600",
        ),
        mistake(
            "the image of a program",
            &["render", &of("shop/program:v1")],
            "the bundle is empty",
            "no files",
            "manifests/",
        ),
    ]);
    for (fault, row) in [
        (
            Fault::Status(500),
            mistake(
                "a registry that fails",
                &["render", &of("shop/lighthouse:v1")],
                "answered 500",
                &host,
                "try again",
            ),
        ),
        (
            Fault::Status(429),
            mistake("too many pulls", &["render", &of("shop/lighthouse:v1")], "answered 429", &host, "wait before"),
        ),
        (
            Fault::Status(418),
            mistake("no registry", &["render", &of("shop/lighthouse:v1")], "answered 418", &host, "is an OCI registry"),
        ),
        (
            Fault::WrongBytes,
            mistake("a damaged image", &["render", &of("shop/lighthouse:v1")], "has the digest", &host, "try again"),
        ),
    ] {
        open.set_fault(Some((FaultOn::Manifests, fault)));
        messages.check(vec![row]);
    }
    insta::assert_snapshot!("mistakes.images", messages.finish());
}
