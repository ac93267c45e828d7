//! Questions about single objects and kinds of a release.

use chandler_core::{ObjectKey, Release};
use futures::{StreamExt as _, stream::FuturesUnordered};
use serde_json::Value;

use super::{
    Rollout,
    survey::{Survey, SurveyOptions},
};
use crate::{
    client::cluster::Cluster,
    pure::{
        dependencies,
        desired::Served,
        drift_options::DriftPolicy,
        error::{ApiError, RolloutError, object_failure},
        existing_owner::Collision,
        holdings::ObjectId,
        live,
        owner::Owner,
        refusals::OnRefusal,
        request::RolloutRequest,
    },
    read::{
        adoption::{self, Adoptee},
        parent, resolve,
        snapshot::Lookup,
    },
};

impl Rollout {
    /// The objects of a release that exist and belong to another owner, regardless of the owner's collision protection. The owner need
    /// not exist yet.
    pub async fn adoptees(&self, owner: &Owner, release: &Release) -> Result<Vec<Adoptee>, RolloutError> {
        let actor = self.actor(owner).await?;
        let options =
            SurveyOptions { lookup: Lookup::ByLabelAndName, drift: DriftPolicy::Ignore, on_refusal: OnRefusal::Stop };
        let parent = match parent::living_parent_of(self.home(), &self.parents, owner).await {
            Err(RolloutError::OwnerGone(_)) => Value::Null,
            parent => parent?,
        };
        let request = RolloutRequest::new(owner, release);
        let Survey { desired, snapshot, situations, .. } = self.survey(&actor, &request, parent, options).await?;
        Ok(adoption::find(&actor, &desired, &situations, &snapshot.live).await)
    }

    /// Watches the kinds of a release, so that a change of an object triggers a reconcile of its owner: with the client's rights, or with
    /// the rights of the owner's ServiceAccount in the namespaces of the release. A kind that a CRD of the release defines is among them
    /// once its first object was created. Without [informers](Self::with_informers) nothing is watched.
    pub async fn watch(&self, owner: &Owner, release: &Release) {
        let (reader, kinds) = if let Some(account) = &owner.account {
            let actor = match self.cluster.on_behalf_of(account, &owner.name) {
                Ok(actor) => actor,
                Err(error) => {
                    tracing::warn!(%account, %error, "failed to watch on behalf of the ServiceAccount");
                    return;
                }
            };
            (actor.reader, resolve::known_places(&self.discovery, owner, release))
        } else {
            let mut kinds = resolve::known_kinds(&self.discovery, release);
            kinds.extend(dependencies::watched(release.objects()));
            // It may have had an account before.
            self.cluster.reader.iter().for_each(|reader| reader.forget(&owner.name));
            (self.cluster.reader.clone(), kinds.into_iter().map(|kind| (kind, None)).collect())
        };
        if let Some(reader) = reader {
            reader.watch_only(kinds).await;
        }
    }

    /// Completes when one of these objects, which belong to other owners, is gone or may have another owner, as far as the owner's account
    /// may watch them. Returns whether that is so, and not that none of them can be watched any longer.
    pub async fn owners_change(&self, owner: &Owner, objects: &[ObjectKey]) -> bool {
        let Ok(actor) = self.actor(owner).await else { return false };
        let mut changes: FuturesUnordered<_> =
            objects.iter().map(|key| self.owner_changes(&actor, owner, key)).collect();
        while let Some(changed) = changes.next().await {
            match changed {
                Ok(()) => return true,
                Err(error) => tracing::debug!(%error, "an object of another owner is not watched"),
            }
        }
        false
    }

    async fn owner_changes(&self, actor: &Cluster, owner: &Owner, key: &ObjectKey) -> Result<(), ApiError> {
        let served = self.discovery.kind(&key.group, &key.version, &key.kind).await?;
        // Its CRD was deleted, and the object with it.
        let Some(Served { resource, namespaced }) = served else { return Ok(()) };
        let namespace = namespaced.then(|| key.namespace.as_deref().unwrap_or(&owner.install_namespace));
        actor.owner_changes(&resource, namespace, &key.name).await
    }

    /// The objects that the owner had before it was restored from a backup and that do not exist, or not yet. An object whose kind is not
    /// served does not exist.
    pub async fn not_restored(&self, owner: &Owner) -> Result<Vec<ObjectKey>, RolloutError> {
        let Some(holdings) = owner.holdings().filter(|holdings| holdings.restored().next().is_some()) else {
            return Ok(Vec::new());
        };
        let actor = self.actor(owner).await?;
        let (mut missing, mut failures) = (Vec::new(), Vec::new());
        for id in holdings.restored().cloned() {
            let served = self.discovery.any_version(&id.group, &id.kind).await.map_err(resolve::cannot_discover)?;
            let version = served.as_ref().map(|served| served.resource.version.clone()).unwrap_or_default();
            let ObjectId { group, kind, namespace, name } = id;
            let key = ObjectKey { group, version, kind, namespace, name };
            let Some(Served { resource, .. }) = served else {
                missing.push(key);
                continue;
            };
            match actor.get(&resource, key.namespace.as_deref(), &key.name).await {
                Ok(Some(_)) => {}
                Ok(None) => missing.push(key),
                Err(error) => failures.push(object_failure(&key, "read")(error)),
            }
        }
        if failures.is_empty() { Ok(missing) } else { Err(RolloutError::Objects(failures)) }
    }

    /// Reads an object of the owner, or one that it may adopt. Returns `None` if it does not exist. Another object of another owner is
    /// refused, as [`advance`](Self::advance) refuses it.
    pub async fn own(&self, owner: &Owner, key: &ObjectKey) -> Result<Option<Value>, RolloutError> {
        let ObjectKey { group, version, kind, .. } = key;
        let served = self.discovery.kind(group, version, kind).await.map_err(resolve::cannot_discover)?;
        let Some(Served { resource, namespaced }) = served else { return Ok(None) };
        let namespace = namespaced.then(|| key.namespace.as_deref().unwrap_or(&owner.install_namespace));
        let actor = self.actor(owner).await?;
        let live = match actor.get(&resource, namespace, &key.name).await {
            // `advance` reports every permission that the account lacks, and writes nothing that the account may not read.
            Err(ApiError::Forbidden(_)) if owner.lists_namespaces() => {
                owner.account.iter().for_each(|account| self.recent.forget_account(account));
                Ok(None)
            }
            live => live.map_err(object_failure(key, "read")),
        };
        let live = live.map_err(|failure| RolloutError::Objects(vec![failure]))?;
        let refused = live.as_ref().and_then(|live| {
            let existing_owner = live::foreign_owner(live, owner)?;
            (!owner.may_adopt(live, &existing_owner)).then_some(existing_owner)
        });
        match refused {
            None => Ok(live),
            Some(existing_owner) => Err(owner.refuse(vec![Collision { object: key.clone(), existing_owner }])),
        }
    }
}
