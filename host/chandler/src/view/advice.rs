//! Suggested actions by the reason of a condition.

use chandler_api::Reason;

/// The suggested action for a condition with this reason. `None` if nothing is wrong, or if the user can only wait.
///
/// `name` is the name of the BundleDeployment.
pub fn advice(reason: Reason, name: &str) -> Option<String> {
    let text = match reason {
        Reason::UnpackFailed => {
            "check that the source in spec.source exists, and that the pull secret in the system namespace is valid"
        }
        Reason::ContentLimitExceeded => "make the bundle smaller, or raise the controller's limit on content",
        Reason::ProvisionerMissing => {
            "correct spec.provisionerClassName, or create the ProvisionerClass: `kubectl get provisionerclasses`"
        }
        Reason::ProvisionerNotReady => {
            "find out why the class is not ready: `kubectl describe provisionerclass` with the name in spec.provisionerClassName"
        }
        Reason::BundleLoadFailed | Reason::InvalidContent => {
            "fix the bundle and publish it again; `chandler lint` shows the invalid lines"
        }
        Reason::InvalidConfiguration => "fix spec.config; `chandler lint --config FILE` checks it without a cluster",
        Reason::UnsupportedContent => "use another bundle, or another class in spec.provisionerClassName",
        Reason::PluginTimeout | Reason::PluginOutOfMemory | Reason::PluginLimitExceeded => {
            "raise the limit in spec.limits of the ProvisionerClass, or make the bundle smaller"
        }
        Reason::PluginTrapped | Reason::ProvisionFailed | Reason::InvalidOutput => {
            "report the failure to the author of the provisioner; `chandler render` reproduces it without a cluster"
        }
        Reason::ObjectCollision => {
            return Some(format!(
                "delete the existing object, remove it from the bundle, or adopt it: `chandler adopt {name}`"
            ));
        }
        Reason::CustomResourcesExist => {
            return Some(format!(
                "`chandler delete {name} --dry-run` counts the custom resources; delete them, or run `chandler delete {name}` with \
                 `--crds Keep` or `--crds Delete`"
            ));
        }
        Reason::RequiredResourceNotFound => {
            "create the namespace that the message names, or install the bundle with the missing kind; the rollout then continues"
        }
        Reason::InstallNamespaceNotFound => "create the namespace in spec.installNamespace",
        Reason::ObjectRefused => "fix the object in the bundle; the message is from the API server",
        Reason::ServiceAccountNotFound => {
            "create the ServiceAccount that the message names, or fix spec.serviceAccount"
        }
        Reason::PermissionsMissing => {
            "`chandler rbac` with the bundle and `--service-account` prints the roles that the account needs; \
             pipe them to `kubectl apply -f -`"
        }
        Reason::UnsafeCRDUpgrade => {
            return Some(format!(
                "`chandler diff {name} --findings` lists all findings and the command that allows exactly these; or use another \
                 version"
            ));
        }
        Reason::ImmutableField => {
            "only a new object can have the value: let the controller delete the object and create it again, with \
             spec.rollout.onImmutable as in the message; or use another version"
        }
        Reason::CRDCheckLimitExceeded => {
            "simplify the schema that the message names, or lower spec.preflight.crdUpgradeSafety.sampleSize; 0 checks no custom \
             resources"
        }
        Reason::ComparisonTooLarge => {
            "use fewer pointers in spec.ignoreDifferences, or make the object that the message names smaller"
        }
        Reason::RecordUnavailable => {
            "check that the controller has permission to read and write Secrets in its namespace, and that the API server accepts them"
        }
        Reason::RepairFailed | Reason::ReconcileFailed => {
            return Some(format!(
                "fix the problem in the message of `Installed`: kubectl get bundledeployment {name} -o yaml; the controller \
                 retries the repair"
            ));
        }
        Reason::ServiceAccountRequired => "set spec.serviceAccount to the ServiceAccount that installs the bundle",
        Reason::ReservedObjects => {
            "remove the objects from the bundle, or set spec.serviceAccount to an account with all permissions"
        }
        Reason::Forbidden => "grant the service account of the controller the permissions that the message names",
        Reason::ProgressDeadlineExceeded | Reason::Unhealthy => {
            "inspect the unhealthy objects: `kubectl describe` and `kubectl get events` in their namespace"
        }
        Reason::ApprovalRequired => {
            return Some(format!("`chandler diff {name}` shows the change, `chandler approve {name}` approves it"));
        }
        Reason::RolledBack => {
            return Some(format!(
                "`chandler history {name}` shows what failed; fix the spec, or retry: kubectl annotate \
                 bundledeployment {name} --overwrite reconcile.chandler.dev/requestedAt=\"$(date)\""
            ));
        }
        Reason::DriftReported => {
            return Some(format!(
                "revert the change, or let the controller repair the objects once: at=\"$(date)\"; kubectl annotate bundledeployment {name} \
                 --overwrite reconcile.chandler.dev/requestedAt=\"$at\" reconcile.chandler.dev/repairAt=\"$at\""
            ));
        }
        Reason::Contested => {
            "stop the client that writes the fields in the message, or let that client own them: list the fields in \
             spec.ignoreDifferences"
        }
        Reason::RevisionUnavailable => {
            return Some(format!(
                "choose a revision that `chandler history {name}` lists, or cancel the rollback: `chandler rollback {name} --cancel`"
            ));
        }
        Reason::Suspended => {
            return Some(format!(
                "to resume: kubectl patch bundledeployment {name} --type merge -p '{{\"spec\":{{\"suspend\":false}}}}'"
            ));
        }
        Reason::Deleting => "wait; if the deletion does not complete, check the finalizers of the objects",
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_only_a_user_can_fix_have_advice() {
        for reason in [
            Reason::UnpackFailed,
            Reason::ProvisionerMissing,
            Reason::InvalidContent,
            Reason::InvalidConfiguration,
            Reason::PluginTimeout,
            Reason::PluginTrapped,
            Reason::ObjectCollision,
            Reason::CustomResourcesExist,
            Reason::InstallNamespaceNotFound,
            Reason::Forbidden,
            Reason::ServiceAccountRequired,
            Reason::ServiceAccountNotFound,
            Reason::PermissionsMissing,
            Reason::UnsafeCRDUpgrade,
            Reason::ImmutableField,
            Reason::CRDCheckLimitExceeded,
            Reason::ComparisonTooLarge,
            Reason::RecordUnavailable,
            Reason::RepairFailed,
            Reason::ReservedObjects,
            Reason::Suspended,
        ] {
            assert!(advice(reason, "harbour").is_some(), "{reason}");
        }
        assert_eq!(advice(Reason::Succeeded, "harbour"), None);
        assert_eq!(advice(Reason::RollingOut, "harbour"), None);
    }
}
