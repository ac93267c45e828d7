//! The parent of an owner's set: as the watch of the caller delivered it, as this rollout wrote it last, or read.

use std::{cmp::Ordering, collections::HashMap};

use parking_lot::Mutex;
use serde_json::Value;

use crate::{
    client::cluster::Cluster,
    pure::{error::RolloutError, inventory, live, owner::Owner, parent::Parent},
};

/// Receives each parent that a rollout wrote, as the API server returned it.
pub(crate) type OnWrite = Box<dyn Fn(&Value) + Send + Sync>;

/// The parents that this rollout wrote and the watch may not have delivered yet: one for each owner at most.
#[derive(Default)]
pub(crate) struct Parents {
    written: Mutex<HashMap<String, Parent>>,
    on_write: Option<OnWrite>,
}

impl Parents {
    /// Calls this function for each parent that is written.
    pub(crate) fn notify(&mut self, on_write: OnWrite) {
        self.on_write = Some(on_write);
    }

    /// Notes the response to a write.
    pub(crate) fn wrote(&self, owner: &Owner, parent: &Value) {
        if let Some(on_write) = &self.on_write {
            on_write(parent);
        }
        // Without a watch the next call reads the parent.
        if owner.parent.is_some() {
            self.written().insert(owner.uid.clone(), Parent::read(parent));
        }
    }

    /// Forgets an owner that is gone.
    pub(crate) fn forget(&self, owner: &Owner) {
        self.written().remove(&owner.uid);
    }

    /// The newest parent that is known without a request, or `None` if it must be read.
    fn known(&self, owner: &Owner) -> Option<Value> {
        let watched =
            owner.parent.as_ref().filter(|parent| parent.uid() == owner.uid && !parent.version().is_empty())?;
        let mut written = self.written();
        let Some(last) = written.get(&owner.uid) else { return Some(watched.object().clone()) };
        match last.compare_versions(watched) {
            Some(Ordering::Greater) => Some(last.object().clone()),
            order => {
                written.remove(&owner.uid);
                order.map(|_| watched.object().clone())
            }
        }
    }

    fn written(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Parent>> {
        self.written.lock()
    }
}

/// The parent, which must have the UID of the owner.
pub(crate) async fn parent_of(cluster: &Cluster, parents: &Parents, owner: &Owner) -> Result<Value, RolloutError> {
    match parents.known(owner) {
        Some(parent) => Ok(parent),
        None => newest_parent_of(cluster, owner).await,
    }
}

/// Reads the parent, whatever is known of it.
async fn newest_parent_of(cluster: &Cluster, owner: &Owner) -> Result<Value, RolloutError> {
    let name = format!("{} {}", owner.kind, owner.name);
    let found = cluster
        .get(&inventory::resource(owner), None, &owner.name)
        .await
        .map_err(|error| RolloutError::Request { action: format!("read {name}"), error })?;
    match found {
        Some(parent) if live::uid(&parent) == owner.uid => Ok(parent),
        _ => Err(RolloutError::OwnerGone(name)),
    }
}

/// The parent, which must not be terminating: the garbage collector removes the references of objects that should be orphaned as soon
/// as it is, and writing them again would undo that.
pub(crate) async fn living_parent_of(
    cluster: &Cluster,
    parents: &Parents,
    owner: &Owner,
) -> Result<Value, RolloutError> {
    living(parent_of(cluster, parents, owner).await?, owner)
}

/// Reads the parent, which must not be terminating, whatever is known of it.
pub(crate) async fn newest_living_parent_of(cluster: &Cluster, owner: &Owner) -> Result<Value, RolloutError> {
    living(newest_parent_of(cluster, owner).await?, owner)
}

fn living(parent: Value, owner: &Owner) -> Result<Value, RolloutError> {
    if live::is_terminating(&parent) {
        return Err(RolloutError::OwnerDeleting(format!("{} {}", owner.kind, owner.name)));
    }
    Ok(parent)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::pure::live::tests::owner;

    fn parent(uid: &str, version: &str) -> Value {
        json!({"metadata": {"uid": uid, "resourceVersion": version}})
    }

    fn watched(version: &str) -> Owner {
        owner().with_parent(Parent::read(&parent("uid-a", version)))
    }

    #[test]
    fn the_newer_of_the_watched_and_the_written_parent_is_used() {
        let parents = Parents::default();
        let known =
            |version: &str| parents.known(&watched(version)).map(|parent| live::resource_version(&parent).to_owned());
        assert_eq!(known("9").as_deref(), Some("9"));
        parents.wrote(&watched("9"), &parent("uid-a", "10"));
        assert_eq!(known("9").as_deref(), Some("10"), "the watch is late");
        assert_eq!(known("11").as_deref(), Some("11"));
        assert_eq!(known("9").as_deref(), Some("9"), "it was forgotten then");
        parents.wrote(&watched("9"), &parent("uid-a", "10"));
        parents.forget(&watched("9"));
        assert_eq!(known("9").as_deref(), Some("9"));
    }

    #[test]
    fn a_parent_is_read_where_it_is_not_watched_or_its_version_cannot_be_compared() {
        let parents = Parents::default();
        assert_eq!(parents.known(&owner()), None);
        assert_eq!(parents.known(&watched("")), None);
        let recreated = owner().with_parent(Parent::read(&parent("uid-b", "9")));
        assert_eq!(parents.known(&recreated), None);
        parents.wrote(&owner(), &parent("uid-a", "10"));
        assert!(parents.written().is_empty(), "it is read anyway");
        parents.wrote(&watched("x"), &parent("uid-a", "y"));
        assert_eq!(parents.known(&watched("x")), None);
    }
}
