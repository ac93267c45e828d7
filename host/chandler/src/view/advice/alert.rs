//! Suggested actions for Alerts.

use chandler_api::Reason;

/// The suggested action for the Alert of this name.
pub(super) fn advice(reason: Reason, name: &str) -> Option<String> {
    Some(match reason {
        Reason::EndpointInvalid => {
            format!(
                "correct the URL as the message says: `kubectl edit alerts.chandler.dev {name}` (docs/notifications.md)"
            )
        }
        Reason::EndpointSecretInvalid => {
            "create or correct the Secret as the message says (docs/notifications.md); the controller retries"
                .to_owned()
        }
        Reason::DeliveryFailed => format!(
            "follow the message: the server, its certificate, or the proxy of the controller; the controller retries each notification \
             a few times, and `kubectl get alerts.chandler.dev {name}` shows when the last one was sent"
        ),
        Reason::TooManyAlerts => {
            "delete Alerts, or merge some: `kubectl get alerts.chandler.dev` lists them".to_owned()
        }
        Reason::Suspended => format!("set spec.suspend to false: `kubectl edit alerts.chandler.dev {name}`"),
        _ => return None,
    })
}
