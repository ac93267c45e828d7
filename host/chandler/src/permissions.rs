//! What a rendered bundle needs of a ServiceAccount, as roles and in words.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
};

use chandler_core::{Object, ObjectKey, Release};
use chandler_permissions::{
    Account, Delegation, Escalation, ExistingRoles, Held, Installation, Item, Missing, Parent, PolicyRule,
    Requirements, RoleKey, Why, kinds, kinds::Kind, missing, missing::in_words, requirements, roles::place,
};
use serde_json::Value;

/// How many names a line of text lists.
const NAMED: usize = 8;

/// A release as it would be in a cluster.
pub struct Planned<'a> {
    objects: Vec<(ObjectKey, Kind, &'a Object)>,
}

/// What a release needs.
pub struct Needed {
    /// Every single thing.
    pub missing: Missing,
    /// The namespaces that come with the release.
    pub own_namespaces: BTreeSet<String>,
    /// Kinds that are neither built in nor defined by the release: how they are addressed was guessed.
    pub guessed: BTreeSet<String>,
}

impl<'a> Planned<'a> {
    /// The objects of a release in the namespace to install into. Kinds are looked up among those that are built in and
    /// those that the release defines.
    pub fn new(release: &'a Release, install_namespace: &str) -> Self {
        let defined = crds(release.objects());
        let objects = release.objects().iter().map(|object| {
            let key = &object.key;
            let kind = defined.get(&(key.group.as_str(), key.kind.as_str())).cloned();
            let kind = kind.unwrap_or_else(|| kinds::guess(key));
            let namespace = || key.namespace.clone().unwrap_or_else(|| install_namespace.to_owned());
            (ObjectKey { namespace: kind.namespaced.then(namespace), ..key.clone() }, kind, object)
        });
        Self { objects: objects.collect() }
    }

    fn items(&self) -> Vec<Item<'_>> {
        self.objects
            .iter()
            .map(|(key, kind, object)| Item { key, plural: &kind.plural, value: &object.value })
            .collect()
    }

    /// The roles outside the release that its bindings name.
    pub fn references(&self) -> Vec<RoleKey> {
        Requirements::references(&self.items())
    }

    /// What installing it as the BundleDeployment of this name needs of an account.
    pub fn needs(&self, name: &str, account: &Account, existing: &ExistingRoles, escalation: Escalation) -> Needed {
        let parent = Parent { group: "core.rukpak.io", plural: "bundledeployments", name };
        let items = self.items();
        let required = requirements(&items, &[], &[], Some(parent), existing);
        let required = required.with_delegations(&items, &installation(), account);
        let is_namespace = |key: &ObjectKey| key.group.is_empty() && key.kind == "Namespace";
        let objects = || self.objects.iter().map(|(key, _, object)| (key, object));
        let defined: BTreeSet<(String, String)> =
            crds(objects().map(|(_, object)| *object)).keys().map(|(group, kind)| own(group, kind)).collect();
        Needed {
            missing: missing(&required, &Held::default(), escalation),
            own_namespaces: objects().filter(|(key, _)| is_namespace(key)).map(|(key, _)| key.name.clone()).collect(),
            guessed: objects()
                .filter(|(key, _)| kinds::built_in(&key.group, &key.kind).is_none())
                .filter(|(key, _)| !defined.contains(&own(&key.group, &key.kind)))
                .map(|(key, _)| format!("{}.{}", key.kind, key.group))
                .collect(),
        }
    }
}

fn own(group: &str, kind: &str) -> (String, String) {
    (group.to_owned(), kind.to_owned())
}

/// The kinds that CustomResourceDefinitions among these objects bring, by group and kind.
fn crds<'a>(objects: impl IntoIterator<Item = &'a Object>) -> HashMap<(&'a str, &'a str), Kind> {
    let crds = objects.into_iter().filter(|object| object.key.kind == "CustomResourceDefinition");
    crds.filter_map(|object| {
        let spec = object.value.get("spec")?;
        let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str);
        let plural = text("/names/plural")?.to_owned();
        let namespaced = text("/scope") != Some("Cluster");
        Some(((text("/group")?, text("/names/kind")?), Kind { plural, namespaced }))
    })
    .collect()
}

impl Needed {
    /// The rules by the namespace of the role that can grant them.
    pub fn places(&self) -> BTreeMap<Option<String>, Vec<PolicyRule>> {
        place(&self.missing.rules(), &self.own_namespaces)
    }

    /// In words, each rule with what it is needed for.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (scope, rules) in self.missing.rules() {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{scope}");
            for rule in rules {
                let _ = writeln!(text, "  {}", in_words(&rule, NAMED));
                let reasons = self.missing.reasons(&scope, &rule);
                for why in reasons.iter().take(NAMED) {
                    let _ = writeln!(text, "    {why}");
                }
                if reasons.len() > NAMED {
                    let _ = writeln!(text, "    and {} more", reasons.len() - NAMED);
                }
            }
        }
        text
    }

    /// What the bundle holds that has Chandler do something, for which the account must hold more than the rights to write it.
    pub fn delegations(&self) -> Vec<String> {
        let rights = |why: &Why| match why {
            Why::Delegates { what: Delegation::Account(_), .. } => {
                "whoever writes it must be allowed to act as that account"
            }
            Why::Delegates { what: Delegation::Reads { .. }, .. } => "whoever writes it must be allowed to read that",
            Why::Delegates { what: Delegation::Approves(_), .. } => "whoever writes it must be allowed to approve that",
            Why::Delegates { what: Delegation::ControllerRights, .. } => {
                "whoever writes it must hold every right, unless the controller runs with --default-service-account or \
                 --require-service-account"
            }
            _ => "whoever writes it must hold every right",
        };
        self.missing.delegations().into_iter().map(|why| format!("{why}: {}", rights(why))).collect()
    }

    /// What whoever applies the roles should know.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let namespaces: Vec<&str> = self.own_namespaces.iter().map(String::as_str).collect();
        if !namespaces.is_empty() {
            notes.push(format!(
                "what is needed in {} is granted in the whole cluster, since the namespace comes with the bundle and can \
                 hold no Role before",
                namespaces.join(", ")
            ));
        }
        let guessed: Vec<&str> = self.guessed.iter().map(String::as_str).collect();
        if !guessed.is_empty() {
            notes.push(format!(
                "the resource names of {} are guessed: the bundle does not define these kinds",
                guessed.join(", ")
            ));
        }
        let unknown: BTreeSet<&RoleKey> = self
            .missing
            .needs()
            .iter()
            .filter_map(|need| match &need.why {
                Why::UnknownRole { role, .. } => Some(role),
                _ => None,
            })
            .collect();
        notes.extend(unknown.into_iter().map(|role| {
            format!("{role} is bound and does not come with the bundle; `bind` allows that whatever it holds")
        }));
        notes
    }
}

/// What it means to grant these rules, where it is more than it seems.
pub fn warnings<'a>(rules: impl IntoIterator<Item = &'a PolicyRule>) -> Vec<String> {
    let mut warnings = BTreeSet::new();
    for rule in rules {
        if *rule == PolicyRule::everything() {
            warnings.insert(
                "these roles grant every right there is: the account becomes an administrator of the cluster"
                    .to_owned(),
            );
        }
        if rule.verbs.iter().any(|verb| verb == "impersonate") {
            let names = rule.resource_names.join(", ");
            warnings.insert(format!(
                "these roles let the account act as the ServiceAccounts {names}, with all their rights"
            ));
        }
    }
    warnings.into_iter().collect()
}

/// How Chandler is installed, as far as it is known without asking the controller: as its options are by default.
fn installation() -> Installation {
    let system_namespace = chandler_controller::Options::default().system_namespace;
    Installation { system_namespace: Some(system_namespace), ..Installation::default() }
}

/// The name of roles that grant all that a BundleDeployment needs.
pub fn role_name(deployment: &str) -> String {
    format!("chandler-{deployment}")
}

/// The name of roles that grant only what is missing: one for each content, so that applying them takes nothing away that
/// other roles of ours grant.
pub fn supplement_name(deployment: &str, places: &BTreeMap<Option<String>, Vec<PolicyRule>>) -> String {
    let text = format!("{places:?}");
    let digest = chandler_core::Digest::of(text.as_bytes());
    format!("chandler-{deployment}-{}", digest.hex().get(..8).unwrap_or_default())
}

/// An account as `NAMESPACE/NAME`, or `NAME` in a namespace.
pub fn account(text: &str, namespace: &str) -> Account {
    let (namespace, name) = text.split_once('/').unwrap_or((namespace, text));
    Account { namespace: namespace.to_owned(), name: name.to_owned() }
}
