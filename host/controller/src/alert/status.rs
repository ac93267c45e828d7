//! The status of an Alert, derived from what is known of it.

use chandler_api::{
    Alert, AlertStatus, ConditionStatus, ConditionType as Type, LastDelivery, NewCondition, Reason, Remedy,
    conditions::whole_seconds,
};
use chandler_notifications::Failure;
use k8s_openapi::jiff::Timestamp;

use super::{lane::Known, lanes::MOST};
use crate::status::set_with_stalled;

/// What a reconcile found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// More Alerts than this are in use.
    TooMany,
    /// The endpoint, or why it cannot be used, and the deliveries.
    Endpoint(Result<(), Failure>, Known),
}

/// The status of an Alert in which this was found.
pub(super) fn derive(alert: &Alert, found: &Found, now: Timestamp) -> AlertStatus {
    let mut status = alert.status.clone().unwrap_or_default();
    let generation = alert.metadata.generation;
    let ready = ready(alert, found);
    status.observed_generation = generation;
    if let Found::Endpoint(_, known) = found {
        if let Some(last) = &known.last {
            let delivery = LastDelivery { time: whole_seconds(last.time), succeeded: last.failure.is_none() };
            status.last_delivery = Some(delivery);
        }
        status.dropped = i64::try_from(known.dropped).ok().filter(|dropped| *dropped > 0);
    }
    // Only a change of the Alert, or of others, helps. A Secret is often created at the same moment.
    let lasts = matches!(ready.reason.remedy(), Remedy::User | Remedy::Administrator);
    let is_stalled = ready.status == ConditionStatus::False && lasts;
    set_with_stalled(&mut status.conditions, ready, is_stalled, generation, now);
    status
}

fn ready(alert: &Alert, found: &Found) -> NewCondition {
    let not = |reason, message: String| NewCondition::is_false(Type::Ready, reason, message);
    if alert.spec.suspend {
        return NewCondition::is_true(Type::Ready, Reason::Suspended, "spec.suspend is true: nothing is sent");
    }
    let (endpoint, known) = match found {
        Found::TooMany => {
            let message = format!("the controller sends notifications for {MOST} Alerts: nothing is sent for this one");
            return not(Reason::TooManyAlerts, message);
        }
        Found::Endpoint(endpoint, known) => (endpoint, known),
    };
    match endpoint {
        Err(Failure::Endpoint(error)) if error.is_of_secret() => {
            return not(Reason::EndpointSecretInvalid, error.to_string());
        }
        Err(Failure::Endpoint(error)) => return not(Reason::EndpointInvalid, error.to_string()),
        Err(failure) => return not(Reason::DeliveryFailed, failure.to_string()),
        Ok(()) => {}
    }
    // A failure of an earlier spec says nothing about this one.
    let last = known.last.as_ref().filter(|last| last.generation == alert.metadata.generation);
    match last.and_then(|last| last.failure.as_ref()) {
        // The certificates are read by the connection only.
        Some(Failure::Endpoint(error @ chandler_notifications::EndpointError::Value("ca.crt", _))) => {
            not(Reason::EndpointSecretInvalid, error.to_string())
        }
        // It can be used now.
        Some(Failure::Endpoint(_)) | None => {
            NewCondition::is_true(Type::Ready, Reason::NotificationsSent, "notifications are sent")
        }
        Some(failure) => not(Reason::DeliveryFailed, format!("the last notification was not delivered: {failure}")),
    }
}

#[cfg(test)]
mod tests {
    use chandler_notifications::{Endpoint, EndpointError};
    use serde_json::json;

    use super::{super::lane::Attempt, *};

    fn text(alert: &Alert, found: &Found) -> String {
        let status = derive(alert, found, Timestamp::UNIX_EPOCH);
        let lines =
            status.conditions.iter().map(|it| format!("{}={}/{}: {}", it.type_, it.status, it.reason, it.message));
        let last = status.last_delivery.map(|last| format!("succeeded={}", last.succeeded));
        lines
            .chain(last)
            .chain(status.dropped.map(|dropped| format!("dropped={dropped}")))
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[test]
    fn a_status_says_what_is_wrong_and_nothing_secret() {
        let spec = json!({"provider": {"type": "Slack", "secretRef": {"name": "chat"}}});
        let mut alert = Alert::new("chat", serde_json::from_value(spec).unwrap());
        alert.metadata.generation = Some(2);
        let tried = |failure: Option<Failure>, generation| Known {
            last: Some(Attempt { time: Timestamp::UNIX_EPOCH, failure, generation: Some(generation) }),
            dropped: 3,
        };
        let ok = |known| Found::Endpoint(Ok(()), known);
        let refused = |error| Found::Endpoint(Err(Failure::Endpoint(error)), Known::default());
        let invalid = Endpoint::of_url("https://ann:s3cret@hooks.example.com").unwrap_err();
        let all = [
            text(&alert, &ok(Known::default())),
            text(&alert, &ok(tried(None, 2))),
            text(&alert, &ok(tried(Some(Failure::Status(503, None)), 2))),
            text(&alert, &ok(tried(Some(Failure::Status(503, None)), 1))),
            text(&alert, &refused(EndpointError::NoSecret("chat".to_owned()))),
            text(&alert, &refused(invalid)),
            text(&alert, &Found::TooMany),
        ];
        insta::assert_snapshot!(all.join("\n\n"));
        alert.spec.suspend = true;
        assert_eq!(text(&alert, &Found::TooMany), "Ready=True/Suspended: spec.suspend is true: nothing is sent");
    }
}
