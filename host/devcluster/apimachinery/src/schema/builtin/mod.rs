//! What kube-apiserver does to built-in kinds beyond their types: defaults and validation.
//!
//! Validated beyond types, required fields and quantities:
//!
//! | kinds | rules |
//! |---|---|
//! | Deployment, StatefulSet, DaemonSet, ReplicaSet | selector present, matches the template, immutable; restart policy; StatefulSet fields that may change |
//! | Pod and every pod template | containers present and named uniquely, images, ports, mounts that name volumes; which fields of a Pod may change |
//! | Job, CronJob | restart policy, immutable template, schedule |
//! | Service | ports, type, `clusterIP` immutable |
//! | ConfigMap, Secret | keys, size, `immutable`, Secret type immutable |
//! | PersistentVolumeClaim, StorageClass, PriorityClass | access modes and size, immutable fields |
//! | Role, ClusterRole and bindings | verbs, subjects, `roleRef` immutable |
//! | ValidatingAdmissionPolicies and bindings | all but their expressions, see [`policies`](crate::policies) |
//! | webhook configurations, PodDisruptionBudget, HorizontalPodAutoscaler, Ingress | required and exclusive fields |
//! | CustomResourceDefinition | [`crate::schema::validate_crd`] |
//!
//! Other checks of kube-apiserver are not implemented.

mod access;
mod admission;
mod configuration;
mod decode;
mod defaults;
mod immutable;
mod pod;
mod required;
mod rules;
mod service;
mod storage;
mod warnings;
mod workload;

use serde_json::Value;

pub use decode::decode_error;
pub use defaults::default;
pub use warnings::warnings;

use crate::schema::{
    crd::validate_crd,
    error::{ErrorType, FieldError},
    path::FieldPath,
    registry::Builtins,
    resources::GroupVersionKind,
    validate::validate as validate_type,
    webhook,
};

/// Validates an object of a built-in kind: its type and the rules beyond it; `old` is the stored object of an update.
///
/// Defaults must be filled in. Wrong types come back alone, as [`ErrorType::TypeInvalid`]: kube-apiserver cannot even decode such an
/// object and answers 400 instead of 422.
pub fn validate(kind: &GroupVersionKind, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Some(resource) = Builtins::get().kind(kind) else { return Vec::new() };
    let typed = validate_type(&resource.schema, new, None);
    if typed.iter().any(|error| error.error_type == ErrorType::TypeInvalid) {
        return typed.into_iter().filter(|error| error.error_type == ErrorType::TypeInvalid).collect();
    }
    let mut errors: Vec<FieldError> = typed.into_iter().filter(|error| required::counts(kind, error)).collect();
    let root = FieldPath::Root;
    let spec = root.field("spec");
    let new_spec = new.get("spec").unwrap_or(&Value::Null);
    let old_spec = old.map(|old| old.get("spec").unwrap_or(&Value::Null));
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", kind) => workload::controller(kind, new_spec, old_spec, &spec, &mut errors),
        ("batch", "Job") => workload::job(new_spec, old_spec, &spec, &mut errors),
        ("batch", "CronJob") => workload::cron_job(new_spec, &spec, &mut errors),
        ("", "Pod") => pod::pod(new_spec, old_spec, &spec, &mut errors),
        ("", "PodTemplate") => pod::alone(new, &root, &mut errors),
        ("", "Service") => service::service(new_spec, old_spec, &spec, &mut errors),
        ("", "ConfigMap" | "Secret") => storage::data(&kind.kind, new, old, &mut errors),
        ("", "PersistentVolumeClaim") => storage::claim(new_spec, old_spec, &spec, &mut errors),
        ("storage.k8s.io", "StorageClass") => {
            let fields = ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"];
            immutable::fields(&fields, new, old, &root, "updates to {} are forbidden.", &mut errors);
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            immutable::fields(
                &["value", "preemptionPolicy"],
                new,
                old,
                &root,
                "may not be changed in an update.",
                &mut errors,
            );
        }
        ("rbac.authorization.k8s.io", kind) => access::rbac(kind, new, old, &mut errors),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            webhook::configuration(new, &mut errors);
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            admission::policy(new, new_spec, &spec, &mut errors);
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            admission::binding(new_spec, &spec, &mut errors);
        }
        ("policy", "PodDisruptionBudget") => configuration::disruption_budget(new_spec, &spec, &mut errors),
        ("autoscaling", "HorizontalPodAutoscaler") => configuration::autoscaler(new_spec, &spec, &mut errors),
        ("networking.k8s.io", "Ingress") => configuration::ingress(new_spec, &spec, &mut errors),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => errors.extend(validate_crd(new, old)),
        _ => {}
    }
    rules::check(kind, new, &mut errors);
    without_repeated_required(errors)
}

/// Of several errors about one missing field, keeps the most specific one.
fn without_repeated_required(errors: Vec<FieldError>) -> Vec<FieldError> {
    let mut kept: Vec<FieldError> = Vec::with_capacity(errors.len());
    for error in errors {
        let same = |seen: &&mut FieldError| {
            seen.field == error.field
                && seen.error_type == ErrorType::Required
                && error.error_type == ErrorType::Required
        };
        match kept.iter_mut().find(same) {
            Some(seen) if seen.detail.is_empty() => *seen = error,
            Some(_) => {}
            None => kept.push(error),
        }
    }
    kept
}

#[cfg(test)]
mod tests;
