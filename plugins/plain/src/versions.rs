//! Replaces versions in strings, as OpenShift's release tooling does.
//!
//! Manifests contain the placeholders `0.0.1-snapshot` for the version of the release, and `0.0.1-snapshot-<component>` for the version of
//! a component. The rule comes from `oc adm release new` (`NewComponentVersionsMapper` in `pkg/cli/admin/release/image_mapper.go`). As with
//! images it is applied to the strings of objects, and of two versions with one character between them both are replaced, while the tooling
//! misses the second.

use std::collections::BTreeMap;

/// The replacements for the placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Versions {
    /// For `0.0.1-snapshot`.
    pub(crate) release: Option<String>,
    /// For `0.0.1-snapshot-<component>`, by component.
    pub(crate) components: BTreeMap<String, String>,
}

/// The placeholder for the version of the release.
pub(crate) const SNAPSHOT: &str = "0.0.1-snapshot";

/// A placeholder without a configured version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The version of the release; the placeholder is not replaced.
    Release,
    /// The version of a component.
    Component(String),
    /// A dash follows `0.0.1-snapshot`, but no component.
    Unnamed,
}

impl Versions {
    /// Whether there is nothing to replace.
    pub(crate) fn is_empty(&self) -> bool {
        self.release.is_none() && self.components.is_empty()
    }

    /// The text with all versions replaced, and the placeholders without a version, or `None` if it contains no placeholder.
    pub(crate) fn replace(&self, text: &str) -> Option<(String, Vec<Missing>)> {
        text.contains(SNAPSHOT).then(|| self.rewrite(text))
    }

    fn rewrite(&self, text: &str) -> (String, Vec<Missing>) {
        let mut out = String::with_capacity(text.len());
        let mut missing = Vec::new();
        // The last character of the input: a replacement may end in any.
        let mut last = None;
        let mut rest = text;
        while let Some(at) = rest.find(SNAPSHOT) {
            let (before, found) = rest.split_at(at);
            let (mark, behind) = found.split_at(SNAPSHOT.len());
            out.push_str(before);
            let inside = before.chars().next_back().or(last).is_some_and(is_word);
            let reference = if inside { None } else { reference(behind) };
            let (read, known) = match reference {
                None => (mark, None),
                Some(Reference::Release) => (mark, Some(self.release.as_deref().ok_or(Missing::Release))),
                Some(Reference::Unnamed) => (mark, Some(Err(Missing::Unnamed))),
                Some(Reference::Component(name)) => {
                    let known = self.components.get(name).map(String::as_str);
                    let end = mark.len() + 1 + name.len();
                    (found.get(..end).unwrap_or(mark), Some(known.ok_or_else(|| Missing::Component(name.to_owned()))))
                }
            };
            match known {
                Some(Ok(version)) => out.push_str(version),
                Some(Err(reason)) => {
                    out.push_str(read);
                    missing.push(reason);
                }
                None => out.push_str(read),
            }
            last = read.chars().next_back();
            rest = found.get(read.len()..).unwrap_or_default();
        }
        out.push_str(rest);
        (out, missing)
    }
}

/// The meaning of a `0.0.1-snapshot`.
enum Reference<'a> {
    Release,
    Component(&'a str),
    Unnamed,
}

/// The placeholder, by the text after it, or `None` if it is the beginning of a longer word.
fn reference(behind: &str) -> Option<Reference<'_>> {
    let Some(name) = behind.strip_prefix('-') else {
        return (!behind.starts_with(is_word)).then_some(Reference::Release);
    };
    let end = name.find(|c: char| !is_part_of_name(c)).unwrap_or(name.len());
    Some(match name.get(..end).filter(|name| !name.is_empty()) {
        Some(name) => Reference::Component(name),
        None => Reference::Unnamed,
    })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_part_of_name(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

/// Whether a component may have this name (`reAllowedVersionKey` in the tooling): at least two characters, no dash at
/// its ends.
pub(crate) fn is_component(name: &str) -> bool {
    name.len() >= 2 && name.chars().all(is_part_of_name) && !name.starts_with('-') && !name.ends_with('-')
}

/// A semantic version without its build metadata, which versions of releases do not have (it is invalid in a label), or `None` if the text
/// is not a semantic version.
pub(crate) fn semantic(text: &str) -> Option<&str> {
    let (version, build) = text.split_once('+').map_or((text, None), |(version, build)| (version, Some(build)));
    let (core, pre_release) = version.split_once('-').map_or((version, None), |(core, rest)| (core, Some(rest)));
    let is_number =
        |part: &str| part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'));
    let is_identifier =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let numbers: Vec<&str> = core.split('.').collect();
    let legal = numbers.len() == 3
        && numbers.iter().all(|part| !part.is_empty() && is_number(part))
        && pre_release.is_none_or(|rest| {
            rest.split('.')
                .all(|part| is_identifier(part) && (is_number(part) || part.bytes().any(|byte| !byte.is_ascii_digit())))
        })
        && build.is_none_or(|rest| rest.split('.').all(is_identifier));
    legal.then_some(version)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use regex::{Captures, Regex};

    use super::*;

    fn versions(release: Option<&str>, components: &[(&str, &str)]) -> Versions {
        let components = components.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned()));
        Versions { release: release.map(str::to_owned), components: components.collect() }
    }

    fn component(name: &str) -> Missing {
        Missing::Component(name.to_owned())
    }

    /// The cases of `TestNewComponentVersionsMapper` and more.
    #[test]
    fn versions_are_replaced_as_by_the_openshift_tooling() {
        let both: &[(&str, &str)] = &[("a", "2.0.0"), ("b", "1.0.0")];
        for (release, components, text, want, missing) in [
            (None, both, "version: 0.0.1-snapshot\n", "version: 0.0.1-snapshot\n", vec![Missing::Release]),
            (None, both, "version: 0.0.1-snapshot-\n", "version: 0.0.1-snapshot-\n", vec![Missing::Unnamed]),
            (None, &[], "version: 0.0.1-snapshot-a\n", "version: 0.0.1-snapshot-a\n", vec![component("a")]),
            (Some("2.0.0"), &[], "version: 0.0.1-snapshot\n", "version: 2.0.0\n", vec![]),
            (None, both, "version: 0.0.1-snapshot-a", "version: 2.0.0", vec![]),
            (None, both, "0.0.1-snapshot-a", "2.0.0", vec![]),
            (None, both, ":0.0.1-snapshot-a", ":2.0.0", vec![]),
            (None, both, "-0.0.1-snapshot-a_", "-2.0.0_", vec![]),
            (None, both, "0.0.1-snapshot-a 0.0.1-snapshot-b", "2.0.0 1.0.0", vec![]),
            (None, both, "0.0.1-snapshot-a0.0.1-snapshot-b", "0.0.1-snapshot-a0.0.1-snapshot-b", vec![component("a0")]),
            (Some("4.1.0"), both, "0.0.1-snapshot_", "0.0.1-snapshot_", vec![]),
            (Some("4.1.0"), both, "0.0.1-snapshots x0.0.1-snapshot", "0.0.1-snapshots x0.0.1-snapshot", vec![]),
            (Some("4.1.0"), both, "10.0.0.1-snapshot", "10.4.1.0", vec![]),
            (Some("4.1.0"), both, "\u{e4}0.0.1-snapshot\u{e4}", "\u{e4}4.1.0\u{e4}", vec![]),
            (Some("4.1.0"), both, "0.0.1-snapshot 0.0.1-snapshot,0.0.1-snapshot", "4.1.0 4.1.0,4.1.0", vec![]),
            (Some("4.1.0"), both, "0.0.1-snapshot-A", "0.0.1-snapshot-A", vec![Missing::Unnamed]),
        ] {
            assert_eq!(versions(release, components).replace(text), Some((want.to_owned(), missing)), "{text:?}");
        }
        assert_eq!(versions(None, &[]).replace("0.0.1"), None);
    }

    #[test]
    fn components_and_versions_are_validated_as_by_the_openshift_tooling() {
        for (name, legal) in [
            ("kubernetes", true),
            ("machine-os", true),
            ("a1", true),
            ("a", false),
            ("-a", false),
            ("a-", false),
            ("A1", false),
            ("", false),
        ] {
            assert_eq!(is_component(name), legal, "{name:?}");
        }
        for (text, want) in [
            ("4.20.1", Some("4.20.1")),
            ("4.20.0-rc.1", Some("4.20.0-rc.1")),
            ("4.20.0-0.nightly-2026-01-01-120000", Some("4.20.0-0.nightly-2026-01-01-120000")),
            ("1.2.3+build.5", Some("1.2.3")),
            ("1.2.3-a+b", Some("1.2.3-a")),
            ("0.0.0", Some("0.0.0")),
            ("1.2", None),
            ("v1.2.3", None),
            ("01.2.3", None),
            ("1.2.3.4", None),
            ("1.2.3-", None),
            ("1.2.3-01", None),
            ("1.2.3-a..b", None),
            ("1.2.3+", None),
            ("1.2.3 ", None),
            ("", None),
        ] {
            assert_eq!(semantic(text), want, "{text:?}");
        }
    }

    /// The tooling's own expression, applied until nothing changes: it consumes the character after a version.
    fn by_the_tooling(known: &Versions, text: &str) -> String {
        let pattern = r"([^0-9A-Za-z_]|^)0\.0\.1-snapshot(?:-([a-z0-9-]+)|([^0-9A-Za-z_])|$)";
        let pattern = Regex::new(pattern).unwrap();
        let mut text = text.to_owned();
        loop {
            let next = pattern.replace_all(&text, |found: &Captures<'_>| {
                let group = |number| found.get(number).map_or("", |group| group.as_str());
                let version = match (group(2), group(3)) {
                    ("", "-") => None,
                    ("", _) => known.release.as_ref(),
                    (component, _) => known.components.get(component),
                };
                match version {
                    Some(version) => format!("{}{version}{}", group(1), group(3)),
                    None => found[0].to_owned(),
                }
            });
            if next == text {
                return text;
            }
            text = next.into_owned();
        }
    }

    proptest! {
        #[test]
        fn texts_are_rewritten_as_by_the_openshift_tooling(
            pieces in proptest::collection::vec(prop_oneof![Just(SNAPSHOT.to_owned()), "[-a-cA_ .,:\u{e4}]{0,3}"], 0..10)
        ) {
            let known = versions(Some("4.1.0"), &[("a", "2.0.0"), ("b-c", "3.0.0-x")]);
            let text = pieces.concat();
            prop_assert_eq!(known.rewrite(&text).0, by_the_tooling(&known, &text));
        }

        #[test]
        fn other_text_is_not_changed(text: String) {
            let known = versions(Some("4.1.0"), &[]);
            prop_assert!(known.replace(&text).is_none() || text.contains(SNAPSHOT));
        }
    }
}
