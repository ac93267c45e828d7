//! Waits for conditions, never for a fixed time.

use std::{fmt::Debug, future::Future, time::Duration};

use kube::{Api, Resource, api::WatchParams};
use serde::de::DeserializeOwned;

/// How long a test waits before it fails with the last state. Generous: only failing tests wait that long.
pub const PATIENCE: Duration = Duration::from_mins(4);

/// Waits until the object satisfies the condition, and returns it.
///
/// Reads the object again at every change. Panics with its last state after [`PATIENCE`].
pub async fn until<K>(api: &Api<K>, name: &str, what: &str, condition: impl Fn(Option<&K>) -> bool) -> Option<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    within(PATIENCE, api, name, what, condition).await
}

/// Like [`until`], with another timeout.
pub async fn within<K>(
    patience: Duration,
    api: &Api<K>,
    name: &str,
    what: &str,
    condition: impl Fn(Option<&K>) -> bool,
) -> Option<K>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut last = None;
    let seen = tokio::time::timeout(patience, async {
        loop {
            last = api.get_opt(name).await.expect("the API server answers");
            if condition(last.as_ref()) {
                return;
            }
            change(api, name, last.as_ref()).await;
        }
    })
    .await;
    assert!(seen.is_ok(), "{name} never became {what}; last seen: {last:#?}");
    last
}

/// Returns at the next change of the object, or after a second if the watch ends or cannot start.
async fn change<K>(api: &Api<K>, name: &str, last: Option<&K>)
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    use futures::StreamExt as _;
    let version = last.and_then(|object| object.meta().resource_version.clone()).unwrap_or_else(|| "0".to_owned());
    let parameters = WatchParams::default().fields(&format!("metadata.name={name}")).timeout(5);
    // The second is for the answer of the API server, too.
    let watching = async {
        if let Ok(events) = api.watch(&parameters, &version).await {
            Box::pin(events).next().await;
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), watching).await;
}

/// Polls until the condition holds, for state that cannot be watched.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let seen = tokio::time::timeout(PATIENCE, async {
        loop {
            tick.tick().await;
            if condition().await {
                return;
            }
        }
    })
    .await;
    assert!(seen.is_ok(), "not true in time: {what}");
}
