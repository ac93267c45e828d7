//! What the CRDs refuse, without a webhook.

use chandler_tests::World;
use kube::api::PostParams;
use serde_json::{Value, json};

#[tokio::test]
async fn malformed_bundle_deployments_are_refused_by_the_api_server() {
    let world = World::new().await;
    let image = json!({"ref": "registry.example.com/bundle:v1"});
    let git =
        |reference: Value| json!({"type": "git", "git": {"repository": "https://example.com/r", "ref": reference}});
    let cases = [
        ("no member", json!({"type": "image"})),
        ("another member", json!({"type": "image", "git": {"repository": "r", "ref": {"branch": "main"}}})),
        ("two members", json!({"type": "image", "image": image, "http": {"url": "https://example.com/b.tgz"}})),
        ("two git refs", git(json!({"branch": "main", "tag": "v1"}))),
        ("no git ref", git(json!({}))),
    ];
    for (what, source) in cases {
        let deployment = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "refused"},
            "spec": {"installNamespace": "default", "provisionerClassName": "core-rukpak-io-plain", "source": source}
        });
        let deployment = serde_json::from_value(deployment).expect("a BundleDeployment");
        let result =
            world.deployments().create(&PostParams { dry_run: true, ..PostParams::default() }, &deployment).await;
        let Err(kube::Error::Api(status)) = result else { panic!("{what} was accepted") };
        assert_eq!(status.code, 422, "{what}: {status:?}");
    }
    let mut long = json!({
        "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
        "metadata": {"name": format!("{:x<53}", world.name())},
        "spec": {"installNamespace": "default", "provisionerClassName": "core-rukpak-io-plain",
                 "source": {"type": "image", "image": image}}
    });
    world.mark(&mut long);
    let long = serde_json::from_value(long).expect("a BundleDeployment");
    let result = world.deployments().create(&PostParams::default(), &long).await;
    assert!(matches!(result, Err(kube::Error::Api(status)) if status.code == 422));
    world.finish().await;
}
