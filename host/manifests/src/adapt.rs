//! What settings change in the objects of the files.

use k8s_openapi::{
    api::networking::v1::{NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPort},
    apimachinery::pkg::util::intstr::IntOrString,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    NAMESPACE, Settings,
    condition::{self, Condition},
    deployment,
};

/// The object as the settings want it; `None` if they do not want it.
///
/// # Errors
/// The object is not what is expected: what is wrong.
pub(crate) fn adapt(mut object: Value, settings: &Settings) -> Result<Option<Value>, String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    if !(condition(&kind, &name).holds)(settings) {
        return Ok(None);
    }
    match kind.as_str() {
        "Deployment" => object = typed(object, |object| deployment::adapt(object, settings))?,
        "NetworkPolicy" => object = typed(object, |policy| ports(policy, settings))?,
        "ResourceQuota" if name == "chandler-critical-pods" => {
            replace(&mut object, "/spec/scopeSelector/matchExpressions/0/values", json!([settings.priority_class]))?;
        }
        "ServiceMonitor" => authority(&mut object, settings)?,
        _ => {}
    }
    if settings.namespace != NAMESPACE {
        rename(&mut object, &settings.namespace);
    }
    Ok(Some(object))
}

/// The settings that select an object of a file that is selected.
pub(crate) fn condition(kind: &str, name: &str) -> Condition {
    match (kind, name) {
        ("ClusterRole", "chandler-edit" | "chandler-admin") => condition::USERS_MAY_WRITE,
        ("Role" | "RoleBinding", "chandler-pull-secrets") => condition::PULL_SECRETS,
        // In the file of tenants, which clusters without admission policies have, too.
        (
            "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding",
            "chandler-account-namespaces" | "chandler-set-account-namespaces",
        ) => condition::ADMISSION_POLICIES,
        _ => condition::ALWAYS,
    }
}

/// Changes an object as its type.
fn typed<T: DeserializeOwned + Serialize>(object: Value, change: impl FnOnce(&mut T)) -> Result<Value, String> {
    let mut typed: T = serde_json::from_value(object).map_err(|error| error.to_string())?;
    change(&mut typed);
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

/// The ports on which the controller serves callers.
fn ports(policy: &mut NetworkPolicy, settings: &Settings) {
    let served = [
        (settings.metrics, deployment::METRICS_PORT),
        (settings.content, deployment::CONTENT_PORT),
        (settings.receiver, deployment::RECEIVER_PORT),
    ];
    let ports = served.into_iter().filter(|(is_served, _)| *is_served).map(|(_, port)| NetworkPolicyPort {
        port: Some(IntOrString::Int(port)),
        protocol: Some("TCP".to_owned()),
        ..NetworkPolicyPort::default()
    });
    let ports: Vec<NetworkPolicyPort> = ports.collect();
    // A rule without ports would allow all of them.
    let rule = NetworkPolicyIngressRule { ports: Some(ports.clone()), ..NetworkPolicyIngressRule::default() };
    let spec = policy.spec.get_or_insert_default();
    spec.ingress = if ports.is_empty() { Some(Vec::new()) } else { Some(vec![rule]) };
}

/// With a certificate in a Secret, Prometheus checks it.
fn authority(monitor: &mut Value, settings: &Settings) -> Result<(), String> {
    let Some(secret) = &settings.metrics_tls_secret else { return Ok(()) };
    let tls = json!({
        "ca": {"secret": {"name": secret, "key": "ca.crt"}},
        "serverName": format!("chandler-metrics.{}.svc", settings.namespace),
    });
    replace(monitor, "/spec/endpoints/0/tlsConfig", tls)
}

/// Replaces a value that the file has.
pub(crate) fn replace(object: &mut Value, pointer: &str, value: Value) -> Result<(), String> {
    *object.pointer_mut(pointer).ok_or_else(|| format!("there is nothing at {pointer}"))? = value;
    Ok(())
}

/// Replaces the namespace of the controller wherever it is named: in references, and in the expressions and messages of policies.
pub(crate) fn rename(value: &mut Value, namespace: &str) {
    match value {
        Value::String(text) if text.contains(NAMESPACE) => *text = text.replace(NAMESPACE, namespace),
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, namespace)),
        Value::Object(members) => members.values_mut().for_each(|member| rename(member, namespace)),
        _ => {}
    }
}
