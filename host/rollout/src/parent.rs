//! The ApplySet's own annotations, on the parent (KEP-3659).
//!
//! They are widened before the first write of a release, and narrowed after its last prune. Whenever the controller dies in
//! between, they list every kind that the set may hold.

use std::collections::BTreeSet;

use kube::api::ApiResource;
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    desired::Desired,
    error::RolloutError,
    live,
    owner::{GROUP_KINDS, NAMESPACES, Owner, SET_ID, TOOL, TOOLING},
    snapshot::Member,
};

/// The field manager of the parent's annotations, in the form that the KEP recommends.
const MANAGER: &str = "chandler-applyset";

/// What the parent says of its set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    group_kinds: BTreeSet<String>,
    namespaces: BTreeSet<String>,
}

impl Inventory {
    /// What the set holds when it holds these.
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

    /// The namespaces that are not that of the parent: all, since it has none.
    pub(crate) fn namespaces(&self) -> &BTreeSet<String> {
        &self.namespaces
    }

    /// What the parent says now.
    pub(crate) fn read(parent: &Value) -> Self {
        let list = |name: &str| {
            let text = live::annotation(parent, name).unwrap_or_default();
            text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        Self { group_kinds: list(GROUP_KINDS), namespaces: list(NAMESPACES) }
    }

    fn union(mut self, other: Self) -> Self {
        self.group_kinds.extend(other.group_kinds);
        self.namespaces.extend(other.namespaces);
        self
    }
}

/// How the parent is addressed.
pub(crate) fn resource(owner: &Owner) -> ApiResource {
    ApiResource {
        group: owner.group.clone(),
        version: owner.version.clone(),
        api_version: owner.api_version(),
        kind: owner.kind.clone(),
        plural: owner.plural.clone(),
    }
}

/// The kinds that the parent lists, as group and kind; none where it has no list.
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

/// Whether the parent says exactly this.
pub(crate) fn is_current(parent: &Value, owner: &Owner, wanted: &Inventory) -> bool {
    live::label(parent, SET_ID) == Some(&owner.set_id())
        && live::annotation(parent, TOOLING) == Some(TOOL)
        && live::annotation(parent, GROUP_KINDS).is_some()
        && Inventory::read(parent) == *wanted
}

/// Has the parent list this and all that it listed before.
pub(crate) async fn widen(
    cluster: &Cluster,
    owner: &Owner,
    parent: &mut Value,
    wanted: &Inventory,
) -> Result<(), RolloutError> {
    let wide = wanted.clone().union(Inventory::read(parent));
    write(cluster, owner, parent, &wide).await
}

/// Has the parent list exactly this.
pub(crate) async fn write(
    cluster: &Cluster,
    owner: &Owner,
    parent: &mut Value,
    wanted: &Inventory,
) -> Result<(), RolloutError> {
    if is_current(parent, owner, wanted) {
        return Ok(());
    }
    let join = |parts: &BTreeSet<String>| parts.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    let body = json!({
        "apiVersion": owner.api_version(),
        "kind": owner.kind,
        "metadata": {
            "name": owner.name,
            // Applying must not create a parent that was deleted meanwhile.
            "uid": owner.uid,
            "labels": {SET_ID: owner.set_id()},
            "annotations": {
                TOOLING: TOOL,
                GROUP_KINDS: join(&wanted.group_kinds),
                NAMESPACES: join(&wanted.namespaces),
            },
        },
    });
    *parent = cluster.apply_part(&resource(owner), &owner.name, MANAGER, &body).await.map_err(|problem| {
        RolloutError::Request { action: format!("annotate {} {}", owner.kind, owner.name), problem }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_as_they_were_written() {
        let parent = json!({"metadata": {"annotations": {GROUP_KINDS: "ConfigMap,Deployment.apps,X.a.b"}}});
        let pair = |group: &str, kind: &str| (group.to_owned(), kind.to_owned());
        assert_eq!(
            group_kinds(&parent),
            Some(vec![pair("", "ConfigMap"), pair("apps", "Deployment"), pair("a.b", "X")])
        );
        assert_eq!(group_kinds(&json!({})), None);
        assert_eq!(group_kinds(&json!({"metadata": {"annotations": {GROUP_KINDS: ""}}})), Some(vec![]));
    }
}
