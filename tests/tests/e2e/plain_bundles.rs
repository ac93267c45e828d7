//! Plain bundles: components of a run level are rolled out in parallel, the configuration sets images and versions, and a release is installed for a
//! cluster, in the order of its files. A release image has them in two directories, one of them with templates.

use chandler_api::BundleDeployment;
use chandler_tests::{World, bundles::Bundle, wait, world::condition};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap, networking::v1::Ingress};
use kube::{
    Api, ResourceExt as _,
    api::{WatchEvent, WatchParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

fn deployment(name: &str, image: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{app: {name}}}}}\n  \
         template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: {name}, image: '{image}'}}]}}\n"
    )
}

fn ingress(name: &str) -> String {
    format!(
        "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: {name}}}\n\
         spec: {{defaultBackend: {{service: {{name: {name}, port: {{number: 80}}}}}}}}\n"
    )
}

const PAUSE: &str = "registry.k8s.io/pause:3.10";

/// Two components at level 50, of which the first needs an image; one at level 60.
fn levels(image_of_the_first: &str) -> Bundle {
    Bundle::empty()
        .with("manifests/0000_50_anchor_01-deployment.yaml", &deployment("anchor", image_of_the_first))
        .with("manifests/0000_50_buoy_01-deployment.yaml", &deployment("buoy", PAUSE))
        .with("manifests/0000_50_buoy_02-ingress.yaml", &ingress("buoy"))
        .with("manifests/0000_60_chart_01-deployment.yaml", &deployment("chart", PAUSE))
}

#[tokio::test]
async fn a_slow_component_blocks_the_next_level_but_not_its_own() {
    let world = World::new().await;
    let name = world.name();
    let image = world.push(&levels("registry.invalid/anchor:v1")).await;
    world.deploy(&name, PLAIN, &image).await;

    // The other component is rolled out completely, and becomes available.
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    wait::until(&deployments, "buoy", "available", |buoy| {
        let status = buoy.and_then(|buoy| buoy.status.as_ref());
        status.and_then(|status| status.available_replicas) == Some(1)
    })
    .await;
    let ingresses: Api<Ingress> = Api::namespaced(world.client.clone(), &world.namespace);
    ingresses
        .get("buoy")
        .await
        .expect("an object behind a workload in the order of kinds does not wait for other components");

    // Only the slow component blocks the next level.
    let waits = |deployment: Option<&BundleDeployment>| {
        let progressing = deployment.and_then(|deployment| condition(deployment, "Progressing"));
        progressing.is_some_and(|progressing| {
            let message = &progressing.message;
            message.contains("stage 1 of 2") && message.contains("/anchor") && !message.contains("/buoy")
        })
    };
    wait::until(&world.deployments(), &name, "waiting only for the anchor", waits).await;
    assert!(deployments.get_opt("chart").await.expect("a response").is_none(), "the next level started too early");

    let image = world.push(&levels(PAUSE)).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    deployments.get("chart").await.expect("the next level");
    world.finish().await;
}

#[tokio::test]
async fn the_configuration_sets_images_and_versions() {
    let world = World::new().await;
    let name = world.name();
    let references = "kind: ImageStream\napiVersion: image.openshift.io/v1\nspec:\n  tags:\n  - name: buoy\n    from: {kind: DockerImage, name: quay.io/harbour/buoy}\n";
    let versions = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: versions}\ndata: {operator: 0.0.1-snapshot, kubelet: 0.0.1-snapshot-kubernetes}\n";
    let bundle = Bundle::empty()
        .with("manifests/image-references", references)
        .with("manifests/01_buoy.yaml", &deployment("buoy", "quay.io/harbour/buoy:latest"))
        .with("manifests/02_versions.yaml", versions);
    let image = world.push(&bundle).await;
    let configured = |config: serde_json::Value| {
        let mut spec = world.spec(PLAIN, &image);
        spec["config"] = config;
        spec
    };

    // A version placeholder without a configured version is an error.
    let config = json!({"images": {"buoy": PAUSE}, "releaseVersion": "4.20.1"});
    world.apply(&name, configured(config)).await;
    let refused = world.condition(&name, "Progressing", "False", "InvalidConfiguration").await;
    let message = &condition(&refused, "Progressing").expect("Progressing").message;
    assert!(message.contains("set componentVersions.kubernetes"), "{message}");

    let config = json!({
        "images": {"buoy": PAUSE}, "releaseVersion": "4.20.1", "componentVersions": {"kubernetes": "1.33.4"},
    });
    world.apply(&name, configured(config)).await;
    world.ready(&name).await;
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &world.namespace);
    let buoy = deployments.get("buoy").await.expect("the Deployment");
    let pod = buoy.spec.and_then(|spec| spec.template.spec).expect("a pod");
    assert_eq!(pod.containers[0].image.as_deref(), Some(PAUSE));
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let data = maps.get("versions").await.expect("the ConfigMap").data.expect("data");
    assert_eq!((data["operator"].as_str(), data["kubelet"].as_str()), ("4.20.1", "1.33.4"));
    world.finish().await;
}

/// A ConfigMap of a release.
fn of_release(name: &str, annotations: Value) -> String {
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"from": "release"}});
    object["metadata"]["annotations"] = annotations;
    object["metadata"]["annotations"]["include.release.openshift.io/self-managed-high-availability"] = json!("true");
    object.to_string()
}

/// The version of the ConfigMaps of a namespace.
async fn version(maps: &Api<ConfigMap>) -> String {
    let list = maps.list(&kube::api::ListParams::default()).await.expect("a list");
    list.metadata.resource_version.expect("a version")
}

/// These ConfigMaps in the order in which they were created after a version.
async fn created(maps: &Api<ConfigMap>, since: &str, expected: &[&str]) -> Vec<String> {
    let events = maps.watch(&WatchParams::default(), since).await.expect("a watch");
    let names = events.boxed().try_filter_map(async |event| match event {
        WatchEvent::Added(map) => Ok(Some(map.name_any())),
        _ => Ok(None),
    });
    let is_expected = |name: &String| expected.contains(&name.as_str());
    let names = names.try_filter(|name| std::future::ready(is_expected(name)));
    names.take(expected.len()).try_collect().await.expect("events")
}

#[tokio::test]
async fn a_release_is_installed_for_a_cluster_in_the_order_of_its_files() {
    let world = World::new().await;
    let (name, maps) = (world.name(), world.config_maps());
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "anchor-job",
        "annotations": {"include.release.openshift.io/self-managed-high-availability": "true"}},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": PAUSE}]}}}});
    let none = || json!({});
    // The names are in another order than the files.
    let bundle = Bundle::empty()
        .with("manifests/0000_10_anchor_01-first.yaml", &of_release("z-anchor", none()))
        .with("manifests/0000_10_anchor_02-job.yaml", &job.to_string())
        .with("manifests/0000_10_anchor_03-last.yaml", &of_release("a-anchor", none()))
        .with("manifests/0000_10_buoy_01-first.yaml", &of_release("z-buoy", none()))
        .with("manifests/0000_10_buoy_02-last.yaml", &of_release("a-buoy", none()))
        .with("manifests/0000_20_chart_01-only.yaml", &of_release("chart", none()))
        .with(
            "manifests/0000_20_chart_02-console.yaml",
            &of_release("console", json!({"capability.openshift.io/name": "Console"})),
        )
        .with(
            "manifests/0000_20_chart_03-preview.yaml",
            &of_release("preview", json!({"release.openshift.io/feature-set": "TechPreviewNoUpgrade"})),
        )
        .with(
            "manifests/0000_20_chart_04-settings.yaml",
            &of_release("settings", json!({"release.openshift.io/create-only": "true"})),
        );
    let image = world.push(&bundle).await;
    let spec = |image: &str, release: Value| {
        let mut spec = world.spec(PLAIN, image);
        spec["config"] = json!({"release": release});
        spec
    };
    let before = version(&maps).await;
    world.apply(&name, spec(&image, json!({"enabledCapabilities": ["Ingress"]}))).await;
    world.ready(&name).await;

    let order = created(&maps, &before, &["z-anchor", "a-anchor", "z-buoy", "a-buoy", "chart", "settings"]).await;
    let place = |name: &str| order.iter().position(|created| created == name).expect("it was created");
    assert!(place("z-anchor") < place("a-anchor") && place("z-buoy") < place("a-buoy"), "{order:?}");
    assert!(place("a-buoy") < place("a-anchor"), "a component waits for the Job of another one: {order:?}");
    assert_eq!(order[4..], ["chart", "settings"]);
    for omitted in ["console", "preview"] {
        assert!(maps.get_opt(omitted).await.expect("a response").is_none(), "{omitted}");
    }

    // Objects that are only created stay as the user has them, in the next version, too; what is deleted in a version goes.
    let edit = kube::api::Patch::Merge(json!({"data": {"from": "user"}}));
    maps.patch("settings", &kube::api::PatchParams::default(), &edit).await.expect("a change");
    let next =
        bundle.replacing("manifests/0000_20_chart_04-settings.yaml", "\"release\"", "\"the next release\"").with(
            "manifests/0000_10_buoy_02-last.yaml",
            &of_release("a-buoy", json!({"release.openshift.io/delete": "true"})),
        );
    world.apply(&name, spec(&world.push(&next).await, json!({"featureSet": "TechPreviewNoUpgrade"}))).await;
    wait::until(&maps, "a-buoy", "deleted", |map: Option<&ConfigMap>| map.is_none()).await;
    world.ready(&name).await;
    maps.get("console").await.expect("every known capability is enabled");
    maps.get("preview").await.expect("a manifest of the feature set");
    let settings = maps.get("settings").await.expect("it stays").data.expect("data");
    assert_eq!(settings["from"], "user");
    world.finish().await;
}

#[tokio::test]
async fn an_unknown_annotation_of_a_release_is_refused_with_its_line() {
    let world = World::new().await;
    let name = world.name();
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    \
        include.release.openshift.io/self-managed-high-availability: \"true\"\n    capability.openshift.io/name: Teleport\n";
    let image = world.push(&Bundle::empty().with("manifests/0000_10_a_b.yaml", text)).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["config"] = json!({"release": {}});
    world.apply(&name, spec).await;
    let refused = world.condition(&name, "Progressing", "False", "InvalidContent").await;
    let message = &condition(&refused, "Progressing").expect("Progressing").message;
    assert!(
        message.contains("manifests/0000_10_a_b.yaml:7") && message.contains("unknown capability \"Teleport\""),
        "{message}"
    );
    world.finish().await;
}

/// A release image. The names of its ConfigMaps are in another order than its files.
fn release_image(template: &str) -> Bundle {
    let map = |name: &str, data: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations:\n    \
             include.release.openshift.io/self-managed-high-availability: \"true\"\ndata:\n{data}"
        )
    };
    let references = "kind: ImageStream\napiVersion: image.openshift.io/v1\nmetadata: {name: 4.20.1}\nspec:\n  tags:\n  \
                      - {name: console, from: {kind: DockerImage, name: 'quay.io/release@sha256:12'}}\n";
    Bundle::empty()
        .with("release-manifests/release-metadata", r#"{"kind": "cincinnati-metadata-v0", "version": "4.20.1"}"#)
        .with("release-manifests/image-references", references)
        .with("manifests/0000_00_anchor_01-first.yaml", &map("z-anchor", template))
        .with("manifests/0000_90_anchor_01-last.yaml", &map("a-last", "  a: b\n"))
        .with("release-manifests/0000_00_anchor_00-second.yaml", &map("a-anchor", "  a: b\n"))
        .with(
            "release-manifests/0000_50_buoy_01-third.yaml",
            &map("buoy", "  alert: '{{ $labels.name }} {{ .ReleaseImage }}'\n"),
        )
}

#[tokio::test]
async fn a_release_image_is_installed_in_the_order_of_both_directories_with_its_templates() {
    let world = World::new().await;
    let (name, maps) = (world.name(), world.config_maps());
    let spec = |image: &str, config: Value| {
        let mut spec = world.spec(PLAIN, image);
        // The format is detected.
        spec.as_object_mut().expect("an object").remove("provisionerClassName");
        spec["config"] = config;
        spec
    };
    let message_of =
        |deployment: &BundleDeployment| condition(deployment, "Progressing").expect("Progressing").message.clone();
    let template = "  image: {{.ReleaseImage}}\n  console: '{{ index .Images \"console\" }}'\n  profile: {{ .ClusterProfile }}\n  \
                    alert: '{{ \"{{ $labels.name }}\" }}'\n";
    let image = world.push(&release_image(template)).await;

    // Neither directory is installed as it is, nor with an unknown image or another version.
    world.apply(&name, spec(&image, json!({}))).await;
    let refused = world.condition(&name, "Progressing", "False", "InvalidConfiguration").await;
    assert!(message_of(&refused).contains("set release in the configuration"), "{}", message_of(&refused));
    let release = json!({"releaseImage": "quay.io/release:4.20.1"});
    for (config, expected) in [
        (json!({"release": {}}), "manifests/0000_00_anchor_01-first.yaml:8:10"),
        (json!({"release": release, "releaseVersion": "4.20.2"}), "the release image is \"4.20.1\""),
    ] {
        world.apply(&name, spec(&image, config)).await;
        let is_refused = |deployment: Option<&BundleDeployment>| {
            let progressing = deployment.and_then(|deployment| condition(deployment, "Progressing"));
            progressing.is_some_and(|it| it.reason == "InvalidConfiguration" && it.message.contains(expected))
        };
        wait::until(&world.deployments(), &name, expected, is_refused).await;
    }

    let before = version(&maps).await;
    world.apply(&name, spec(&image, json!({"release": release}))).await;
    world.ready(&name).await;
    let order = created(&maps, &before, &["z-anchor", "a-anchor", "buoy", "a-last"]).await;
    assert_eq!(order, ["z-anchor", "a-anchor", "buoy", "a-last"]);
    let data = |map: ConfigMap| map.data.expect("data");
    let rendered = data(maps.get("z-anchor").await.expect("the rendered ConfigMap"));
    for (key, value) in [
        ("image", "quay.io/release:4.20.1"),
        ("console", "quay.io/release@sha256:12"),
        ("profile", "self-managed-high-availability"),
        ("alert", "{{ $labels.name }}"),
    ] {
        assert_eq!(rendered[key], value, "{key}");
    }
    let literal = data(maps.get("buoy").await.expect("a ConfigMap of release-manifests/"));
    assert_eq!(literal["alert"], "{{ $labels.name }} {{ .ReleaseImage }}");

    // A template of another form is refused with its position, and the installed release stays.
    let image = world.push(&release_image("  image: {{ if .ReleaseImage }}a{{ end }}\n")).await;
    world.apply(&name, spec(&image, json!({"release": release}))).await;
    let refused = world.condition(&name, "Progressing", "False", "InvalidContent").await;
    let expected = "manifests/0000_00_anchor_01-first.yaml:8:10: the template has \"if\"";
    assert!(message_of(&refused).contains(expected), "{}", message_of(&refused));
    assert_eq!(data(maps.get("z-anchor").await.expect("the installed ConfigMap")), rendered);
    world.finish().await;
}
