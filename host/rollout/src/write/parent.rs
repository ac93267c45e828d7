//! Writes the annotations of an ApplySet's parent (KEP-3659), and its finalizer.
//!
//! The annotations are widened before the first write of a release and narrowed after its last prune, so that after a crash they still
//! list every kind that the set may contain.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    client::cluster::Cluster,
    pure::{
        error::RolloutError,
        inventory::{Inventory, is_current, resource},
        live,
        owner::{GROUP_KINDS, NAMESPACES, Owner, SET_ID, TOOL, TOOLING},
    },
    read::parent::Parents,
};

/// The field manager of what is written to the parent, in the form that the KEP recommends.
const MANAGER: &str = "chandler-applyset";

/// Makes the parent list this inventory and everything that it listed before, and have the finalizer of the owner.
pub(crate) async fn widen(
    cluster: &Cluster,
    parents: &Parents,
    owner: &Owner,
    parent: &mut Value,
    wanted: &Inventory,
) -> Result<(), RolloutError> {
    let wide = wanted.clone().union(Inventory::read(parent));
    write(cluster, parents, owner, parent, &wide).await
}

/// Makes the parent list exactly this inventory, and have the finalizer of the owner.
pub(crate) async fn write(
    cluster: &Cluster,
    parents: &Parents,
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
            // The apply must not create a parent that was deleted meanwhile.
            "uid": owner.uid,
            "labels": {SET_ID: owner.set_id()},
            "annotations": {
                TOOLING: TOOL,
                GROUP_KINDS: join(&wanted.group_kinds),
                NAMESPACES: join(&wanted.namespaces),
            },
            // Always: an apply without a finalizer that this manager has set removes it.
            "finalizers": owner.finalizer.iter().collect::<Vec<_>>(),
        },
    });
    *parent = cluster
        .apply_part(&resource(owner), &owner.name, MANAGER, &body)
        .await
        .map_err(|error| RolloutError::Request { action: action(parent, owner), error })?;
    parents.wrote(owner, parent);
    Ok(())
}

/// What the write does, for a message.
fn action(parent: &Value, owner: &Owner) -> String {
    let lacking = owner.finalizer.as_ref().filter(|finalizer| !live::has_finalizer(parent, finalizer));
    match lacking {
        Some(finalizer) => format!("add the finalizer {finalizer} to {} {}", owner.kind, owner.name),
        None => format!("annotate {} {}", owner.kind, owner.name),
    }
}
