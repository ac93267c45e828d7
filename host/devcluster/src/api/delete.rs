//! Delete, deletecollection, finalizers.

use std::sync::Arc;

use bytes::Bytes;
use chandler_devcluster_apimachinery::{access::User, policies::Operation, schema::FieldError};
use serde_json::{Value, json};

use super::{
    Api, Input, Target,
    policies::{self, Change},
    read::selector,
    view,
};
use crate::{
    metadata,
    pipeline::body,
    registry::Resource,
    request::query::{Query, WriteOptions, invalid_options},
    status::Status,
    store::{Expected, Key, Object, object::render},
};

/// The finalizer that keeps an owner until its dependants are gone.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that keeps an owner until its dependants no longer name it.
pub const ORPHAN: &str = "orphan";

const ATTEMPTS: usize = 32;

/// The deletion policy for the dependants of a deleted object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after the owner.
    #[default]
    Background,
    /// They are deleted before the owner.
    Foreground,
    /// They stay.
    Orphan,
}

/// The options of a delete.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// The deletion policy for dependants; `None` keeps the finalizers of the object.
    pub propagation: Option<Propagation>,
    /// The object must have this uid.
    pub uid: Option<String>,
    /// The object must have this resource version.
    pub resource_version: Option<String>,
    /// Nothing is deleted.
    pub dry_run: bool,
    /// The options as the request states them, for policies.
    pub stated: Value,
}

impl DeleteOptions {
    fn parse(target: &Target, input: &Input) -> Result<Self, Status> {
        let body =
            if input.body.is_empty() { Value::Null } else { body::delete_options(&input.content_type, &input.body)? };
        let query: &Query = &target.query;
        let text = |field: &str| body.get(field).and_then(Value::as_str).or_else(|| query.get(field));
        let orphan = body.get("orphanDependents").and_then(Value::as_bool);
        let propagation = match (text("propagationPolicy"), orphan) {
            (Some(_), Some(_)) => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                return Err(invalid_options(
                    "DeleteOptions",
                    &[FieldError::invalid(&"propagationPolicy", Value::Null, why)],
                ));
            }
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (None, None) => None,
            (Some(other), _) => {
                let supported = ["Background", "Foreground", "Orphan"];
                let error = FieldError::not_supported(&"propagationPolicy", other, supported);
                return Err(invalid_options("DeleteOptions", &[error]));
            }
        };
        let dry_run = body.get("dryRun").and_then(Value::as_array).is_some_and(|values| !values.is_empty());
        let precondition = |field: &str| body.get("preconditions")?.get(field)?.as_str().map(str::to_owned);
        Ok(Self {
            propagation,
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            dry_run: dry_run || WriteOptions::parse(query, &target.user_agent, "DeleteOptions")?.dry_run,
            stated: policies::delete_options(&body, query),
        })
    }
}

/// The result of a delete.
#[derive(Clone, Debug)]
pub enum Removed {
    /// The object is gone; its last state.
    Gone(Arc<Object>),
    /// The object stays until its finalizers are gone.
    Waiting(Arc<Object>),
}

/// The response to a delete.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// The body.
    pub body: Bytes,
    /// Whether the object stays for now.
    pub accepted: bool,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Whether something keeps an object that is being deleted.
pub fn is_held(resource: &Resource, object: &Value) -> bool {
    let content = resource.is_core("namespaces")
        && object
            .pointer("/spec/finalizers")
            .and_then(Value::as_array)
            .is_some_and(|finalizers| !finalizers.is_empty());
    content || !metadata::finalizers(object).is_empty()
}

impl Api {
    /// Deletes an object; answers a Status when it is gone and the object while finalizers keep it.
    ///
    /// # Errors
    /// When the object does not exist, a precondition does not hold, or a policy denies it.
    pub fn delete(&self, target: &Target, input: &Input) -> Result<Deleted, Status> {
        let options = DeleteOptions::parse(target, input)?;
        let mut warnings = Vec::new();
        let removed = self.remove_confirmed(&target.resource, &target.key(), &options, &mut |object| {
            self.confirm_deletion(target, object, &target.name, &options, &mut warnings)
        })?;
        let accepted = matches!(options.propagation, Some(Propagation::Foreground | Propagation::Orphan));
        let (body, accepted) = match removed {
            Removed::Gone(object) => (render(&success(&target.resource, object.value())), false),
            Removed::Waiting(object) => (view::represent(target, &object, self.clock.now()), accepted),
        };
        Ok(Deleted { body, accepted, warnings })
    }

    /// Deletes every object of a collection that is selected; answers the list of them.
    ///
    /// # Errors
    /// When a parameter is wrong, or a policy denies the deletion of an object.
    pub fn delete_collection(&self, target: &Target, input: &Input) -> Result<Deleted, Status> {
        let options = DeleteOptions::parse(target, input)?;
        let selector = selector(target)?;
        let listing = self.store.list_now(&target.scope());
        let (mut items, mut warnings) = (Vec::new(), Vec::new());
        for (key, object) in listing.objects {
            let served = view::served(&target.resource, &object);
            if !selector.matches(&served) {
                continue;
            }
            // The policies see no name: the request names no object.
            let removed = self.remove_confirmed(&target.resource, &key, &options, &mut |object| {
                self.confirm_deletion(target, object, "", &options, &mut warnings)
            });
            match removed {
                Ok(_) => items.push(served.into_owned()),
                Err(status) if status.reason == "NotFound" => {}
                Err(status) => return Err(status),
            }
        }
        let kind = target.resource.kind();
        let body = render(&json!({
            "kind": target.resource.list_kind(),
            "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": listing.revision.to_string()},
            "items": items,
        }));
        Ok(Deleted { body, accepted: false, warnings })
    }

    fn confirm_deletion(
        &self,
        target: &Target,
        object: &Object,
        name: &str,
        options: &DeleteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let change = Change {
            operation: Operation::Delete,
            object: None,
            old: Some(&view::served(&target.resource, object)),
            name,
            dry_run: options.dry_run,
            options: &|| options.stated.clone(),
        };
        self.confirm(target, change, warnings)
    }

    /// Deletes an object by its place. Policies are not asked: this is not a request.
    ///
    /// # Errors
    /// When the object does not exist or a precondition does not hold.
    pub fn remove(&self, resource: &Resource, key: &Key, options: &DeleteOptions) -> Result<Removed, Status> {
        self.remove_confirmed(resource, key, options, &mut |_| Ok(()))
    }

    /// Deletes an object by its place, as a controller of Kubernetes whose requests the policies are asked about.
    ///
    /// # Errors
    /// When the object does not exist, a precondition does not hold, or a policy denies it.
    pub fn remove_as(
        &self,
        user: &Arc<User>,
        resource: &Arc<Resource>,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Removed, Status> {
        if !self.has_policies() {
            return self.remove(resource, key, options);
        }
        let target = Target::of_controller(user, resource, key);
        self.remove_confirmed(resource, key, options, &mut |object| {
            self.confirm_deletion(&target, object, &key.name, options, &mut Vec::new())
        })
    }

    fn remove_confirmed(
        &self,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
        confirm: &mut dyn FnMut(&Object) -> Result<(), Status>,
    ) -> Result<Removed, Status> {
        let group_resource = resource.group_resource();
        for _ in 0..ATTEMPTS {
            let current = self.store.get(key).ok_or_else(|| Status::not_found(&group_resource, &key.name))?;
            check_preconditions(resource, &key.name, current.value(), options)?;
            protect_namespace(resource, &key.name)?;
            confirm(&current)?;
            let next = marked(resource, current.value(), options.propagation, &self.clock.timestamp());
            let held = is_held(resource, &next);
            if options.dry_run {
                let object = Arc::new(Object::unstored(next));
                return Ok(if held { Removed::Waiting(object) } else { Removed::Gone(object) });
            }
            if !held {
                if let Ok(object) = self.store.delete(key, current.revision(), None) {
                    return Ok(Removed::Gone(object));
                }
                continue;
            }
            if next == *current.value() {
                return Ok(Removed::Waiting(current));
            }
            if let Ok(object) = self.store(key.clone(), Expected::Revision(current.revision()), next) {
                return Ok(Removed::Waiting(object));
            }
        }
        Err(Status::stale(&group_resource, &key.name))
    }
}

fn check_preconditions(resource: &Resource, name: &str, object: &Value, options: &DeleteOptions) -> Result<(), Status> {
    let checks = [
        (&options.uid, "UID", metadata::uid(object)),
        (&options.resource_version, "ResourceVersion", metadata::text(object, "resourceVersion")),
    ];
    for (wanted, what, actual) in checks {
        if let Some(wanted) = wanted.as_ref().filter(|wanted| *wanted != actual) {
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({actual}). The object might \
                 have been deleted and then recreated"
            );
            return Err(Status::conflict(&resource.group_resource(), name, &why));
        }
    }
    Ok(())
}

/// The namespaces that admission protects (`NamespaceLifecycle`).
fn protect_namespace(resource: &Resource, name: &str) -> Result<(), Status> {
    if resource.is_core("namespaces") && matches!(name, "default" | "kube-system" | "kube-public") {
        return Err(Status::forbidden(&resource.group_resource(), name, "this namespace may not be deleted"));
    }
    Ok(())
}

/// The object with its deletion begun: time stamp, finalizers of the propagation policy, phase of a namespace.
fn marked(resource: &Resource, object: &Value, propagation: Option<Propagation>, now: &str) -> Value {
    let mut object = object.clone();
    let first = !metadata::is_deleting(&object);
    let map = metadata::of(&mut object);
    if let Some(propagation) = propagation {
        let finalizers = map.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut finalizers: Vec<Value> =
            finalizers.into_iter().filter(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN).collect();
        match propagation {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FOREGROUND.into()),
            Propagation::Orphan => finalizers.push(ORPHAN.into()),
        }
        metadata::set(map, "finalizers", (!finalizers.is_empty()).then(|| finalizers.into()));
    }
    if first {
        map.insert("deletionTimestamp".to_owned(), now.into());
        map.insert("deletionGracePeriodSeconds".to_owned(), 0.into());
        if let Some(generation) = map.get("generation").and_then(Value::as_i64) {
            map.insert("generation".to_owned(), (generation + 1).into());
        }
    }
    if resource.is_core("namespaces") {
        metadata::child(metadata::as_map(&mut object), "status").insert("phase".to_owned(), "Terminating".into());
    }
    object
}

/// The Status that describes the deleted object.
fn success(resource: &Resource, object: &Value) -> Value {
    let mut details = json!({
        "name": metadata::name(object),
        "kind": resource.plural(),
        "uid": metadata::uid(object),
    });
    let group = &resource.kind().group;
    if let (false, Some(details)) = (group.is_empty(), details.as_object_mut()) {
        details.insert("group".to_owned(), group.as_str().into());
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
