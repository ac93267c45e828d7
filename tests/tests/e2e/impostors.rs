//! Bundles that call themselves a package of a catalog and are not from it: they decide nothing, and a Resolution names them.

use chandler_api::{BundleDeployment, ConditionType, Resolution, names::OWNER_NAME_LABEL};
use chandler_tests::{World, wait};
use kube::{
    ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{
    permissions::{account, grant_missing, spec},
    resolutions::{create, delete, installed, message, resolutions, until},
    shop::{Shop, catalog},
};

const REGISTRY: &str = "core-rukpak-io-registry";

/// Installs a bundle as a tenant does, who gives the BundleDeployment everything that an author can write.
async fn deploy(shop: &Shop<'_>, name: &str, image: &str, set: &str) -> BundleDeployment {
    let world = shop.world;
    let owner = account(world, &format!("{name}-tenant")).await;
    world.apply(name, spec(world, REGISTRY, image, &owner.name)).await;
    let refused = world.condition(name, "Ready", "False", "PermissionsMissing").await;
    grant_missing(world, &owner, &refused, &format!("{name}-tenant")).await;
    world.ready(name).await;
    let labels = json!({"metadata": {"labels": {OWNER_NAME_LABEL: format!("resolveset-{set}")}}});
    let deployments = world.deployments();
    deployments.patch(name, &PatchParams::default(), &Patch::Merge(labels)).await.expect("a label of its author")
}

fn notes(resolution: &Resolution) -> Vec<String> {
    let status = resolution.status.clone().expect("a status");
    [status.explanation, status.notes].concat()
}

fn does_not_count(deployment: &str, package: &str, version: &str) -> String {
    format!(
        "BundleDeployment {deployment} calls itself {package} {version}; it is not from a catalog of this Resolution, so it does not count"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_calls_itself_a_package_satisfies_and_blocks_nothing() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base <2.0.0"]).await.with("base", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    let (innocent, blocker) = (shop.name("a-innocent"), shop.name("a-blocker"));
    deploy(&shop, &innocent, &shop.impostor("base", "1.0.0").await, &name).await;
    deploy(&shop, &blocker, &shop.impostor("app", "99.0.0").await, "other").await;
    create(&shop, &name, &[("app", "<2")]).await;
    let found = installed(&shop, &name, &[("app", "1.0.0"), ("base", "1.0.0")]).await;
    let members = &found.status.as_ref().expect("a status").members;
    let of = |at: usize| (members[at].bundle_deployment.clone().expect("a name"), members[at].image.clone());
    assert_eq!(of(0), (shop.name("app"), shop.packages["app"][0].image.clone()));
    assert_eq!(of(1), (shop.name("base"), shop.packages["base"][0].image.clone()));
    assert_eq!(shop.installed("base").await.as_deref(), Some("1.0.0"), "the one of the catalog");
    let expected =
        [does_not_count(&blocker, &shop.name("app"), "99.0.0"), does_not_count(&innocent, &shop.name("base"), "1.0.0")];
    assert_eq!(notes(&found), expected);
    for impostor in [&innocent, &blocker] {
        let stored = world.deployments().get(impostor).await.expect("it is left alone");
        assert!(stored.metadata.deletion_timestamp.is_none());
    }
    delete(&world, &name).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_an_impostor_has_is_not_overwritten() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("app", "1.0.0", &["base"]).await.with("base", "1.0.0", &[]).await;
    let shop = shop.with("extra", "1.0.0", &[]).await;
    catalog(&shop).await;
    let (name, second, base) = (format!("{}-wish", world.run()), format!("{}-second", world.run()), shop.name("base"));
    let squatter = deploy(&shop, &base, &shop.impostor("base", "1.0.0").await, &name).await;
    create(&shop, &name, &[("app", "")]).await;
    let refused = until(&world, &name, "False/PreflightFailed", |_| true).await;
    let text = message(&refused, ConditionType::Ready);
    assert!(text.starts_with(&format!("{base}: package {base} cannot be installed under this name")), "{text}");
    assert!(text.contains(&does_not_count(&base, &base, "1.0.0")), "{text}");
    assert!(text.contains(&format!("chandler delete {base}")), "{text}");
    let stored = world.deployments().get(&base).await.expect("it is left alone");
    assert_eq!((stored.uid(), &stored.spec), (squatter.uid(), &squatter.spec));
    assert!(world.deployments().get_opt(&shop.name("app")).await.expect("an answer").is_none(), "nothing is written");

    // Where the package is optional, it keeps no other from being installed.
    let package = |package: &str, optional: bool| json!({"name": shop.name(package), "optional": optional});
    let output = json!({"type": "ResolveSet", "resolveSet": {"installNamespace": world.namespace}});
    let spec = json!({"packages": [package("base", true), package("extra", true)], "output": output});
    let _: Resolution = world.create(json!({"metadata": {"name": second}, "spec": spec})).await;
    let found = installed(&shop, &second, &[("extra", "1.0.0")]).await;
    let left_out: Vec<Value> =
        found.status.iter().flat_map(|status| &status.left_out).map(|it| json!([it.package, it.reason])).collect();
    assert_eq!(left_out, [json!([base, "PreflightFailed"])]);

    // Once its BundleDeployment is gone, the name is free.
    world.delete(&base).await;
    wait::until(&world.deployments(), &base, "the one of the set", |stored| {
        stored.is_some_and(|stored| stored.uid() != squatter.uid())
    })
    .await;
    assert_eq!(world.ready(&base).await.spec.source.image.expect("an image").reference, shop.packages["base"][0].image);
    delete(&world, &name).await;
    delete(&world, &second).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_with_foreign_content_is_restored_and_named() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await;
    catalog(&shop).await;
    let (name, base) = (format!("{}-wish", world.run()), shop.name("base"));
    create(&shop, &name, &[("base", "")]).await;
    installed(&shop, &name, &[("base", "1.0.0")]).await;
    // The set restores nothing, so that the change stays.
    let report = Patch::Merge(json!({"spec": {"drift": "Report"}}));
    let set = format!("resolveset-{name}");
    world.deployments().patch(&set, &PatchParams::default(), &report).await.expect("the set exists");
    let image = json!({"spec": {"source": {"image": {"ref": shop.impostor("base", "1.0.0").await}}}});
    world.deployments().patch(&base, &PatchParams::default(), &Patch::Merge(image)).await.expect("the member exists");
    let resolutions = resolutions(&world);
    let named = wait::until(&resolutions, &name, "a note", |resolution| {
        let notes = resolution.filter(|it| it.status.is_some()).map(notes).unwrap_or_default();
        notes.iter().any(|note| note.starts_with(&format!("BundleDeployment {base} belongs to this Resolution")))
    });
    drop(named.await);
    // Its claimed name does not count, and it stays a member.
    let report = Patch::Merge(json!({"spec": {"drift": "Repair"}}));
    world.deployments().patch(&set, &PatchParams::default(), &report).await.expect("the set exists");
    let deployments = world.deployments();
    let restored = wait::until(&deployments, &base, "restored", |stored| {
        let image = stored.and_then(|stored| stored.spec.source.image.as_ref());
        image.is_some_and(|image| image.reference == shop.packages["base"][0].image)
    });
    drop(restored.await);
    delete(&world, &name).await;
    world.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_set_that_someone_else_created_is_not_taken_over() {
    let world = World::new().await;
    let shop = Shop::new(&world).with("base", "1.0.0", &[]).await;
    catalog(&shop).await;
    let name = format!("{}-wish", world.run());
    let output = json!({"type": "ResolveSet", "resolveSet": {"installNamespace": world.namespace}});
    let spec = json!({"packages": [{"name": shop.name("base")}], "suspend": true, "output": output});
    let wish: Resolution = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    // Before the set exists, with the owner reference of one, and with settings that would let it adopt everything.
    let set = format!("resolveset-{name}");
    let mut spec = world.spec(REGISTRY, &shop.impostor("base", "1.0.0").await);
    spec["collisionProtection"] = json!("None");
    let owner = json!({"apiVersion": "core.deppy.io/v1alpha1", "kind": "Resolution", "name": name, "uid": wish.uid(), "controller": true});
    let metadata = json!({"name": set, "ownerReferences": [owner]});
    let forged: BundleDeployment = world.create(json!({"metadata": metadata, "spec": spec})).await;
    let resume = Patch::Merge(json!({"spec": {"suspend": null}}));
    resolutions(&world).patch(&name, &PatchParams::default(), &resume).await.expect("the spec is accepted");
    let refused = until(&world, &name, "False/ObjectCollision", |_| true).await;
    let text = message(&refused, ConditionType::Ready);
    assert!(text.contains(&format!("BundleDeployment {set} exists, and this Resolution did not create it")), "{text}");
    let stored = world.deployments().get(&set).await.expect("it is left alone");
    assert_eq!((stored.uid(), stored.spec), (forged.uid(), forged.spec));
    world.delete(&set).await;
    installed(&shop, &name, &[("base", "1.0.0")]).await;
    delete(&world, &name).await;
    world.finish().await;
}
