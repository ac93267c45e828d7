//! `chandler diff`.

use std::{path::PathBuf, sync::Arc};

use chandler_api::BundleDeployment;
use chandler_certificates::annotations::ROTATE;
use chandler_controller::certificates::complete;
use chandler_core::Release;
use chandler_rollout::{Options, Preview, Rollout};
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
        let preview = preview(client, deployment.as_ref(), &opened, &release).await?;
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
    rollout.preview_with(&owner, &completed.release, &[], drift).await.map_err(|error| refused().because(&error))
}
