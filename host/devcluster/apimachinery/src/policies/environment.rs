//! The variables of expressions and their types.

use chandler_expression::check::{Declarations, Type, UndefinedField};

/// The fields of `request` with their types.
const REQUEST: &[(&str, Type)] = &[
    ("dryRun", Type::Bool),
    ("kind", Type::Other),
    ("name", Type::String),
    ("namespace", Type::String),
    ("operation", Type::String),
    ("options", Type::Dynamic),
    ("requestKind", Type::Other),
    ("requestResource", Type::Other),
    ("requestSubResource", Type::String),
    ("resource", Type::Other),
    ("subResource", Type::String),
    ("userInfo", Type::Other),
];
const NAMESPACE: &[&str] = &["metadata", "spec", "status"];
/// The functions of `authorizer`, with what they return.
const AUTHORIZER: &[(&str, Type)] = &[
    ("allowed", Type::Bool),
    ("check", Type::Other),
    ("error", Type::String),
    ("errored", Type::Bool),
    ("fieldSelector", Type::Other),
    ("group", Type::Other),
    ("labelSelector", Type::Other),
    ("name", Type::Other),
    ("namespace", Type::Other),
    ("path", Type::Other),
    ("reason", Type::String),
    ("resource", Type::Other),
    ("serviceAccount", Type::Other),
    ("subresource", Type::Other),
];

/// What an expression of a policy may use.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// Whether the policy has parameters.
    pub params: bool,
    /// Whether it may ask the authorizer.
    pub authorizer: bool,
    /// The composed variables that are known by now, with their types; `None` if the expression may use none.
    pub variables: Option<&'a [(String, Type)]>,
}

impl Declarations for Environment<'_> {
    fn variable(&self, name: &str) -> Option<Type> {
        match name {
            "object" | "oldObject" => Some(Type::Dynamic),
            "request" | "namespaceObject" => Some(Type::Other),
            "params" if self.params => Some(Type::Dynamic),
            "authorizer" if self.authorizer => Some(Type::Other),
            _ => None,
        }
    }

    fn field(&self, variable: &str, field: &str) -> Option<Result<Type, UndefinedField>> {
        let listed = |fields: &[(&str, Type)]| fields.iter().find(|(name, _)| *name == field).map(|(_, found)| *found);
        let found = match variable {
            "request" => listed(REQUEST),
            "namespaceObject" => NAMESPACE.contains(&field).then_some(Type::Other),
            "authorizer" if self.authorizer => (field == "requestResource").then_some(Type::Other),
            "variables" => {
                let (_, found) = self.variables?.iter().rev().find(|(name, _)| name == field).cloned().unzip();
                found
            }
            _ => return None,
        };
        Some(found.ok_or(UndefinedField))
    }

    fn function(&self, name: &str) -> Option<Type> {
        AUTHORIZER.iter().find(|(function, _)| *function == name).map(|(_, returned)| *returned)
    }
}
