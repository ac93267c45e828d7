//! What the parent of an ApplySet lists in its annotations (KEP-3659). Pure.

use std::collections::BTreeSet;

use kube::api::ApiResource;
use serde_json::Value;

use crate::pure::{
    desired::Desired,
    live,
    member::Member,
    owner::{GROUP_KINDS, NAMESPACES, Owner, SET_ID, TOOL, TOOLING},
};

/// The kinds and namespaces that the parent lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    pub(crate) group_kinds: BTreeSet<String>,
    pub(crate) namespaces: BTreeSet<String>,
}

impl Inventory {
    /// The inventory of a set with these objects.
    pub(crate) fn of<'a>(desired: &'a [Desired], stale: impl IntoIterator<Item = &'a Member>) -> Self {
        let keys = desired.iter().map(|desired| &desired.key).chain(stale.into_iter().map(|member| &member.key));
        let mut inventory = Self::default();
        for key in keys {
            let group = if key.group.is_empty() { String::new() } else { format!(".{}", key.group) };
            inventory.group_kinds.insert(format!("{}{group}", key.kind));
            inventory.namespaces.extend(key.namespace.clone());
        }
        inventory
    }

    /// The namespaces other than the parent's: all, since the parent is cluster-scoped.
    pub(crate) fn namespaces(&self) -> &BTreeSet<String> {
        &self.namespaces
    }

    /// The inventory in the annotations of the parent.
    pub(crate) fn read(parent: &Value) -> Self {
        let list = |name: &str| {
            let text = live::annotation(parent, name).unwrap_or_default();
            text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        Self { group_kinds: list(GROUP_KINDS), namespaces: list(NAMESPACES) }
    }

    pub(crate) fn union(mut self, other: Self) -> Self {
        self.group_kinds.extend(other.group_kinds);
        self.namespaces.extend(other.namespaces);
        self
    }
}

/// The API resource of the parent.
pub(crate) fn resource(owner: &Owner) -> ApiResource {
    ApiResource {
        group: owner.group.clone(),
        version: owner.version.clone(),
        api_version: owner.api_version(),
        kind: owner.kind.clone(),
        plural: owner.plural.clone(),
    }
}

/// The kinds that the parent lists, as group and kind, or `None` if it has no list.
pub(crate) fn group_kinds(parent: &Value) -> Option<Vec<(String, String)>> {
    live::annotation(parent, GROUP_KINDS)?;
    let listed = Inventory::read(parent).group_kinds;
    Some(
        listed
            .into_iter()
            .map(|group_kind| match group_kind.split_once('.') {
                Some((kind, group)) => (group.to_owned(), kind.to_owned()),
                None => (String::new(), group_kind),
            })
            .collect(),
    )
}

/// Whether the parent lists exactly this inventory, and has the finalizer of the owner.
pub(crate) fn is_current(parent: &Value, owner: &Owner, wanted: &Inventory) -> bool {
    owner.finalizer.as_ref().is_none_or(|finalizer| live::has_finalizer(parent, finalizer))
        && live::label(parent, SET_ID) == Some(&owner.set_id())
        && live::annotation(parent, TOOLING) == Some(TOOL)
        && live::annotation(parent, GROUP_KINDS).is_some()
        && Inventory::read(parent) == *wanted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pure::desired::tests::desired;

    #[test]
    fn kinds_round_trip() {
        let parent = json!({"metadata": {"annotations": {GROUP_KINDS: "ConfigMap,Deployment.apps,X.a.b"}}});
        let pair = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
        assert_eq!(
            group_kinds(&parent),
            Some(vec![pair("", "ConfigMap"), pair("apps", "Deployment"), pair("a.b", "X")])
        );
        assert_eq!(group_kinds(&json!({})), None);
        assert_eq!(group_kinds(&json!({"metadata": {"annotations": {GROUP_KINDS: ""}}})), Some(vec![]));
    }

    #[test]
    fn a_parent_is_current_only_with_its_label_tool_and_lists() {
        let owner = live::tests::owner();
        let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
        let wanted = Inventory::of(&[desired(&config_map, true)], []);
        let parent = |id: &str, tool: &str, kinds: &str| {
            json!({"metadata": {
                "labels": {SET_ID: id},
                "annotations": {TOOLING: tool, GROUP_KINDS: kinds, NAMESPACES: "install"},
            }})
        };
        let id = owner.set_id();
        for (parent, current) in [
            (parent(&id, TOOL, "ConfigMap"), true),
            (parent("other", TOOL, "ConfigMap"), false),
            (parent(&id, "kubectl/v1", "ConfigMap"), false),
            (parent(&id, TOOL, "ConfigMap,Secret"), false),
            (json!({}), false),
        ] {
            assert_eq!(is_current(&parent, &owner, &wanted), current, "{parent}");
        }
        let empty = json!({"metadata": {"labels": {SET_ID: id}, "annotations": {TOOLING: TOOL}}});
        assert!(!is_current(&empty, &owner, &Inventory::default()), "an empty list is a list");
        let held = owner.held_by("example.com/f");
        let mut parent = parent(&id, TOOL, "ConfigMap");
        assert!(!is_current(&parent, &held, &wanted));
        parent["metadata"]["finalizers"] = json!(["other", "example.com/f"]);
        assert!(is_current(&parent, &held, &wanted));
    }

    #[test]
    fn an_inventory_lists_kinds_and_namespaces() {
        let object = |api_version: &str, kind: &str, namespaced: bool| {
            desired(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}), namespaced)
        };
        let first = Inventory::of(&[object("v1", "ConfigMap", true), object("a.b/v1", "Ox", false)], []);
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<BTreeSet<_>>();
        assert_eq!((&first.group_kinds, first.namespaces()), (&texts(&["ConfigMap", "Ox.a.b"]), &texts(&["install"])));
        let second = Inventory { group_kinds: texts(&["Secret"]), namespaces: texts(&["n"]) };
        let both = first.union(second);
        assert_eq!(both.group_kinds, texts(&["ConfigMap", "Ox.a.b", "Secret"]));
        assert_eq!(both.namespaces, texts(&["install", "n"]));
    }
}
