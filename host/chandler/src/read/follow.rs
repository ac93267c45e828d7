//! Follows a BundleDeployment with a watch, and reports on standard error.

use std::time::Duration;

use chandler_api::{BundleDeployment, ChangeApproval, ConditionType, find_condition};
use chandler_decisions::intent::GRANT_CHECK;
use futures::StreamExt as _;
use kube::{Api, Client, ResourceExt as _, runtime::watcher};

use super::{
    cluster,
    controller_lease::{self, Evidence, PATIENCE},
};
use crate::view::{
    overview::Decision,
    progress::Progress,
    progress_reporter::{ProgressReporter, RolloutState},
    text::count,
    tree,
};

/// How often the objects are counted while they become healthy.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// How long a failure is not final that the status has reported before, if the controller still looks whether its cause is gone: what a
/// user has just fixed is noticed within this time.
const RECHECK: Duration = Duration::from_secs(GRANT_CHECK.as_secs() * 3 / 2);

/// Reports the progress of a BundleDeployment until it is healthy, waits for a decision or has failed, and returns that state. `last`
/// always holds the latest state, for callers that stop waiting. With the namespace of the controller, the absence of a controller is
/// reported.
pub async fn until_settled(
    client: &Client,
    name: &str,
    system_namespace: Option<&str>,
    progress: &mut Progress,
    last: &mut RolloutState,
) -> RolloutState {
    let deployments: Api<BundleDeployment> = Api::all(client.clone());
    let mut observed = watcher::watch_object(deployments, name).boxed();
    let mut reporter = ProgressReporter::default();
    let mut current = None;
    let mut tick = tokio::time::interval(COUNT_INTERVAL);
    let recheck = tokio::time::sleep(RECHECK);
    let patience = tokio::time::sleep(PATIENCE);
    tokio::pin!(recheck, patience);
    let mut unasked = system_namespace;
    let mut failed = None;
    loop {
        tokio::select! {
            event = observed.next() => match event {
                Some(Ok(Some(deployment))) => {
                    let (lines, state) = reporter.observe(&deployment);
                    for line in lines {
                        progress.report(line.label, &line.text);
                    }
                    failed = None;
                    match state {
                        RolloutState::Waiting { ref message, .. } => {
                            progress.wait(message);
                            *last = state;
                        }
                        RolloutState::Paused { decision: Decision::Approve, .. }
                            if Box::pin(is_approved(client, &deployment)).await =>
                        {
                            let message = "the controller has not noticed the approval yet".to_owned();
                            progress.wait(&message);
                            *last = RolloutState::Waiting { message, reason: None };
                        }
                        RolloutState::Failed { ref reason, ref message, is_retried: true, .. } if !recheck.is_elapsed() => {
                            // The result has this message, and it may be long.
                            progress.wait(&format!("{reason}: the controller looks again whether this still holds"));
                            *last = RolloutState::Waiting { message: message.clone(), reason: Some(reason.clone()) };
                            failed = Some(state);
                        }
                        settled => return settled,
                    }
                    current = Some(deployment);
                }
                // It was deleted or not yet created, or the name is mistyped.
                Some(Ok(None)) => {
                    let message = format!("BundleDeployment {name} does not exist; waiting until it is created");
                    progress.report("absent", &message);
                    failed = None;
                    (current, *last) = (None, RolloutState::Waiting { message, reason: None });
                }
                Some(Err(error)) => tracing::debug!(%error, "the watch was interrupted"),
                None => return futures::future::pending().await,
            },
            () = &mut recheck, if failed.is_some() => {
                if let Some(failed) = failed.take() {
                    return failed;
                }
            }
            () = &mut patience, if unasked.is_some() => {
                let is_waiting = current.as_ref().is_some_and(|current| !controller_lease::is_observed(current));
                if let Some(namespace) = unasked.take().filter(|_| is_waiting)
                    && let Some(absent) = controller_lease::absence(client, namespace, Evidence::Unobserved).await
                {
                    progress.report("controller", &absent);
                }
            }
            _ = tick.tick(), if progress.terminal().is_interactive() => {
                if let (Some(deployment), RolloutState::Waiting { message, .. }) = (&current, &*last) {
                    let members = cluster::members(client, deployment).await;
                    let release = deployment.status.as_ref().and_then(|status| status.release.as_ref());
                    let (healthy, all) = tree::healthy(&members.objects, release);
                    progress.wait(&format!("{healthy} of {} healthy; {message}", count(all, "object")));
                }
            }
        }
    }
}

/// Whether the change that waits for approval has one, which the controller has not noticed yet. A caller who may not read approvals
/// gets the state in the status.
async fn is_approved(client: &Client, deployment: &BundleDeployment) -> bool {
    let pending = deployment.status.as_ref().and_then(|status| status.pending_change.as_ref());
    let Some(digest) = pending.map(|pending| pending.digest.as_str()) else { return false };
    let Some(expected) = ChangeApproval::of(deployment, digest, "", None) else { return false };
    let approvals: Api<ChangeApproval> = Api::all(client.clone());
    let found = approvals.get_opt(&expected.name_any()).await;
    found.is_ok_and(|found| found.is_some_and(|found| found.approves(deployment, digest)))
}

/// Reports what the controller waits for until the BundleDeployment with this UID no longer exists. `last` always holds the latest
/// message.
pub async fn until_deleted(
    deployments: Api<BundleDeployment>,
    name: &str,
    uid: Option<&str>,
    progress: &mut Progress,
    last: &mut String,
) {
    let mut observed = watcher::watch_object(deployments, name).boxed();
    while let Some(event) = observed.next().await {
        match event {
            Ok(Some(deployment)) if deployment.metadata.uid.as_deref() == uid => {
                if let Some(message) = deletion_progress(&deployment) {
                    progress.wait(&message);
                    *last = message;
                }
            }
            Ok(_) => break,
            Err(error) => tracing::debug!(%error, "the watch was interrupted"),
        }
    }
}

/// The message of `Progressing` if it is about the deletion.
fn deletion_progress(deployment: &BundleDeployment) -> Option<String> {
    let status = deployment.status.as_ref()?;
    deployment.metadata.deletion_timestamp.as_ref()?;
    let progressing = find_condition(&status.conditions, ConditionType::Progressing)?;
    // Until the controller has observed the deletion, the conditions describe the previous generation.
    let current = progressing.observed_generation >= deployment.metadata.generation;
    current.then(|| progressing.message.clone())
}
