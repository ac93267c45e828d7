//! Additions of other managers to atomic values, which an apply replaces as a whole, are drift: reported with their manager, and
//! reverted.

use chandler_api::{DriftState, DriftedField};
use chandler_tests::{World, bundles::Bundle, wait};
use k8s_openapi::api::{core::v1::Service, events::v1::Event};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::PLAIN;

const PAUSE: &str = "registry.k8s.io/pause:3.10";

/// An object of the bundle, a user's edit, and the field that is reported.
struct Edit {
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// The object as in the bundle, without its metadata.
    object: Value,
    /// A merge patch.
    patch: Value,
    /// The field that is reported.
    field: &'static str,
    /// The JSON pointer of the value that must be restored.
    pointer: &'static str,
}

/// The group of the custom resources of one test.
fn group(world: &World) -> String {
    format!("{}.example.com", world.namespace)
}

fn edits() -> Vec<Edit> {
    let deployment = json!({"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
    "metadata": {"labels": {"app": "web"}},
    "spec": {
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference":
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}}]}},
        "containers": [{"name": "web", "image": PAUSE, "args": ["a"]}],
    }}}});
    let affinity = |values: Value| {
        json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {
            "matchExpressions": [{"key": "zone", "operator": "In", "values": values}]}}]}})
    };
    let pod = |change: Value| json!({"spec": {"template": {"spec": change}}});
    let web = |patch: Value, field: &'static str, pointer: &'static str| Edit {
        api_version: "apps/v1",
        kind: "Deployment",
        plural: "deployments",
        object: deployment.clone(),
        patch: pod(patch),
        field,
        pointer,
    };
    vec![
        Edit {
            api_version: "networking.k8s.io/v1",
            kind: "NetworkPolicy",
            plural: "networkpolicies",
            object: json!({"spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]}}),
            patch: json!({"spec": {"podSelector": {"matchLabels": {"added": "x"}}}}),
            field: "spec.podSelector.matchLabels.added",
            pointer: "/spec/podSelector",
        },
        Edit {
            api_version: "v1",
            kind: "Service",
            plural: "services",
            object: json!({"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}),
            patch: json!({"spec": {"selector": {"added": "x"}}}),
            field: "spec.selector.added",
            pointer: "/spec/selector",
        },
        Edit {
            api_version: "policy/v1",
            kind: "PodDisruptionBudget",
            plural: "poddisruptionbudgets",
            object: json!({"spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}}}),
            patch: json!({"spec": {"selector": {"matchLabels": {"added": "x"}}}}),
            field: "spec.selector.matchLabels.added",
            pointer: "/spec/selector",
        },
        web(
            json!({"nodeSelector": {"kubernetes.io/arch": "amd64"}}),
            r#"spec.template.spec.nodeSelector["kubernetes.io/arch"]"#,
            "/spec/template/spec/nodeSelector",
        ),
        web(
            json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}]}),
            "spec.template.spec.tolerations[key=a].effect",
            "/spec/template/spec/tolerations",
        ),
        web(
            json!({"affinity": affinity(json!(["a", "b"]))}),
            "spec.template.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[key=zone].values",
            "/spec/template/spec/affinity",
        ),
        Edit {
            api_version: "rbac.authorization.k8s.io/v1",
            kind: "Role",
            plural: "roles",
            object: json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}),
            patch: json!({"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["a"]}]}),
            field: "rules[0].resourceNames",
            pointer: "/rules",
        },
    ]
}

/// The edits of the custom resource.
fn custom_edits(group: &str) -> Vec<Edit> {
    let object = json!({"spec": {"whole": {"a": "1"}, "set": ["x"], "atomic": [{"name": "i", "a": "1"}]}});
    let edit = |patch: Value, field: &'static str, pointer: &'static str| Edit {
        api_version: Box::leak(format!("{group}/v1").into_boxed_str()),
        kind: "Berth",
        plural: "berths",
        object: object.clone(),
        patch: json!({"spec": patch}),
        field,
        pointer,
    };
    vec![
        edit(json!({"whole": {"b": "2"}}), "spec.whole.b", "/spec/whole"),
        edit(json!({"atomic": [{"name": "i", "a": "1", "b": "2"}]}), "spec.atomic[name=i].b", "/spec/atomic"),
    ]
}

fn crd(group: &str) -> Value {
    let text = json!({"type": "string"});
    let members = json!({"name": text, "a": text, "b": text});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("berths.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": "Berth", "listKind": "BerthList", "plural": "berths", "singular": "berth"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": members},
                    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
                    "atomic": {"type": "array", "x-kubernetes-list-type": "atomic",
                        "items": {"type": "object", "properties": members}}}}}}}}]}})
}

/// A plain bundle with each of these objects once.
fn bundle<'a>(edits: impl IntoIterator<Item = &'a Edit>, group: &str) -> Bundle {
    let mut bundle = Bundle::empty().with("manifests/crd.yaml", &crd(group).to_string());
    for edit in edits {
        let mut object = edit.object.clone();
        object["apiVersion"] = json!(edit.api_version);
        object["kind"] = json!(edit.kind);
        object["metadata"] = json!({"name": "web"});
        bundle = bundle.with(&format!("manifests/{}.yaml", edit.plural), &object.to_string());
    }
    bundle
}

fn api(world: &World, edit: &Edit) -> Api<DynamicObject> {
    let (group, version) = edit.api_version.split_once('/').unwrap_or(("", edit.api_version));
    let resource = ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: edit.api_version.into(),
        kind: edit.kind.into(),
        plural: edit.plural.into(),
    };
    Api::namespaced_with(world.client.clone(), &world.namespace, &resource)
}

fn value(object: &DynamicObject, pointer: &str) -> Value {
    object.data.pointer(pointer).cloned().unwrap_or_default()
}

/// Makes an edit with an update. Returns the previous value.
async fn update(world: &World, edit: &Edit) -> Value {
    let api = api(world, edit);
    let before = value(&api.get("web").await.expect("the object"), edit.pointer);
    let user = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    let after = api.patch("web", &user, &Patch::Merge(&edit.patch)).await.expect("the edit is accepted");
    assert_ne!(value(&after, edit.pointer), before, "{} {}: the edit changed the value", edit.kind, edit.pointer);
    before
}

/// Makes the same edit with server-side apply.
async fn apply(world: &World, edit: &Edit) -> Value {
    let api = api(world, edit);
    let mut live = api.get("web").await.expect("the object");
    let before = value(&live, edit.pointer);
    merge(&mut live.data, &edit.patch);
    let (parent, name) = edit.pointer.rsplit_once('/').expect("a pointer");
    let mut applied = json!({name: value(&live, edit.pointer)});
    for step in parent.rsplit('/').filter(|step| !step.is_empty()) {
        applied = json!({step: applied});
    }
    applied["apiVersion"] = json!(edit.api_version);
    applied["kind"] = json!(edit.kind);
    applied["metadata"] = json!({"name": "web"});
    let gitops = PatchParams::apply("gitops").force();
    let after = api.patch("web", &gitops, &Patch::Apply(applied)).await.expect("the change is accepted");
    assert_ne!(value(&after, edit.pointer), before, "{} {}: the edit changed the value", edit.kind, edit.pointer);
    before
}

fn merge(target: &mut Value, patch: &Value) {
    match patch {
        Value::Object(patch) if target.is_object() => {
            for (name, value) in patch {
                merge(&mut target[name.as_str()], value);
            }
        }
        patch => *target = patch.clone(),
    }
}

async fn assert_restored(world: &World, edit: &Edit, before: &Value) {
    let (api, what) = (api(world, edit), format!("{} {} restored", edit.kind, edit.pointer));
    wait::eventually(&what, || async { value(&api.get("web").await.expect("the object"), edit.pointer) == *before })
        .await;
}

#[tokio::test]
async fn additions_to_atomic_values_are_reverted() {
    let mut world = World::new().await;
    let (name, group) = (world.name(), group(&world));
    let edits: Vec<Edit> = edits().into_iter().chain(custom_edits(&group)).collect();
    let image = world.push(&bundle(&edits, &group)).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    for applies in [false, true] {
        // Separate edits would be repaired one by one, which soon counts as an ownership conflict.
        world.stop_controller().await;
        let mut befores = Vec::new();
        for edit in &edits {
            befores.push(if applies { apply(&world, edit).await } else { update(&world, edit).await });
        }
        world.start_controller();
        for (edit, before) in edits.iter().zip(&befores) {
            assert_restored(&world, edit, before).await;
        }
    }
    // Items of a set belong to the manager that adds them.
    let set =
        Edit { patch: json!({"spec": {"set": ["x", "y"]}}), pointer: "/spec/set", ..custom_edits(&group).remove(0) };
    update(&world, &set).await;
    let before = update(&world, &edits[0]).await;
    assert_restored(&world, &edits[0], &before).await;
    assert_eq!(value(&api(&world, &set).get("web").await.expect("the object"), "/spec/set"), json!(["x", "y"]));
    world.finish().await;
}

#[tokio::test]
async fn additions_to_atomic_values_are_reported_with_their_manager() {
    let world = World::new().await;
    let (name, group) = (world.name(), group(&world));
    let edits: Vec<Edit> = edits().into_iter().chain(custom_edits(&group)).collect();
    let image = world.push(&bundle(&edits, &group)).await;
    let mut spec = world.spec(PLAIN, &image);
    spec["drift"] = json!("Report");
    world.apply(&name, spec).await;
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    let mut befores = Vec::new();
    for edit in &edits {
        befores.push(update(&world, edit).await);
    }
    let reported = wait::until(&world.deployments(), &name, "all edits are reported", |deployment| {
        let drift = deployment.and_then(|deployment| deployment.status.as_ref()?.drift.as_ref());
        drift.is_some_and(|drift| {
            let fields = drift.objects.iter().map(|object| object.fields.len()).sum::<usize>();
            (drift.objects.len(), fields) == (6, edits.len())
        })
    })
    .await;
    let drift = reported.and_then(|deployment| deployment.status?.drift).expect("a drift report");
    for edit in &edits {
        let object = drift.objects.iter().find(|object| object.kind == edit.kind).expect("the object is reported");
        assert_eq!(object.state, DriftState::Changed);
        let field = DriftedField { path: edit.field.into(), manager: Some("kubectl-edit".into()) };
        assert!(object.fields.contains(&field), "{field:?} is not among {:?}", object.fields);
    }
    // On request, the controller repairs it once.
    let annotations = json!({"reconcile.chandler.dev/requestedAt": "1", "reconcile.chandler.dev/repairAt": "1"});
    let ask = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
    world.deployments().patch(&name, &PatchParams::default(), &ask).await.expect("an annotation");
    for (edit, before) in edits.iter().zip(&befores).rev() {
        assert_restored(&world, edit, before).await;
    }
    world.condition(&name, "Drifted", "False", "AsReleased").await;
    world.finish().await;
}

#[tokio::test]
async fn the_repair_event_names_the_addition_and_its_manager() {
    let world = World::new().await;
    let (name, edits) = (world.name(), edits());
    let image = world.push(&bundle(&edits, &group(&world))).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    update(&world, &edits[0]).await;
    let events: Api<Event> = Api::all(world.client.clone());
    let about = format!(
        "NetworkPolicy.networking.k8s.io {}/web: spec.podSelector.matchLabels.added was set by kubectl-edit",
        world.namespace
    );
    wait::eventually("an Event about the repair", || async {
        let events = events.list(&ListParams::default()).await.expect("Events");
        events.items.iter().any(|event| event.note.as_deref().is_some_and(|note| note.contains(&about)))
    })
    .await;
    world.finish().await;
}

#[tokio::test]
async fn a_replaced_unnamed_port_is_restored() {
    let world = World::new().await;
    let (name, group) = (world.name(), group(&world));
    let edits = edits();
    let image = world.push(&bundle(&edits, &group)).await;
    world.deploy(&name, PLAIN, &image).await;
    world.ready(&name).await;
    let services: Api<Service> = Api::namespaced(world.client.clone(), &world.namespace);
    let user = PatchParams { field_manager: Some("kubectl-edit".to_owned()), ..PatchParams::default() };
    let edit = Patch::Merge(json!({"spec": {"ports": [{"port": 8080}]}}));
    services.patch("web", &user, &edit).await.expect("the edit is accepted");
    let repaired = wait::until(&services, "web", "repaired", |service| {
        let ports = service.and_then(|service| service.spec.as_ref()?.ports.as_ref());
        ports.is_some_and(|ports| ports.len() == 1 && ports[0].port == 80)
    })
    .await;
    // The update and the apply of the repair end up in one managedFields entry, and the user's entry is gone.
    let settled = |service: Option<&Service>| {
        let records = service.and_then(|service| service.metadata.managed_fields.as_ref());
        let main = records.into_iter().flatten().filter(|record| record.subresource.is_none());
        let main: Vec<_> = main.map(|record| (record.manager.as_deref(), record.operation.as_deref())).collect();
        main == [(Some("chandler"), Some("Apply"))]
    };
    let uid = repaired.and_then(|service| service.metadata.uid);
    let now = wait::until(&services, "web", "with one managedFields entry of chandler", settled).await;
    assert_eq!(now.and_then(|service| service.metadata.uid), uid, "the same object");
    world.ready(&name).await;
    world.finish().await;
}
