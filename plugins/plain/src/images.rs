//! Replaces images in strings, as OpenShift's release tooling does.
//!
//! The rule comes from `oc adm release new` (`NewImageMapper` in `pkg/cli/admin/release/image_mapper.go`), which
//! replaces text: the repository, with an optional tag or digest, up to white space, a quote or the end. Here it is
//! applied to the strings of objects and not to files, so that comments and keys are not changed. Two things differ: a
//! repository that is only the end of a longer one is not replaced, while the tooling also replaces `quay.io/a` in
//! `mirror.example.com/quay.io/a`; and of two references with one delimiter between them both are replaced, while the
//! tooling misses the second.

use std::collections::BTreeMap;

/// Images by the names that `image-references` gives them.
pub(crate) type Images = BTreeMap<String, String>;

/// Repositories and their replacements.
#[derive(Debug, Default)]
pub(crate) struct Replacements(Vec<(String, String)>);

impl Replacements {
    /// These pairs. The longest matching repository wins, whatever their order.
    pub(crate) fn new(mut pairs: Vec<(String, String)>) -> Self {
        pairs.sort_by(|one, other| other.0.len().cmp(&one.0.len()).then_with(|| one.0.cmp(&other.0)));
        Self(pairs)
    }

    /// Whether there is nothing to replace.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with all references replaced, and whether it still contains a repository in a form that cannot be replaced, or `None` if it
    /// contains no repository.
    pub(crate) fn replace(&self, text: &str) -> Option<(String, bool)> {
        self.0.iter().any(|(source, _)| text.contains(source.as_str())).then(|| self.rewrite(text))
    }

    fn rewrite(&self, text: &str) -> (String, bool) {
        let mut out = String::with_capacity(text.len());
        let mut left = false;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if may_begin(&out)
                && let Some((source, target)) = self.0.iter().find(|(source, _)| rest.starts_with(source.as_str()))
            {
                let behind = rest.get(source.len()..).unwrap_or_default();
                let behind = behind.get(locator(behind)..).unwrap_or_default();
                match behind.chars().next() {
                    None | Some('"' | '\'') => {
                        (out, rest) = (out + target, behind);
                        continue;
                    }
                    Some(next) if next.is_ascii_whitespace() => {
                        (out, rest) = (out + target, behind);
                        continue;
                    }
                    // Another repository with a longer name.
                    Some(next) if is_part_of_name(next) => {}
                    Some(_) => left = true,
                }
            }
            out.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
        (out, left)
    }
}

/// Whether a reference may begin after this text: not within a word, nor within a longer reference. A transport such as
/// `docker://` may precede it.
fn may_begin(before: &str) -> bool {
    match before.chars().next_back() {
        None => true,
        Some('/') => before.ends_with("//"),
        Some(last) => !is_part_of_name(last),
    }
}

fn is_part_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/')
}

/// The length of the tag or digest at the beginning of a text; zero where there is none.
fn locator(text: &str) -> usize {
    const LONGEST_TAG: usize = 128;
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(tag) = text.strip_prefix(':') {
        let length = tag.find(|c: char| !(word(c) || matches!(c, '.' | '-'))).unwrap_or(tag.len());
        return if tag.starts_with(word) && length <= LONGEST_TAG { length + 1 } else { 0 };
    }
    let Some(digest) = text.strip_prefix('@') else { return 0 };
    let Some((algorithm, hash)) = digest.split_once(':') else { return 0 };
    let is_algorithm = algorithm.split(['-', '_', '+', '.']).all(|part| {
        part.starts_with(|c: char| c.is_ascii_alphabetic()) && part.chars().all(|c| c.is_ascii_alphanumeric())
    });
    let length = hash.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hash.len());
    if is_algorithm && length >= 2 { 1 + algorithm.len() + 1 + length } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::{Captures, Regex};

    use super::*;

    fn replacements() -> Replacements {
        let list = [
            ("quay.io/origin/router", "r.example.com/router@sha256:12"),
            ("quay.io/origin/dns", "d.example.com/dns:v1"),
        ];
        Replacements::new(list.map(|(source, target)| (source.to_owned(), target.to_owned())).into())
    }

    #[test]
    fn references_are_replaced_with_their_tag_or_digest() {
        let digest = format!("quay.io/origin/router@sha256:{}", "ab".repeat(32));
        for (text, want) in [
            ("quay.io/origin/router", "r.example.com/router@sha256:12"),
            ("quay.io/origin/router:latest", "r.example.com/router@sha256:12"),
            (digest.as_str(), "r.example.com/router@sha256:12"),
            ("--image=quay.io/origin/dns:v4.0 --other", "--image=d.example.com/dns:v1 --other"),
            (
                "a: \"quay.io/origin/dns\"\nb: 'quay.io/origin/router:x'\n",
                "a: \"d.example.com/dns:v1\"\nb: 'r.example.com/router@sha256:12'\n",
            ),
            ("docker://quay.io/origin/dns", "docker://d.example.com/dns:v1"),
            ("quay.io/origin/dns quay.io/origin/dns", "d.example.com/dns:v1 d.example.com/dns:v1"),
            ("\u{e4} quay.io/origin/dns \u{e4}", "\u{e4} d.example.com/dns:v1 \u{e4}"),
        ] {
            assert_eq!(replacements().rewrite(text), (want.to_owned(), false), "{text}");
        }
    }

    #[test]
    fn other_references_are_not_changed() {
        for text in [
            "quay.io/origin/router-proxy:latest",
            "quay.io/origin/router/sub",
            "mirror.example.com/quay.io/origin/router",
            "xquay.io/origin/router",
            "quay.io/origin",
        ] {
            assert_eq!(replacements().rewrite(text), (text.to_owned(), false), "{text}");
        }
        // The following text does not end a reference; the tooling does not replace such text either, and does not
        // report it.
        for text in
            ["quay.io/origin/router:a,quay.io/origin/dnx", "quay.io/origin/router;", "quay.io/origin/router:\u{e4}"]
        {
            assert_eq!(replacements().rewrite(text), (text.to_owned(), true), "{text}");
        }
    }

    #[test]
    fn the_longest_source_wins() {
        let pairs = [("q/a", "a"), ("q/a:v1", "b")].map(|(source, target)| (source.to_owned(), target.to_owned()));
        assert_eq!(Replacements::new(pairs.into()).rewrite("q/a:v1 q/a:v2 q/a").0, "b a a");
        assert_eq!(replacements().replace("nothing of ours"), None);
    }

    /// The tooling's own expression, applied until nothing changes: it consumes the delimiter after a reference, so
    /// that one run misses a reference that begins with it.
    fn by_the_tooling(text: &str) -> String {
        let pairs = replacements().0;
        let sources: Vec<String> = pairs.iter().map(|(source, _)| regex::escape(source)).collect();
        let locator = r"(:[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}|@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*[:][[:xdigit:]]{2,})?";
        let pattern =
            Regex::new(&format!(r#"([^0-9A-Za-z_]|^)({}){locator}([\t\n\f\r "']|$)"#, sources.join("|"))).unwrap();
        let mut text = text.to_owned();
        loop {
            let next = pattern.replace_all(&text, |found: &Captures<'_>| {
                let (_, target) = pairs.iter().find(|(source, _)| source == &found[2]).unwrap();
                format!("{}{target}{}", &found[1], &found[4])
            });
            if next == text {
                return text;
            }
            text = next.into_owned();
        }
    }

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("quay.io/origin/router".to_owned()),
            Just("quay.io/origin/dns".to_owned()),
            Just("quay.io/origin".to_owned()),
            "(:|@)[a-z0-9:_.-]{0,6}",
            "@sha256:[0-9a-f]{0,4}",
            "[ \t\n\"'=,;a-z\u{e4}]",
            Just(":v1".to_owned()),
        ]
    }

    proptest! {
        /// Texts without a reference after a dot, a dash or a slash, where this provisioner uses another rule.
        #[test]
        fn references_are_replaced_as_by_the_openshift_tooling(pieces in proptest::collection::vec(piece(), 0..12)) {
            let text = pieces.concat();
            let inside = ["quay.io/origin/router", "quay.io/origin/dns"].iter().any(|source| {
                text.match_indices(source).any(|(at, _)| text[..at].ends_with(['.', '-', '/']))
            });
            prop_assume!(!inside);
            prop_assert_eq!(replacements().rewrite(&text).0, by_the_tooling(&text));
        }

        #[test]
        fn arbitrary_text_does_not_panic(text: String) {
            let (rewritten, _) = replacements().rewrite(&text);
            prop_assert!(replacements().replace(&text).is_some() || rewritten == text);
        }
    }
}
