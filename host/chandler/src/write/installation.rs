//! Installs a bundle and follows it (`chandler dev`).

use std::time::Duration;

use chandler_api::{BundleDeployment, BundleDeploymentSpec, BundleSource, ImageSource, Reason};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Map, Value};

use super::control_plane::FIELD_MANAGER;
use crate::{
    CommandError,
    read::follow,
    view::{
        advice::advice,
        progress::{Progress, seconds},
        progress_reporter::RolloutState,
        subject::Subject,
    },
};

/// The BundleDeployment to create.
#[derive(Clone, Debug)]
pub struct Installation {
    /// Its name.
    pub name: String,
    /// The namespace to install into.
    pub namespace: String,
    /// The provisioner class.
    pub class: String,
    /// The image, by digest.
    pub image: String,
    /// The configuration.
    pub config: Option<Map<String, Value>>,
}

/// The result of an installation.
#[derive(Debug)]
pub enum InstallationResult {
    /// All objects are healthy.
    Healthy,
    /// The installation failed and is not retried, or waits for a decision.
    Failed {
        /// The reason in the conditions.
        reason: Option<Reason>,
        /// The error to print.
        error: CommandError,
    },
    /// The bundle was not healthy in time.
    TimedOut(CommandError),
}

impl Installation {
    /// Creates or updates the BundleDeployment.
    pub async fn apply(&self, client: &Client) -> Result<(), CommandError> {
        let image = ImageSource { reference: self.image.clone(), ..ImageSource::default() };
        let spec = BundleDeploymentSpec {
            install_namespace: self.namespace.clone(),
            provisioner_class_name: self.class.clone(),
            source: BundleSource::image(image),
            config: self.config.clone(),
            ..BundleDeploymentSpec::default()
        };
        let deployment = BundleDeployment::new(&self.name, spec);
        let deployments: Api<BundleDeployment> = Api::all(client.clone());
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        deployments.patch(&self.name, &parameters, &Patch::Apply(&deployment)).await.map(drop).map_err(|error| {
            CommandError::failed(format!("failed to apply BundleDeployment {}", self.name)).because(&error)
        })
    }

    /// Reports progress until the bundle is healthy, has failed, or the timeout expires.
    pub async fn follow(&self, client: &Client, progress: &mut Progress, timeout: Duration) -> InstallationResult {
        let mut last = RolloutState::Waiting { message: "the controller".to_owned(), reason: None };
        let settled =
            tokio::time::timeout(timeout, follow::until_settled(client, &self.name, None, progress, &mut last)).await;
        progress.wait("");
        match settled {
            Ok(RolloutState::Failed { reason, message, .. }) => {
                let error = CommandError::failed(format!("{} was not installed: {reason}: {message}", self.name));
                let reason = Reason::from_name(&reason);
                InstallationResult::Failed { reason, error: self.advise(error, reason) }
            }
            Ok(RolloutState::Paused { decision, message }) => {
                let error = CommandError::decision(format!("{}: {message}", self.name));
                let reason = Some(decision.reason());
                InstallationResult::Failed { reason, error: self.advise(error, reason) }
            }
            Ok(RolloutState::Healthy | RolloutState::Waiting { .. }) => InstallationResult::Healthy,
            Err(_) => {
                let (message, reason) = match last {
                    RolloutState::Waiting { message, reason } => (message, reason),
                    _ => (String::new(), None),
                };
                let error = CommandError::timeout(format!(
                    "{} is not healthy after {}; it was waiting for: {message}",
                    self.name,
                    seconds(timeout)
                ));
                let error = self.advise(error, reason.as_deref().and_then(Reason::from_name));
                InstallationResult::TimedOut(
                    error.hint("--timeout allows more time; --keep leaves the control plane running for inspection"),
                )
            }
        }
    }

    fn advise(&self, error: CommandError, reason: Option<Reason>) -> CommandError {
        match reason.and_then(|reason| advice(reason, &Subject::deployment(&self.name))) {
            Some(advice) => error.hint(advice),
            None => error,
        }
    }
}
