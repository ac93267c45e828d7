//! The permissions that a ServiceAccount needs to install a rendered bundle, as roles and as text.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
};

use chandler_api::{BundleDeployment, ValuesReference};
use chandler_core::{Object, ObjectKey, Release};
use chandler_permissions::{
    Account, AccountPolicy, Delegation, Escalation, ExistingRoles, Held, Installation, Item, Missing, Parent,
    PolicyRule, Requirements, RoleKey, Why, kinds, kinds::Kind, missing, missing::in_words, requirements, roles::place,
};
use serde_json::Value;

/// The maximum number of names on a line of text.
const MAX_NAMES: usize = 8;

/// The objects of a release with their resources and namespaces.
pub struct PlannedObjects<'a> {
    objects: Vec<(ObjectKey, Kind, &'a Object)>,
}

/// The permissions that a release needs.
pub struct NeededPermissions {
    /// All permissions, with what they are needed for.
    pub missing: Missing,
    /// The namespaces that the release contains.
    pub own_namespaces: BTreeSet<String>,
    /// Kinds that are neither built in nor defined by a CRD of the release. Their resource names are guessed.
    pub guessed: BTreeSet<String>,
    /// The permissions to read objects with values, by their namespace.
    values: BTreeMap<Option<String>, Vec<PolicyRule>>,
}

impl<'a> PlannedObjects<'a> {
    /// The objects of a release in the namespace to install into. Kinds are looked up among the built-in ones and the CRDs of the
    /// release.
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

    /// The roles that bindings in the release reference and that the release does not contain.
    pub fn references(&self) -> Vec<RoleKey> {
        Requirements::references(&self.items())
    }

    /// The permissions that an account needs to install the release as the BundleDeployment of this name.
    pub fn needs(
        &self,
        name: &str,
        account: &Account,
        existing: &ExistingRoles,
        escalation: Escalation,
    ) -> NeededPermissions {
        let parent = Parent { group: "core.rukpak.io", plural: "bundledeployments", name };
        let items = self.items();
        let required = requirements(&items, &[], &[], Some(parent), existing);
        let required = required.with_delegations(&items, &installation(), account);
        let objects = || self.objects.iter().map(|(key, _, object)| (key, object));
        let defined: BTreeSet<(String, String)> =
            crds(objects().map(|(_, object)| *object)).keys().map(|(group, kind)| own(group, kind)).collect();
        NeededPermissions {
            missing: missing(&required, &Held::default(), escalation),
            own_namespaces: objects().filter(|(key, _)| key.is_namespace()).map(|(key, _)| key.name.clone()).collect(),
            guessed: objects()
                .filter(|(key, _)| kinds::built_in(&key.group, &key.kind).is_none())
                .filter(|(key, _)| !defined.contains(&own(&key.group, &key.kind)))
                .map(|(key, _)| format!("{}.{}", key.kind, key.group))
                .collect(),
            values: BTreeMap::new(),
        }
    }
}

fn own(group: &str, kind: &str) -> (String, String) {
    (group.to_owned(), kind.to_owned())
}

/// The kinds of the CRDs among these objects, by group and kind.
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

impl NeededPermissions {
    /// The rules by the namespace of the role that can grant them; `None` for a ClusterRole.
    pub fn rules_by_namespace(&self) -> BTreeMap<Option<String>, Vec<PolicyRule>> {
        let mut rules = place(&self.missing.rules(), &self.own_namespaces);
        for (namespace, values) in &self.values {
            rules.entry(namespace.clone()).or_default().extend(values.iter().cloned());
        }
        rules
    }

    /// Adds the permissions to read and watch the objects of `spec.valuesFrom`.
    pub fn read_values(&mut self, install_namespace: &str, references: &[ValuesReference]) {
        let rules = self.values.entry(Some(install_namespace.to_owned())).or_default();
        for reference in references {
            let rule = PolicyRule {
                verbs: ["get", "list", "watch"].map(str::to_owned).to_vec(),
                api_groups: vec![String::new()],
                resources: vec![reference.kind.plural().to_owned()],
                resource_names: vec![reference.name.clone()],
                ..PolicyRule::default()
            };
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        self.values.retain(|_, rules| !rules.is_empty());
    }

    /// Each rule as text, with what it is needed for.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (scope, rules) in self.missing.rules() {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{scope}");
            for rule in rules {
                let _ = writeln!(text, "  {}", in_words(&rule, MAX_NAMES));
                let reasons = self.missing.reasons(&scope, &rule);
                for why in reasons.iter().take(MAX_NAMES) {
                    let _ = writeln!(text, "    {why}");
                }
                if reasons.len() > MAX_NAMES {
                    let _ = writeln!(text, "    and {} more", reasons.len() - MAX_NAMES);
                }
            }
        }
        for (namespace, rules) in &self.values {
            let _ = writeln!(text, "namespace {}", namespace.as_deref().unwrap_or_default());
            for rule in rules {
                let _ = writeln!(text, "  {}\n    spec.valuesFrom", in_words(rule, MAX_NAMES));
            }
        }
        text
    }

    /// Objects that make Chandler act on behalf of their author. To write them, the account needs more than write permission.
    pub fn delegations(&self) -> Vec<String> {
        let needed = |why: &Why| match why {
            Why::Delegates { what: Delegation::Account(_), .. } => {
                "the account needs permission to act as that account"
            }
            Why::Delegates { what: Delegation::Reads { .. }, .. } => "the account needs permission to read that",
            Why::Delegates { what: Delegation::Approves(_), .. } => "the account needs permission to approve that",
            Why::Delegates { what: Delegation::ControllerRights, .. } => {
                "the account needs all permissions, unless the controller runs with --default-service-account or \
                 --require-service-account"
            }
            _ => "the account needs all permissions",
        };
        self.missing.delegations().into_iter().map(|why| format!("{why}: {}", needed(why))).collect()
    }

    /// Notes for the administrator who applies the roles.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let namespaces: Vec<&str> = self.own_namespaces.iter().map(String::as_str).collect();
        if !namespaces.is_empty() {
            notes.push(format!(
                "the permissions for {} are granted in the whole cluster: the namespace is part of the bundle, so it cannot \
                 contain a Role before the installation",
                namespaces.join(", ")
            ));
        }
        let guessed: Vec<&str> = self.guessed.iter().map(String::as_str).collect();
        if !guessed.is_empty() {
            notes.push(format!(
                "the resource names of {} are guessed: the bundle has no CRD for these kinds",
                guessed.join(", ")
            ));
        }
        notes.extend(self.missing.too_much().into_iter().map(|why| {
            format!(
                "{why}; `escalate` or `bind` allows it, and then the account can grant itself any permission: shorten the lists of the rules \
                 instead"
            )
        }));
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
            format!(
                "a binding references {role}, which is not in the bundle; `bind` allows that for any rules of the role"
            )
        }));
        notes
    }
}

/// Adds the optional permissions with which the controller reads what is below unhealthy objects: in the namespace to install into, and in
/// each other namespace that has rules.
pub fn add_causes(rules_by_namespace: &mut BTreeMap<Option<String>, Vec<PolicyRule>>, install_namespace: &str) {
    let own = |text: &[&str]| text.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let rule = |group: &str, resources: &[&str], verb: &str| PolicyRule {
        verbs: own(&[verb]),
        api_groups: own(&[group]),
        resources: own(resources),
        resource_names: Vec::new(),
        non_resource_urls: Vec::new(),
    };
    rules_by_namespace.entry(Some(install_namespace.to_owned())).or_default();
    for rules in rules_by_namespace.iter_mut().filter_map(|(namespace, rules)| namespace.as_ref().map(|_| rules)) {
        rules.extend([
            rule("", &["events", "pods"], "list"),
            rule("", &["persistentvolumeclaims"], "get"),
            rule("apps", &["replicasets"], "list"),
            rule("batch", &["jobs"], "list"),
        ]);
    }
}

/// Warnings about rules that grant more than they appear to.
pub fn warnings<'a>(rules: impl IntoIterator<Item = &'a PolicyRule>) -> Vec<String> {
    let mut warnings = BTreeSet::new();
    for rule in rules {
        if *rule == PolicyRule::everything() {
            warnings
                .insert("these roles grant all permissions: the account becomes a cluster administrator".to_owned());
        }
        if rule.verbs.iter().any(|verb| verb == "impersonate") {
            let names = rule.resource_names.join(", ");
            warnings.insert(format!(
                "these roles let the account impersonate the ServiceAccounts {names}, with all their permissions"
            ));
        }
    }
    warnings.into_iter().collect()
}

/// The installation of Chandler. The command does not know the options of the controller, so it assumes the defaults.
fn installation() -> Installation {
    let system_namespace = chandler_controller::Options::default().system_namespace;
    Installation { system_namespace: Some(system_namespace), ..Installation::default() }
}

/// The beginning of the names of printed roles. No role of Chandler itself begins like that: applying a printed role must not replace one.
const ROLE_PREFIX: &str = "chandler-installs-";

/// The name of the roles that grant all permissions that a BundleDeployment needs.
pub fn role_name(deployment: &str) -> String {
    format!("{ROLE_PREFIX}{deployment}")
}

/// The name of the roles that grant only missing permissions. It depends on the rules, so that applying these roles does not replace
/// others that this command printed before.
pub fn supplement_name(deployment: &str, rules: &BTreeMap<Option<String>, Vec<PolicyRule>>) -> String {
    let text = format!("{rules:?}");
    let digest = chandler_core::Digest::of(text.as_bytes());
    format!("{ROLE_PREFIX}{deployment}-{}", digest.hex().get(..8).unwrap_or_default())
}

/// The account that a BundleDeployment names.
pub fn account_of(deployment: &BundleDeployment) -> Option<Account> {
    // This policy refuses nothing.
    chandler_decisions::account::account(deployment, &AccountPolicy::OPTIONAL).ok().flatten()
}

/// Parses an account: `NAMESPACE/NAME`, or `NAME` in this namespace.
pub fn account(text: &str, namespace: &str) -> Account {
    let (namespace, name) = text.split_once('/').unwrap_or((namespace, text));
    Account { namespace: namespace.to_owned(), name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn printed_roles_replace_no_role_of_chandler() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let mut names = 0;
        for file in fs::read_dir(directory).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            for name in text.lines().filter_map(|line| line.trim().strip_prefix("name: ")) {
                names += 1;
                // Every printed name begins with the prefix, whatever the BundleDeployment is named.
                assert!(!name.trim_matches('"').starts_with(ROLE_PREFIX), "{name}");
            }
        }
        assert!(names > 100, "the names of deploy/ are read: {names}");
        for deployment in ["", "view", "edit", "admin", "content"] {
            let supplement = supplement_name(deployment, &BTreeMap::new());
            assert!(role_name(deployment).starts_with(ROLE_PREFIX) && supplement.starts_with(ROLE_PREFIX));
        }
    }
}
