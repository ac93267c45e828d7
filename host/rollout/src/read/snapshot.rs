//! The state of the cluster: the parent, the objects of the release, and other members of the set.

use std::collections::{BTreeMap, BTreeSet};

use chandler_core::ObjectKey;
use chandler_informers::Id;
use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{
        desired::Desired,
        error::{ApiError, RolloutError},
        holdings::ObjectId,
        live,
        member::Member,
        older_record,
        owner::{Owner, PART_OF},
        situation,
    },
    read::{
        absent,
        discovery::Discovery,
        places::{self, Place, qualified},
        resolve::cannot_discover,
    },
};

/// The state of the cluster at one time.
pub(crate) struct Snapshot {
    /// The parent of the set.
    pub(crate) parent: Value,
    /// The live object for each object of the release.
    pub(crate) live: Vec<Option<Value>>,
    /// Members of the set that the release does not contain.
    pub(crate) stale: Vec<Member>,
}

/// The objects in the owner's record, and those with the label of its set in the places of the release. Fails if one of them shows
/// that the record is older than the objects.
pub(crate) async fn members(
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
    parent: &Value,
    desired: &[Desired],
) -> Result<Vec<Member>, RolloutError> {
    let (members, newer) = members_of_any_record(cluster, discovery, owner, parent, desired).await?;
    newer.map(|()| members)
}

/// Like [`members`], and whether the record may be trusted.
pub(crate) async fn members_of_any_record(
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
    parent: &Value,
    desired: &[Desired],
) -> Result<(Vec<Member>, Result<(), RolloutError>), RolloutError> {
    let set = owner.set_id();
    let places = places::of(discovery, owner, parent, desired).await?;
    let holdings = owner.holdings();
    let known: BTreeSet<ObjectId> = holdings
        .iter()
        .flat_map(|holdings| holdings.known().cloned())
        .chain(desired.iter().map(|desired| ObjectId::of(&desired.key)))
        .collect();
    let known = &known;
    let lists = places.into_iter().map(|Place { resource, namespace, certain }| {
        let set = &set;
        async move {
            // Others are dropped below: they belong to other owners, or show that the record is older.
            let wanted = |id: &Id, claims: Option<&Value>| match claims {
                None => known.contains(&ObjectId {
                    group: resource.group.clone(),
                    kind: resource.kind.clone(),
                    namespace: id.namespace.clone(),
                    name: id.name.clone(),
                }),
                Some(claims) => live::foreign_owner(claims, owner).is_none() || older_record::shows(owner, claims),
            };
            let objects = match cluster.members(&resource, namespace.as_deref(), set, &wanted).await {
                Ok(objects) => objects,
                Err(ApiError::Forbidden(_)) if !certain => Vec::new(),
                Err(error) => {
                    let action = format!("list {}", qualified(&resource));
                    return Err(RolloutError::Request { action, error });
                }
            };
            Ok::<_, RolloutError>((resource, objects))
        }
        .boxed()
    });
    let lists = all(lists.collect()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut members = Vec::new();
    let mut newer = Ok(());
    for (resource, objects) in lists {
        // Before the filter: objects that an older record does not have count as objects of other owners.
        newer = newer.and_then(|()| older_record::refuse(owner, &objects, |object| live::key(object, &resource)));
        members.extend(
            objects.into_iter().filter(|object| live::foreign_owner(object, owner).is_none()).map(|object| Member {
                key: live::key(&object, &resource),
                resource: resource.clone(),
                object,
            }),
        );
    }
    let unlabelled = unlabelled(cluster, discovery, owner, &members, desired).await?;
    for member in &unlabelled {
        newer = newer.and_then(|()| older_record::refuse(owner, [&member.object], |_| member.key.clone()));
    }
    members.extend(unlabelled);
    Ok((members, newer))
}

/// Objects in the record that are neither in the release nor carry the label of the set: a user removed the label, or the
/// object is gone.
async fn unlabelled(
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
    members: &[Member],
    desired: &[Desired],
) -> Result<Vec<Member>, RolloutError> {
    let Some(holdings) = owner.holdings() else { return Ok(Vec::new()) };
    // Objects of the release are looked up by name anyway.
    let seen = members.iter().map(|member| &member.key).chain(desired.iter().map(|desired| &desired.key));
    let seen: BTreeSet<ObjectId> = seen.map(ObjectId::of).collect();
    let mut wanted = Vec::new();
    for (id, _) in holdings.held().filter(|(id, _)| !seen.contains(id)) {
        // A kind that is no longer served has no objects.
        if let Some(served) = discovery.any_version(&id.group, &id.kind).await.map_err(cannot_discover)? {
            wanted.push((id, served.resource));
        }
    }
    let reads = wanted.into_iter().map(|(id, resource)| {
        async move {
            let found = cluster.get(&resource, id.namespace.as_deref(), &id.name).await.map_err(|error| {
                RolloutError::Request { action: format!("read {} {}", qualified(&resource), id.name), error }
            })?;
            let ours = found.filter(|object| live::foreign_owner(object, owner).is_none());
            Ok::<_, RolloutError>(ours.map(|object| Member { key: live::key(&object, &resource), resource, object }))
        }
        .boxed()
    });
    let found = all(reads.collect()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

/// Objects that refer to the owner without being members of its set, because a user changed their labels. Only metadata is
/// listed, for every kind that the parent lists.
pub(crate) async fn dependents_outside_set(
    cluster: &Cluster,
    discovery: &Discovery,
    owner: &Owner,
    parent: &Value,
) -> Result<Vec<Member>, RolloutError> {
    let places = places::of(discovery, owner, parent, &[]).await?;
    let lists = places.into_iter().map(|Place { resource, namespace, certain }| {
        async move {
            match cluster.list_metadata(&resource, namespace.as_deref()).await {
                Ok(objects) => Ok((resource, objects)),
                Err(ApiError::Forbidden(_)) if !certain => Ok((resource, Vec::new())),
                Err(error) => {
                    let action = format!("list {}", qualified(&resource));
                    Err(RolloutError::Request { action, error })
                }
            }
        }
        .boxed()
    });
    let lists = all(lists.collect()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut dependents_outside_set = Vec::new();
    for (resource, objects) in lists {
        let referring = objects.into_iter().filter(|object| {
            live::refers_to(object, &owner.uid) && live::label(object, PART_OF) != Some(&owner.set_id())
        });
        dependents_outside_set.extend(referring.map(|object| Member {
            key: live::key(&object, &resource),
            resource: resource.clone(),
            object,
        }));
    }
    Ok(dependents_outside_set)
}

/// How objects of the release are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// By the label of the set, and by name if no labelled object has the name: another owner's object may have it.
    ByLabelAndName,
    /// By the label of the set, and by name only objects that the owner may know: a dry-run create shows whether any other one
    /// exists, and is made later.
    Recorded,
    /// Only by label, because an earlier call of the same rollout looked up the names. An object that another client created
    /// since then is detected by the create request.
    ByLabel,
}

impl Member {
    /// Reads the object again. Returns `None` if it is gone or another object has its name.
    pub(crate) async fn now(&self, cluster: &Cluster) -> Result<Option<Value>, ApiError> {
        let found = cluster.get(&self.resource, self.key.namespace.as_deref(), &self.key.name).await?;
        Ok(found.filter(|found| live::uid(found) == live::uid(&self.object)))
    }
}

impl Snapshot {
    /// Reads everything except the parent, and the objects that are marked as new and have no label.
    pub(crate) async fn take(
        cluster: &Cluster,
        discovery: &Discovery,
        owner: &Owner,
        parent: Value,
        desired: &[Desired],
        lookup: Lookup,
        new: &[bool],
    ) -> Result<Self, RolloutError> {
        let members = members(cluster, discovery, owner, &parent, desired).await?;

        let stale: BTreeSet<ObjectKey> =
            situation::stale(members.iter().map(|member| &member.key), desired).cloned().collect();
        let (stale, held): (Vec<Member>, Vec<Member>) =
            members.into_iter().partition(|member| stale.contains(&member.key));
        // The API version is part of a key and determines the form of an object: only objects of the same version can be
        // compared.
        let mut held: BTreeMap<ObjectKey, Value> = held.into_iter().map(|member| (member.key, member.object)).collect();
        let found: Vec<Option<Value>> = desired.iter().map(|desired| held.remove(&desired.key)).collect();

        let mut live = found;
        if lookup != Lookup::ByLabel {
            let is_new = |index: usize| new.get(index).copied().unwrap_or_default();
            let places = desired.iter().zip(&mut live).enumerate();
            let places =
                places.filter(|(index, (desired, found))| found.is_none() && desired.served && !is_new(*index));
            let (missing, places): (Vec<&Desired>, Vec<&mut Option<Value>>) = places.map(|(_, pair)| pair).unzip();
            let looked = absent::find(cluster, &missing).await?;
            for ((place, found), desired) in places.into_iter().zip(looked).zip(&missing) {
                older_record::refuse(owner, &found, |_| desired.key.clone())?;
                *place = found;
            }
        }
        Ok(Self { parent, live, stale })
    }
}
