//! What would help, by the reason of a condition. Pure.

use chandler_api::Reason;

/// What somebody can do about a condition with this reason; none where nothing is wrong or only patience helps.
///
/// `name` is that of the BundleDeployment.
pub fn advice(reason: Reason, name: &str) -> Option<String> {
    let text = match reason {
        Reason::UnpackFailed => {
            "check spec.source: the name, whether it exists, and the pull secret in the system namespace"
        }
        Reason::ContentLimitExceeded => "make the bundle smaller, or raise the controller's limit on content",
        Reason::ProvisionerMissing => {
            "correct spec.provisionerClassName, or create the ProvisionerClass: `kubectl get provisionerclasses`"
        }
        Reason::ProvisionerNotReady => {
            "look at the class: `kubectl describe provisionerclass` with the name in spec.provisionerClassName"
        }
        Reason::BundleLoadFailed | Reason::InvalidContent => {
            "correct the bundle and publish it anew; `chandler render` shows the lines that are wrong"
        }
        Reason::InvalidConfiguration => {
            "correct what the message names; `chandler render --config FILE` checks spec.config without a cluster"
        }
        Reason::UnsupportedContent => "choose another bundle, or another class in spec.provisionerClassName",
        Reason::PluginTimeout | Reason::PluginOutOfMemory | Reason::PluginLimitExceeded => {
            "raise the limit in spec.limits of the ProvisionerClass, or make the bundle smaller"
        }
        Reason::PluginTrapped | Reason::ProvisionFailed | Reason::InvalidOutput => {
            "the provisioner is broken: tell its author; `chandler render` reproduces it without a cluster"
        }
        Reason::ObjectCollision => {
            return Some(format!(
                "delete the object that is in the way, take it out of the bundle, or take it over: `chandler adopt {name}`"
            ));
        }
        Reason::CustomResourcesExist => {
            return Some(format!(
                "`chandler delete {name} --dry-run` counts them; delete them, or choose: `chandler delete {name} --crds Keep` \
                 or `--crds Delete`"
            ));
        }
        Reason::RequiredResourceNotFound => {
            "create what the message names: a namespace, or the bundle that serves a missing kind; it then goes on by itself"
        }
        Reason::InstallNamespaceNotFound => "create the namespace that spec.installNamespace names",
        Reason::ObjectRefused => "correct the object in the bundle; the message is the API server's own",
        Reason::ServiceAccountNotFound => {
            "create the ServiceAccount that the message names, or correct spec.serviceAccount"
        }
        Reason::PermissionsMissing => {
            "`chandler rbac` with the bundle and `--service-account` prints the roles that the account needs: \
             pipe them to `kubectl apply -f -`"
        }
        Reason::UnsafeCRDUpgrade => {
            "choose another version, or allow what the message names in spec.preflight.crdUpgradeSafety"
        }
        Reason::CRDCheckLimitExceeded => {
            "simplify the schema that the message names, or lower spec.preflight.crdUpgradeSafety.sampleSize; 0 checks no custom \
             resources"
        }
        Reason::ComparisonTooLarge => {
            "use fewer pointers in spec.ignoreDifferences, or make the object that the message names smaller"
        }
        Reason::RecordUnavailable => {
            "see whether the controller may read and write Secrets in its namespace, and whether the API server takes them"
        }
        Reason::RepairFailed | Reason::ReconcileFailed => {
            return Some(format!(
                "correct what the message of `Installed` names: kubectl get bundledeployment {name} -o yaml; the repair is \
                 tried again by itself"
            ));
        }
        Reason::ServiceAccountRequired => "name the account that installs the bundle in spec.serviceAccount",
        Reason::ReservedObjects => {
            "leave the objects out of the bundle, or name an account that holds every right in spec.serviceAccount"
        }
        Reason::Forbidden => "give the controller's service account the rights that the message names",
        Reason::ProgressDeadlineExceeded | Reason::Unhealthy => {
            "look at the objects that are not healthy: `kubectl describe` and `kubectl get events` in their namespace"
        }
        Reason::ApprovalRequired => {
            return Some(format!("`chandler diff {name}` shows the change, `chandler approve {name}` approves it"));
        }
        Reason::RolledBack => {
            return Some(format!(
                "`chandler history {name}` shows what failed; correct the spec, or try it again: kubectl annotate \
                 bundledeployment {name} --overwrite reconcile.chandler.dev/requestedAt=\"$(date)\""
            ));
        }
        Reason::DriftReported => {
            return Some(format!(
                "undo the change, or have Chandler repair the objects once: at=\"$(date)\"; kubectl annotate bundledeployment {name} \
                 --overwrite reconcile.chandler.dev/requestedAt=\"$at\" reconcile.chandler.dev/repairAt=\"$at\""
            ));
        }
        Reason::Contested => {
            "stop the client that writes the fields that the message names, or leave the fields to it: list them in \
             spec.ignoreDifferences"
        }
        Reason::RevisionUnavailable => {
            return Some(format!(
                "choose a revision that `chandler history {name}` shows, or end it: `chandler rollback {name} --cancel`"
            ));
        }
        Reason::Suspended => {
            return Some(format!(
                "to let it go on: kubectl patch bundledeployment {name} --type merge -p '{{\"spec\":{{\"suspend\":false}}}}'"
            ));
        }
        Reason::Deleting => "wait; where it does not end, the finalizers of its objects say who holds them",
        _ => return None,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_human_can_mend_comes_with_advice() {
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
