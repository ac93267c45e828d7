//! The members of a set, from the informers where they are watched.

use std::sync::Arc;

use chandler_informers::{Id, Informers, Labels, Options, Wanted};
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

/// The most bytes of a page of whole objects. Parsed, they take ten times as much.
const PAGE_BYTES: usize = 8 << 20;

/// Informers for the objects that a [`Rollout`](crate::Rollout) creates. `wake` triggers a reconcile of the owner with this name.
pub fn informers(client: Client, options: Options, wake: impl Fn(&str) + Send + Sync + 'static) -> Arc<Informers> {
    Arc::new(Informers::new(client, Labels { set: PART_OF, owner: OWNER_NAME }, options, wake))
}

impl Cluster {
    /// The wanted objects of a kind that carry the label of a set, in one or all namespaces. A kind that is not served has none. Every user may
    /// give the label to large objects, so that others are not kept in memory.
    pub(crate) async fn members(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        set: &str,
        wanted: Wanted<'_>,
    ) -> Result<Vec<Value>, ApiError> {
        // What an informer keeps of an object has neither version nor kind.
        let claimed = |id: &Id, claims: Option<&Value>| match claims {
            Some(claims) => wanted(id, Some(&typed(claims.clone(), resource))),
            None => wanted(id, None),
        };
        let watched = match &self.reader {
            Some(reader) => reader.members(resource, namespace, set, &claimed).await.map(|members| (reader, members)),
            None => None,
        };
        let Some((reader, members)) = watched else {
            return self.listed_members(resource, namespace, set, wanted).await;
        };
        let mut objects: Vec<Value> = members.objects.into_iter().map(|object| typed(object, resource)).collect();
        let reads = members.unknown.into_iter().map(|id| {
            async move {
                if !self.is_wanted(resource, &id, wanted).await? {
                    return Ok(None);
                }
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

    /// [`members`](Self::members) of a kind that is not watched. If the objects are large, only metadata is listed, and the wanted objects are read
    /// one by one.
    async fn listed_members(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        set: &str,
        wanted: Wanted<'_>,
    ) -> Result<Vec<Value>, ApiError> {
        let selector = format!("{PART_OF}={set}");
        let keeps = |object: &Value| {
            let id = id_of(object);
            wanted(&id, None) || wanted(&id, Some(object))
        };
        if let Some(objects) = self.list_within(resource, namespace, &selector, PAGE_BYTES, &keeps).await? {
            return Ok(objects);
        }
        let listed = self.list_labelled_metadata(resource, namespace, &selector, &keeps).await?;
        let reads = listed.into_iter().map(|listed| {
            async move {
                let id = id_of(&listed);
                let object = self.get(resource, id.namespace.as_deref(), &id.name).await?;
                Ok::<_, ApiError>(object.filter(|object| live::label(object, PART_OF) == Some(set)))
            }
            .boxed()
        });
        let found = all(reads.collect()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Whether an object whose state is unknown is wanted. If its name does not say so, its metadata does.
    async fn is_wanted(&self, resource: &ApiResource, id: &Id, wanted: Wanted<'_>) -> Result<bool, ApiError> {
        if wanted(id, None) {
            return Ok(true);
        }
        let metadata = self.get_metadata(resource, id.namespace.as_deref(), &id.name).await?;
        // Reading an object that is gone tells the informer.
        Ok(metadata.is_none_or(|object| wanted(id, Some(&object))))
    }
}

fn id_of(object: &Value) -> Id {
    let namespace = live::text(object, "/metadata/namespace");
    Id {
        namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
        name: live::text(object, "/metadata/name").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Mutex};

    use kube::client::Body;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn large_objects_of_others_are_listed_without_their_data() {
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&requests);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let accept = request.headers().get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
            let metadata = accept.is_some_and(|accept| accept.contains("PartialObjectMetadata"));
            let path = request.uri().path().to_owned();
            seen.lock().unwrap().push(format!("{path}{}", if metadata { " metadata" } else { "" }));
            let object = |name: &str| {
                let data = if metadata { json!(null) } else { json!({"text": "x".repeat(PAGE_BYTES / 10)}) };
                json!({"metadata": {"name": name, "namespace": "n", "labels": {PART_OF: "s"}}, "data": data})
            };
            let answer = match path.rsplit_once("/configmaps/") {
                Some((_, name)) => object(name),
                None => json!({"items": (0..20).map(|number| object(&format!("x{number}"))).collect::<Vec<_>>()}),
            };
            async move { Ok::<_, Infallible>(http::Response::new(Body::from(answer.to_string().into_bytes()))) }
        });
        let cluster = Cluster::new(Client::new(service, "default"));
        let resource = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        let wanted = |id: &Id, claims: Option<&Value>| id.name == "x7" || (claims.is_some() && id.name == "x8");
        let found = cluster.members(&resource, Some("n"), "s", &wanted).await.unwrap();
        let names: Vec<&str> = found.iter().map(|object| live::text(object, "/metadata/name")).collect();
        assert_eq!(names, ["x7", "x8"]);
        let list = "/api/v1/namespaces/n/configmaps";
        let wanted = [list.to_owned(), format!("{list} metadata"), format!("{list}/x7"), format!("{list}/x8")];
        assert_eq!(*requests.lock().unwrap(), wanted);
    }
}
