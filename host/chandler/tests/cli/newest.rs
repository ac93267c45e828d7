//! `chandler upgrade NAME` without a bundle: to the newest version that its source has.

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::DeleteParams};

use crate::{
    catalogs::{PACKAGE, write_catalog},
    commands::Session,
};

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_without_a_bundle_goes_to_the_newest_version_after_a_preview() {
    let session = Session::start().await;
    let name = session.world.name();
    let directory = tempfile::tempdir().unwrap();
    write_catalog(&session, directory.path()).await;
    let catalog = ["--catalog", directory.path().to_str().unwrap()];
    let upgrade = async |more: &[&str]| session.run(&[&["upgrade", &name], &catalog[..], more].concat()).await;
    let version = async || session.row(&name).await["installedVersion"].clone();

    let installed = session.install(&name, &format!("{PACKAGE}@<0.2.0"), &catalog).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let asked = upgrade(&[]).await;
    assert_eq!(asked.code, Some(2), "{}", asked.stderr);
    for part in ["0.2.0, catalog ", " to create, ", &format!("upgrade {name} to 0.2.0?"), "pass --yes"] {
        assert!(asked.stderr.contains(part), "no {part:?}: {}", asked.stderr);
    }
    assert!(asked.stdout.contains("~ change Deployment.apps "), "{}", asked.stdout);
    assert_eq!(version().await, "0.1.0");

    let dry = upgrade(&["--dry-run"]).await.data();
    assert!(dry.contains("bundles/harbour:v0.2.0"), "{dry}");
    for mark in ["applyset.kubernetes.io", "finalizers", "resourceVersion"] {
        assert!(!dry.contains(mark), "{mark} is not what an author writes: {dry}");
    }
    let upgraded = upgrade(&["--yes", "--timeout", "2m"]).await;
    assert_eq!(upgraded.code, Some(0), "{}", upgraded.stderr);
    assert_eq!(version().await, "0.2.0");
    let newest = upgrade(&[]).await;
    assert_eq!((newest.code, newest.stdout.as_str()), (Some(0), ""), "{}", newest.stderr);
    assert!(newest.stderr.contains(&format!("{name} already has the best version that fits")), "{}", newest.stderr);

    session.data(&["rollback", &name]).await;
    session.data(&["status", &name, "--watch", "--timeout", "2m"]).await;
    let pinned = upgrade(&["--yes"]).await;
    assert_eq!(pinned.code, Some(1), "{}", pinned.stderr);
    for part in ["is pinned to revision 1 by your rollback", &format!("`chandler rollback {name} --cancel`")] {
        assert!(pinned.stderr.contains(part), "no {part:?}: {}", pinned.stderr);
    }
    assert_eq!(version().await, "0.1.0");
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_without_a_catalog_is_upgraded_by_name_and_moves_by_the_printed_commands() {
    let session = Session::start().await;
    let (name, files) = (session.world.name(), "./tests/fixtures/registry/harbour-operator.v0.1.0");
    let directory = tempfile::tempdir().unwrap();
    let values = directory.path().join("values.yaml");
    let installed = session.install(&name, files, &["--set", "operatorConditionName=tides"]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let unknown = session.run(&["upgrade", &name]).await;
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
    let named = format!("`chandler upgrade {name} ./DIRECTORY`");
    assert!(unknown.stderr.contains(&named), "{}", unknown.stderr);

    let other = format!("{}-other", session.world.namespace);
    let refused = session.run(&["upgrade", &name, files, "-n", &other]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let printed: Vec<Vec<String>> = refused
        .stderr
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|command| command.split(' ').skip(1).map(str::to_owned).collect())
        .collect();
    let [get, delete, install] = printed.as_slice() else { panic!("{}", refused.stderr) };
    let kept = session.data(&get.iter().take(3).map(String::as_str).collect::<Vec<_>>()).await;
    std::fs::write(&values, kept).unwrap();
    let delete: Vec<&str> = delete.iter().map(String::as_str).chain(["--yes"]).collect();
    session.data(&delete).await;
    let label = session.label();
    let install: Vec<&str> = install
        .iter()
        .map(|word| match word.as_str() {
            "BUNDLE" => files,
            word if word == format!("{name}.yaml") => values.to_str().unwrap(),
            word => word,
        })
        .chain(["--label", &label])
        .collect();
    let moved = session.run(&install).await;
    assert_eq!(moved.code, Some(0), "{}", moved.stderr);
    let spec = session.world.deployments().get(&name).await.unwrap().spec;
    assert_eq!(
        (spec.install_namespace.as_str(), spec.config.unwrap()["operatorConditionName"].as_str()),
        (other.as_str(), Some("tides"))
    );
    session.data(&["delete", &name, "--crds", "Delete", "--yes"]).await;
    let namespaces: Api<Namespace> = Api::all(session.world.client.clone());
    namespaces.delete(&other, &DeleteParams::default()).await.unwrap();
    session.world.finish().await;
}
