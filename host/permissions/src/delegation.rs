//! Objects of a release that make Chandler act for their writer, who may lack the permissions for that.
//!
//! Writing a BundleDeployment requires only the permission to write BundleDeployments, but makes the controller install
//! a bundle with the permissions of the account that it names. The API server does not check whether the writer may act
//! as that account, so a bundle that contains a BundleDeployment could grant permissions that its own account lacks.
//! This module requires instead:
//!
//! | object | required permission |
//! |---|---|
//! | a BundleDeployment that names another account | `impersonate` on that ServiceAccount |
//! | a BundleDeployment that is installed with the permissions of the controller | all permissions |
//! | a BundleDeployment that names a Secret or ConfigMap of the system namespace | `get` on it |
//! | a ChangeApproval of a BundleDeployment | `approve` on that BundleDeployment |
//! | a ProvisionerClass: it renders the bundles of every BundleDeployment that names it, which are installed with their permissions | all permissions |
//! | any object in the system namespace: the controller trusts these, and Pods there can use the controller's account | all permissions |
//! | a CustomResourceDefinition of Chandler: it can disable checks of all of the above | all permissions |

use std::fmt;

use serde_json::{Map, Value};

use crate::{
    account::{Account, AccountPolicy, NamedAccount},
    requirements::{Item, Need, Scope, Why, is_crd, one},
    rule::PolicyRule,
};

/// The API groups of Chandler.
pub const OWN_GROUPS: &[&str] = &["core.rukpak.io", "chandler.dev"];
const BUNDLES: &str = "core.rukpak.io";
const CLASSES: &str = "chandler.dev";

/// The options of the controller that affect what a bundle may contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// What happens to BundleDeployments that name no account.
    pub accounts: AccountPolicy,
    /// The namespace of the controller; none if it is unknown.
    pub system_namespace: Option<String>,
}

/// What an object makes Chandler do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Delegation {
    /// Install a bundle on behalf of this account.
    Account(Account),
    /// Install a bundle with the rights of the controller.
    ControllerRights,
    /// Read an object in the system namespace.
    Reads {
        /// `secrets` or `configmaps`.
        resource: &'static str,
        /// The system namespace.
        namespace: String,
        /// The name of the object.
        name: String,
    },
    /// Roll out a change of the BundleDeployment with this name.
    Approves(String),
    /// Render the bundles of other users.
    Provisioner,
    /// Trust the object because of its namespace.
    SystemNamespace,
    /// Accept objects of its API in another form than before.
    Crd,
}

impl fmt::Display for Delegation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(account) => write!(f, "is installed on behalf of ServiceAccount {account}"),
            Self::ControllerRights => {
                f.write_str("names no ServiceAccount, so it is installed with the permissions of the controller")
            }
            Self::Reads { resource, namespace, name } => {
                let kind = if *resource == "secrets" { "Secret" } else { "ConfigMap" };
                write!(f, "makes the controller read {kind} {namespace}/{name}")
            }
            Self::Approves(name) => write!(f, "approves a change of BundleDeployment {name}"),
            Self::Provisioner => f.write_str("renders the bundles of other users"),
            Self::SystemNamespace => f.write_str("is in the namespace of the controller"),
            Self::Crd => f.write_str("defines an API of Chandler"),
        }
    }
}

impl Delegation {
    /// What an object of a release makes Chandler do.
    pub fn of(item: &Item<'_>, installation: &Installation) -> Vec<Self> {
        let spec = item.value.get("spec").and_then(Value::as_object);
        let mut found: Vec<Self> = reserved(item, installation).into_iter().collect();
        match (item.key.group.as_str(), item.key.kind.as_str()) {
            (BUNDLES, "BundleDeployment") => found.extend(of_bundle_deployment(spec, installation)),
            (CLASSES, "ProvisionerClass") => found.push(Self::Provisioner),
            (CLASSES, "ChangeApproval") => {
                found.push(Self::Approves(text(spec, "/bundleDeployment").unwrap_or_default().to_owned()));
            }
            _ => {}
        }
        found
    }

    /// The permissions that the writer of the object must hold; empty if `own`, its own account, is used.
    fn rules(&self, own: &Account) -> Vec<(Scope, PolicyRule)> {
        let in_namespace = |namespace: &str| Scope::Namespace(namespace.to_owned());
        match self {
            Self::Account(account) if account == own => Vec::new(),
            Self::Account(Account { namespace, name }) => {
                vec![(in_namespace(namespace), one("impersonate", "", "serviceaccounts", Some(name)))]
            }
            Self::Reads { resource, namespace, name } => {
                vec![(in_namespace(namespace), one("get", "", resource, Some(name)))]
            }
            Self::Approves(name) => {
                vec![(Scope::Cluster, one("approve", BUNDLES, "bundledeployments", Some(name)))]
            }
            Self::ControllerRights | Self::Provisioner | Self::SystemNamespace | Self::Crd => {
                let all = [PolicyRule::everything(), PolicyRule::every_path()];
                all.map(|rule| (Scope::Cluster, rule)).into()
            }
        }
    }
}

/// Whether an object is part of the installation of Chandler: the system namespace, an object in it, or one of
/// Chandler's CustomResourceDefinitions.
pub fn reserved(item: &Item<'_>, installation: &Installation) -> Option<Delegation> {
    let key = item.key;
    let is_system = |namespace: &str| installation.system_namespace.as_deref() == Some(namespace);
    if key.namespace.as_deref().is_some_and(is_system)
        || (key.group.is_empty() && key.kind == "Namespace" && is_system(&key.name))
    {
        return Some(Delegation::SystemNamespace);
    }
    let is_own = |name: &str| OWN_GROUPS.iter().any(|group| name.ends_with(&format!(".{group}")));
    (is_crd(key) && is_own(&key.name)).then_some(Delegation::Crd)
}

/// The permissions that the writer of these objects needs in addition to writing them.
pub(crate) fn needs(items: &[Item<'_>], installation: &Installation, own: &Account) -> Vec<Need> {
    let delegations = items
        .iter()
        .flat_map(|item| Delegation::of(item, installation).into_iter().map(|delegation| (item.key, delegation)));
    delegations
        .flat_map(|(object, delegation)| {
            delegation.rules(own).into_iter().map(move |(scope, rule)| Need {
                scope,
                rule,
                why: Why::Delegates { object: object.clone(), what: delegation.clone() },
            })
        })
        .collect()
}

fn of_bundle_deployment(spec: Option<&Map<String, Value>>, installation: &Installation) -> Vec<Delegation> {
    // The API server rejects values that are not texts; until then they count as missing, which requires more
    // permissions.
    let named = text(spec, "/serviceAccount/name")
        .map(|name| NamedAccount { namespace: text(spec, "/serviceAccount/namespace"), name });
    let account = installation.accounts.account(named, text(spec, "/installNamespace").unwrap_or_default());
    let mut found: Vec<Delegation> = match account {
        Ok(Some(account)) => vec![Delegation::Account(account)],
        Ok(None) => vec![Delegation::ControllerRights],
        // The controller rejects it.
        Err(_) => Vec::new(),
    };
    let reads = |resource, name: &str| {
        let namespace = installation.system_namespace.clone()?;
        Some(Delegation::Reads { resource, namespace, name: name.to_owned() })
    };
    found.extend(text(spec, "/source/image/pullSecret").and_then(|name| reads("secrets", name)));
    let maps = spec.and_then(|spec| spec.get("source")?.get("configMaps")?.as_array()).into_iter().flatten();
    found.extend(maps.filter_map(|map| reads("configmaps", map.pointer("/configMap/name")?.as_str()?)));
    found
}

/// The text at a JSON pointer below `spec`.
fn text<'a>(spec: Option<&'a Map<String, Value>>, pointer: &str) -> Option<&'a str> {
    let mut parts = pointer.split('/').skip(1);
    let mut value = spec?.get(parts.next()?)?;
    for part in parts {
        value = value.get(part)?;
    }
    value.as_str()
}

#[cfg(test)]
mod tests;
