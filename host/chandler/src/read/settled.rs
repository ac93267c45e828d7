//! Waits for the result of a change, within a timeout.

use std::time::Duration;

use chandler_api::Reason;
use kube::Client;

use super::{cluster, follow};
use crate::{
    CommandError, signals,
    view::{
        advice::{advice, deployment_advice},
        overview::Overview,
        progress::{Progress, seconds},
        progress_reporter::RolloutState,
        subject::Subject,
        terminal::Terminal,
        text::one_line,
    },
};

/// Reports progress until the BundleDeployment is healthy. With the namespace of the controller, the absence of a controller is reported.
///
/// # Errors
/// It has failed, waits for a decision of a user, or is not healthy in time; or a signal interrupts the command, and the rollout continues.
pub async fn until_healthy(
    client: &Client,
    name: &str,
    system_namespace: Option<&str>,
    terminal: &Terminal,
    timeout: Duration,
) -> Result<(), CommandError> {
    let mut progress = Progress::new(terminal);
    let mut last = RolloutState::Waiting { message: "the controller".to_owned(), reason: None };
    let followed = Box::pin(follow::until_settled(client, name, system_namespace, &mut progress, &mut last));
    let settled = signals::unless_interrupted(tokio::time::timeout(timeout, followed)).await;
    progress.finish();
    let Some(settled) = settled else {
        return Err(CommandError::interrupted_rollout(&Subject::deployment(name), last.waiting()));
    };
    match settled {
        Ok(RolloutState::Failed { reason, message, runs, .. }) => {
            let failed = match runs {
                Some(runs) => {
                    terminal.line(format!("{name}: {}", one_line(&runs)));
                    format!("the change of {name} was not rolled out: {reason}: {message}")
                }
                None => format!("{name} has failed: {reason}: {message}"),
            };
            Err(advised(CommandError::rollout(&reason, failed), Some(&reason), name))
        }
        Ok(RolloutState::Paused { decision, message }) => {
            let error = CommandError::decision(format!("{name}: {message}"));
            let advice = match Box::pin(cluster::deployment(client, name)).await {
                Ok(deployment) => deployment_advice(decision.reason(), &Overview::of(&deployment)),
                Err(_) => None,
            };
            Err(match advice {
                Some(advice) => error.hint(advice),
                None => advised(error, Some(decision.reason().as_str()), name),
            })
        }
        Ok(_) => {
            terminal.line(format!("{name} is healthy after {}", seconds(progress.elapsed())));
            Ok(())
        }
        Err(_) => {
            let (message, reason) = match last {
                RolloutState::Waiting { message, reason } => (message, reason),
                _ => (String::new(), None),
            };
            let error = CommandError::timeout(format!(
                "{name} is not healthy after {}; it is waiting for: {message}",
                seconds(timeout)
            ));
            Err(advised(error, reason.as_deref(), name))
        }
    }
}

fn advised(error: CommandError, reason: Option<&str>, name: &str) -> CommandError {
    let advice = reason.and_then(Reason::from_name).and_then(|reason| advice(reason, &Subject::deployment(name)));
    match advice {
        Some(advice) => error.hint(advice),
        None => error.hint(format!("`chandler status {name}` shows the objects and their health")),
    }
}
