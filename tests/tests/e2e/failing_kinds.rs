//! The status of the other kinds where a request or a record fails: a Resolution, a PlatformOperator, a ProvisionerClass.

use chandler_api::{ConditionType, ProvisionerClass};
use chandler_devcluster::{Effect, Fault, faults::Verb};
use chandler_tests::{World, container, wait};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;

use crate::{
    failing_status::{CONTROLLER, embedded},
    platform_operators, resolutions,
    shop::{Shop, catalog},
};

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.client.clone(), &world.system_namespace)
}

/// Puts a Secret in the place of the one with its name. The data of records cannot be changed.
async fn replace(world: &World, secret: &Secret) {
    let secrets = secrets(world);
    secrets.delete(&secret.name_any(), &DeleteParams::default()).await.expect("the record exists");
    let mut secret = secret.clone();
    (secret.metadata.resource_version, secret.metadata.uid) = (None, None);
    secrets.create(&PostParams::default(), &secret).await.expect("the record is accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resolution_reports_that_the_record_of_its_set_cannot_be_read() {
    let mut world = World::new().await;
    let name = format!("{}-wish", world.run());
    let packages = {
        let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
        catalog(&shop).await;
        resolutions::create(&shop, &name, &[("app", "")]).await;
        resolutions::installed(&shop, &name, &[("app", "1.0.0")]).await;
        shop.packages
    };
    world.stop_controller().await;
    let all = secrets(&world).list(&ListParams::default()).await.expect("a list").items;
    let set = format!("resolveset-{name}");
    let is_of_set = |secret: &Secret| {
        let owner = secret.annotations().get("chandler.dev/bundledeployment");
        secret.type_.as_deref() == Some("chandler.dev/record") && owner == Some(&set)
    };
    let record = all.into_iter().find(is_of_set).expect("the record of the set");
    let damaged =
        Secret { data: Some([("record".to_owned(), ByteString(b"damaged".to_vec()))].into()), ..record.clone() };
    replace(&world, &damaged).await;

    world.start_controller();
    let shop = Shop::reopened(&world, packages).with("app", "1.1.0", &[]).await;
    shop.publish().await;
    let found = resolutions::until(&world, &name, "False/RecordUnavailable", |_| true).await;
    let message = resolutions::message(&found, ConditionType::Ready);
    let expected = format!("Secret {}/{} is not a valid record", world.system_namespace, record.name_any());
    assert!(message.contains(&expected), "{message}");
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"), "nothing was changed");

    replace(&world, &record).await;
    resolutions::installed(&shop, &name, &[("app", "1.1.0")]).await;
    resolutions::delete(&world, &name).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_operator_reports_that_it_cannot_be_uninstalled() {
    let Some(world) = embedded().await else { return };
    let shop = Shop::new(&world).with("app", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = platform_operators::create_here(&shop, "app", "app").await;
    platform_operators::until(&world, &name, platform_operators::INSTALLED, "1.0.0").await;
    for verb in [Verb::Patch, Verb::Delete] {
        let fault = Fault::new(Effect::InternalError).verb(verb).resource("resolutions").subresource("");
        world.embedded().expect("it is embedded").inject(fault.client(container::agent(CONTROLLER)));
    }
    let operators = platform_operators::operators(&world);
    operators.delete(&name, &DeleteParams::default()).await.expect("the deletion is accepted");
    let found = wait::until(&operators, &name, "the failure", |operator| {
        operator.is_some_and(|it| {
            let conditions = it.status.iter().flat_map(|status| &status.conditions);
            conditions.into_iter().any(|it| it.message.starts_with("the package cannot be uninstalled now: "))
        })
    });
    let found = found.await.expect("the PlatformOperator stays");
    assert!(found.metadata.deletion_timestamp.is_some());
    assert_eq!(shop.installed("app").await.as_deref(), Some("1.0.0"));

    world.embedded().expect("it is embedded").clear_faults();
    wait::until(&operators, &name, "gone", |operator| operator.is_none()).await;
    assert_eq!(shop.installed("app").await, None);
    world.finish().await;
}

#[tokio::test]
async fn a_class_reports_that_its_finalizer_cannot_be_written() {
    let Some(world) = embedded().await else { return };
    let name = world.name();
    let fault = Fault::new(Effect::InternalError).verb(Verb::Patch).resource("provisionerclasses").subresource("");
    world.embedded().expect("it is embedded").inject(fault.client(container::agent(CONTROLLER)));
    let spec = json!({"image": "localhost:1/none:v1", "deletion": {"whileInUse": "Wait"}});
    let _: ProvisionerClass = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    let found = wait::until(&classes, &name, "the failure", |class| {
        class.and_then(|class| class.status.as_ref()).is_some_and(|status| {
            status.conditions.iter().any(|it| it.type_ == "Ready" && it.status == "False" && it.reason == "Retrying")
        })
    });
    assert!(found.await.expect("the class").finalizers().is_empty());

    world.embedded().expect("it is embedded").clear_faults();
    wait::until(&classes, &name, "the finalizer", |class| class.is_some_and(|it| !it.finalizers().is_empty())).await;
    world.finish().await;
}
