//! Why a source is invalid, or its content is not available.

use std::time::Duration;

use chandler_content::{ArchiveUrlError, ContentError, FailureClass, ReferenceError, RepositoryUrlError};
use chandler_git::GitError;
use chandler_verify::{PolicyError, TrustRootError};

use crate::{
    authorization::AuthorizationError,
    kinds::{config_maps::ConfigMapError, upload::UploadError},
    pull_secret::PullSecretError,
};

/// The message of the API server, without the parts that change from attempt to attempt.
pub fn api_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if status.message.is_empty() => format!("the API server answered {}", status.code),
        kube::Error::Api(status) => status.message.clone(),
        other => {
            if let Some(exhausted) = chandler_core::descriptors_exhausted(other) {
                return format!("no request reaches the API server: {exhausted}");
            }
            // The outermost text alone says little: `ServiceError: client error (Connect)`.
            let causes = std::iter::successors(std::error::Error::source(other), |cause| cause.source());
            let mut message = other.to_string();
            for cause in causes.map(ToString::to_string) {
                if !message.contains(&cause) {
                    message = format!("{message}: {cause}");
                }
            }
            message
        }
    }
}

/// A source that no attempt can fetch until its spec changes. The API server refuses most of these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSource {
    /// No kind of source has this type.
    #[error("source type {0:?} not supported")]
    UnknownType(String),
    /// The field that the type names is not set.
    #[error("spec.source.{field}: must be set for source type {field:?}")]
    Missing {
        /// The field.
        field: &'static str,
    },
    /// A field of another type is set.
    #[error("spec.source.{field}: must not be set for source type {kind:?}")]
    Conflicting {
        /// The type.
        kind: String,
        /// The field.
        field: &'static str,
    },
    /// The image reference cannot be parsed.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// The policy for the signatures of an image cannot be used.
    #[error("spec.source.image.verification.{0}")]
    Verification(#[from] PolicyError),
    /// The URL of an archive is refused. Its text is not shown, since it may have a password.
    #[error("spec.source.http.url: {0}")]
    Url(#[from] ArchiveUrlError),
    /// A field of a chart in a Helm repository is refused.
    #[error("spec.source.http.{field}: {problem}")]
    Chart {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The digest of an archive cannot be parsed.
    #[error("spec.source.http.sha256: it is not 64 hexadecimal digits in lower case")]
    Sha256,
    /// The URL of a repository is refused. Its text is not shown, since it may have a password.
    #[error("spec.source.git.repository: {0}")]
    Repository(#[from] RepositoryUrlError),
    /// A setting of a repository over SSH is missing, or is only for https.
    #[error("spec.source.git.{field}: {problem}")]
    GitSsh {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Not exactly one field of the reference is set.
    #[error("spec.source.git.ref: exactly one of branch, tag, commit, semver must be set")]
    GitRef,
    /// The name of a branch or tag is refused.
    #[error("spec.source.git.ref.{field}: it is not the name of a branch or tag")]
    GitName {
        /// `branch` or `tag`.
        field: &'static str,
    },
    /// A commit or a range of versions cannot be parsed.
    #[error("spec.source.git.ref.{field}: {error}")]
    GitRevision {
        /// `commit` or `semver`.
        field: &'static str,
        /// What is wrong.
        error: GitError,
    },
    /// The directory is absolute, or has a part `..`.
    #[error("spec.source.git.directory: it leaves the repository")]
    GitDirectory,
    /// The digest of uploaded content cannot be parsed.
    #[error("spec.source.upload.digest: it is not sha256: and 64 hexadecimal digits in lower case")]
    UploadDigest,
    /// Only content of BundleDeployments is uploaded.
    #[error("spec.source.upload: only the content of a BundleDeployment can be uploaded")]
    Upload,
}

impl InvalidSource {
    /// The path of the field that is invalid.
    pub fn field(&self) -> String {
        match self {
            Self::UnknownType(_) => "spec.source.type".to_owned(),
            Self::Missing { field } | Self::Conflicting { field, .. } => format!("spec.source.{field}"),
            Self::Reference(_) => "spec.source.image.ref".to_owned(),
            Self::Verification(error) => format!("spec.source.image.verification.{}", error.path),
            Self::Url(_) => "spec.source.http.url".to_owned(),
            Self::Chart { field, .. } => format!("spec.source.http.{field}"),
            Self::Sha256 => "spec.source.http.sha256".to_owned(),
            Self::Repository(_) => "spec.source.git.repository".to_owned(),
            Self::GitSsh { field, .. } => format!("spec.source.git.{field}"),
            Self::GitRef => "spec.source.git.ref".to_owned(),
            Self::GitName { field } | Self::GitRevision { field, .. } => format!("spec.source.git.ref.{field}"),
            Self::GitDirectory => "spec.source.git.directory".to_owned(),
            Self::UploadDigest => "spec.source.upload.digest".to_owned(),
            Self::Upload => "spec.source.upload".to_owned(),
        }
    }
}

/// Why the content of a source is not available.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The source is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidSource),
    /// The content was not fetched, or was refused.
    #[error(transparent)]
    Content(#[from] ContentError),
    /// The pull secret is not usable.
    #[error(transparent)]
    PullSecret(#[from] PullSecretError),
    /// The Secret with the credentials of a server is not usable.
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    /// A ConfigMap is not usable.
    #[error(transparent)]
    ConfigMap(#[from] ConfigMapError),
    /// The content was not uploaded.
    #[error(transparent)]
    Upload(#[from] UploadError),
    /// Signatures cannot be verified, because the trusted root is not usable.
    #[error("the trusted root is not usable: {0}")]
    TrustRoot(#[from] TrustRootError),
}

impl SourceError {
    /// Whether and when another attempt makes sense.
    pub fn class(&self) -> FailureClass {
        match self {
            Self::Invalid(_) => FailureClass::Permanent,
            Self::Content(error) => error.class(),
            Self::PullSecret(_)
            | Self::Authorization(_)
            | Self::ConfigMap(_)
            | Self::Upload(_)
            | Self::TrustRoot(_) => FailureClass::Unavailable,
        }
    }

    /// Whether nothing has failed: the files of an upload are awaited.
    pub fn is_pending(&self) -> bool {
        matches!(self, Self::Upload(UploadError::Pending { .. }))
    }

    /// This error for a BundleDeployment that had its files before: a pending upload is a lost one.
    pub fn after_an_upload(self) -> Self {
        match self {
            Self::Upload(UploadError::Pending { name }) => Self::Upload(UploadError::Lost { name }),
            other => other,
        }
    }

    /// A CamelCase word for metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "InvalidSource",
            Self::Content(error) => error.reason(),
            Self::PullSecret(_) => "PullSecretUnusable",
            Self::Authorization(_) => "CredentialsUnusable",
            Self::ConfigMap(_) => "ConfigMapUnusable",
            Self::Upload(_) => "NotUploaded",
            Self::TrustRoot(_) => "TrustRootUnusable",
        }
    }

    /// The registry that did not answer, where that is the failure: `host` or `host:port`.
    pub fn silent_registry(&self) -> Option<&str> {
        match self {
            Self::Content(error) => error.silent_registry(),
            _ => None,
        }
    }

    /// How long the server asked clients to wait, if it did.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Content(error) => error.retry_after(),
            _ => None,
        }
    }
}
