//! Deletes the objects of Chandler and its installation, one request each. The callers decide the order.

use chandler_api::{BundleDeployment, Deletion, OwnKind};
use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::ConfigMap,
};
use kube::{
    Api, Client,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions},
};
use serde_json::{Value, json};

use crate::read::uninstallation::{Decision, Held, LOCK, Part, api, resource};

/// The field manager of the patches.
const FIELD_MANAGER: &str = "chandler-uninstall";

/// Refuses new objects of the kinds of Chandler from now on, of users and of the controller: they would have a finalizer that no controller removes.
/// Returns whether the API server has such policies.
pub async fn refuse_new_objects(client: &Client) -> Result<bool, kube::Error> {
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    match policies.patch(LOCK, &parameters, &Patch::Apply(policy())).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(false),
        applied => applied?,
    };
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    bindings.patch(LOCK, &parameters, &Patch::Apply(binding())).await?;
    Ok(true)
}

fn policy() -> Value {
    let rule = |kind: &OwnKind| {
        json!({"apiGroups": [kind.group()], "apiVersions": [resource(*kind).version], "operations": ["CREATE"],
               "resources": [kind.plural()]})
    };
    let rules: Vec<Value> = OwnKind::ALL.iter().map(rule).collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": LOCK},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules},
            "validations": [{
                "expression": "false",
                "message": "Chandler is being uninstalled (chandler uninstall): new objects are refused",
                "reason": "Forbidden",
            }],
        },
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": LOCK},
        "spec": {"policyName": LOCK, "validationActions": ["Deny"]},
    })
}

/// Sets `spec.deletion` of the BundleDeployment with this UID, if it has not changed since it was read.
pub async fn set_deletion(client: &Client, held: &Held, deletion: Deletion) -> Result<(), kube::Error> {
    let patch = json!({
        "metadata": {"uid": held.uid, "resourceVersion": held.object.pointer("/metadata/resourceVersion")},
        "spec": {"deletion": deletion},
    });
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    deployments.patch_metadata(&held.name, &parameters, &Patch::Merge(patch)).await.map(drop)
}

/// Deletes an object of Chandler. With `orphans`, the garbage collector removes the owner references of its dependents first; this also
/// works if the object is being deleted.
pub async fn delete(client: &Client, held: &Held, orphans: bool) -> Result<(), kube::Error> {
    let parameters = if orphans { DeleteParams::orphan() } else { DeleteParams::background() };
    let api = api(client, &resource(held.kind), None);
    absent_is_deleted(api.delete(&held.name, &with_uid(parameters, &held.uid)).await.map(drop))
}

/// Removes these finalizers of an object, and no other one.
pub async fn remove_finalizers(client: &Client, held: &Held, names: &[String]) -> Result<(), kube::Error> {
    let kept: Vec<&String> = held.finalizers.iter().filter(|name| !names.contains(name)).collect();
    let patch = json!({"metadata": {
        "uid": held.uid, "resourceVersion": held.object.pointer("/metadata/resourceVersion"), "finalizers": kept,
    }});
    let api = api(client, &resource(held.kind), None);
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    absent_is_deleted(api.patch_metadata(&held.name, &parameters, &Patch::Merge(patch)).await.map(drop))
}

/// Deletes a decision.
pub async fn delete_decision(client: &Client, decision: &Decision) -> Result<(), kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &decision.namespace);
    let parameters = with_uid(DeleteParams::background(), &decision.uid);
    absent_is_deleted(maps.delete(&decision.name, &parameters).await.map(drop))
}

/// Deletes an object of the installation. A Deployment remains until its Pods are gone.
pub async fn delete_part(client: &Client, part: &Part) -> Result<(), kube::Error> {
    let is_deployment = part.key.kind == "Deployment";
    let parameters = if is_deployment { DeleteParams::foreground() } else { DeleteParams::background() };
    let api: Api<DynamicObject> = api(client, &part.resource, part.key.namespace.as_deref());
    absent_is_deleted(api.delete(&part.key.name, &with_uid(parameters, &part.uid)).await.map(drop))
}

/// The UID prevents the deletion of another object that took the name since the preview.
fn with_uid(parameters: DeleteParams, uid: &str) -> DeleteParams {
    parameters.preconditions(Preconditions { uid: Some(uid.to_owned()), resource_version: None })
}

fn absent_is_deleted(done: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match done {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_refuses_new_objects_of_every_kind_and_no_change() {
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy()).unwrap();
        let rules = policy.spec.unwrap().match_constraints.unwrap().resource_rules.unwrap();
        assert_eq!(rules.len(), OwnKind::ALL.len());
        for rule in rules {
            assert_eq!(rule.operations.unwrap(), ["CREATE"]);
        }
        let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(binding()).unwrap();
        assert_eq!(binding.spec.unwrap().policy_name.as_deref(), Some(LOCK));
    }
}
