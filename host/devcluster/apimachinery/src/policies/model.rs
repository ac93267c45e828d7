//! Policies and bindings as they are stored (`admissionregistration.k8s.io/v1`).

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What an error in a policy means for the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum FailurePolicy {
    /// It is denied.
    #[default]
    Fail,
    /// The policy is ignored.
    Ignore,
}

/// `spec` of a ValidatingAdmissionPolicy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PolicySpec {
    /// What an error means.
    #[serde(deserialize_with = "null_is_default")]
    pub failure_policy: FailurePolicy,
    /// The kind of the parameters.
    pub param_kind: Option<ParamKind>,
    /// Which requests the policy is about.
    pub match_constraints: Option<MatchResources>,
    /// Further conditions.
    #[serde(deserialize_with = "null_is_default")]
    pub match_conditions: Vec<MatchCondition>,
    /// Composed variables.
    #[serde(deserialize_with = "null_is_default")]
    pub variables: Vec<Variable>,
    /// What must hold.
    #[serde(deserialize_with = "null_is_default")]
    pub validations: Vec<Validation>,
    /// What the audit log would say.
    #[serde(deserialize_with = "null_is_default")]
    pub audit_annotations: Vec<AuditAnnotation>,
}

/// The kind of parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParamKind {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

/// A named condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct MatchCondition {
    /// The name.
    pub name: String,
    /// The expression.
    pub expression: String,
}

/// A composed variable, `variables.<name>`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The expression.
    pub expression: String,
}

/// An expression that must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Validation {
    /// The expression.
    pub expression: String,
    /// The message if it does not hold.
    #[serde(deserialize_with = "null_is_default")]
    pub message: String,
    /// An expression for the message.
    #[serde(deserialize_with = "null_is_default")]
    pub message_expression: String,
    /// The reason in the response.
    pub reason: Option<String>,
}

/// An annotation of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuditAnnotation {
    /// The key.
    pub key: String,
    /// The expression.
    pub value_expression: String,
}

/// `spec` of a ValidatingAdmissionPolicyBinding.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BindingSpec {
    /// The bound policy.
    pub policy_name: String,
    /// The parameters.
    pub param_ref: Option<ParamRef>,
    /// Limits what the policy is about.
    pub match_resources: Option<MatchResources>,
    /// What happens if a validation does not hold.
    #[serde(deserialize_with = "null_is_default")]
    pub validation_actions: Vec<ValidationAction>,
}

/// What happens if a validation does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ValidationAction {
    /// The request is denied.
    Deny,
    /// The response has a warning.
    Warn,
    /// The audit log has an annotation.
    Audit,
}

/// The parameters of a binding.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParamRef {
    /// One by name.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// The namespace; empty means the request's.
    #[serde(deserialize_with = "null_is_default")]
    pub namespace: String,
    /// Several by labels.
    pub selector: Option<LabelSelector>,
    /// What no parameter means.
    pub parameter_not_found_action: Option<ParameterNotFoundAction>,
}

/// What no parameter means for the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum ParameterNotFoundAction {
    /// The policy is ignored.
    Allow,
    /// It is an error.
    Deny,
}

/// Which requests a policy or binding is about.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MatchResources {
    /// The labels of the namespace.
    #[serde(deserialize_with = "null_is_default")]
    pub namespace_selector: LabelSelector,
    /// The labels of the object, before or after.
    #[serde(deserialize_with = "null_is_default")]
    pub object_selector: LabelSelector,
    /// One of these must fit; in bindings none means all.
    #[serde(deserialize_with = "null_is_default")]
    pub resource_rules: Vec<NamedRule>,
    /// None of these may fit.
    #[serde(deserialize_with = "null_is_default")]
    pub exclude_resource_rules: Vec<NamedRule>,
    /// Whether requests for other versions of a resource fit.
    pub match_policy: Option<MatchPolicy>,
}

/// Whether rules are about other versions of their resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum MatchPolicy {
    /// They are not.
    Exact,
    /// They are.
    Equivalent,
}

/// A rule with names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NamedRule {
    /// The names; none means all.
    #[serde(deserialize_with = "null_is_default")]
    pub resource_names: Vec<String>,
    /// `CREATE`, `UPDATE`, `DELETE`, `CONNECT` or `*`.
    #[serde(deserialize_with = "null_is_default")]
    pub operations: Vec<String>,
    /// Groups, or `*`.
    #[serde(deserialize_with = "null_is_default")]
    pub api_groups: Vec<String>,
    /// Versions, or `*`.
    #[serde(deserialize_with = "null_is_default")]
    pub api_versions: Vec<String>,
    /// Resources with their subresources: `pods`, `pods/*`, `*/status`, `*/*`.
    #[serde(deserialize_with = "null_is_default")]
    pub resources: Vec<String>,
    /// `Cluster`, `Namespaced` or `*`.
    pub scope: Option<String>,
}

/// A label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that must be there.
    #[serde(deserialize_with = "null_is_default")]
    pub match_labels: BTreeMap<String, String>,
    /// What else must hold.
    #[serde(deserialize_with = "null_is_default")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// The condition on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LabelRequirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Its values.
    #[serde(deserialize_with = "null_is_default")]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether it selects an object.
    pub fn selects(&self, object: &Value) -> bool {
        self.selects_labels(|key| object.get("metadata")?.get("labels")?.get(key)?.as_str())
    }

    /// Whether it selects an object with these labels.
    pub fn selects_labels<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.match_labels.iter().all(|(key, value)| label(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.holds(label(&requirement.key)))
    }
}

impl LabelRequirement {
    fn holds(&self, label: Option<&str>) -> bool {
        let listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator.as_str() {
            "In" => label.is_some_and(listed),
            "NotIn" => !label.is_some_and(listed),
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            _ => false,
        }
    }
}

/// A null member means the same as an absent one.
fn null_is_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The `spec` of an object.
///
/// # Errors
/// If it is not of the type.
pub fn read_spec<T: for<'de> Deserialize<'de> + Default>(object: &Value) -> Result<T, serde_json::Error> {
    object.get("spec").map_or_else(|| Ok(T::default()), T::deserialize)
}
