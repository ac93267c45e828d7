//! The endpoints of an image, and the order in which they are asked.

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc};

use chandler_registries::{
    Blocked, Registries, Version,
    certificates::{HostCertificates, certificates},
};
use parking_lot::RwLock;

use super::{
    AccessError, Credentials, ImageAccess, ImageReference, Images,
    client::{Client, Purpose},
};
use crate::{ContentError, FailureClass, RegistryError, ServerFailure, blocking};

/// The most failures that a message shows.
const SHOWN: usize = 5;
/// The longest text of one of them, in characters.
const SHOWN_CHARACTERS: usize = 400;

/// What an administrator sets for registries: mirrors, blocked and insecure registries, certificates. A clone shares it.
#[derive(Clone, Default)]
pub struct RegistrySettings {
    registries: Arc<RwLock<Arc<Registries>>>,
    certificates: Arc<Vec<PathBuf>>,
}

impl RegistrySettings {
    /// These settings, and directories as containers-certs.d(5) describes them.
    pub fn new(registries: Registries, certificate_directories: Vec<PathBuf>) -> Self {
        Self {
            registries: Arc::new(RwLock::new(Arc::new(registries))),
            certificates: Arc::new(certificate_directories),
        }
    }

    /// Replaces the settings, for pulls that begin later. Certificates are read at each pull.
    pub fn set(&self, registries: Registries) {
        *self.registries.write() = Arc::new(registries);
    }

    /// The certificates for the registry of an image. Blocks on the disk.
    ///
    /// # Errors
    /// A file cannot be read, or is not a certificate.
    fn certificates(&self, image: &ImageReference) -> Result<Option<HostCertificates>, AccessError> {
        let registry = image.registry_name();
        certificates(&self.certificates, registry).map_err(|error| AccessError::HostCertificates {
            registry: registry.to_owned(),
            problem: error.to_string(),
        })
    }

    /// Like [`certificates`](Self::certificates), on a thread that may block.
    pub(super) async fn read_certificates(
        &self,
        image: &ImageReference,
    ) -> Result<Option<HostCertificates>, ContentError> {
        if self.certificates.is_empty() {
            return Ok(None);
        }
        let (settings, image) = (self.clone(), image.clone());
        blocking::run(move || Ok(settings.certificates(&image)?)).await
    }

    /// Whether images may be pushed to this place.
    ///
    /// # Errors
    /// The settings block it.
    pub fn may_push(&self, image: &ImageReference) -> Result<(), Blocked> {
        let digest = image.digest().map(ToString::to_string);
        self.registries().may_push(&name(image), version(image, digest.as_deref()))
    }

    /// The prefix that blocks a host as a whole, under one of its names.
    pub(crate) fn blocked_host(&self, names: &[String]) -> Option<String> {
        let registries = self.registries();
        names.iter().find_map(|name| registries.blocked_host(name))
    }

    fn registries(&self) -> Arc<Registries> {
        Arc::clone(&self.registries.read())
    }
}

impl fmt::Debug for RegistrySettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistrySettings").field("certificates", &self.certificates).finish_non_exhaustive()
    }
}

/// The name of an image in settings.
fn name(image: &ImageReference) -> String {
    format!("{}/{}", image.registry_name(), image.repository())
}

fn version<'a>(image: &'a ImageReference, digest: Option<&'a str>) -> Version<'a> {
    match digest {
        Some(digest) => Version::Digest(digest),
        None => Version::Tag(image.tag().unwrap_or("latest")),
    }
}

/// The credentials for images that a mirror has. The settings of a source apply to its own registry only.
pub trait Keyring: fmt::Debug + Send + Sync {
    /// The credentials for an image, or `None` if there are none for its registry. May block.
    ///
    /// # Errors
    /// There are some, and they cannot be read.
    fn credentials(&self, image: &ImageReference) -> Result<Option<Credentials>, AccessError>;
}

/// A place that an image can be pulled from, and access to it.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// The image there.
    pub(super) image: ImageReference,
    /// Credentials for this place and no other, and what the source says about certificates if it is about this registry.
    pub(super) access: ImageAccess,
    /// Whether it is asked without TLS, after TLS failed.
    pub(super) plain: bool,
}

/// The answer of an endpoint.
pub(super) type Asked<'a, T> = Pin<Box<dyn Future<Output = Result<T, ContentError>> + Send + 'a>>;

impl Images {
    /// The endpoints of an image, in order.
    ///
    /// # Errors
    /// The image is blocked, or a location makes no valid reference of its name.
    pub(super) async fn endpoints(
        &self,
        image: &ImageReference,
        access: &ImageAccess,
    ) -> Result<Vec<Endpoint>, ContentError> {
        let registries = self.inner.options.registries.registries();
        if registries.is_empty() {
            return Ok(vec![Endpoint { image: image.clone(), access: access.clone(), plain: false }]);
        }
        let digest = image.digest().map(ToString::to_string);
        let found = registries
            .endpoints(&name(image), version(image, digest.as_deref()))
            .map_err(|error| ContentError::Blocked { image: image.to_string(), error })?;
        let (image, access) = (image.clone(), access.clone());
        // A keyring may run a program.
        blocking::run(move || {
            let mut endpoints = Vec::new();
            for endpoint in found {
                let place: ImageReference = endpoint.reference.parse()?;
                let access = access_to(&place, &image, &access, endpoint.insecure)?;
                endpoints.push(Endpoint { image: place.clone(), access: access.clone(), plain: false });
                if endpoint.insecure {
                    endpoints.push(Endpoint { image: place, access, plain: true });
                }
            }
            Ok(endpoints)
        })
        .await
    }

    /// A client for an endpoint.
    pub(super) async fn client(&self, endpoint: &Endpoint) -> Result<Client, ContentError> {
        let inner = &self.inner;
        let certificates = inner.options.registries.read_certificates(&endpoint.image).await?;
        Client::new(endpoint, Purpose::Pull, certificates.as_ref(), &inner.options, &inner.roots, &inner.silent)
    }

    /// The answer of the first endpoint that has one. An endpoint that is not the last has its share of the time.
    ///
    /// # Errors
    /// The error of the only endpoint, or [`ContentError::Endpoints`].
    pub(super) async fn first<'a, T>(
        &self,
        image: &ImageReference,
        endpoints: Vec<Endpoint>,
        ask: impl Fn(Endpoint) -> Asked<'a, T>,
    ) -> Result<T, ContentError> {
        let (all, mut failures) = (endpoints.len(), Vec::new());
        for (number, endpoint) in endpoints.into_iter().enumerate() {
            if endpoint.plain && !failures.last().is_some_and(speaks_no_tls) {
                continue;
            }
            let (place, asked) = (endpoint.image.clone(), ask(endpoint));
            let answer = if number.saturating_add(1) < all {
                self.in_share_of_time(&place, all, asked).await
            } else {
                asked.await
            };
            match answer {
                Ok(answer) => {
                    if !failures.is_empty() {
                        tracing::debug!(%image, endpoint = %place, "other endpoints of an image failed");
                        // Those that wait for the registry of the source need not: its images can be pulled again.
                        self.inner.silent.answered(image.registry_name());
                    }
                    return Ok(answer);
                }
                // The bytes are those that the digest names, wherever they come from; or it is the disk of this machine.
                Err(error @ (ContentError::Layer { .. } | ContentError::Store(_) | ContentError::CacheFull(_))) => {
                    return Err(error);
                }
                Err(error) => failures.push(error),
            }
        }
        Err(joined(image, failures))
    }

    async fn in_share_of_time<T>(
        &self,
        place: &ImageReference,
        shares: usize,
        asked: Asked<'_, T>,
    ) -> Result<T, ContentError> {
        let share = self.inner.options.total_timeout / u32::try_from(shares).unwrap_or(u32::MAX).max(1);
        let late = || ContentError::Timeout { what: format!("image {place}"), seconds: share.as_secs() };
        tokio::time::timeout(share, asked).await.unwrap_or_else(|_| Err(late()))
    }
}

/// The access to a place of an image. The credentials of the source are for its own repository, and what it says about certificates is
/// for its own registry.
fn access_to(
    place: &ImageReference,
    image: &ImageReference,
    access: &ImageAccess,
    insecure: bool,
) -> Result<ImageAccess, AccessError> {
    let is_registry = place.registry().eq_ignore_ascii_case(image.registry());
    let credentials = if is_registry && place.repository() == image.repository() {
        access.credentials.clone()
    } else {
        access.keyring.as_ref().map(|keyring| keyring.credentials(place)).transpose()?.flatten()
    };
    Ok(ImageAccess {
        credentials,
        certificate_authority: access.certificate_authority.clone().filter(|_| is_registry),
        insecure_skip_tls_verify: insecure || (is_registry && access.insecure_skip_tls_verify),
        keyring: None,
        signatures: access.signatures.clone(),
    })
}

/// Whether TLS failed, and not what was said over it.
fn speaks_no_tls(error: &ContentError) -> bool {
    matches!(error, ContentError::Registry(RegistryError { failure: ServerFailure::Tls | ServerFailure::Network, .. }))
}

/// The error of all endpoints. A retry helps if it helps with one of them.
fn joined(image: &ImageReference, mut failures: Vec<ContentError>) -> ContentError {
    if failures.len() < 2 {
        let none = || AccessError::Connection(format!("image {image} has no endpoint")).into();
        return failures.pop().unwrap_or_else(none);
    }
    let shown = failures.iter().take(SHOWN).map(|error| {
        let text = error.to_string();
        text.strip_prefix("image ").unwrap_or(&text).chars().take(SHOWN_CHARACTERS).collect()
    });
    let mut texts: Vec<String> = shown.collect();
    if let Some(more) = failures.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        texts.push(format!("and {more} more"));
    }
    let transient = failures.iter().rposition(|error| error.class() == FailureClass::Transient);
    let decisive = transient.unwrap_or(failures.len().saturating_sub(1));
    let decisive = Box::new(failures.swap_remove(decisive));
    ContentError::Endpoints { image: image.to_string(), texts: texts.join("; "), decisive }
}
