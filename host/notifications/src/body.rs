//! The bodies of requests.

mod slack;

use std::collections::BTreeMap;

use chandler_api::{AlertSpec, ProviderType};
use serde_json::{Map, Value, json};

use crate::Notification;

/// The type of the CloudEvents.
pub const EVENT_TYPE: &str = "dev.chandler.transition";

/// Who sends notifications.
#[derive(Clone, Copy, Debug)]
pub struct Sender<'a> {
    /// The name of the Alert.
    pub alert: &'a str,
    /// The cluster, as a URI.
    pub source: &'a str,
    /// The spec of the Alert.
    pub spec: &'a AlertSpec,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its media type.
    pub content_type: &'static str,
    /// Its bytes, JSON in UTF-8. They are the same at each attempt.
    pub bytes: Vec<u8>,
}

impl Body {
    /// The body that sends a notification.
    pub fn new(sender: Sender<'_>, notification: &Notification) -> Self {
        let (content_type, value) = match sender.spec.provider.kind {
            ProviderType::Webhook => ("application/json", webhook(sender, notification)),
            ProviderType::CloudEvents => ("application/cloudevents+json", cloud_event(sender, notification)),
            ProviderType::Slack => ("application/json", slack::message(sender, notification)),
        };
        Self { content_type, bytes: value.to_string().into_bytes() }
    }
}

/// The URI of a cluster with this UID, which is the UID of its namespace kube-system.
pub fn source(uid: Option<&str>) -> String {
    uid.map_or_else(|| "urn:chandler:cluster".to_owned(), |uid| format!("urn:uuid:{uid}"))
}

fn webhook(sender: Sender<'_>, notification: &Notification) -> Value {
    let mut value = data(sender, notification);
    value.insert("id".to_owned(), notification.id().into());
    value.insert("source".to_owned(), sender.source.into());
    value.insert("time".to_owned(), notification.time.to_string().into());
    Value::Object(value)
}

fn cloud_event(sender: Sender<'_>, notification: &Notification) -> Value {
    let Notification { kind, name, severity, reason, time, .. } = notification;
    json!({
        "specversion": "1.0",
        "id": notification.id(),
        "source": sender.source,
        "type": EVENT_TYPE,
        "subject": format!("{kind}/{name}"),
        "time": time.to_string(),
        "datacontenttype": "application/json",
        // Extension attributes, by which brokers route.
        "alert": sender.alert,
        "kind": kind,
        "reason": reason,
        "severity": severity.as_str(),
        "data": data(sender, notification),
    })
}

/// What happened, in JSON.
fn data(sender: Sender<'_>, notification: &Notification) -> Map<String, Value> {
    let Notification { api_version, kind, name, uid, tenant: _, severity, reason, action, message, time: _ } =
        notification;
    let mut object = BTreeMap::from([("apiVersion", api_version), ("kind", kind), ("name", name)]);
    if !uid.is_empty() {
        object.insert("uid", uid);
    }
    let mut value = Map::from_iter([
        ("alert".to_owned(), json!(sender.alert)),
        ("object".to_owned(), json!(object)),
        ("severity".to_owned(), json!(severity.as_str())),
        ("reason".to_owned(), json!(reason)),
        ("action".to_owned(), json!(action)),
        ("message".to_owned(), json!(message)),
    ]);
    if let Some(summary) = &sender.spec.summary {
        value.insert("summary".to_owned(), json!(summary));
    }
    if !sender.spec.labels.is_empty() {
        value.insert("labels".to_owned(), json!(sender.spec.labels));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::notification;

    fn body(kind: &str, more: &Value) -> String {
        let mut spec = json!({"provider": {"type": kind, "url": "https://hooks.example.com/s3cret"},
                              "summary": "harbour cluster", "labels": {"env": "prod"}});
        spec["provider"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let spec = serde_json::from_value(spec).unwrap();
        let source = source(Some("3f1a5f0e-8a2e-4a51-9c5e-1f8f8d9f6a11"));
        let body = Body::new(Sender { alert: "chat", source: &source, spec: &spec }, &notification());
        assert_eq!(body, Body::new(Sender { alert: "chat", source: &source, spec: &spec }, &notification()));
        let text = String::from_utf8(body.bytes).unwrap();
        assert!(!text.contains("s3cret"), "{text}");
        format!("{}\n{:#}", body.content_type, serde_json::from_str::<Value>(&text).unwrap())
    }

    #[test]
    fn the_body_of_a_webhook() {
        insta::assert_snapshot!(body("Webhook", &json!({})));
    }

    #[test]
    fn the_body_of_a_cloud_event() {
        insta::assert_snapshot!(body("CloudEvents", &json!({})));
    }

    #[test]
    fn the_body_for_slack() {
        insta::assert_snapshot!(body("Slack", &json!({"channel": "#ops"})));
    }
}
