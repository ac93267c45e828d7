//! Who calls, and what they may do. The API server answers both.

use headers::{Authorization, HeaderMapExt as _, authorization::Bearer};
use http::HeaderMap;
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::Semaphore;

use crate::{places::Caller, refusal::Refusal};

/// The longest token in bytes. Tokens of ServiceAccounts have about a thousand.
const TOKEN_BYTES: usize = 16 << 10;
/// How many reviews are under way at once: a flood of requests without a valid token must not reach the API server.
const REVIEWS: usize = 8;
/// How many requests wait for their reviews.
const WAITING: usize = 256;

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
    }

    /// Checks that the caller may `update` a BundleDeployment.
    pub(crate) async fn may_update(&self, headers: &HeaderMap, name: &str) -> Result<Caller, Refusal> {
        let asked = ResourceAttributes {
            group: Some("core.rukpak.io".to_owned()),
            resource: Some("bundledeployments".to_owned()),
            name: Some(name.to_owned()),
            verb: Some("update".to_owned()),
            ..ResourceAttributes::default()
        };
        let asked = SubjectAccessReviewSpec { resource_attributes: Some(asked), ..SubjectAccessReviewSpec::default() };
        self.may(headers, asked, || format!("update bundledeployments {}", chandler_core::text::printable(name))).await
    }

    /// Checks that the caller may do what the review asks; `what` names it.
    async fn may(
        &self,
        headers: &HeaderMap,
        asked: SubjectAccessReviewSpec,
        what: impl FnOnce() -> String,
    ) -> Result<Caller, Refusal> {
        let token = headers.typed_get::<Authorization<Bearer>>();
        let missing = "a bearer token of the API server is needed: Authorization: Bearer TOKEN";
        let token = token.ok_or(Refusal::Unauthenticated(missing))?;
        if token.token().is_empty() || token.token().len() > TOKEN_BYTES {
            return Err(Refusal::Unauthenticated("the token is not valid"));
        }
        let _place = self.waiting.try_acquire().map_err(|_| Refusal::Unavailable("too many requests are under way"))?;
        let _turn = self.under_way.acquire().await.map_err(|_| Refusal::Unavailable("the server stops"))?;
        let user = self.user(token.token()).await?;
        let name = user.username.clone().unwrap_or_default();
        if self.allows(user, asked).await? {
            return Ok(Caller::new(&name));
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

/// All requests are refused while the API server does not answer.
fn unanswered(review: &str, error: &kube::Error) -> Refusal {
    tracing::warn!(review, %error, "a caller of the content service could not be checked");
    Refusal::Unavailable("the API server does not say whether this is allowed")
}
