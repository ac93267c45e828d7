//! Suggested actions for a Resolution.

use chandler_api::Reason;

use super::super::subject::{Subject, set_name};

/// The suggested action for a Resolution, if it reports the reason itself; `None` where the reason is copied from a BundleDeployment.
pub(super) fn advice(reason: Reason, subject: &Subject<'_>) -> Option<String> {
    let name = subject.name();
    let set = || set_name(name);
    Some(match reason {
        // The change belongs to the set, and so does a suspension that the Resolution did not ask for.
        Reason::ApprovalRequired => {
            let set = set();
            format!("`chandler diff {set}` shows the change, `chandler approve {set}` approves it")
        }
        Reason::Suspended if subject.is_set_suspended() => format!("to resume the set: `chandler resume {}`", set()),
        Reason::Suspended => format!("to resume: `chandler resume {subject}`"),
        Reason::NotSatisfiable => {
            "change spec.packages of the Resolution, or its catalogs: status.explanation has the reasons".to_owned()
        }
        Reason::CatalogsNotReady => {
            "wait: `chandler catalog list` shows the state of the catalogs, `chandler status catalog/NAME` what one needs"
                .to_owned()
        }
        Reason::CatalogInvalid => {
            "fix the catalog that the message names and publish it again; `chandler catalog lint CATALOG` shows all errors"
                .to_owned()
        }
        Reason::ContentLimitExceeded => {
            "divide the packages among several Resolutions, or limit their versions and catalogs in spec.packages of the Resolution"
                .to_owned()
        }
        Reason::OutsideMaintenanceWindow => {
            "wait: the controller continues in the maintenance window; or change spec.maintenanceWindows of the Resolution"
                .to_owned()
        }
        Reason::Preflighting => {
            "wait: the controller fetches, renders and checks the members before it writes the first of them".to_owned()
        }
        Reason::PreflightFailed => format!(
            "fix what the message names; the controller retries, `chandler reconcile {subject}` at once, and writes nothing before the \
             checks pass"
        ),
        Reason::MembersNotHealthy => {
            "wait; if it lasts, `chandler status` shows what is wrong with the BundleDeployment that the message names"
                .to_owned()
        }
        Reason::DecisionUnavailable => format!(
            "set spec.output.resolveSet.toDecision to a number that `chandler history {subject}` lists, or follow the catalogs again: \
             `chandler rollback {subject} --undo`"
        ),
        Reason::RolledBack => format!(
            "`chandler history {subject}` lists the decisions; fix what failed, and retry: `chandler reconcile {subject}`; where the spec \
             names the decision, `chandler rollback {subject} --undo` follows the catalogs again"
        ),
        Reason::Installing | Reason::RollingOut => {
            format!("wait: `chandler status {subject} --watch` follows the rollout")
        }
        Reason::Retrying => {
            "wait: the controller retries; if it lasts, the message names the server that does not answer".to_owned()
        }
        Reason::Deleting => format!(
            "wait; if the deletion does not complete, `chandler explain {subject}` shows the BundleDeployments that remain"
        ),
        Reason::RecordUnavailable => {
            "check that the controller has permission to read and write Secrets and ConfigMaps in its namespace, and that the API server \
             accepts them"
                .to_owned()
        }
        Reason::ObjectCollision => format!(
            "delete the BundleDeployment that the message names (`chandler delete {} --dry-run`), or give the Resolution another name",
            set()
        ),
        Reason::Forbidden => {
            "grant the service account of the controller the permissions that the message names (deploy/rbac.yaml); the controller retries"
                .to_owned()
        }
        Reason::InvalidPolicy => format!(
            "correct the PlatformPolicy, as its message says: `chandler status platformpolicy/{name}`; or delete it"
        ),
        Reason::InvalidSpec => format!(
            "correct the value that the message names: `kubectl edit resolution {name}`, `kubectl explain resolution.spec`; or upgrade the \
             controller"
        ),
        _ => return None,
    })
}
