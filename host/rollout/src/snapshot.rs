//! What is in the cluster: the parent, the objects of the release, and other members of the set.

use std::collections::{BTreeMap, BTreeSet};

use chandler_core::ObjectKey;
use futures::FutureExt as _;
use kube::api::ApiResource;
use serde_json::Value;

use crate::{
    cluster::{Cluster, about},
    concurrent::all,
    desired::Desired,
    discovery::Discovery,
    error::RolloutError,
    live,
    owner::{Owner, PART_OF, SET_ID},
    parent, plan,
    resolve::cannot_discover,
};

/// An object that carries the label of the set.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) key: ObjectKey,
    pub(crate) resource: ApiResource,
    pub(crate) object: Value,
}

/// What is in the cluster at one time.
pub(crate) struct Snapshot {
    /// The parent of the set.
    pub(crate) parent: Value,
    /// For each object of the release, what is there.
    pub(crate) live: Vec<Option<Value>>,
    /// Members of the set that the release does not hold.
    pub(crate) stale: Vec<Member>,
}

/// Reads the parent; it must be the very object that the owner is.
pub(crate) async fn parent_of(cluster: &Cluster, owner: &Owner) -> Result<Value, RolloutError> {
    let name = format!("{} {}", owner.kind, owner.name);
    let found = cluster
        .get(&parent::resource(owner), None, &owner.name)
        .await
        .map_err(|problem| RolloutError::Request { action: format!("read {name}"), problem })?;
    match found {
        Some(parent) if live::uid(&parent) == owner.uid => Ok(parent),
        _ => Err(RolloutError::OwnerGone(name)),
    }
}

/// The members of the set, of these kinds and of every kind that the parent lists.
pub(crate) async fn members(
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
    parent: &Value,
    known: impl IntoIterator<Item = &ApiResource>,
) -> Result<Vec<Member>, RolloutError> {
    let mut resources: BTreeMap<(String, String), ApiResource> = BTreeMap::new();
    for resource in known {
        resources.entry((resource.group.clone(), resource.kind.clone())).or_insert_with(|| resource.clone());
    }
    match parent::group_kinds(parent) {
        Some(group_kinds) => {
            for (group, kind) in group_kinds {
                if resources.contains_key(&(group.clone(), kind.clone())) {
                    continue;
                }
                // A kind that is no longer served has no objects.
                if let Some(served) = discovery.any_version(&group, &kind).await.map_err(cannot_discover)? {
                    resources.insert((group, kind), served.resource);
                }
            }
        }
        // Somebody removed the annotation of a parent that had one: then only a look at everything is safe.
        None if live::label(parent, SET_ID).is_some() => {
            for served in discovery.every_kind().await.map_err(cannot_discover)? {
                let ApiResource { group, kind, .. } = &served.resource;
                resources.entry((group.clone(), kind.clone())).or_insert(served.resource);
            }
        }
        None => {}
    }
    let selector = format!("{PART_OF}={}", owner.set_id());
    let lists = resources.into_values().map(|resource| {
        let selector = &selector;
        async move {
            let objects = cluster.list(&resource, selector).await.map_err(|problem| RolloutError::Request {
                action: format!("list {}.{}", resource.plural, resource.group),
                problem,
            })?;
            Ok::<_, RolloutError>((resource, objects))
        }
        .boxed()
    });
    let lists = all(lists.collect()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut members = Vec::new();
    for (resource, objects) in lists {
        members.extend(
            objects.into_iter().filter(|object| live::foreign_owner(object, owner).is_none()).map(|object| Member {
                key: live::key(&object, &resource),
                resource: resource.clone(),
                object,
            }),
        );
    }
    Ok(members)
}

impl Snapshot {
    /// Reads what is in the cluster.
    pub(crate) async fn take(
        cluster: &Cluster,
        discovery: &Discovery,
        owner: &Owner,
        desired: &[Desired],
    ) -> Result<Self, RolloutError> {
        let parent = parent_of(cluster, owner).await?;
        let served = desired.iter().filter(|desired| desired.served).map(|desired| &desired.resource);
        let members = members(cluster, discovery, owner, &parent, served).await?;

        let stale: BTreeSet<ObjectKey> =
            plan::stale(members.iter().map(|member| &member.key), desired).cloned().collect();
        let (stale, held): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|member| stale.contains(&member.key));
        // Versions are part of a key, and of what a live object looks like: only the same version can be compared.
        let mut held: BTreeMap<ObjectKey, Value> = held.into_iter().map(|member| (member.key, member.object)).collect();
        let found: Vec<Option<Value>> = desired.iter().map(|desired| held.remove(&desired.key)).collect();

        let live = desired.iter().zip(found).map(|(desired, found)| {
            async move {
                if found.is_some() || !desired.served {
                    return Ok(found);
                }
                cluster
                    .get(&desired.resource, desired.key.namespace.as_deref(), &desired.key.name)
                    .await
                    .map_err(about(&desired.key, "read"))
                    .map_err(|failure| RolloutError::Objects(vec![failure]))
            }
            .boxed()
        });
        let live = all(live.collect()).await.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { parent, live, stale })
    }
}
