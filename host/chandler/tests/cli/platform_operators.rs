//! PlatformOperators on the command line: a requested reconcile, and the Events.

use chandler_api::{BundleDeployment, PlatformOperator, names::REQUESTED_AT_ANNOTATION};
use kube::ResourceExt as _;
use serde_json::json;

use crate::{commands::Session, resolutions::add_catalog};

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_operator_is_reconciled_on_request() {
    let session = Session::start().await;
    let (package, name) = (format!("{}-tide", session.world.run()), format!("{}-mesh", session.world.run()));
    let target = format!("platformoperator/{name}");
    add_catalog(&session, &package).await;
    let spec = json!({"package": {"name": package}, "installNamespace": session.world.namespace});
    let _: PlatformOperator = session.world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    session.data(&["status", &target, "--watch", "--timeout", "2m"]).await;

    let requested = session.run(&["reconcile", &target, "--timeout", "2m"]).await;
    assert_eq!(requested.code, Some(0), "{}", requested.stderr);
    for part in [format!("requested a reconcile of {target}\n"), format!("PlatformOperator {name} is ready")] {
        assert!(requested.stderr.contains(&part), "no {part:?}: {}", requested.stderr);
    }
    let deployment: BundleDeployment = session.world.deployments().get(&name).await.unwrap();
    let request = deployment.annotations().get(REQUESTED_AT_ANNOTATION).cloned();
    assert!(request.is_some(), "the request reaches the BundleDeployment: {:?}", deployment.annotations());
    assert_eq!(deployment.status.unwrap().last_handled_reconcile_at, request, "the command waits until it is handled");

    let events = session.data(&["events", &target, "--objects"]).await;
    let deployment = format!("BundleDeployment.core.rukpak.io {name}");
    assert!(events.contains(&deployment) && events.contains("InstallationSucceeded"), "{events}");

    let absent = session.run(&["reconcile", "platformoperator/none"]).await;
    assert_eq!(absent.code, Some(7), "{}", absent.stderr);
    assert!(absent.stderr.contains("`kubectl get platformoperators` lists them all"), "{}", absent.stderr);
    session.world.finish().await;
}
