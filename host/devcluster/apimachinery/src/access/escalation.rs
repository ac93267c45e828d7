//! Users cannot grant permissions that they do not hold (`k8s.io/kubernetes/pkg/registry/rbac`).
//!
//! A user who writes a role must hold all its rules or be allowed to `escalate`; a user who writes a binding must hold all rules of the
//! role or be allowed to `bind` it. Members of `system:masters` may do both.

use crate::access::{
    attributes::{Attributes, ResourceAttributes},
    authorize::{authorize, rules_for},
    cover::{compact, uncovered},
    policy::{GROUP, MissingRole, Policies, Role, RoleRef},
    quote::{quote, quote_all},
    rule::PolicyRule,
    user::User,
};

/// Why a role or binding may not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EscalationError {
    /// Permissions would be granted that the user does not hold; the text names them.
    #[error("{0}")]
    NotHeld(String),
    /// An aggregation rule can gather any rule.
    #[error("must have cluster-admin privileges to use the aggregationRule")]
    AggregationRule,
    /// The role of a binding does not exist.
    #[error(transparent)]
    MissingRole(#[from] MissingRole),
}

/// Where a role is written, and as what.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// `roles` or `clusterroles`.
    pub resource: &'a str,
    /// The namespace; empty for ClusterRoles.
    pub namespace: &'a str,
    /// The name in the request's path; empty when an object is created by `POST`.
    pub name: &'a str,
}

/// Checks that a user may write a role; `old` is its state before.
///
/// # Errors
/// When rules would be granted that the user does not hold.
pub fn confirm_role<P: Policies + ?Sized>(
    policies: &P,
    user: &User,
    place: Place<'_>,
    new: &Role,
    old: Option<&Role>,
) -> Result<(), EscalationError> {
    if user.is_privileged() || may(policies, user, "escalate", place) {
        return Ok(());
    }
    confirm_held(policies, user, place.namespace, &new.rules)?;
    if new.aggregates || old.is_some_and(|old| old.aggregates) {
        confirm_held(policies, user, place.namespace, &[PolicyRule::everything(), PolicyRule::every_path()])
            .map_err(|_| EscalationError::AggregationRule)?;
    }
    Ok(())
}

/// Checks that a user may bind a role in a namespace; an empty one means the whole cluster.
///
/// # Errors
/// When the role does not exist, or the user does not hold all of it.
pub fn confirm_binding<P: Policies + ?Sized>(
    policies: &P,
    user: &User,
    role: &RoleRef,
    namespace: &str,
) -> Result<(), EscalationError> {
    let resource = match role.kind.as_str() {
        "ClusterRole" => Some("clusterroles"),
        "Role" => Some("roles"),
        _ => None,
    };
    let may_bind = |resource| {
        let attributes = attributes("bind", &role.api_group, Place { resource, namespace, name: &role.name });
        authorize(policies, user, &attributes).allowed
    };
    if user.is_privileged() || resource.is_some_and(may_bind) {
        return Ok(());
    }
    confirm_held(policies, user, namespace, &policies.referenced(role, namespace)?.rules)
}

fn may<P: Policies + ?Sized>(policies: &P, user: &User, verb: &str, place: Place<'_>) -> bool {
    authorize(policies, user, &attributes(verb, GROUP, place)).allowed
}

fn attributes(verb: &str, group: &str, place: Place<'_>) -> Attributes {
    Attributes::Resource(ResourceAttributes {
        namespace: place.namespace.to_owned(),
        verb: verb.to_owned(),
        group: group.to_owned(),
        version: "*".to_owned(),
        resource: place.resource.to_owned(),
        subresource: String::new(),
        name: place.name.to_owned(),
    })
}

/// Checks that a user holds rules in a namespace.
fn confirm_held<P: Policies + ?Sized>(
    policies: &P,
    user: &User,
    namespace: &str,
    wanted: &[PolicyRule],
) -> Result<(), EscalationError> {
    let held = rules_for(policies, user, namespace);
    let missing = uncovered(&held.rules, wanted);
    if missing.is_empty() {
        return Ok(());
    }
    let mut shown: Vec<String> = compact(missing).iter().map(ToString::to_string).collect();
    shown.sort_unstable();
    shown.dedup();
    let unresolved = held.errors.map(|errors| format!("; resolution errors: [{errors}]")).unwrap_or_default();
    Err(EscalationError::NotHeld(format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}{unresolved}",
        quote(&user.name),
        quote_all(&user.groups),
        shown.join("\n"),
    )))
}
