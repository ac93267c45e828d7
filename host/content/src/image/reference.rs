//! References to images.

mod grammar;

use std::{fmt, str::FromStr};

use chandler_core::Digest;
use oci_spec::distribution::Reference;

use super::may_be_plain;
use crate::shown_url;

/// A reference to an image, such as `quay.io/example/bundle:v1.2.0` or `registry:5000/bundle@sha256:…`.
///
/// The default registry is Docker Hub, and the default tag is `latest`, as in all container tools. A tag beside a digest has no
/// effect.
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
            let reference = shown_url(text).chars().take(300).collect();
            ReferenceError { reference, problem }
        };
        let (reference, digest) = grammar::parse(text).map_err(|error| refuse(error.to_string()))?;
        Ok(Self { reference, digest })
    }
}

impl ImageReference {
    /// The host of the registry, with its port if it has one.
    pub fn registry(&self) -> &str {
        self.reference.resolve_registry()
    }

    /// The registry as written in references: `docker.io` for Docker Hub.
    pub fn registry_name(&self) -> &str {
        self.reference.registry()
    }

    /// The repository in the registry.
    pub fn repository(&self) -> &str {
        self.reference.repository()
    }

    /// The tag, unless there is a digest.
    pub fn tag(&self) -> Option<&str> {
        if self.digest.is_some() { None } else { Some(self.reference.tag().unwrap_or("latest")) }
    }

    /// The digest, if there is one.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Whether its registry may be accessed without TLS: because it is on this machine, or one of `listed`.
    pub fn may_be_plain(&self, listed: &[String]) -> bool {
        may_be_plain(self.registry(), listed)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn references_are_parsed_like_container_tools_do() {
        for (text, registry, repository, tag, digest, shown) in [
            ("nginx", "index.docker.io", "library/nginx", Some("latest"), false, "docker.io/library/nginx:latest"),
            ("quay.io/org/app:v1", "quay.io", "org/app", Some("v1"), false, "quay.io/org/app:v1"),
            ("localhost:5000/a", "localhost:5000", "a", Some("latest"), false, "localhost:5000/a:latest"),
            (&format!("quay.io/a@{DIGEST}"), "quay.io", "a", None, true, &format!("quay.io/a@{DIGEST}")),
            (&format!("quay.io/a:v1@{DIGEST}"), "quay.io", "a", None, true, &format!("quay.io/a:v1@{DIGEST}")),
        ] {
            let reference: ImageReference = text.parse().unwrap();
            assert_eq!((reference.registry(), reference.repository()), (registry, repository), "{text}");
            assert_eq!((reference.tag(), reference.digest().is_some()), (tag, digest), "{text}");
            assert_eq!(reference.to_string(), shown);
            let digest: Digest = DIGEST.parse().unwrap();
            assert_eq!(reference.at(&digest).digest(), Some(&digest));
            assert_eq!(reference.at(&digest).registry(), registry);
        }
    }

    #[test]
    fn invalid_references_are_refused() {
        let upper = format!("quay.io/a@{}", DIGEST.to_uppercase().replace("SHA256", "sha256"));
        let sha512 = format!("quay.io/a@sha512:{}", "0".repeat(128));
        let long = "a".repeat(2000);
        for text in [
            "",
            " ",
            "quay.io/",
            "quay.io/A",
            "https://quay.io/a",
            "quay.io/a:v 1",
            "../a",
            "quay.io/a@sha256:0",
            &upper,
            &sha512,
            &long,
        ] {
            let error = text.parse::<ImageReference>().unwrap_err().to_string();
            assert!(error.starts_with("error parsing image reference \""), "{error}");
            assert!(error.len() < 700, "{error}");
        }
    }

    proptest! {
        /// A valid reference never addresses another endpoint of a registry, or another host.
        #[test]
        fn references_stay_in_their_part_of_a_url(text in "[a-zA-Z0-9./:@_?#%&\\[\\] -]{0,60}") {
            if let Ok(reference) = text.parse::<ImageReference>() {
                let url = format!("https://{}/v2/{}/x", reference.registry(), reference.repository());
                let url = reqwest::Url::parse(&url);
                // A port may be larger than ports are; the client then refuses.
                if let Ok(url) = url {
                    prop_assert_eq!(url.path(), format!("/v2/{}/x", reference.repository()));
                    prop_assert_eq!((url.username(), url.query(), url.fragment()), ("", None, None));
                }
            }
        }
    }
}
