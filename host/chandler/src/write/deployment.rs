//! Creates BundleDeployments, changes their specs, and requests reconciles.

use chandler_api::{
    BundleDeployment,
    names::{REPAIR_AT_ANNOTATION, REQUESTED_AT_ANNOTATION},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::change::merge;
use crate::CommandError;

/// The field manager of new BundleDeployments.
const INSTALL: &str = "chandler-install";
/// The field manager of changes.
const UPGRADE: &str = "chandler-upgrade";

/// Whether a request changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The API server checks the request, and stores nothing.
    Check,
    /// The change is stored.
    Store,
}

/// Creates a BundleDeployment.
pub async fn create(
    client: &Client,
    deployment: &BundleDeployment,
    effect: Effect,
) -> Result<BundleDeployment, CommandError> {
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    let parameters = PostParams { dry_run: effect == Effect::Check, field_manager: Some(INSTALL.to_owned()) };
    deployments.create(&parameters, deployment).await.map_err(|error| {
        let name = deployment.name_any();
        let failed = CommandError::failed(format!("failed to create BundleDeployment {name}")).because(&error);
        match &error {
            kube::Error::Api(status) if status.is_already_exists() => {
                failed.hint(format!("change it with `chandler upgrade {name} BUNDLE`, or choose another name"))
            }
            _ => failed,
        }
    })
}

/// Changes fields of the spec. Fails if these have changed since the object was read. Another client may have written other fields
/// meanwhile, as the controller writes the status: then the change is sent again.
pub async fn change(
    client: &Client,
    deployment: &BundleDeployment,
    change: &SpecChange,
    effect: Effect,
) -> Result<BundleDeployment, CommandError> {
    let name = deployment.name_any();
    let not_changed = |error: &(dyn std::error::Error + 'static)| {
        CommandError::failed(format!("failed to change BundleDeployment {name}")).because(error)
    };
    let parameters = PatchParams {
        dry_run: effect == Effect::Check,
        field_manager: Some(UPGRADE.to_owned()),
        ..PatchParams::default()
    };
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    let mut current = deployment.clone();
    loop {
        let operations = change.operations(&current);
        let patch: json_patch::Patch = serde_json::from_value(operations).map_err(|error| not_changed(&error))?;
        let error = match deployments.patch(&name, &parameters, &Patch::<Value>::Json(patch)).await {
            Ok(changed) => return Ok(changed),
            Err(error) => error,
        };
        // An API server applies the patch before it compares the version of the object: one that removes a field that is gone is invalid.
        if !matches!(&error, kube::Error::Api(status) if status.is_conflict() || status.is_invalid()) {
            return Err(not_changed(&error));
        }
        let read = deployments.get_opt(&name).await.map_err(|error| not_changed(&error))?;
        let Some(read) = read.filter(|read| change.is_independent(deployment, read)) else {
            return Err(CommandError::failed(format!(
                "BundleDeployment {name} was changed by another client meanwhile; this change was not made"
            ))
            .hint(format!(
                "`chandler status {name}` shows its state: run the command again if the change is still wanted"
            )));
        };
        if read.metadata.resource_version == current.metadata.resource_version {
            return Err(not_changed(&error));
        }
        current = read;
    }
}

/// New values of fields of the spec. A field without a value is removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpecChange {
    fields: Vec<(&'static str, Option<Value>)>,
}

impl SpecChange {
    /// Sets a field of the spec, or removes it.
    pub fn set(&mut self, field: &'static str, value: Option<Value>) {
        self.fields.push((field, value));
    }

    /// Whether the spec already has these values.
    pub fn is_done(&self, deployment: &BundleDeployment) -> bool {
        let spec = serde_json::to_value(&deployment.spec).unwrap_or_default();
        self.fields.iter().all(|(field, value)| spec.get(field) == value.as_ref()) && to_revision(deployment).is_none()
    }

    /// Whether other clients left what this change is about as it was read: the fields, the rollback and the object itself.
    fn is_independent(&self, read: &BundleDeployment, current: &BundleDeployment) -> bool {
        let spec = |deployment: &BundleDeployment| serde_json::to_value(&deployment.spec).unwrap_or_default();
        let (before, after) = (spec(read), spec(current));
        current.metadata.uid == read.metadata.uid
            && current.metadata.deletion_timestamp.is_none()
            && to_revision(current) == to_revision(read)
            && self.fields.iter().all(|(field, _)| before.get(field) == after.get(field))
    }

    /// The JSON patch: only it can replace an object as a whole.
    fn operations(&self, deployment: &BundleDeployment) -> Value {
        let spec = serde_json::to_value(&deployment.spec).unwrap_or_default();
        let mut operations = vec![json!({
            "op": "replace", "path": "/metadata/resourceVersion", "value": deployment.metadata.resource_version,
        })];
        for (field, value) in &self.fields {
            let path = format!("/spec/{field}");
            match value {
                Some(value) => operations.push(json!({"op": "add", "path": path, "value": value})),
                None if spec.get(field).is_some() => operations.push(json!({"op": "remove", "path": path})),
                None => {}
            }
        }
        // While it is set, the spec is not rolled out.
        if to_revision(deployment).is_some() {
            operations.push(json!({"op": "remove", "path": "/spec/rollout/toRevision"}));
        }
        Value::Array(operations)
    }
}

/// The revision that the spec rolls back to.
pub fn to_revision(deployment: &BundleDeployment) -> Option<i64> {
    deployment.spec.rollout.as_ref()?.to_revision
}

/// Requests a reconcile, by a new value of its annotation; with `repair`, also one repair of the objects.
pub async fn request_reconcile(
    client: &Client,
    name: &str,
    at: &str,
    repair: bool,
    effect: Effect,
) -> Result<(), CommandError> {
    let mut annotations = json!({REQUESTED_AT_ANNOTATION: at});
    if let Some(annotations) = annotations.as_object_mut().filter(|_| repair) {
        annotations.insert(REPAIR_AT_ANNOTATION.to_owned(), at.into());
    }
    let patch = json!({"metadata": {"annotations": annotations}});
    merge::<BundleDeployment>(client, name, "chandler-reconcile", patch, effect).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_replaces_fields_and_ends_a_rollback() {
        let deployment: BundleDeployment = serde_json::from_value(json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": "harbour", "resourceVersion": "7"},
            "spec": {
                "installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"},
                "config": {"a": 1}, "rollout": {"toRevision": 3},
            },
        }))
        .unwrap();
        let mut change = SpecChange::default();
        change.set("source", Some(json!({"type": "configMaps"})));
        change.set("config", None);
        change.set("serviceAccount", None);
        assert_eq!(
            change.operations(&deployment),
            json!([
                {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
                {"op": "add", "path": "/spec/source", "value": {"type": "configMaps"}},
                {"op": "remove", "path": "/spec/config"},
                {"op": "remove", "path": "/spec/rollout/toRevision"},
            ])
        );
        assert!(!change.is_done(&deployment));
        let mut same = SpecChange::default();
        same.set("config", Some(json!({"a": 1})));
        assert!(!same.is_done(&deployment), "the rollback must end");
        let without = BundleDeployment {
            spec: chandler_api::BundleDeploymentSpec { rollout: None, ..deployment.spec.clone() },
            ..deployment
        };
        assert!(same.is_done(&without));
    }
}
