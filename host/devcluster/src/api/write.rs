//! Create and update: the pipeline of every write.

use std::sync::Arc;

use bytes::Bytes;
use chandler_devcluster_apimachinery::{
    apply::managed::{UpdateRequest, same_but_for_times, track_update},
    policies::Operation,
    schema::FieldError,
};
use serde_json::Value;
use time::OffsetDateTime;

use super::{
    Api, Input, Target,
    policies::{Change, write_options},
    view,
};
use crate::{
    clock, convert, metadata,
    pipeline::{body, decode, refine, reset, strategy},
    registry::Resource,
    request::query::WriteOptions,
    status::Status,
    store::{Expected, Key, Mismatch, Object},
};

/// How often a write is tried again when another one came between reading and writing.
const ATTEMPTS: usize = 32;

/// The result of a write.
#[derive(Debug)]
pub struct Written {
    /// The current object, in the requested representation.
    pub body: Bytes,
    /// Whether it is new.
    pub created: bool,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// An object on its way to the store.
pub(super) struct Draft {
    /// The object in the version of the request.
    pub(super) object: Value,
    /// Fields that were duplicated in the body.
    pub(super) duplicates: Vec<String>,
    /// Whether `metadata.managedFields` is already right, as after server-side apply.
    pub(super) tracked: bool,
}

/// One write request.
pub(super) struct Write<'a> {
    pub(super) target: &'a Target,
    pub(super) options: WriteOptions,
    pub(super) time: OffsetDateTime,
    /// The time in its serialized form.
    pub(super) now: String,
    pub(super) warnings: Vec<String>,
}

impl<'a> Write<'a> {
    /// `kind` names the options in messages, e.g. `CreateOptions`.
    pub(super) fn new(api: &Api, target: &'a Target, kind: &str) -> Result<Self, Status> {
        let options = WriteOptions::parse(&target.query, &target.user_agent, kind)?;
        let mut warnings = Vec::new();
        if let Some(custom) = &target.resource.custom
            && custom.version.deprecated
        {
            let kind = target.resource.kind();
            let default = || format!("{} {} is deprecated", kind.api_version(), kind.kind);
            warnings.push(custom.version.deprecation_warning.clone().unwrap_or_else(default));
        }
        let time = api.clock.now();
        Ok(Self { target, options, time, now: clock::seconds(time), warnings })
    }

    fn resource(&self) -> &Resource {
        &self.target.resource
    }

    pub(super) fn written(self, object: &Object, created: bool) -> Written {
        Written { body: view::represent(self.target, object, self.time), created, warnings: self.warnings }
    }
}

/// Reads a body that holds an object.
///
/// # Errors
/// When the body cannot be read, or is of another kind than the resource.
pub(super) fn decode_object(resource: &Resource, input: &Input) -> Result<decode::Decoded, Status> {
    let decoded = body::object(resource, &input.content_type, &input.body)?;
    Ok(decode::Decoded { value: typed(resource, decoded.value)?, ..decoded })
}

/// Checks that an object is of the resource's kind; an object without kind and version is assumed to be.
pub(super) fn typed(resource: &Resource, mut object: Value) -> Result<Value, Status> {
    let kind = resource.kind();
    if !object.is_object() {
        return Err(Status::bad_request(format!("the body is not a {}: it must be a JSON object", kind.kind)));
    }
    let found = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (found_version, found_kind) = (found("apiVersion"), found("kind"));
    let expected_version = kind.api_version();
    let fits = |found: &str, expected: &str| found.is_empty() || found == expected;
    if !fits(found_version, &expected_version) || !fits(found_kind, &kind.kind) {
        return Err(Status::bad_request(format!(
            "the API version in the data ({found_version}, Kind={found_kind}) does not match the expected API version \
             ({expected_version}, Kind={})",
            kind.kind
        )));
    }
    if let Some(wrong) = object.get("metadata").filter(|metadata| !metadata.is_object() && !metadata.is_null()) {
        return Err(refine::wrong_metadata(resource, wrong));
    }
    let fields = metadata::as_map(&mut object);
    fields.insert("apiVersion".to_owned(), expected_version.into());
    fields.insert("kind".to_owned(), kind.kind.as_str().into());
    metadata::of(&mut object);
    Ok(object)
}

impl Api {
    /// Creates an object.
    ///
    /// # Errors
    /// When the object is not valid or exists.
    pub fn create(&self, target: &Target, input: &Input) -> Result<Written, Status> {
        let mut write = Write::new(self, target, "CreateOptions")?;
        let decoded = decode_object(&target.resource, input)?;
        let draft = Draft { object: decoded.value, duplicates: decoded.duplicates, tracked: false };
        let object = self.insert(&mut write, draft)?;
        Ok(write.written(&object, true))
    }

    /// Replaces an object or one of its subresources.
    ///
    /// # Errors
    /// When the object is not valid, does not exist or has changed.
    pub fn update(&self, target: &Target, input: &Input) -> Result<Written, Status> {
        let mut write = Write::new(self, target, "UpdateOptions")?;
        let decoded = decode_object(&target.resource, input)?;
        if !allows_unconditional_update(&target.resource)
            && metadata::text(&decoded.value, "resourceVersion").is_empty()
        {
            let error = FieldError::invalid(&"metadata.resourceVersion", 0, "must be specified for an update");
            return Err(Status::invalid(target.resource.kind(), &target.name, &[error]));
        }
        let object = self.modify(&mut write, |_| {
            Ok(Draft { object: decoded.value.clone(), duplicates: decoded.duplicates.clone(), tracked: false })
        })?;
        Ok(write.written(&object, false))
    }

    /// Takes a new object through the pipeline and stores it.
    pub(super) fn insert(&self, write: &mut Write<'_>, draft: Draft) -> Result<Arc<Object>, Status> {
        let Draft { mut object, duplicates, tracked } = draft;
        let target = write.target;
        let resource = &target.resource;
        if !metadata::text(&object, "resourceVersion").is_empty() {
            return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
        }
        if resource.custom.as_ref().is_some_and(|custom| custom.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&resource.group_resource(), metadata::name(&object), why));
        }
        check_namespace(target, &mut object)?;
        if tracked {
            refine::convertible(resource, &object)?;
        }
        refine::prune(resource, &mut object, &duplicates, write.options.field_validation, &mut write.warnings)?;
        let generated = metadata::name(&object).is_empty() && !metadata::text(&object, "generateName").is_empty();
        check_name(target, &mut object)?;
        let mut key = target.key();
        // A generated name is not known yet: its prefix is used instead.
        metadata::name(&object).clone_into(&mut key.name);
        if generated {
            metadata::text(&object, "generateName").clone_into(&mut key.name);
        }
        refine::default(resource, &mut object);
        if !tracked {
            object = track(write, &object, None);
        }
        self.admit_create(resource, &mut object)?;
        strategy::prepare_create(resource, &mut object, &self.identities.uid(&key), &write.now);
        refine::default(resource, &mut object);
        self.confirm_grant(target, &object, None)?;
        for _ in 0..ATTEMPTS {
            if generated {
                self.generate_name(&target.key(), &mut object);
            }
            let name = metadata::name(&object).to_owned();
            refine::validate(resource, &name, &object, None)?;
            let change = Change {
                operation: Operation::Create,
                object: Some(&object),
                old: None,
                name: &name,
                dry_run: write.options.dry_run,
                options: &|| write_options("CreateOptions", &target.query),
            };
            self.confirm(target, change, &mut write.warnings)?;
            key.name.clone_from(&name);
            if let Some(existing) = self.store.get(&key) {
                if generated {
                    continue;
                }
                return Err(taken(resource, &name, &existing));
            }
            let more = refine::warnings(resource, &object, None);
            refine::stored(resource, &mut object);
            let stored = convert::to_stored(resource, object.clone());
            if write.options.dry_run {
                write.warnings.extend(more);
                return Ok(Arc::new(Object::unstored(stored)));
            }
            match self.store(key.clone(), Expected::Absent, stored) {
                Ok(object) => {
                    write.warnings.extend(more);
                    return Ok(object);
                }
                Err(Mismatch) if generated => {}
                Err(Mismatch) => return Err(Status::already_exists(&resource.group_resource(), &name)),
            }
        }
        Err(Status::already_exists(&resource.group_resource(), metadata::text(&object, "generateName")))
    }

    /// Computes a new state of an existing object, takes it through the pipeline and stores it. `compute` gets the current state
    /// state in the version of the request, and is called again when another write came between.
    pub(super) fn modify(
        &self,
        write: &mut Write<'_>,
        compute: impl Fn(&Value) -> Result<Draft, Status>,
    ) -> Result<Arc<Object>, Status> {
        let target = write.target;
        let resource = &target.resource;
        let key = target.key();
        for _ in 0..ATTEMPTS {
            let current = self.store.get(&key);
            let current = current.ok_or_else(|| Status::not_found(&resource.group_resource(), &target.name))?;
            let old = view::served(resource, &current);
            let draft = compute(&old)?;
            let mut warnings = Vec::new();
            let object = self.next_state(write, draft, &old, &mut warnings)?;
            let stored = convert::to_stored(resource, object);
            write.warnings.append(&mut warnings);
            if write.options.dry_run {
                return Ok(Arc::new(Object::unstored(stored)));
            }
            let finished = metadata::is_deleting(&stored) && !super::delete::is_held(resource, &stored);
            let result = if finished {
                self.store.delete(&key, current.revision(), Some(stored))
            } else if same_but_for_times(current.value(), &stored) {
                return Ok(current);
            } else {
                self.store(key.clone(), Expected::Revision(current.revision()), stored)
            };
            if let Ok(object) = result {
                return Ok(object);
            }
        }
        Err(Status::stale(&resource.group_resource(), &target.name))
    }

    /// Appends a suffix to `generateName`.
    fn generate_name(&self, collection: &Key, object: &mut Value) {
        const LONGEST_PREFIX: usize = 58;
        let prefix: String = metadata::text(object, "generateName").chars().take(LONGEST_PREFIX).collect();
        let suffix = self.identities.suffix(&Key { name: prefix.clone(), ..collection.clone() });
        metadata::of(object).insert("name".to_owned(), format!("{prefix}{suffix}").into());
    }

    fn next_state(
        &self,
        write: &Write<'_>,
        draft: Draft,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Value, Status> {
        let Draft { mut object, duplicates, tracked } = draft;
        let target = write.target;
        let resource = &target.resource;
        let group_resource = resource.group_resource();
        let stated = metadata::text(&object, "resourceVersion");
        if !stated.is_empty() && stated != metadata::text(old, "resourceVersion") {
            return Err(Status::stale(&group_resource, &target.name));
        }
        let (stated, actual) = (metadata::uid(&object), metadata::uid(old));
        if !stated.is_empty() && stated != actual && tracked {
            let error = FieldError::invalid(&"metadata.uid", stated, "field is immutable");
            return Err(Status::invalid(resource.kind(), &target.name, &[error]));
        }
        if !stated.is_empty() && stated != actual {
            let why = format!("Precondition failed: UID in precondition: {stated}, UID in object meta: {actual}");
            return Err(Status::conflict(&group_resource, &target.name, &why));
        }
        check_namespace(target, &mut object)?;
        check_name(target, &mut object)?;
        if tracked {
            refine::convertible(resource, &object)?;
        }
        refine::prune(resource, &mut object, &duplicates, write.options.field_validation, warnings)?;
        let reset = object.pointer("/metadata/managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty);
        refine::default(resource, &mut object);
        if reset {
            // The empty list has a meaning that completing the object would lose.
            metadata::of(&mut object).insert("managedFields".to_owned(), Value::Array(Vec::new()));
        }
        if !tracked {
            object = track(write, &object, Some(old));
        }
        strategy::prepare_update(resource, &mut object, old, target.subresource.as_deref());
        self.admit_update(resource, &mut object, old)?;
        self.confirm_grant(target, &object, Some(old))?;
        strategy::count_generation(resource, &mut object, old);
        refine::validate(resource, &target.name, &object, Some(old))?;
        let change = Change {
            operation: Operation::Update,
            object: Some(&object),
            old: Some(old),
            name: &target.name,
            dry_run: write.options.dry_run,
            options: &|| write_options("UpdateOptions", &target.query),
        };
        self.confirm(target, change, warnings)?;
        warnings.extend(refine::warnings(resource, &object, Some(old)));
        refine::stored(resource, &mut object);
        metadata::of(&mut object).insert("resourceVersion".to_owned(), metadata::text(old, "resourceVersion").into());
        Ok(object)
    }
}

/// The failure of a create whose name is taken.
fn taken(resource: &Resource, name: &str, existing: &Object) -> Status {
    let status = Status::already_exists(&resource.group_resource(), name);
    if metadata::is_deleting(existing.value()) {
        return Status { message: format!("object is being deleted: {}", status.message), ..status };
    }
    status
}

fn track(write: &Write<'_>, object: &Value, live: Option<&Value>) -> Value {
    track_update(UpdateRequest {
        schema: write.resource().schema(),
        live,
        new: object,
        manager: &write.options.field_manager,
        api_version: &write.resource().kind().api_version(),
        subresource: write.target.subresource.as_deref().unwrap_or_default(),
        reset: reset::fields(write.resource(), write.target.subresource.as_deref()),
        now: &write.now,
    })
}

fn check_namespace(target: &Target, object: &mut Value) -> Result<(), Status> {
    let stated = metadata::namespace(object);
    if !stated.is_empty() && stated != target.namespace && target.resource.namespaced() {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let namespace = (!target.namespace.is_empty()).then(|| target.namespace.as_str().into());
    metadata::set(metadata::of(object), "namespace", namespace);
    Ok(())
}

fn check_name(target: &Target, object: &mut Value) -> Result<(), Status> {
    let stated = metadata::name(object);
    if !target.name.is_empty() && !stated.is_empty() && stated != target.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({stated}) does not match the name on the URL ({})",
            target.name
        )));
    }
    if !target.name.is_empty() && stated.is_empty() {
        metadata::of(object).insert("name".to_owned(), target.name.as_str().into());
    }
    if metadata::name(object).is_empty() && metadata::text(object, "generateName").is_empty() {
        let error = FieldError::required(&"metadata.name", "name or generateName is required");
        return Err(Status::invalid(target.resource.kind(), "", &[error]));
    }
    Ok(())
}

/// Whether a replacement may leave `resourceVersion` out (`AllowUnconditionalUpdate` of the kind's strategy).
fn allows_unconditional_update(resource: &Resource) -> bool {
    resource.custom.is_none()
        && !matches!(
            resource.kind().group.as_str(),
            "apiextensions.k8s.io" | "apiregistration.k8s.io" | "coordination.k8s.io" | "admissionregistration.k8s.io"
        )
}
