//! `chandler rollback`.

use std::path::PathBuf;

use chandler_api::BundleDeployment;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};

use crate::{CommandError, live, revisions, terminal::Terminal};

/// Have an earlier revision of a BundleDeployment run again
///
/// Sets spec.rollout.toRevision. The controller makes the release of that revision again, checks that it comes out the same,
/// and rolls it out as a new revision. While the field is set, the rest of the spec waits; --cancel takes it away.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  What was done, on standard error.

Exit codes: 0 asked for, 1 refused, 2 wrong usage

Examples:
  To the last revision that succeeded with another release:
    chandler rollback my-operator
  To one that `chandler history` shows:
    chandler rollback my-operator --to 3
  Follow it:
    chandler status my-operator --watch
  Roll out again what the spec describes:
    chandler rollback my-operator --cancel")]
pub struct Rollback {
    /// The name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The number of the revision [default: the last one that succeeded with another release]
    #[arg(long, value_name = "REVISION", value_parser = clap::value_parser!(i64).range(1..))]
    pub to: Option<i64>,

    /// End a rollback: what the spec describes is rolled out again
    #[arg(long, conflicts_with = "to")]
    pub cancel: bool,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

impl Rollback {
    /// Asks for it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let deployment = live::deployment(&client, &self.name).await?;
        let deployments: Api<BundleDeployment> = Api::all(client);
        let name = &self.name;
        let number = if self.cancel { None } else { Some(revisions::target(&deployment, self.to)?.number) };
        // Whoever changes the object meanwhile may have other revisions in mind.
        let version = deployment.metadata.resource_version.as_deref();
        let patch = json!({
            "metadata": {"resourceVersion": version},
            "spec": {"rollout": {"toRevision": number.map_or(Value::Null, Value::from)}},
        });
        let parameters = PatchParams { field_manager: Some("chandler-rollback".to_owned()), ..PatchParams::default() };
        deployments.patch(name, &parameters, &Patch::Merge(patch)).await.map_err(|error| {
            CommandError::failed(format!("failed to change BundleDeployment {name}")).because(&error)
        })?;
        terminal.line(match number {
            Some(number) => format!(
                "the controller now runs revision {number} of {name} again: `chandler status {name} --watch` follows it, \
                 `chandler rollback {name} --cancel` ends it"
            ),
            None => format!("the controller now installs what the spec of {name} describes: `chandler status {name} --watch` follows it"),
        });
        Ok(())
    }
}
