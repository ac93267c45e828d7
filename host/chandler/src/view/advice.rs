//! Suggested actions by the reason of a condition: one for every reason that reports a problem or work.

use chandler_api::Reason;

/// The suggested action for a condition with this reason; `None` if nothing is wrong. If a retry may help, it says so
/// ([`Reason::remedy`]).
///
/// `name` is the name of the BundleDeployment. A new reason does not compile without its advice.
pub fn advice(reason: Reason, name: &str) -> Option<String> {
    let text = match reason {
        Reason::UnpackSuccessful
        | Reason::InstallationSucceeded
        | Reason::Healthy
        | Reason::AsReleased
        | Reason::Succeeded
        | Reason::ImageResolved
        | Reason::NotRequired
        | Reason::ContractSupported
        | Reason::CompilationSucceeded
        | Reason::ProvisionerReady
        | Reason::SourceResolved
        | Reason::CatalogValid
        | Reason::CatalogReady
        | Reason::PackagesResolved
        | Reason::PolicyAccepted
        | Reason::InstallSuccessful => return None,
        Reason::UnpackPending | Reason::Unpacking => "wait: the controller fetches and renders the bundle",
        Reason::Installing | Reason::RollingOut | Reason::InstallPending => {
            return Some(format!("wait: `chandler status {name} --watch` follows the rollout"));
        }
        Reason::Retrying => {
            "wait: the controller retries; if it lasts, the message names the server that does not answer"
        }
        Reason::ErrorGettingClient
        | Reason::ErrorGettingReleaseState
        | Reason::CreateDynamicWatchFailed
        | Reason::InstallationStatusUnknown => {
            "wait: RukPak set this reason, and the controller of Chandler replaces it"
        }
        Reason::ProcessingFinalizerFailed => {
            "wait: RukPak set this reason, and the controller of Chandler replaces it; if it lasts, check that the controller runs"
        }
        Reason::ObjectLookupFailure => {
            "wait: the controller retries; if it lasts, check that it may read the objects that the message names"
        }
        Reason::InternalError => "wait: the controller retries; if it lasts, report the message as a bug of Chandler",
        // `Progressing` has the cause.
        Reason::InstallFailed | Reason::UpgradeFailed | Reason::InstallationStatusFalse => {
            return Some(format!(
                "fix the problem in the message of `Progressing`: kubectl get bundledeployment {name} -o yaml; where time may help, \
                 the controller retries"
            ));
        }
        Reason::InvalidSpec => {
            "correct the value that the message names: `kubectl explain bundledeployment.spec`; or upgrade the controller"
        }
        Reason::UnpackFailed => {
            "check that the source in spec.source exists, and that the pull secret in the system namespace is valid; the controller \
             retries while the server may answer differently"
        }
        Reason::NoMatchingSignature => {
            "sign the image as the message wants (`cosign sign`), use an image that is signed, or ask the administrator which signers the \
             controller accepts; the controller retries"
        }
        Reason::ContentLimitExceeded => "make the bundle smaller, or raise the controller's limit on content",
        Reason::ProvisionerMissing => {
            "correct spec.provisionerClassName, or create the ProvisionerClass: `kubectl get provisionerclasses`; the rollout then \
             continues"
        }
        Reason::ProvisionerNotReady => {
            "find out why the class is not ready: `kubectl describe provisionerclass` with the name in spec.provisionerClassName"
        }
        Reason::ProvisionerNotDetected => {
            "name the class in spec.provisionerClassName, correct the bundle, or create a ProvisionerClass that recognises it: `kubectl get \
             provisionerclasses`; the rollout then continues"
        }
        Reason::ProvisionerAmbiguous => {
            "name the class in spec.provisionerClassName, or give the ProvisionerClass that renders such bundles a higher spec.priority"
        }
        Reason::BundleLoadFailed | Reason::InvalidContent => {
            "fix the bundle and publish it again; `chandler lint` shows the invalid lines"
        }
        Reason::InvalidConfiguration => "fix spec.config; `chandler lint --config FILE` checks it without a cluster",
        Reason::ValuesNotFound => {
            "create the ConfigMap, Secret or key that the message names in the install namespace, or correct spec.valuesFrom; the rollout \
             then continues"
        }
        Reason::InvalidValues => {
            "correct the values in the ConfigMap or Secret that the message names, or spec.valuesFrom; the rollout then continues"
        }
        Reason::UnsupportedContent => "use another bundle, or another class in spec.provisionerClassName",
        Reason::PluginTimeout | Reason::PluginOutOfMemory => {
            "raise the limit in spec.limits of the ProvisionerClass, or make the bundle smaller; the controller retries"
        }
        Reason::PluginLimitExceeded => {
            "raise the limit in spec.limits of the ProvisionerClass, or make the bundle smaller"
        }
        Reason::PluginTrapped
        | Reason::ProvisionFailed
        | Reason::InvalidOutput
        | Reason::UnsupportedContract
        | Reason::MissingImports
        | Reason::InvalidComponent
        | Reason::MissingCapabilities
        | Reason::CompileFailed => {
            "report the failure to the author of the provisioner; `chandler render` reproduces it without a cluster"
        }
        Reason::MachineBusy => {
            "wait: the controller renders the bundle again; if it lasts, give the controller more CPU time"
        }
        Reason::CompilerBusy => {
            "wait: the controller compiles the provisioner again; if it lasts, give the controller more CPU time"
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
        Reason::InstallNamespaceNotFound => {
            "create the namespace that the message names (`kubectl create namespace`), or correct spec.installNamespace; the rollout \
             then continues"
        }
        Reason::ObjectRefused => {
            "fix the object in the bundle, or what refuses it in the cluster: the message is from the API server; the controller retries"
        }
        Reason::ServiceAccountNotFound => {
            "create the ServiceAccount that the message names (`kubectl create serviceaccount`), or correct spec.serviceAccount; the \
             rollout then continues"
        }
        Reason::PermissionsMissing => {
            return Some(format!(
                "grant the missing permissions: `chandler rbac {name} | kubectl apply -f -`; the rollout then continues"
            ));
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
        Reason::RecordOutdated => {
            "decide as the message says: restore the newest backup of the record, or delete the record"
        }
        Reason::RepairFailed | Reason::ReconcileFailed => {
            return Some(format!(
                "fix the problem in the message of `Installed`: kubectl get bundledeployment {name} -o yaml; the controller \
                 retries the repair"
            ));
        }
        Reason::ServiceAccountNotGranted => {
            "have the owner of the ServiceAccount list this object in its annotation, as the message says; the controller retries"
        }
        Reason::ServiceAccountRequired => "set spec.serviceAccount to the ServiceAccount that installs the bundle",
        Reason::ReservedObjects => {
            "remove the objects from the bundle, or set spec.serviceAccount to an account with all permissions"
        }
        Reason::Forbidden => {
            "grant the service account of the controller the permissions that the message names; the controller retries"
        }
        Reason::ImageNotResolved | Reason::UpdateFailed => {
            "check that the image of the ProvisionerClass exists, and that its pull secret is valid; the controller retries"
        }
        Reason::SourceNotResolved | Reason::CatalogStale => {
            "check that the source of the Catalog exists, and that its Secret in the system namespace is valid; the controller retries"
        }
        Reason::NotSatisfiable => {
            "change spec.packages of the Resolution, or its catalogs: status.explanation has the reasons"
        }
        Reason::CatalogsNotReady => "wait: `chandler catalog list` shows the state of the catalogs",
        Reason::OutsideMaintenanceWindow => {
            "wait: the controller continues in the maintenance window; or change spec.maintenanceWindows of the Resolution"
        }
        Reason::Preflighting => {
            "wait: the controller fetches, renders and checks the members before it writes the first of them"
        }
        Reason::PreflightFailed => {
            "fix what the message names; the controller retries every 30 seconds, and writes nothing before the checks pass"
        }
        Reason::MembersNotHealthy => {
            "wait; if it lasts, `chandler status` shows what is wrong with the BundleDeployment that the message names"
        }
        Reason::DecisionUnavailable => {
            "set spec.output.resolveSet.toDecision to a number in status.history, or remove it"
        }
        Reason::SourceFailed => {
            "change the PlatformOperator, or the catalogs: the message has the reasons (docs/platform-operators.md)"
        }
        Reason::InvalidPolicy => {
            "correct the PlatformPolicy, as its message says, or delete it (docs/platform-operators.md)"
        }
        Reason::PolicyNotUsed => "give the PlatformPolicy the name that its message says",
        Reason::CatalogInvalid => "fix the catalog and publish it again; `chandler catalog lint` shows all errors",
        Reason::ProgressDeadlineExceeded | Reason::Unhealthy => {
            "inspect the unhealthy objects: `kubectl describe` and `kubectl get events` in their namespace"
        }
        Reason::ApprovalRequired => {
            return Some(format!("`chandler diff {name}` shows the change, `chandler approve {name}` approves it"));
        }
        Reason::RolledBack => {
            return Some(format!(
                "`chandler history {name}` shows what failed; fix the spec, or retry: `chandler reconcile {name}`"
            ));
        }
        Reason::DriftReported => {
            return Some(format!(
                "revert the change, or let the controller repair the objects once: `chandler reconcile {name} --repair`"
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
            return Some(format!("to resume: `chandler resume {name}`"));
        }
        Reason::Deleting => "wait; if the deletion does not complete, check the finalizers of the objects",
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use chandler_api::Remedy;

    use super::*;

    #[test]
    fn every_reason_has_advice_that_agrees_with_its_remedy() {
        for reason in Reason::ALL {
            let text = advice(*reason, "harbour");
            let remedy = reason.remedy();
            assert_eq!(text.is_none(), remedy == Remedy::Nothing, "{reason}: {text:?}");
            let text = text.unwrap_or_default();
            if remedy == Remedy::Time {
                assert!(text.starts_with("wait: "), "{reason}: {text}");
            }
            if !remedy.time_may_help() {
                assert!(!text.contains("wait"), "{reason}: {text}");
            }
            if remedy == Remedy::Requirement {
                let promise = ["the rollout then continues", "retries"];
                assert!(promise.iter().any(|promise| text.contains(promise)), "{reason}: {text}");
            }
        }
    }

    #[test]
    fn advice_prints_a_command_of_chandler_where_one_exists() {
        for (reason, command) in [
            (Reason::Suspended, "`chandler resume harbour`"),
            (Reason::RolledBack, "`chandler reconcile harbour`"),
            (Reason::DriftReported, "`chandler reconcile harbour --repair`"),
            (Reason::ApprovalRequired, "`chandler approve harbour`"),
        ] {
            assert!(advice(reason, "harbour").is_some_and(|text| text.contains(command)), "{reason}");
        }
        for reason in Reason::ALL {
            let text = advice(*reason, "harbour").unwrap_or_default();
            assert!(!["kubectl patch", "kubectl annotate"].iter().any(|verb| text.contains(verb)), "{reason}: {text}");
        }
    }

    #[test]
    fn advice_names_the_bundle_deployment() {
        for reason in
            [Reason::PermissionsMissing, Reason::ObjectCollision, Reason::ApprovalRequired, Reason::RollingOut]
        {
            assert!(advice(reason, "harbour").is_some_and(|text| text.contains("harbour")), "{reason}");
        }
    }
}
