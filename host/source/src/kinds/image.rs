//! An image in an OCI registry.

use chandler_api::{BundleSource, ImageSource};
use chandler_content::{ImageAccess, ImageReference, ResolvedImage, Tree, shown_url};
use chandler_verify::Policy;

use crate::{Environment, Grantee, ImageRules, InvalidSource, SourceError, SourceKind, pull_secret};

/// The label of an image that makes it a catalog, and names the directory of its files.
pub const CATALOG_LABEL: &str = "operators.operatorframework.io.index.configs.v1";

/// An image, with the reference parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Image {
    spec: ImageSource,
    reference: ImageReference,
    policy: Option<Policy>,
}

/// An image by digest, and how to reach its registry.
#[derive(Clone, Debug, PartialEq)]
pub struct PinnedImage {
    spec: ImageSource,
    resolved: ResolvedImage,
}

impl Image {
    /// The reference, with a tag or a digest.
    pub fn reference(&self) -> &ImageReference {
        &self.reference
    }

    fn pin(&self, resolved: ResolvedImage) -> PinnedImage {
        PinnedImage { spec: self.spec.clone(), resolved }
    }
}

impl SourceKind for Image {
    const TYPE: &'static str = BundleSource::IMAGE;
    type Spec = ImageSource;
    type Pin = PinnedImage;
    type Access = ImageAccess;

    fn parse(spec: &ImageSource) -> Result<Self, InvalidSource> {
        let policy = spec.verification.as_ref().map(Policy::parse).transpose()?;
        Ok(Self { reference: spec.reference.parse()?, policy, spec: spec.clone() })
    }

    fn describe(spec: &ImageSource) -> String {
        format!("image {}", shown_url(&spec.reference))
    }

    fn location(&self) -> Option<&str> {
        Some(&self.spec.reference)
    }

    fn can_move(&self) -> bool {
        self.reference.digest().is_none()
    }

    async fn access(&self, environment: Environment<'_>) -> Result<ImageAccess, SourceError> {
        let rules = environment.rules;
        let (secret, certificates) = (self.spec.pull_secret.as_deref(), &self.spec.certificate_data);
        let insecure = self.spec.insecure_skip_tls_verify;
        // A user who chooses how the registry is authenticated could impersonate it, and must not get credentials that they may not name.
        let access = if secret.is_none() && (insecure || certificates.is_some()) {
            ImageAccess::default()
        } else {
            pull_secret::access(environment, secret, &self.reference).await?
        };
        Ok(ImageAccess {
            certificate_authority: certificates.clone().map(String::into_bytes),
            insecure_skip_tls_verify: insecure,
            signatures: rules.required(&self.reference, self.policy.as_ref())?,
            ..access
        })
    }

    fn is_verified(&self, rules: &ImageRules) -> bool {
        self.policy.is_some() || rules.demands(&self.reference)
    }

    async fn resolve(&self, access: &ImageAccess, environment: Environment<'_>) -> Result<PinnedImage, SourceError> {
        Ok(self.pin(environment.images.resolve(&self.reference, access).await?))
    }

    async fn fetch(pin: PinnedImage, access: &ImageAccess, environment: Environment<'_>) -> Result<Tree, SourceError> {
        Ok(match environment.grantee {
            // The image of a catalog also has the program that serves it.
            Grantee::Catalog(_) => environment.images.fetch_labelled(&pin.resolved, access, CATALOG_LABEL).await?,
            Grantee::BundleDeployment(_) | Grantee::ProvisionerClass(_) | Grantee::Resolution(_) => {
                environment.images.fetch(&pin.resolved, access).await?
            }
        })
    }

    fn to_api(pin: &PinnedImage) -> BundleSource {
        let reference = pin.resolved.pinned().to_string();
        // The policy of the spec counts, not one that a status or a record has.
        BundleSource::image(ImageSource { reference, verification: None, ..pin.spec.clone() })
    }

    /// A digest of another repository says nothing about this one.
    fn recorded_pin(&self, recorded: &Self) -> Option<PinnedImage> {
        let (now, before) = (&self.reference, &recorded.reference);
        let same = now.registry() == before.registry() && now.repository() == before.repository();
        let digest = before.digest().filter(|_| same)?.clone();
        Some(self.pin(ResolvedImage::new(now.clone(), digest)))
    }

    fn remove_certificates(spec: &mut ImageSource) {
        spec.certificate_data = None;
        spec.verification = None;
    }

    fn with_certificates_of(mut self, current: &Self) -> Self {
        self.spec.certificate_data.clone_from(&current.spec.certificate_data);
        self.spec.verification.clone_from(&current.spec.verification);
        self.policy.clone_from(&current.policy);
        self
    }
}
