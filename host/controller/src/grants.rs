//! Notices at once when a user adds a permission, an account or a namespace that a BundleDeployment waits for.
//!
//! These kinds are watched only while a BundleDeployment waits, and only if the controller may watch them; otherwise a BundleDeployment
//! tries again every few seconds.

use std::{collections::BTreeSet, time::Duration};

use chandler_informers::Informers;
use futures::{StreamExt as _, TryStreamExt as _, future::join_all};
use k8s_openapi::api::{
    core::v1::{Namespace, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams, WatchEvent, WatchParams},
};
use tokio::sync::{Notify, watch};

use crate::cluster::Cluster;

/// The minimum time between two changes that wake all waiting BundleDeployments. Longer if many wait, since each sends requests.
const PAUSE: Duration = Duration::from_secs(1);
/// How much longer for each BundleDeployment that waits.
const PAUSE_FOR_EACH: Duration = Duration::from_millis(20);
/// The pause before the controller tries again to watch a kind.
const REFUSED: Duration = Duration::from_mins(1);

/// The names of the BundleDeployments that wait for a grant.
#[derive(Debug, Default)]
pub(crate) struct Grants(watch::Sender<BTreeSet<String>>);

impl Grants {
    /// Notes whether a BundleDeployment waits for a grant.
    pub(crate) fn note(&self, name: &str, waits: bool) {
        self.0.send_if_modified(|waiting| if waits { waiting.insert(name.to_owned()) } else { waiting.remove(name) });
    }
}

/// Watches while a BundleDeployment waits, and calls `retry` with its name after a change. Never ends.
pub(crate) async fn run(grants: &Grants, cluster: &Cluster, informers: &Informers, retry: impl Fn(&str)) {
    let mut waiting = grants.0.subscribe();
    loop {
        // The sender lives as long as `grants`.
        let _ = waiting.wait_for(|waiting| !waiting.is_empty()).await;
        let no_reconcile_waits = async {
            let _ = waiting.wait_for(BTreeSet::is_empty).await;
        };
        tokio::select! {
            () = watch_all(grants, cluster, informers, &retry) => {}
            () = no_reconcile_waits => {}
        }
    }
}

async fn watch_all(grants: &Grants, cluster: &Cluster, informers: &Informers, retry: impl Fn(&str)) {
    let changed = Notify::new();
    let kinds = [
        ApiResource::erase::<Namespace>(&()),
        ApiResource::erase::<ServiceAccount>(&()),
        ApiResource::erase::<Role>(&()),
        ApiResource::erase::<RoleBinding>(&()),
        ApiResource::erase::<ClusterRole>(&()),
        ApiResource::erase::<ClusterRoleBinding>(&()),
    ];
    let watches = join_all(kinds.iter().map(|kind| watch_kind(cluster, informers, kind, &changed)));
    let retries = async {
        loop {
            changed.notified().await;
            let waiting: Vec<String> = grants.0.borrow().iter().cloned().collect();
            for name in &waiting {
                retry(name);
            }
            let count = u32::try_from(waiting.len()).unwrap_or(u32::MAX);
            tokio::time::sleep(PAUSE.max(PAUSE_FOR_EACH.saturating_mul(count))).await;
        }
    };
    futures::future::join(watches, retries).await;
}

/// Watches a kind. Never ends.
async fn watch_kind(cluster: &Cluster, informers: &Informers, kind: &ApiResource, changed: &Notify) {
    loop {
        let mut pause = REFUSED;
        if informers.may_watch(kind).await {
            match changes(&Api::all_with(cluster.client.clone(), kind), changed).await {
                Ok(()) => pause = PAUSE,
                Err(error) => tracing::debug!(kind = kind.kind, %error, "the watch for grants was interrupted"),
            }
        }
        cluster.availability.pause(pause, REFUSED).await;
    }
}

/// Notes each change, until the API server ends the watch. The existing objects are not read.
async fn changes(api: &Api<DynamicObject>, changed: &Notify) -> Result<(), kube::Error> {
    let list = api.list_metadata(&ListParams::default().limit(1)).await?;
    let version = list.metadata.resource_version.unwrap_or_default();
    let mut events = api.watch_metadata(&WatchParams::default(), &version).await?.boxed();
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(_) | WatchEvent::Modified(_) => changed.notify_one(),
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => return Ok(()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Arc, Mutex},
    };

    use http::{Request, Response};
    use kube::{Client, client::Body};
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn those_who_wait_are_known() {
        let grants = Grants::default();
        let mut waiting = grants.0.subscribe();
        grants.note("a", true);
        assert!(waiting.has_changed().unwrap() && waiting.borrow_and_update().contains("a"));
        grants.note("a", true);
        grants.note("b", false);
        assert!(!waiting.has_changed().unwrap());
        grants.note("a", false);
        assert!(waiting.borrow().is_empty());
    }

    #[tokio::test]
    async fn only_what_is_added_or_changed_is_a_grant() {
        let object = |name: &str| json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": name}});
        for (type_, expected) in [("ADDED", true), ("MODIFIED", true), ("DELETED", false)] {
            let paths = Arc::<Mutex<Vec<String>>>::default();
            let (asked, event) = (Arc::clone(&paths), json!({"type": type_, "object": object("r")}));
            let service = tower::service_fn(move |request: Request<Body>| {
                let query = request.uri().query().unwrap_or_default().to_owned();
                let answer: Value = if query.contains("watch=true") {
                    event.clone()
                } else {
                    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                           "metadata": {"resourceVersion": "7", "continue": "more"}, "items": [object("old")]})
                };
                asked.lock().unwrap().push(query);
                async move { Ok::<_, Infallible>(Response::new(Body::from(answer.to_string().into_bytes()))) }
            });
            let kind = ApiResource::erase::<Role>(&());
            let (changed, api) = (Notify::new(), Api::all_with(Client::new(service, "default"), &kind));
            changes(&api, &changed).await.unwrap();
            let noted = futures::FutureExt::now_or_never(changed.notified()).is_some();
            assert_eq!(noted, expected, "{type_}");
            let paths = paths.lock().unwrap();
            assert!(paths[0].contains("limit=1") && paths[1].contains("resourceVersion=7"), "{paths:?}");
        }
    }
}
