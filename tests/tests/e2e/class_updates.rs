//! A newer component of a class reaches an installed BundleDeployment when its author approves it, and no other.

use std::fs;

use chandler_api::{
    BundleDeployment, ChangeCause, ClassUses, Outcome, PendingChange, ProvisionerClass, Revision,
    names::REQUESTED_AT_ANNOTATION,
};
use chandler_core::Digest;
use chandler_devregistry::Registry;
use chandler_tests::{
    World,
    bundles::{self, Bundle},
    wait,
    world::condition,
};
use k8s_openapi::{api::rbac::v1::ClusterRoleBinding, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use serde_json::{Value, json};

/// Renders the manifests of a bundle.
pub(crate) const PLAIN_COMPONENT: &str = "plain.wasm";
/// Renders every bundle into the ConfigMap `first`, which holds the configuration.
const HOSTILE_COMPONENT: &str = "test/hostile.wasm";

fn classes(world: &World) -> Api<ProvisionerClass> {
    Api::all(world.client.clone())
}

pub(crate) fn wasm(file: &str) -> Vec<u8> {
    let path = bundles::workspace().join("target/plugins").join(file);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; build it with `cargo xtask plugins`", path.display()))
}

/// This component with another digest.
pub(crate) fn rebuilt(mut wasm: Vec<u8>) -> Vec<u8> {
    wasm.extend([0, 3, 1, b'x', 0]);
    wasm
}

/// Pushes a component under the tag of the class, and returns the reference with the tag, and the digest of the component.
pub(crate) fn push(world: &World, wasm: Vec<u8>) -> (String, String) {
    let digest = Digest::of(&wasm).to_string();
    let _pushed = world.registry.push_component("provisioners/updates", "v1", wasm).expect("the registry takes it");
    (format!("{}/provisioners/updates:v1", world.registry.address()), digest)
}

/// Creates a class, and waits until it is ready with this component.
pub(crate) async fn create_class(world: &World, name: &str, mut spec: Value, image: &str, digest: &str) {
    spec["image"] = json!(image);
    let _: ProvisionerClass = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    has_component(world, name, digest).await;
}

pub(crate) async fn has_component(world: &World, name: &str, digest: &str) {
    wait::until(&classes(world), name, &format!("ready with {digest}"), |class| {
        let component = class.and_then(|class| class.status.as_ref()?.component.as_ref());
        component.is_some_and(|component| component.digest == digest)
    })
    .await;
}

/// Moves the tag of a class to a component, and waits until the class has it.
async fn update_class(world: &World, name: &str, wasm: Vec<u8>) -> String {
    let (_, digest) = push(world, wasm);
    let annotations = json!({REQUESTED_AT_ANNOTATION: digest});
    let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    classes(world).patch(name, &PatchParams::default(), &patch).await.expect("the class exists");
    has_component(world, name, &digest).await;
    digest
}

fn note(name: &str) -> Bundle {
    Bundle::empty().with("manifests/note.yaml", &bundles::config_map(name, "plain"))
}

async fn has(world: &World, map: &str) -> bool {
    world.config_maps().get_opt(map).await.expect("an answer").is_some()
}

fn message(deployment: &BundleDeployment) -> String {
    condition(deployment, "Ready").map(|ready| ready.message.clone()).unwrap_or_default()
}

fn last(deployment: &BundleDeployment) -> Revision {
    deployment.status.as_ref().and_then(|status| status.history.last().cloned()).expect("a revision")
}

fn pending(deployment: Option<&BundleDeployment>) -> Option<&PendingChange> {
    deployment?.status.as_ref()?.pending_change.as_ref()
}

/// Waits until the update to this component waits for approval, while the BundleDeployment is ready.
async fn update_waits(world: &World, name: &str, digest: &str) -> (BundleDeployment, PendingChange) {
    let found = wait::until(&world.deployments(), name, &format!("waiting with {digest}"), |deployment| {
        let is_ready = deployment.and_then(|it| condition(it, "Ready")).is_some_and(|ready| ready.status == "True");
        is_ready
            && pending(deployment).is_some_and(|it| it.provisioner.as_ref().is_some_and(|it| it.new.digest == digest))
    })
    .await
    .expect("the BundleDeployment");
    let pending = pending(Some(&found)).cloned().expect("a pending change");
    assert_eq!(pending.cause, Some(ChangeCause::Provisioner), "{pending:?}");
    (found, pending)
}

/// Waits until the release that is installed was rendered by this component.
async fn rendered_by(world: &World, name: &str, digest: &str) -> BundleDeployment {
    let found = wait::until(&world.deployments(), name, &format!("rendered by {digest}"), |deployment| {
        deployment.is_some_and(|deployment| {
            let is_ready = condition(deployment, "Ready").is_some_and(|ready| {
                ready.status == "True" && ready.observed_generation == deployment.metadata.generation
            });
            let current = deployment.status.as_ref().and_then(|status| status.history.last());
            is_ready && current.is_some_and(|it| it.provisioner.digest == digest && it.outcome == Outcome::Succeeded)
        })
    })
    .await;
    found.expect("the BundleDeployment")
}

/// Requests a reconcile, and waits until it is done.
async fn reconcile(world: &World, name: &str, request: &str) -> BundleDeployment {
    let patch = Patch::Merge(json!({"metadata": {"annotations": {REQUESTED_AT_ANNOTATION: request}}}));
    world.deployments().patch(name, &PatchParams::default(), &patch).await.expect("the object exists");
    let found = wait::until(&world.deployments(), name, "reconciled", |deployment| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some(request))
    })
    .await;
    found.expect("the BundleDeployment")
}

#[tokio::test]
async fn an_update_of_a_class_waits_for_the_approval_of_each_bundle_deployment() {
    let mut world = World::new().await;
    let (class, one, other) = (world.name(), world.name() + "-1", world.name() + "-2");
    let (image, plain) = push(&world, wasm(PLAIN_COMPONENT));
    create_class(&world, &class, json!({}), &image, &plain).await;
    for (name, map) in [(&one, "one"), (&other, "other")] {
        world.deploy(name, &class, &world.push(&note(map)).await).await;
        rendered_by(&world, name, &plain).await;
    }
    let hostile = update_class(&world, &class, wasm(HOSTILE_COMPONENT)).await;

    let (found, change) = update_waits(&world, &one, &hostile).await;
    update_waits(&world, &other, &hostile).await;
    let provisioner = change.provisioner.clone().expect("the provisioners");
    let installed = provisioner.installed.expect("the installed one");
    assert_eq!((&installed.class, &installed.digest, &provisioner.new.class), (&class, &plain, &class));
    assert!(installed.image.is_some_and(|image| image.contains("@sha256:")), "its artifact is known");
    let line = |kind: &str, map: &str| format!("{kind} ConfigMap {}/{map}", world.namespace);
    assert_eq!((change.created, change.changed, change.removed), (1, 0, 1), "{change:?}");
    assert!(change.objects.contains(&line("create", "first")) && change.objects.contains(&line("remove", "one")));
    let text = message(&found);
    for part in [&class, &plain, &hostile, &format!("chandler approve {one}")] {
        assert!(text.contains(part), "{text}");
    }
    assert!(has(&world, "one").await && has(&world, "other").await && !has(&world, "first").await);

    // Writing the status updates nothing, nor does a restart, and the release is repaired.
    let mut history = json!(found.status.clone().expect("a status").history);
    history[0]["provisioner"]["digest"] = json!(hostile);
    let forged = Patch::Merge(json!({"status": {"history": history}}));
    world.deployments().patch_status(&one, &PatchParams::default(), &forged).await.expect("the status is accepted");
    reconcile(&world, &one, "after the status was forged").await;
    assert_eq!(update_waits(&world, &one, &hostile).await.1.digest, change.digest);
    world.stop_controller().await;
    world.start_controller();
    reconcile(&world, &one, "after the restart").await;
    assert_eq!(update_waits(&world, &one, &hostile).await.1.digest, change.digest);
    let before = world.config_maps().get("one").await.expect("it is installed").uid();
    world.config_maps().delete("one", &DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&world.config_maps(), "one", "created again", |map| map.is_some_and(|map| map.uid() != before)).await;

    world.approve(&one, &change.digest).await;
    let found = rendered_by(&world, &one, &hostile).await;
    assert_eq!(last(&found).approval.map(|approval| approval.approved_by), Some(world.user().await));
    assert_eq!(pending(Some(&found)), None);
    wait::until(&world.config_maps(), "one", "pruned", |map| map.is_none()).await;
    assert!(has(&world, "first").await && has(&world, "other").await, "the other one is as it was");
    let (found, _) = update_waits(&world, &other, &hostile).await;
    assert_eq!(last(&found).provisioner.digest, plain);
    world.finish().await;
}

#[tokio::test]
async fn a_new_installation_and_an_edit_use_the_newest_component_and_a_rollback_the_earlier_one() {
    let world = World::new().await;
    let (class, name, later) = (world.name(), world.name() + "-1", world.name() + "-2");
    let (image, plain) = push(&world, wasm(PLAIN_COMPONENT));
    create_class(&world, &class, json!({}), &image, &plain).await;
    world.deploy(&name, &class, &world.push(&note("one")).await).await;
    rendered_by(&world, &name, &plain).await;
    let hostile = update_class(&world, &class, wasm(HOSTILE_COMPONENT)).await;
    update_waits(&world, &name, &hostile).await;

    world.deploy(&later, &class, &world.push(&note("later")).await).await;
    rendered_by(&world, &later, &hostile).await;
    world.delete(&later).await;

    // A field that says nothing about what is rendered updates nothing.
    let patch = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        world.deployments().patch(&name, &PatchParams::default(), &patch).await.expect("the change is accepted");
    };
    patch(json!({"drift": "Report"})).await;
    let found = rendered_by(&world, &name, &plain).await;
    assert_eq!(last(&found).number, 1);
    patch(json!({"config": {"depth": 10}})).await;
    let found = rendered_by(&world, &name, &hostile).await;
    assert_eq!((last(&found).number, pending(Some(&found))), (2, None));
    wait::until(&world.config_maps(), "one", "pruned", |map| map.is_none()).await;

    // Another revision, so that the bytes of the first release are no longer kept.
    patch(json!({"config": {"depth": 20}})).await;
    wait::until(&world.deployments(), &name, "at revision 3", |deployment| {
        deployment.is_some_and(|it| last(it).number == 3 && last(it).outcome == Outcome::Succeeded)
    })
    .await;
    patch(json!({"rollout": {"toRevision": 1}})).await;
    let found = rendered_by(&world, &name, &plain).await;
    assert_eq!((last(&found).number, last(&found).rollback_to), (4, Some(1)));
    assert!(has(&world, "one").await);
    world.finish().await;
}

#[tokio::test]
async fn an_update_that_does_not_render_is_a_warning() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let (image, plain) = push(&world, wasm(PLAIN_COMPONENT));
    create_class(&world, &class, json!({}), &image, &plain).await;
    world.deploy(&name, &class, &world.push(&note("note").with("provision", "panic")).await).await;
    rendered_by(&world, &name, &plain).await;
    let hostile = update_class(&world, &class, wasm(HOSTILE_COMPONENT)).await;
    let found = wait::until(&world.deployments(), &name, "warned of the update", |deployment| {
        let warnings = deployment.and_then(|it| it.status.as_ref()).map(|status| status.warnings.as_slice());
        let parts = [&class, &hostile, &plain];
        let names = |message: &str| parts.iter().all(|part| message.contains(part.as_str()));
        warnings.unwrap_or_default().iter().any(|it| it.code == "ProvisionerUpdateFailed" && names(&it.message))
    })
    .await
    .expect("the BundleDeployment");
    assert_eq!(condition(&found, "Ready").map(|ready| ready.status.as_str()), Some("True"), "{}", message(&found));
    assert_eq!(
        (last(&found).provisioner.digest, pending(Some(&found)), has(&world, "note").await),
        (plain, None, true)
    );
    world.finish().await;
}

/// The component of the installed release is neither in the cache nor in a registry any more.
#[tokio::test]
async fn a_release_whose_component_is_gone_stays_as_it_is_until_the_update_is_approved() {
    let mut world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let earlier = Registry::start(chandler_devregistry::Options::default()).await.expect("a registry");
    let component = wasm(PLAIN_COMPONENT);
    let plain = Digest::of(&component).to_string();
    let pushed = earlier.push_component("provisioners/gone", "v1", component).expect("the registry takes it");
    create_class(&world, &class, json!({}), &pushed.reference, &plain).await;
    world.deploy(&name, &class, &world.push(&note("note")).await).await;
    rendered_by(&world, &name, &plain).await;
    let (image, hostile) = push(&world, wasm(HOSTILE_COMPONENT));
    let update = Patch::Merge(json!({"spec": {"image": image}}));
    classes(&world).patch(&class, &PatchParams::default(), &update).await.expect("the class exists");
    has_component(&world, &class, &hostile).await;
    update_waits(&world, &name, &hostile).await;

    world.stop_controller().await;
    drop(earlier);
    for directory in ["content", "releases"] {
        fs::remove_dir_all(world.cache().join(directory)).expect("the cache of the controller");
    }
    world.start_controller();
    let found = wait::until(&world.deployments(), &name, "warned of the component", |deployment| {
        let warnings = deployment.and_then(|it| it.status.as_ref()).map(|status| status.warnings.as_slice());
        warnings.unwrap_or_default().iter().any(|it| it.code == "ProvisionerUnavailable" && it.message.contains(&plain))
    })
    .await
    .expect("the BundleDeployment");
    assert_eq!(condition(&found, "Ready").map(|ready| ready.status.as_str()), Some("True"), "{}", message(&found));
    // While an object is missing, the change is another one.
    let (_, change) = update_waits(&world, &name, &hostile).await;
    let before = world.config_maps().get("note").await.expect("it is installed").uid();
    world.config_maps().delete("note", &DeleteParams::default()).await.expect("the deletion is accepted");
    wait::until(&world.config_maps(), "note", "created again", |map| map.is_some_and(|map| map.uid() != before)).await;
    world.approve(&name, &change.digest).await;
    rendered_by(&world, &name, &hostile).await;
    world.finish().await;
}

/// The objects are the same, but the component may render others later.
#[tokio::test]
async fn an_update_that_changes_no_object_waits_too() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let (image, plain) = push(&world, wasm(PLAIN_COMPONENT));
    create_class(&world, &class, json!({}), &image, &plain).await;
    world.deploy(&name, &class, &world.push(&note("note")).await).await;
    rendered_by(&world, &name, &plain).await;
    let newer = update_class(&world, &class, rebuilt(wasm(PLAIN_COMPONENT))).await;
    let (_, change) = update_waits(&world, &name, &newer).await;
    assert_eq!((change.created, change.changed, change.removed), (0, 0, 0), "{change:?}");
    // An approval is for one component.
    let newest = update_class(&world, &class, rebuilt(rebuilt(wasm(PLAIN_COMPONENT)))).await;
    let (_, next) = update_waits(&world, &name, &newest).await;
    assert_ne!(next.digest, change.digest);
    world.approve(&name, &change.digest).await;
    let found = reconcile(&world, &name, "after the approval of another component").await;
    assert_eq!(last(&found).provisioner.digest, plain);
    world.approve(&name, &next.digest).await;
    let found = rendered_by(&world, &name, &newest).await;
    assert_eq!((last(&found).number, pending(Some(&found))), (1, None));
    world.finish().await;
}

#[tokio::test]
async fn a_change_of_the_configuration_of_a_class_waits_and_an_automatic_class_updates_at_once() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let (image, hostile) = push(&world, wasm(HOSTILE_COMPONENT));
    create_class(&world, &class, json!({"config": {"tide": "low"}}), &image, &hostile).await;
    world.deploy(&name, &class, &world.push(&note("note")).await).await;
    rendered_by(&world, &name, &hostile).await;
    let patch = async |spec: Value| {
        let patch = Patch::Merge(json!({"spec": spec}));
        classes(&world).patch(&class, &PatchParams::default(), &patch).await.expect("the change is accepted");
    };
    let config = async || {
        let map = world.config_maps().get("first").await.expect("it is installed");
        map.data.and_then(|data| data.get("config").cloned()).unwrap_or_default()
    };
    patch(json!({"config": {"tide": "high"}})).await;
    let (_, change) = update_waits(&world, &name, &hostile).await;
    assert_eq!((change.changed, config().await.as_str()), (1, r#"{"tide":"low"}"#));

    patch(json!({"updatePolicy": "Automatic"})).await;
    wait::until(&world.config_maps(), "first", "updated", |map| {
        let data = map.and_then(|map| map.data.as_ref());
        data.is_some_and(|data| data.get("config").is_some_and(|config| config.contains("high")))
    })
    .await;
    let found = rendered_by(&world, &name, &hostile).await;
    assert_eq!(pending(Some(&found)), None);
    let newer = update_class(&world, &class, rebuilt(wasm(HOSTILE_COMPONENT))).await;
    rendered_by(&world, &name, &newer).await;
    world.finish().await;
}

#[tokio::test]
async fn privileges_that_an_update_adds_wait_whatever_the_mode() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let (image, hostile) = push(&world, wasm(HOSTILE_COMPONENT));
    create_class(&world, &class, json!({"updatePolicy": "Automatic"}), &image, &hostile).await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                         "metadata": {"name": name},
                         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
                         "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "keepers"}]});
    let bundle = note("note").with("manifests/binding.json", &binding.to_string());
    world.deploy(&name, &class, &world.push(&bundle).await).await;
    rendered_by(&world, &name, &hostile).await;

    let plain = update_class(&world, &class, wasm(PLAIN_COMPONENT)).await;
    let deployments = world.deployments();
    let waits = |deployment: Option<&BundleDeployment>| pending(deployment).is_some();
    let waiting = wait::until(&deployments, &name, "waiting", waits).await.expect("the object exists");
    let findings = &pending(Some(&waiting)).expect("a pending change").findings;
    assert!(findings.iter().any(|line| line.contains("ClusterRoleBinding.rbac.authorization.k8s.io")), "{findings:?}");
    let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
    assert!(bindings.get_opt(&name).await.expect("an answer").is_none() && has(&world, "first").await);

    let change = pending(Some(&waiting)).expect("a pending change").clone();
    world.approve(&name, &change.digest).await;
    rendered_by(&world, &name, &plain).await;
    assert!(bindings.get_opt(&name).await.expect("an answer").is_some());
    world.finish().await;
}

/// The author of the class decides about the defaults, and the author of the BundleDeployment about what comes of them.
#[tokio::test]
async fn privileges_that_the_configuration_of_a_class_adds_wait_whatever_the_mode() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let (image, helm) = push(&world, wasm("helm.wasm"));
    create_class(&world, &class, json!({"updatePolicy": "Automatic"}), &image, &helm).await;
    let binding = format!(
        "{{{{ if .Values.tide }}}}\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: Group, name: keepers}}]\n{{{{ end }}}}\n"
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {depth: '{{ .Values.depth }}'}\n";
    let chart = Bundle::empty()
        .with("Chart.yaml", "apiVersion: v2\nname: harbour\nversion: 0.1.0\n")
        .with("values.yaml", "depth: shallow\n")
        .with("templates/binding.yaml", &binding)
        .with("templates/map.yaml", map);
    world.deploy(&name, &class, &world.push(&chart).await).await;
    rendered_by(&world, &name, &helm).await;
    let configure = async |values: Value| {
        let patch = Patch::Merge(json!({"spec": {"config": {"values": values}}}));
        classes(&world).patch(&class, &PatchParams::default(), &patch).await.expect("the change is accepted");
    };
    // What adds no privileges does not wait.
    configure(json!({"depth": "deep"})).await;
    wait::until(&world.config_maps(), "note", "configured", |map| {
        map.and_then(|map| map.data.as_ref()?.get("depth")).is_some_and(|depth| depth == "deep")
    })
    .await;

    configure(json!({"depth": "deep", "tide": "high"})).await;
    let waits = |deployment: Option<&BundleDeployment>| pending(deployment).is_some();
    let waiting = wait::until(&world.deployments(), &name, "waiting", waits).await.expect("the object exists");
    let change = pending(Some(&waiting)).expect("a pending change").clone();
    let binding = "ClusterRoleBinding.rbac.authorization.k8s.io";
    assert!(change.findings.iter().any(|line| line.contains(binding)), "{change:?}");
    let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
    assert!(bindings.get_opt(&name).await.expect("an answer").is_none() && has(&world, "note").await);

    world.approve(&name, &change.digest).await;
    wait::until(&bindings, &name, "created", |binding| binding.is_some()).await;
    let without = |deployment: Option<&BundleDeployment>| deployment.is_some() && pending(deployment).is_none();
    wait::until(&world.deployments(), &name, "without a pending change", without).await;
    world.finish().await;
}

/// Who may write the object of `spec.valuesFrom` is not the author of the BundleDeployment.
#[tokio::test]
async fn privileges_that_changed_values_add_wait_whatever_the_mode() {
    let world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let (image, helm) = push(&world, wasm("helm.wasm"));
    create_class(&world, &class, json!({"updatePolicy": "Automatic"}), &image, &helm).await;
    let binding = format!(
        "{{{{ if .Values.tide }}}}\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}\n\
         subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: Group, name: keepers}}]\n{{{{ end }}}}\n"
    );
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {depth: '{{ .Values.depth }}'}\n";
    let chart = Bundle::empty()
        .with("Chart.yaml", "apiVersion: v2\nname: harbour\nversion: 0.1.0\n")
        .with("values.yaml", "depth: shallow\n")
        .with("templates/binding.yaml", &binding)
        .with("templates/map.yaml", map);
    let configure = async |values: Value| {
        let text = json!({"values": values}).to_string();
        crate::values::object(&world, "Secret", &world.namespace, "values", &[("values.yaml", &text)]).await;
    };
    configure(json!({"depth": "low"})).await;
    let mut spec = world.spec(&class, &world.push(&chart).await);
    spec["valuesFrom"] = json!([{"kind": "Secret", "name": "values"}]);
    world.apply(&name, spec.clone()).await;
    rendered_by(&world, &name, &helm).await;

    // What adds no privileges does not wait.
    configure(json!({"depth": "deep"})).await;
    wait::until(&world.config_maps(), "note", "configured", |map| {
        map.and_then(|map| map.data.as_ref()?.get("depth")).is_some_and(|depth| depth == "deep")
    })
    .await;
    configure(json!({"depth": "deep", "tide": "high"})).await;
    let waits = |deployment: Option<&BundleDeployment>| pending(deployment).is_some();
    let waiting = wait::until(&world.deployments(), &name, "waiting", waits).await.expect("the object exists");
    let change = pending(Some(&waiting)).expect("a pending change").clone();
    assert!(change.findings.iter().any(|line| line.contains("ClusterRoleBinding.rbac")), "{change:?}");
    let bindings: Api<ClusterRoleBinding> = Api::all(world.client.clone());
    assert!(bindings.get_opt(&name).await.expect("an answer").is_none() && has(&world, "note").await);

    // The author decides by a change of the spec.
    spec["config"] = json!({"values": {"tide": "low"}});
    world.apply(&name, spec).await;
    wait::until(&bindings, &name, "created", |binding| binding.is_some()).await;
    world.finish().await;
}

fn named(conditions: &[Condition], kind: &str) -> Option<(String, String)> {
    let found = conditions.iter().find(|condition| condition.type_ == kind)?;
    Some((found.status.clone(), found.reason.clone()))
}

/// Waits until the condition `Updated` of a class has this reason, and returns how its users are counted.
async fn updated(world: &World, class: &str, reason: &str) -> ClassUses {
    let found = wait::until(&classes(world), class, &format!("Updated with {reason}"), |class| {
        let status = class.and_then(|class| class.status.as_ref());
        status.and_then(|status| named(&status.conditions, "Updated")).is_some_and(|(_, found)| found == reason)
    })
    .await;
    found.and_then(|class| class.status?.uses).expect("the uses")
}

#[tokio::test]
async fn with_when_unchanged_only_an_update_that_changes_an_object_waits() {
    let mut world = World::new().await;
    let (class, one, other) = (world.name(), world.name() + "-1", world.name() + "-2");
    let (image, plain) = push(&world, wasm(PLAIN_COMPONENT));
    create_class(&world, &class, json!({"updatePolicy": "WhenUnchanged"}), &image, &plain).await;
    for (name, map) in [(&one, "one"), (&other, "other")] {
        world.deploy(name, &class, &world.push(&note(map)).await).await;
        rendered_by(&world, name, &plain).await;
    }
    let same = update_class(&world, &class, rebuilt(wasm(PLAIN_COMPONENT))).await;
    for name in [&one, &other] {
        let found = rendered_by(&world, name, &same).await;
        assert_eq!((last(&found).number, last(&found).approval, pending(Some(&found))), (1, None, None));
    }
    let uses = updated(&world, &class, "UpdateComplete").await;
    assert_eq!(uses, ClassUses { total: 2, updated: 2, ..ClassUses::default() });

    let hostile = update_class(&world, &class, wasm(HOSTILE_COMPONENT)).await;
    let (found, change) = update_waits(&world, &one, &hostile).await;
    assert_eq!((change.created, change.removed, last(&found).provisioner.digest), (1, 1, same.clone()));
    update_waits(&world, &other, &hostile).await;
    let uses = updated(&world, &class, "UpdatePending").await;
    assert_eq!(uses, ClassUses { total: 2, waiting: 2, changing: 2, ..ClassUses::default() });
    world.stop_controller().await;
    world.start_controller();
    reconcile(&world, &one, "after the restart").await;
    assert_eq!(update_waits(&world, &one, &hostile).await.1.digest, change.digest);
    assert!(has(&world, "one").await && has(&world, "other").await && !has(&world, "first").await);

    world.approve(&one, &change.digest).await;
    rendered_by(&world, &one, &hostile).await;
    // Another policy holds for an update that waits.
    let patch = Patch::Merge(json!({"spec": {"updatePolicy": "Manual"}}));
    classes(&world).patch(&class, &PatchParams::default(), &patch).await.expect("the class exists");
    let again = update_class(&world, &class, rebuilt(wasm(PLAIN_COMPONENT))).await;
    assert_eq!(again, same);
    rendered_by(&world, &other, &same).await;
    let has_this_one = |found: Option<&BundleDeployment>| found.is_some() && pending(found).is_none();
    wait::until(&world.deployments(), &other, "without an update", has_this_one).await;
    update_waits(&world, &one, &same).await;
    world.finish().await;
}

/// The second BundleDeployment cannot have the object that the first one has by then.
#[tokio::test]
async fn a_staged_update_stops_at_the_first_failure_and_goes_back() {
    let mut world = World::new().await;
    let (class, other, canary) = (world.name(), world.name() + "-1", world.name() + "-2");
    let (image, plain) = push(&world, wasm(PLAIN_COMPONENT));
    let spec = json!({"updatePolicy": "Staged", "staged": {"matchLabels": {"tier": "canary"}, "percent": 1}});
    create_class(&world, &class, spec, &image, &plain).await;
    for (name, map) in [(&other, "other"), (&canary, "canary")] {
        world.deploy(name, &class, &world.push(&note(map)).await).await;
        rendered_by(&world, name, &plain).await;
    }
    let labels = Patch::Merge(json!({"metadata": {"labels": {"tier": "canary"}}}));
    world.deployments().patch(&canary, &PatchParams::default(), &labels).await.expect("the label is accepted");
    updated(&world, &class, "UpdateComplete").await;

    let hostile = update_class(&world, &class, wasm(HOSTILE_COMPONENT)).await;
    let components = |deployment: &BundleDeployment| -> Vec<(String, Outcome)> {
        let history = deployment.status.as_ref().map(|status| status.history.clone()).unwrap_or_default();
        history.into_iter().map(|revision| (revision.provisioner.digest, revision.outcome)).collect()
    };
    let went = [&plain, &hostile, &plain].map(|digest| (digest.clone(), Outcome::Succeeded));
    wait::until(&world.deployments(), &canary, "updated and back", |found| {
        found.is_some_and(|found| components(found) == went)
    })
    .await;
    updated(&world, &class, "UpdateStopped").await;
    let kept = rendered_by(&world, &other, &plain).await;
    assert_eq!(components(&kept), [(plain.clone(), Outcome::Succeeded)]);
    wait::until(&world.config_maps(), "first", "pruned", |map| map.is_none()).await;
    assert!(has(&world, "canary").await && has(&world, "other").await);
    // It stays so.
    for name in [&canary, &other] {
        reconcile(&world, name, "once more").await;
        rendered_by(&world, name, &plain).await;
    }
    assert!(!has(&world, "first").await);

    // Another component begins a new update, also in a new process.
    world.stop_controller().await;
    let (_, same) = push(&world, rebuilt(wasm(PLAIN_COMPONENT)));
    world.start_controller();
    for name in [&canary, &other] {
        rendered_by(&world, name, &same).await;
    }
    assert_eq!(updated(&world, &class, "UpdateComplete").await.updated, 2);
    world.finish().await;
}

#[tokio::test]
async fn a_suspended_class_keeps_its_component_and_those_of_its_releases() {
    let mut world = World::new().await;
    let (class, name) = (world.name(), world.name());
    let (image, plain) = push(&world, wasm(PLAIN_COMPONENT));
    create_class(&world, &class, json!({"updatePolicy": "Automatic"}), &image, &plain).await;
    world.deploy(&name, &class, &world.push(&note("note")).await).await;
    rendered_by(&world, &name, &plain).await;
    let suspend = async |world: &World, suspend: bool| {
        let patch = Patch::Merge(json!({"spec": {"suspend": suspend}}));
        classes(world).patch(&class, &PatchParams::default(), &patch).await.expect("the class exists");
    };
    let handled = async |world: &World, request: &str| {
        let annotations = json!({REQUESTED_AT_ANNOTATION: request});
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        classes(world).patch(&class, &PatchParams::default(), &patch).await.expect("the class exists");
        let found = wait::until(&classes(world), &class, "handled", |class| {
            let status = class.and_then(|class| class.status.as_ref());
            status.is_some_and(|status| status.last_handled_reconcile_at.as_deref() == Some(request))
        })
        .await;
        found.and_then(|class| class.status?.component).map(|component| component.digest)
    };
    suspend(&world, true).await;
    let (_, hostile) = push(&world, wasm(HOSTILE_COMPONENT));
    assert_eq!(handled(&world, "one").await.as_ref(), Some(&plain));
    world.stop_controller().await;
    world.start_controller();
    assert_eq!(handled(&world, "two").await.as_ref(), Some(&plain));
    rendered_by(&world, &name, &plain).await;
    suspend(&world, false).await;
    rendered_by(&world, &name, &hostile).await;
    world.finish().await;
}
