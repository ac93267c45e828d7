//! Reads Resolutions, Catalogs, ProvisionerClasses, PlatformOperators and PlatformPolicies, and follows them until they are ready or need an
//! action.

use std::{fmt::Debug, time::Duration};

use chandler_api::Reason;
use futures::StreamExt as _;
use k8s_openapi::ClusterResourceScope;
use kube::{Api, Client, Resource, runtime::watcher};
use serde::de::DeserializeOwned;

use super::controller_lease::{self, Evidence, PATIENCE};
use crate::{
    CommandError, signals,
    view::{
        advice::advice,
        api_error,
        followed::Followed,
        progress::{Progress, seconds},
        progress_reporter::RolloutState,
        subject::Subject,
        terminal::Terminal,
    },
};

/// A kind whose status can be read.
pub trait Kind:
    Followed + Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static
{
}

impl<K> Kind for K where
    K: Followed
        + Resource<DynamicType = (), Scope = ClusterResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static
{
}

/// Reads an object.
pub async fn get<K: Kind>(client: &Client, name: &str) -> Result<K, CommandError> {
    Api::<K>::all(client.clone()).get(name).await.map_err(|error| {
        let failed = CommandError::failed(format!("failed to read {} {name}", K::KIND)).because(&error);
        match &error {
            kube::Error::Api(status) if status.is_not_found() && !api_error::is_kind_missing(&error) => {
                failed.hint(format!("`kubectl get {}` lists them all", K::plural(&())))
            }
            _ => failed,
        }
    })
}

/// Reports what an object waits for until it is ready or needs an action. `last` always holds the latest state.
pub async fn until_settled<K: Kind>(
    client: &Client,
    name: &str,
    system_namespace: &str,
    progress: &mut Progress,
    last: &mut RolloutState,
) -> RolloutState {
    let mut observed = watcher::watch_object(Api::<K>::all(client.clone()), name).boxed();
    let patience = tokio::time::sleep(PATIENCE);
    tokio::pin!(patience);
    let mut is_asked = false;
    loop {
        let event = tokio::select! {
            event = observed.next() => event,
            () = &mut patience, if !is_asked => {
                is_asked = true;
                // The controller gives a reason for all that takes time.
                if matches!(last, RolloutState::Waiting { reason: None, .. })
                    && let Some(absent) = Box::pin(controller_lease::absence(client, system_namespace, Evidence::Unobserved)).await
                {
                    progress.report("controller", &absent);
                }
                continue;
            }
        };
        let state = match event {
            Some(Ok(Some(object))) => object.state(),
            Some(Ok(None)) => {
                RolloutState::Waiting { message: format!("{} {name} to be created", K::KIND), reason: None }
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "the watch was interrupted");
                continue;
            }
            None => return futures::future::pending().await,
        };
        match &state {
            // This takes moments, and is not worth a line.
            RolloutState::Waiting { message, reason: None } => progress.busy(message),
            RolloutState::Waiting { message, reason: Some(reason) } => progress.wait(&format!("{reason}: {message}")),
            RolloutState::Healthy | RolloutState::Paused { .. } | RolloutState::Failed { .. } => return state,
        }
        *last = state;
    }
}

/// Reports progress until an object is ready, within the timeout.
///
/// # Errors
/// It needs an action, or is not ready in time; or a signal interrupts the command, and the controller continues.
pub async fn until_ready<K: Kind>(
    client: &Client,
    name: &str,
    system_namespace: &str,
    terminal: &Terminal,
    timeout: Duration,
) -> Result<(), CommandError> {
    let mut progress = Progress::new(terminal);
    let mut last = RolloutState::Waiting { message: "the controller".to_owned(), reason: None };
    let followed = until_settled::<K>(client, name, system_namespace, &mut progress, &mut last);
    let settled = signals::unless_interrupted(tokio::time::timeout(timeout, followed)).await;
    progress.finish();
    let (subject, shown) = (Subject::followed(K::KIND, name), format!("{} {name}", K::KIND));
    let Some(settled) = settled else { return Err(CommandError::interrupted_rollout(&subject, last.waiting())) };
    let (error, reason) = match settled {
        Ok(RolloutState::Failed { reason, message, .. }) => {
            (CommandError::rollout(&reason, format!("{shown} needs action: {reason}: {message}")), Some(reason))
        }
        Ok(RolloutState::Paused { decision, message }) => {
            let waits = CommandError::decision(format!("{shown} waits for your decision: {message}"));
            (waits, Some(decision.reason().as_str().to_owned()))
        }
        Ok(_) => {
            terminal.line(get::<K>(client, name).await?.ready(progress.elapsed())?);
            return Ok(());
        }
        Err(_) => {
            let (message, reason) = match last {
                RolloutState::Waiting { message, reason } => (message, reason),
                _ => (String::new(), None),
            };
            let after = seconds(timeout);
            (CommandError::timeout(format!("{shown} is not ready after {after}; it waits for: {message}")), reason)
        }
    };
    let advice = reason.as_deref().and_then(Reason::from_name).and_then(|reason| advice(reason, &subject));
    Err(error.hint(advice.unwrap_or_else(|| format!("`chandler status {subject}` shows its conditions"))))
}
