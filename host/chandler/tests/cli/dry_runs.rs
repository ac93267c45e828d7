//! `--dry-run` of every command that writes: nothing in the cluster and nothing in a registry changes.

use std::{collections::BTreeMap, fs};

use chandler_api::{BundleDeployment, Catalog, ChangeApproval, ProvisionerClass, Resolution};
use chandler_devregistry::{Options, Registry};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
    runtime::wait::await_condition,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::commands::{NEW, OLD, Session};

/// The versions of all objects of the kinds that commands write, by kind and name.
type Versions = BTreeMap<String, String>;

async fn add<K>(session: &Session, versions: &mut Versions)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
{
    let objects: Api<K> = Api::all(session.world.client.clone());
    for object in objects.list(&ListParams::default()).await.unwrap() {
        let key = format!("{} {} {}", K::kind(&()), object.namespace().unwrap_or_default(), object.name_any());
        versions.insert(key, object.resource_version().unwrap());
    }
}

async fn versions(session: &Session) -> Versions {
    let mut versions = Versions::new();
    add::<BundleDeployment>(session, &mut versions).await;
    add::<Resolution>(session, &mut versions).await;
    add::<Catalog>(session, &mut versions).await;
    add::<ProvisionerClass>(session, &mut versions).await;
    add::<ChangeApproval>(session, &mut versions).await;
    add::<ConfigMap>(session, &mut versions).await;
    add::<Namespace>(session, &mut versions).await;
    add::<Secret>(session, &mut versions).await;
    versions
}

/// A BundleDeployment with two revisions and a change that waits for approval, and a suspended one.
async fn arrange(session: &Session, name: &str, suspended: &str) {
    for outcome in [
        session.install(name, OLD, &["--timeout", "2m"]).await,
        session.run(&["upgrade", name, NEW, "--timeout", "2m"]).await,
        session.install(suspended, "./tests/fixtures/plain/lighthouse", &["--timeout", "2m"]).await,
        session.run(&["suspend", suspended]).await,
    ] {
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
    let deployments = session.world.deployments();
    let manual = Patch::Merge(json!({"spec": {"approval": "Manual"}}));
    deployments.patch(name, &PatchParams::default(), &manual).await.unwrap();
    let waits = session.run(&["upgrade", name, OLD, "--timeout", "2m"]).await;
    assert_eq!(waits.code, Some(6), "{}", waits.stderr);
    let observed = |found: Option<&BundleDeployment>| {
        found.is_some_and(|found| {
            found.status.as_ref().and_then(|status| status.observed_generation) == found.metadata.generation
        })
    };
    await_condition(deployments, suspended, observed).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_changes() {
    let mut session = Session::start().await;
    let registry = Registry::start(Options::default()).await.unwrap();
    let (name, suspended) = (session.world.name(), format!("{}-2", session.world.name()));
    arrange(&session, &name, &suspended).await;
    let catalog = format!("{}-ours", session.world.run());
    let directory = tempfile::tempdir().unwrap();
    fs::copy(crate::support::root().join("docs/tutorial/catalog/harbour.yaml"), directory.path().join("harbour.yaml"))
        .unwrap();
    let files = directory.path().to_str().unwrap();
    let label = session.label();
    let added = session.run(&["catalog", "add", &catalog, files, "--label", &label, "--timeout", "2m"]).await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    // From here on, only the commands could write.
    session.world.stop_controller().await;
    let before = versions(&session).await;

    let (bundle, pushed) =
        (format!("{}/shop/harbour:v1", registry.host()), format!("{}/shop/catalog:v1", registry.host()));
    let (target, new, namespace) = (format!("catalog/{catalog}"), format!("{name}-3"), format!("{name}-3-system"));
    let lines: &[(&[&str], &str)] = &[
        (&["approve", &name, "--force"], "would approve as "),
        (&["resume", &suspended], "would resume"),
        (&["suspend", &name], "would suspend"),
        (&["reconcile", &name, "--repair"], "would request a reconcile of"),
        (&["rollback", &name, "--to", "1"], "would roll"),
        (&["delete", &name, "--crds", "Delete"], "nothing was deleted"),
        (&["adopt", &name, "--bundle", NEW], "no object to adopt"),
        (&["upgrade", &name, NEW], ""),
        (&["install", &new, OLD, "-n", &namespace, "--create-namespace"], ""),
        (&["catalog", "add", &new, files], ""),
        (&["catalog", "remove", &catalog], "would delete Catalog"),
        (&["suspend", &target], "would suspend"),
        (&["reconcile", &target], "would request a reconcile of"),
    ];
    for (line, words) in lines {
        let outcome = session.run(&[line, &["--dry-run"][..]].concat()).await;
        assert_eq!(outcome.code, Some(0), "{line:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(words), "{line:?}: {}", outcome.stderr);
        assert_eq!(versions(&session).await, before, "{line:?}");
    }
    // Without --apply, a migration is a preview.
    let migrated = session.run(&["migrate", "olm"]).await;
    assert_eq!(migrated.code, Some(0), "{}", migrated.stderr);
    assert_eq!(versions(&session).await, before);

    for line in [["push", OLD, &bundle].as_slice(), &["push", "--catalog", files, &pushed]] {
        let push = async |more: &[&str]| {
            // It contacts no cluster.
            let line = [line, more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
            tokio::task::spawn_blocking(move || crate::support::chandler(line, "")).await.unwrap()
        };
        let dry = push(&["--dry-run"]).await;
        assert_eq!(dry.code, Some(0), "{}", dry.stderr);
        assert!(dry.stderr.contains("nothing was pushed"), "{}", dry.stderr);
        assert!(registry.requests().is_empty(), "{line:?}: {:?}", registry.requests());
    }
    session.world.finish().await;
}
