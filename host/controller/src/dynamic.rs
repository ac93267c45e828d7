//! Objects of kinds that the cluster may not serve: lists, and waiting for a change.

use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, future::BoxFuture};
use kube::{
    Api,
    api::{DynamicObject, ListParams, WatchEvent, WatchParams},
};

/// The maximum number of objects of a kind in one response.
const PAGE: u32 = 200;

/// Objects, and where to continue to watch their kind; `None` if the cluster does not serve it.
pub(crate) type Listed = (Vec<DynamicObject>, Option<String>);

/// All objects that are selected, and where a watch begins; `None` if the cluster does not serve the kind.
pub(crate) fn list<'a>(
    api: &'a Api<DynamicObject>,
    selected: &'a ListParams,
) -> BoxFuture<'a, Result<Listed, kube::Error>> {
    list_pages(api, selected).boxed()
}

async fn list_pages(api: &Api<DynamicObject>, selected: &ListParams) -> Result<Listed, kube::Error> {
    let (mut objects, mut page) = (Vec::new(), selected.clone().limit(PAGE));
    loop {
        let list = match api.list(&page).await {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok((Vec::new(), None)),
            list => list?,
        };
        objects.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok((objects, list.metadata.resource_version)),
        }
    }
}

/// Waits for a change. Ends also when the API server ends the watch.
pub(crate) fn change<'a>(api: &'a Api<DynamicObject>, version: &'a str) -> BoxFuture<'a, Result<(), kube::Error>> {
    wait(api, version).boxed()
}

async fn wait(api: &Api<DynamicObject>, version: &str) -> Result<(), kube::Error> {
    let mut events = api.watch(&WatchParams::default(), version).await?.boxed();
    while let Some(event) = events.try_next().await? {
        if !matches!(event, WatchEvent::Bookmark(_)) {
            return Ok(());
        }
    }
    Ok(())
}
