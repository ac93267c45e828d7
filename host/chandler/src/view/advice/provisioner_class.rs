//! Suggested actions for a ProvisionerClass.

use chandler_api::Reason;

/// The suggested action for the ProvisionerClass of this name.
pub(super) fn advice(reason: Reason, name: &str) -> Option<String> {
    Some(match reason {
        Reason::ImageNotResolved => format!(
            "check that the image in spec.image of the ProvisionerClass exists, and that its pull secret in the system namespace is valid; \
             the controller retries, `chandler reconcile provisionerclass/{name}` at once"
        ),
        Reason::UpdateFailed => format!(
            "the earlier component stays in use; `chandler status provisionerclass/{name}` shows the condition with the cause"
        ),
        Reason::UpdateInProgress => format!(
            "wait: the installed releases are being updated; `chandler status provisionerclass/{name}` counts them"
        ),
        Reason::UpdatePending => format!(
            "`chandler diff class/{name}` shows the objects that would change; `chandler approve NAME` approves the update of one installed \
             release"
        ),
        Reason::UpdateStopped => format!(
            "`chandler list` shows which one failed, and `chandler diff class/{name}` what the component changes; set spec.image of the \
             ProvisionerClass to another component, or let that one succeed (`chandler approve NAME`), and the update continues"
        ),
        Reason::ProvisionerNotReady => format!(
            "wait while the component is loaded; `chandler reconcile provisionerclass/{name}` loads it again"
        ),
        Reason::ProvisionerQuarantined => format!(
            "set spec.image of the ProvisionerClass to a component that works, or raise the limit that calls exceed in its spec.limits, and \
             let the controller call it again: `chandler reconcile provisionerclass/{name}`; `chandler list` shows the bundles that \
             failed"
        ),
        Reason::NoMatchingSignature => {
            "sign the artifact of the component as the message wants (`cosign sign`), name one that is signed in spec.image of the \
             ProvisionerClass, or correct the signers in its spec.verification; the controller retries"
                .to_owned()
        }
        Reason::SignersRequired => format!(
            "name the signers of the component in spec.verification: `kubectl edit provisionerclass {name}`, `kubectl explain \
             provisionerclass.spec.verification`; or demand signatures of all images of its repository with --image-verification"
        ),
        Reason::UnsupportedContract => {
            "use a component for a version of the contract that this controller supports, or upgrade the controller: set spec.image of the \
             ProvisionerClass, or ask the author of the provisioner for one"
                .to_owned()
        }
        Reason::MissingImports | Reason::MissingCapabilities | Reason::InvalidComponent => {
            "report the message to the author of the provisioner, and set spec.image of the ProvisionerClass to a component without the \
             problem"
                .to_owned()
        }
        Reason::CompileFailed => format!(
            "set spec.image of the ProvisionerClass to another component, or let the controller compile this one again: `chandler \
             reconcile provisionerclass/{name}`; report the message to the author of the provisioner"
        ),
        Reason::CompilerBusy => {
            "wait: the controller compiles the component again; if it lasts, give the controller more CPU time"
                .to_owned()
        }
        Reason::PluginLimitExceeded => {
            "use a component that declares less about itself, in spec.image of the ProvisionerClass, or raise its spec.limits"
                .to_owned()
        }
        Reason::InvalidSpec => format!(
            "correct the value that the message names: `kubectl edit provisionerclass {name}`, `kubectl explain provisionerclass.spec`; or \
             upgrade the controller"
        ),
        Reason::InternalError => {
            "wait: the controller retries; if it lasts, check the space in its cache directory, and report the message as a bug of Chandler"
                .to_owned()
        }
        Reason::Retrying => {
            "wait: the controller retries; if it lasts, the message names the server that does not answer".to_owned()
        }
        Reason::Forbidden => {
            "grant the service account of the controller the permissions that the message names (deploy/rbac.yaml); the controller retries"
                .to_owned()
        }
        _ => return None,
    })
}
