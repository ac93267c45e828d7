//! Values: the ConfigMaps and Secrets of `spec.valuesFrom`, read on behalf of the account that installs the bundle.
//!
//! They are in the install namespace. Without an account the controller reads them with its own permissions, as it installs the objects;
//! objects of its own namespace, which has the records and pull secrets, must name the BundleDeployment in an annotation.

use std::sync::Arc;

use chandler_api::{BundleDeployment, Reason, ValuesKind};
use chandler_decisions::{account::account, problem::Problem, spec_error::SpecError};
use chandler_permissions::Account;
use chandler_source::{Grantee, api_message};
use chandler_values::{Objects, Problem as ValuesProblem, ReadError, Values, ValuesError};
use kube::ResourceExt as _;

use super::{
    super::preparer::Preparer,
    account::{AccountError, missing, reader},
};
use crate::{
    signals::Signal,
    values::{self, Place},
};

/// The values are unavailable.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadValuesError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The account, or the controller, may not read an object.
    #[error(
        "spec.valuesFrom: {who} may not read {kind} {namespace}/{name}: it needs get, list and watch of {} by this name{hint}",
        .kind.plural()
    )]
    Forbidden { who: String, kind: ValuesKind, namespace: String, name: String, hint: String, by_account: bool },
    #[error("{error}: {message}")]
    Read { error: ReadError, message: String },
    #[error(transparent)]
    Values(#[from] ValuesError),
}

/// Reads the values of a BundleDeployment, and watches their objects from now on.
pub(super) async fn read(preparer: &Arc<Preparer>, deployment: &BundleDeployment) -> Result<Values, ReadValuesError> {
    let (name, spec) = (deployment.name_any(), &deployment.spec);
    let (namespace, references) = (&spec.install_namespace, spec.values_from.as_slice());
    if references.is_empty() {
        let place = Place { namespace: String::new(), account: None };
        preparer.memory.values.watch(&name, place, Objects::default().versions(), |_| std::future::ready(()));
        return Ok(Values::default());
    }
    let account = account(deployment, &preparer.cluster.options.accounts)?;
    let client = reader(preparer, deployment, account.as_ref()).await?;
    let read = chandler_values::read(&client, namespace, references).await;
    let mut objects = read.map_err(|error| refused(error, &name, account.as_ref()))?;
    let place = Place { namespace: namespace.clone(), account: account.clone() };
    preparer.memory.values.watch(&name, place, objects.versions(), |expected| {
        let (preparer, name, namespace) = (Arc::clone(preparer), name.clone(), namespace.clone());
        async move {
            let availability = preparer.cluster.availability.clone();
            values::watch(client, availability, namespace, expected, || {
                preparer.signals.send(Signal::DeploymentInputChanged(&name));
            })
            .await;
        }
    });
    let is_restricted = account.is_none() && *namespace == preparer.cluster.options.system_namespace;
    let grantee = Grantee::BundleDeployment(&name);
    if is_restricted {
        objects.retain(|metadata| grantee.may_name(None, metadata, true));
    }
    let values = Values::resolve(references, namespace, &objects).map_err(|error| match error.problem {
        ValuesProblem::NotFound if is_restricted => {
            let problem = ValuesProblem::NotGranted { annotation: grantee.annotation(), deployment: name.clone() };
            ValuesError { problem, ..error }
        }
        _ => error,
    })?;
    preparer.memory.values.hide(&name, values.redactor(), values.in_use());
    Ok(values)
}

fn refused(error: ReadError, name: &str, account: Option<&Account>) -> ReadValuesError {
    if !error.is_forbidden() {
        let message = api_message(&error.error);
        return ReadValuesError::Read { error, message };
    }
    let ReadError { kind, namespace, name: object, .. } = error;
    let who = account.map_or_else(|| "the controller".to_owned(), |account| format!("ServiceAccount {account}"));
    let hint = account.map(|_| format!("; `chandler rbac {name}` prints roles that grant this")).unwrap_or_default();
    ReadValuesError::Forbidden { who, kind, namespace, name: object, hint, by_account: account.is_some() }
}

impl From<&ReadValuesError> for Problem {
    fn from(error: &ReadValuesError) -> Self {
        let message = error.to_string();
        match error {
            ReadValuesError::Spec(error) => Self::from(error),
            ReadValuesError::Account(error) => Self::from(error),
            ReadValuesError::Forbidden { by_account: false, .. } => {
                Self { needs_grant: true, ..Self::transient(Reason::Forbidden, message) }
            }
            ReadValuesError::Forbidden { kind, namespace, name, .. } => Self {
                needs_grant: true,
                missing_permissions: vec![missing(kind.plural(), &["get", "list", "watch"], namespace, name)],
                ..Self::transient(Reason::PermissionsMissing, message)
            },
            ReadValuesError::Read { .. } => Self::transient(Reason::Retrying, message),
            // The watch of the objects triggers the next try. A missing object may be created at the same moment as the BundleDeployment.
            ReadValuesError::Values(error) if error.problem.is_missing() => {
                Self::transient(Reason::ValuesNotFound, message)
            }
            ReadValuesError::Values(_) => Self::terminal(Reason::InvalidValues, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn forbidden() -> ReadError {
        let status = Status { code: 403, reason: "Forbidden".into(), ..Status::failure("no", "Forbidden") };
        let error = Box::new(kube::Error::Api(Box::new(status)));
        ReadError { kind: ValuesKind::Secret, namespace: "shop".into(), name: "db".into(), error }
    }

    #[test]
    fn what_an_account_may_not_read_is_a_missing_permission() {
        let account = Account { namespace: "shop".into(), name: "deployer".into() };
        let problem = Problem::from(&refused(forbidden(), "harbour", Some(&account)));
        assert_eq!((problem.reason, problem.terminal, problem.needs_grant), (Reason::PermissionsMissing, false, true));
        insta::assert_snapshot!(problem.message, @"spec.valuesFrom: ServiceAccount shop/deployer may not read Secret shop/db: it needs get, list and watch of secrets by this name; `chandler rbac harbour` prints roles that grant this");
        insta::assert_snapshot!(serde_json::to_string(&problem.missing_permissions).unwrap(), @r#"[{"namespace":"shop","rules":[{"apiGroups":[""],"resourceNames":["db"],"resources":["secrets"],"verbs":["get","list","watch"]}]}]"#);
        let problem = Problem::from(&refused(forbidden(), "harbour", None));
        assert_eq!((problem.reason, problem.missing_permissions), (Reason::Forbidden, vec![]));
        insta::assert_snapshot!(problem.message, @"spec.valuesFrom: the controller may not read Secret shop/db: it needs get, list and watch of secrets by this name");
    }

    #[test]
    fn what_is_invalid_waits_for_a_change_and_what_is_missing_may_come() {
        let error = |problem| ValuesError {
            index: 0,
            kind: ValuesKind::ConfigMap,
            object: "shop/base".into(),
            key: None,
            problem,
        };
        for (problem, reason) in [
            (ValuesProblem::NotFound, Reason::ValuesNotFound),
            (ValuesProblem::KeyNotFound { keys: vec![] }, Reason::ValuesNotFound),
            (ValuesProblem::NotText, Reason::InvalidValues),
            (ValuesProblem::NotAMap { found: "array" }, Reason::InvalidValues),
        ] {
            let problem = Problem::from(&ReadValuesError::from(error(problem)));
            assert_eq!((problem.reason, problem.terminal), (reason, reason == Reason::InvalidValues));
        }
    }
}
