//! Waits until the controller has handled a request to reconcile an object (the annotation reconcile.chandler.dev/requestedAt).

use std::{
    fmt::Debug,
    time::{Duration, Instant},
};

use chandler_api::{BundleDeployment, Catalog, ConditionType, ProvisionerClass, find_condition};
use k8s_openapi::{ClusterResourceScope, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{Api, Client, Resource, runtime::wait::await_condition};
use serde::de::DeserializeOwned;

use super::controller_lease::{self, Evidence, PATIENCE};
use crate::{
    CommandError, signals,
    view::{progress::seconds, subject::Subject, terminal::Terminal, text::one_line},
};

/// A kind whose status says which request was handled last.
pub trait Requested:
    Resource<DynamicType = (), Scope = ClusterResourceScope> + Clone + Debug + DeserializeOwned + Send + 'static
{
    /// The value of the annotation that was handled last.
    fn handled(&self) -> Option<&str>;

    /// The conditions of the status.
    fn conditions(&self) -> &[Condition];
}

impl Requested for BundleDeployment {
    fn handled(&self) -> Option<&str> {
        self.status.as_ref()?.last_handled_reconcile_at.as_deref()
    }

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }
}

impl Requested for Catalog {
    fn handled(&self) -> Option<&str> {
        self.status.as_ref()?.last_handled_reconcile_at.as_deref()
    }

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }
}

impl Requested for ProvisionerClass {
    fn handled(&self) -> Option<&str> {
        self.status.as_ref()?.last_handled_reconcile_at.as_deref()
    }

    fn conditions(&self) -> &[Condition] {
        self.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default()
    }
}

/// A request that was written, and how long a command waits for what follows from it.
#[derive(Clone, Copy, Debug)]
pub struct Pending<'a> {
    /// The object that the user named.
    pub subject: Subject<'a>,
    /// The value of the annotation.
    pub at: &'a str,
    /// The namespace of the controller.
    pub system_namespace: &'a str,
    /// When the command began.
    pub started: Instant,
    /// The timeout of the command.
    pub timeout: Duration,
}

impl Pending<'_> {
    /// What is left of the timeout.
    pub fn rest(&self) -> Duration {
        self.timeout.saturating_sub(self.started.elapsed())
    }

    /// Waits until the controller has handled the request about the object of this name. After a while, reports that no controller runs.
    ///
    /// # Errors
    /// It is not handled in time, the object is deleted, or a signal interrupts the command: then the controller handles it nevertheless.
    pub async fn until_handled<K>(&self, client: &Client, name: &str, terminal: &Terminal) -> Result<K, CommandError>
    where
        K: Requested,
    {
        let objects: Api<K> = Api::all(client.clone());
        // The wait also ends with the deletion of the object.
        let is_handled = |object: Option<&K>| object.is_none_or(|object| object.handled() == Some(self.at));
        let handled = Box::pin(await_condition(objects, name, is_handled));
        let patience = async {
            tokio::time::sleep(PATIENCE).await;
            let evidence = Evidence::Unobserved;
            Box::pin(controller_lease::report_absence(client, self.system_namespace, evidence, terminal)).await;
            if let Some(problem) = problem::<K>(client, name).await {
                terminal.line(format!("waiting: {problem}"));
            }
            std::future::pending().await
        };
        let handled = async {
            tokio::select! {
                handled = handled => handled,
                never = patience => never,
            }
        };
        let shown = format!("{} {name}", K::kind(&()));
        let failed = || CommandError::failed(format!("failed to watch {shown}"));
        match signals::unless_interrupted(tokio::time::timeout(self.rest(), handled)).await {
            None => Err(CommandError::interrupted_request(&self.subject)),
            Some(Ok(Ok(Some(object)))) => Ok(object),
            Some(Ok(Ok(None))) => {
                Err(CommandError::failed(format!("{shown} was deleted before the controller handled the request")))
            }
            Some(Ok(Err(error))) => Err(failed().because(&error)),
            Some(Err(_)) => {
                let error = CommandError::timeout(format!(
                    "the controller has not handled the request within {}",
                    seconds(self.timeout)
                ));
                Err(match problem::<K>(client, name).await {
                    Some(problem) => error.cause(problem).hint(format!(
                        "the controller tries again by itself; `chandler status {}` shows when",
                        self.subject
                    )),
                    None => error.hint(format!(
                        "check that the controller is running, and that its --watch-selector selects {shown}"
                    )),
                })
            }
        }
    }
}

/// Why an object is not ready, if its status says so.
async fn problem<K: Requested>(client: &Client, name: &str) -> Option<String> {
    let object = Api::<K>::all(client.clone()).get_opt(name).await.ok()??;
    let ready = find_condition(object.conditions(), ConditionType::Ready)?;
    (ready.status == "False").then(|| format!("{}: {}", one_line(&ready.reason), one_line(&ready.message)))
}
