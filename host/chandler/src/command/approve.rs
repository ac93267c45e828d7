//! `chandler approve`.

use std::path::PathBuf;

use chandler_api::{BundleDeployment, ChangeApproval, PendingChange};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::{Api, Client, ResourceExt as _, api::PostParams};

use crate::{CommandError, consent, difference, live, output, terminal::Terminal, text::one_line};

/// Approve a pending change of a BundleDeployment
///
/// With `spec.approval: Manual` a new revision waits, and status.pendingChange says what it would do. This prints it, asks, and
/// creates a ChangeApproval of exactly this change in your name. What would do something else by then goes on waiting.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The change on standard output; what was done on standard error.

Exit codes: 0 approved, 1 no change is pending or it would be refused, 2 wrong usage

Needs the verb `create` on changeapprovals.chandler.dev and, where Chandler's admission policies are installed, `approve` on
bundledeployments.core.rukpak.io.

Examples:
  See it first, with every field:
    chandler diff my-operator
  Approve it:
    chandler approve my-operator
  Only if it is the one that was reviewed, without being asked:
    chandler approve my-operator --digest sha256:… --yes --reason 'CHG-1234'
  Although it would be refused now, because what is in the way is about to go:
    chandler approve my-operator --force")]
pub struct Approve {
    /// The name of the BundleDeployment
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The digest of the change; where another one is pending, nothing is approved
    #[arg(long, value_name = "DIGEST")]
    pub digest: Option<String>,

    /// Why, for those who read the approval later
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// Approve it although the rollout would be refused now
    #[arg(long)]
    pub force: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// The kubeconfig to use [default: $KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
}

impl Approve {
    /// Approves it.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = live::client(self.kubeconfig.as_deref()).await?;
        let deployment = live::deployment(&client, &self.name).await?;
        let pending = waiting(&deployment, self.digest.as_deref())?;
        output::print(&text(pending))?;
        acceptable(&self.name, pending, self.force)?;
        if !consent::given(terminal, &format!("Approve this change of {}?", self.name), self.yes)? {
            return Err(CommandError::failed("not approved"));
        }
        let user = user(&client).await?;
        let approval = ChangeApproval::of(&deployment, &pending.digest, &user, self.reason.clone());
        let approval =
            approval.ok_or_else(|| CommandError::failed(format!("BundleDeployment {} has no UID", self.name)))?;
        let approved = match create(&client, &deployment, &approval).await? {
            Approved::Now(user) => format!("approved by {}", one_line(&user)),
            Approved::Before(user) => {
                format!("{} approved this change before, and that approval stays as it is", one_line(&user))
            }
        };
        terminal.line(format!("{approved}: `chandler status {} --watch` follows it", self.name));
        Ok(())
    }
}

/// By whom a change is approved.
enum Approved {
    /// By this command.
    Now(String),
    /// By an approval that was there.
    Before(String),
}

/// Who the API server takes the caller for.
async fn user(client: &Client) -> Result<String, CommandError> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let failed = || CommandError::failed("failed to ask the API server who you are");
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let review = review.map_err(|error| failed().because(&error))?;
    let user = review.status.and_then(|status| status.user_info).and_then(|user| user.username);
    user.ok_or_else(failed)
}

/// Creates the approval.
async fn create(
    client: &Client,
    deployment: &BundleDeployment,
    approval: &ChangeApproval,
) -> Result<Approved, CommandError> {
    let approvals: Api<ChangeApproval> = Api::all(client.clone());
    let parameters = PostParams { field_manager: Some("chandler-approve".to_owned()), ..PostParams::default() };
    let error = match approvals.create(&parameters, approval).await {
        Ok(created) => return Ok(Approved::Now(created.spec.approved_by)),
        Err(error) => error,
    };
    let name = approval.name_any();
    if matches!(&error, kube::Error::Api(status) if status.is_already_exists()) {
        let found = approvals.get(&name).await.map_err(|error| not_created(approval, &error))?;
        if found.approves(deployment, &approval.spec.change) {
            return Ok(Approved::Before(found.spec.approved_by));
        }
        let hint =
            format!("it approves something else or is being deleted: `kubectl get changeapproval {name} -o yaml`");
        return Err(not_created(approval, &error).hint(hint));
    }
    Err(not_created(approval, &error))
}

/// Says that an approval could not be created, and which right is missing, if one is.
fn not_created(approval: &ChangeApproval, error: &kube::Error) -> CommandError {
    let failed =
        CommandError::failed(format!("failed to create ChangeApproval {}", approval.name_any())).because(error);
    match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            // Admission comes after authorization: who is denied there may create approvals.
            let right = if status.message.contains("denied request") {
                format!("`approve` on bundledeployments.core.rukpak.io {}", approval.spec.bundle_deployment)
            } else {
                "`create` on changeapprovals.chandler.dev".to_owned()
            };
            failed.hint(format!(
                "{} lacks the verb {right}: ask a user who has it to approve, or an administrator to grant it",
                one_line(&approval.spec.approved_by)
            ))
        }
        _ => failed,
    }
}

/// Refuses to approve what would be refused.
fn acceptable(name: &str, pending: &PendingChange, force: bool) -> Result<(), CommandError> {
    if force || pending.refusals.is_empty() {
        return Ok(());
    }
    Err(CommandError::failed(format!("the rollout of {name} would be refused, so it was not approved"))
        .hint(format!("correct what is in the way, or approve it all the same: `chandler approve {name} --force`")))
}

/// The change that is pending, which must be the one that was asked for.
fn waiting<'a>(deployment: &'a BundleDeployment, asked: Option<&str>) -> Result<&'a PendingChange, CommandError> {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let status = deployment.status.as_ref();
    let current = status.and_then(|status| status.observed_generation) >= deployment.metadata.generation;
    let Some(pending) = status.and_then(|status| status.pending_change.as_ref()).filter(|_| current) else {
        return Err(CommandError::failed(format!("no change of BundleDeployment {name} is pending approval"))
            .hint(format!("`chandler status {name}` shows its status")));
    };
    match asked {
        Some(asked) if asked != pending.digest => Err(CommandError::failed(format!(
            "another change of BundleDeployment {name} is pending: {}",
            pending.digest
        ))
        .hint(format!("`chandler diff {name}` shows it"))),
        _ => Ok(pending),
    }
}

fn text(pending: &PendingChange) -> String {
    let mut text = String::new();
    for line in &pending.objects {
        text.extend([one_line(line).as_str(), "\n"]);
    }
    if let Some(omitted) = pending.omitted {
        text.extend(["and ", &omitted.to_string(), " more objects\n"]);
    }
    for refusal in &pending.refusals {
        text.extend([difference::refusal(refusal).as_str(), "\n"]);
    }
    for finding in &pending.findings {
        text.extend(["finding: ", one_line(finding).as_str(), "\n"]);
    }
    let PendingChange { created, changed, removed, digest, .. } = pending;
    text + &format!("{created} to create, {changed} to change, {removed} to remove: {digest}\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(generation: i64) -> BundleDeployment {
        serde_json::from_value(json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": "harbour", "generation": generation},
            "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
            "status": {"observedGeneration": 2, "pendingChange": {
                "digest": "sha256:1", "releaseDigest": "sha256:2", "created": 1, "changed": 2, "removed": 0,
                "objects": ["create ConfigMap n/a"], "omitted": 2, "findings": ["something\nis odd"],
                "refusals": ["ConfigMap n/a already exists\nuse another name"],
            }},
        }))
        .unwrap()
    }

    #[test]
    fn only_the_change_that_is_pending_is_approved() {
        assert_eq!(waiting(&deployment(2), None).unwrap().digest, "sha256:1");
        assert_eq!(waiting(&deployment(2), Some("sha256:1")).unwrap().digest, "sha256:1");
        assert!(waiting(&deployment(2), Some("sha256:9")).is_err());
        assert!(waiting(&deployment(3), None).is_err(), "the status is about an older spec");
        insta::assert_snapshot!(text(waiting(&deployment(2), None).unwrap()), @r"
        create ConfigMap n/a
        and 2 more objects
        would be refused: ConfigMap n/a already exists
          use another name
        finding: something is odd
        1 to create, 2 to change, 0 to remove: sha256:1
        ");
    }

    #[test]
    fn the_right_that_is_missing_is_named() {
        let mut deployment = deployment(2);
        deployment.metadata.uid = Some("6a9f6f0e-5a63-4f0b-9a0c-000000000000".into());
        let approval = ChangeApproval::of(&deployment, "sha256:0123456789abcdef0123", "alice", None).unwrap();
        let refused = |message: &str| {
            let status = kube::core::Status::failure(message, "Forbidden").with_code(403);
            not_created(&approval, &kube::Error::Api(Box::new(status))).to_string()
        };
        let hint = |message: &str| refused(message).lines().last().unwrap().to_owned();
        assert!(
            refused("no").starts_with("error: failed to create ChangeApproval harbour-6a9f6f0e-0123456789abcdef\n")
        );
        insta::assert_snapshot!(hint("User \"alice\" cannot create resource \"changeapprovals\""), @"  hint: alice lacks the verb `create` on changeapprovals.chandler.dev: ask a user who has it to approve, or an administrator to grant it");
        insta::assert_snapshot!(
            hint("ValidatingAdmissionPolicy 'chandler-change-approvals' denied request: user alice may not approve"),
            @"  hint: alice lacks the verb `approve` on bundledeployments.core.rukpak.io harbour: ask a user who has it to approve, or an administrator to grant it"
        );
    }

    #[test]
    fn what_would_be_refused_is_approved_by_force_only() {
        let deployment = deployment(2);
        let pending = waiting(&deployment, None).unwrap();
        insta::assert_snapshot!(acceptable("harbour", pending, false).unwrap_err(), @r"
        error: the rollout of harbour would be refused, so it was not approved
          hint: correct what is in the way, or approve it all the same: `chandler approve harbour --force`
        ");
        assert!(acceptable("harbour", pending, true).is_ok());
        assert!(acceptable("harbour", &PendingChange { refusals: vec![], ..pending.clone() }, false).is_ok());
    }
}
