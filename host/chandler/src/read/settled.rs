//! Waits for the result of a change, within a timeout.

use std::time::Duration;

use chandler_api::{BundleDeployment, ProvisionerClass, Reason};
use kube::{Api, Client, runtime::wait::await_condition};

use super::follow;
use crate::{
    CommandError, signals,
    view::{
        advice::advice,
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
            Err(advised(CommandError::decision(format!("{name}: {message}")), Some(decision.reason().as_str()), name))
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

/// Waits until the controller has handled this value of the annotation that requests a reconcile, within the timeout.
pub async fn until_handled(client: &Client, name: &str, request: &str, timeout: Duration) -> Result<(), CommandError> {
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    let handled = await_condition(deployments, name, |deployment: Option<&BundleDeployment>| {
        let status = deployment.and_then(|deployment| deployment.status.as_ref());
        status.and_then(|status| status.last_handled_reconcile_at.as_deref()) == Some(request)
    });
    match tokio::time::timeout(timeout, handled).await {
        Ok(handled) => handled
            .map(drop)
            .map_err(|error| CommandError::failed(format!("failed to watch BundleDeployment {name}")).because(&error)),
        Err(_) => Err(CommandError::timeout(format!(
            "the controller has not handled the request within {}",
            seconds(timeout)
        ))
        .hint("check that the controller is running, and that its --watch-selector selects the BundleDeployment")),
    }
}

/// Waits until the controller has handled this value of the annotation of a ProvisionerClass, within the timeout.
pub async fn until_class_handled(
    client: &Client,
    name: &str,
    request: &str,
    timeout: Duration,
) -> Result<ProvisionerClass, CommandError> {
    let classes: Api<ProvisionerClass> = Api::all(client.clone());
    let handled = await_condition(classes, name, |class: Option<&ProvisionerClass>| {
        let status = class.and_then(|class| class.status.as_ref());
        status.and_then(|status| status.last_handled_reconcile_at.as_deref()) == Some(request)
    });
    let failed = || CommandError::failed(format!("failed to watch ProvisionerClass {name}"));
    match tokio::time::timeout(timeout, handled).await {
        Ok(Ok(Some(class))) => Ok(class),
        Ok(Ok(None)) => Err(failed().hint("it was deleted")),
        Ok(Err(error)) => Err(failed().because(&error)),
        Err(_) => Err(CommandError::timeout(format!(
            "the controller has not loaded the component of ProvisionerClass {name} within {}",
            seconds(timeout)
        ))
        .hint("check that the controller is running, and that its --watch-selector selects the ProvisionerClass")),
    }
}

fn advised(error: CommandError, reason: Option<&str>, name: &str) -> CommandError {
    let advice = reason.and_then(Reason::from_name).and_then(|reason| advice(reason, &Subject::deployment(name)));
    match advice {
        Some(advice) => error.hint(advice),
        None => error.hint(format!("`chandler status {name}` shows the objects and their health")),
    }
}
