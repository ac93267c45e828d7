//! Status, reconcile, suspension and removal of Catalogs, ProvisionerClasses, PlatformOperators and PlatformPolicies.

use std::{fs, path::Path};

use chandler_api::{Alert, PlatformOperator, PlatformPolicy, ProvisionerClass};
use chandler_tests::ArchiveServer;
use serde_json::json;

use crate::{commands::Session, support};

/// An archive of a catalog with this many packages.
fn archive(directory: &Path, packages: usize) -> Vec<u8> {
    let documents: Vec<String> = (0..packages)
        .map(|number| {
            format!(
                "schema: olm.package\nname: p{number}\ndefaultChannel: stable\n---\n\
                 schema: olm.channel\npackage: p{number}\nname: stable\nentries: [{{name: p{number}.v1}}]\n---\n\
                 schema: olm.bundle\npackage: p{number}\nname: p{number}.v1\nimage: quay.io/example/p{number}:v1\n\
                 properties: [{{type: olm.package, value: {{packageName: p{number}, version: 1.0.0}}}}]\n"
            )
        })
        .collect();
    fs::write(directory.join("catalog.yaml"), documents.join("---\n")).unwrap();
    support::packed(directory.to_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_is_shown_fetched_again_suspended_and_resumed() {
    let (session, server) = (Session::start().await, ArchiveServer::start().await);
    let directory = tempfile::tempdir().unwrap();
    let (name, label) = (format!("{}-ours", session.world.run()), session.label());
    let target = format!("catalog/{name}");
    server.serve(archive(directory.path(), 1));
    let add = ["catalog", "add", &name, &server.url(), "--label", &label, "--poll-interval", "1h", "--timeout", "1m"];
    let added = session.run(&add).await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let shown = session.data(&["status", &target, "--watch", "--timeout", "1m"]).await;
    for part in [&format!("catalog/{name}\n"), "1 package, 1 channel, 1 bundle", "CatalogReady", "\nready\n"] {
        assert!(shown.contains(part), "no {part:?}: {shown}");
    }
    assert!(!shown.contains("suggested actions"), "{shown}");

    // Nothing resolves the URL again for an hour.
    server.serve(archive(directory.path(), 2));
    let fetched = session.run(&["reconcile", &target, "--timeout", "1m"]).await;
    assert_eq!(fetched.code, Some(0), "{}", fetched.stderr);
    assert!(fetched.stderr.contains(&format!("Catalog {name} is ready: 2 packages")), "{}", fetched.stderr);

    fs::write(directory.path().join("catalog.yaml"), "schema: olm.package\nname: p\ndefaultChannel: none\n").unwrap();
    server.serve(support::packed(directory.path().to_str().unwrap()));
    let refused = session.run(&["reconcile", &target, "--timeout", "1m"]).await;
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("stays in use") && refused.stderr.contains("chandler catalog lint"),
        "{}",
        refused.stderr
    );
    let stale = session.run(&["status", &target, "-o", "json"]).await;
    assert_eq!(stale.code, Some(1), "{}", stale.stderr);
    let stale: serde_json::Value = serde_json::from_str(&stale.stdout).unwrap();
    assert_eq!((&stale["healthy"], &stale["contents"]["packages"]), (&json!(true), &json!(2)), "{stale}");

    assert_eq!(session.run(&["suspend", &target]).await.code, Some(0));
    let suspended = session.run(&["reconcile", &target]).await;
    assert_eq!(suspended.code, Some(8), "{}", suspended.stderr);
    assert!(suspended.stderr.contains(&format!("`chandler resume {target}`")), "{}", suspended.stderr);
    server.serve(archive(directory.path(), 3));
    let resumed = session.run(&["resume", &target, "--timeout", "1m"]).await;
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let shown = session.json(&["status", &target, "-o", "json"]).await;
    assert_eq!(shown["contents"]["packages"], 3, "{shown}");
    assert_eq!(session.run(&["catalog", "remove", &target]).await.code, Some(0));
    let gone = session.run(&["status", &target]).await;
    assert_eq!(gone.code, Some(7), "{}", gone.stderr);
    assert!(gone.stderr.contains("`kubectl get catalogs` lists them all"), "{}", gone.stderr);
    session.world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn classes_platform_operators_and_policies_are_shown_with_what_helps() {
    let session = Session::start().await;
    let name = |what: &str| format!("{}-{what}", session.world.run());
    let image = "127.0.0.1:1/helm:v1";
    let class = json!({"metadata": {"name": name("helm")}, "spec": {"image": image}});
    let _: ProvisionerClass = session.world.create(class).await;
    let operator = json!({"metadata": {"name": name("mesh")}, "spec": {"package": {"name": "no-catalog-has-it"}}});
    let _: PlatformOperator = session.world.create(operator).await;
    let policy = json!({"metadata": {"name": name("policy")}, "spec": {"packages": [{"name": "mesh"}]}});
    let _: PlatformPolicy = session.world.create(policy).await;
    let alert = json!({"metadata": {"name": name("chat")}, "spec": {"provider": {"type": "Slack", "secretRef": {"name": "gone"}}}});
    let _: Alert = session.world.create(alert).await;

    let target = format!("provisionerclass/{}", name("helm"));
    let late = session.run(&["reconcile", &target, "--timeout", "1m"]).await;
    assert_eq!(late.code, Some(1), "{}", late.stderr);
    let shown = session.run(&["status", &target]).await;
    assert_eq!(shown.code, Some(1), "{}", shown.stdout);
    for part in [image, "ImageNotResolved", "spec.image of the ProvisionerClass", "not ready"] {
        assert!(shown.stdout.contains(part), "no {part:?}: {}", shown.stdout);
    }

    let target = format!("platformoperator/{}", name("mesh"));
    let shown = session.run(&["status", &target, "--watch", "--timeout", "1m", "-o", "json"]).await;
    assert_eq!(shown.code, Some(1), "{}", shown.stderr);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["needsAction"], &shown["package"]), (&json!(true), &json!("no-catalog-has-it")), "{shown}");
    assert_eq!(shown["conditions"][0]["reason"], "SourceFailed", "{shown}");
    let step = shown["nextSteps"][0].as_str().unwrap();
    assert!(step.contains(&format!("`chandler explain {target}`")), "{step}");

    // A controller with a selector reads only the policy of its own name.
    let shown = session.run(&["status", &format!("platformpolicy/{}", name("policy"))]).await;
    assert_eq!(shown.code, Some(1), "{}", shown.stderr);
    assert!(
        shown.stdout.contains("packages      mesh\n") && shown.stdout.contains("watch-selector"),
        "{}",
        shown.stdout
    );
    let target = format!("alert/{}", name("chat"));
    chandler_tests::wait::until(
        &kube::Api::<Alert>::all(session.world.client.clone()),
        &name("chat"),
        "judged",
        |alert| alert.and_then(|alert| alert.status.as_ref()).is_some_and(|status| !status.conditions.is_empty()),
    )
    .await;
    let shown = session.run(&["status", &target]).await;
    assert_eq!(shown.code, Some(1), "{}", shown.stderr);
    for part in ["the Secret gone does not exist", "EndpointSecretInvalid", "create or correct the Secret", "sent as"] {
        assert!(shown.stdout.contains(part), "no {part:?}: {}", shown.stdout);
    }
    session.world.finish().await;
}
