//! `chandler plugin`: from the module that a compiler wrote to an artifact that a ProvisionerClass names.

use std::fs;

use chandler_api::ProvisionerClass;
use chandler_devregistry::{Options, Registry};
use chandler_tests::{World, wait};
use kube::Api;
use oci_client::{
    Client,
    client::{ClientConfig, ClientProtocol},
    secrets::RegistryAuth,
};
use serde_json::{Value, json};

use crate::{registries::User, support::root};

const LIGHTHOUSE: &str = "tests/fixtures/plain/lighthouse";
/// A component that exports the interface of the contract, and nothing that could be called.
const BARE: &str = r#"(component (instance $i) (export "chandler:provisioner/provisioner@0.1.0" (instance $i)))"#;

/// A file of the user with these bytes. Returns its path.
fn write(user: &User, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = user.home.path().join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn inspected(user: &User, component: &str) -> Value {
    serde_json::from_str(&user.run(&["plugin", "inspect", component, "-o", "json"]).data()).unwrap()
}

#[test]
fn a_module_becomes_the_component_that_renders() {
    let user = User::new();
    let module = root().join("target/wasm32-unknown-unknown/guest/chandler_plain.wasm");
    let module = module.to_str().unwrap();
    let component = user.home.path().join("plain.wasm");
    let component = component.to_str().unwrap();
    let built = user.run(&["plugin", "build", module, "--to", component]);
    assert!(built.data().contains("plain+v0"));
    assert!(fs::read(component).unwrap() == fs::read(root().join("target/plugins/plain.wasm")).unwrap());
    let rendered = user.run(&["render", LIGHTHOUSE, "--name", "lighthouse", "--provisioner", component]);
    assert!(rendered.data().contains("kind: Deployment"));

    // The SDK wrote its facts.
    let refused = user.run(&["plugin", "annotate", component, "--to", component, "--format", "other"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("change FACTS"), "{}", refused.stderr);
    let again = user.run(&["plugin", "build", component, "--to", component]);
    assert!(again.stderr.contains("it is a component already"), "{}", again.stderr);
}

#[test]
fn a_component_of_any_language_gets_its_facts() {
    let user = User::new();
    let bare = write(&user, "bare.wasm", wat::parse_str(BARE).unwrap());
    let found = inspected(&user, &bare);
    assert_eq!((&found["declaresFacts"], &found["facts"]["formats"]), (&json!(false), &json!([])));
    let sail = user.home.path().join("sail.wasm");
    let sail = sail.to_str().unwrap();
    let annotate = |more: &[&str], from: &str| user.run(&[&["plugin", "annotate", from, "--to", sail], more].concat());
    annotate(&["--name", "sail", "--version", "1.0.0", "--format", "sail+v0", "--format", "sail+v1"], &bare).data();
    annotate(&["--version", "1.0.1"], sail).data();
    let found = inspected(&user, sail);
    let facts = json!({"contract": "0.1.0", "name": "sail", "version": "1.0.1", "formats": ["sail+v0", "sail+v1"], "capabilities": []});
    assert_eq!((&found["facts"], &found["declaresFacts"]), (&facts, &json!(true)));
    for (arguments, part) in [
        (vec![], "--name, --version or --format"),
        (vec!["--name", ""], "printable"),
        (vec!["--format", "a\u{1b}b"], "printable"),
    ] {
        let refused = annotate(&arguments, sail);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert_eq!(inspected(&user, sail), found, "a refused command writes nothing");
}

#[test]
fn what_no_controller_could_load_is_not_published() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let registry = runtime.block_on(Registry::start(Options::default())).unwrap();
    let user = User::new();
    let image = format!("{}/provisioners/sail:v1", registry.host());
    let module = write(&user, "module.wasm", wat::parse_str("(module)").unwrap());
    let networked = BARE.replacen("(component", r#"(component (import "wasi:http/types@0.2.6" (instance))"#, 1);
    let networked = write(&user, "networked.wasm", wat::parse_str(networked).unwrap());
    let other = write(&user, "other.wasm", wat::parse_str(BARE.replace("0.1.0", "0.9.0")).unwrap());
    let text = write(&user, "text.wasm", "#!/bin/sh");
    for (file, part) in [
        (&module, "chandler plugin build"),
        (&networked, "wasi:http/types@0.2.6 (provisioners have no network"),
        (&other, "version \"0.9.0\""),
        (&text, "magic bytes"),
    ] {
        for arguments in [vec!["plugin", "push", file, &image], vec!["plugin", "inspect", file]] {
            let refused = user.run(&arguments);
            assert_eq!(refused.code, Some(1), "{arguments:?}: {}", refused.stderr);
            assert!(refused.stderr.replace("\n         ", " ").contains(part), "{arguments:?}: {}", refused.stderr);
        }
    }
    let absent = user.run(&["plugin", "inspect", &image]);
    assert_eq!(absent.code, Some(1), "nothing was pushed: {}", absent.stderr);
    let misplaced = user.run(&["push", &text, &image]);
    assert_eq!(misplaced.code, Some(2), "{}", misplaced.stderr);
    assert!(misplaced.stderr.contains("chandler plugin push"), "{}", misplaced.stderr);
    let missing = user.run(&["plugin", "inspect", "./absent.wasm"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pushed_component_has_the_layout_of_the_cncf_and_a_class_loads_it() {
    let world = World::new().await;
    let user = User::new();
    let component = root().join("target/plugins/plain.wasm");
    let component = component.to_str().unwrap();
    let image = format!("{}/provisioners/plain:v1", world.registry.address());
    let annotations = ["--annotation", "org.opencontainers.image.licenses=Apache-2.0"];
    let push =
        |more: &[&str]| user.run(&[&["plugin", "push", component, &image], annotations.as_slice(), more].concat());
    let dry = push(&["--dry-run"]);
    assert!(dry.stderr.contains("nothing was pushed"), "{}", dry.stderr);
    let pinned = dry.data();
    assert_eq!(user.run(&["plugin", "inspect", &image]).code, Some(1));
    assert_eq!(push(&[]).data(), pinned);
    assert_eq!(push(&[]).data(), pinned, "the same component makes the same artifact");
    let (pulled, local) = (inspected(&user, pinned.trim_end()), inspected(&user, component));
    assert_eq!(pulled, local);

    let config = ClientConfig { protocol: ClientProtocol::Http, ..ClientConfig::default() };
    let client = Client::try_from(config).unwrap();
    let reference = image.parse().unwrap();
    let (manifest, _, config) = client.pull_manifest_and_config(&reference, &RegistryAuth::Anonymous).await.unwrap();
    let wasm = fs::read(component).unwrap();
    let digest = chandler_core::Digest::of(&wasm).to_string();
    assert_eq!(manifest.config.media_type, "application/vnd.wasm.config.v0+json");
    let layers: Vec<_> =
        manifest.layers.iter().map(|layer| (layer.media_type.as_str(), layer.digest.as_str())).collect();
    assert_eq!(layers, [("application/wasm", digest.as_str())]);
    let annotations = manifest.annotations.unwrap();
    assert_eq!(annotations["org.opencontainers.image.licenses"], "Apache-2.0");
    assert_eq!(annotations["dev.chandler.provisioner.formats"], "plain+v0");
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config["os"], "wasip2");
    assert_eq!(config["layerDigests"], json!([digest]));
    assert!(config["created"].is_string() && config["component"]["imports"].is_array(), "{config}");

    let name = world.name();
    let _: ProvisionerClass =
        world.create(json!({"metadata": {"name": name}, "spec": {"image": pinned.trim_end()}})).await;
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    wait::until(&classes, &name, "ready", |class| {
        let component = class.and_then(|class| class.status.as_ref()?.component.as_ref());
        component.is_some_and(|component| component.digest == digest)
    })
    .await;
    world.finish().await;
}
