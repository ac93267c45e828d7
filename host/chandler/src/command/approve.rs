//! `chandler approve`.

use chandler_api::ChangeApproval;

use crate::{
    CommandError,
    arguments::connection::Connection,
    confirmation,
    read::cluster,
    view::{output, pending_change, summary, terminal::Terminal, text::one_line},
    write::approval::{self, Approved},
};

/// Approve a pending change
///
/// With `spec.approval: Manual` a change is rolled out only after approval. Until then status.pendingChange describes it. This command
/// prints the pending change, asks for confirmation, and creates a ChangeApproval for it in your name. The approval is valid for
/// exactly this change: if the change differs when the controller rolls it out, it needs another approval.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The change on standard output; the versions and the result on standard error.

Exit codes: 0 approved, 1 not approved or failed, 2 wrong usage

Required permissions: `create` on changeapprovals.chandler.dev and, if Chandler's admission policies
are installed, `approve` on bundledeployments.core.rukpak.io.

Examples:
  Show the change with every field:
    chandler diff my-operator
  Approve it:
    chandler approve my-operator
  Approve it only if it is the reviewed change, without confirmation:
    chandler approve my-operator --digest sha256:… --yes --reason 'CHG-1234'
  Approve it although its rollout would be refused now:
    chandler approve my-operator --force")]
pub struct Approve {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Digest of the change. If another change is pending, the command fails
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    /// Reason, stored in the approval
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// Approve the change even if its rollout would be refused now
    #[arg(long)]
    pub force: bool,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Approve {
    /// Prints the change, asks, and approves it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection).await?;
        let deployment = cluster::deployment(&client, &self.name).await?;
        let pending = pending_change::pending(&deployment, self.digest.as_deref())?;
        if let Some(status) = &deployment.status
            && let Some(versions) = summary::versions(status.bundle.as_ref(), status.candidate.as_ref())
        {
            terminal.line(format!("version: {}", one_line(&versions)));
        }
        output::print(&pending_change::text(pending))?;
        pending_change::check_approvable(&self.name, pending, self.force)?;
        if !confirmation::confirmed(terminal, &format!("approve this change of {}?", self.name), self.yes)? {
            return Err(CommandError::failed("not approved"));
        }
        let user = cluster::user_name(&client).await?;
        let approval = ChangeApproval::of(&deployment, &pending.digest, &user, self.reason.clone());
        let approval =
            approval.ok_or_else(|| CommandError::failed(format!("BundleDeployment {} has no UID", self.name)))?;
        let approved = match approval::create(&client, &deployment, &approval).await? {
            Approved::Created(user) => format!("approved by {}", one_line(&user)),
            Approved::Existing(user) => {
                format!("{} approved this change before; that approval is unchanged", one_line(&user))
            }
        };
        terminal.line(format!("{approved}: `chandler status {} --watch` follows the rollout", self.name));
        Ok(())
    }
}
