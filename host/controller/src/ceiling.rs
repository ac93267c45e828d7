//! Which objects may reference a Secret or ConfigMap of the system namespace. Pure.
//!
//! A BundleDeployment references a pull secret, and ConfigMaps as its content; a ProvisionerClass references a pull secret. The
//! controller reads them with its own rights, regardless of which user wrote the reference. So an annotation of the referenced
//! object grants access: a comma-separated list of names, in which `*` matches any characters.

use std::fmt;

use chandler_core::pattern;
use kube::core::ObjectMeta;

/// The annotation with the names of the BundleDeployments that may reference the object.
pub(crate) const BUNDLE_DEPLOYMENTS: &str = "chandler.dev/bundledeployments";
/// The annotation with the names of the ProvisionerClasses that may reference the object.
pub(crate) const PROVISIONER_CLASSES: &str = "chandler.dev/provisionerclasses";

/// The object that references an object of the system namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User<'a> {
    /// The BundleDeployment of this name.
    BundleDeployment(&'a str),
    /// The ProvisionerClass of this name.
    ProvisionerClass(&'a str),
}

impl User<'_> {
    /// The annotation that grants access to this user.
    pub(crate) fn annotation(self) -> &'static str {
        match self {
            Self::BundleDeployment(_) => BUNDLE_DEPLOYMENTS,
            Self::ProvisionerClass(_) => PROVISIONER_CLASSES,
        }
    }

    /// Whether this user may reference an object. An object without either annotation may be referenced by all, unless a grant is
    /// required.
    pub(crate) fn may_name(self, object: &ObjectMeta, grant_required: bool) -> bool {
        let (Self::BundleDeployment(name) | Self::ProvisionerClass(name)) = self;
        let annotations = object.annotations.as_ref();
        let text = |annotation: &str| annotations.and_then(|annotations| annotations.get(annotation));
        match text(self.annotation()) {
            Some(patterns) => patterns.split(',').any(|pattern| pattern::matches(pattern.trim(), name)),
            // A grant to users of one kind excludes all users of the other kind.
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
    fn an_annotation_grants_access() {
        let object = |annotations: serde_json::Value| -> ObjectMeta {
            serde_json::from_value(json!({"name": "pull", "annotations": annotations})).unwrap()
        };
        let deployment = |name| User::BundleDeployment(name);
        let class = User::ProvisionerClass("harbour");
        let cases = [
            // The annotations, the user, and whether access is allowed without and with --require-pull-secret-grant.
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
