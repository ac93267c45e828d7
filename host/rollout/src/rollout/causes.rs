//! Looks for the causes below unhealthy objects.

use std::time::Duration;

use chandler_core::{Digest, ObjectKey};
use chandler_health::cause::Below;
use futures::FutureExt as _;
use kube::Client;
use serde_json::Value;

use super::Rollout;
use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{causes::Causes, desired::Served, error::ApiError, owner::Owner, report::Unhealthy},
    read::below,
};

/// How long a look may take. A report does not wait longer for a cause.
const PATIENCE: Duration = Duration::from_secs(5);

impl Rollout {
    /// Replaces the messages of unhealthy objects by the causes below them, where these are known: the ReplicaSets, Pods, claims and
    /// Events are read with the rights of the owner's account. Objects that it may not read are skipped. With `look`, up to three objects
    /// are looked at now, each not more often than every ten seconds; else only what is known is used.
    ///
    /// Returns how long it is until something is worth another look.
    pub async fn explain(
        &self,
        owner: &Owner,
        release: &Digest,
        unhealthy: &mut [Unhealthy],
        look: bool,
    ) -> Option<Duration> {
        let now = self.origin.elapsed();
        if look {
            let due = self.causes().due(&owner.uid, release, unhealthy, now);
            if !due.is_empty() && tokio::time::timeout(PATIENCE, self.look(owner, &due, unhealthy)).await.is_err() {
                tracing::debug!(owner = %owner.name, "the causes of failures were not found in time");
            }
        }
        let causes = self.causes();
        let next = causes.next(&owner.uid, unhealthy, self.origin.elapsed());
        causes.explain(&owner.uid, release, unhealthy);
        next.filter(|_| look)
    }

    fn causes(&self) -> parking_lot::MutexGuard<'_, Causes> {
        self.causes.lock()
    }

    /// Looks at these objects.
    async fn look(&self, owner: &Owner, due: &[ObjectKey], unhealthy: &[Unhealthy]) {
        // Without the account nothing can be read; the rollout reports that.
        let Ok(actor) = self.actor(owner).await else { return };
        let looks = due.iter().map(|key| self.find(&actor, owner, key).boxed());
        let found = all(looks.collect()).await;
        let now = self.origin.elapsed();
        let mut causes = self.causes();
        for (key, found) in due.iter().zip(found) {
            let Some(unhealthy) = unhealthy.iter().find(|unhealthy| unhealthy.object == *key) else { continue };
            match found {
                Ok(cause) => causes.note(&owner.uid, unhealthy, cause, now),
                Err(ApiError::Forbidden(message)) => {
                    tracing::debug!(owner = %owner.name, %message, "may not look for the causes of failures");
                    causes.forbid(&owner.uid, now);
                }
                Err(error) => {
                    tracing::debug!(owner = %owner.name, %error, "failed to look for the cause of a failure");
                    causes.note(&owner.uid, unhealthy, None, now);
                }
            }
        }
    }

    /// The cause for one object, as it is now.
    async fn find(&self, actor: &Cluster, owner: &Owner, key: &ObjectKey) -> Result<Option<String>, ApiError> {
        let ObjectKey { group, version, kind, .. } = key;
        let Some(Served { resource, namespaced: true }) = self.discovery.kind(group, version, kind).await? else {
            return Ok(None);
        };
        let namespace = key.namespace.as_deref().unwrap_or(&owner.install_namespace);
        let Some(live) = actor.get(&resource, Some(namespace), &key.name).await? else { return Ok(None) };
        let dependents = below::dependents(actor, &live).await?;
        below::cause(actor, &live, dependents).await
    }
}

/// The ReplicaSets, Jobs, Pods and pending claims below an object, with the rights of the client.
///
/// # Errors
/// If they could not be read, or the Pods may not be read.
pub async fn dependents(client: &Client, object: &Value) -> Result<Vec<Value>, ApiError> {
    below::dependents(&Cluster::new(client.clone()), object).await
}

/// Why an object is unhealthy, by its dependents and their Events, or `None` if they do not explain it.
///
/// # Errors
/// If the Events could not be read. Events that may not be read are none.
pub async fn cause(client: &Client, object: &Value, dependents: Vec<Value>) -> Result<Option<String>, ApiError> {
    below::cause(&Cluster::new(client.clone()), object, dependents).await
}

/// Why an object is unhealthy, by itself alone.
pub fn own_cause(object: &Value) -> Option<String> {
    chandler_health::cause::cause(object, &Below::default())
}

/// The objects that an object owns directly, and for a Pod the claims that it mounts.
pub fn owned<'a>(owner: &Value, objects: &'a [Value]) -> Vec<&'a Value> {
    chandler_health::cause::owned(owner, objects)
}
