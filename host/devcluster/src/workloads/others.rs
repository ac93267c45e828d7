//! Statuses of claims, Services and APIServices.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{behaviour::Behaviour, conditions::Conditions};
use crate::metadata;

/// A claim is bound to as much as it asks for.
pub(super) fn claim(object: &Value, _now: &str) -> Option<Value> {
    if !Behaviour::of(object).is_healthy() {
        return None;
    }
    Some(json!({
        "phase": "Bound",
        "accessModes": object.pointer("/spec/accessModes").cloned().unwrap_or_else(|| json!([])),
        "capacity": object.pointer("/spec/resources/requests").cloned().unwrap_or_else(|| json!({})),
    }))
}

/// A LoadBalancer Service gets an address of TEST-NET-1 (RFC 5737), which leads nowhere.
pub(super) fn service(object: &Value, _now: &str) -> Option<Value> {
    if object.pointer("/spec/type").and_then(Value::as_str) != Some("LoadBalancer")
        || !Behaviour::of(object).is_healthy()
    {
        return None;
    }
    let digest: [u8; 32] = Sha256::digest(metadata::uid(object)).into();
    let [host, ..] = digest;
    let address = format!("192.0.2.{}", host.clamp(1, 254));
    Some(json!({"loadBalancer": {"ingress": [{"ip": address, "ipMode": "VIP"}]}}))
}

/// An APIService is available, whether its Service exists or not.
#[expect(clippy::unnecessary_wraps, reason = "a row of the table of simulations")]
pub(super) fn api_service(object: &Value, now: &str) -> Option<Value> {
    let conditions = Conditions::new(object, now, None);
    let conditions = match Behaviour::of(object) {
        Behaviour::Healthy => conditions.with("Available", "True", "Passed", "all checks passed"),
        _ => conditions.with("Available", "False", "FailedDiscoveryCheck", "no response from the service"),
    };
    Some(json!({"conditions": conditions.build()}))
}
