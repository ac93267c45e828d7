//! `chandler approve`.

use std::path::PathBuf;

use chandler_api::{BundleDeployment, PendingChange};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;

use crate::{CommandError, live, output, terminal::Terminal, text::one_line};

/// Let a pending change of a BundleDeployment go on
///
/// With `spec.approval: Manual` a new revision waits, and status.pendingChange tells what it would do. This prints it and
/// sets spec.approvedChange to its digest. What would do something else by then goes on waiting.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The change on standard output; what was done on standard error.

Exit codes: 0 approved, 1 nothing waits or refused, 2 wrong usage

Examples:
  See it first, with every field:
    chandler diff my-operator
  Let it go on:
    chandler approve my-operator
  Only if it is the one that was reviewed:
    chandler approve my-operator --digest sha256:…")]
pub struct Approve {
    /// The name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The digest of the change; where another one waits, nothing is approved
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

impl Approve {
    /// Approves it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let deployment = live::deployment(&client, &self.name).await?;
        let deployments: Api<BundleDeployment> = Api::all(client);
        let pending = waiting(&deployment, self.digest.as_deref())?;
        output::print(&text(pending))?;
        let patch = json!({
            // Whoever changes the object meanwhile may mean another change.
            "metadata": {"resourceVersion": deployment.metadata.resource_version},
            "spec": {"approvedChange": pending.digest},
        });
        let parameters = PatchParams { field_manager: Some("chandler-approve".to_owned()), ..PatchParams::default() };
        deployments.patch(&self.name, &parameters, &Patch::Merge(patch)).await.map_err(|error| {
            CommandError::failed(format!("failed to change BundleDeployment {}", self.name))
                .because(&error)
                .hint("look at it again and repeat the command, if it was changed meanwhile")
        })?;
        terminal.line(format!("approved: `chandler status {} --watch` follows it", self.name));
        Ok(())
    }
}

/// The change that waits, which must be the one that was asked for.
fn waiting<'a>(deployment: &'a BundleDeployment, asked: Option<&str>) -> Result<&'a PendingChange, CommandError> {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let status = deployment.status.as_ref();
    let current = status.and_then(|status| status.observed_generation) >= deployment.metadata.generation;
    let Some(pending) = status.and_then(|status| status.pending_change.as_ref()).filter(|_| current) else {
        return Err(CommandError::failed(format!("no change of BundleDeployment {name} waits for consent"))
            .hint(format!("`chandler status {name}` tells how it is")));
    };
    match asked {
        Some(asked) if asked != pending.digest => {
            Err(CommandError::failed(format!("another change of BundleDeployment {name} waits: {}", pending.digest))
                .hint(format!("`chandler diff {name}` shows it")))
        }
        _ => Ok(pending),
    }
}

fn text(pending: &PendingChange) -> String {
    let mut text = String::new();
    for line in pending.objects.iter().chain(&pending.findings) {
        text.push_str(&one_line(line));
        text.push('\n');
    }
    if let Some(omitted) = pending.omitted {
        text.extend(["and ", &omitted.to_string(), " more objects\n"]);
    }
    let PendingChange { created, changed, removed, digest, .. } = pending;
    text + &format!("{created} to create, {changed} to change, {removed} to remove: {digest}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(generation: i64) -> BundleDeployment {
        serde_json::from_value(json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": "harbour", "generation": generation},
            "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
            "status": {"observedGeneration": 2, "pendingChange": {
                "digest": "sha256:1", "releaseDigest": "sha256:2", "created": 1, "changed": 2, "removed": 0,
                "objects": ["create ConfigMap n/a"], "omitted": 2, "findings": ["something\nis odd"],
            }},
        }))
        .unwrap()
    }

    #[test]
    fn only_the_change_that_waits_is_approved() {
        assert_eq!(waiting(&deployment(2), None).unwrap().digest, "sha256:1");
        assert_eq!(waiting(&deployment(2), Some("sha256:1")).unwrap().digest, "sha256:1");
        assert!(waiting(&deployment(2), Some("sha256:9")).is_err());
        assert!(waiting(&deployment(3), None).is_err(), "the status is about an older spec");
        insta::assert_snapshot!(text(waiting(&deployment(2), None).unwrap()), @r"
        create ConfigMap n/a
        something is odd
        and 2 more objects
        1 to create, 2 to change, 0 to remove: sha256:1
        ");
    }
}
