//! What objects of a release have Chandler do, for which their writer may lack the rights.
//!
//! Writing a BundleDeployment takes the right to write BundleDeployments, and has the controller install a bundle with the
//! rights of whichever account it names. The API server does not ask whether its writer may act as that account, so a bundle
//! that holds one would pass on rights that its own account lacks. What is asked for here instead:
//!
//! | the object | takes |
//! |---|---|
//! | a BundleDeployment that names another account | `impersonate` on that ServiceAccount |
//! | a BundleDeployment that is installed with the rights of the controller | every right |
//! | a BundleDeployment that names a Secret or ConfigMap of the system namespace | `get` on it |
//! | whatever approves a change of a BundleDeployment | `approve` on that BundleDeployment |
//! | a ProvisionerClass: it decides what every BundleDeployment that names it installs, with their rights | every right |
//! | anything in the system namespace: the controller trusts it, and Pods there can use the controller's account | every right |
//! | a CustomResourceDefinition of Chandler: it can take checks away from all of the above | every right |

use std::fmt;

use serde_json::{Map, Value};

use crate::{
    account::{Account, AccountPolicy, NamedAccount},
    requirements::{Item, Need, Scope, Why, is_crd, one},
    rule::PolicyRule,
};

/// The API groups that the controller obeys.
pub const OWN_GROUPS: &[&str] = &["core.rukpak.io", "chandler.dev"];
const BUNDLES: &str = "core.rukpak.io";
const CLASSES: &str = "chandler.dev";

/// How Chandler is installed, as far as it matters to what a bundle may hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// What is done about BundleDeployments that name no account.
    pub accounts: AccountPolicy,
    /// The namespace of the controller; none where it is not known.
    pub system_namespace: Option<String>,
}

/// What an object has Chandler do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Delegation {
    /// Install a bundle on behalf of this account.
    Account(Account),
    /// Install a bundle with the rights of the controller.
    ControllerRights,
    /// Read an object of the system namespace.
    Reads {
        /// `secrets` or `configmaps`.
        resource: &'static str,
        /// The system namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Roll out a change of the BundleDeployment of this name.
    Approves(String),
    /// Render the bundles of others.
    Provisioner,
    /// Whatever is done with the objects of the system namespace.
    SystemNamespace,
    /// Accept other objects than before as its own.
    Crd,
}

impl fmt::Display for Delegation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(account) => write!(f, "is installed on behalf of ServiceAccount {account}"),
            Self::ControllerRights => {
                f.write_str("names no ServiceAccount, so it is installed with the rights of the controller")
            }
            Self::Reads { resource, namespace, name } => {
                let kind = if *resource == "secrets" { "Secret" } else { "ConfigMap" };
                write!(f, "makes the controller read {kind} {namespace}/{name}")
            }
            Self::Approves(name) => write!(f, "approves a change of BundleDeployment {name}"),
            Self::Provisioner => f.write_str("decides what the BundleDeployments of others install"),
            Self::SystemNamespace => f.write_str("is in the namespace of the controller"),
            Self::Crd => f.write_str("defines an API of Chandler"),
        }
    }
}

impl Delegation {
    /// What an object of a release has Chandler do.
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

    /// What takes part in it has to be held by whoever writes the object; empty where its own account is enough.
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

/// Whether an object is part of the installation of Chandler itself: in the system namespace, that namespace, or one of its
/// CustomResourceDefinitions.
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

/// What the writer of these objects needs beyond the rights to write them.
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
    // What is not a text is refused by the API server; until then it counts as not said, which takes more rights.
    let named = text(spec, "/serviceAccount/name")
        .map(|name| NamedAccount { namespace: text(spec, "/serviceAccount/namespace"), name });
    let account = installation.accounts.account(named, text(spec, "/installNamespace").unwrap_or_default());
    let mut found: Vec<Delegation> = match account {
        Ok(Some(account)) => vec![Delegation::Account(account)],
        Ok(None) => vec![Delegation::ControllerRights],
        // The controller refuses it.
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

/// The text at a path below `spec`.
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
