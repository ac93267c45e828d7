//! The grammar of image references.
//!
//! It is that of the `reference` package of the distribution project, which all container tools share. oci-spec has it as one regular
//! expression, whose program and caches take 20 MB for as long as the process runs; a property test compares the two.

use oci_spec::distribution::{ParseError, Reference};

/// Docker Hub, as written in references.
const DOCKER_HUB: &str = "docker.io";
/// The same, as old references write it.
const DOCKER_HUB_LEGACY: &str = "index.docker.io";
/// The part of Docker Hub with images whose names have no slash.
const OFFICIAL_IMAGES: &str = "library";
/// The tag of a reference that has neither a tag nor a digest.
const DEFAULT_TAG: &str = "latest";
/// In bytes.
const LONGEST_REPOSITORY: usize = 255;
/// In bytes.
const LONGEST_TAG: usize = 128;

/// The parts of a reference. The digest is returned as it is written, without a check.
pub(super) fn parse(text: &str) -> Result<(Reference, Option<&str>), ParseError> {
    if text.is_empty() {
        return Err(ParseError::NameEmpty);
    }
    let (rest, digest) = match text.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (text, None),
    };
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Err(ParseError::ReferenceInvalidFormat);
    }
    let (registry, repository) = split(name)?;
    let repository = if registry == DOCKER_HUB && !repository.contains('/') {
        format!("{OFFICIAL_IMAGES}/{repository}")
    } else {
        repository.to_owned()
    };
    if repository.len() > LONGEST_REPOSITORY {
        return Err(ParseError::NameTooLong);
    }
    let registry = registry.to_owned();
    let reference = match (tag.map(str::to_owned), digest.map(str::to_owned)) {
        (Some(tag), Some(digest)) => Reference::with_tag_and_digest(registry, repository, tag, digest),
        (None, Some(digest)) => Reference::with_digest(registry, repository, digest),
        (tag, None) => Reference::with_tag(registry, repository, tag.unwrap_or_else(|| DEFAULT_TAG.to_owned())),
    };
    Ok((reference, digest))
}

/// The registry and the repository of a name. The first part of a path is a registry only if it looks like a host.
fn split(name: &str) -> Result<(&str, &str), ParseError> {
    let (registry, repository) = match name.split_once('/') {
        Some((host, repository)) if host.contains(['.', ':']) || host == "localhost" => (host, repository),
        _ => (DOCKER_HUB, name),
    };
    // Some names in private networks have an underscore, which hosts on the Internet do not.
    if !(is_host(registry) || is_component(registry)) {
        return Err(ParseError::ReferenceInvalidFormat);
    }
    if !repository.split('/').all(is_component) {
        let lower = repository.to_ascii_lowercase();
        let is_upper = lower != repository && lower.split('/').all(is_component);
        return Err(if is_upper { ParseError::NameContainsUppercase } else { ParseError::ReferenceInvalidFormat });
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
    use proptest::prelude::*;

    use super::*;

    /// What oci-spec makes of a reference, except for names with capital letters, which it takes for parts of Docker Hub.
    fn oracle(text: &str) -> Option<Reference> {
        let reference: Reference = text.parse().ok()?;
        let is_lower = !reference.repository().contains(|letter: char| letter.is_ascii_uppercase());
        is_lower.then_some(reference)
    }

    fn ours(text: &str) -> Option<Reference> {
        parse(text).ok().map(|(reference, _)| reference)
    }

    #[test]
    fn separators_and_hosts() {
        for text in [
            "a",
            "a.b",
            "a_b",
            "a__b",
            "a---b",
            "a.-b",
            "a___b",
            "-a",
            "a-",
            "a..b",
            "a/b",
            "a//b",
            "/a",
            "a/",
            "A/b",
            "a.b/c",
            "a_b.c/d",
            "a_b:1/c",
            "a:1/b:2",
            "a:/b",
            "a.b:x/c",
            "-a.b/c",
            "localhost/a",
            "index.docker.io/a",
            "docker.io/a/b",
            "a:-b",
            "a:_b",
            "a:",
            "a:b:c",
            "a/b:c/d",
            "0.0.0.0:80/a",
        ] {
            assert_eq!(ours(text), oracle(text), "{text}");
        }
        let (name, tag) = ("a".repeat(255 - 8), "b".repeat(128));
        for text in [name.clone(), format!("{name}a"), format!("a:{tag}"), format!("a:{tag}b")] {
            assert_eq!(ours(&text), oracle(&text), "{text}");
        }
        assert_eq!(parse("quay.io/A").unwrap_err(), ParseError::NameContainsUppercase);
    }

    proptest! {
        /// References without a digest, which our own type checks.
        #[test]
        fn the_grammar_is_that_of_other_tools(text in "[a-cA0-1./:_-]{0,12}") {
            prop_assert_eq!(ours(&text), oracle(&text));
        }

        #[test]
        fn the_grammar_of_plausible_references_is_that_of_other_tools(
            text in "((localhost|[a-z]{1,3}(\\.[a-z-]{1,3}){0,2})(:[0-9]{1,4})?/)?[a-z]{1,3}([._/-]{1,2}[a-z0-9]{1,3}){0,3}(:[A-Za-z0-9._-]{1,4})?"
        ) {
            prop_assert_eq!(ours(&text), oracle(&text));
        }
    }
}
