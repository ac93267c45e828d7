//! Privilege escalation checks: writes of roles and bindings, and updates that turn out to create an object.

use chandler_devcluster_apimachinery::access::{
    Attributes, EscalationError, ResourceAttributes,
    escalation::{Place, confirm_binding, confirm_role},
    policy::{Binding, GROUP, Role},
};
use serde_json::Value;

use super::{Api, Target};
use crate::{authorization::forbidden, metadata, status::Status};

/// Fields of `metadata` that deletion and bookkeeping change, and that grant nothing.
const HARMLESS: &[&str] = &["ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion"];

impl Api {
    /// Checks that the user may create the object of a request with another verb, such as server-side apply.
    ///
    /// # Errors
    /// 403 when the user may not.
    pub(super) fn confirm_creation(&self, target: &Target) -> Result<(), Status> {
        let kind = target.resource.kind();
        let attributes = Attributes::Resource(ResourceAttributes {
            namespace: target.namespace.clone(),
            verb: "create".to_owned(),
            group: kind.group.clone(),
            version: kind.version.clone(),
            resource: target.resource.plural().to_owned(),
            subresource: target.subresource.clone().unwrap_or_default(),
            name: target.name.clone(),
        });
        self.authorizer.authorize(&self.store, &target.user, &attributes)
    }

    /// Checks that the user holds what a role or binding grants; `old` is its state before. Other kinds grant nothing.
    ///
    /// # Errors
    /// 403 when the user does not hold it, 404 when the role to bind does not exist.
    pub(super) fn confirm_grant(&self, target: &Target, new: &Value, old: Option<&Value>) -> Result<(), Status> {
        let resource = &target.resource;
        if resource.kind().group != GROUP || target.user.is_privileged() {
            return Ok(());
        }
        if old.is_some_and(|old| without_harmless(old) == without_harmless(new)) {
            return Ok(());
        }
        let policy = self.authorizer.policy(&self.store);
        let plural = resource.plural();
        let confirmed = match plural {
            "roles" | "clusterroles" => {
                let place = Place { resource: plural, namespace: &target.namespace, name: &target.name };
                let old = old.map(Role::read);
                confirm_role(&*policy, &target.user, place, &Role::read(new), old.as_ref())
            }
            "rolebindings" | "clusterrolebindings" => {
                confirm_binding(&*policy, &target.user, &Binding::read(new).role, &target.namespace)
            }
            _ => Ok(()),
        };
        confirmed.map_err(|error| match error {
            EscalationError::MissingRole(role) => Status::not_found(&resource.group_resource(), &role.name),
            other => forbidden(&resource.group_resource(), metadata::name(new), &other.to_string()),
        })
    }
}

fn without_harmless(object: &Value) -> Value {
    let mut object = object.clone();
    let map = metadata::of(&mut object);
    for field in HARMLESS {
        map.remove(*field);
    }
    object
}
