//! References to images.

mod grammar;

use std::{fmt, str::FromStr};

use chandler_core::Digest;
use chandler_registries::{check_host, normalized};
use oci_spec::distribution::Reference;

use super::client::is_local;
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
        // The grammar has any digits for a port. Settings and rules know a registry by one spelling, and so do those who read it.
        check_host(reference.registry()).map_err(|error| refuse(error.to_string()))?;
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

    /// The registry and the repository in the one spelling that settings and rules compare.
    pub fn normalized_name(&self) -> String {
        normalized(&format!("{}/{}", self.registry_name(), self.repository()))
    }

    /// The tag, unless there is a digest.
    pub fn tag(&self) -> Option<&str> {
        if self.digest.is_some() { None } else { Some(self.reference.tag().unwrap_or("latest")) }
    }

    /// The digest, if there is one.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// Whether its registry is on this machine, by its name.
    pub fn is_local(&self) -> bool {
        is_local(self.registry())
    }

    /// This repository at this digest.
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

    #[test]
    fn a_host_has_one_spelling_of_its_port_and_address() {
        for (host, problem) in [
            ("localhost:05001", Some("a port is a number from 1 to 65535")),
            ("docker.io:0443", Some("a port is a number from 1 to 65535")),
            ("quay.io:0", Some("a port is a number from 1 to 65535")),
            ("quay.io:65536", Some("a port is a number from 1 to 65535")),
            ("quay.io:00000000000000000000443", Some("a port is a number from 1 to 65535")),
            ("quay.io:65535", None),
            ("quay.io:443", None),
            ("127.1:5001", Some("an address has four numbers")),
            ("127.0.0.01", Some("an address has four numbers")),
            ("0x7f.0.0.1:5001", Some("an address has four numbers")),
            ("2130706433:5001", Some("an address has four numbers")),
            ("registry.0X1", Some("an address has four numbers")),
            ("127.0.0.1:5001", None),
            ("1password.example", None),
        ] {
            for text in [format!("{host}/team/app:v1"), format!("{host}/app@{DIGEST}")] {
                let parsed = text.parse::<ImageReference>().map_err(|error| error.to_string());
                match problem {
                    None => drop(parsed.unwrap()),
                    Some(problem) => assert!(parsed.clone().unwrap_err().contains(problem), "{text}: {parsed:?}"),
                }
            }
        }
    }

    proptest! {
        /// A valid reference never addresses another endpoint of a registry, or another host.
        #[test]
        fn references_stay_in_their_part_of_a_url(text in "[a-zA-Z0-9./:@_?#%&\\[\\] -]{0,60}") {
            if let Ok(reference) = text.parse::<ImageReference>() {
                let url = format!("https://{}/v2/{}/x", reference.registry(), reference.repository());
                let url = reqwest::Url::parse(&url);
                // A label that begins with `xn--` may be none; the client then refuses.
                if let Ok(url) = url {
                    prop_assert_eq!(url.path(), format!("/v2/{}/x", reference.repository()));
                    prop_assert_eq!((url.username(), url.query(), url.fragment()), ("", None, None));
                }
            }
        }

        /// The host that is asked is the one that settings and rules see.
        #[test]
        fn a_registry_is_known_by_the_host_that_is_asked(host in "([a-cA0-9x]{1,3}\\.){0,3}[a-cA0-9xX]{1,4}(:[0-9]{1,6})?") {
            if let Ok(reference) = format!("{host}/a/b").parse::<ImageReference>()
                && reference.registry_name() != "docker.io"
                && let Ok(url) = reqwest::Url::parse(&format!("https://{}", reference.registry()))
            {
                let asked = format!("{}:{}", url.host_str().unwrap(), url.port_or_known_default().unwrap());
                let known = reference.normalized_name().replace("/a/b", "");
                let known = if known.contains(':') { known } else { format!("{known}:443") };
                // On this machine, port 80 is the default as well.
                prop_assert!(asked == known || asked.ends_with(":80"), "{} {}", asked, known);
            }
        }
    }
}
