//! `chandler approve`.

use chandler_api::{ApprovedUpgrade, BundleDeployment, ChangeApproval, PendingChange};
use chandler_rollout::Preview;
use kube::Client;
use serde::Serialize;

use crate::{
    CommandError,
    arguments::{
        bundle::FetchArguments, connection::Connection, content_service::ContentClientArguments, dry_run::DryRun,
        format::DataFormat, system_namespace::SystemNamespaceArguments, target::INSTALLED,
    },
    confirmation,
    read::{cluster, deployed, preview, uploaded::BundleAccess},
    view::{findings, findings::Findings, output, pending_change, summary, terminal::Terminal, text::one_line},
    write::approval::{self, Approved},
};

/// Approve a pending change
///
/// With `spec.approval: Manual` a change is rolled out only after approval. Until then status.pendingChange describes it. This command
/// prints the pending change, asks for confirmation, and creates a ChangeApproval for it in your name. The approval is valid for
/// exactly this change: if the change differs when the controller rolls it out, it needs another approval.
///
/// With --findings, it approves the findings that refuse upgrades of CRDs instead, whatever spec.approval is. It computes the findings
/// as `chandler diff --findings` does. The approval is valid for exactly these findings: if a CRD in the cluster, its new version or a
/// finding differs, the upgrade is refused again. If a change is pending as well, and only these findings refuse it, the command prints
/// and approves both after one confirmation; with --yes, only if --digest names the change.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The change on standard output; the versions and the result on standard error.

Exit codes: 0 approved, 1 not approved or failed, 2 wrong usage, 7 not found, 8 refused: the rollout
  would be, or you may not approve

Required permissions: `create` on changeapprovals.chandler.dev and, if Chandler's admission policies
are installed, `approve` on bundledeployments.core.rukpak.io.

Examples:
  Show the change with every field:
    chandler diff my-operator
  Approve it:
    chandler approve my-operator
  Approve the change of the set of a Resolution:
    chandler approve resolution/shop
  Approve it only if it is the reviewed change, without confirmation:
    chandler approve my-operator --digest sha256:… --yes --reason 'CHG-1234'
  Approve it although its rollout would be refused now:
    chandler approve my-operator --force
  Review the findings about upgrades of CRDs, and allow exactly these:
    chandler diff my-operator --findings
    chandler approve my-operator --findings=sha256:…
  Approve the findings and the pending change that were reviewed, without confirmation:
    chandler approve my-operator --findings=sha256:… --digest sha256:… --yes")]
pub struct Approve {
    /// Name of the BundleDeployment; `resolution/NAME` for the set of a Resolution
    #[arg(value_name = "NAME", value_parser = INSTALLED.deployment())]
    pub name: String,

    /// Digest of the change. If another change is pending, the command fails. With --findings, the change is approved, too
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    /// Approve the findings that refuse upgrades of CRDs. If their digest is another one, the command fails
    #[arg(long, value_name = "DIGEST", num_args = 0..=1, require_equals = true)]
    pub findings: Option<Option<String>>,

    /// Reason, stored in the approval
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// Approve the change even if its rollout would be refused now
    #[arg(long, conflicts_with = "findings")]
    pub force: bool,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// Whether anything is written.
    #[command(flatten)]
    pub dry_run: DryRun,

    /// Output format of the change, and of the findings
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// The bundle's files [default: those that spec.source names]
    #[arg(long, value_name = "BUNDLE", requires = "findings")]
    pub bundle: Option<String>,

    /// Where the bundle is fetched from and unpacked.
    #[command(flatten)]
    pub fetch: FetchArguments,

    /// Where files in ConfigMaps are.
    #[command(flatten)]
    pub system: SystemNamespaceArguments,

    /// How the command reaches the content service, for uploaded files.
    #[command(flatten)]
    pub content: ContentClientArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// What is approved with `--findings`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reviewed<'a> {
    findings: Findings<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_change: Option<&'a PendingChange>,
}

impl Reviewed<'_> {
    fn text(&self) -> String {
        self.findings.text() + &self.pending_change.map(pending_change::text).unwrap_or_default()
    }
}

impl Approve {
    /// Prints the change, asks, and approves it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let deployment = cluster::deployment(&client, &self.name).await?;
        if let Some(digest) = &self.findings {
            return self.approve_findings(terminal, &client, &deployment, digest.as_deref()).await;
        }
        let pending = pending_change::pending(&deployment, self.digest.as_deref())?;
        if let Some(status) = &deployment.status
            && let Some(versions) = summary::versions(status.bundle.as_ref(), status.candidate.as_ref())
        {
            terminal.line(format!("version: {}", one_line(&versions)));
        }
        output::print(&output::data(pending, self.output, || pending_change::text(pending))?)?;
        pending_change::check_approvable(&self.name, pending, self.force)?;
        let question = format!("approve this change of {}?", self.name);
        if !self.is_confirmed(&question, terminal)? {
            return Err(CommandError::failed("not approved"));
        }
        let user = cluster::user_name(&client).await?;
        let approval = ChangeApproval::of(&deployment, &pending.digest, &user, self.reason.clone());
        self.create(terminal, &client, &deployment, approval).await
    }

    /// Whether the user agrees; a dry run asks nothing.
    fn is_confirmed(&self, question: &str, terminal: &Terminal) -> Result<bool, CommandError> {
        Ok(self.dry_run.dry_run || confirmation::confirmed(terminal, question, self.yes)?)
    }

    /// Computes the findings, prints them, asks, and approves them.
    async fn approve_findings(
        &self,
        terminal: &Terminal,
        client: &Client,
        deployment: &BundleDeployment,
        expected: Option<&str>,
    ) -> Result<(), CommandError> {
        let name = &self.name;
        let access = BundleAccess {
            connection: self.connection.options(),
            system_namespace: &self.system.system_namespace,
            content: self.content.options(),
            instead: format!("chandler approve {name} --findings --bundle ./FILES"),
        };
        let mut opened = access.open(client, &self.fetch.of_deployment(), deployment, self.bundle.as_deref()).await?;
        let release = deployed::release(client, &mut opened).await?;
        let namespace = &deployment.spec.install_namespace;
        let preview = preview::rollout(client.clone(), Some(deployment), (name, namespace), &release).await?;
        let digest = findings::check_approvable(name, &preview.crd_upgrades, expected)?;
        let change = self.reviewed_change(deployment, &preview)?;
        let reviewed =
            Reviewed { findings: Findings::of(&preview.crd_upgrades, Some(&digest)), pending_change: change };
        output::print(&output::data(&reviewed, self.output, || reviewed.text())?)?;
        let and = change.map(|change| format!(", and approve the pending change ({})", one_line(&change.digest)));
        let question = format!("allow these upgrades of CRDs of {name} ({digest}){}?", and.unwrap_or_default());
        if !self.is_confirmed(&question, terminal)? {
            return Err(CommandError::failed("not approved"));
        }
        let user = cluster::user_name(client).await?;
        let refused = preview.crd_upgrades.iter().filter(|upgrade| upgrade.is_refused());
        let upgrades =
            refused.map(|upgrade| ApprovedUpgrade { crd: upgrade.crd.clone(), digest: upgrade.digest.to_string() });
        let of = (digest.as_str(), upgrades.collect());
        let approval = ChangeApproval::of_upgrades(deployment, of, &user, self.reason.clone());
        self.create(terminal, client, deployment, approval).await?;
        if let Some(change) = change {
            let approval = ChangeApproval::of(deployment, &change.digest, &user, self.reason.clone());
            self.create(terminal, client, deployment, approval).await?;
        }
        Ok(())
    }

    /// The pending change to approve together with the findings: one that nothing else refuses, and that the user sees before the
    /// confirmation or named by its digest.
    fn reviewed_change<'a>(
        &self,
        deployment: &'a BundleDeployment,
        preview: &Preview,
    ) -> Result<Option<&'a PendingChange>, CommandError> {
        let expected = self.digest.as_deref();
        let change = pending_change::pending(deployment, expected);
        if expected.is_none() && (self.yes || change.is_err()) {
            return Ok(None);
        }
        let change = change?;
        // All upgrades of CRDs that are refused are one refusal.
        if preview.refusals.len() <= 1 {
            return Ok(Some(change));
        }
        match expected {
            None => Ok(None),
            Some(_) => {
                Err(CommandError::refused(format!("the rollout of {} would be refused for other reasons", self.name))
                    .hint(format!(
                        "`chandler diff {}` lists them; without --digest, only the findings are approved",
                        self.name
                    )))
            }
        }
    }

    async fn create(
        &self,
        terminal: &Terminal,
        client: &Client,
        deployment: &BundleDeployment,
        approval: Option<ChangeApproval>,
    ) -> Result<(), CommandError> {
        let approval =
            approval.ok_or_else(|| CommandError::failed(format!("BundleDeployment {} has no UID", self.name)))?;
        let approved = match approval::create(client, deployment, &approval, self.dry_run.effect()).await? {
            Approved::Created(user) if self.dry_run.dry_run => {
                terminal.line(format!("would approve as {}; nothing was changed", one_line(&user)));
                return Ok(());
            }
            Approved::Created(user) => format!("approved by {}", one_line(&user)),
            Approved::Existing(user) => {
                format!("{} approved this change before; that approval is unchanged", one_line(&user))
            }
        };
        terminal.line(format!("{approved}: `chandler status {} --watch` follows the rollout", self.name));
        Ok(())
    }
}
