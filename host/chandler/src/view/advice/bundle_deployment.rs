//! Suggested actions for a BundleDeployment.

use chandler_api::Reason;

/// The suggested action for the BundleDeployment of this name.
pub(super) fn advice(reason: Reason, name: &str) -> Option<String> {
    let text = match reason {
        Reason::UnpackPending | Reason::Unpacking => "wait: the controller fetches and renders the bundle",
        Reason::UploadPending => {
            return Some(format!(
                "upload the files of the bundle: `chandler upgrade {name} DIR --upload`; the rollout then continues"
            ));
        }
        Reason::Installing | Reason::RollingOut => {
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
        Reason::ContentCacheFull => {
            "delete BundleDeployments that are not needed (`chandler list`), or ask the administrator to raise --content-cache-limit of the \
             controller; the controller retries"
        }
        Reason::NoMatchingSignature => {
            "sign the image as the message wants (`cosign sign`), use an image that is signed, or ask the administrator which signers the \
             controller accepts; the controller retries"
        }
        Reason::ProvisionerMissing => {
            "correct spec.provisionerClassName, or create the ProvisionerClass: `kubectl get provisionerclasses`; the rollout then \
             continues"
        }
        Reason::ProvisionerNotReady => {
            "find out why the class is not ready: `chandler status provisionerclass/NAME` with the name in spec.provisionerClassName"
        }
        Reason::ProvisionerQuarantined => {
            "wait: the controller renders the bundle when the class renders any, or when the quarantine ends; report the failures of the class \
             to the author of the provisioner"
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
        Reason::PluginTrapped | Reason::ProvisionFailed | Reason::InvalidOutput => {
            "report the failure to the author of the provisioner; `chandler render` reproduces it without a cluster"
        }
        Reason::MachineBusy => {
            "wait: the controller renders the bundle again; if it lasts, give the controller more CPU time"
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
        Reason::RestoreIncomplete => {
            return Some(format!(
                "wait: the restore brings the missing objects; to create them now: `chandler reconcile {name}`"
            ));
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
        Reason::TargetNotAllowed => {
            "an administrator allows other clusters, or more of them, with --target-clusters of the controller; the controller retries"
        }
        Reason::InvalidKubeConfig => "write a kubeconfig as the message says into the Secret; the controller retries",
        Reason::TargetUnavailable => {
            "check that the cluster runs and accepts the credentials in the Secret; the controller retries, and other BundleDeployments do not wait"
        }
        Reason::TargetChanged => {
            return Some(format!(
                "write a kubeconfig for the cluster that has the objects into the Secret; if that cluster is gone, `kubectl delete \
                 bundledeployment {name} --cascade=orphan`, and create the BundleDeployment again"
            ));
        }
        Reason::Forbidden => {
            return Some(format!(
                "if the spec names no account, the controller installs the bundle with its own permissions, and deploy/rbac.yaml grants \
                 none for that: name an account, `chandler upgrade {name} --service-account deployer` (deploy/rbac-service-account.yaml \
                 creates one), or let the controller install everything (deploy/rbac-cluster-admin.yaml); otherwise grant what the \
                 message names; the controller retries"
            ));
        }
        Reason::ProgressDeadlineExceeded | Reason::Unhealthy => {
            return Some(format!(
                "inspect the unhealthy objects: `chandler events {name} --objects`, and `kubectl describe` in their namespace"
            ));
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
        _ => return None,
    };
    Some(text.to_owned())
}
