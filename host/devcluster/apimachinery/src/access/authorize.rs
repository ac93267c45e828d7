//! The decision on a request, and all the rules of a user.

use crate::access::{
    attributes::Attributes,
    policy::{MissingRole, Policies, Source},
    rule::PolicyRule,
    user::User,
};

/// The decision on a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Why, as reviews show it; often empty.
    pub reason: String,
}

/// Decides whether a user may do something.
///
/// Members of `system:masters` may do everything; nothing is looked up for them.
pub fn authorize<P: Policies + ?Sized>(policies: &P, user: &User, attributes: &Attributes) -> Decision {
    if user.is_privileged() {
        return Decision { allowed: true, reason: String::new() };
    }
    let mut missing = Vec::new();
    for grant in grants(policies, user, attributes.namespace()) {
        match grant {
            Ok((source, rule)) if rule.allows(attributes) => {
                return Decision { allowed: true, reason: format!("RBAC: allowed by {source}") };
            }
            Ok(_) => {}
            Err(role) => missing.push(role),
        }
    }
    let reason = together(&missing).map(|errors| format!("RBAC: {errors}")).unwrap_or_default();
    Decision { allowed: false, reason }
}

/// The rules that a user has, and what could not be resolved.
#[derive(Clone, Debug, Default)]
pub struct Rules<'a> {
    /// The rules; ClusterRoleBindings' rules come first.
    pub rules: Vec<&'a PolicyRule>,
    /// Roles that are bound and do not exist, as text; `None` when there are none.
    pub errors: Option<String>,
}

/// All rules of a user in a namespace; with an empty one those that hold in the whole cluster. What `system:masters` may do
/// is not among them, except through bindings.
pub fn rules_for<'a, P: Policies + ?Sized>(policies: &'a P, user: &'a User, namespace: &'a str) -> Rules<'a> {
    let (mut rules, mut missing) = (Vec::new(), Vec::new());
    for grant in grants(policies, user, namespace) {
        match grant {
            Ok((_, rule)) => rules.push(rule),
            Err(role) => missing.push(role),
        }
    }
    Rules { rules, errors: together(&missing) }
}

/// Every rule that a user has, with the binding it comes through; an error for each bound role that does not exist.
fn grants<'a, P: Policies + ?Sized>(
    policies: &'a P,
    user: &'a User,
    namespace: &'a str,
) -> impl Iterator<Item = Result<(Source<'a>, &'a PolicyRule), MissingRole>> {
    let local = if namespace.is_empty() { &[] } else { policies.role_bindings(namespace) };
    policies.cluster_role_bindings().iter().chain(local).flat_map(move |binding| {
        let subject = binding.subject(user);
        let role = subject.map(|subject| (subject, policies.referenced(&binding.role, &binding.namespace)));
        let (rules, missing) = match role {
            None => (None, None),
            Some((subject, Ok(role))) => (Some((Source { binding, subject }, &role.rules)), None),
            Some((_, Err(missing))) => (None, Some(Err(missing))),
        };
        let rules = rules.into_iter().flat_map(|(source, rules)| rules.iter().map(move |rule| Ok((source, rule))));
        rules.chain(missing)
    })
}

/// Errors as one text: several are in brackets, without duplicates.
fn together(missing: &[MissingRole]) -> Option<String> {
    let mut texts: Vec<String> = Vec::new();
    for text in missing.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
