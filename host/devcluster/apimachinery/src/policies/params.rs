//! The parameters of a binding.

use serde_json::Value;

use crate::{
    policies::{
        cluster::{Cluster, ParamScope},
        model::{ParamKind, ParamRef, ParameterNotFoundAction},
    },
    schema::GroupVersionKind,
};

/// The parameters of a binding cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// The kind is not served.
    #[error("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")]
    UnknownKind {
        /// The group.
        group: String,
        /// The version.
        version: String,
        /// The kind.
        kind: String,
    },
    /// A namespace is needed.
    #[error("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")]
    NoNamespace,
    /// A namespace makes no sense.
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    Namespace,
    /// There is none.
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    NotFound,
    /// Neither a name nor a selector.
    #[error("one of name or selector must be provided")]
    NoReference,
}

/// The kind of a policy's parameters, and where they live; `None` without one.
///
/// # Errors
/// If the kind is not served.
pub fn kind(
    kind: Option<&ParamKind>,
    cluster: &dyn Cluster,
) -> Result<Option<(GroupVersionKind, ParamScope)>, ParamError> {
    let Some(kind) = kind else { return Ok(None) };
    let kind = GroupVersionKind::from_api_version(&kind.api_version, &kind.kind);
    match cluster.scope(&kind) {
        Some(scope) => Ok(Some((kind, scope))),
        None => Err(ParamError::UnknownKind { group: kind.group, version: kind.version, kind: kind.kind }),
    }
}

/// Calls a function with each parameter of a binding, until it returns `false`; once without any if the policy has no parameters or the
/// binding names none.
///
/// # Errors
/// If the reference does not fit the kind, and if there is no parameter and the binding requires one.
pub fn each(
    kind: Option<&(GroupVersionKind, ParamScope)>,
    reference: Option<&ParamRef>,
    namespace: &str,
    cluster: &dyn Cluster,
    each: &mut dyn FnMut(Option<&Value>) -> bool,
) -> Result<(), ParamError> {
    let (Some((kind, scope)), Some(reference)) = (kind, reference) else {
        each(None);
        return Ok(());
    };
    let namespace = match scope {
        ParamScope::Cluster if !reference.namespace.is_empty() => return Err(ParamError::Namespace),
        ParamScope::Cluster => None,
        ParamScope::Namespaced if !reference.namespace.is_empty() => Some(reference.namespace.as_str()),
        ParamScope::Namespaced if namespace.is_empty() => return Err(ParamError::NoNamespace),
        ParamScope::Namespaced => Some(namespace),
    };
    let mut found = false;
    if !reference.name.is_empty() {
        if let Some(object) = cluster.object(kind, namespace.unwrap_or_default(), &reference.name) {
            found = true;
            each(Some(&object));
        }
    } else if let Some(selector) = &reference.selector {
        cluster.objects(kind, namespace, selector, &mut |object| {
            found = true;
            each(Some(object))
        });
    } else {
        return Err(ParamError::NoReference);
    }
    if !found && reference.parameter_not_found_action == Some(ParameterNotFoundAction::Deny) {
        return Err(ParamError::NotFound);
    }
    Ok(())
}
