//! A misbehaving provisioner fails within its limits and with its own reason, while other BundleDeployments continue.

use std::fs;

use chandler_api::{BundleDeployment, ConditionType, ProvisionerClass, find_condition};
use chandler_permissions::AccountPolicy;
use chandler_tests::{
    Cluster, World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

use crate::PLAIN;

/// Creates a class whose provisioner does what a file of the bundle says.
pub(crate) async fn create_class(world: &World, name: &str, limits: serde_json::Value) {
    let component = bundles::workspace().join("target/plugins/test/hostile.wasm");
    let wasm = fs::read(&component)
        .unwrap_or_else(|error| panic!("{}: {error}; build it with `cargo xtask plugins`", component.display()));
    let pushed = world.registry.push_component("provisioners/hostile", "v1", wasm).expect("the registry takes it");
    let class = json!({"metadata": {"name": name}, "spec": {"image": pushed.reference, "limits": limits}});
    let _: ProvisionerClass = world.create(class).await;
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    wait::until(&classes, name, "ready", |class| {
        let conditions = class.and_then(|class| class.status.as_ref()).map(|status| status.conditions.as_slice());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
    .await;
}

#[tokio::test]
async fn every_misbehaviour_gets_its_own_reason_and_blocks_no_other_deployment() {
    let world = World::new().await;
    let class = world.name();
    create_class(&world, &class, json!({"timeout": "2s", "memory": "32Mi", "outputBytes": "4Mi"})).await;

    let cases = [
        ("spin", "PluginTimeout", "2 s"),
        ("allocate", "PluginOutOfMemory", "32 MiB"),
        ("recurse", "PluginTrapped", "call stack exhausted"),
        ("panic", "PluginTrapped", "the hold is on fire"),
        ("emit-million", "PluginLimitExceeded", "the provisioner exceeded the limit of "),
        ("emit-garbage", "InvalidOutput", "object 1 (from manifests/a.yaml:7) is not JSON"),
    ];
    for (index, (behaviour, _, _)) in cases.iter().enumerate() {
        let image = world.push(&Bundle::empty().with("provision", behaviour)).await;
        world.deploy(&format!("{class}-{index}"), &class, &image).await;
    }
    // While all of these misbehave, another BundleDeployment is installed.
    let other = format!("{class}-other");
    let image = world.push(&bundles::sample("plain/lighthouse")).await;
    world.deploy(&other, PLAIN, &image).await;
    world.ready(&other).await;

    for (index, (behaviour, reason, text)) in cases.iter().enumerate() {
        let name = format!("{class}-{index}");
        let found = wait::until(&world.deployments(), &name, reason, |deployment| {
            deployment
                .and_then(|deployment| condition(deployment, "Ready"))
                .is_some_and(|ready| ready.status == "False" && ready.reason == *reason)
        })
        .await;
        let found = found.expect("the BundleDeployment");
        let installed = condition(&found, "Installed").expect("Installed");
        assert_eq!(installed.reason, "InstallFailed", "{behaviour}");
        assert!(installed.message.contains(text), "{behaviour}: {}", installed.message);
        assert!(installed.message.len() < 4096, "{behaviour}: {}", installed.message);
    }
    world.ready(&other).await;
    world.finish().await;
}

#[tokio::test]
async fn endless_logging_is_truncated_and_harmless() {
    let world = World::new().await;
    let class = world.name();
    create_class(&world, &class, json!({"logBytes": "4Ki"})).await;
    let image = world.push(&Bundle::empty().with("provision", "log-forever")).await;
    world.deploy(&class, &class, &image).await;
    let deployment = world.ready(&class).await;
    let status = deployment.status.expect("a status");
    let provisioner = status.provisioner.expect("a provisioner");
    assert_eq!((provisioner.name.as_deref(), provisioner.version.as_deref()), (Some("hostile"), Some("1.2.3")));
    world.finish().await;
}

#[tokio::test]
async fn an_invalid_component_is_rejected_before_use() {
    let world = World::new().await;
    let name = world.name();
    let pushed = world.registry.push_component("provisioners/none", "v1", b"not wasm".to_vec()).expect("pushed");
    let class = json!({"metadata": {"name": name}, "spec": {"image": pushed.reference}});
    let _: ProvisionerClass = world.create(class).await;
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    wait::until(&classes, &name, "refused", |class| {
        let conditions = class.and_then(|class| class.status.as_ref()).map(|status| status.conditions.as_slice());
        conditions.into_iter().flatten().any(|condition| {
            condition.type_ == "Ready" && condition.status == "False" && condition.reason == "InvalidComponent"
        })
    })
    .await;
    let image = world.push(&Bundle::empty().with("provision", "ok")).await;
    world.deploy(&name, &name, &image).await;
    world.condition(&name, "Ready", "False", "ProvisionerNotReady").await;
    world.finish().await;
}

/// A class whose new image is unusable keeps its current component, and reports that.
#[tokio::test]
async fn an_update_to_a_broken_component_keeps_the_old_one() {
    let world = World::new().await;
    let name = world.name();
    create_class(&world, &name, json!({})).await;
    let broken = world.registry.push_component("provisioners/broken", "v1", b"not wasm".to_vec()).expect("pushed");
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    let update = Patch::Merge(json!({"spec": {"image": broken.reference}}));
    classes.patch(&name, &PatchParams::default(), &update).await.expect("the change is accepted");
    wait::until(&classes, &name, "reported as broken", |class| {
        let status = class.and_then(|class| class.status.as_ref());
        status.is_some_and(|status| {
            status
                .conditions
                .iter()
                .any(|condition| condition.status == "False" && condition.reason == "InvalidComponent")
        })
    })
    .await;
    let image = world.push(&Bundle::empty().with("provision", "ok")).await;
    world.deploy(&name, &name, &image).await;
    let deployment = world.ready(&name).await;
    let provisioner = deployment.status.and_then(|status| status.provisioner).expect("a provisioner");
    assert_eq!(provisioner.name.as_deref(), Some("hostile"));
    world.finish().await;
}

/// A bundle that the hostile component renders as its text demands.
fn bundle(behaviour: &str) -> Bundle {
    Bundle::empty().with("provision", behaviour)
}

/// Deploys a bundle into a namespace of its own, so that it has its own requester.
async fn deploy_in(world: &World, name: &str, class: &str, bundle: &Bundle) {
    world.create::<Namespace>(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
    deploy_into(world, name, name, class, bundle).await;
}

async fn deploy_into(world: &World, namespace: &str, name: &str, class: &str, bundle: &Bundle) {
    let image = world.push(bundle).await;
    let mut spec = world.spec(class, &image);
    if class.is_empty() {
        // The class is detected.
        spec.as_object_mut().expect("an object").remove("provisionerClassName");
    }
    spec["installNamespace"] = json!(namespace);
    world.apply(name, spec).await;
}

/// Waits until the class has this reason on `Ready`.
async fn class_is(world: &World, name: &str, reason: &str) -> ProvisionerClass {
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    let found = wait::until(&classes, name, reason, |class| {
        let conditions = class.and_then(|class| class.status.as_ref()).map(|status| status.conditions.as_slice());
        find_condition(conditions.unwrap_or_default(), ConditionType::Ready).is_some_and(|ready| ready.reason == reason)
    })
    .await;
    found.expect("a class")
}

fn message<'a>(deployment: &'a BundleDeployment, type_: &str) -> &'a str {
    condition(deployment, type_).map(|condition| condition.message.as_str()).unwrap_or_default()
}

/// One tenant cannot take a class away from others, however many of its bundles crash the component.
#[tokio::test]
async fn the_crashing_bundles_of_one_tenant_do_not_quarantine_a_class() {
    let world = World::new().await;
    let class = world.name();
    create_class(&world, &class, json!({"timeout": "2s"})).await;
    for (number, behaviour) in ["panic", "recurse", "panic", "emit-million", "spin"].into_iter().enumerate() {
        // Different bundles, of one namespace.
        let bundle = bundle(behaviour).with("number", &number.to_string());
        deploy_into(&world, &world.namespace, &format!("{class}-{number}"), &class, &bundle).await;
    }
    for (number, reason) in ["PluginTrapped", "PluginTrapped", "PluginTrapped", "PluginLimitExceeded", "PluginTimeout"]
        .into_iter()
        .enumerate()
    {
        world.condition(&format!("{class}-{number}"), "Ready", "False", reason).await;
    }
    let honest = format!("{class}-honest");
    deploy_in(&world, &honest, &class, &bundle("ok")).await;
    world.ready(&honest).await;
    class_is(&world, &class, "ProvisionerReady").await;
    world.finish().await;
}

/// A component that crashes for several tenants is not called for a while: the others wait, and are not called failed. A bundle that it
/// renders for another tenant ends that, and shows that the class works.
#[tokio::test]
async fn a_component_that_crashes_for_several_tenants_is_quarantined_until_it_renders_a_bundle() {
    let world = World::new().await;
    let class = world.name();
    create_class(&world, &class, json!({})).await;
    let tenants: Vec<String> = (0..3).map(|number| format!("{class}-{number}")).collect();
    for tenant in &tenants {
        deploy_in(&world, tenant, &class, &bundle("panic")).await;
    }
    let found = class_is(&world, &class, "ProvisionerQuarantined").await;
    let status = found.status.expect("a status");
    let ready = find_condition(&status.conditions, ConditionType::Ready).expect("Ready");
    assert_eq!(ready.status, "False");
    for part in ["is not called until 2", &format!("chandler reconcile provisionerclass/{class}")] {
        assert!(ready.message.contains(part), "{}", ready.message);
    }
    assert!(!ready.message.contains("on fire"), "what a bundle of another tenant printed: {}", ready.message);
    let calls = status.calls.expect("figures");
    assert!(calls.failed >= 2 && calls.kinds.is_empty(), "{calls:?}");

    // A fourth tenant's first bundle is tried, and a second one is not: neither is reported as failed.
    let fourth = format!("{class}-fourth");
    deploy_in(&world, &fourth, &class, &bundle("panic")).await;
    let waits = world.condition(&fourth, "Ready", "False", "ProvisionerQuarantined").await;
    assert!(!message(&waits, "Progressing").contains("crashed: "), "{}", message(&waits, "Progressing"));
    let second = format!("{class}-second");
    deploy_into(&world, &fourth, &second, &class, &bundle("ok")).await;
    world.condition(&second, "Ready", "False", "ProvisionerQuarantined").await;

    // The bundle of an honest tenant renders. So the class is called again, also for the ones that wait.
    let honest = format!("{class}-honest");
    deploy_in(&world, &honest, &class, &bundle("ok")).await;
    world.ready(&honest).await;
    world.ready(&second).await;
    class_is(&world, &class, "ProvisionerReady").await;
    world.condition(&fourth, "Ready", "False", "PluginTrapped").await;
    world.finish().await;
}

/// With `--accounts-in`, the accounts of all tenants are in one namespace, and administrators create them.
#[tokio::test]
async fn accounts_of_one_namespace_are_several_tenants_where_only_administrators_create_them() {
    let mut world = World::without_controller(Cluster::acquire().await).await;
    let namespace = world.namespace.clone();
    world.start_controller_changed(|options| {
        options.accounts = AccountPolicy::REQUIRED.within([namespace]).expect("a policy");
    });
    let class = world.name();
    create_class(&world, &class, json!({})).await;
    for number in 0..3 {
        let name = format!("{class}-{number}");
        let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": name}})).expect("an account");
        let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), &world.namespace);
        accounts.create(&PostParams::default(), &account).await.expect("it is created");
        let image = world.push(&bundle("panic").with("number", &number.to_string())).await;
        let mut spec = world.spec(&class, &image);
        spec["serviceAccount"] = json!({"name": name, "namespace": world.namespace});
        world.apply(&name, spec).await;
    }
    class_is(&world, &class, "ProvisionerQuarantined").await;
    world.finish().await;
}

/// A component that crashes when it looks at bundles is quarantined like one that crashes when it renders them, although no BundleDeployment
/// names its class. An honest tenant's bundle is recognised and rendered nevertheless, which ends that.
#[tokio::test]
async fn a_component_that_crashes_for_several_tenants_when_it_looks_at_bundles_is_quarantined() {
    let world = World::new().await;
    let class = world.name();
    create_class(&world, &class, json!({})).await;
    for number in 0..3 {
        let name = format!("{class}-{number}");
        deploy_in(&world, &name, "", &Bundle::empty().with("detect", "panic")).await;
        world.condition(&name, "Ready", "False", "ProvisionerNotDetected").await;
    }
    class_is(&world, &class, "ProvisionerQuarantined").await;
    let honest = format!("{class}-honest");
    deploy_in(&world, &honest, "", &Bundle::empty().with("detect", "hostile+v0").with("provision", "ok")).await;
    world.ready(&honest).await;
    class_is(&world, &class, "ProvisionerReady").await;
    world.finish().await;
}

/// Another component is called at once.
#[tokio::test]
async fn a_quarantine_ends_with_another_component_and_when_an_administrator_requests_it() {
    let world = World::new().await;
    let class = world.name();
    create_class(&world, &class, json!({})).await;
    let tenants: Vec<String> = (0..3).map(|number| format!("{class}-{number}")).collect();
    for tenant in &tenants {
        deploy_in(
            &world,
            tenant,
            &class,
            &bundle("panic").with("manifests/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"),
        )
        .await;
    }
    class_is(&world, &class, "ProvisionerQuarantined").await;
    for tenant in &tenants {
        world.condition(tenant, "Ready", "False", "ProvisionerQuarantined").await;
    }
    let classes: Api<ProvisionerClass> = Api::all(world.client.clone());
    let patch = |change: serde_json::Value| {
        let classes = classes.clone();
        let class = class.clone();
        async move { classes.patch(&class, &PatchParams::default(), &Patch::Merge(change)).await.expect("patched") }
    };
    // The component is called again, and crashes for the three.
    patch(json!({"metadata": {"annotations": {"reconcile.chandler.dev/requestedAt": "now"}}})).await;
    world.condition(&tenants[0], "Ready", "False", "PluginTrapped").await;
    class_is(&world, &class, "ProvisionerQuarantined").await;

    let plain = fs::read(bundles::workspace().join("target/plugins/plain.wasm")).expect("the component plain");
    let pushed = world.registry.push_component("provisioners/plain", "v1", plain).expect("pushed");
    patch(json!({"spec": {"image": pushed.reference}})).await;
    for tenant in &tenants {
        world.ready(tenant).await;
    }
    class_is(&world, &class, "ProvisionerReady").await;
    let found = wait::until(&classes, &class, "figures of the new component", |class| {
        let calls = class.and_then(|class| class.status.as_ref()?.calls.as_ref());
        calls.is_some_and(|calls| !calls.kinds.is_empty())
    })
    .await;
    let calls = found.and_then(|class| class.status?.calls).expect("figures");
    assert_eq!((calls.kinds, calls.failed, calls.configuration_schema), (vec!["ConfigMap".to_owned()], 0, true));
    world.finish().await;
}
