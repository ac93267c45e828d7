//! Who may name which object of the system namespace. Pure.
//!
//! A BundleDeployment names the Secret with which its image is pulled, and ConfigMaps as its content; a ProvisionerClass names
//! a Secret. The controller reads them with its own rights, whoever wrote the name. An annotation of the object is the
//! ceiling: it lists the names of those who may, separated by commas, with `*` for any characters.

use std::fmt;

use kube::core::ObjectMeta;

/// The annotation with the names of the BundleDeployments that may name the object.
pub(crate) const BUNDLE_DEPLOYMENTS: &str = "chandler.dev/bundledeployments";
/// The annotation with the names of the ProvisionerClasses that may name the object.
pub(crate) const PROVISIONER_CLASSES: &str = "chandler.dev/provisionerclasses";

/// Who names an object of the system namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User<'a> {
    /// The BundleDeployment of this name.
    BundleDeployment(&'a str),
    /// The ProvisionerClass of this name.
    ProvisionerClass(&'a str),
}

impl User<'_> {
    /// The annotation that grants it.
    pub(crate) fn annotation(self) -> &'static str {
        match self {
            Self::BundleDeployment(_) => BUNDLE_DEPLOYMENTS,
            Self::ProvisionerClass(_) => PROVISIONER_CLASSES,
        }
    }

    /// Whether it may name an object. One without either annotation may be named by all, unless a grant is required.
    pub(crate) fn may_name(self, object: &ObjectMeta, grant_required: bool) -> bool {
        let (Self::BundleDeployment(name) | Self::ProvisionerClass(name)) = self;
        let annotations = object.annotations.as_ref();
        let text = |annotation: &str| annotations.and_then(|annotations| annotations.get(annotation));
        match text(self.annotation()) {
            Some(patterns) => patterns.split(',').any(|pattern| matches(pattern.trim(), name)),
            // What is granted to some of one kind is not open to all of the other.
            None => !grant_required && text(BUNDLE_DEPLOYMENTS).or(text(PROVISIONER_CLASSES)).is_none(),
        }
    }
}

impl fmt::Display for User<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BundleDeployment(name) => write!(f, "BundleDeployment {name}"),
            Self::ProvisionerClass(name) => write!(f, "ProvisionerClass {name}"),
        }
    }
}

/// Whether a pattern stands for a name: `*` for any characters, also for none; everything else for itself.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    // The earliest place leaves the most for the parts that follow.
    for part in parts {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        let cases = [
            // The pattern, names that it stands for, names that it does not.
            ("harbour", &["harbour"][..], &["harbours", "a-harbour", ""][..]),
            ("team-a-*", &["team-a-", "team-a-x"], &["team-a", "team-b-x", "x-team-a-x"]),
            ("*-a", &["-a", "team-a"], &["a", "team-ab"]),
            ("a*b*c", &["abc", "axbxc", "abbcc"], &["ab", "acb", "abcd"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("*", &["", "x"], &[]),
            ("**", &["", "x"], &[]),
            ("", &[""], &["x"]),
            ("a.c", &["a.c"], &["abc"]),
            ("[a-z]?", &["[a-z]?"], &["ab"]),
        ];
        for (pattern, yes, no) in cases {
            for name in yes {
                assert!(matches(pattern, name), "{pattern:?} {name:?}");
            }
            for name in no {
                assert!(!matches(pattern, name), "{pattern:?} {name:?}");
            }
        }
    }

    #[test]
    fn an_annotation_names_those_who_may() {
        let object = |annotations: serde_json::Value| -> ObjectMeta {
            serde_json::from_value(json!({"name": "pull", "annotations": annotations})).unwrap()
        };
        let deployment = |name| User::BundleDeployment(name);
        let class = User::ProvisionerClass("harbour");
        let cases = [
            // The annotations, who names it, whether that is allowed without and with --require-pull-secret-grant.
            (json!(null), deployment("harbour"), (true, false)),
            (json!({"other": "*"}), deployment("harbour"), (true, false)),
            (json!({BUNDLE_DEPLOYMENTS: "team-a-*, harbour"}), deployment("harbour"), (true, true)),
            (json!({BUNDLE_DEPLOYMENTS: "team-a-*, harbour"}), deployment("team-a-shop"), (true, true)),
            (json!({BUNDLE_DEPLOYMENTS: "team-a-*, harbour"}), deployment("team-b-shop"), (false, false)),
            (json!({BUNDLE_DEPLOYMENTS: "team-a-*, harbour"}), class, (false, false)),
            (json!({PROVISIONER_CLASSES: "harbour"}), class, (true, true)),
            (json!({PROVISIONER_CLASSES: "harbour"}), deployment("harbour"), (false, false)),
            (json!({BUNDLE_DEPLOYMENTS: ""}), deployment("harbour"), (false, false)),
            (json!({BUNDLE_DEPLOYMENTS: " , "}), deployment("harbour"), (false, false)),
            (json!({BUNDLE_DEPLOYMENTS: "*"}), deployment("harbour"), (true, true)),
        ];
        for (annotations, user, expected) in cases {
            let object = object(annotations.clone());
            let allowed = (user.may_name(&object, false), user.may_name(&object, true));
            assert_eq!(allowed, expected, "{annotations} {user}");
        }
    }

    proptest! {
        #[test]
        fn a_pattern_stands_for_what_a_regular_expression_does(pattern in "[ab*]{0,8}", name in "[ab]{0,10}") {
            let naive = |pattern: &[u8], name: &[u8]| -> bool {
                fn go(pattern: &[u8], name: &[u8]) -> bool {
                    match pattern.split_first() {
                        None => name.is_empty(),
                        Some((b'*', rest)) => {
                            go(rest, name) || name.split_first().is_some_and(|(_, left)| go(pattern, left))
                        }
                        Some((first, rest)) => {
                            name.split_first().is_some_and(|(found, left)| found == first && go(rest, left))
                        }
                    }
                }
                go(pattern, name)
            };
            prop_assert_eq!(matches(&pattern, &name), naive(pattern.as_bytes(), name.as_bytes()));
        }
    }
}
