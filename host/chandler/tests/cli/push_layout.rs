//! `chandler push` of an OCI image layout: the registry gets the bytes of the directory.

use std::{fs, path::PathBuf};

use chandler_core::Digest;
use chandler_devregistry::{Authentication, Options, Registry};
use oci_client::{
    Client, Reference,
    client::{ClientConfig, ClientProtocol},
    secrets::RegistryAuth,
};
use serde_json::{Value, json};

use crate::registries::User;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// A layout that a test writes and damages.
struct Layout {
    directory: PathBuf,
}

impl Layout {
    fn new(user: &User, name: &str) -> Self {
        let layout = Self { directory: user.home.path().join(name) };
        fs::create_dir_all(layout.directory.join("blobs/sha256")).unwrap();
        layout.write("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#);
        layout
    }

    fn path(&self) -> &str {
        self.directory.to_str().unwrap()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.directory.join(name), bytes).unwrap();
    }

    /// Adds a blob, and returns its descriptor.
    fn blob(&self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = Digest::of(bytes);
        self.write(&format!("blobs/sha256/{}", digest.hex()), bytes);
        json!({"mediaType": media_type, "digest": digest, "size": bytes.len()})
    }

    /// Adds an image with one layer, whose content is this text.
    fn image(&self, layer: &str) -> Value {
        let config =
            format!(r#"{{"architecture": "amd64", "os": "linux", "config": {{"Labels": {{"layer": "{layer}"}}}}}}"#);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.blob("application/vnd.oci.image.config.v1+json", config.as_bytes()),
            "layers": [self.blob("application/vnd.oci.image.layer.v1.tar+gzip", layer.as_bytes())],
        });
        // The spaces show that the text is pushed as it is.
        self.blob(MANIFEST, format!("{manifest:#}\n").as_bytes())
    }

    /// An index with these descriptors, as a blob or as the one of the layout.
    fn index(descriptors: &[Value]) -> Vec<u8> {
        json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": descriptors}).to_string().into_bytes()
    }

    fn finish(&self, descriptors: &[Value]) {
        self.write("index.json", &Self::index(descriptors));
    }
}

fn start(options: Options) -> (tokio::runtime::Runtime, Registry) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let registry = runtime.block_on(Registry::start(options)).unwrap();
    (runtime, registry)
}

/// The manifest or index of an image, and its digest, as the registry has them.
async fn pulled(image: &str) -> Option<(Vec<u8>, String)> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let config = ClientConfig { protocol: ClientProtocol::Http, ..ClientConfig::default() };
    let client = Client::try_from(config).unwrap();
    let reference: Reference = image.parse().unwrap();
    let pulled = client.pull_manifest_raw(&reference, &RegistryAuth::Anonymous, &[INDEX, MANIFEST]).await.ok()?;
    Some((pulled.0.to_vec(), pulled.1))
}

#[test]
fn the_registry_gets_the_digest_of_the_layout() {
    let (runtime, registry) = start(Options::default());
    let user = User::new();
    let layout = Layout::new(&user, "image");
    let descriptor = layout.image("amd64");
    layout.finish(std::slice::from_ref(&descriptor));
    let image = format!("{}/shop/chandler:v0.1.0", registry.host());
    let digest = descriptor["digest"].as_str().unwrap();
    let named = format!("{}/shop/chandler@{digest}\n", registry.host());

    let tried = user.run(&["push", "--dry-run", layout.path(), &image]);
    assert!(tried.stderr.contains("nothing was pushed"), "{}", tried.stderr);
    assert_eq!(tried.data(), named);
    assert_eq!(runtime.block_on(pulled(&image)), None);

    let pushed = user.run(&["push", layout.path(), &image]);
    assert!(pushed.stderr.contains(&format!("pushed {image} (")), "{}", pushed.stderr);
    assert_eq!(pushed.data(), named);
    let manifest = fs::read(layout.directory.join("blobs/sha256").join(digest.trim_start_matches("sha256:"))).unwrap();
    assert_eq!(runtime.block_on(pulled(&image)), Some((manifest, digest.to_owned())));
    // Once more, to another tag: the registry has all blobs.
    let other = image.replace("v0.1.0", "latest");
    assert_eq!(user.run(&["push", layout.path(), &other]).data(), named);
}

#[test]
fn an_image_for_several_platforms_is_pushed_with_all_of_them() {
    let (runtime, registry) = start(Options::default());
    let user = User::new();
    let layout = Layout::new(&user, "image");
    let platforms = [layout.image("amd64"), layout.image("arm64")];
    let index = Layout::index(&platforms);
    let descriptor = layout.blob(INDEX, &index);
    layout.finish(std::slice::from_ref(&descriptor));
    let image = format!("{}/shop/chandler:v0.1.0", registry.host());
    let pushed = user.run(&["push", layout.path(), &image]).data();
    let digest = descriptor["digest"].as_str().unwrap();
    assert_eq!(pushed, format!("{}/shop/chandler@{digest}\n", registry.host()));
    assert_eq!(runtime.block_on(pulled(&image)), Some((index, digest.to_owned())));
    for platform in &platforms {
        let digest = platform["digest"].as_str().unwrap();
        let part = format!("{}/shop/chandler@{digest}", registry.host());
        assert_eq!(runtime.block_on(pulled(&part)).unwrap().1, digest);
    }
}

#[test]
fn the_credentials_are_those_for_bundles() {
    let authentication = Authentication::Token { username: "ann".to_owned(), password: "s3cret".to_owned() };
    let (_runtime, registry) = start(Options { authentication, ..Options::default() });
    let user = User::new();
    let layout = Layout::new(&user, "image");
    layout.finish(&[layout.image("amd64")]);
    let image = format!("{}/shop/chandler:v0.1.0", registry.host());
    let denied = user.run(&["push", layout.path(), &image]);
    assert_eq!(denied.code, Some(1), "{}", denied.stderr);
    assert!(denied.stderr.contains("docker login"), "{}", denied.stderr);
    // `ann:s3cret`.
    let auths = format!(r#"{{"auths": {{"{}": {{"auth": "YW5uOnMzY3JldA=="}}}}}}"#, registry.host());
    user.write(".docker/config.json", &auths);
    // Not without TLS, unless the user says so.
    let unsent = user.run(&["push", layout.path(), &image]);
    assert_eq!(unsent.code, Some(1), "{}", unsent.stderr);
    let hint = format!("--plain-http-registry {}", registry.host());
    assert!(unsent.stderr.contains("does not speak TLS") && unsent.stderr.contains(&hint), "{}", unsent.stderr);
    user.run(&["push", layout.path(), &image, "--plain-http-registry", &registry.host()]).data();
}

/// What changes a layout, its images, and the path of its layer.
type Damage = fn(&Layout, &mut Vec<Value>, &str);

#[test]
fn a_damaged_image_is_refused_before_anything_is_pushed() {
    let (runtime, registry) = start(Options::default());
    let user = User::new();
    let image = format!("{}/shop/chandler:v0.1.0", registry.host());
    let layer = format!("blobs/sha256/{}", Digest::of(b"amd64").hex());
    let cases: [(&str, Damage, &str); 12] = [
        ("other", |layout, _, layer| layout.write(layer, b"AMD64"), "another digest than its name"),
        ("short", |layout, _, layer| layout.write(layer, b"amd6"), "has 4 bytes instead of 5"),
        ("long", |layout, _, layer| layout.write(layer, b"amd64 and more"), "has more than 5 bytes"),
        (
            "absent",
            |layout, _, layer| fs::remove_file(layout.directory.join(layer)).unwrap(),
            "No such file or directory",
        ),
        ("version", |layout, _, _| layout.write("oci-layout", br#"{"imageLayoutVersion":"2.0.0"}"#), "knows 1.0.0"),
        ("marker", |layout, _, _| layout.write("oci-layout", b"{}"), "failed to read oci-layout"),
        ("two", |layout, images, _| images.push(layout.image("arm64")), "has 2 images, and one can be pushed"),
        ("none", |_, images, _| images.clear(), "has 0 images"),
        ("huge", |_, images, _| images[0]["size"] = (1_u64 << 40).into(), "bytes instead of 1099511627776"),
        ("path", |_, images, _| images[0]["digest"] = "sha256:../../oci-layout".into(), "is not a SHA-256 digest"),
        ("kind", |_, images, _| images[0]["mediaType"] = "text/plain".into(), "which no image has"),
        (
            "index",
            |layout, images, _| {
                let inner = layout.blob(INDEX, &Layout::index(images));
                *images = vec![layout.blob(INDEX, &Layout::index(&[inner]))];
            },
            "which no image has",
        ),
    ];
    for (name, damage, part) in cases {
        let layout = Layout::new(&user, name);
        let mut images = vec![layout.image("amd64")];
        damage(&layout, &mut images, &layer);
        layout.finish(&images);
        let refused = user.run(&["push", layout.path(), &image]);
        let said = refused.stderr.replace("\n         ", " ");
        assert_eq!(refused.code, Some(1), "{name}: {said}");
        assert!(said.contains(part), "{name}: {said}");
        assert_eq!(runtime.block_on(pulled(&image)), None, "{name}");
    }

    // A manifest that says to be something else than its descriptor.
    let layout = Layout::new(&user, "lies");
    let manifest = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}).to_string();
    layout.finish(&[layout.blob(MANIFEST, manifest.as_bytes())]);
    assert_eq!(user.run(&["push", layout.path(), &image]).code, Some(1));

    let layout = Layout::new(&user, "option");
    layout.finish(&[layout.image("amd64")]);
    let refused = user.run(&["push", "--catalog", layout.path(), &image]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("push it without --catalog"), "{}", refused.stderr);
}
