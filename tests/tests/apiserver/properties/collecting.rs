//! Garbage collection deletes every orphan and nothing else.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicU32, Ordering},
};

use futures::future::join_all;
use proptest::{prelude::*, sample::subsequence};
use serde_json::json;

use super::holds;
use crate::support::{
    Scope, cases,
    objects::{name, owner},
};

cases! {
    "3.15" garbage_collection_deletes_exactly_the_orphans: controllers;
}

/// For each object, the earlier ones that own it; and which objects are deleted.
fn forest() -> impl Strategy<Value = (Vec<Vec<usize>>, Vec<usize>)> {
    (2..8_usize).prop_flat_map(|count| {
        let owners: Vec<_> =
            (0..count).map(|object| subsequence((0..object).collect::<Vec<_>>(), 0..=object.min(2))).collect();
        (owners, subsequence((0..count).collect::<Vec<_>>(), 1..=count.div_ceil(2)))
    })
}

/// The remaining objects: one is deleted directly, or when it has owners and all of them are deleted.
fn survivors(owners: &[Vec<usize>], deleted: &[usize]) -> BTreeSet<usize> {
    let mut left = BTreeSet::new();
    for (object, owners) in owners.iter().enumerate() {
        let owned = !owners.is_empty();
        let has_owner = owners.iter().any(|owner| left.contains(owner));
        if !deleted.contains(&object) && (!owned || has_owner) {
            left.insert(object);
        }
    }
    left
}

async fn garbage_collection_deletes_exactly_the_orphans(scope: &Scope) {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let secrets = scope.secrets().await;
    holds(8, (forest(), any::<bool>()), |((owners, deleted), foreground)| {
        let secrets = secrets.clone();
        let prefix = format!("o{}", NEXT.fetch_add(1, Ordering::Relaxed));
        async move {
            let mut objects = Vec::new();
            for (object, owners) in owners.iter().enumerate() {
                let references: Vec<_> = owners.iter().map(|owner_of| owner(&objects[*owner_of])).collect();
                let metadata = json!({"name": format!("{prefix}-{object}"), "ownerReferences": references,
                    "labels": {"case": prefix}});
                objects.push(secrets.create(&json!({"metadata": metadata})).await.ok());
            }
            let policy = if foreground { "Foreground" } else { "Background" };
            for object in &deleted {
                let name = name(&objects[*object]);
                // Objects that were deleted with their owner are already absent.
                secrets.delete_with(name, &json!({"propagationPolicy": policy})).await;
            }
            let left = survivors(&owners, &deleted);
            join_all((0..objects.len()).filter(|object| !left.contains(object)).map(|object| {
                let (secrets, name) = (secrets.clone(), name(&objects[object]).to_owned());
                async move { secrets.until_gone(&name).await }
            }))
            .await;
            let list = secrets.list(&format!("labelSelector=case={prefix}")).await.ok();
            let found: BTreeSet<String> =
                list["items"].as_array().unwrap().iter().map(|item| name(item).to_owned()).collect();
            let expected: BTreeSet<String> = left.iter().map(|object| format!("{prefix}-{object}")).collect();
            assert_eq!(found, expected);
        }
    })
    .await;
}
