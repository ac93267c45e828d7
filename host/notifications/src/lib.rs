//! Notifications of an Alert: which are sent, when, and as which requests. Pure: times come in as arguments.
//!
//! | module | holds |
//! |---|---|
//! | [`notification`] | [`Notification`]: what an Event says, and its ID |
//! | [`filter`] | whether an Alert sends a notification |
//! | [`queue`] | [`Queue`]: the notifications that wait for one server, repetitions, and the limit per minute |
//! | [`body`] | the body of a request: JSON, a CloudEvent, a message for Slack |
//! | [`endpoint`] | [`Endpoint`]: the URL and the credentials, from a spec or a Secret; the headers of a request |
//! | [`retry`] | whether and when a delivery is retried |
//!
//! The reconciler of `host/controller` connects them, and `host/content` sends the requests.

pub mod body;
pub mod endpoint;
pub mod filter;
pub mod notification;
pub mod queue;
pub mod retry;

pub use body::{Body, Sender};
pub use endpoint::{Endpoint, EndpointError};
pub use notification::{Notification, Tenant};
pub use queue::{Next, Pushed, Queue};
pub use retry::Failure;

#[cfg(test)]
mod tests {
    use chandler_api::AlertSeverity;
    use k8s_openapi::jiff::Timestamp;

    use super::*;

    pub(crate) fn notification() -> Notification {
        Notification {
            api_version: "core.rukpak.io/v1alpha2".to_owned(),
            kind: "BundleDeployment".to_owned(),
            name: "harbour".to_owned(),
            uid: "b6a4c1de-1f0f-4c52-9a6c-6b0cf8b1a5a1".to_owned(),
            tenant: Tenant::default(),
            severity: AlertSeverity::Warning,
            reason: "UpgradeFailed".to_owned(),
            action: "Installed".to_owned(),
            message: "Deployment shop/web: 2 < 3 replicas & *none* is <!channel> ready".to_owned(),
            time: Timestamp::from_second(1_800_000_000).unwrap(),
        }
    }

    #[test]
    fn an_id_is_of_one_occurrence() {
        let it = notification();
        let later = Notification { time: Timestamp::from_second(1_800_000_001).unwrap(), ..it.clone() };
        let other = Notification { message: String::new(), ..it.clone() };
        assert_eq!(it.id(), it.clone().id());
        assert!(it.id() != later.id() && it.id() != other.id());
        assert_eq!(it.id().len(), 32);
    }
}
