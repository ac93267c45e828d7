//! The grammar of image references as the type of oci-spec, which has it as one regular expression, whose program and caches take 20 MB
//! for as long as the process runs; a property test compares the two.

use chandler_core::{
    Digest,
    image_name::{ImageName, ImageNameError},
};
use oci_spec::distribution::Reference;

/// The tag of a reference that has neither a tag nor a digest.
const DEFAULT_TAG: &str = "latest";

/// The parts of a reference.
pub(super) fn parse(text: &str) -> Result<(Reference, Option<Digest>), ImageNameError> {
    let ImageName { registry, repository, tag, digest } = ImageName::parse(text)?;
    let (registry, repository) = (registry.to_owned(), repository.into_owned());
    let reference = match (tag.map(str::to_owned), digest.as_ref().map(Digest::to_string)) {
        (Some(tag), Some(digest)) => Reference::with_tag_and_digest(registry, repository, tag, digest),
        (None, Some(digest)) => Reference::with_digest(registry, repository, digest),
        (tag, None) => Reference::with_tag(registry, repository, tag.unwrap_or_else(|| DEFAULT_TAG.to_owned())),
    };
    Ok((reference, digest))
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
        assert_eq!(parse("quay.io/A").unwrap_err(), ImageNameError::Capitals);
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
