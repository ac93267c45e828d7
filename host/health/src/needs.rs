//! The Services that the API server calls because of an object: for webhooks, conversions and aggregated APIs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{dependencies::ServiceName, reader::Reader};

/// A Service that the API server calls because of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The Service.
    pub service: ServiceName,
    /// The caller, as in `webhook v.example.com`.
    pub caller: String,
    /// Whether the object has no CA bundle for the certificate of the Service.
    pub lacks_authority: bool,
}

/// Whether objects of this kind may need a Service.
pub fn may_need(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
            | ("apiextensions.k8s.io", "CustomResourceDefinition")
            | ("apiregistration.k8s.io", "APIService")
    )
}

/// The Services that the API server calls because of this object. Webhooks with the failure policy `Ignore` are left out, since
/// nothing waits for them.
pub fn of_object(object: &Value) -> Vec<Need> {
    let object = Reader(object);
    match object.group_kind() {
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration") => object
            .list("/webhooks")
            .filter(|webhook| webhook.text("/failurePolicy") != "Ignore")
            .filter_map(|webhook| {
                need(webhook, "/clientConfig/service", "/clientConfig/caBundle", || {
                    format!("webhook {}", webhook.text("/name"))
                })
            })
            .collect(),
        // With one version nothing is converted. Many published CRDs name a conversion webhook that no Service provides.
        ("apiextensions.k8s.io", "CustomResourceDefinition")
            if object.text("/spec/conversion/strategy") == "Webhook"
                && object.list("/spec/versions").nth(1).is_some() =>
        {
            let client = "/spec/conversion/webhook/clientConfig";
            let caller = || "its conversion webhook".to_owned();
            need(object, &format!("{client}/service"), &format!("{client}/caBundle"), caller).into_iter().collect()
        }
        ("apiregistration.k8s.io", "APIService") => {
            let caller = || "the API aggregator".to_owned();
            let needed = need(object, "/spec/service", "/spec/caBundle", caller);
            let trusting = object.flag("/spec/insecureSkipTLSVerify");
            needed.map(|need| Need { lacks_authority: need.lacks_authority && !trusting, ..need }).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn need(object: Reader<'_>, service: &str, authority: &str, caller: impl Fn() -> String) -> Option<Need> {
    let text = |field: &str| object.text(&format!("{service}/{field}")).to_owned();
    let service = ServiceName { namespace: text("namespace"), name: text("name") };
    (!service.name.is_empty()).then(|| Need {
        service,
        caller: caller(),
        lacks_authority: object.text(authority).is_empty(),
    })
}

/// The stage from which each Service that objects of a release need must have endpoints.
///
/// That is the stage of the object that needs it, but not before the Service itself and the first workload whose pods it
/// selects: CRDs are in an early stage, while the workload that serves their conversion may be in a late one. `ExternalName`
/// Services have no endpoints and are left out.
pub fn due_stages<'a>(
    objects: impl IntoIterator<Item = (u32, Option<&'a str>, &'a Value)> + Clone,
) -> BTreeMap<ServiceName, u32> {
    let mut due: BTreeMap<ServiceName, u32> = BTreeMap::new();
    for (stage, _, object) in objects.clone() {
        for need in of_object(object) {
            let earliest = due.entry(need.service).or_insert(stage);
            *earliest = stage.min(*earliest);
        }
    }
    if due.is_empty() {
        return due;
    }
    let mut workloads: BTreeMap<ServiceName, u32> = BTreeMap::new();
    let mut selectors = BTreeMap::new();
    let mut external = Vec::new();
    for (stage, namespace, object) in objects.clone() {
        let read = Reader(object);
        if read.group_kind() != ("", "Service") {
            continue;
        }
        let service = ServiceName {
            namespace: namespace.unwrap_or_default().to_owned(),
            name: read.text("/metadata/name").to_owned(),
        };
        if let Some(earliest) = due.get_mut(&service) {
            *earliest = stage.max(*earliest);
            if read.text("/spec/type") == "ExternalName" {
                external.push(service);
            } else if let Some(selector) = object.pointer("/spec/selector").and_then(Value::as_object) {
                selectors.insert(service, selector);
            }
        }
    }
    for (stage, namespace, object) in objects {
        let Some(labels) = object.pointer("/spec/template/metadata/labels").and_then(Value::as_object) else {
            continue;
        };
        for (service, selector) in &selectors {
            let selected = !selector.is_empty()
                && service.namespace == namespace.unwrap_or_default()
                && selector.iter().all(|(name, value)| labels.get(name) == Some(value));
            if selected {
                let earliest = workloads.entry(service.clone()).or_insert(stage);
                *earliest = stage.min(*earliest);
            }
        }
    }
    for (service, stage) in workloads {
        if let Some(earliest) = due.get_mut(&service) {
            *earliest = stage.max(*earliest);
        }
    }
    due.retain(|service, _| !external.contains(service));
    due
}
