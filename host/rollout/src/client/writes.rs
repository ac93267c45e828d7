//! The requests that write, or would write in a dry run.

use chandler_informers::{Id, Outcome};
use kube::api::{ApiResource, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::{Value, json};

use super::cluster::{Cluster, at, built, typed};
use crate::pure::{
    desired::Desired,
    error::{ApiError, ApplyError},
    live,
    owner::{FIELD_MANAGER, PART_OF},
};

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deleted {
    /// It is gone.
    Gone,
    /// It was accepted; the object still exists, in this state.
    Accepted(Value),
}

impl Cluster {
    /// Sends a write to an object. The informers know the result before the caller does, so that no later decision is based on an
    /// older state. Where the result is unknown, they know that.
    async fn send(
        &self,
        resource: &ApiResource,
        object: &Value,
        request: http::Request<Vec<u8>>,
    ) -> Result<Value, kube::Error> {
        let Some(reader) = &self.reader else { return self.client.request(request).await };
        let writing = reader.write(resource, id(object, resource), live::label(object, PART_OF));
        let result = self.client.request(request).await;
        writing.end(match &result {
            Ok(written) => Outcome::Written(written),
            Err(error) => outcome(error),
        });
        result
    }

    /// Sends a write, unless it is a dry run, which changes nothing.
    async fn send_unless(
        &self,
        dry_run: bool,
        desired: &Desired,
        request: http::Request<Vec<u8>>,
    ) -> Result<Value, kube::Error> {
        if dry_run {
            return self.client.request(request).await;
        }
        self.send(&desired.resource, &desired.value, request).await
    }

    /// Creates an object that must not exist. Unknown fields are refused, since no later apply could set them.
    pub(crate) async fn create(&self, desired: &Desired, dry_run: bool) -> Result<Value, ApiError> {
        let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let body = serde_json::to_vec(&desired.value).map_err(|error| ApiError::Refused(error.to_string()))?;
        let request =
            at(&desired.resource, desired.key.namespace.as_deref()).create(&parameters, body).map_err(built)?;
        Ok(self.send_unless(dry_run, desired, with_strict_fields(request)?).await?)
    }

    /// Applies an object that has not changed since it was read. The UID prevents the adoption of another object and the
    /// creation of a deleted one; the resource version prevents taking back an object that was orphaned meanwhile.
    pub(crate) async fn apply(&self, desired: &Desired, live: &Value) -> Result<Value, ApiError> {
        self.try_apply(desired, live).await.map_err(|refusal| refusal.error)
    }

    /// Like [`apply`](Self::apply), with the fields that an error is about.
    pub(crate) async fn try_apply(&self, desired: &Desired, live: &Value) -> Result<Value, ApplyError> {
        let version = live::resource_version(live);
        self.apply_to(desired, json!({"uid": live::uid(live), "resourceVersion": version}), false).await
    }

    /// A dry run of an apply to any version of the object, with the fields that an error is about.
    pub(crate) async fn try_dry_run(&self, desired: &Desired, live: &Value) -> Result<Value, ApplyError> {
        self.apply_to(desired, json!({"uid": live::uid(live)}), true).await
    }

    async fn apply_to(&self, desired: &Desired, preconditions: Value, dry_run: bool) -> Result<Value, ApplyError> {
        let mut body = desired.value.clone();
        if let (Some(metadata), Value::Object(preconditions)) =
            (body.get_mut("metadata").and_then(Value::as_object_mut), preconditions)
        {
            metadata.extend(preconditions);
        }
        let mut parameters = PatchParams::apply(FIELD_MANAGER).force();
        parameters.dry_run = dry_run;
        let path = at(&desired.resource, desired.key.namespace.as_deref());
        let request = path.patch(&desired.key.name, &parameters, &Patch::Apply(body)).map_err(built)?;
        Ok(self.send_unless(dry_run, desired, request).await?)
    }

    /// Replaces an object that has not changed since it was read by the desired one.
    pub(crate) async fn replace(&self, desired: &Desired, live: &Value, dry_run: bool) -> Result<Value, ApiError> {
        let mut body = desired.value.clone();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), json!(live::uid(live)));
            metadata.insert("resourceVersion".to_owned(), json!(live::resource_version(live)));
        }
        let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let body = serde_json::to_vec(&body).map_err(|error| ApiError::Refused(error.to_string()))?;
        let path = at(&desired.resource, desired.key.namespace.as_deref());
        let request = path.replace(&desired.key.name, &parameters, body).map_err(built)?;
        Ok(self.send_unless(dry_run, desired, request).await?)
    }

    /// Applies a merge patch to an object that has not changed since it was read.
    pub(crate) async fn merge(
        &self,
        desired: &Desired,
        live: &Value,
        mut changes: Value,
        dry_run: bool,
    ) -> Result<Value, ApiError> {
        if let Some(changes) = changes.as_object_mut() {
            let read = json!({"uid": live::uid(live), "resourceVersion": live::resource_version(live)});
            changes.insert("metadata".to_owned(), read);
        }
        let parameters =
            PatchParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let path = at(&desired.resource, desired.key.namespace.as_deref());
        let request = path.patch(&desired.key.name, &parameters, &Patch::Merge(changes)).map_err(built)?;
        Ok(self.send_unless(dry_run, desired, request).await?)
    }

    /// Applies a part of the parent's metadata with a field manager of its own.
    pub(crate) async fn apply_part(
        &self,
        resource: &ApiResource,
        name: &str,
        manager: &str,
        body: &Value,
    ) -> Result<Value, ApiError> {
        let parameters = PatchParams::apply(manager).force();
        let request = at(resource, None).patch(name, &parameters, &Patch::Apply(body)).map_err(built)?;
        Ok(self.client.request(request).await?)
    }

    /// Replaces the managed fields of an object that has not changed since it was read.
    pub(crate) async fn replace_managed_fields(
        &self,
        desired: &Desired,
        resource_version: &str,
        managed_fields: &Value,
    ) -> Result<Value, ApiError> {
        let body = json!({"metadata": {"managedFields": managed_fields, "resourceVersion": resource_version}});
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let path = at(&desired.resource, desired.key.namespace.as_deref());
        let request = path.patch(&desired.key.name, &parameters, &Patch::Merge(body)).map_err(built)?;
        Ok(self.send_unless(false, desired, request).await?)
    }

    /// Applies a merge patch to the metadata of an object that has not changed since it was read.
    pub(crate) async fn patch_metadata(
        &self,
        resource: &ApiResource,
        object: &Value,
        metadata: Value,
        manager: &str,
    ) -> Result<Value, ApiError> {
        self.patch(resource, object, json!({"metadata": metadata}), manager).await
    }

    /// Applies a merge patch to an object that has not changed since it was read.
    pub(crate) async fn patch(
        &self,
        resource: &ApiResource,
        object: &Value,
        mut changes: Value,
        manager: &str,
    ) -> Result<Value, ApiError> {
        if let Some(changes) = changes.as_object_mut() {
            let metadata = changes.entry("metadata").or_insert_with(|| json!({}));
            if let Some(metadata) = metadata.as_object_mut() {
                metadata.insert("uid".to_owned(), json!(live::uid(object)));
                metadata.insert("resourceVersion".to_owned(), json!(live::resource_version(object)));
            }
        }
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let key = live::key(object, resource);
        let path = at(resource, key.namespace.as_deref());
        let body = Patch::Merge(changes);
        let request = path.patch(&key.name, &parameters, &body).map_err(built)?;
        Ok(self.send(resource, object, request).await?)
    }

    /// Deletes an object if it has not changed since it was read. Its dependents are deleted later.
    pub(crate) async fn delete(&self, resource: &ApiResource, object: &Value) -> Result<Deleted, ApiError> {
        self.delete_with(DeleteParams::background(), resource, object).await
    }

    /// Deletes an object in the foreground: it is gone only after its dependents are.
    pub(crate) async fn delete_in_foreground(
        &self,
        resource: &ApiResource,
        object: &Value,
    ) -> Result<Deleted, ApiError> {
        self.delete_with(DeleteParams::foreground(), resource, object).await
    }

    async fn delete_with(
        &self,
        parameters: DeleteParams,
        resource: &ApiResource,
        object: &Value,
    ) -> Result<Deleted, ApiError> {
        let parameters = parameters.preconditions(Preconditions {
            uid: Some(live::uid(object).to_owned()),
            resource_version: Some(live::resource_version(object).to_owned()),
        });
        let key = live::key(object, resource);
        let request = at(resource, key.namespace.as_deref()).delete(&key.name, &parameters).map_err(built)?;
        let writing = self.reader.as_ref().map(|reader| {
            let set = live::label(object, PART_OF);
            reader.write(resource, id(object, resource), set)
        });
        let result = self.client.request::<Value>(request).await;
        if let Some(writing) = writing {
            writing.end(match &result {
                Ok(answer) if live::is_terminating(answer) => Outcome::Written(answer),
                Ok(_) => Outcome::Deleted(live::uid(object)),
                Err(error) => outcome(error),
            });
        }
        match result {
            // The answer is the object while a finalizer holds it, or a status. For some kinds it is the object although it is
            // gone, and then it has no deletion timestamp.
            Ok(answer) if live::is_terminating(&answer) => Ok(Deleted::Accepted(typed(answer, resource))),
            Ok(_) => Ok(Deleted::Gone),
            Err(error) => match ApiError::from(error) {
                ApiError::NotFound(_) => Ok(Deleted::Gone),
                error => Err(error),
            },
        }
    }
}

fn id(object: &Value, resource: &ApiResource) -> Id {
    let key = live::key(object, resource);
    Id { namespace: key.namespace, name: key.name }
}

/// The outcome of a write that failed. After a conflict, the stored object differs from what the informers know.
fn outcome(error: &kube::Error) -> Outcome<'static> {
    match error {
        kube::Error::Api(status) if matches!(status.code, 400..=499) && !matches!(status.code, 404 | 408 | 409) => {
            Outcome::Refused
        }
        _ => Outcome::Unknown,
    }
}

/// Sets strict field validation, which the parameters of kube lack.
fn with_strict_fields(request: http::Request<Vec<u8>>) -> Result<http::Request<Vec<u8>>, ApiError> {
    let (mut parts, body) = request.into_parts();
    let separator = if parts.uri.query().is_some() { '&' } else { '?' };
    let uri = format!("{}{separator}fieldValidation=Strict", parts.uri);
    parts.uri = uri.parse().map_err(|error: http::uri::InvalidUri| ApiError::Refused(error.to_string()))?;
    Ok(http::Request::from_parts(parts, body))
}
