//! The image in a container, against the embedded API server.
//!
//! Without [`IMAGE`], the container has the files of the image, but the `chandler` of the tests and the libraries that it needs, since a
//! release build takes half an hour.

mod api_server;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use chandler_test_container::{Image, NameServer, Node, Plan, node};
use serde_json::Value;

use self::api_server::ApiServer;
use super::unpacked;
use crate::command;

/// Names a layout of `cargo xtask dist` that the test runs.
const IMAGE: &str = "CHANDLER_TEST_IMAGE";
/// How long the controller may take to become ready and to end. Only a failure takes so long.
const PATIENCE: Duration = Duration::from_mins(2);

fn unpack(chandler: &Path, directory: &Path) -> Image {
    match env::var_os(IMAGE) {
        Some(layout) => unpacked::layout(&command::root().join(layout), directory).unwrap(),
        None => unpacked::of_tests(chandler, directory).unwrap(),
    }
    Image::read(directory)
}

/// The `chandler` of the tests.
fn chandler() -> PathBuf {
    command::tested("chandler")
}

/// The Pod of the Deployment.
fn pod() -> Value {
    let text = fs::read_to_string(command::root().join("deploy/controller.yaml")).unwrap();
    let deployment: Value = serde_saphyr::from_str(&text).unwrap();
    deployment.pointer("/spec/template/spec").unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_installs_a_bundle_from_a_container_without_privileges() {
    let Some(runc) = chandler_test_support::needs::runc() else { return };
    let chandler = chandler();
    let server = ApiServer::start(chandler.clone()).await;
    for file in ["crds.yaml", "rbac.yaml"] {
        server.apply_file(&format!("deploy/{file}")).await;
    }
    // The container finds the API server by a name that only this server knows: resolving names needs nothing that the image lacks.
    let address = node::address();
    let names = NameServer::start(address, api_server::NAME).await.unwrap();
    let (directory, pod) = (tempfile::tempdir().unwrap(), pod());
    let node = Node::new(&Plan {
        runc,
        image: &unpack(&chandler, directory.path()),
        pod: &pod,
        arguments: serde_json::from_value(pod["containers"][0]["args"].clone()).unwrap(),
        namespace: "chandler-system",
        address,
        api_server: &server.as_seen_by_pods().await,
        volumes: BTreeMap::new(),
        mounts: BTreeMap::new(),
    });
    let mut container = node.run();
    let ready = container.answers("/readyz", PATIENCE).await;
    eprintln!("ready after {} ms", ready.as_millis());
    assert!(names.was_asked(), "the name of the API server was resolved elsewhere");

    let status = container.status();
    // What the security context of the Deployment says.
    for line in
        ["Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "NoNewPrivs:\t1", "Seccomp:\t2"]
    {
        assert!(status.lines().any(|found| found == line), "{line}: {status}");
    }
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(status.contains(&format!("{name}:\t0000000000000000")), "{name}: {status}");
    }

    // As docs/install.md says.
    server.apply_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n").await;
    server.apply_file("deploy/rbac-service-account.yaml").await;
    let bundle = "docs/tutorial/harbour-0.1.0";
    let account = ["--namespace", "shop", "--service-account", "deployer"];
    let roles = server.chandler(&[&["rbac", bundle, "--name", "harbour"], account.as_slice()].concat()).await;
    server.apply_text(&roles).await;
    server.chandler(&[&["install", "harbour", bundle], account.as_slice()].concat()).await;
    assert!(server.chandler(&["list"]).await.contains("Ready"));

    let log = container.stop(PATIENCE).await;
    assert!(!log.contains("panicked"), "{log}");
}
