//! The CRDs reject malformed objects without a webhook.

use chandler_tests::World;
use kube::api::PostParams;
use serde_json::{Value, json};

#[tokio::test]
async fn malformed_bundle_deployments_are_refused_by_the_api_server() {
    let world = World::new().await;
    let image = json!({"ref": "registry.example.com/bundle:v1"});
    let git =
        |reference: Value| json!({"type": "git", "git": {"repository": "https://example.com/r", "ref": reference}});
    let chart = |fields: Value| {
        let mut repository = json!({"url": "https://example.com/charts", "chart": "web"});
        repository.as_object_mut().expect("an object").extend(fields.as_object().cloned().expect("an object"));
        json!({"type": "http", "http": repository})
    };
    let one = "exactly one of image, git, configMaps, http, upload must be set";
    let image_missing = "image must be set for source type \"image\"";
    let one_ref = "exactly one of branch, tag, commit, semver must be set";
    let signer = json!({"githubAction": {"owner": "example"}});
    let policy =
        |any_of: Value| json!({"type": "image", "image": {"ref": "a.io/b:v1", "verification": {"anyOf": any_of}}});
    let too_many = "minimumMatches must not be more than the number of signers";
    let cases = [
        ("an image", json!({"type": "image", "image": image}), None),
        ("a git ref", git(json!({"branch": "main"})), None),
        ("no member", json!({"type": "image"}), Some(one)),
        (
            "wrong member",
            json!({"type": "image", "git": {"repository": "r", "ref": {"branch": "main"}}}),
            Some(image_missing),
        ),
        (
            "two members",
            json!({"type": "image", "image": image, "http": {"url": "https://example.com/b.tgz"}}),
            Some(one),
        ),
        ("a chart", chart(json!({"version": "^1.2"})), None),
        ("a chart with the name of a path", chart(json!({"chart": "../web"})), Some("spec.source.http.chart")),
        ("two git refs", git(json!({"branch": "main", "tag": "v1"})), Some(one_ref)),
        ("no git ref", git(json!({})), Some(one_ref)),
        ("a policy without minimumMatches", policy(json!({"signers": [signer]})), None),
        ("more matches than signers", policy(json!({"minimumMatches": 2, "signers": [signer]})), Some(too_many)),
    ];
    for (what, source, refusal) in cases {
        let deployment = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment", "metadata": {"name": "refused"},
            "spec": {"installNamespace": "default", "provisionerClassName": "core-rukpak-io-plain", "source": source}
        });
        let deployment = serde_json::from_value(deployment).expect("a BundleDeployment");
        let result =
            world.deployments().create(&PostParams { dry_run: true, ..PostParams::default() }, &deployment).await;
        match (result, refusal) {
            (Ok(_), None) => {}
            (Err(kube::Error::Api(status)), Some(text)) => {
                assert_eq!(status.code, 422, "{what}: {status:?}");
                assert!(status.message.contains(text), "{what}: {}", status.message);
            }
            (result, _) => panic!("{what}: {result:?}"),
        }
    }
    let create = async |length: usize| {
        let mut deployment = json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": format!("{:x<length$}", world.name())},
            "spec": {"installNamespace": "default", "provisionerClassName": "core-rukpak-io-plain",
                     "source": {"type": "image", "image": image}}
        });
        world.mark(&mut deployment);
        let deployment = serde_json::from_value(deployment).expect("a BundleDeployment");
        world.deployments().create(&PostParams { dry_run: true, ..PostParams::default() }, &deployment).await
    };
    create(52).await.expect("the longest name is accepted");
    let Err(kube::Error::Api(status)) = create(53).await else { panic!("a name of 53 characters was accepted") };
    assert_eq!(status.code, 422, "{status:?}");
    assert!(status.message.contains("metadata.name"), "{}", status.message);
    world.finish().await;
}
