//! The members of a set, from the informers where they are watched.

use std::sync::Arc;

use chandler_informers::{Informers, Labels, Options};
use futures::FutureExt as _;
use kube::{Client, api::ApiResource};
use serde_json::Value;

use crate::{
    client::{
        cluster::{Cluster, typed},
        concurrent::all,
    },
    pure::{
        error::ApiError,
        live,
        owner::{OWNER_NAME, PART_OF},
    },
};

/// Informers for the objects that a [`Rollout`](crate::Rollout) creates. `wake` triggers a reconcile of the owner with this name.
pub fn informers(client: Client, options: Options, wake: impl Fn(&str) + Send + Sync + 'static) -> Arc<Informers> {
    Arc::new(Informers::new(client, Labels { set: PART_OF, owner: OWNER_NAME }, options, wake))
}

impl Cluster {
    /// The objects of a kind that carry the label of a set, in one or all namespaces. A kind that is not served has none.
    pub(crate) async fn members(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        set: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let watched = match &self.reader {
            Some(reader) => reader.members(resource, namespace, set).await.map(|members| (reader, members)),
            None => None,
        };
        let Some((reader, members)) = watched else {
            return self.list(resource, namespace, &format!("{PART_OF}={set}")).await;
        };
        let mut objects: Vec<Value> = members.objects.into_iter().map(|object| typed(object, resource)).collect();
        let reads = members.unknown.into_iter().map(|id| {
            async move {
                let object = self.get(resource, id.namespace.as_deref(), &id.name).await?;
                reader.confirm(resource, &id, object.as_ref());
                Ok::<_, ApiError>(object.filter(|object| live::label(object, PART_OF) == Some(set)))
            }
            .boxed()
        });
        let mut read = false;
        for object in all(reads.collect()).await {
            objects.extend(object?);
            read = true;
        }
        if read {
            // As the API server lists them: messages must not depend on what had to be read.
            let place = |object: &Value| {
                let text = |pointer| live::text(object, pointer).to_owned();
                (text("/metadata/namespace"), text("/metadata/name"))
            };
            objects.sort_by_cached_key(place);
        }
        Ok(objects)
    }
}
