//! Impersonation of a ServiceAccount.

use chandler_permissions::Account;
use http::{HeaderName, HeaderValue, Request};
use kube::{Client, client::Body};

use crate::{
    client::{
        cluster::Cluster,
        recent_answers::{Annotations, Purpose, RecentAnswers},
    },
    pure::{
        error::{ApiError, RolloutError},
        owner::Owner,
    },
};

/// The header that names the impersonated user.
///
/// The groups of the account are not sent: the API server knows them, and impersonating groups would require another permission
/// of the controller.
const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");

/// A client that impersonates a ServiceAccount in every request, over the connections and with the credentials of another
/// client. That client must be allowed to `impersonate` the account.
///
/// # Errors
/// If the name of the account is not valid in a header.
pub fn impersonating(client: &Client, account: &Account) -> Result<Client, ApiError> {
    let user = HeaderValue::from_str(&account.user())
        .map_err(|_| ApiError::Refused(format!("{account} is not the name of a ServiceAccount")))?;
    let inner = client.clone();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let inner = inner.clone();
        request.headers_mut().insert(IMPERSONATE_USER, user.clone());
        async move { inner.send(request).await }
    });
    Ok(Client::new(service, client.default_namespace()))
}

/// The client for the objects of an owner: it impersonates the ServiceAccount that the owner names, which must exist and grant its use,
/// or have done so some seconds ago; without one it uses the controller's rights.
pub(crate) async fn actor(
    own: &Cluster,
    recent: &RecentAnswers,
    owner: &Owner,
    purpose: Purpose,
) -> Result<Cluster, RolloutError> {
    let Some(account) = &owner.account else { return Ok(own.clone()) };
    let found = recent.account(own, account, purpose).await;
    if let (Ok(Some(annotations)), Some(grant)) = (&found, &owner.account_grant)
        && !grant.allows(annotations).await
    {
        // The annotation may have been added a moment ago.
        recent.forget_account(account);
        return Err(RolloutError::ServiceAccountNotGranted { account: account.clone(), wanted: grant.wanted() });
    }
    impersonated(own, owner, account, found)
}

/// Asks about the account of an owner again before something is written.
#[derive(Clone, Copy)]
pub(crate) struct Confirmation<'a> {
    pub(crate) own: &'a Cluster,
    pub(crate) recent: &'a RecentAnswers,
    pub(crate) owner: &'a Owner,
}

impl Confirmation<'_> {
    /// Fails if the account does not exist, or does not grant its use.
    pub(crate) async fn confirm(&self) -> Result<(), RolloutError> {
        actor(self.own, self.recent, self.owner, Purpose::Write).await.map(drop)
    }

    /// Fails if the account does not exist now.
    pub(crate) async fn confirm_now(&self) -> Result<(), RolloutError> {
        actor_of_deletion(self.own, self.recent, self.owner, Purpose::Write).await.map(drop)
    }
}

/// Like [`actor`], for a deletion, which cannot be undone: the ServiceAccount must exist now. It creates nothing, and needs no
/// grant. A deletion that waits asks [again](Confirmation::confirm_now) before it writes.
pub(crate) async fn actor_of_deletion(
    own: &Cluster,
    recent: &RecentAnswers,
    owner: &Owner,
    purpose: Purpose,
) -> Result<Cluster, RolloutError> {
    let Some(account) = &owner.account else { return Ok(own.clone()) };
    let found = match purpose {
        Purpose::Write => recent.account_now(own, account).await,
        Purpose::Wait => recent.account(own, account, Purpose::Wait).await,
    };
    impersonated(own, owner, account, found)
}

fn impersonated(
    own: &Cluster,
    owner: &Owner,
    account: &Account,
    found: Result<Option<Annotations>, ApiError>,
) -> Result<Cluster, RolloutError> {
    let about = |error| RolloutError::Request { action: format!("act as ServiceAccount {account}"), error };
    if found.map_err(about)?.is_none() {
        return Err(RolloutError::ServiceAccountNotFound(account.clone()));
    }
    own.on_behalf_of(account, &owner.name).map_err(about)
}
