//! All policies about one request.

use std::sync::{Arc, OnceLock};

use cel::Value;
use chandler_expression::{json::to_value, on_large_stack};

use crate::policies::{
    activation::Inputs,
    attributes::Attributes,
    authorizer,
    cluster::Cluster,
    compile::Compiled,
    evaluation::{Budget, Objection, objections},
    limits,
    matching::{MatchError, Matched, matches},
    model::{FailurePolicy, PolicySpec, ValidationAction},
    params,
    set::{Binding, Policy, PolicySet},
};

/// How deep evaluation may recurse on the caller's stack.
const SHALLOW: u32 = 64;

/// The kinds that no policy is about: those that make policies, so that a policy cannot protect itself, and reviews.
const EXEMPT: &[(&str, &[&str])] = &[
    (
        "admissionregistration.k8s.io",
        &[
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ],
    ),
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    (
        "authorization.k8s.io",
        &["localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
    ),
];

/// A request is denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The message, which names policy and binding.
    pub message: String,
    /// The reason: `Invalid`, `Forbidden` or `RequestEntityTooLarge`.
    pub reason: String,
}

/// What the policies say about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Why it is denied, if it is.
    pub denial: Option<Denial>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// Whether policies are about a resource at all.
pub fn is_exempt(group: &str, plural: &str) -> bool {
    EXEMPT.iter().any(|(exempt, plurals)| *exempt == group && plurals.contains(&plural))
}

/// Evaluates all policies about a request.
pub fn admit(policies: &PolicySet, attributes: &Attributes<'_>, cluster: &dyn Cluster) -> Admission {
    admit_within(Budget::default(), policies, attributes, cluster)
}

/// Evaluates all policies about a request, within a budget for all of them.
pub fn admit_within(
    budget: Budget,
    policies: &PolicySet,
    attributes: &Attributes<'_>,
    cluster: &dyn Cluster,
) -> Admission {
    let mut request = Request { attributes, cluster, budget, own: OnceLock::new(), admission: Admission::default() };
    if !is_exempt(&attributes.resource.group, &attributes.resource.plural) {
        for (policy, bindings) in policies.bound() {
            request.consider(policy, bindings);
        }
    }
    request.admission
}

struct Request<'a> {
    attributes: &'a Attributes<'a>,
    cluster: &'a dyn Cluster,
    budget: Budget,
    /// The object and the stored object in the version of the request.
    own: OnceLock<(Value, Value)>,
    admission: Admission,
}

impl Request<'_> {
    fn consider(&mut self, policy: &Policy, bindings: &[Arc<Binding>]) {
        let spec = match &policy.spec {
            Ok(spec) => spec,
            Err(error) => return self.misconfigured(policy, None, FailurePolicy::Fail, error),
        };
        let matched = spec.match_constraints.as_ref().ok_or(MatchError::NoConstraints);
        let matched = match matched.and_then(|constraints| matches(constraints, self.attributes, self.cluster)) {
            Ok(Some(matched)) => matched,
            Ok(None) => return,
            Err(error) => return self.misconfigured(policy, None, spec.failure_policy, &error.to_string()),
        };
        let kind = match params::kind(spec.param_kind.as_ref(), self.cluster) {
            Ok(kind) => kind,
            Err(error) => return self.misconfigured(policy, None, spec.failure_policy, &error.to_string()),
        };
        let mut inputs = None;
        for binding in bindings {
            let bound = match &binding.spec {
                Ok(bound) => bound,
                Err(error) => {
                    self.misconfigured(policy, Some(binding), spec.failure_policy, error);
                    continue;
                }
            };
            let fits =
                bound.match_resources.as_ref().map(|resources| matches(resources, self.attributes, self.cluster));
            match fits.transpose() {
                Ok(Some(None)) => continue,
                Ok(_) => {}
                Err(error) => {
                    self.misconfigured(policy, Some(binding), spec.failure_policy, &error.to_string());
                    continue;
                }
            }
            if inputs.is_none() {
                inputs = self.inputs(&matched);
            }
            let Some(inputs) = &inputs else {
                let error =
                    format!("failed to convert object version: no conversion to {}", matched.kind.api_version());
                return self.misconfigured(policy, None, spec.failure_policy, &error);
            };
            let mut found = Vec::new();
            let namespace = self.attributes.namespace;
            let collected =
                params::each(kind.as_ref(), bound.param_ref.as_ref(), namespace, self.cluster, &mut |param| {
                    self.budget.take(param.map_or(0, limits::size));
                    let affordable = self.budget.left() > 0;
                    if affordable {
                        found.extend(self.evaluate(policy.compiled(spec), spec, inputs, param));
                    } else if spec.failure_policy == FailurePolicy::Fail {
                        found.push(Objection::out_of_budget());
                    }
                    affordable
                });
            if let Err(error) = collected {
                self.misconfigured(policy, Some(binding), spec.failure_policy, &error.to_string());
                continue;
            }
            for objection in found {
                self.act(policy, binding, &bound.validation_actions, objection);
            }
        }
    }

    /// The objections of a policy. The interpreter recurses, and so gets a large stack where an expression is deep.
    fn evaluate(
        &self,
        compiled: &Compiled,
        spec: &PolicySpec,
        inputs: &Inputs,
        param: Option<&serde_json::Value>,
    ) -> Vec<Objection> {
        let params = param.map_or(Value::Null, to_value);
        let evaluate = || objections(compiled, spec.failure_policy, inputs, &params, self.cluster, &self.budget);
        if compiled.depth <= SHALLOW {
            return evaluate();
        }
        on_large_stack(evaluate).unwrap_or_else(|error| match spec.failure_policy {
            FailurePolicy::Fail => vec![Objection::error(error.to_string())],
            FailurePolicy::Ignore => Vec::new(),
        })
    }

    /// The values of variables; `None` if the object cannot be converted.
    fn inputs(&self, matched: &Matched) -> Option<Inputs> {
        let attributes = self.attributes;
        let (object, old_object) = if matched.resource == attributes.resource {
            let own = |object: Option<&serde_json::Value>| object.map_or(Value::Null, to_value);
            self.own.get_or_init(|| (own(attributes.object), own(attributes.old_object))).clone()
        } else {
            let convert = |object: Option<&serde_json::Value>| match object {
                None => Some(Value::Null),
                Some(object) => {
                    self.cluster.convert(object, &matched.resource, attributes.subresource).as_ref().map(to_value)
                }
            };
            (convert(attributes.object)?, convert(attributes.old_object)?)
        };
        let namespace = (!attributes.namespace.is_empty() && !attributes.is_about_namespaces())
            .then(|| self.cluster.namespace(attributes.namespace));
        Some(Inputs {
            object,
            old_object,
            request: to_value(&attributes.request(&matched.resource, &matched.kind)),
            namespace: namespace.flatten().map_or(Value::Null, |namespace| to_value(&shown_namespace(namespace))),
            authorizer: authorizer::authorizer(attributes.user),
            request_resource: authorizer::request_resource(attributes),
        })
    }

    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, failure: FailurePolicy, error: &str) {
        if failure == FailurePolicy::Fail {
            let what = if binding.is_some() { "binding" } else { "policy" };
            let objection = Objection::error(format!("failed to configure {what}: {error}"));
            self.deny(policy, binding, objection);
        }
    }

    fn act(&mut self, policy: &Policy, binding: &Binding, actions: &[ValidationAction], objection: Objection) {
        if !objection.by_actions {
            return self.deny(policy, Some(binding), objection);
        }
        for action in actions {
            match action {
                ValidationAction::Deny => self.deny(policy, Some(binding), objection.clone()),
                ValidationAction::Warn => {
                    let warning = format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
                        policy.name, binding.name, objection.message
                    );
                    if !self.admission.warnings.contains(&warning) {
                        self.admission.warnings.push(warning);
                    }
                }
                // There is no audit log.
                ValidationAction::Audit => {}
            }
        }
    }

    /// The first denial is the one that is reported.
    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, objection: Objection) {
        if self.admission.denial.is_some() {
            return;
        }
        let bound = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let message =
            format!("ValidatingAdmissionPolicy '{}'{bound} denied request: {}", policy.name, objection.message);
        self.admission.denial = Some(Denial { message, reason: objection.reason });
    }
}

/// The part of a Namespace that expressions see.
fn shown_namespace(mut namespace: serde_json::Value) -> serde_json::Value {
    if let Some(fields) = namespace.as_object_mut() {
        fields.retain(|field, _| matches!(field.as_str(), "metadata" | "spec" | "status"));
    }
    if let Some(metadata) = namespace.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.retain(|field, _| !matches!(field.as_str(), "managedFields" | "ownerReferences"));
    }
    namespace
}
