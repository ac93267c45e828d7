//! Which image.

use std::{fmt, str::FromStr};

use chandler_core::Digest;
use oci_spec::distribution::{ParseError, Reference};

/// A reference to an image, such as `quay.io/example/bundle:v1.2.0` or `registry:5000/bundle@sha256:…`.
///
/// What has no registry is of Docker Hub, and what has neither tag nor digest has the tag `latest`, as in all container
/// tools. Where there is a digest, the tag means nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageReference {
    reference: Reference,
    digest: Option<Digest>,
}

/// The text is not an image reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing image reference {reference:?}: {problem}")]
pub struct ReferenceError {
    /// The text.
    pub reference: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FromStr for ImageReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let refuse = |problem: String| {
            let reference = text.chars().take(300).collect();
            ReferenceError { reference, problem }
        };
        if text.len() > 1024 {
            return Err(refuse("it is longer than 1024 bytes".to_owned()));
        }
        let reference: Reference = text.parse().map_err(|error: ParseError| refuse(error.to_string()))?;
        let digest = reference.digest().map(str::parse::<Digest>).transpose();
        let digest = digest.map_err(|error| refuse(error.to_string()))?;
        Ok(Self { reference, digest })
    }
}

impl ImageReference {
    /// The host to ask, with its port if it has one.
    pub fn registry(&self) -> &str {
        self.reference.resolve_registry()
    }

    /// The registry as it is written, which for Docker Hub is `docker.io`.
    pub fn registry_name(&self) -> &str {
        self.reference.registry()
    }

    /// The repository in the registry.
    pub fn repository(&self) -> &str {
        self.reference.repository()
    }

    /// The tag, if there is one and no digest.
    pub fn tag(&self) -> Option<&str> {
        if self.digest.is_some() { None } else { Some(self.reference.tag().unwrap_or("latest")) }
    }

    /// The digest, if there is one.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The same repository at this digest.
    pub fn at(&self, digest: &Digest) -> Self {
        let (registry, repository) = (self.reference.registry().to_owned(), self.repository().to_owned());
        let reference = Reference::with_digest(registry, repository, digest.to_string());
        Self { reference, digest: Some(digest.clone()) }
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reference, f)
    }
}
