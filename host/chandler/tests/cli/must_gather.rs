//! `chandler must-gather`: secrets in every place where they may be, and an archive whose every byte is read.

use std::{collections::BTreeMap, fs::File, io::Read as _};

use chandler_api::{Alert, BundleDeployment, Catalog};
use chandler_tests::wait;
use flate2::read::GzDecoder;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Event, Pod, Secret},
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use crate::{
    commands::{OLD, Session},
    support,
};

/// The planted secrets: each has a number.
fn secret(number: u8) -> String {
    format!("pl4nted-s3cret-{number}-hunter")
}

/// The files of an archive.
fn files(path: &std::path::Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(path).unwrap()));
    let read = |entry: Result<tar::Entry<'_, GzDecoder<File>>, std::io::Error>| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    };
    archive.entries().unwrap().map(read).collect()
}

async fn create<K>(api: Api<K>, object: Value)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    K::DynamicType: Default,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Secrets in the objects of Chandler, in what belongs to the controller, and where no command has to look.
async fn plant(session: &Session, name: &str) {
    let (client, system) = (session.world.client.clone(), session.world.system_namespace.as_str());
    let set = format!("operatorConditionName={}", secret(1));
    let installed = session.install(name, OLD, &["--set", &set, "--wait=false"]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let annotations = json!({
        "kubectl.kubernetes.io/last-applied-configuration": json!({"spec": {"config": {"password": secret(2)}}}).to_string(),
        "example.com/note": secret(3),
    });
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    let deployments: Api<BundleDeployment> = session.world.deployments();
    deployments.patch(name, &PatchParams::default(), &patch).await.unwrap();
    let mut catalog = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog",
        "metadata": {"name": format!("{}-hidden", session.world.run()), "annotations": {"example.com/token": secret(4)}},
        "spec": {"source": {"type": "image", "image": {"ref": "registry.invalid/catalog:v1"}}}});
    session.world.mark(&mut catalog);
    create::<Catalog>(Api::all(client.clone()), catalog).await;

    let mut alert = json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Alert",
        "metadata": {"name": format!("{}-hidden", session.world.run())},
        "spec": {"provider": {"type": "Webhook", "url": format!("https://127.0.0.1:1/{}", secret(14))}}});
    session.world.mark(&mut alert);
    create::<Alert>(Api::all(client.clone()), alert).await;

    let container = json!({
        "name": "chandler", "image": "registry.example.com/chandler:v0.1.0",
        "env": [{"name": "HTTPS_PROXY", "value": format!("http://ada:{}@proxy.example.com", secret(5))},
                {"name": "LEVEL", "value": secret(6)}],
        "args": ["controller", format!("--some-token={}", secret(7)), "--other-password", secret(8),
                 format!("--mirror=https://registry.example.com/?access={}", secret(9))],
    });
    let template = json!({"metadata": {"labels": {"app": "chandler"}}, "spec": {"containers": [container]}});
    create::<Deployment>(
        Api::namespaced(client.clone(), system),
        json!({"metadata": {"name": "chandler"},
        "spec": {"selector": {"matchLabels": {"app": "chandler"}}, "template": template}}),
    )
    .await;
    create::<Pod>(
        Api::namespaced(client.clone(), system),
        json!({
        "metadata": {"name": "chandler-0", "labels": {"app": "chandler"}, "annotations": {"example.com/x": secret(10)}},
        "spec": template["spec"]}),
    )
    .await;
    // It repeats a value that another object has under a telling place.
    let message = format!("failed to fetch https://x:{}@example.com, with {} and {}", secret(11), secret(1), secret(8));
    create::<Event>(
        Api::namespaced(client.clone(), system),
        json!({
        "metadata": {"name": "telling"}, "involvedObject": {"kind": "Pod", "namespace": system, "name": "chandler-0"},
        "reason": "Failed", "message": message, "type": "Warning"}),
    )
    .await;
    let data = json!({"password": secret(12)});
    create::<Secret>(
        Api::namespaced(client.clone(), system),
        json!({"metadata": {"name": "pull"}, "stringData": data}),
    )
    .await;
    create::<ConfigMap>(
        Api::namespaced(client, system),
        json!({"metadata": {"name": "values"}, "data": {"x": secret(13)}}),
    )
    .await;
}

/// Events about objects of Chandler that the controller did not publish: where a tenant may create Events, and in the name of another program.
async fn forge_events(session: &Session, name: &str) {
    let event = |namespace: &str, component: &str| {
        json!({"metadata": {"name": format!("{name}-forged")}, "message": "a forged text", "reason": "Failed", "type": "Warning",
            "involvedObject": {"kind": "BundleDeployment", "namespace": namespace, "name": name},
            "reportingComponent": component})
    };
    let client = session.world.client.clone();
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let selected = ListParams::default().fields(&format!("involvedObject.name={name}"));
    wait::eventually("the controller publishes an Event", async || {
        !events.list(&selected).await.unwrap().items.is_empty()
    })
    .await;
    let tenant = session.world.namespace.as_str();
    create::<Event>(Api::namespaced(client.clone(), tenant), event(tenant, "chandler")).await;
    create::<Event>(events, event("default", "another-program")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_archive_has_everything_but_secrets() {
    let session = Session::start().await;
    let name = session.world.name();
    plant(&session, &name).await;
    forge_events(&session, &name).await;
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("gathered.tar.gz");
    let path = place.display().to_string();
    let outcome = session.run(&["must-gather", "--file", &path]).await;
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert_eq!(outcome.stdout, format!("{path}\n"));
    let again = session.run(&["must-gather", "--file", &path]).await;
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    let unknown = session.run(&["must-gather", "--system-namespace", "nowhere", "--file", "-"]).await;
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(7), ""), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("the namespace nowhere does not exist"), "{}", unknown.stderr);
    let printed = directory.path().join("printed.tar.gz");
    let mut command = support::command(&support::cache());
    command.args(["must-gather", "--file", "-", "--kubeconfig"]).arg(session.kubeconfig());
    command.env("CHANDLER_SYSTEM_NAMESPACE", &session.world.system_namespace).stdout(File::create(&printed).unwrap());
    assert!(tokio::process::Command::from(command).status().await.unwrap().success());
    let printed = files(&printed);

    let files = files(&place);
    assert!(printed.contains_key("chandler-must-gather/index.json"), "{:?}", printed.keys());
    for (name, bytes) in &files {
        let text = String::from_utf8_lossy(bytes);
        for number in 1..=14 {
            let secret = secret(number);
            assert!(!text.contains(&secret) && !name.contains(&secret), "secret {number} is in {name}: {text}");
        }
        let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, secret(12));
        assert!(!text.contains(&encoded), "{name}");
    }
    let object = format!("chandler-must-gather/objects/bundledeployments.core.rukpak.io/{name}.json");
    for path in [
        object.as_str(),
        "chandler-must-gather/doctor.json",
        "chandler-must-gather/events/namespace-of-the-controller.json",
        "chandler-must-gather/index.json",
        "chandler-must-gather/pods/chandler-0/chandler.log",
        "chandler-must-gather/pods/chandler-0/pod.json",
        "chandler-must-gather/version.json",
    ] {
        assert!(files.contains_key(path), "no {path}: {:?}", files.keys());
    }
    let deployment: Value = serde_json::from_slice(&files[&object]).unwrap();
    assert_eq!(deployment["spec"]["config"]["operatorConditionName"], "(hidden)", "its name stays");
    assert_eq!(deployment["kind"], "BundleDeployment");
    let events: Value = serde_json::from_slice(&files["chandler-must-gather/events/bundledeployments.json"]).unwrap();
    let events = events.as_array().unwrap();
    assert!(events.iter().any(|event| event["involvedObject"]["name"] == name.as_str()), "{events:#?}");
    assert!(events.iter().all(|event| event["message"] != "a forged text"), "{events:#?}");
    let installed =
        format!("chandler-must-gather/installation/Deployment.apps/{}_chandler.json", session.world.system_namespace);
    let text = String::from_utf8(files[&installed].clone()).unwrap();
    assert!(text.contains("HTTPS_PROXY") && text.contains("--some-token=(hidden)"), "{text}");
    let crds = files.keys().filter(|path| path.contains("CustomResourceDefinition")).count();
    assert!(crds >= 7, "{crds}");
    let index: Value = serde_json::from_slice(&files["chandler-must-gather/index.json"]).unwrap();
    assert_eq!(index["files"].as_array().unwrap().len(), files.len() - 1);
    let left_out = index["leftOut"].to_string();
    assert!(left_out.contains("Secrets") && left_out.contains("metrics.txt"), "{left_out}");
    session.world.finish().await;
}
