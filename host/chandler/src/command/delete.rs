//! `chandler delete`.

use std::{path::PathBuf, time::Duration};

use chandler_api::{BundleDeployment, ConditionType, CrdDeletion, Deletion, DeletionPolicy, find_condition};
use chandler_rollout::{DeletionPreview, Options, Rollout, deletion_plan};
use futures::StreamExt as _;
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    runtime::watcher,
};
use serde_json::json;

use super::status::StatusFormat;
use crate::{
    CommandError, consent, live, output,
    progress::{Progress, seconds},
    terminal::Terminal,
    text::{count, one_line},
    values,
};

/// Delete a BundleDeployment, after showing what goes and what stays
///
/// Lists the objects that are deleted and those that stay, and counts the custom resources that would go with their
/// CRDs. Then deletes the BundleDeployment, which is the same as `kubectl delete`, and follows it until it is gone.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  What goes and what stays on standard output, as JSON with every object; what happens on standard error.

Exit codes: 0 deleted, 1 refused or not readable, 2 wrong usage, 3 not gone in time

Examples:
  See it first:
    chandler delete my-operator --dry-run
  Keep the CRDs, and so all custom resources:
    chandler delete my-operator --crds Keep
  Leave everything where it is:
    chandler delete my-operator --orphan")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Delete {
    /// The name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Leave all objects where they are: sets spec.deletion.policy to Orphan
    #[arg(long)]
    pub orphan: bool,

    /// Whether CRDs stay, or go with all their custom resources: sets spec.deletion.crds
    #[arg(long, value_enum, value_name = "POLICY", ignore_case = true, conflicts_with = "orphan")]
    pub crds: Option<Crds>,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// Follow it until it is gone
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub wait: bool,

    /// How long to follow it
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = values::duration)]
    pub timeout: Duration,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = StatusFormat::Text)]
    pub output: StatusFormat,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

/// What becomes of CustomResourceDefinitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Crds {
    /// They stay, and so do custom resources
    Keep,
    /// They are deleted with all their custom resources
    Delete,
}

impl Delete {
    /// Deletes it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let name = &self.name;
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let deployment = live::deployment(&client, name).await?;
        let deletion = self.deletion(&deployment);
        let preview = preview(&client, &deployment, deletion).await?;
        match self.output {
            StatusFormat::Json => output::print(&output::json(&preview)?)?,
            StatusFormat::Text => output::print(&text(&preview))?,
        }
        terminal.line(summary(&preview));
        if preview.held {
            return Err(CommandError::failed(deletion_plan::held(&preview.in_use))
                .hint(format!("`chandler delete {name} --crds Keep` or `--crds Delete` chooses")));
        }
        if self.dry_run || !consent::given(terminal, &format!("delete BundleDeployment {name}?"), self.yes)? {
            terminal.line("nothing was deleted");
            return Ok(());
        }
        let deployments: Api<BundleDeployment> = Api::all(client);
        let failed = |error: kube::Error| {
            CommandError::failed(format!("failed to delete BundleDeployment {name}"))
                .because(&error)
                .hint("look at it again and repeat the command, if it was changed meanwhile")
        };
        let mut current = deployment.clone();
        if deletion != deployment.spec.deletion.unwrap_or_default() {
            let patch = json!({
                "metadata": {"resourceVersion": deployment.metadata.resource_version},
                "spec": {"deletion": deletion},
            });
            let parameters =
                PatchParams { field_manager: Some("chandler-delete".to_owned()), ..PatchParams::default() };
            current = deployments.patch(name, &parameters, &Patch::Merge(patch)).await.map_err(failed)?;
        }
        // What was shown is deleted, and not another one that took its name.
        let same = Preconditions { uid: current.metadata.uid.clone(), resource_version: None };
        deployments.delete(name, &DeleteParams::background().preconditions(same)).await.map_err(failed)?;
        if !self.wait {
            terminal.line(format!("deleting: `chandler status {name}` tells how far it is"));
            return Ok(());
        }
        self.follow(&deployments, current.metadata.uid.as_deref(), terminal).await
    }

    /// What becomes of the objects: what the options say, else what the spec says.
    fn deletion(&self, deployment: &BundleDeployment) -> Deletion {
        let mut deletion = deployment.spec.deletion.unwrap_or_default();
        if self.orphan {
            deletion.policy = Some(DeletionPolicy::Orphan);
        }
        match self.crds {
            Some(Crds::Keep) => deletion.crds = Some(CrdDeletion::Keep),
            Some(Crds::Delete) => deletion.crds = Some(CrdDeletion::Delete),
            None => {}
        }
        deletion
    }

    /// Tells what the controller waits for until the BundleDeployment is gone.
    async fn follow(
        &self,
        deployments: &Api<BundleDeployment>,
        uid: Option<&str>,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let mut progress = Progress::new(terminal);
        let mut last = String::new();
        let gone = async {
            let mut states = watcher::watch_object(deployments.clone(), &self.name).boxed();
            while let Some(state) = states.next().await {
                match state {
                    Ok(Some(deployment)) if deployment.metadata.uid.as_deref() == uid => {
                        if let Some(message) = waits_for(&deployment) {
                            progress.wait(&message);
                            last = message;
                        }
                    }
                    Ok(_) => break,
                    Err(error) => tracing::debug!(%error, "the watch was interrupted"),
                }
            }
        };
        let in_time = tokio::time::timeout(self.timeout, gone).await.is_ok();
        progress.finish();
        if in_time {
            terminal.line(format!("deleted: {}", self.name));
            return Ok(());
        }
        let after = seconds(self.timeout);
        Err(CommandError::timeout(format!("{} is not gone after {after}; it waits for: {last}", self.name)))
    }
}

/// What the status of a BundleDeployment that is being deleted says.
fn waits_for(deployment: &BundleDeployment) -> Option<String> {
    let status = deployment.status.as_ref()?;
    deployment.metadata.deletion_timestamp.as_ref()?;
    let progressing = find_condition(&status.conditions, ConditionType::Progressing)?;
    // Until the controller has seen the deletion, the conditions are about what was before.
    let current = progressing.observed_generation >= deployment.metadata.generation;
    current.then(|| progressing.message.clone())
}

async fn preview(
    client: &Client,
    deployment: &BundleDeployment,
    deletion: Deletion,
) -> Result<DeletionPreview, CommandError> {
    let mut planned = deployment.clone();
    planned.spec.deletion = Some(deletion);
    let name = planned.metadata.name.clone().unwrap_or_default();
    let owner = chandler_controller::owner_of(&planned, &planned.spec.install_namespace)
        .ok_or_else(|| CommandError::failed(format!("BundleDeployment {name} has no UID")))?;
    let rollout = Rollout::new(client.clone(), Options::default());
    rollout.preview_teardown(&owner).await.map_err(|error| {
        CommandError::failed(format!("failed to find out what would go with {name}"))
            .because(&error)
            .hint("`kubectl delete bundledeployment` needs no preview")
    })
}

fn text(preview: &DeletionPreview) -> String {
    let mut text = String::new();
    for (sign, objects) in [("- delete", &preview.deleted), ("  keep", &preview.orphaned)] {
        for object in objects {
            text.extend([sign, " ", &one_line(&object.to_string()), "\n"]);
        }
    }
    for in_use in &preview.in_use {
        let sign = if preview.held { "! custom resources in the way:" } else { "- delete custom resources:" };
        text.extend([sign, " ", &one_line(&in_use.to_string()), "\n"]);
    }
    text
}

fn summary(preview: &DeletionPreview) -> String {
    let custom: u64 = preview.in_use.iter().filter_map(|in_use| in_use.count).sum();
    let custom = match (preview.held, custom) {
        (false, 1..) => format!(", and {custom} custom resources with their CRDs"),
        _ => String::new(),
    };
    format!("{} to delete{custom}, {} to keep", count(preview.deleted.len(), "object"), preview.orphaned.len())
}

#[cfg(test)]
mod tests {
    use chandler_core::ObjectKey;
    use chandler_rollout::CrdInUse;

    use super::*;

    fn crd() -> ObjectKey {
        ObjectKey {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            kind: "CustomResourceDefinition".into(),
            namespace: None,
            name: "oxen.example.com".into(),
        }
    }

    fn of(held: bool) -> DeletionPreview {
        let in_use =
            CrdInUse { crd: crd(), count: Some(3), more: false, namespaces: 1, examples: vec!["shop/a".into()] };
        DeletionPreview { held, deleted: vec![crd()], orphaned: Vec::new(), in_use: vec![in_use] }
    }

    #[test]
    fn what_goes_and_what_stays_is_told() {
        insta::assert_snapshot!(text(&of(true)) + &summary(&of(true)), @r"
        - delete CustomResourceDefinition.apiextensions.k8s.io oxen.example.com
        ! custom resources in the way: oxen.example.com: 3 in 1 namespace (shop/a, …)
        1 object to delete, 0 to keep
        ");
        insta::assert_snapshot!(text(&of(false)) + &summary(&of(false)), @r"
        - delete CustomResourceDefinition.apiextensions.k8s.io oxen.example.com
        - delete custom resources: oxen.example.com: 3 in 1 namespace (shop/a, …)
        1 object to delete, and 3 custom resources with their CRDs, 0 to keep
        ");
        let orphaned = DeletionPreview { orphaned: vec![crd()], ..DeletionPreview::default() };
        insta::assert_snapshot!(text(&orphaned) + &summary(&orphaned), @r"
          keep CustomResourceDefinition.apiextensions.k8s.io oxen.example.com
        0 objects to delete, 1 to keep
        ");
    }
}
