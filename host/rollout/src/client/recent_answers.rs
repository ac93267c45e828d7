//! What was asked about ServiceAccounts and namespaces some seconds ago: that they exist, and what an account may do.
//!
//! Only that something exists is remembered, never that it does not. The API server authorizes every request itself; these
//! answers decide what is reported early, and the permissions that no API server checks (delegations). So a permission, an
//! account or a namespace that is gone may count as present for [`LIFETIME`], and never longer when a call begins to write. A rollout that
//! waits reads its objects on behalf of an account that existed up to [`WAITING`] ago.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chandler_permissions::{Account, ReviewedRules, Scope};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::{Resource, api::ApiResource};
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, recent::Recent},
    pure::error::{ApiError, RolloutError},
};

/// What the annotations of Chandler begin with.
const OURS: &str = "chandler.dev/";
/// How long an answer is used.
const LIFETIME: Duration = Duration::from_secs(5);
/// How long a rollout that waits, and writes nothing, uses what it knows of its account.
const WAITING: Duration = Duration::from_mins(1);
/// How many accounts, namespaces and single access reviews are remembered.
const NAMES: usize = 4096;
/// How many texts of rules are remembered, of all accounts and scopes together.
const RULES: usize = 200_000;

/// The answers, for all owners.
pub(crate) struct RecentAnswers {
    accounts: Recent<Account, Annotations>,
    namespaces: Recent<String, ()>,
    /// The rules of an account in a scope.
    pub(crate) rules: Recent<(Account, Scope), Arc<ReviewedRules>>,
    /// Whether an account is allowed what these attributes describe.
    pub(crate) access: Recent<(Account, String), bool>,
}

impl Default for RecentAnswers {
    fn default() -> Self {
        Self {
            accounts: Recent::new(LIFETIME, NAMES, |_| 1).keeping(WAITING),
            namespaces: Recent::new(LIFETIME, NAMES, |()| 1),
            rules: Recent::new(LIFETIME, RULES, |rules| rules.texts().saturating_add(1)),
            access: Recent::new(LIFETIME, NAMES, |_| 1),
        }
    }
}

impl RecentAnswers {
    /// The annotations of a ServiceAccount, or `None` if it does not exist. Before a write they are at most [`LIFETIME`] old.
    pub(crate) async fn account(
        &self,
        own: &Cluster,
        account: &Account,
        purpose: Purpose,
    ) -> Result<Option<Annotations>, ApiError> {
        let ask = annotations(own, account);
        let answer = match purpose {
            Purpose::Write => self.accounts.get(account, ask).await?,
            Purpose::Wait => self.accounts.get_kept(account, ask).await?,
        };
        if answer.as_ref().is_some_and(|answer| !answer.reused) {
            // So does its namespace.
            self.namespaces.get(&account.namespace, async { Ok::<_, ApiError>(Some(())) }).await?;
        }
        Ok(answer.map(|answer| answer.value))
    }

    /// The annotations of a ServiceAccount now, or `None` if it does not exist.
    pub(crate) async fn account_now(&self, own: &Cluster, account: &Account) -> Result<Option<Annotations>, ApiError> {
        self.accounts.forget(|known| known == account);
        self.account(own, account, Purpose::Write).await
    }

    /// Whether a namespace exists.
    pub(crate) async fn namespace_exists(&self, own: &Cluster, name: &str) -> Result<bool, ApiError> {
        Ok(self.namespaces.get(&name.to_owned(), exists::<Namespace>(own, name)).await?.is_some())
    }

    /// Forgets what an account may do.
    pub(crate) fn forget_reviews(&self, account: &Account) {
        self.rules.forget(|(reviewed, _)| reviewed == account);
        self.access.forget(|(reviewed, _)| reviewed == account);
    }

    /// Forgets an account, and what it may do: one of its requests was forbidden.
    pub(crate) fn forget_account(&self, account: &Account) {
        self.accounts.forget(|known| known == account);
        self.forget_reviews(account);
    }

    /// Forgets a namespace: it may be gone, or terminating.
    pub(crate) fn forget_namespace(&self, name: &str) {
        self.namespaces.forget(|known| known == name);
    }

    /// Forgets what an error casts doubt on.
    pub(crate) fn doubt(&self, account: Option<&Account>, error: &RolloutError) {
        if let Some(account) = account.filter(|_| error.is_forbidden()) {
            self.forget_account(account);
        }
        let RolloutError::Objects(failures) = error else { return };
        // A terminating namespace forbids that objects are created.
        let doubted = failures
            .iter()
            .filter(|failure| matches!(failure.error, ApiError::NotFound(_) | ApiError::Forbidden(_)))
            .filter_map(|failure| failure.object.namespace.as_deref());
        doubted.for_each(|namespace| self.forget_namespace(namespace));
    }
}

/// What an account is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A rollout may write.
    Write,
    /// A rollout that began looks at what it waits for. Before it writes, it asks again.
    Wait,
}

/// The annotations of an object.
pub(crate) type Annotations = Arc<BTreeMap<String, String>>;

/// Reads the annotations of a ServiceAccount. Only Chandler's are kept.
pub(crate) async fn annotations(own: &Cluster, account: &Account) -> Result<Option<Annotations>, ApiError> {
    let resource = ApiResource::erase::<ServiceAccount>(&());
    let found = own.get(&resource, Some(&account.namespace), &account.name).await?;
    Ok(found.map(|found| {
        let all = found.pointer("/metadata/annotations").and_then(Value::as_object).into_iter().flatten();
        let ours = all.filter(|(name, _)| name.starts_with(OURS));
        Arc::new(ours.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect())
    }))
}

async fn exists<K: Resource<DynamicType = ()>>(own: &Cluster, name: &str) -> Result<Option<()>, ApiError> {
    let found = own.get(&ApiResource::erase::<K>(&()), None, name).await?;
    Ok(found.map(drop))
}
