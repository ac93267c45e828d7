//! Who may name which object of the system namespace. Pure.
//!
//! A BundleDeployment names the Secret with which its image is pulled, and ConfigMaps as its content; a ProvisionerClass names
//! a Secret. The controller reads them with its own rights, whoever wrote the name. An annotation of the object is the
//! ceiling: it lists the names of those who may, separated by commas, with `*` for any characters.

use std::fmt;

use chandler_core::pattern;
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
            Some(patterns) => patterns.split(',').any(|pattern| pattern::matches(pattern.trim(), name)),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
