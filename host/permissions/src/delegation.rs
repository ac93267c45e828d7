//! Objects of a release that make Chandler act for their writer, who may lack the permissions for that.
//!
//! Writing a BundleDeployment requires only the permission to write BundleDeployments, but makes the controller install
//! a bundle with the permissions of the account that it names. The API server does not check whether the writer may act
//! as that account, so a bundle that contains a BundleDeployment could grant permissions that its own account lacks.
//! This module requires instead:
//!
//! | object | required permission |
//! |---|---|
//! | a BundleDeployment, or a Resolution that installs a set, on behalf of another account | `impersonate` on that ServiceAccount |
//! | one of them that is installed with the permissions of the controller | all permissions |
//! | a PlatformOperator | the same for the account of the platform |
//! | a BundleDeployment whose source names a Secret or ConfigMap of the system namespace | `get` on it |
//! | a ChangeApproval of a BundleDeployment | `approve` on that BundleDeployment |
//! | a ProvisionerClass: it renders the bundles of every BundleDeployment that names it, which are installed with their permissions | all permissions |
//! | a Catalog, or a catalog of OLM that is used as one: it offers packages to every Resolution, which are installed with their permissions | all permissions |
//! | a PlatformPolicy: it decides what all PlatformOperators may install, with the permissions of the platform | all permissions |
//! | a Receiver: its author decides when the sources of other users are polled, and has the controller read its token | all permissions |
//! | an Alert: it sends what happens to the objects of other users to a server, with a Secret of the system namespace | all permissions |
//! | an object of these kinds that cannot be decoded | all permissions |
//! | any object in the system namespace: the controller trusts these, decisions in ConfigMaps among them, and Pods there can use the controller's account | all permissions |
//! | a CustomResourceDefinition of Chandler: it can disable checks of all of the above | all permissions |
//!
//! The table is closed over the kinds of Chandler by construction: [`OwnKind`] is matched without a wildcard, and each spec is
//! taken apart field by field, so that neither a new kind nor a new field compiles before this module has decided about it.

use std::{collections::BTreeSet, fmt};

use chandler_api::{
    AlertSpec, BundleDeploymentSpec, CatalogSpec, ChangeApprovalSpec, OlmCatalogs, OwnKind, PlatformOperatorSpec,
    PlatformPolicySpec, ReceiverSpec, ResolutionOutput, ResolutionSpec, ResolveSetOutput, ServiceAccountReference,
    SystemReference,
};
use chandler_core::ObjectKey;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::{
    account::{Account, AccountPolicy, NamedAccount, Unnamed},
    requirements::{Item, Need, Scope, Why, is_crd, one},
    rule::PolicyRule,
};

const BUNDLES: &str = "core.rukpak.io";

/// The options of the controller that affect what a bundle may contain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installation {
    /// What happens to BundleDeployments that name no account.
    pub accounts: AccountPolicy,
    /// The account that installs the packages of PlatformOperators; `None` for the account of a BundleDeployment that names none.
    pub platform: Option<Account>,
    /// The kinds of catalogs of OLM that are used like Catalogs.
    pub catalogs_from: Vec<OlmCatalogs>,
    /// The namespace of the controller, or `None` if it is unknown.
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
    /// Offer packages to the Resolutions of other users.
    Catalog,
    /// Limit, or allow, what the PlatformOperators of other users install.
    PlatformPolicy,
    /// Poll the sources of other users, at the request of others outside of the cluster.
    Receiver,
    /// Send what happens to the objects of other users to a server.
    Alert,
    /// Something that only the controller will know: its spec cannot be decoded.
    Undecodable,
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
            Self::Catalog => f.write_str("offers packages to the Resolutions of other users"),
            Self::PlatformPolicy => f.write_str("limits what the PlatformOperators of other users install"),
            Self::Receiver => f.write_str("decides when the sources of other users are polled"),
            Self::Alert => f.write_str("sends what happens to the objects of other users to a server"),
            Self::Undecodable => f.write_str("has a spec that cannot be decoded, so what it does is unknown"),
            Self::SystemNamespace => f.write_str("is in the namespace of the controller"),
            Self::Crd => f.write_str("defines an API of Chandler"),
        }
    }
}

impl Delegation {
    /// What an object of a release makes Chandler do.
    pub fn of(item: &Item<'_>, installation: &Installation) -> Vec<Self> {
        let mut found: Vec<Self> = reserved(item, installation).into_iter().collect();
        match OwnKind::of(&item.key.group, &item.key.kind) {
            Some(own) => found.extend(of_own(own, item, installation).unwrap_or_else(|| vec![Self::Undecodable])),
            None if is_olm_catalog(item.key, installation) => found.push(Self::Catalog),
            None => {}
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
            Self::ControllerRights
            | Self::Provisioner
            | Self::Catalog
            | Self::PlatformPolicy
            | Self::Receiver
            | Self::Alert
            | Self::Undecodable
            | Self::SystemNamespace
            | Self::Crd => {
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
    if key.namespace.as_deref().is_some_and(is_system) || (key.is_namespace() && is_system(&key.name)) {
        return Some(Delegation::SystemNamespace);
    }
    (is_crd(key) && OwnKind::is_crd(&key.name)).then_some(Delegation::Crd)
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

/// The actions that an object of ours requests from Chandler, or `None` if its spec cannot be decoded.
fn of_own(own: OwnKind, item: &Item<'_>, installation: &Installation) -> Option<Vec<Delegation>> {
    Some(match own {
        OwnKind::BundleDeployment => of_bundle_deployment(&spec(item)?, installation),
        OwnKind::ProvisionerClass => vec![Delegation::Provisioner],
        OwnKind::ChangeApproval => {
            let ChangeApprovalSpec { bundle_deployment, .. } = spec(item)?;
            vec![Delegation::Approves(bundle_deployment)]
        }
        OwnKind::Catalog => {
            let CatalogSpec { source, poll_interval: _, priority: _, suspend: _ } = spec(item)?;
            let reads = source.references().into_iter().filter_map(|reference| reads(reference, installation));
            [Delegation::Catalog].into_iter().chain(reads).collect()
        }
        OwnKind::Resolution => of_resolution(&spec(item)?, installation),
        OwnKind::PlatformOperator => of_platform_operator(&spec(item)?, installation),
        OwnKind::PlatformPolicy => {
            let PlatformPolicySpec { packages: _, require_platform_property: _, constraints: _ } = spec(item)?;
            vec![Delegation::PlatformPolicy]
        }
        OwnKind::Receiver => {
            let ReceiverSpec { secret_ref, kind: _, events: _, resources: _, oidc: _, suspend: _ } = spec(item)?;
            let token = reads(SystemReference::Secret(secret_ref.name), installation);
            [Delegation::Receiver].into_iter().chain(token).collect()
        }
        OwnKind::Alert => {
            let AlertSpec { provider, filter: _, summary: _, labels: _, suspend: _ } = spec(item)?;
            let reads =
                provider.secret_ref.and_then(|secret| reads(SystemReference::Secret(secret.name), installation));
            [Delegation::Alert].into_iter().chain(reads).collect()
        }
    })
}

/// The spec as the controller will read it. The API server drops null where a field cannot have it.
fn spec<T: DeserializeOwned>(item: &Item<'_>) -> Option<T> {
    let mut spec = item.value.get("spec").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    remove_nulls(&mut spec);
    serde_json::from_value(spec).ok()
}

fn remove_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(remove_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_nulls),
        _ => {}
    }
}

fn of_bundle_deployment(spec: &BundleDeploymentSpec, installation: &Installation) -> Vec<Delegation> {
    let BundleDeploymentSpec {
        install_namespace,
        service_account,
        source,
        // A ProvisionerClass only renders, which gives no permission. Values are read with the permissions of the account; all others
        // decide how objects are written with them.
        provisioner_class_name: _,
        config: _,
        values_from: _,
        preflight: _,
        suspend: _,
        rollout: _,
        approval: _,
        probes: _,
        drift: _,
        ignore_differences: _,
        collision_protection: _,
        adopt: _,
        deletion: _,
        // The Secret is read with the permissions of the account too, and nothing is written to the other cluster but with its credentials.
        kube_config: _,
    } = spec;
    let references = source.references().into_iter().filter_map(|reference| reads(reference, installation));
    installs(service_account.as_ref(), install_namespace, installation).into_iter().chain(references).collect()
}

fn of_resolution(spec: &ResolutionSpec, installation: &Installation) -> Vec<Delegation> {
    let ResolutionSpec {
        output,
        // What is chosen, and when. The permissions of the account limit what may be installed.
        packages: _,
        constraints: _,
        catalogs: _,
        upgrades: _,
        dependencies: _,
        prereleases: _,
        suspend: _,
        approval: _,
        maintenance_windows: _,
        dependency_upgrades: _,
    } = spec;
    let Some(ResolutionOutput { kind: _, resolve_set: Some(set) }) = output else { return Vec::new() };
    let ResolveSetOutput {
        install_namespace,
        namespaces,
        service_account,
        // The account creates the BundleDeployments. One that exists under a name is never overwritten.
        names: _,
        config: _,
        collision_protection: _,
        history_limit: _,
        on_failure: _,
        to_decision: _,
    } = set;
    // With a default account of the install namespace, members in other namespaces have other accounts.
    let others = namespaces.values().filter(|_| service_account.is_none());
    let all: BTreeSet<Delegation> = [install_namespace]
        .into_iter()
        .chain(others)
        .filter_map(|namespace| installs(service_account.as_ref(), namespace, installation))
        .collect();
    all.into_iter().collect()
}

fn of_platform_operator(spec: &PlatformOperatorSpec, installation: &Installation) -> Vec<Delegation> {
    let PlatformOperatorSpec { install_namespace, package: _, version: _, channels: _, catalogs: _, config: _ } = spec;
    if let Some(account) = &installation.platform {
        return vec![Delegation::Account(account.clone())];
    }
    match (&installation.accounts.unnamed, install_namespace) {
        // A catalog decides the namespace, and with it the account.
        (Unnamed::Default(default), None) if default.namespace.is_none() => vec![Delegation::ControllerRights],
        (_, namespace) => installs(None, namespace.as_deref().unwrap_or_default(), installation).into_iter().collect(),
    }
}

/// Whose permissions install a bundle, or `None` if the controller rejects it.
fn installs(
    account: Option<&ServiceAccountReference>,
    install_namespace: &str,
    installation: &Installation,
) -> Option<Delegation> {
    let named = account
        .map(|ServiceAccountReference { name, namespace }| NamedAccount { namespace: namespace.as_deref(), name });
    match installation.accounts.account(named, install_namespace) {
        Ok(Some(account)) => Some(Delegation::Account(account)),
        Ok(None) => Some(Delegation::ControllerRights),
        Err(_) => None,
    }
}

fn reads(reference: SystemReference, installation: &Installation) -> Option<Delegation> {
    let namespace = installation.system_namespace.clone()?;
    Some(match reference {
        SystemReference::Secret(name) => Delegation::Reads { resource: "secrets", namespace, name },
        SystemReference::ConfigMap(name) => Delegation::Reads { resource: "configmaps", namespace, name },
    })
}

/// Whether an object is a catalog of OLM that the controller uses like a Catalog.
fn is_olm_catalog(key: &ObjectKey, installation: &Installation) -> bool {
    installation.catalogs_from.iter().any(|from| {
        let kind = from.resource();
        (&kind.group, &kind.kind) == (&key.group, &key.kind)
            && from.namespace().is_none_or(|namespace| key.namespace.as_deref() == Some(namespace))
    })
}

#[cfg(test)]
mod tests;
