//! Suggested actions for PlatformOperators and PlatformPolicies.

use chandler_api::Reason;

/// The suggested action for the PlatformOperator of this name, if it reports the reason itself; `None` where the reason is copied from its
/// BundleDeployment.
pub(super) fn of_operator(reason: Reason, name: &str) -> Option<String> {
    Some(match reason {
        Reason::SourceFailed => format!(
            "change the PlatformOperator (`kubectl edit platformoperator {name}`), the other one that the message names, or the catalogs: \
             `chandler explain platformoperator/{name}` has the reasons"
        ),
        Reason::UnpackPending => {
            format!("wait: `chandler explain platformoperator/{name}` shows how far the package is")
        }
        Reason::InstallPending => format!(
            "wait: `chandler status platformoperator/{name} --watch` follows the installation; where it needs an approval, `chandler \
             explain platformoperator/{name}` has the command"
        ),
        Reason::InstallFailed => format!(
            "follow the message; `chandler explain platformoperator/{name}` names the BundleDeployment and what helps; the controller \
             retries"
        ),
        Reason::UnpackFailed => format!(
            "follow the message: where the package cannot watch all namespaces, name them in spec.config.watchNamespace of the \
             PlatformOperator; otherwise `chandler explain platformoperator/{name}` names the BundleDeployment and what helps"
        ),
        Reason::InvalidPolicy => {
            "correct the PlatformPolicy, as its message says: `chandler status platformpolicy/NAME`; or delete it (docs/platform-operators.md)"
                .to_owned()
        }
        _ => return None,
    })
}

/// The suggested action for the PlatformPolicy of this name.
pub(super) fn of_policy(reason: Reason, name: &str) -> Option<String> {
    Some(match reason {
        Reason::InvalidPolicy => format!(
            "correct the value that the message names: `kubectl edit platformpolicy {name}`, `kubectl explain platformpolicy.spec`; until \
             then, nothing changes for PlatformOperators"
        ),
        Reason::PolicyNotUsed => {
            format!(
                "create the policy with the name in the message instead, and delete this one: `kubectl delete platformpolicy {name}`"
            )
        }
        _ => return None,
    })
}
