//! `chandler delete`.

use chandler_api::{BundleDeployment, CrdDeletion, Deletion, DeletionPolicy, ReportingKind};
use chandler_rollout::deletion_plan;
use kube::Api;

use crate::{
    CommandError,
    arguments::{connection::Connection, format::DataFormat, target::Takes, wait::Wait},
    confirmation,
    read::{cluster, follow, preview},
    signals,
    view::{
        self, output,
        progress::{Progress, seconds},
        subject::Subject,
        terminal::Terminal,
    },
    write,
};

/// BundleDeployments. Other kinds have no preview.
pub(super) const TAKES: Takes = Takes::kinds(&[ReportingKind::BundleDeployment]).instead(&[
    (ReportingKind::Resolution, "`kubectl delete resolution NAME` deletes a Resolution with what it has installed"),
    (
        ReportingKind::PlatformOperator,
        "`kubectl delete platformoperator NAME` uninstalls the package of a PlatformOperator",
    ),
    (ReportingKind::Catalog, "`chandler catalog remove NAME` removes a Catalog"),
    (ReportingKind::ProvisionerClass, "`kubectl delete provisionerclass NAME` deletes a ProvisionerClass"),
    (ReportingKind::PlatformPolicy, "`kubectl delete platformpolicy NAME` deletes a PlatformPolicy"),
    (ReportingKind::Receiver, "`kubectl delete receivers.chandler.dev NAME` deletes a Receiver"),
    (ReportingKind::Alert, "`kubectl delete alerts.chandler.dev NAME` deletes an Alert"),
]);

/// Delete a BundleDeployment, with a preview
///
/// Lists the objects that are deleted and the objects that are kept, and counts the custom resources that would be deleted with their
/// CRDs. After confirmation it deletes the BundleDeployment, as `kubectl delete` does, and waits until it no longer exists.
#[derive(Debug, clap::Args)]
#[command(mut_arg("wait", |argument| argument.help("Wait until the BundleDeployment no longer exists")))]
#[command(after_long_help = "\
Output:
  The preview on standard output; with -o json, every field.
  Progress and the result on standard error.

Exit codes: 0 deleted, or not confirmed, or --dry-run; 1 failed; 2 wrong usage; 3 not deleted before
  the timeout; 7 not found; 8 refused, also while custom resources exist that would be deleted

Examples:
  Preview the deletion:
    chandler delete my-operator --dry-run
  Keep the CRDs, and thus all custom resources:
    chandler delete my-operator --crds Keep
  Keep all objects:
    chandler delete my-operator --orphan")]
pub struct Delete {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME", value_parser = TAKES.name())]
    pub name: String,

    /// Print the preview, and change nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Keep all objects (sets spec.deletion.policy to Orphan)
    #[arg(long)]
    pub orphan: bool,

    /// Keep CRDs, or delete them with all their custom resources (sets spec.deletion.crds)
    #[arg(long, value_enum, value_name = "POLICY", ignore_case = true, conflicts_with = "orphan")]
    pub crds: Option<Crds>,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// Whether and how long the command waits.
    #[command(flatten)]
    pub waiting: Wait,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// What happens to CRDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum Crds {
    /// Keep CRDs and custom resources
    Keep,
    /// Delete CRDs with all their custom resources
    Delete,
}

impl Delete {
    /// Prints the preview, asks, and deletes the BundleDeployment.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let name = &self.name;
        let client = cluster::client(&self.connection.options()).await?;
        let deployment = cluster::deployment(&client, name).await?;
        let options = self.options(&deployment);
        let preview = preview::deletion(client.clone(), &deployment, options).await?;
        output::print(&output::data(&preview, self.output, || view::deletion::text(&preview))?)?;
        terminal.line(view::deletion::summary(&preview));
        if preview.held {
            return Err(CommandError::refused(deletion_plan::held(&preview.in_use)).hint(format!(
                "keep the CRDs with `chandler delete {name} --crds Keep`, or delete them and all custom resources with \
                 `--crds Delete`"
            )));
        }
        let question = format!("delete BundleDeployment {name}?");
        if self.dry_run || !confirmation::confirmed(terminal, &question, self.yes)? {
            terminal.line("nothing was deleted");
            return Ok(());
        }
        let deployments: Api<BundleDeployment> = Api::all(client);
        write::deletion::delete(&deployments, &deployment, options).await?;
        if !self.waiting.wait {
            terminal.line(format!("deleting {name}: `chandler status {name}` shows the progress"));
            return Ok(());
        }
        self.follow(deployments, deployment.metadata.uid.as_deref(), terminal).await
    }

    /// The deletion options of the spec, overridden by the arguments.
    fn options(&self, deployment: &BundleDeployment) -> Deletion {
        let mut options = deployment.spec.deletion.unwrap_or_default();
        if self.orphan {
            options.policy = Some(DeletionPolicy::Orphan);
        }
        match self.crds {
            Some(Crds::Keep) => options.crds = Some(CrdDeletion::Keep),
            Some(Crds::Delete) => options.crds = Some(CrdDeletion::Delete),
            None => {}
        }
        options
    }

    /// Reports what the controller waits for until the BundleDeployment no longer exists.
    async fn follow(
        &self,
        deployments: Api<BundleDeployment>,
        uid: Option<&str>,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let mut progress = Progress::new(terminal);
        let mut last = String::new();
        let deleted = follow::until_deleted(deployments, &self.name, uid, &mut progress, &mut last);
        let done = signals::unless_interrupted(tokio::time::timeout(self.waiting.timeout, deleted)).await;
        progress.finish();
        match done {
            Some(Ok(())) => {
                terminal.line(format!("deleted: {}", self.name));
                return Ok(());
            }
            Some(Err(_)) => {}
            None => return Err(CommandError::interrupted_deletion(&Subject::deployment(&self.name), &last)),
        }
        let after = seconds(self.waiting.timeout);
        Err(CommandError::timeout(format!("{} still exists after {after}; it is waiting for: {last}", self.name)))
    }
}
