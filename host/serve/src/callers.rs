//! Who calls, and what they may do. The API server answers both.

use headers::{Authorization, HeaderMapExt as _, authorization::Bearer};
use http::HeaderMap;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::{places::Caller, refusal::Refusal, server::UploadAccount};

/// The longest token in bytes. Tokens of ServiceAccounts have about a thousand.
const TOKEN_BYTES: usize = 16 << 10;
/// How many reviews are under way at once: a flood of requests without a valid token must not reach the API server.
const REVIEWS: usize = 8;
/// How many requests wait for their reviews.
const WAITING: usize = 256;

/// A user that the API server identified, for further checks of one request.
pub(crate) struct Identified(UserInfo);

/// Checks callers.
pub(crate) struct Callers {
    client: Client,
    under_way: Semaphore,
    waiting: Semaphore,
}

impl Callers {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, under_way: Semaphore::new(REVIEWS), waiting: Semaphore::new(WAITING) }
    }

    /// Checks that the caller may `get` a path, as for the API server's own non-resource paths.
    pub(crate) async fn may_get(&self, headers: &HeaderMap, path: &str) -> Result<Caller, Refusal> {
        let asked = NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
        let asked =
            SubjectAccessReviewSpec { non_resource_attributes: Some(asked), ..SubjectAccessReviewSpec::default() };
        let path = chandler_core::text::printable(path);
        self.may(headers, asked, || {
            format!("get {path}: a ClusterRole with nonResourceURLs [{path:?}] and verbs [get] allows it")
        })
        .await
        .map(|(caller, _)| caller)
    }

    /// Checks that the caller may `update` a BundleDeployment.
    pub(crate) async fn may_update(&self, headers: &HeaderMap, name: &str) -> Result<(Caller, Identified), Refusal> {
        let asked = of_deployment(name, "update");
        self.may(headers, asked, || format!("update bundledeployments {}", chandler_core::text::printable(name))).await
    }

    /// Checks that the caller may have content installed on behalf of this account, or with the permissions of the controller or of its
    /// default account if there is none: what the admission policy `chandler-accounts` demands of a change of the spec. An upload
    /// changes what is installed, and admission does not see it.
    pub(crate) async fn may_install(
        &self,
        user: &Identified,
        name: &str,
        account: Option<&UploadAccount>,
    ) -> Result<(), Refusal> {
        let (asked, what) = if let Some(UploadAccount { namespace, name: account }) = account {
            let what = format!("impersonate ServiceAccount {namespace}/{account}, which installs the content");
            (impersonating(namespace, account), what)
        } else {
            let shown = chandler_core::text::printable(name);
            let what = format!(
                "installWithControllerRights bundledeployments.core.rukpak.io {shown}: spec.serviceAccount names no ServiceAccount"
            );
            (of_deployment(name, "installWithControllerRights"), what)
        };
        let _turn = self.turn().await?;
        if self.allows(user.0.clone(), asked).await? {
            return Ok(());
        }
        let user = user.0.username.as_deref().unwrap_or_default();
        Err(Refusal::Forbidden(format!("{} may not {what}", chandler_core::text::printable(user))))
    }

    /// Waits for a turn of the reviews.
    async fn turn(&self) -> Result<[SemaphorePermit<'_>; 2], Refusal> {
        let place = self.waiting.try_acquire().map_err(|_| Refusal::Unavailable("too many requests are under way"))?;
        let turn = self.under_way.acquire().await.map_err(|_| Refusal::Unavailable("the server stops"))?;
        Ok([place, turn])
    }

    /// Checks that the caller may do what the review asks; `what` names it.
    async fn may(
        &self,
        headers: &HeaderMap,
        asked: SubjectAccessReviewSpec,
        what: impl FnOnce() -> String,
    ) -> Result<(Caller, Identified), Refusal> {
        let token = headers.typed_get::<Authorization<Bearer>>();
        let missing = "a bearer token of the API server is needed: Authorization: Bearer TOKEN";
        let token = token.ok_or(Refusal::Unauthenticated(missing))?;
        if token.token().is_empty() || token.token().len() > TOKEN_BYTES {
            return Err(Refusal::Unauthenticated("the token is not valid"));
        }
        let _turn = self.turn().await?;
        let user = self.user(token.token()).await?;
        let name = user.username.clone().unwrap_or_default();
        if self.allows(user.clone(), asked).await? {
            return Ok((Caller::new(&name), Identified(user)));
        }
        Err(Refusal::Forbidden(format!("{} may not {}", chandler_core::text::printable(&name), what())))
    }

    async fn user(&self, token: &str) -> Result<UserInfo, Refusal> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = Api::all(self.client.clone()).create(&PostParams::default(), &review).await;
        let status = answer.map_err(|error| unanswered("TokenReview", &error))?.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true));
        user.ok_or(Refusal::Unauthenticated("the token is not valid"))
    }

    async fn allows(&self, user: UserInfo, asked: SubjectAccessReviewSpec) -> Result<bool, Refusal> {
        let UserInfo { extra, groups, uid, username } = user;
        let spec = SubjectAccessReviewSpec { extra, groups, uid, user: username, ..asked };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let answer = Api::all(self.client.clone()).create(&PostParams::default(), &review).await;
        let status = answer.map_err(|error| unanswered("SubjectAccessReview", &error))?.status.unwrap_or_default();
        Ok(status.allowed && status.denied != Some(true))
    }
}

fn of_deployment(name: &str, verb: &str) -> SubjectAccessReviewSpec {
    asking(ResourceAttributes {
        group: Some("core.rukpak.io".to_owned()),
        resource: Some("bundledeployments".to_owned()),
        name: Some(name.to_owned()),
        verb: Some(verb.to_owned()),
        ..ResourceAttributes::default()
    })
}

fn impersonating(namespace: &str, account: &str) -> SubjectAccessReviewSpec {
    asking(ResourceAttributes {
        group: Some(String::new()),
        resource: Some("serviceaccounts".to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(account.to_owned()),
        verb: Some("impersonate".to_owned()),
        ..ResourceAttributes::default()
    })
}

fn asking(attributes: ResourceAttributes) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec { resource_attributes: Some(attributes), ..SubjectAccessReviewSpec::default() }
}

/// All requests are refused while the API server does not answer.
fn unanswered(review: &str, error: &kube::Error) -> Refusal {
    tracing::warn!(review, %error, "a caller of the content service could not be checked");
    Refusal::Unavailable("the API server does not say whether this is allowed")
}
