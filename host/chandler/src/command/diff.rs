//! `chandler diff`.

use std::{path::PathBuf, sync::Arc};

use chandler_api::{BundleDeployment, ConditionType, Reason, find_condition};
use chandler_certificates::annotations::ROTATE;
use chandler_controller::certificates::complete;
use chandler_core::Release;
use chandler_rollout::{Options, Preview, Rollout, RolloutRequest};
use kube::{Api, Client, ResourceExt as _};

use super::{rbac::is_bundle, status::StatusFormat};
use crate::{
    CommandError, deployed, difference,
    error::Kind,
    live, output,
    rendering::{Opened, Rendering},
    terminal::Terminal,
};

/// Print what a rollout would change
///
/// Renders a bundle as the controller does and compares, object by object, what is in the cluster with what the API server says
/// in a dry run that it would become, so that defaults do not show. Makes every check that the controller makes before it
/// writes. Nothing is changed. Secret values are not shown.
#[derive(Debug, clap::Args)]
#[command(mut_arg("bundle", |argument| argument.value_name("NAME|BUNDLE").help(
    "The name of a BundleDeployment: what its spec asks for; or a bundle for it: a directory, an archive or an image, \
     written with a slash, such as `./my-operator`")))]
#[command(after_long_help = "\
Output:
  The changes on standard output: in colour on a terminal, or as JSON with every field.
  What the rollout would be refused for, what else checks find, and a summary line, on standard error.

Exit codes: 0 nothing would change, 1 would be refused or not readable, 2 wrong usage, 4 something would change

Examples:
  What waits for approval, or is about to be rolled out:
    chandler diff my-operator
  What a new version would change:
    chandler diff ./my-operator-v2 --name my-operator
  Objects that would go:
    chandler diff ./my-operator-v2 --name my-operator -o json | jq '.changes[] | select(.kind == \"remove\")'")]
pub struct Diff {
    /// Which bundle, and how.
    #[command(flatten)]
    pub rendering: Rendering,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = StatusFormat::Text)]
    pub output: StatusFormat,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// The exit code where something would change.
pub const CHANGES: u8 = 4;

impl Diff {
    /// Prints it, and gives the exit code.
    pub async fn run(&self, terminal: &Terminal) -> Result<u8, CommandError> {
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let (deployment, mut opened) = if is_bundle(&self.rendering.bundle) {
            let mut opened = self.rendering.open().await?;
            let name = opened.request.target.name.clone();
            let deployments: Api<BundleDeployment> = Api::all(client.clone());
            let existing = deployments.get_opt(&name).await.map_err(|error| live::not_read(&name, &error))?;
            if let Some(existing) = &existing {
                deployed::as_it_is(&self.rendering, existing, &mut opened);
            }
            (existing, opened)
        } else {
            let name = &self.rendering.bundle;
            let deployment = live::deployment(&client, name).await?;
            let opened = deployed::open(&self.rendering, &deployment, None).await?;
            (Some(deployment), opened)
        };
        let release = deployed::release(&client, &mut opened).await?;
        let mut preview = preview(client, deployment.as_ref(), &opened, &release).await?;
        if let Some(refusal) = deployment.as_ref().filter(|_| !is_bundle(&self.rendering.bundle)).and_then(of_account) {
            preview.refusals.insert(0, refusal);
        }
        match self.output {
            StatusFormat::Json => output::print(&output::json(&preview)?)?,
            StatusFormat::Text => output::print(&difference::text(&preview, Terminal::output().look()))?,
        }
        for refusal in &preview.refusals {
            terminal.line(difference::refusal(refusal));
        }
        for finding in &preview.findings {
            terminal.line(format!("finding: {}", crate::text::printable(finding)));
        }
        terminal.line(difference::summary(&preview));
        Ok(match (preview.refusals.is_empty(), preview.is_empty()) {
            (false, _) => Kind::Failed.exit_code(),
            (true, true) => 0,
            (true, false) => CHANGES,
        })
    }
}

/// What the controller says of the account on whose behalf it installs. Only the controller can check that: a user who asks
/// for a preview need not be allowed to act on behalf of the account.
fn of_account(deployment: &BundleDeployment) -> Option<String> {
    let status = deployment.status.as_ref()?;
    let progressing = find_condition(&status.conditions, ConditionType::Progressing)?;
    let is_current = progressing.observed_generation == deployment.metadata.generation;
    let about_account = [Reason::ServiceAccountRequired, Reason::ServiceAccountNotFound, Reason::PermissionsMissing];
    let reason = Reason::from_name(&progressing.reason)?;
    (is_current && about_account.contains(&reason)).then(|| progressing.message.clone())
}

async fn preview(
    client: Client,
    deployment: Option<&BundleDeployment>,
    opened: &Opened,
    release: &Release,
) -> Result<Preview, CommandError> {
    let target = &opened.request.target;
    let mut planned = deployment.cloned().unwrap_or_default();
    if deployment.is_none() {
        // Nobody has this UID, so nothing in the cluster is taken for its own.
        planned.metadata.name = Some(target.name.clone());
        planned.metadata.uid = Some("00000000-0000-0000-0000-000000000000".to_owned());
    }
    let Some(owner) = chandler_controller::owner_of(&planned, &target.namespace) else {
        return Err(CommandError::failed(format!("BundleDeployment {} has no UID", target.name)));
    };
    let ignored =
        chandler_controller::ignored_fields(&planned.spec).map_err(|error| CommandError::failed(error.to_string()))?;
    let owner = owner.ignoring(ignored);
    let drift = chandler_controller::drift_policy(planned.spec.drift.unwrap_or_default());
    let rollout = Rollout::new(client, Options::default());
    let refused = || CommandError::failed(format!("the rollout of {} would be refused", target.name));
    let (policy, rotate) = (chandler_certificates::Policy::default(), planned.annotations().get(ROTATE));
    let completed = complete(&rollout, &policy, &owner, rotate.map(String::as_str), Arc::new(release.clone())).await;
    let completed = completed.map_err(|error| refused().because(&error))?;
    rollout
        .preview(&RolloutRequest::new(&owner, &completed.release).drift(drift))
        .await
        .map_err(|error| refused().because(&error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_controller_says_of_the_account_refuses_the_same_spec() {
        for (reason, generation, refused) in [
            ("PermissionsMissing", 2, true),
            ("ServiceAccountNotFound", 2, true),
            ("ServiceAccountRequired", 2, true),
            ("PermissionsMissing", 1, false),
            ("Succeeded", 2, false),
        ] {
            let deployment = serde_json::from_value(json!({
                "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
                "metadata": {"name": "harbour", "generation": 2},
                "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
                "status": {"conditions": [{
                    "type": "Progressing", "status": "True", "reason": reason, "message": "it may not",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": generation,
                }]},
            }));
            let deployment: BundleDeployment = deployment.unwrap();
            assert_eq!(of_account(&deployment).as_deref(), refused.then_some("it may not"), "{reason} {generation}");
        }
    }
}
