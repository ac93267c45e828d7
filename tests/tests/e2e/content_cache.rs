//! The limit on the content cache: what a full cache reports, and who gives way.

use chandler_tests::{
    World,
    in_process::InProcess,
    world::{condition, empty_cache},
};
use serde_json::{Value, json};

use crate::{PLAIN, permissions};

/// A ConfigMap with a bundle of 700 KiB, nearly all of it comments.
fn content(world: &World, name: &str) -> Value {
    let comments = format!("# {name:>97}\n").repeat(7 << 10);
    let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    json!({"apiVersion": "v1", "kind": "ConfigMap", "immutable": true,
           "metadata": {"name": name, "namespace": world.system_namespace},
           "data": {"object.yaml": comments + &object}})
}

fn spec(namespace: &str, content: &str) -> Value {
    json!({"installNamespace": namespace, "provisionerClassName": PLAIN,
           "source": {"type": "configMaps", "configMaps": [{"configMap": {"name": content}, "path": "manifests"}]}})
}

#[tokio::test]
async fn a_full_cache_is_reported_and_a_tenant_with_less_is_served() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let (cache, client) = (empty_cache(), world.client.clone());
    world.start_controller_with(InProcess::Option("content_cache_bytes"), client, |options| {
        // The content of two bundles.
        options.content_cache_bytes = 2 << 20;
        options.cache_directory = cache.path().to_owned();
    });
    let contents = ["first", "second", "third", "fourth"].map(|name| content(&world, name));
    permissions::apply(&world, &contents).await;
    let [first, second, third, fourth] = ["a", "b", "c", "d"].map(|suffix| format!("{}-{suffix}", world.name()));
    for (name, content) in [(&first, "first"), (&second, "second")] {
        world.apply(name, spec(&world.namespace, content)).await;
        world.ready(name).await;
    }
    world.apply(&third, spec(&world.namespace, "third")).await;
    let full = world.condition(&third, "Unpacked", "False", "ContentCacheFull").await;
    let ready = condition(&full, "Ready").expect("Ready");
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "ContentCacheFull"), "{}", ready.message);
    let what = "what is in use takes all of its 2 MiB";
    assert!(ready.message.contains(what) && ready.message.contains("--content-cache-limit"), "{}", ready.message);
    for name in [&first, &second] {
        world.ready(name).await;
    }

    // What is no longer in use gives way.
    world.delete(&second).await;
    world.ready(&third).await;

    // Another tenant has nothing yet. The releases of the first one stay installed.
    let other = format!("{}-other", world.run());
    permissions::apply(&world, &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})]).await;
    world.apply(&fourth, spec(&other, "fourth")).await;
    for name in [&fourth, &first, &third] {
        world.ready(name).await;
    }
    let trees = std::fs::read_dir(cache.path().join("content/trees")).expect("the cache");
    assert_eq!(trees.count(), 2, "the content of one bundle gave way");
    world.finish().await;
}
