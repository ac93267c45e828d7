//! The rules that hold for every kind of source: when it is resolved again, and which content is used while its server is
//! unreachable.

use std::{pin::Pin, time::Duration};

use chandler_api::BundleSource;
use chandler_content::{FailureClass, ImageAccess, ImageReference, Images, RequiredSignatures, Tree};
use chandler_turns::Requester;
use chandler_verify::{Policy, Verification};
use tracing::{Instrument as _, Span};

use crate::{
    Environment, Grantee, ImageRules, Pinned, Resolution, Resolutions, SignaturesError, Source, SourceError,
    SourceKind, SystemNamespace,
    pull_secret::{self, PullSecretError},
};

/// How long a poll waits for an answer.
const POLL_TIMEOUT: Duration = Duration::from_mins(1);

/// Fetches the content of sources. A clone shares everything.
#[derive(Clone)]
pub struct Sources {
    images: Images,
    system: SystemNamespace,
    rules: ImageRules,
    /// The ServiceAccount on whose behalf sources are fetched, `NAMESPACE/NAME`.
    account: Option<String>,
}

/// A source to fetch for an object, and how recent its pin must be.
pub struct Wanted<'a> {
    /// The object.
    pub grantee: Grantee<'a>,
    /// Its source.
    pub source: &'a Source,
    /// What moving sources of objects of its kind resolved to last.
    pub resolutions: &'a Resolutions,
    /// How long a resolution is used. None: the source is resolved now.
    pub interval: Option<Duration>,
    /// The recorded source of the release in use, if it was rendered from this very spec.
    pub in_use: Option<&'a BundleSource>,
}

/// Content that was fetched.
#[derive(Debug)]
pub struct Obtained {
    /// The source that names exactly this content.
    pub pinned: BundleSource,
    /// The content.
    pub tree: Tree,
    /// Whether the content was used because it is signed as demanded.
    pub is_verified: bool,
}

/// Content that was not obtained.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct NotObtained {
    /// Whether the source was resolved.
    pub resolved: bool,
    /// Why.
    pub error: SourceError,
}

impl From<NotObtained> for SourceError {
    fn from(failed: NotObtained) -> Self {
        failed.error
    }
}

/// What a poll found.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is matched where it is returned, and never stored")]
pub(crate) enum PollOutcome {
    /// The source resolves to this now.
    Pinned(Pinned),
    /// The source may name other content. A reconcile finds out.
    Changed,
    /// The server is unreachable. The pin in use stays.
    Unreachable,
    /// The server refuses the request, or the source or its dependencies are invalid.
    Refused,
}

impl Sources {
    /// Sources that are fetched through these clients.
    pub fn new(images: Images, system: SystemNamespace) -> Self {
        Self { images, system, rules: ImageRules::default(), account: None }
    }

    /// These sources, with the administrator's rules for signatures of images. Without rules, only the sources demand signatures.
    pub fn with_image_rules(mut self, rules: ImageRules) -> Self {
        self.rules = rules;
        self
    }

    /// These sources, for requests on behalf of this account: where requests wait, the accounts take turns.
    #[must_use]
    pub fn on_behalf_of(&self, requester: Requester) -> Self {
        Self { images: self.images.on_behalf_of(requester), ..self.clone() }
    }

    /// These sources, for an object that is installed on behalf of this ServiceAccount, `NAMESPACE/NAME`; `None` for the controller. Secrets
    /// and ConfigMaps that list accounts are used only for them.
    #[must_use]
    pub fn with_account(self, account: Option<String>) -> Self {
        Self { account, ..self }
    }

    /// Resolves a source and fetches its content.
    ///
    /// A source that can move is resolved at most once in an interval. While its server is unreachable, the content of the
    /// release in use is fetched instead.
    pub async fn obtain(&self, wanted: &Wanted<'_>) -> Result<Obtained, NotObtained> {
        // Boxed, since its type is so long that compilers give up on the types of its callers.
        let obtained: Pin<Box<dyn Future<Output = _> + Send + '_>> =
            Box::pin(wanted.source.obtain(wanted, self.environment(wanted.grantee)));
        obtained.await
    }

    /// Whether the content of a source is used only if it is signed, so that a copy of it in the store alone does not count.
    pub fn is_verified(&self, source: &Source) -> bool {
        source.is_verified(&self.rules)
    }

    /// Finds out whether a source still resolves to what it did, with as few requests as possible: `None` if it resolves, or may resolve,
    /// to other content.
    pub async fn check(&self, grantee: Grantee<'_>, asked: &Resolution) -> Result<Option<Pinned>, SourceError> {
        asked.source.check(asked, self.environment(grantee)).await
    }

    /// Resolves a source again, and stores the outcome unless the source was resolved in the meantime. Returns whether the
    /// BundleDeployment must be reconciled: the source moved, or it cannot be resolved and the reconcile reports why.
    pub async fn poll(&self, deployment: &str, asked: &Resolution, resolutions: &Resolutions) -> bool {
        match self.ask(Grantee::BundleDeployment(deployment), asked).await {
            PollOutcome::Pinned(now) if now == asked.pinned => {
                resolutions.renew(deployment, asked, Some(now));
                false
            }
            PollOutcome::Pinned(now) => {
                tracing::info!(deployment, source = %now, "the source resolves to other content");
                resolutions.renew(deployment, asked, Some(now))
            }
            PollOutcome::Unreachable => {
                resolutions.renew(deployment, asked, Some(asked.pinned.clone()));
                false
            }
            PollOutcome::Changed | PollOutcome::Refused => resolutions.renew(deployment, asked, None),
        }
    }

    /// The signatures that an image must have: by the rules of the administrator and by the object that names the image; `None` if neither
    /// demands one.
    ///
    /// # Errors
    /// The policy of the object or the trusted root cannot be used.
    pub fn required_signatures(
        &self,
        image: &ImageReference,
        verification: Option<&Verification>,
    ) -> Result<Option<RequiredSignatures>, SignaturesError> {
        let own = verification.map(Policy::parse).transpose()?;
        Ok(self.rules.required(image, own.as_ref())?)
    }

    /// The access to an image that an object gets: by the pull secret that it names, or by the default ones. It demands no signatures.
    pub async fn image_access(
        &self,
        grantee: Grantee<'_>,
        secret: Option<&str>,
        image: &ImageReference,
    ) -> Result<ImageAccess, PullSecretError> {
        pull_secret::access(self.environment(grantee), secret, image).await
    }

    async fn ask(&self, grantee: Grantee<'_>, asked: &Resolution) -> PollOutcome {
        // Boxed, since its type is so long that compilers give up on the types of its callers.
        let checked: Pin<Box<dyn Future<Output = _> + Send + '_>> = Box::pin(self.check(grantee, asked));
        match tokio::time::timeout(POLL_TIMEOUT, checked).await {
            Ok(Ok(Some(pin))) => PollOutcome::Pinned(pin),
            Ok(Ok(None)) => PollOutcome::Changed,
            Ok(Err(error)) if error.class() == FailureClass::Transient => {
                tracing::warn!(%grantee, source = %asked.pinned, %error, "the server is unreachable; the content in use stays");
                PollOutcome::Unreachable
            }
            Ok(Err(_)) => PollOutcome::Refused,
            Err(_) => {
                tracing::warn!(%grantee, source = %asked.pinned, "the server does not answer; the content in use stays");
                PollOutcome::Unreachable
            }
        }
    }

    fn environment<'a>(&'a self, grantee: Grantee<'a>) -> Environment<'a> {
        let account = self.account.as_deref();
        Environment { images: &self.images, system: &self.system, rules: &self.rules, grantee, account }
    }

    pub(crate) async fn obtain_kind<K: SourceKind>(
        kind: &K,
        wanted: &Wanted<'_>,
        environment: Environment<'_>,
    ) -> Result<Obtained, NotObtained> {
        let failed = |resolved: bool| move |error: SourceError| NotObtained { resolved, error };
        let access = kind.access(environment).await.map_err(failed(false))?;
        let pin = if kind.can_move() {
            resolve_moving(kind, &access, wanted, environment).await.map_err(failed(false))?
        } else {
            kind.resolve(&access, environment).instrument(digest()).await.map_err(failed(false))?
        };
        let pinned = K::to_api(&pin);
        let tree = tracing::info_span!(target: "chandler::trace", "tree", source = K::TYPE);
        let tree = K::fetch(pin, &access, environment).instrument(tree).await.map_err(|error| {
            // The source may name other content by now: the next attempt asks. Content that is refused stays known, so that polls notice when it moves.
            if kind.can_move() && error.class() == FailureClass::Unavailable {
                wanted.resolutions.forget(wanted.grantee.name());
            }
            failed(true)(error)
        })?;
        Ok(Obtained { pinned, tree, is_verified: kind.is_verified(environment.rules) })
    }

    pub(crate) async fn check_kind<K: SourceKind>(
        kind: &K,
        asked: &Resolution,
        environment: Environment<'_>,
    ) -> Result<Option<Pinned>, SourceError> {
        let access = kind.access(environment).await?;
        let Ok(pin) = K::Pin::try_from(asked.pinned.clone()) else { return Ok(None) };
        Ok(kind.poll(&pin, &access, environment).await?.map(Into::into))
    }
}

/// The span of resolving a source.
fn digest() -> Span {
    tracing::info_span!(target: "chandler::trace", "digest")
}

async fn resolve_moving<K: SourceKind>(
    kind: &K,
    access: &K::Access,
    wanted: &Wanted<'_>,
    environment: Environment<'_>,
) -> Result<K::Pin, SourceError> {
    let Wanted { grantee, source, resolutions, .. } = *wanted;
    let recent = wanted.interval.and_then(|interval| resolutions.recent(grantee.name(), source, interval));
    if let Some(pin) = recent.and_then(|pinned| K::Pin::try_from(pinned).ok()) {
        return Ok(pin);
    }
    match kind.resolve(access, environment).instrument(digest()).await {
        Ok(pin) => {
            resolutions.remember(grantee.name().to_owned(), source.clone(), pin.clone().into());
            Ok(pin)
        }
        Err(error) if error.class() == FailureClass::Transient => {
            let recorded = wanted.in_use.and_then(|recorded| Source::parse(recorded).ok());
            let pinned = recorded.and_then(|recorded| source.recorded_pin(&recorded));
            let pin = pinned.and_then(|pinned| K::Pin::try_from(pinned).ok()).ok_or(error)?;
            tracing::warn!(%grantee, source = source.location(), "the server is unreachable; the content in use stays");
            Ok(pin)
        }
        Err(error) => Err(error),
    }
}
