//! Cached content that one BundleDeployment pulled is not available to others without access of their own.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_devregistry::{Authentication, Fault, FaultOn, Options, Registry};
use chandler_tests::{Cluster, World, bundles::Bundle, world::condition};
use serde_json::{Value, json};

use crate::{PLAIN, permissions::apply};

const PULL_SECRET: &str = "private-registry";

/// A registry that requires a password, an image in it by digest, and a pull secret for it in the system namespace.
async fn private(world: &World) -> (Registry, String) {
    let authentication = Authentication::Basic { username: "user".to_owned(), password: "password".to_owned() };
    let registry = Registry::start(Options { authentication, ..Options::default() }).await.expect("a registry");
    let bundle =
        Bundle::empty().with("manifests/bell.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\n");
    let pushed = registry.push_bundle_directory("private/bell", "v1", bundle.path(), &BTreeMap::new()).await;
    let image = format!("{}/private/bell@{}", registry.host(), pushed.expect("a pushed image").digest);
    let auths = json!({"auths": {registry.host(): {"auth": STANDARD.encode("user:password")}}}).to_string();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": PULL_SECRET, "namespace": world.system_namespace},
        "data": {".dockerconfigjson": STANDARD.encode(auths)},
    });
    apply(world, &[secret]).await;
    (registry, image)
}

fn with_secret(world: &World, image: &str) -> Value {
    let mut spec = world.spec(PLAIN, image);
    spec["source"]["image"]["pullSecret"] = json!(PULL_SECRET);
    spec
}

#[tokio::test]
async fn knowing_a_digest_does_not_grant_access_to_cached_content() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    let (registry, image) = private(&world).await;
    let plain = vec![registry.host()];
    world.start_controller_changed(|options| options.plain_http_registries = plain);
    let name = world.name();
    world.apply(&name, with_secret(&world, &image)).await;
    world.ready(&name).await;

    // The image without the Secret, and its digest at another registry, which does not have it.
    let digest = image.split_once('@').expect("a digest").1;
    let elsewhere = format!("{}/private/bell@{digest}", world.registry.host());
    for (suffix, image, expected) in
        [("anonymous", &image, "answered 401"), ("elsewhere", &elsewhere, "has no repository private/bell")]
    {
        let other = format!("{name}-{suffix}");
        world.deploy(&other, PLAIN, image).await;
        let refused = world.condition(&other, "Unpacked", "False", "UnpackFailed").await;
        let message = &condition(&refused, "Unpacked").expect("Unpacked").message;
        assert!(message.contains(expected), "{suffix}: {message}");
        world.delete(&other).await;
    }

    // A BundleDeployment with proven access can still use the content while the registry is down.
    registry.set_fault(Some((FaultOn::Everything, Fault::Status(503))));
    let again = format!("{name}-again");
    let spec = with_secret(&world, &image);
    world.delete(&name).await;
    world.apply(&again, spec).await;
    world.ready(&again).await;
    world.finish().await;
}
