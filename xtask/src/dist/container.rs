//! The image in a container: `runc` runs it as a node would run the Deployment of `deploy/controller.yaml`, against the embedded API server.
//!
//! Without [`IMAGE`], the container has the files of the image, but the `chandler` of the tests and the libraries that it needs, since a
//! release build takes half an hour.

mod api_server;
mod names;
mod node;
mod rootfs;
mod seccomp;

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use self::{api_server::ApiServer, names::NameServer, node::Node, rootfs::RootFileSystem};
use crate::command;

/// Names a layout of `cargo xtask dist` that the test runs.
const IMAGE: &str = "CHANDLER_TEST_IMAGE";
/// How long the controller may take to become ready and to end. Only a failure takes so long.
const PATIENCE: Duration = Duration::from_mins(2);

fn rootfs(chandler: &Path) -> RootFileSystem {
    match env::var_os(IMAGE) {
        Some(layout) => RootFileSystem::of_layout(&command::root().join(layout)),
        None => RootFileSystem::of_tests(chandler),
    }
}

/// The `chandler` of the tests.
fn chandler() -> PathBuf {
    command::tested("chandler")
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
    let names = NameServer::start(node::address(), api_server::NAME).await;
    let rootfs = rootfs(&chandler);
    let node = Node::new(runc, rootfs, &server.credentials().await, server.port());
    let mut container = node.run();
    let ready = container.ready(PATIENCE).await;
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
