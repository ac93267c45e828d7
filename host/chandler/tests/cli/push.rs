//! `chandler push`: bundles and catalogs that other commands read back.

use std::fs;

use chandler_devregistry::{Authentication, Options, Registry};

use crate::{registries::User, support::root};

const LIGHTHOUSE: &str = "tests/fixtures/plain/lighthouse";
const HARBOUR: &str = "tests/fixtures/registry/harbour-operator.v0.1.0";

fn start(options: Options) -> (tokio::runtime::Runtime, Registry) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let registry = runtime.block_on(Registry::start(options)).unwrap();
    (runtime, registry)
}

/// The configuration of an image, as other tools see it.
async fn configuration(image: &str) -> serde_json::Value {
    use oci_client::{Client, client::ClientConfig, client::ClientProtocol, secrets::RegistryAuth};
    let config = ClientConfig { protocol: ClientProtocol::Http, ..ClientConfig::default() };
    let client = Client::try_from(config).unwrap();
    let pulled = client.pull_manifest_and_config(&image.parse().unwrap(), &RegistryAuth::Anonymous).await.unwrap();
    serde_json::from_str(&pulled.2).unwrap()
}

#[test]
fn a_bundle_is_pushed_with_its_labels_and_the_same_files_make_the_same_image() {
    let (runtime, registry) = start(Options::default());
    let user = User::new();
    let image = format!("{}/shop/harbour:v0.1.0", registry.host());
    let pushed = user.run(&["push", HARBOUR, &image]);
    assert!(pushed.stderr.contains(&format!("pushed {image} (")), "{}", pushed.stderr);
    let first = pushed.data();
    assert!(first.starts_with(&format!("{}/shop/harbour@sha256:", registry.host())), "{first}");
    // From an archive of the same files, and over the first one.
    let archive = user.home.path().join("harbour.tgz");
    fs::write(&archive, crate::support::packed(HARBOUR)).unwrap();
    assert_eq!(user.run(&["push", archive.to_str().unwrap(), &image]).data(), first);

    rustls::crypto::ring::default_provider().install_default().ok();
    let configuration = runtime.block_on(configuration(&image));
    let labels = &configuration["config"]["Labels"];
    assert_eq!(labels["operators.operatorframework.io.bundle.mediatype.v1"], "registry+v1", "{configuration}");
    assert_eq!(labels["operators.operatorframework.io.bundle.package.v1"], "harbour-operator", "{configuration}");

    let directory = user.run(&["render", HARBOUR, "--name", "harbour"]).data();
    assert_eq!(user.run(&["render", &image, "--name", "harbour"]).data(), directory);
    assert_eq!(user.run(&["render", first.trim_end(), "--name", "harbour"]).data(), directory);
}

#[test]
fn files_that_a_chart_ignores_are_not_pushed() {
    let (_runtime, registry) = start(Options::default());
    let user = User::new();
    let image = format!("{}/charts/web:1.2.3", registry.host());
    user.write("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.2.3\n");
    user.write("web/.helmignore", ".env\n.git/\n");
    let web = user.home.path().join("web");
    let push = || user.run(&["push", web.to_str().unwrap(), &image]);
    let expected = push().data();
    user.write("web/.env", "PASSWORD=secret\n");
    user.write("web/.git/config", "token\n");
    assert_eq!(push().data(), expected, "the same files make the same image");
    // A chart that would leave itself out, or rules that Helm refuses: nothing is pushed.
    for (rules, part) in [("Chart.yaml\n", "leaves out Chart.yaml"), ("**/.env\n", "double-star (**)")] {
        user.write("web/.helmignore", rules);
        let refused = push();
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.contains(part) && refused.stdout.is_empty(), "{}", refused.stderr);
    }
    user.write("web/.helmignore", "");
    assert_ne!(push().data(), expected);
}

#[test]
fn a_catalog_is_checked_and_pushed() {
    let (_runtime, registry) = start(Options::default());
    let user = User::new();
    let image = format!("{}/shop/catalog:latest", registry.host());
    let catalog = root().join("docs/tutorial/catalog");
    user.run(&["push", "--catalog", catalog.to_str().unwrap(), &image]).data();
    let shown = user.run(&["catalog", "versions", "harbour", "--catalog", &image]).data();
    assert!(shown.contains("0.2.0"), "{shown}");

    let text = fs::read_to_string(catalog.join("harbour.yaml")).unwrap();
    user.write("broken/harbour.yaml", &text.replace("package: harbour\nname: stable", "package: harbor\nname: stable"));
    let broken = user.home.path().join("broken");
    let refused = user.run(&["push", "--catalog", broken.to_str().unwrap(), &image]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("chandler catalog lint"), "{}", refused.stderr);
}

#[test]
fn the_registry_is_reached_as_for_a_pull() {
    let authentication = Authentication::Token { username: "ann".to_owned(), password: "s3cret".to_owned() };
    let (_runtime, registry) = start(Options { tls: true, authentication, ..Options::default() });
    let (user, host) = (User::new(), registry.host().clone());
    let image = format!("{host}/shop/lighthouse:v1");
    let push = |user: &User| user.run(&["push", LIGHTHOUSE, &image]);
    let certificate = format!(".config/containers/certs.d/{host}/ca.crt");
    user.write(&certificate, registry.certificate_authority().unwrap());
    let denied = push(&user);
    assert_eq!(denied.code, Some(1), "{}", denied.stderr);
    assert!(denied.stderr.contains(&format!("docker login {host}")), "{}", denied.stderr);
    // `ann:s3cret`.
    user.write(".docker/config.json", &format!(r#"{{"auths": {{"{host}": {{"auth": "YW5uOnMzY3JldA=="}}}}}}"#));
    let pushed = push(&user);
    assert!(!pushed.stderr.contains("s3cret"), "{}", pushed.stderr);
    pushed.data();
    assert!(user.run(&["render", &image, "--name", "lighthouse"]).data().contains("lighthouse"));
    let (key, pair) = (certificate.replace("ca.crt", "me.key"), certificate.replace("ca.crt", "me.cert"));
    for (files, part) in [
        // Without the authority of the registry.
        (vec![(&certificate, "")], format!("certs.d/{host}")),
        (
            vec![(&certificate, "-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n")],
            format!("the certificates for registry {host} are not usable"),
        ),
        (vec![(&key, "")], "me.cert".to_owned()),
        (
            vec![(&certificate, registry.certificate_authority().unwrap()), (&pair, "")],
            "the key of the client's certificate is not a key in PEM".to_owned(),
        ),
    ] {
        for (path, text) in files {
            user.write(path, text);
        }
        let refused = push(&user);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert!(refused.stderr.replace("\n         ", " ").contains(&part), "{part}: {}", refused.stderr);
        assert!(!refused.stderr.contains("ERROR"), "{}", refused.stderr);
    }
}

#[test]
fn a_blocked_registry_gets_nothing() {
    let (_runtime, registry) = start(Options::default());
    let user = User::new();
    let (image, host) = (format!("{}/shop/lighthouse:v1", registry.host()), registry.host());
    let settings = |lines: &str| {
        user.write(".config/containers/registries.conf", &format!("[[registry]]\nlocation = \"{host}/shop\"\n{lines}"));
    };
    // Mirrors are for pulls.
    settings("blocked = true\n[[registry.mirror]]\nlocation = \"mirror.invalid/shop\"\n");
    let refused = user.run(&["push", LIGHTHOUSE, &image]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let blocked = format!("images of {host}/shop are blocked by the settings for registries");
    assert!(refused.stderr.replace("\n         ", " ").contains(&blocked), "{}", refused.stderr);
    settings("blocked = false\n");
    assert_eq!(user.run(&["render", &image, "--name", "lighthouse"]).code, Some(1), "nothing was pushed");
    user.run(&["push", LIGHTHOUSE, &image]).data();
}

#[test]
fn mistakes_push_nothing() {
    let (_runtime, registry) = start(Options::default());
    let user = User::new();
    user.write("notes/todo.txt", "buy rope");
    let notes = user.home.path().join("notes");
    let notes = notes.to_str().unwrap();
    let image = format!("{}/shop/mistakes:v1", registry.host());
    for (arguments, code, part) in [
        (vec!["push", notes, &image], 1, "--any-format"),
        (vec!["push", "--catalog", notes, &image], 1, "is not a catalog that can be read"),
        (vec!["push", "--catalog", "--any-format", notes, &image], 2, "cannot be used with"),
        (vec!["push", LIGHTHOUSE, "quay.io/example/lighthouse"], 2, "write its registry and tag"),
        (vec!["push", "quay.io/example/lighthouse:v1", &image], 2, "skopeo copy --all"),
        (vec!["push", "./absent", &image], 2, "no such file or directory"),
        (vec!["push", LIGHTHOUSE, "localhost:1/lighthouse:v1"], 1, "try again when the registry is up"),
        (
            vec!["push", LIGHTHOUSE, "registry.invalid/lighthouse:v1"],
            1,
            "failed to push registry.invalid/lighthouse:v1",
        ),
    ] {
        let outcome = user.run(&arguments);
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.replace("\n         ", " ").contains(part), "{arguments:?}: {}", outcome.stderr);
    }
    assert_eq!(user.run(&["render", &image]).code, Some(1));
    user.run(&["push", "--any-format", notes, &image]).data();
}
