//! The patch formats and server-side apply.

use chandler_devcluster_apimachinery::{
    apply::{
        ApplyError, ApplyRequest, apply,
        patch::{PatchError, json_patch, merge_patch, strategic_merge_patch},
    },
    schema::FieldError,
};
use serde_json::Value;

use super::{
    Api, Input, Target,
    write::{Draft, Write, Written, typed},
};
use crate::{
    metadata,
    pipeline::{decode, refine, reset},
    request::query::{FieldValidation, invalid_options},
    status::Status,
};

/// `Content-Type` of server-side apply.
pub const APPLY: &str = "application/apply-patch+yaml";

impl Api {
    /// Patches an object or one of its subresources; server-side apply may create it.
    ///
    /// # Errors
    /// When the patch does not fit, or what it makes is not valid.
    pub fn patch(&self, target: &Target, input: &Input) -> Result<Written, Status> {
        let custom = target.resource.custom.is_some();
        match input.content_type.as_str() {
            APPLY | "application/apply-patch+json" => self.apply(target, input),
            "application/json-patch+json" => {
                let patch = decode::json(&input.body)?;
                self.patch_with(target, &patch.duplicates, |old| json_patch(old, &patch.value))
            }
            "application/merge-patch+json" => {
                let patch = decode::json(&input.body)?;
                self.patch_with(target, &patch.duplicates, |old| Ok(merge_patch(old, &patch.value)))
            }
            "application/strategic-merge-patch+json" if !custom => {
                let patch = decode::json(&input.body)?;
                let schema = target.resource.schema();
                self.patch_with(target, &patch.duplicates, |old| strategic_merge_patch(schema, old, &patch.value))
            }
            other => Err(Status::unsupported_media_type(format!(
                "the body of the request was in an unknown format {other:?} - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, {APPLY}{}",
                if custom { "" } else { ", application/strategic-merge-patch+json" }
            ))),
        }
    }

    fn patch_with(
        &self,
        target: &Target,
        duplicates: &[String],
        patch: impl Fn(&Value) -> Result<Value, PatchError>,
    ) -> Result<Written, Status> {
        let mut write = Write::new(self, target, "PatchOptions")?;
        if target.query.get("force").is_some() {
            let error = FieldError::forbidden(&"force", "may not be specified for non-apply patch");
            return Err(invalid_options("PatchOptions", &[error]));
        }
        let strict = write.options.field_validation == FieldValidation::Strict;
        let object = self.modify(&mut write, |old| {
            let patched = patch(old).map_err(|error| patch_failed(target, &error))?;
            let object = typed(&target.resource, patched)?;
            refine::decodable(&target.resource, &object).map_err(|why| unreadable(&object, why))?;
            if strict {
                let findings = refine::findings(&target.resource, &object, duplicates);
                if !findings.is_empty() {
                    let why = format!("strict decoding error: {}", findings.join(", "));
                    return Err(unreadable(&object, why));
                }
            }
            Ok(Draft { object, duplicates: duplicates.to_vec(), tracked: false })
        })?;
        Ok(write.written(&object, false))
    }

    fn apply(&self, target: &Target, input: &Input) -> Result<Written, Status> {
        let mut write = Write::new(self, target, "PatchOptions")?;
        if target.query.get("fieldManager").is_none() {
            let error = FieldError::required(&"fieldManager", "is required for apply patch");
            return Err(invalid_options("PatchOptions", &[error]));
        }
        let decoded = decode::json(&input.body).or_else(|_| decode::yaml(&input.body))?;
        check_identity(target, &decoded.value)?;
        let mut applied = typed(&target.resource, decoded.value)?;
        if !decoded.duplicates.is_empty() {
            let validation = write.options.field_validation;
            let mut checked = applied.clone();
            refine::prune(&target.resource, &mut checked, &decoded.duplicates, validation, &mut write.warnings)?;
        }
        reset::strip(&mut applied, reset::fields(&target.resource, target.subresource.as_deref()));
        // Unknown fields fail the merge.
        write.options.field_validation = FieldValidation::Ignore;
        if self.store.get(&target.key()).is_none() {
            return self.apply_new(write, &applied);
        }
        let (manager, force, now) = (write.options.field_manager.clone(), write.options.force, write.now.clone());
        let object = self.modify(&mut write, |old| apply_to(target, Some(old), &applied, &manager, force, &now))?;
        Ok(write.written(&object, false))
    }

    fn apply_new(&self, mut write: Write<'_>, applied: &Value) -> Result<Written, Status> {
        let target = write.target;
        let group_resource = target.resource.group_resource();
        if target.subresource.is_some() {
            return Err(Status::not_found(&group_resource, &target.name));
        }
        let uid = metadata::uid(applied);
        if !uid.is_empty() {
            let why =
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
            return Err(Status::conflict(&group_resource, &target.name, &why));
        }
        self.confirm_creation(target)?;
        let draft = apply_to(target, None, applied, &write.options.field_manager, write.options.force, &write.now)?;
        let object = self.insert(&mut write, draft)?;
        Ok(write.written(&object, true))
    }
}

fn apply_to(
    target: &Target,
    live: Option<&Value>,
    applied: &Value,
    manager: &str,
    force: bool,
    now: &str,
) -> Result<Draft, Status> {
    let outcome = apply(ApplyRequest {
        schema: target.resource.schema(),
        live,
        applied,
        manager,
        api_version: &target.resource.kind().api_version(),
        force,
        subresource: target.subresource.as_deref().unwrap_or_default(),
        now,
    });
    match outcome {
        Ok(outcome) => Ok(Draft { object: outcome.object, duplicates: Vec::new(), tracked: true }),
        Err(error) => Err(match &error {
            ApplyError::Conflicts(conflicts) => {
                let causes = conflicts.iter().map(|conflict| (conflict.cause_message(), conflict.field.clone()));
                Status::apply_conflict(error.to_string(), causes.collect())
            }
            ApplyError::Untyped(why) => Status {
                code: http::StatusCode::INTERNAL_SERVER_ERROR,
                reason: "",
                message: why.clone(),
                details: Value::Null,
                warnings: Vec::new(),
            },
            _ => Status::bad_request(error.to_string()),
        }),
    }
}

/// Checks that an applied configuration has `apiVersion`, `kind` and a name.
fn check_identity(target: &Target, applied: &Value) -> Result<(), Status> {
    let text = |field: &str| applied.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if api_version.is_empty() || kind.is_empty() {
        let why = format!(
            "invalid object type: {api_version}, Kind={kind}: an applied configuration needs apiVersion and kind"
        );
        return Err(Status::bad_request(why));
    }
    if applied.pointer("/metadata/name").and_then(Value::as_str).is_none_or(str::is_empty) {
        let name = &target.name;
        return Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    Ok(())
}

/// A patched object that cannot be read. The error names neither kind nor object, as in kube-apiserver.
fn unreadable(object: &Value, why: String) -> Status {
    let kind = chandler_devcluster_apimachinery::schema::GroupVersionKind::new("", "", "");
    Status::invalid(&kind, "", &[FieldError::invalid(&"patch", object.to_string(), why)])
}

fn patch_failed(target: &Target, error: &PatchError) -> Status {
    match error {
        PatchError::Unprocessable(why) => {
            let error = FieldError::invalid(&"patch", Value::Null, why.clone());
            Status::invalid(target.resource.kind(), &target.name, &[error])
        }
        PatchError::TooLarge(why) => Status { message: why.clone(), ..Status::too_large(0) },
        other => Status::bad_request(other.to_string()),
    }
}
