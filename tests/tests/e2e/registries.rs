//! Mirrors that the cluster or a file sets, and pull secrets of a ServiceAccount.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_controller::MirrorSets;
use chandler_devregistry::{Authentication, Options, Registry};
use chandler_registries::Registries;
use chandler_tests::{World, bundles::Bundle, wait, world::condition};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use serde_json::{Value, json};

use crate::{
    PLAIN,
    controller_rights::deployed,
    permissions::{apply, spec},
};

fn bell() -> Bundle {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bell}\ndata: {tone: low}\n";
    Bundle::empty().with("manifests/bell.yaml", text)
}

/// The message of the condition `Unpacked`.
async fn refused(world: &World, name: &str) -> String {
    let refused = world.condition(name, "Unpacked", "False", "UnpackFailed").await;
    condition(&refused, "Unpacked").expect("Unpacked").message.clone()
}

/// The image that the status names.
async fn resolved(world: &World, name: &str) -> String {
    let status = world.ready(name).await.status.expect("a status");
    status.resolved_source.expect("a source").image.expect("an image").reference
}

/// Defines a kind of OpenShift, without its schema.
pub(crate) async fn define(world: &World, kind: &str, plural: &str) -> Api<DynamicObject> {
    let name = format!("{plural}.config.openshift.io");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": "config.openshift.io", "scope": "Cluster",
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let definition: CustomResourceDefinition = serde_json::from_value(definition).expect("a CRD");
    let crds: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    crds.create(&PostParams::default(), &definition).await.expect("the CRD is accepted");
    wait::until(&crds, &name, "established", |crd| {
        let conditions = crd.and_then(|crd| crd.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Established" && one.status == "True"))
    })
    .await;
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", kind);
    Api::all_with(world.client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn mirror_set(world: &World, mirror: &str) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ImageDigestMirrorSet", "metadata": {"name": world.name()},
        "spec": {"imageDigestMirrors": [{
            "source": "source.invalid/team", "mirrors": [mirror], "mirrorSourcePolicy": "NeverContactSource"}]},
    }))
    .expect("an object")
}

#[tokio::test]
async fn a_mirror_set_of_the_cluster_counts_at_once_and_the_status_names_the_source() {
    let mut world = World::new().await;
    if !world.is_embedded() {
        eprintln!("skipped: a cluster that is shared gets no CRD of OpenShift");
        return world.finish().await;
    }
    world.stop_controller().await;
    for file in ["rbac.yaml", "rbac-service-account.yaml", "rbac-registries.yaml"] {
        apply(&world, &deployed(&world, file)).await;
    }
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    apply(&world, &tenant(&world, &everything)).await;
    let sets = define(&world, "ImageDigestMirrorSet", "imagedigestmirrorsets").await;
    sets.create(&PostParams::default(), &mirror_set(&world, "gone.invalid/bundles")).await.expect("accepted");
    let image = world.push(&bell()).await;
    let (_, pinned) = image.split_once("/bundles/").expect("a repository");
    let image = format!("source.invalid/team/{pinned}");
    // ImageTagMirrorSets are not served.
    let kinds = vec![MirrorSets::ImageDigest, MirrorSets::ImageTag];
    world.start_controller_deployed(|options| options.mirrors_from = kinds).await;
    let name = world.name();
    world.apply(&name, spec(&world, PLAIN, &image, "deployer")).await;
    let message = refused(&world, &name).await;
    assert!(message.contains("gone.invalid") && !message.contains("the host name of source.invalid"), "{message}");

    let mut set = sets.get(&world.name()).await.expect("the object exists");
    set.data = mirror_set(&world, &format!("{}/bundles", world.registry.host())).data;
    sets.replace(&world.name(), &PostParams::default(), &set).await.expect("accepted");
    assert_eq!(resolved(&world, &name).await, image);
    // To delete what no account may list, it needs all rights.
    world.stop_controller().await;
    world.start_controller();
    world.finish().await;
}

/// A role with all rights for the account of the bundle.
fn tenant(world: &World, rules: &Value) -> Vec<Value> {
    let name = world.name();
    vec![
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": world.namespace}]}),
    ]
}

#[tokio::test]
async fn a_file_moves_and_blocks_images() {
    let mut world = World::new().await;
    world.stop_controller().await;
    let image = world.push(&bell()).await;
    let (_, pinned) = image.split_once("/bundles/").expect("a repository");
    let text = format!(
        "[[registry]]\nprefix = \"source.invalid/team\"\nlocation = \"{}/bundles\"\n[[registry]]\nlocation = \"blocked.invalid\"\n\
         blocked = true\n",
        world.registry.host()
    );
    let mut registries = Registries::default();
    registries.add_file("registries.conf".as_ref(), &text).expect("settings");
    world.start_controller_changed(|options| options.registries = registries);
    let name = world.name();
    world.apply(&name, world.spec(PLAIN, &format!("BLOCKED.invalid:443/team/{pinned}"))).await;
    let message = refused(&world, &name).await;
    assert!(message.contains("images of blocked.invalid are blocked"), "{message}");
    let moved = format!("source.invalid/team/{pinned}");
    world.apply(&name, world.spec(PLAIN, &moved)).await;
    assert_eq!(resolved(&world, &name).await, moved);
    world.finish().await;
}

/// A Secret with the credentials for a registry.
fn pull_secret(world: &World, name: &str, host: &str, password: &str, annotations: &Value) -> Value {
    let auths = json!({"auths": {host: {"auth": STANDARD.encode(format!("user:{password}"))}}}).to_string();
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": name, "namespace": world.system_namespace, "annotations": annotations},
        "data": {".dockerconfigjson": STANDARD.encode(auths)},
    })
}

#[tokio::test]
async fn pull_secrets_of_a_service_account_are_used_where_the_administrator_says_so() {
    let mut world = World::new().await;
    let authentication = Authentication::Basic { username: "user".to_owned(), password: "s3cret".to_owned() };
    let start =
        |tls: bool| Registry::start(Options { tls, authentication: authentication.clone(), ..Options::default() });
    let locked = start(false).await.expect("a registry");
    let sealed = start(true).await.expect("a registry");
    let mut images = Vec::new();
    for registry in [&locked, &sealed] {
        let pushed = registry.push_bundle_directory("team/bell", "v1", bell().path(), &BTreeMap::new()).await;
        images.push(format!("{}/team/bell@{}", registry.host(), pushed.expect("the registry takes the bundle").digest));
    }
    let [image, sealed_image] = [&images[0], &images[1]];
    let of_another = json!({"chandler.dev/bundledeployments": "team-a-*"});
    apply(
        &world,
        &[
            pull_secret(&world, "unusable", &format!("{}/team", locked.host()), "wr0ng", &of_another),
            pull_secret(&world, "sealed", &sealed.host(), "s3cret", &json!({})),
            pull_secret(&world, "registry", &locked.host(), "s3cret", &json!({})),
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "puller", "namespace": world.system_namespace},
                "imagePullSecrets": [{"name": "absent"}, {"name": "unusable"}, {"name": "registry"}, {"name": "sealed"}]}),
        ],
    )
    .await;
    let name = world.name();
    world.apply(&name, world.spec(PLAIN, image)).await;
    let message = refused(&world, &name).await;
    assert!(message.contains("is denied") && !message.contains("s3cret"), "without the option: {message}");

    world.stop_controller().await;
    let restart = |world: &mut World, account: &str| {
        let plain = vec![locked.host()];
        world.start_controller_changed(|options| {
            options.pull_secrets_of = Some(account.to_owned());
            options.plain_http_registries = plain;
        });
    };
    restart(&mut world, "absent");
    let expected =
        format!("pull secret of ServiceAccount {}/absent: the ServiceAccount does not exist", world.system_namespace);
    let deployments = world.deployments();
    wait::until(&deployments, &name, "the account is missed", |deployment| {
        let message = deployment.and_then(|deployment| condition(deployment, "Unpacked"));
        message.is_some_and(|condition| condition.message.contains(&expected))
    })
    .await;
    world.stop_controller().await;
    restart(&mut world, "puller");
    world.ready(&name).await;
    // A source that chooses the trusted certificates gets no default credentials.
    let authority = sealed.certificate_authority().expect("TLS");
    for (field, value) in [("insecureSkipTLSVerify", json!(true)), ("certificateData", json!(authority))] {
        let mut spec = world.spec(PLAIN, sealed_image);
        spec["source"]["image"][field] = value;
        world.apply(&name, spec.clone()).await;
        let message = refused(&world, &name).await;
        assert!(message.contains("is denied") && message.contains("answered 401"), "{field}: {message}");
        // It may name the same Secret.
        spec["source"]["image"]["pullSecret"] = json!("sealed");
        world.apply(&name, spec).await;
        world.ready(&name).await;
    }
    world.finish().await;
}
