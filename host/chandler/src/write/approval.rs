//! Creates a ChangeApproval.

use chandler_api::{BundleDeployment, ChangeApproval};
use kube::{Api, Client, ResourceExt as _, api::PostParams};

use super::deployment::Effect;
use crate::{CommandError, view::text::one_line};

/// The field manager of ChangeApprovals.
const FIELD_MANAGER: &str = "chandler-approve";

/// The approval that a change has after the call, with the name of the user who approved it.
#[derive(Debug)]
pub enum Approved {
    /// This call created it.
    Created(String),
    /// It existed.
    Existing(String),
}

/// Creates the approval unless an approval of the same change exists.
pub async fn create(
    client: &Client,
    deployment: &BundleDeployment,
    approval: &ChangeApproval,
    effect: Effect,
) -> Result<Approved, CommandError> {
    let approvals: Api<ChangeApproval> = Api::all(client.clone());
    let parameters = PostParams { dry_run: effect == Effect::Check, field_manager: Some(FIELD_MANAGER.to_owned()) };
    let error = match approvals.create(&parameters, approval).await {
        Ok(created) => return Ok(Approved::Created(created.spec.approved_by)),
        Err(error) => error,
    };
    let name = approval.name_any();
    if matches!(&error, kube::Error::Api(status) if status.is_already_exists()) {
        let found = approvals.get(&name).await.map_err(|error| not_created(approval, &error))?;
        if found.approves(deployment, &approval.spec.change) {
            return Ok(Approved::Existing(found.spec.approved_by));
        }
        let hint =
            format!("it approves another change or is being deleted: `kubectl get changeapproval {name} -o yaml`");
        return Err(not_created(approval, &error).hint(hint));
    }
    Err(not_created(approval, &error))
}

/// The error for an approval that could not be created. A hint names the missing permission, if one is missing.
fn not_created(approval: &ChangeApproval, error: &kube::Error) -> CommandError {
    let failed =
        CommandError::failed(format!("failed to create ChangeApproval {}", approval.name_any())).because(error);
    match error {
        kube::Error::Api(status) if status.is_forbidden() => {
            // Admission follows authorization: a user whom an admission policy denies is authorized to create approvals.
            let permission = if status.message.contains("denied request") {
                format!("`approve` on bundledeployments.core.rukpak.io {}", approval.spec.bundle_deployment)
            } else {
                "`create` on changeapprovals.chandler.dev".to_owned()
            };
            failed.hint(format!(
                "{} lacks the verb {permission}: ask a user who has it to approve, or an administrator to grant it",
                one_line(&approval.spec.approved_by)
            ))
        }
        _ => failed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_missing_permission_is_named() {
        let deployment: BundleDeployment = serde_json::from_value(json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": "harbour", "uid": "6a9f6f0e-5a63-4f0b-9a0c-000000000000"},
            "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
        }))
        .unwrap();
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
}
