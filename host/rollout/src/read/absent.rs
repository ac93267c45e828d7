//! Looks for objects without the label of the set: objects of other owners with the same name, or objects of the owner whose
//! labels were removed.
//!
//! One request per object would be thousands for a large release. If many objects of a kind are missing, one list of the names
//! in their namespace shows which exist.

use std::collections::{BTreeMap, BTreeSet};

use futures::FutureExt as _;
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{
        desired::Desired,
        error::{ApiError, RolloutError, object_failure},
    },
};

/// The number of objects of a kind and namespace up to which each is requested individually.
const FEW: usize = 8;

/// Reads these objects, in order; none for an object that does not exist.
pub(crate) async fn find(cluster: &Cluster, missing: &[&Desired]) -> Result<Vec<Option<Value>>, RolloutError> {
    let mut places: BTreeMap<(&str, &str, Option<&str>), Vec<&Desired>> = BTreeMap::new();
    for desired in missing {
        let (resource, key) = (&desired.resource, &desired.key);
        let place = (resource.api_version.as_str(), resource.plural.as_str(), key.namespace.as_deref());
        places.entry(place).or_default().push(desired);
    }
    let lists = places.iter().filter_map(|(place, missing)| {
        let first = missing.first().filter(|_| missing.len() > FEW)?;
        // A list that is much longer than the number of missing objects would cost more than single requests.
        Some(async move { (*place, cluster.names(&first.resource, place.2, missing.len()).await) }.boxed())
    });
    let mut names: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for (place, found) in all(lists.collect()).await {
        match found {
            Ok(Some(found)) => drop(names.insert(place, found)),
            // These objects are requested individually.
            Ok(None) | Err(ApiError::Forbidden(_)) => {}
            Err(error) => {
                return Err(RolloutError::Request { action: format!("list {}.{}", place.1, place.0), error });
            }
        }
    }
    let found = missing.iter().map(|desired| {
        let (resource, key) = (&desired.resource, &desired.key);
        let place = (resource.api_version.as_str(), resource.plural.as_str(), key.namespace.as_deref());
        let ruled_out = names.get(&place).is_some_and(|names| !names.contains(&key.name));
        async move {
            if ruled_out {
                return Ok(None);
            }
            let found = cluster.get(resource, key.namespace.as_deref(), &key.name).await;
            found.map_err(object_failure(key, "read")).map_err(|failure| RolloutError::Objects(vec![failure]))
        }
        .boxed()
    });
    all(found.collect()).await.into_iter().collect()
}
