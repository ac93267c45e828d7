//! Which objects of the system namespace a BundleDeployment, a ProvisionerClass or a Catalog may name, and which ServiceAccounts a
//! BundleDeployment or a Resolution. Pure.
//!
//! A BundleDeployment or a Catalog names the Secret that its image or archive is fetched with, and ConfigMaps that hold its content. A
//! ProvisionerClass names a Secret. The controller reads these objects with its own rights, so an annotation of the object limits who may name
//! it: names separated by commas, with `*` for any characters. On a ServiceAccount, these annotations limit which objects are installed on
//! its behalf.

use std::{collections::BTreeMap, fmt};

use chandler_core::pattern;
use kube::core::ObjectMeta;

/// The annotation with the names of the BundleDeployments that may name the object.
const BUNDLE_DEPLOYMENTS: &str = "chandler.dev/bundledeployments";
/// The annotation with the names of the ProvisionerClasses that may name the object.
const PROVISIONER_CLASSES: &str = "chandler.dev/provisionerclasses";
/// The annotation with the names of the Catalogs that may name the object.
const CATALOGS: &str = "chandler.dev/catalogs";
/// The annotation with the names of the Resolutions whose sets may name the object.
const RESOLUTIONS: &str = "chandler.dev/resolutions";
/// All of them.
const ANNOTATIONS: [&str; 4] = [BUNDLE_DEPLOYMENTS, PROVISIONER_CLASSES, CATALOGS, RESOLUTIONS];

/// An object that names a Secret or a ConfigMap of the system namespace, or a ServiceAccount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grantee<'a> {
    /// The BundleDeployment of this name.
    BundleDeployment(&'a str),
    /// The ProvisionerClass of this name.
    ProvisionerClass(&'a str),
    /// The Catalog of this name.
    Catalog(&'a str),
    /// The set of the Resolution of this name: its BundleDeployment, and its members'.
    Resolution(&'a str),
}

impl<'a> Grantee<'a> {
    /// The name of the object.
    pub fn name(self) -> &'a str {
        let (Self::BundleDeployment(name)
        | Self::ProvisionerClass(name)
        | Self::Catalog(name)
        | Self::Resolution(name)) = self;
        name
    }

    /// The annotation that lists the grantees of this kind.
    pub fn annotation(self) -> &'static str {
        match self {
            Self::BundleDeployment(_) => BUNDLE_DEPLOYMENTS,
            Self::ProvisionerClass(_) => PROVISIONER_CLASSES,
            Self::Catalog(_) => CATALOGS,
            Self::Resolution(_) => RESOLUTIONS,
        }
    }

    /// Whether the grantee may name an object. Every grantee may name an object without any of these annotations, unless a grant is
    /// required.
    pub fn may_name(self, object: &ObjectMeta, grant_required: bool) -> bool {
        self.is_granted(object.annotations.as_ref(), grant_required)
    }

    /// Like [`may_name`](Self::may_name), for an object with these annotations.
    pub fn is_granted(self, annotations: Option<&BTreeMap<String, String>>, grant_required: bool) -> bool {
        let text = |annotation: &str| annotations.and_then(|annotations| annotations.get(annotation));
        match text(self.annotation()) {
            Some(patterns) => patterns.split(',').any(|pattern| pattern::matches(pattern.trim(), self.name())),
            // A grant to some BundleDeployments does not open the object to every ProvisionerClass or Catalog, and so on.
            None => !grant_required && ANNOTATIONS.iter().all(|annotation| text(annotation).is_none()),
        }
    }

    /// Whether annotations list Resolutions at all.
    pub fn lists_resolutions(annotations: &BTreeMap<String, String>) -> bool {
        annotations.contains_key(RESOLUTIONS)
    }
}

impl fmt::Display for Grantee<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BundleDeployment(name) => write!(f, "BundleDeployment {name}"),
            Self::ProvisionerClass(name) => write!(f, "ProvisionerClass {name}"),
            Self::Catalog(name) => write!(f, "Catalog {name}"),
            Self::Resolution(name) => write!(f, "Resolution {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_annotation_lists_the_grantees() {
        let object = |annotations: serde_json::Value| -> ObjectMeta {
            serde_json::from_value(json!({"name": "pull", "annotations": annotations})).unwrap()
        };
        let deployment = |name| Grantee::BundleDeployment(name);
        let class = Grantee::ProvisionerClass("harbour");
        let cases = [
            // The annotations, the grantee, whether it may name the object without and with --require-pull-secret-grant.
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
            (json!({BUNDLE_DEPLOYMENTS: "*"}), Grantee::Catalog("harbour"), (false, false)),
            (json!({CATALOGS: "harbour"}), Grantee::Catalog("harbour"), (true, true)),
            (json!({CATALOGS: "harbour"}), class, (false, false)),
            (json!(null), Grantee::Catalog("harbour"), (true, false)),
            (json!({RESOLUTIONS: "platform"}), Grantee::Resolution("platform"), (true, true)),
            (json!({RESOLUTIONS: "platform"}), Grantee::Resolution("platform-two"), (false, false)),
            (json!({RESOLUTIONS: "*"}), deployment("harbour"), (false, false)),
            (json!({BUNDLE_DEPLOYMENTS: "*"}), Grantee::Resolution("platform"), (false, false)),
        ];
        for (annotations, grantee, expected) in cases {
            let object = object(annotations.clone());
            let allowed = (grantee.may_name(&object, false), grantee.may_name(&object, true));
            assert_eq!(allowed, expected, "{annotations} {grantee}");
        }
    }
}
