//! Reads what is below an unhealthy object, within bounds: its ReplicaSets and Pods by its selector, the claims that are not
//! bound, and the Events of those that do not explain themselves. Only lists of one page and single objects are read.

use std::collections::BTreeSet;

use chandler_health::cause::{self, Below};
use futures::FutureExt as _;
use k8s_openapi::api::{
    apps::v1::ReplicaSet,
    batch::v1::Job,
    core::v1::{Event, PersistentVolumeClaim, Pod},
};
use kube::{
    Resource,
    api::{ApiResource, ListParams},
};
use serde_json::Value;

use crate::{
    client::{cluster::Cluster, concurrent::all},
    pure::{below::selector, error::ApiError, live},
};

/// How many Pods of a workload are read.
const PODS: u32 = 50;
/// How many ReplicaSets of a Deployment are read: more than the default history of ten revisions.
const SETS: u32 = 20;
/// How many Jobs of a namespace are read to find a CronJob's.
const JOBS: u32 = 250;
/// How many claims of a workload's Pods are read.
const CLAIMS: usize = 4;
/// How many Events of one object are read.
const EVENTS: u32 = 20;

fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// The objects below an object. Kinds that may not be read are left out, except for Pods.
pub(crate) async fn dependents(cluster: &Cluster, object: &Value) -> Result<Vec<Value>, ApiError> {
    let namespace = live::text(object, "/metadata/namespace");
    let mut found = match live::text(object, "/kind") {
        "Deployment" => {
            let (sets, pods) = futures::join!(
                selected::<ReplicaSet>(cluster, namespace, selector(object), SETS),
                selected::<Pod>(cluster, namespace, selector(object), PODS)
            );
            pods?.into_iter().chain(permitted(sets)?).collect()
        }
        "ReplicaSet" | "StatefulSet" | "DaemonSet" | "ReplicationController" | "Job" => {
            selected::<Pod>(cluster, namespace, selector(object), PODS).await?
        }
        "CronJob" => of_cron_job(cluster, namespace, object).await?,
        _ => Vec::new(),
    };
    let mine: BTreeSet<String> = cause::dependents(object, &found).into_iter().map(uid).collect();
    found.retain(|candidate| mine.contains(&uid(candidate)));
    let claims = pending_claims(cluster, namespace, object, &found).await?;
    found.extend(claims);
    Ok(found)
}

fn uid(object: &Value) -> String {
    live::text(object, "/metadata/uid").to_owned()
}

async fn of_cron_job(cluster: &Cluster, namespace: &str, object: &Value) -> Result<Vec<Value>, ApiError> {
    let mut found = cluster.first(&kind::<Job>(), namespace, &ListParams::default().limit(JOBS)).await?;
    found.retain(|job| !cause::dependents(object, std::slice::from_ref(job)).is_empty());
    let uids: Vec<String> = found.iter().map(uid).collect();
    if !uids.is_empty() {
        let selector = format!("batch.kubernetes.io/controller-uid in ({})", uids.join(","));
        found.extend(selected::<Pod>(cluster, namespace, Some(selector), PODS).await?);
    }
    Ok(found)
}

/// The objects of a kind with these labels; none without a selector.
async fn selected<K: Resource<DynamicType = ()>>(
    cluster: &Cluster,
    namespace: &str,
    selector: Option<String>,
    limit: u32,
) -> Result<Vec<Value>, ApiError> {
    let Some(selector) = selector else { return Ok(Vec::new()) };
    cluster.first(&kind::<K>(), namespace, &ListParams::default().labels(&selector).limit(limit)).await
}

/// The claims of the Pods that have not started.
async fn pending_claims(
    cluster: &Cluster,
    namespace: &str,
    object: &Value,
    found: &[Value],
) -> Result<Vec<Value>, ApiError> {
    let waits = |pod: &&Value| live::text(pod, "/status/phase") == "Pending";
    let pods = found.iter().chain([object]).filter(|it| live::text(it, "/kind") == "Pod").filter(waits);
    let names: BTreeSet<&str> = pods.flat_map(cause::claims_of).collect();
    let claims = kind::<PersistentVolumeClaim>();
    let reads = names.into_iter().take(CLAIMS).map(|name| cluster.get(&claims, Some(namespace), name).boxed());
    let mut read = Vec::new();
    for claim in all(reads.collect()).await {
        read.extend(permitted(claim.map(|claim| claim.into_iter().collect()))?);
    }
    Ok(read)
}

/// Why an object is unhealthy, by what is below it. Events are read only of what does not explain itself.
pub(crate) async fn cause(
    cluster: &Cluster,
    object: &Value,
    dependents: Vec<Value>,
) -> Result<Option<String>, ApiError> {
    let mut below = Below { objects: dependents, events: Vec::new() };
    let asked: Vec<String> = cause::asks(object, &below.objects).into_iter().map(uid).collect();
    let namespace = live::text(object, "/metadata/namespace");
    let events = kind::<Event>();
    let reads = asked.iter().filter(|uid| !uid.is_empty()).map(|uid| {
        let parameters = ListParams::default().fields(&format!("involvedObject.uid={uid},type=Warning")).limit(EVENTS);
        let events = &events;
        async move { cluster.first(events, namespace, &parameters).await }.boxed()
    });
    for read in all(reads.collect()).await {
        below.events.extend(permitted(read)?);
    }
    Ok(cause::cause(object, &below))
}

/// Nothing instead of what may not be read.
fn permitted(read: Result<Vec<Value>, ApiError>) -> Result<Vec<Value>, ApiError> {
    match read {
        Err(ApiError::Forbidden(message)) => {
            tracing::debug!(%message, "may not look for the cause of a failure");
            Ok(Vec::new())
        }
        read => read,
    }
}
