//! Notifications of Alerts: texts of Events as bodies of requests, and the Secret of an Alert.

use std::collections::BTreeMap;

use chandler_api::{AlertSeverity, AlertSpec, ProviderType};
use chandler_notifications::{Body, Endpoint, Notification, Sender, Tenant};
use k8s_openapi::{ByteString, jiff::Timestamp};
use serde_json::{Value, json};

use crate::{archive::Archive, memory};

/// The texts in JSON, parsed again by this test.
const FIXED: usize = 1 << 20;
const PER_BYTE: usize = 200;
/// A character becomes at most six bytes in JSON, or five as an entity. A text is in a body at most three times.
const GROWTH: usize = 32;
/// The members that every body has.
const MEMBERS: usize = 4096;

/// The files `message`, `name`, `reason` and `summary`, and the files of the directory `secret`.
pub(crate) fn holds(input: &[u8]) {
    let archive = Archive::read(input);
    let text = |name: &str| {
        let found = archive.files.get(name).map(Vec::as_slice).unwrap_or_default();
        String::from_utf8_lossy(found).into_owned()
    };
    let notification = Notification {
        api_version: "core.rukpak.io/v1alpha2".to_owned(),
        kind: "BundleDeployment".to_owned(),
        name: text("name"),
        uid: "1".to_owned(),
        tenant: Tenant { namespace: text("tenant"), account: String::new() },
        severity: if input.len().is_multiple_of(2) { AlertSeverity::Info } else { AlertSeverity::Warning },
        reason: text("reason"),
        action: "Installed".to_owned(),
        message: text("message"),
        time: Timestamp::UNIX_EPOCH,
    };
    let secret = archive
        .files
        .iter()
        .filter_map(|(path, bytes)| Some((path.strip_prefix("secret/")?.to_owned(), ByteString(bytes.clone()))));
    let secret: BTreeMap<String, ByteString> = secret.collect();
    memory::bounded(input, FIXED, PER_BYTE, || {
        for kind in ["Webhook", "CloudEvents", "Slack"] {
            body(kind, &notification, &text("summary"));
        }
        endpoint(&secret);
    });
}

/// A body is JSON of bounded size that repeats the message, and for Slack nothing that Slack interprets.
fn body(kind: &str, notification: &Notification, summary: &str) {
    let spec = json!({"provider": {"type": kind}, "summary": summary, "labels": {"env": summary}});
    let spec: AlertSpec = serde_json::from_value(spec).expect("a spec");
    let sender = Sender { alert: "chat", source: "urn:chandler:cluster", spec: &spec };
    let body = Body::new(sender, notification);
    assert_eq!(body, Body::new(sender, notification), "the attempts differ");
    let Notification { name, reason, message, .. } = notification;
    let texts = name.len() + reason.len() + message.len() + 2 * summary.len();
    assert!(body.bytes.len() <= texts * GROWTH + MEMBERS, "{} bytes of {texts}", body.bytes.len());
    let value: Value = serde_json::from_slice(&body.bytes).expect("a body is JSON");
    let found = match spec.provider.kind {
        ProviderType::Webhook => &value["message"],
        ProviderType::CloudEvents => &value["data"]["message"],
        ProviderType::Slack => return slack(&value),
    };
    assert_eq!(found.as_str(), Some(message.as_str()), "the message is changed");
}

fn slack(value: &Value) {
    match value {
        Value::String(text) => {
            assert!(!text.contains(['<', '>']), "Slack interprets {text:?}");
            let lower = text.to_ascii_lowercase();
            for (at, _) in lower.match_indices("@channel") {
                let next = lower[at + "@channel".len()..].chars().next();
                assert!(next.is_some_and(char::is_alphanumeric), "{text:?} addresses everyone");
            }
        }
        Value::Array(items) => items.iter().for_each(slack),
        Value::Object(members) => members.values().for_each(slack),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A Secret is refused in a short message, or leads to a server with TLS or to this machine. Nothing of it is shown.
fn endpoint(secret: &BTreeMap<String, ByteString>) {
    let endpoint = match Endpoint::of_secret(secret) {
        Ok(endpoint) => endpoint,
        Err(error) => return assert!(error.to_string().len() < 300, "{error}"),
    };
    let url = endpoint.url();
    let is_here = matches!(url.host_str(), Some("localhost" | "[::1]"))
        || url.host_str().is_some_and(|host| host.starts_with("127."));
    assert!(url.scheme() == "https" || (url.scheme() == "http" && is_here), "{}", url.scheme());
    assert!(url.username().is_empty() && url.password().is_none());
    let headers = endpoint.headers("application/json", b"{}");
    assert_eq!(headers.get_all("content-type").iter().count(), 1);
    assert!(!headers.contains_key("host") && !headers.contains_key("content-length"), "{headers:?}");
    assert_eq!(headers.contains_key("x-signature"), secret.contains_key("hmacKey"));
    assert_eq!(format!("{endpoint:?}"), "Endpoint { .. }");
    let own = ["content-type", "x-signature"];
    assert!(headers.iter().all(|(name, value)| own.contains(&name.as_str()) || value.is_sensitive()), "{headers:?}");
}
