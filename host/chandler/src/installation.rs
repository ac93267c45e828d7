//! Installing a bundle and following it.

use std::time::Duration;

use chandler_api::{BundleDeployment, BundleDeploymentSpec, BundleSource, ImageSource, Reason};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Map, Value};

use crate::{
    CommandError,
    advice::advice,
    control_plane::FIELD_MANAGER,
    following,
    narration::Standing,
    progress::{Progress, seconds},
};

/// What is installed.
#[derive(Clone, Debug)]
pub struct Installation {
    /// The name of the BundleDeployment.
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

/// How it ended.
#[derive(Debug)]
pub enum Ended {
    /// All is well.
    Healthy,
    /// It will not go on by itself.
    Failed {
        /// Why, as the conditions name it.
        reason: Option<Reason>,
        /// Why, in words.
        error: CommandError,
    },
    /// Time ran out.
    TimedOut(CommandError),
}

impl Installation {
    /// Creates the BundleDeployment, or changes the one that is there.
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
            CommandError::failed(format!("failed to create BundleDeployment {}", self.name)).because(&error)
        })
    }

    /// Reports what becomes of it until it is healthy, has failed, or time has run out.
    pub async fn follow(&self, client: &Client, progress: &mut Progress, timeout: Duration) -> Ended {
        let mut waiting = Standing::Waiting { message: "the controller".to_owned(), reason: None };
        let end = tokio::time::timeout(timeout, following::follow(client, &self.name, progress, &mut waiting)).await;
        progress.wait("");
        match end {
            Ok(Standing::Failed { reason, message }) => {
                let error = CommandError::failed(format!("{} was not installed: {reason}: {message}", self.name));
                let reason = Reason::from_name(&reason);
                Ended::Failed { reason, error: self.advise(error, reason) }
            }
            Ok(Standing::Healthy | Standing::Waiting { .. }) => Ended::Healthy,
            Err(_) => {
                let (message, reason) = match waiting {
                    Standing::Waiting { message, reason } => (message, reason),
                    _ => (String::new(), None),
                };
                let error = CommandError::timeout(format!(
                    "{} is not healthy after {}; the last thing it waited for: {message}",
                    self.name,
                    seconds(timeout)
                ));
                let error = self.advise(error, reason.as_deref().and_then(Reason::from_name));
                Ended::TimedOut(
                    error.hint("--timeout gives it more time, --keep leaves the control plane up to look around"),
                )
            }
        }
    }

    fn advise(&self, error: CommandError, reason: Option<Reason>) -> CommandError {
        match reason.and_then(|reason| advice(reason, &self.name)) {
            Some(advice) => error.hint(advice),
            None => error,
        }
    }
}
