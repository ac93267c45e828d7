//! How much evaluation may cost, in the unit of [`chandler_expression::Meter`]. The limits are kube-apiserver's
//! (`k8s.io/apiserver/pkg/apis/cel`), except for the last two.

/// One expression, and each variable that it uses.
pub const EXPRESSION: u64 = 1_000_000;
/// The expressions of a policy, for one binding and one parameter.
pub const POLICY: u64 = 10_000_000;
/// The match conditions of a policy.
pub const MATCH_CONDITIONS: u64 = 2_500_000;
/// A decision of the authorizer.
pub const AUTHORIZATION: u64 = 350_000;
/// The longest result of a `messageExpression`, in bytes.
pub const MESSAGE_BYTES: usize = 5 * 1024;
/// All policies, bindings and parameters of one request.
pub const REQUEST: u64 = 50_000_000;
/// How deep the expressions of a policy may nest, with the variables that they use.
pub const DEPTH: u32 = 4_000;

/// What it costs to make a value of an object.
pub fn size(object: &serde_json::Value) -> u64 {
    use serde_json::Value;
    let text = |text: &str| u64::try_from(text.len() / 10).unwrap_or(u64::MAX);
    let inside = match object {
        Value::String(value) => text(value),
        Value::Array(list) => list.iter().map(size).sum(),
        Value::Object(fields) => fields.iter().map(|(name, field)| text(name) + size(field)).sum(),
        _ => 0,
    };
    1 + inside
}
