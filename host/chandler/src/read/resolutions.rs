//! Reads a Resolution, and follows it until its set is complete and healthy.

use std::time::Duration;

use chandler_api::{Reason, Resolution};
use futures::StreamExt as _;
use kube::{Api, Client, runtime::watcher};

use crate::{
    CommandError,
    view::{
        advice::advice,
        progress::{Progress, seconds},
        progress_reporter::RolloutState,
        resolution_progress,
        subject::Subject,
        terminal::Terminal,
    },
};

/// Reads a Resolution.
pub async fn get(client: &Client, name: &str) -> Result<Resolution, CommandError> {
    let resolutions: Api<Resolution> = Api::all(client.clone());
    resolutions.get(name).await.map_err(|error| {
        let failed = CommandError::failed(format!("failed to read Resolution {name}")).because(&error);
        match &error {
            kube::Error::Api(status) if status.message.ends_with("\" not found") => {
                failed.hint("`kubectl get resolutions` lists them all")
            }
            _ => failed,
        }
    })
}

/// Reports progress until the set of the Resolution is complete and healthy.
///
/// # Errors
/// It needs action, waits for a decision of a user, or is not healthy in time.
pub async fn until_ready(
    client: &Client,
    name: &str,
    terminal: &Terminal,
    timeout: Duration,
) -> Result<(), CommandError> {
    let mut progress = Progress::new(terminal);
    let mut last = RolloutState::Waiting { message: "the controller".to_owned(), reason: None };
    let settled = tokio::time::timeout(timeout, until_settled(client, name, &mut progress, &mut last)).await;
    progress.finish();
    let target = format!("resolution/{name}");
    match (settled, last) {
        (Ok(RolloutState::Failed { reason, message, .. }), _) => {
            let failed = CommandError::rollout(&reason, format!("{target} needs action: {reason}: {message}"));
            Err(advised(failed, Some(&reason), name))
        }
        (Ok(RolloutState::Paused { decision, message }), _) => {
            let waits = CommandError::decision(format!("{target} waits for your decision: {message}"));
            Err(advised(waits, Some(decision.reason().as_str()), name))
        }
        (Ok(_), _) => {
            terminal.line(format!("{target} is complete and healthy after {}", seconds(progress.elapsed())));
            Ok(())
        }
        (Err(_), RolloutState::Waiting { message, reason }) => {
            let after = seconds(timeout);
            let error = CommandError::timeout(format!("{target} is not ready after {after}; it waits for: {message}"));
            Err(advised(error, reason.as_deref(), name))
        }
        (Err(_), _) => Err(CommandError::timeout(format!("{target} is not ready after {}", seconds(timeout)))),
    }
}

/// Reports what a Resolution waits for until that is nothing, or a user. `last` always holds the latest state.
pub async fn until_settled(
    client: &Client,
    name: &str,
    progress: &mut Progress,
    last: &mut RolloutState,
) -> RolloutState {
    let resolutions: Api<Resolution> = Api::all(client.clone());
    let mut observed = watcher::watch_object(resolutions, name).boxed();
    while let Some(event) = observed.next().await {
        let state = match event {
            Ok(Some(resolution)) => resolution_progress::state(&resolution),
            Ok(None) => RolloutState::Waiting { message: format!("Resolution {name} to be created"), reason: None },
            Err(error) => {
                tracing::debug!(%error, "the watch was interrupted");
                continue;
            }
        };
        if let RolloutState::Waiting { message, .. } = &state {
            progress.wait(message);
            *last = state;
        } else {
            return state;
        }
    }
    futures::future::pending().await
}

fn advised(error: CommandError, reason: Option<&str>, name: &str) -> CommandError {
    // The commands that follow a Resolution resume it first, or refuse one that is suspended.
    let reason = reason.and_then(Reason::from_name);
    let advice = reason.and_then(|reason| advice(reason, &Subject::active_resolution(name)));
    match advice {
        Some(advice) => error.hint(advice),
        None => error.hint(format!("`chandler explain resolution/{name}` shows its state")),
    }
}
