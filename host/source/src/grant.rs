//! Which objects of the system namespace a BundleDeployment, a ProvisionerClass or a Catalog may name, and which ServiceAccounts a
//! BundleDeployment or a Resolution. Pure.
//!
//! A BundleDeployment or a Catalog names the Secret that its image or archive is fetched with, and ConfigMaps that hold its content. A
//! ProvisionerClass names a Secret. The controller reads these objects with its own rights, so an annotation of the object limits who may name
//! it: names separated by commas, with `*` for any characters. Names are first come, first served, so further annotations can limit on behalf
//! of which ServiceAccounts a BundleDeployment may name the object, and to which servers the credentials in it are sent. On a ServiceAccount, these annotations limit which objects are installed on
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
/// The annotation with the ServiceAccounts (`NAMESPACE/NAME`) on whose behalf BundleDeployments may name the object.
pub(crate) const SERVICE_ACCOUNTS: &str = "chandler.dev/serviceaccounts";
/// The annotation with the servers (`HOST`, or `HOST:PORT` for another port than the scheme's) that credentials are for.
pub(crate) const HOSTS: &str = "chandler.dev/hosts";
/// The annotations that list grantees.
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
    /// required. Where the object lists ServiceAccounts, a BundleDeployment must also be installed on behalf of one of them:
    /// `NAMESPACE/NAME`, or `None` for the controller.
    pub fn may_name(self, account: Option<&str>, object: &ObjectMeta, grant_required: bool) -> bool {
        let listed = object.annotations.as_ref().and_then(|annotations| annotations.get(SERVICE_ACCOUNTS));
        let has_account = match (self, listed) {
            (Self::BundleDeployment(_), Some(patterns)) => account.is_some_and(|account| lists(patterns, account)),
            // Objects of administrators have no account.
            (Self::ProvisionerClass(_) | Self::Catalog(_) | Self::Resolution(_), Some(_)) | (_, None) => true,
        };
        has_account && self.is_granted(object.annotations.as_ref(), grant_required)
    }

    /// Like [`may_name`](Self::may_name), for an object with these annotations.
    pub fn is_granted(self, annotations: Option<&BTreeMap<String, String>>, grant_required: bool) -> bool {
        let text = |annotation: &str| annotations.and_then(|annotations| annotations.get(annotation));
        if let Some(patterns) = text(self.annotation()) {
            return lists(patterns, self.name());
        }
        // A grant to some BundleDeployments does not open the object to every ProvisionerClass or Catalog, and so on.
        let is_for_others = ANNOTATIONS.iter().any(|annotation| text(annotation).is_some())
            || text(SERVICE_ACCOUNTS).is_some() && !matches!(self, Self::BundleDeployment(_));
        !grant_required && !is_for_others
    }

    /// Whether annotations list Resolutions at all.
    pub fn lists_resolutions(annotations: &BTreeMap<String, String>) -> bool {
        annotations.contains_key(RESOLUTIONS)
    }
}

/// Whether patterns, which commas separate, match a name.
fn lists(patterns: &str, name: &str) -> bool {
    patterns.split(',').any(|pattern| pattern::matches(pattern.trim(), name))
}

/// Whether the credentials in an object may be sent to a server, `HOST` or `HOST:PORT`: every server if the object lists none.
pub(crate) fn is_for_server(object: &ObjectMeta, server: &str) -> bool {
    let hosts = object.annotations.as_ref().and_then(|annotations| annotations.get(HOSTS));
    hosts.is_none_or(|hosts| lists(&hosts.to_lowercase(), &server.to_lowercase()))
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
            let allowed = (grantee.may_name(None, &object, false), grantee.may_name(None, &object, true));
            assert_eq!(allowed, expected, "{annotations} {grantee}");
        }
    }

    #[test]
    fn an_annotation_lists_accounts_in_addition_to_names() {
        let deployment = Grantee::BundleDeployment("team-a-shop");
        let own = Some("accounts/team-a");
        let named = json!({BUNDLE_DEPLOYMENTS: "team-a-*", SERVICE_ACCOUNTS: "accounts/team-a, ci/*"});
        let accounts = json!({SERVICE_ACCOUNTS: "accounts/team-a"});
        let with_catalog = json!({SERVICE_ACCOUNTS: "accounts/team-a", CATALOGS: "all"});
        for (annotations, grantee, account, expected) in [
            (&named, deployment, own, (true, true)),
            (&named, deployment, Some("ci/any"), (true, true)),
            (&named, deployment, Some("team-b/team-a"), (false, false)),
            (&named, deployment, Some("team-a"), (false, false)),
            // The controller's own permissions are not an account.
            (&named, deployment, None, (false, false)),
            // The account alone is not enough.
            (&named, Grantee::BundleDeployment("team-b-shop"), own, (false, false)),
            (&accounts, deployment, own, (true, false)),
            (&accounts, deployment, Some("team-b/mine"), (false, false)),
            (&json!({SERVICE_ACCOUNTS: ""}), deployment, own, (false, false)),
            // An object for accounts is not open to every class.
            (&accounts, Grantee::ProvisionerClass("helm"), None, (false, false)),
            (&with_catalog, Grantee::Catalog("all"), None, (true, true)),
        ] {
            let object: ObjectMeta =
                serde_json::from_value(json!({"name": "pull", "annotations": annotations})).unwrap();
            let allowed = (grantee.may_name(account, &object, false), grantee.may_name(account, &object, true));
            assert_eq!(allowed, expected, "{annotations} {grantee} {account:?}");
        }
    }

    #[test]
    fn an_annotation_lists_the_servers_of_credentials() {
        let object = |annotations: serde_json::Value| -> ObjectMeta {
            serde_json::from_value(json!({"name": "web", "annotations": annotations})).unwrap()
        };
        for (hosts, server, expected) in [
            ("example.com", "example.com", true),
            ("Example.com", "EXAMPLE.com", true),
            // The port of the scheme needs no mention, and every other port does.
            ("example.com", "example.com:8443", false),
            ("example.com, example.com:8443", "example.com:8443", true),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "example.com", false),
            ("example.com", "example.com.mallory.invalid", false),
            ("", "example.com", false),
        ] {
            assert_eq!(is_for_server(&object(json!({HOSTS: hosts})), server), expected, "{hosts:?} {server}");
        }
        assert!(is_for_server(&object(json!(null)), "anything.invalid"));
    }
}
