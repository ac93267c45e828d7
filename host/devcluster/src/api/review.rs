//! Review kinds, which are answered and not stored: SelfSubjectReview, SubjectAccessReview and their relatives.

use std::collections::BTreeMap;

use bytes::Bytes;
use chandler_devcluster_apimachinery::{
    access::{Attributes, Decision, NonResourceAttributes, PolicyRule, ResourceAttributes, User, authorize::rules_for},
    schema::{FieldError, GroupVersionKind},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Api, Input, Target, write::decode_object};
use crate::{
    authentication::{Rejected, claims::ISSUER},
    metadata,
    status::Status,
    store::object::render,
};

/// The access of a review; a self review names no user.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AccessSpec {
    resource_attributes: Option<ResourceAttributes>,
    non_resource_attributes: Option<NonResourceAttributes>,
    user: String,
    groups: Vec<String>,
    uid: String,
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TokenSpec {
    token: String,
    audiences: Vec<String>,
}

impl Api {
    /// Answers a review.
    ///
    /// # Errors
    /// If the body is not such a review, or the kind is not supported.
    pub fn review(&self, target: &Target, input: &Input) -> Result<Bytes, Status> {
        let mut review = without_nulls(decode_object(&target.resource, input)?.value);
        let status = match target.resource.kind().kind.as_str() {
            "SelfSubjectReview" => {
                metadata::of(&mut review).insert("creationTimestamp".to_owned(), self.clock.timestamp().into());
                json!({"userInfo": *target.user})
            }
            "SelfSubjectAccessReview" => self.review_own_access(target, &review)?,
            "SubjectAccessReview" => self.review_access(target, &review)?,
            "LocalSubjectAccessReview" => {
                set_namespace(target, &mut review)?;
                self.review_access(target, &review)?
            }
            "SelfSubjectRulesReview" => {
                let status = self.review_rules(target, &review)?;
                metadata::as_map(&mut review).insert("spec".to_owned(), json!({}));
                status
            }
            "TokenReview" => self.review_token(target, &review)?,
            other => return Err(Status::not_implemented(other)),
        };
        metadata::as_map(&mut review).insert("status".to_owned(), status);
        Ok(render(&review))
    }

    fn review_own_access(&self, target: &Target, review: &Value) -> Result<Value, Status> {
        let spec: AccessSpec = spec(target, review)?;
        let mut errors = Vec::new();
        check_attributes(&spec, &mut errors);
        check_metadata(review, false, &mut errors);
        Ok(self.decided(&target.user, asked(target, spec, &errors)?))
    }

    fn review_access(&self, target: &Target, review: &Value) -> Result<Value, Status> {
        let spec: AccessSpec = spec(target, review)?;
        let local = target.resource.namespaced();
        let mut errors = Vec::new();
        check_attributes(&spec, &mut errors);
        if spec.user.is_empty() && spec.groups.is_empty() {
            errors.push(FieldError::invalid(&"spec.user", "", "at least one of user or group must be specified"));
        }
        check_metadata(review, local, &mut errors);
        if local {
            if let Some(asked) = spec.resource_attributes.as_ref().filter(|asked| asked.namespace != target.namespace) {
                let path = "spec.resourceAttributes.namespace";
                errors.push(FieldError::invalid(&path, asked.namespace.as_str(), "must match metadata.namespace"));
            }
            if spec.non_resource_attributes.is_some() {
                let value = review.pointer("/spec/nonResourceAttributes").cloned().unwrap_or_default();
                let detail = "disallowed on this kind of request";
                errors.push(FieldError::invalid(&"spec.nonResourceAttributes", value, detail));
            }
        }
        let user = User {
            name: spec.user.clone(),
            uid: spec.uid.clone(),
            groups: spec.groups.clone(),
            extra: spec.extra.clone(),
        };
        Ok(self.decided(&user, asked(target, spec, &errors)?))
    }

    fn decided(&self, user: &User, attributes: Attributes) -> Value {
        let Decision { allowed, reason } = self.authorizer.decide(&self.store, user, &attributes);
        let mut status = Map::new();
        status.insert("allowed".to_owned(), allowed.into());
        if !reason.is_empty() {
            status.insert("reason".to_owned(), reason.into());
        }
        status.into()
    }

    fn review_rules(&self, target: &Target, review: &Value) -> Result<Value, Status> {
        let namespace = review.pointer("/spec/namespace").and_then(Value::as_str).unwrap_or_default();
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let policy = self.authorizer.policy(&self.store);
        let held = rules_for(&*policy, &target.user, namespace);
        let of = |shown: fn(&PolicyRule) -> Option<Value>| -> Vec<Value> {
            held.rules.iter().filter_map(|rule| shown(rule)).collect()
        };
        let mut status = json!({
            "resourceRules": of(resource_rule), "nonResourceRules": of(path_rule), "incomplete": false});
        if let (Some(errors), Some(status)) = (&held.errors, status.as_object_mut()) {
            status.insert("evaluationError".to_owned(), errors.as_str().into());
        }
        Ok(status)
    }

    fn review_token(&self, target: &Target, review: &Value) -> Result<Value, Status> {
        let TokenSpec { token, audiences } = spec(target, review)?;
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let audiences = if audiences.is_empty() { vec![ISSUER.to_owned()] } else { audiences };
        let reviewed = self.authenticator.review(&self.store, self.clock.now(), token.as_bytes(), &audiences);
        Ok(match reviewed {
            Ok((user, audiences)) => json!({"authenticated": true, "user": user, "audiences": audiences}),
            Err(rejected @ (Rejected::Unknown | Rejected::Invalid(_))) => {
                json!({"user": {}, "error": rejected.to_string()})
            }
        })
    }
}

/// The specification of a review.
fn spec<T: for<'de> Deserialize<'de> + Default>(target: &Target, review: &Value) -> Result<T, Status> {
    let Some(spec) = review.get("spec") else { return Ok(T::default()) };
    T::deserialize(spec).map_err(|error| {
        let kind = target.resource.kind();
        Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: spec: {error}",
            kind = kind.kind,
            version = kind.version,
        ))
    })
}

fn check_attributes(spec: &AccessSpec, errors: &mut Vec<FieldError>) {
    match (&spec.resource_attributes, &spec.non_resource_attributes) {
        (Some(_), Some(path)) => {
            let value = serde_json::to_value(path).unwrap_or_default();
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.push(FieldError::invalid(&"spec.nonResourceAttributes", value, detail));
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(FieldError::invalid(&"spec.resourceAttributes", Value::Null, detail));
        }
        _ => {}
    }
}

/// Access reviews have no names, and a namespace only where they are local.
fn check_metadata(review: &Value, local: bool, errors: &mut Vec<FieldError>) {
    let found = review.get("metadata").and_then(Value::as_object).into_iter().flatten();
    let stray = found.filter(|(field, _)| *field != "managedFields" && !(local && *field == "namespace"));
    if stray.count() > 0 {
        let detail = if local { "must be empty except for namespace" } else { "must be empty" };
        let value = review.get("metadata").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&"metadata", value, detail));
    }
}

/// The reviewed access, if the review is valid.
fn asked(target: &Target, spec: AccessSpec, errors: &[FieldError]) -> Result<Attributes, Status> {
    match (spec.resource_attributes, spec.non_resource_attributes) {
        (Some(resource), None) if errors.is_empty() => Ok(Attributes::Resource(resource)),
        (None, Some(path)) if errors.is_empty() => Ok(Attributes::NonResource(path)),
        // kube-apiserver leaves the kind out of these messages.
        _ => Err(Status::invalid(
            &GroupVersionKind { kind: String::new(), ..target.resource.kind().clone() },
            "",
            errors,
        )),
    }
}

fn set_namespace(target: &Target, review: &mut Value) -> Result<(), Status> {
    let stated = metadata::namespace(review);
    if !stated.is_empty() && stated != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    metadata::of(review).insert("namespace".to_owned(), target.namespace.as_str().into());
    Ok(())
}

fn resource_rule(rule: &PolicyRule) -> Option<Value> {
    let rule = PolicyRule { non_resource_urls: Vec::new(), ..rule.clone() };
    (!rule.resources.is_empty()).then(|| serde_json::to_value(rule).unwrap_or_default())
}

fn path_rule(rule: &PolicyRule) -> Option<Value> {
    let paths = &rule.non_resource_urls;
    (!paths.is_empty()).then(|| json!({"verbs": rule.verbs, "nonResourceURLs": paths}))
}

/// The value without members that are null, which say the same as absent ones.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(fields.map(|(field, value)| (field, without_nulls(value))).collect())
        }
        other => other,
    }
}
