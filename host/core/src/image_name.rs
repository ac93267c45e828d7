//! The grammar of image references.
//!
//! It follows the `reference` package of the distribution project, which all container tools share.

use std::borrow::Cow;

use crate::{Digest, digest::DigestError};

/// Docker Hub, as written in references.
const DOCKER_HUB: &str = "docker.io";
/// Docker Hub, as old references write it.
const DOCKER_HUB_LEGACY: &str = "index.docker.io";
/// The part of Docker Hub with images whose names have no slash.
const OFFICIAL_IMAGES: &str = "library";
/// In bytes.
const LONGEST: usize = 1024;
/// In bytes.
const LONGEST_REPOSITORY: usize = 255;
/// In bytes.
const LONGEST_TAG: usize = 128;

/// The parts of an image reference such as `quay.io/example/bundle:v1.2.0`. A path of this machine is never one: it begins with `/`, `./`
/// or `../`, or is the name of an image on Docker Hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName<'a> {
    /// The registry; Docker Hub if the text has none.
    pub registry: &'a str,
    /// The repository.
    pub repository: Cow<'a, str>,
    /// The tag, if the text has one.
    pub tag: Option<&'a str>,
    /// The digest, if the text has one.
    pub digest: Option<Digest>,
}

/// Why a text is not an image reference. The messages are the ones that container tools print.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageNameError {
    /// It is too long.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// It is empty.
    #[error("repository name must have at least one component")]
    Empty,
    /// The repository has capital letters.
    #[error("repository name must be lowercase")]
    Capitals,
    /// The repository is too long.
    #[error("repository name must not be more than {LONGEST_REPOSITORY} characters")]
    RepositoryTooLong,
    /// It has another form.
    #[error("invalid reference format")]
    Format,
    /// A user name or a password is before the registry.
    #[error("an image reference has no user name and no password")]
    Credentials,
    /// The text after the `@` is not a digest.
    #[error(transparent)]
    Digest(#[from] DigestError),
}

impl<'a> ImageName<'a> {
    /// Parses a reference.
    pub fn parse(text: &'a str) -> Result<Self, ImageNameError> {
        if text.len() > LONGEST {
            return Err(ImageNameError::TooLong);
        }
        if text.is_empty() {
            return Err(ImageNameError::Empty);
        }
        let (rest, digest) = match text.split_once('@') {
            // No digest has a slash.
            Some((_, after)) if after.contains('/') && !after.starts_with("sha256:") => {
                return Err(ImageNameError::Credentials);
            }
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(ImageNameError::Format);
        }
        let (registry, repository) = split(name)?;
        let repository = if registry == DOCKER_HUB && !repository.contains('/') {
            Cow::Owned(format!("{OFFICIAL_IMAGES}/{repository}"))
        } else {
            Cow::Borrowed(repository)
        };
        if repository.len() > LONGEST_REPOSITORY {
            return Err(ImageNameError::RepositoryTooLong);
        }
        Ok(Self { registry, repository, tag, digest: digest.map(str::parse).transpose()? })
    }
}

/// The registry and the repository of a name. The first part of a path is a registry only if it looks like a host.
fn split(name: &str) -> Result<(&str, &str), ImageNameError> {
    let (registry, repository) = match name.split_once('/') {
        Some((host, repository)) if host.contains(['.', ':']) || host == "localhost" => (host, repository),
        _ => (DOCKER_HUB, name),
    };
    // Some names in private networks have an underscore, which hosts on the Internet do not.
    if !(is_host(registry) || is_component(registry)) {
        return Err(ImageNameError::Format);
    }
    if !repository.split('/').all(is_component) {
        let lower = repository.to_ascii_lowercase();
        let is_upper = lower != repository && lower.split('/').all(is_component);
        return Err(if is_upper { ImageNameError::Capitals } else { ImageNameError::Format });
    }
    Ok((if registry == DOCKER_HUB_LEGACY { DOCKER_HUB } else { registry }, repository))
}

/// A host, with its port if it has one.
fn is_host(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    host.split('.').all(is_label) && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// A part of a path: lower-case letters and digits, with separators between them.
fn is_component(text: &str) -> bool {
    let is_separator = |byte: u8| matches!(byte, b'.' | b'_' | b'-');
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let runs = || text.as_bytes().chunk_by(|one, other| is_separator(*one) == is_separator(*other));
    runs().all(|run| match run {
        b"." | b"_" | b"__" => true,
        run => run.iter().all(|byte| *byte == b'-') || run.iter().all(|byte| is_word(*byte)),
    }) && text.bytes().next().is_some_and(is_word)
        && text.bytes().next_back().is_some_and(is_word)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= LONGEST_TAG
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_reference_is_named() {
        let digest = Digest::of(b"");
        let whole = format!("quay.io/a:v1@{digest}");
        let name = ImageName::parse(&whole).unwrap();
        assert_eq!((name.registry, &*name.repository, name.tag), ("quay.io", "a", Some("v1")));
        assert_eq!(name.digest, Some(digest));
        for path in ["/tmp/victim", "./victim", "../victim", ".", "..", "~/victim", "a/../../b", "C:\\victim", "/"] {
            assert!(ImageName::parse(path).is_err(), "{path}");
        }
        for (text, expected) in [
            ("", ImageNameError::Empty),
            ("quay.io/A", ImageNameError::Capitals),
            ("x y\nerror: forged", ImageNameError::Format),
            ("quay.io/a:v\u{202e}", ImageNameError::Format),
            ("https://quay.io/a:v1", ImageNameError::Format),
            ("u:s3cret@quay.io/a:v1", ImageNameError::Credentials),
            ("u@quay.io/a@sha256:0", ImageNameError::Credentials),
            ("oci://u:s3cret@quay.io/a", ImageNameError::Credentials),
            (&"a".repeat(2000), ImageNameError::TooLong),
            (&"a".repeat(300), ImageNameError::RepositoryTooLong),
        ] {
            assert_eq!(ImageName::parse(text), Err(expected), "{text}");
        }
        assert!(matches!(ImageName::parse("quay.io/a@sha256:0"), Err(ImageNameError::Digest(_))));
    }
}
