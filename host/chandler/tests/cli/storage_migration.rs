//! `chandler migrate storage` on a whole installation, with its admission policies and its controller, and with the documented permissions
//! only.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use chandler_api::{Catalog, OwnKind};
use chandler_tests::{World, content_service};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use crate::{
    commands::OLD,
    support::{documents, root},
    uninstall::{Installation, apply},
};

/// The version that the CRDs store from now on.
const NEW: &str = "v9";
/// The CRDs of the test.
const CRDS: [&str; 2] = ["bundledeployments.core.rukpak.io", "catalogs.chandler.dev"];

fn crds(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

async fn edit(
    client: &Client,
    name: &str,
    parameters: &PostParams,
    edit: impl Fn(&mut CustomResourceDefinition),
) -> Result<(), kube::Error> {
    loop {
        let mut crd = crds(client).get(name).await?;
        edit(&mut crd);
        match crds(client).replace(name, parameters, &crd).await {
            // A controller of the control plane wrote its status.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            done => return done.map(drop),
        }
    }
}

/// Adds a version that is stored from now on, with the schema of the old one.
fn store_new_version(crd: &mut CustomResourceDefinition) {
    let mut version = crd.spec.versions[0].clone();
    crd.spec.versions[0].storage = false;
    NEW.clone_into(&mut version.name);
    crd.spec.versions.push(version);
}

fn drop_old_versions(crd: &mut CustomResourceDefinition) {
    crd.spec.versions.retain(|version| version.name == NEW);
}

async fn stored(client: &Client, crd: &str) -> Vec<String> {
    crds(client).get(crd).await.unwrap().status.unwrap().stored_versions.unwrap()
}

/// The objects of a CRD in the new version.
async fn objects(client: &Client, crd: &str) -> Vec<DynamicObject> {
    let crd = crds(client).get(crd).await.unwrap();
    let kind = GroupVersionKind::gvk(&crd.spec.group, NEW, &crd.spec.names.kind);
    let api = Api::<DynamicObject>::all_with(
        client.clone(),
        &ApiResource::from_gvk_with_plural(&kind, &crd.spec.names.plural),
    );
    api.list(&ListParams::default()).await.unwrap().items
}

/// Everything of an object that its users see, without what any write changes.
fn content(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    value["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    // The controller writes it as it likes.
    value.as_object_mut().unwrap().remove("status");
    value["metadata"].as_object_mut().unwrap().remove("managedFields");
    value
}

/// A kubeconfig of an account that has the role in docs/upgrading.md.
async fn documented_account(world: &World) -> PathBuf {
    let page = fs::read_to_string(root().join("docs/upgrading.md")).unwrap();
    let role = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let role = role.flat_map(documents).find(|object| object["kind"] == "ClusterRole").unwrap();
    for kind in OwnKind::ALL {
        let has = |list: &Value, text: &str| list.as_array().unwrap().iter().any(|item| item == text);
        let is_granted =
            |rule: &Value| has(&rule["apiGroups"], &kind.group()) && has(&rule["resources"], &kind.plural());
        assert!(role["rules"].as_array().unwrap().iter().any(is_granted), "docs/upgrading.md lacks {kind:?}");
    }
    let name = format!("{}-migrates", world.run());
    let mut role = role.clone();
    role["metadata"]["name"] = name.as_str().into();
    apply(&world.client, &role).await;
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": world.namespace}});
    apply(&world.client, &account).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": world.namespace}],
    });
    apply(&world.client, &binding).await;
    let token = content_service::token(world, &world.namespace, &name).await;
    let mut kubeconfig = documents(&world.kubeconfig().unwrap()).remove(0);
    kubeconfig["users"][0]["user"] = json!({"token": token});
    let path = world.cache().join("kubeconfig-migrates");
    fs::write(&path, kubeconfig.to_string()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn every_object_is_stored_in_the_current_version_without_a_change_and_old_versions_can_be_dropped() {
    let Some(mut installation) = Installation::start().await else { return };
    let session = &installation.session;
    let client = session.world.client.clone();
    let nothing = session.run(&["migrate", "storage", "--apply", "--yes"]).await;
    assert_eq!(nothing.code, Some(0), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("nothing to migrate"), "{}", nothing.stderr);

    let name = session.world.name();
    let installed = session.install(&name, OLD, &[]).await;
    assert_eq!(installed.code, Some(0), "{}", installed.stderr);
    let account = documented_account(&session.world).await;
    installation.stop_controller().await;
    let session = &installation.session;
    // More than a page.
    let catalogs: Api<Catalog> = Api::all(client.clone());
    for number in 0..260 {
        let catalog: Catalog = serde_json::from_value(json!({"apiVersion": "chandler.dev/v1alpha1", "kind": "Catalog",
            "metadata": {"name": format!("{name}-{number:03}")},
            "spec": {"suspend": true, "source": {"type": "image", "image": {"ref": "registry.invalid/catalog:v1"}}}}))
        .unwrap();
        catalogs.create(&PostParams::default(), &catalog).await.unwrap();
    }
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let mut before = Vec::new();
    for crd in CRDS {
        edit(&client, crd, &PostParams::default(), store_new_version).await.unwrap();
        let refused = edit(&client, crd, &dry_run, drop_old_versions).await.unwrap_err().to_string();
        assert!(refused.contains("missing from spec.versions"), "{refused}");
        assert_eq!(stored(&client, crd).await.len(), 2);
        before.push(objects(&client, crd).await);
    }
    assert_eq!((before[0].len(), before[1].len()), (1, 260));

    let preview = session.run(&["migrate", "storage"]).await;
    assert_eq!(preview.code, Some(0), "{}", preview.stderr);
    assert!(preview.stderr.contains("nothing was changed: --apply migrates"), "{}", preview.stderr);
    let expected = format!(
        "bundledeployments.core.rukpak.io: rewrite 1 object as {NEW}, remove v1alpha2 from status.storedVersions\n\
         catalogs.chandler.dev: rewrite 260 objects as {NEW}, remove v1alpha1 from status.storedVersions\n"
    );
    assert_eq!(preview.stdout, expected);
    let json = session.json(&["migrate", "storage", "--apply", "--dry-run", "-o", "json"]).await;
    assert_eq!((&json[1]["crd"], &json[1]["objects"]), (&json!(CRDS[1]), &json!(260)), "{json}");
    let unasked = session.run(&["migrate", "storage", "--apply"]).await;
    assert_eq!(unasked.code, Some(2), "{}", unasked.stderr);
    for (crd, before) in CRDS.iter().zip(&before) {
        assert_eq!((stored(&client, crd).await.len(), &objects(&client, crd).await), (2, before), "{crd}");
    }

    // A policy that refuses one object: its CRD keeps the old version, and the other one is migrated.
    let policy = refusing(&format!("{name}-007"));
    for object in &policy {
        apply(&client, object).await;
    }
    let kubeconfig = account.display().to_string();
    let migrate = ["migrate", "storage", "--apply", "--yes", "--kubeconfig", &kubeconfig];
    let partial = session.run(&migrate).await;
    assert_eq!(partial.code, Some(1), "{}", partial.stderr);
    for words in [
        "the API server refuses 1 object of CRD catalogs.chandler.dev: status.storedVersions keeps v1alpha1",
        &format!("{name}-007: "),
        "`chandler migrate storage --apply` begins anew",
    ] {
        assert!(partial.stderr.contains(words), "{words:?} is not in {}", partial.stderr);
    }
    assert_eq!(stored(&client, CRDS[0]).await, [NEW]);
    assert_eq!(stored(&client, CRDS[1]).await.len(), 2);
    let bindings = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
    ));
    let bindings = Api::<DynamicObject>::all_with(client.clone(), &bindings);
    bindings.delete(REFUSING, &DeleteParams::background()).await.unwrap();

    chandler_tests::wait::eventually("the policy is not in effect any more", || async {
        session.run(&migrate).await.code == Some(0)
    })
    .await;
    for (crd, before) in CRDS.iter().zip(&before) {
        assert_eq!(stored(&client, crd).await, [NEW], "{crd}");
        let after = objects(&client, crd).await;
        assert_eq!(after.len(), before.len());
        for (after, before) in after.iter().zip(before) {
            assert_eq!(content(after), content(before));
            assert_ne!(after.resource_version(), before.resource_version(), "it was not written");
        }
        edit(&client, crd, &dry_run, drop_old_versions).await.unwrap();
    }
    // The controller of this version requests the old one, and recognises everything.
    installation.start_controller().await;
    let session = &installation.session;
    let status = session.run(&["status", &name, "--watch", "--timeout", "2m"]).await;
    assert_eq!(status.code, Some(0), "{}", status.stderr);
    let deployment = session.world.deployments().get(&name).await.unwrap();
    assert_eq!(deployment.status.unwrap().history.len(), 1, "no new revision");
    installation.stop_controller().await;
}

/// The name of a policy and its binding.
const REFUSING: &str = "refuses-one";

/// A policy of another product that refuses changes of one object.
fn refusing(name: &str) -> [Value; 2] {
    let kind = OwnKind::Catalog;
    let rule = json!({"apiGroups": [kind.group()], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [kind.plural()]});
    let metadata = json!({"name": REFUSING});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": metadata,
        "spec": {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [rule]},
                 "validations": [{"expression": format!("object.metadata.name != '{name}'"), "message": "not this one"}]},
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata,
        "spec": {"policyName": REFUSING, "validationActions": ["Deny"]},
    });
    [policy, binding]
}
