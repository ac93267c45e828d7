//! The ServiceAccount on whose behalf objects are read: it must exist, and grant its use.

use chandler_api::{BundleDeployment, BundleSource, MissingPermissions, Reason};
use chandler_decisions::{account::account, problem::Problem, spec_error::SpecError};
use chandler_permissions::Account;
use chandler_rollout::{AccountGrant, RolloutError, impersonating};
use chandler_source::api_message;
use k8s_openapi::api::{core::v1::ServiceAccount, rbac::v1::PolicyRule};
use kube::{Api, Client, ResourceExt as _};

use super::super::preparer::Preparer;

/// Nothing is read on behalf of the ServiceAccount.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccountError {
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// It does not exist: its bindings may still grant something.
    #[error("the ServiceAccount {0} does not exist: create it, or correct spec.serviceAccount")]
    NotFound(Account),
    /// It does not list the BundleDeployment among those that may use it.
    #[error(transparent)]
    NotGranted(RolloutError),
    /// The controller may not act as the account, or the API server does not answer.
    #[error("failed to act as ServiceAccount {account}: {message}")]
    Request { account: Account, message: String },
}

/// Refuses to fetch a source that names Secrets or ConfigMaps of the system namespace for a BundleDeployment whose ServiceAccount does not
/// grant its use: their grants name the BundleDeployment, and another user may have taken that name.
pub(super) async fn may_fetch(
    preparer: &Preparer,
    deployment: &BundleDeployment,
    source: &BundleSource,
) -> Result<(), AccountError> {
    let account = account(deployment, &preparer.cluster.options.accounts)?;
    match account.filter(|_| !source.references().is_empty()) {
        Some(account) => granted(&preparer.cluster.client, &account, &*preparer.grants.asker(deployment)).await,
        None => Ok(()),
    }
}

/// A client that reads what a BundleDeployment names: with the permissions of its account, and without one with the controller's.
pub(super) async fn reader(
    preparer: &Preparer,
    deployment: &BundleDeployment,
    account: Option<&Account>,
) -> Result<Client, AccountError> {
    let own = &preparer.cluster.client;
    let Some(account) = account else { return Ok(own.clone()) };
    granted(own, account, &*preparer.grants.asker(deployment)).await?;
    let failed = |message| AccountError::Request { account: account.clone(), message };
    impersonating(own, account).map_err(|error| failed(error.to_string()))
}

/// The permission for these requests about one object of the core group.
pub(super) fn missing(resource: &str, verbs: &[&str], namespace: &str, name: &str) -> MissingPermissions {
    let rule = PolicyRule {
        api_groups: Some(vec![String::new()]),
        resource_names: Some(vec![name.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    };
    MissingPermissions { namespace: Some(namespace.to_owned()), rules: vec![rule] }
}

async fn granted(own: &Client, account: &Account, grant: &dyn AccountGrant) -> Result<(), AccountError> {
    let accounts = Api::<ServiceAccount>::namespaced(own.clone(), &account.namespace);
    let found = accounts.get_metadata_opt(&account.name).await;
    let failed = |error| AccountError::Request { account: account.clone(), message: api_message(&error) };
    let Some(found) = found.map_err(failed)? else { return Err(AccountError::NotFound(account.clone())) };
    if grant.allows(found.annotations()).await {
        return Ok(());
    }
    let (account, wanted) = (account.clone(), grant.wanted());
    Err(AccountError::NotGranted(RolloutError::ServiceAccountNotGranted { account, wanted }))
}

impl From<&AccountError> for Problem {
    fn from(error: &AccountError) -> Self {
        let reason = match error {
            AccountError::Spec(error) => return Self::from(error),
            AccountError::NotFound(_) => Reason::ServiceAccountNotFound,
            AccountError::NotGranted(error) => error.reason(),
            AccountError::Request { .. } => Reason::Forbidden,
        };
        Self { needs_grant: true, ..Self::transient(reason, error.to_string()) }
    }
}
