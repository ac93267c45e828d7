//! Components in a registry of another project, with TLS and a password: the commands of authors, and the controller.

use std::fs;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_api::{ConditionType, ProvisionerClass, find_condition};
use chandler_test_support::{
    docker_registry::{DockerRegistry, PASSWORD, USERNAME},
    needs,
};
use chandler_tests::{Cluster, World, bundles::Bundle, wait};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::PostParams};
use rcgen::PKCS_ECDSA_P256_SHA256;
use serde_json::json;

use crate::{plugin_signatures::key, registries::User, support::root};

/// The credentials for a registry, in the form of docker.
fn credentials(host: &str, password: &str) -> String {
    json!({"auths": {host: {"auth": STANDARD.encode(format!("{USERNAME}:{password}"))}}}).to_string()
}

fn trust(user: &User, registry: &DockerRegistry) {
    user.write(&format!(".config/containers/certs.d/{}/ca.crt", registry.host), &registry.authority);
}

#[test]
fn components_are_published_to_a_registry_with_tls_and_a_password() {
    let Some(program) = needs::docker_registry() else { return };
    let (registry, user) = (DockerRegistry::start(&program), User::new());
    let component = root().join("target/plugins/plain.wasm");
    let image = format!("{}/provisioners/plain:v1", registry.host);
    let push = || user.run(&["plugin", "push", component.to_str().unwrap(), &image]);

    user.write(".docker/config.json", &credentials(&registry.host, PASSWORD));
    let untrusted = push();
    assert_eq!(untrusted.code, Some(1), "{}", untrusted.stderr);
    assert!(untrusted.stderr.contains(&format!("certs.d/{}/ca.crt", registry.host)), "{}", untrusted.stderr);
    trust(&user, &registry);
    user.write(".docker/config.json", &credentials(&registry.host, "wr0ng-password"));
    let denied = push();
    assert_eq!(denied.code, Some(1), "{}", denied.stderr);
    assert!(!denied.stderr.contains("wr0ng-password"), "{}", denied.stderr);

    user.write(".docker/config.json", &credentials(&registry.host, PASSWORD));
    let pinned = push().data();
    assert!(pinned.starts_with(&format!("{}/provisioners/plain@sha256:", registry.host)), "{pinned}");
    assert_eq!(push().data(), pinned, "the same artifact again");
    let [private, public] = key(&user, "one", &PKCS_ECDSA_P256_SHA256);
    let [_, other] = key(&user, "other", &PKCS_ECDSA_P256_SHA256);
    let verify = |public: &str| user.run(&["plugin", "verify", &image, "--key", public]);
    assert_eq!(verify(&public).code, Some(8), "it is not signed");
    assert_eq!(user.run(&["plugin", "sign", &image, "--key", &private]).data(), pinned);
    assert_eq!(verify(&public).data(), pinned);
    assert_eq!(verify(&other).code, Some(8));
    let to = user.home.path().join("pulled.wasm");
    assert_eq!(user.run(&["plugin", "pull", &image, "--to", to.to_str().unwrap(), "--key", &public]).data(), pinned);
    assert!(fs::read(&to).unwrap() == fs::read(&component).unwrap());
}

/// The certificate of a registry that is self-signed and one of an authority is trusted where certs.d has it, to push as to pull.
#[test]
fn a_self_signed_authority_in_certs_d_is_trusted_by_every_command() {
    let Some(program) = needs::docker_registry() else { return };
    let (registry, user) = (DockerRegistry::start_self_signed(&program), User::new());
    user.write(".docker/config.json", &credentials(&registry.host, PASSWORD));
    let component = root().join("target/plugins/plain.wasm");
    let image = format!("{}/provisioners/plain:v1", registry.host);
    let push = || user.run(&["plugin", "push", component.to_str().unwrap(), &image]);
    let untrusted = push();
    assert_eq!(untrusted.code, Some(1), "{}", untrusted.stderr);
    assert!(untrusted.stderr.contains(&format!("certs.d/{}/ca.crt", registry.host)), "{}", untrusted.stderr);
    // The certificate of another registry is not trusted, although it has the same names.
    let other = DockerRegistry::start_self_signed(&program);
    user.write(&format!(".config/containers/certs.d/{}/ca.crt", registry.host), &other.authority);
    assert_eq!(push().code, Some(1));
    trust(&user, &registry);
    let pinned = push().data();
    let [private, public] = key(&user, "one", &PKCS_ECDSA_P256_SHA256);
    assert_eq!(user.run(&["plugin", "sign", &image, "--key", &private]).data(), pinned);
    assert_eq!(user.run(&["plugin", "verify", &image, "--key", &public]).data(), pinned);
    let to = user.home.path().join("pulled.wasm");
    assert_eq!(user.run(&["plugin", "pull", &image, "--to", to.to_str().unwrap()]).data(), pinned);
    assert!(fs::read(&to).unwrap() == fs::read(&component).unwrap());
    let bundle = format!("{}/bundles/lighthouse:v1", registry.host);
    user.run(&["push", "tests/fixtures/plain/lighthouse", &bundle]).data();
    assert!(user.run(&["render", &bundle, "--name", "lighthouse"]).data().contains("lighthouse"));
}

#[test]
fn a_controller_renders_with_a_component_of_a_registry_with_tls_and_a_password() {
    let Some(program) = needs::docker_registry() else { return };
    let (registry, user) = (DockerRegistry::start(&program), User::new());
    trust(&user, &registry);
    user.write(".docker/config.json", &credentials(&registry.host, PASSWORD));
    let image = format!("{}/provisioners/plain:v1", registry.host);
    let pushed = user.run(&["plugin", "push", root().join("target/plugins/plain.wasm").to_str().unwrap(), &image]);
    assert_eq!(pushed.code, Some(0), "{}", pushed.stderr);
    let [private, public] = key(&user, "one", &PKCS_ECDSA_P256_SHA256);
    assert_eq!(user.run(&["plugin", "sign", &image, "--key", &private]).code, Some(0));
    let certificates = user.home.path().join(".config/containers/certs.d");

    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut world = World::without_controller(Cluster::acquire().await).await;
        let class = world.name();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
            "metadata": {"name": "registry", "namespace": world.system_namespace,
                         "annotations": {"chandler.dev/provisionerclasses": class}},
            "stringData": {".dockerconfigjson": credentials(&registry.host, PASSWORD)},
        });
        let secret: Secret = serde_json::from_value(secret).unwrap();
        let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.system_namespace);
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        let key = fs::read_to_string(&public).unwrap();
        let spec =
            json!({"image": image, "pullSecret": "registry", "verification": {"allOf": [{"publicKey": {"key": key}}]}});
        world.create::<ProvisionerClass>(json!({"metadata": {"name": class}, "spec": spec})).await;
        world.start_controller_changed(|options| options.registry_certificates = vec![certificates]);
        let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
        let found = wait::until(&classes, &class, "ready", |class| {
            let conditions = class.and_then(|class| class.status.as_ref()).map(|status| status.conditions.as_slice());
            find_condition(conditions.unwrap_or_default(), ConditionType::Ready).is_some_and(|it| it.status == "True")
        })
        .await;
        let conditions = found.and_then(|class| class.status).unwrap().conditions;
        assert_eq!(find_condition(&conditions, ConditionType::Verified).unwrap().status, "True");
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: published}\n";
        let bundle = world.push(&Bundle::empty().with("manifests/objects.yaml", map)).await;
        world.deploy(&class, &class, &bundle).await;
        world.ready(&class).await;
        world.finish().await;
    });
}
