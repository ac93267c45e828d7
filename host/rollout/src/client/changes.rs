//! Waits for a change of one object that other owners have, without reading it again and again.

use futures::{StreamExt as _, TryStreamExt as _};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, ObjectMeta, WatchEvent, WatchParams},
};

use crate::{client::cluster::Cluster, pure::error::ApiError};

impl Cluster {
    /// Completes when the object is gone, or when its labels, annotations or owner references change: its owner may be another one.
    /// An error means that the object cannot be watched any longer.
    pub(crate) async fn owner_changes(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<(), ApiError> {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        let selector = format!("metadata.name={name}");
        let mut known: Option<Claims> = None;
        loop {
            let found = api.list_metadata(&ListParams::default().fields(&selector)).await?;
            let Some(object) = found.items.first() else { return Ok(()) };
            let now = Claims::of(&object.metadata);
            if *known.get_or_insert_with(|| now.clone()) != now {
                return Ok(());
            }
            let version = found.metadata.resource_version.unwrap_or_default();
            let events = api.watch_metadata(&WatchParams::default().fields(&selector), &version).await?;
            let mut events = events.boxed();
            // The API server ends watches after some minutes.
            while let Some(event) = events.try_next().await? {
                match event {
                    WatchEvent::Deleted(_) => return Ok(()),
                    WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                        if Some(Claims::of(&object.metadata)) != known {
                            return Ok(());
                        }
                    }
                    WatchEvent::Bookmark(_) => {}
                    // Too old a version: list again.
                    WatchEvent::Error(status) if status.code == 410 => break,
                    WatchEvent::Error(status) => return Err(ApiError::of_status(&status)),
                }
            }
        }
    }
}

/// The metadata that says who owns an object. The rest of it changes often.
#[derive(Clone, Debug, PartialEq)]
struct Claims(ObjectMeta);

impl Claims {
    fn of(metadata: &ObjectMeta) -> Self {
        let ObjectMeta { uid, labels, annotations, owner_references, .. } = metadata.clone();
        Self(ObjectMeta { uid, labels, annotations, owner_references, ..ObjectMeta::default() })
    }
}
