//! A CRD with as many versions as fit into a request does not delay other requests.

use std::time::Duration;

use chandler_devcluster::{Clock, Options};
use serde_json::{Value, json};

use crate::common::{APPLY, CONFIG_MAPS, config_map, get, ok, quiet, send, start, until};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn crd(versions: usize) -> Value {
    let version = |number: usize| {
        json!({"name": format!("v{number}"), "served": true, "storage": number == 1,
               "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "toys", "singular": "toy", "kind": "Toy", "listKind": "ToyList"},
            "versions": (1..=versions).map(version).collect::<Vec<_>>(),
        },
    })
}

/// Many versions: kube-apiserver has no limit except the size of the request.
const VERSIONS: usize = 10_000;

#[tokio::test]
async fn ten_thousand_versions_are_served() {
    let cluster = quiet().await;
    let client = cluster.client();
    ok(&client, "POST", CRDS, "", crd(VERSIONS)).await;
    let last = format!("/apis/example.com/v{VERSIONS}/namespaces/default/toys");
    until(&client, &last, |status, _| status == 200).await;
    let group = get(&client, "/apis/example.com").await.1;
    assert_eq!(group["versions"].as_array().unwrap().len(), VERSIONS);
    assert_eq!(group["preferredVersion"]["version"], format!("v{VERSIONS}"));
    let path = format!("{CRDS}/toys.example.com?fieldManager=test&force=true");
    let (status, answer) = send(&client, "PATCH", &path, APPLY, crd(VERSIONS)).await;
    assert_eq!(status, 200, "{}", answer["message"]);
    let (status, _) = get(&client, &format!("/openapi/v3/apis/example.com/v{VERSIONS}")).await;
    assert_eq!(status, 200);
}

/// Blocks the single thread for expensive work until it is released.
fn occupied() -> (std::sync::mpsc::Sender<()>, tokio::task::JoinHandle<()>) {
    let (release, released) = std::sync::mpsc::channel();
    let held = tokio::task::spawn_blocking(move || released.recv().unwrap_or_default());
    (release, held)
}

#[test]
fn others_are_answered_while_a_crd_is_worked_on() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let clock = Clock::manual(time::macros::datetime!(2026-01-02 03:04:05 UTC));
        let delay = Duration::from_mins(1);
        let options =
            Options { clock: clock.clone(), established_delay: delay, workloads: false, ..Options::default() };
        let cluster = start(options).await;
        // Without sockets, so that nothing else needs the blocked thread.
        let client = cluster.service().client();
        let others = async || {
            for number in 0..50 {
                let object = config_map(&format!("a{number}-{}", cluster.revision()), &json!({}));
                ok(&client, "POST", CONFIG_MAPS, "", object).await;
            }
        };

        let (release, held) = occupied();
        let created = ok(&client, "POST", CRDS, "", crd(3));
        let mut created = std::pin::pin!(created);
        tokio::select! {
            biased;
            _ = &mut created => panic!("the CRD was worked on where others are answered"),
            () = others() => {}
        }
        release.send(()).unwrap();
        held.await.unwrap();
        created.await;

        let crd = format!("{CRDS}/toys.example.com");
        until(&client, &crd, |_, found| found["status"]["conditions"][0]["type"] == "NamesAccepted").await;
        clock.advance(delay);
        let toys = "/apis/example.com/v3/namespaces/default/toys";
        until(&client, toys, |status, _| status == 200).await;
    });
}
