//! Asks the admission policies about each change.

use std::sync::Arc;

use chandler_devcluster_apimachinery::{
    access::User,
    policies::{Admission, Attributes, Operation, Resource as Named, admission, admit},
};
use serde_json::{Map, Value, json};

use super::{Api, Target, scale::scale_of, view};
use crate::{
    policies::{cluster::ThisCluster, subresource},
    registry::Resource,
    request::query::Query,
    status::Status,
    store::{Key, Object},
};

/// A change of an object, for the policies.
pub(super) struct Change<'a> {
    /// What happens.
    pub(super) operation: Operation,
    /// The object that is to be stored, in the version of the request.
    pub(super) object: Option<&'a Value>,
    /// The stored object, in the version of the request.
    pub(super) old: Option<&'a Value>,
    /// The name, also where it is generated; empty for the objects of a collection that is deleted.
    pub(super) name: &'a str,
    /// Whether nothing is stored.
    pub(super) dry_run: bool,
    /// The options of the request.
    pub(super) options: &'a dyn Fn() -> Value,
}

impl Api {
    /// Asks the policies about a change, and adds their warnings.
    ///
    /// # Errors
    /// If a policy denies it.
    pub(super) fn confirm(
        &self,
        target: &Target,
        change: Change<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let policies = self.policies.current(&self.store);
        if policies.is_empty() {
            return Ok(());
        }
        let resource = &*target.resource;
        if admission::is_exempt(&resource.kind().group, resource.plural()) {
            return Ok(());
        }
        let subresource = target.subresource.as_deref().unwrap_or_default();
        let scaled = |object: Option<&Value>| {
            let scale = resource.resource_type.scale.as_ref().filter(|_| subresource == "scale")?;
            object.map(|object| scale_of(scale, object))
        };
        let (object, old) = (scaled(change.object), scaled(change.old));
        let namespace = if resource.is_core("namespaces") { change.name } else { target.namespace.as_str() };
        let attributes = Attributes {
            operation: change.operation,
            kind: subresource::kind(resource, subresource).unwrap_or_else(|| resource.kind().clone()),
            resource: named(resource),
            subresource,
            namespace,
            name: change.name,
            object: object.as_ref().or(change.object),
            old_object: old.as_ref().or(change.old),
            user: &target.user,
            dry_run: change.dry_run,
            options: (change.options)(),
        };
        let Admission { denial, warnings: added } = admit(&policies, &attributes, &ThisCluster::new(self, resource));
        warnings.extend(added);
        let Some(denial) = denial else { return Ok(()) };
        let denied =
            Status::denied(&resource.group_resource(), attributes.shown_name(), &denial.message, &denial.reason);
        Err(Status { warnings: warnings.clone(), ..denied })
    }

    /// Asks the policies about an object that is sent to a subresource and not stored.
    pub(super) fn confirm_subresource(
        &self,
        target: &Target,
        object: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let change = Change {
            operation: Operation::Create,
            object: Some(object),
            old: None,
            name: &target.name,
            dry_run: target.query.all("dryRun").next().is_some(),
            options: &|| write_options("CreateOptions", &target.query),
        };
        self.confirm(target, change, warnings)
    }

    /// Whether the policies admit a change of a stored object by a controller of Kubernetes. Both objects are in the version in which they are
    /// stored.
    pub(crate) fn admits_update(
        &self,
        user: &Arc<User>,
        resource: &Arc<Resource>,
        key: &Key,
        (old, object): (&Value, &Value),
    ) -> bool {
        if !self.has_policies() {
            return true;
        }
        let (old, object) = (Object::unstored(old.clone()), Object::unstored(object.clone()));
        let change = Change {
            operation: Operation::Update,
            object: Some(&view::served(resource, &object)),
            old: Some(&view::served(resource, &old)),
            name: &key.name,
            dry_run: false,
            options: &|| write_options("PatchOptions", &Query::default()),
        };
        self.confirm(&Target::of_controller(user, resource, key), change, &mut Vec::new()).is_ok()
    }

    /// Whether a policy is bound.
    pub(crate) fn has_policies(&self) -> bool {
        !self.policies.current(&self.store).is_empty()
    }
}

fn named(resource: &Resource) -> Named {
    let kind = resource.kind();
    Named::new(kind.group.as_str(), kind.version.as_str(), resource.plural())
}

/// The options of a write, such as a `CreateOptions`, as far as the query says.
pub(super) fn write_options(kind: &str, query: &Query) -> Value {
    let mut options = head(kind);
    for field in ["fieldManager", "fieldValidation"] {
        if let Some(value) = query.get(field) {
            options.insert(field.to_owned(), value.into());
        }
    }
    set_dry_run(&mut options, query);
    options.into()
}

/// The options of a delete, from the body or else from the query.
pub(super) fn delete_options(body: &Value, query: &Query) -> Value {
    let mut options = head("DeleteOptions");
    let body = body.as_object().into_iter().flatten();
    options.extend(body.filter(|(_, value)| !value.is_null()).map(|(field, value)| (field.clone(), value.clone())));
    options.extend(head("DeleteOptions"));
    if let Some(policy) = query.get("propagationPolicy") {
        options.entry("propagationPolicy").or_insert_with(|| policy.into());
    }
    set_dry_run(&mut options, query);
    options.into()
}

fn head(kind: &str) -> Map<String, Value> {
    Map::from_iter([("kind".to_owned(), kind.into()), ("apiVersion".to_owned(), "meta.k8s.io/v1".into())])
}

fn set_dry_run(options: &mut Map<String, Value>, query: &Query) {
    if query.all("dryRun").next().is_some() {
        options.entry("dryRun").or_insert_with(|| json!(["All"]));
    }
}
