//! Suggested actions for Receivers.

use chandler_api::Reason;

/// The suggested action for the Receiver of this name.
pub(super) fn advice(reason: Reason, name: &str) -> Option<String> {
    Some(match reason {
        Reason::TokenNotFound => format!(
            "create the Secret that the message names, with the key token: `kubectl create secret generic SECRET --namespace NAMESPACE \
             --from-literal=token=$(openssl rand -hex 32)`, or name another one in spec.secretRef: `kubectl edit receivers.chandler.dev {name}`; \
             the controller retries when the Secret appears"
        ),
        Reason::InvalidToken => {
            "replace the token of the Secret that the message names by 32 to 4096 random bytes, such as the output of `openssl rand -hex 32`, and \
             set the new path and token where the webhook is sent; the controller retries when the Secret changes"
                .to_owned()
        }
        Reason::InvalidOidc => format!(
            "correct spec.oidc as the message says: `kubectl edit receivers.chandler.dev {name}`, or the key ca.crt of the Secret in spec.secretRef \
             (docs/receivers.md)"
        ),
        Reason::ReceiversNotServed => {
            "install the controller with an address for webhooks: `chandler manifests --set receiver=true` (docs/receivers.md)".to_owned()
        }
        Reason::Suspended => format!("set spec.suspend to false when requests are to be accepted again: `kubectl edit receivers.chandler.dev {name}`"),
        _ => return None,
    })
}
