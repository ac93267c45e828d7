//! Services: endpoints from the Pods that they select, addresses of load balancers.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{
    action::{Action, Decision},
    fields::{controller_reference, count, difference, flag, label, labels, list, map, number, text},
    kind::{Key, Kind},
    labels::matches_all,
    pods,
    rules::Step,
    world::World,
};
use crate::metadata;

/// How many endpoints a slice holds.
const SLICE: usize = 100;
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const SLICE_CONTROLLER: &str = "endpointslice-controller.k8s.io";
const MANAGED_ENDPOINTS: &str = "endpoints.kubernetes.io/managed-by";
const ENDPOINTS_CONTROLLER: &str = "endpoint-controller";
const HEADLESS: &str = "service.kubernetes.io/headless";

pub(super) fn reconcile(world: &World<'_>, service: &Value) -> Decision {
    let mut decision = Decision::default();
    if metadata::is_deleting(service) {
        return decision;
    }
    expose(world, service, &mut decision);
    let selector =
        service.pointer("/spec/selector").filter(|selector| selector.as_object().is_some_and(|map| !map.is_empty()));
    if selector.is_some() && text(service, "/spec/type") != "ExternalName" {
        let all = world.cache.namespace(Kind::Pod, metadata::namespace(service)).map(AsRef::as_ref);
        let selected: Vec<&Value> = all
            .filter(|pod| matches_all(selector, labels(pod)) && !text(pod, "/status/podIP").is_empty())
            .filter(|pod| !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed"))
            .collect();
        let groups = group(service, &selected);
        slices(world, service, &groups, &mut decision);
        endpoints(world, service, &groups, &mut decision);
    }
    decision
}

/// The endpoints of a Service that is gone go too.
pub(super) fn reconcile_missing(world: &World<'_>, key: &Key) -> Decision {
    let mut decision = Decision::default();
    if let Some(endpoints) = world.cache.find(Kind::Endpoints, &key.namespace, &key.name)
        && label(endpoints, MANAGED_ENDPOINTS) == ENDPOINTS_CONTROLLER
        && !metadata::is_deleting(endpoints)
    {
        decision.delete(Kind::Endpoints, endpoints, None);
    }
    decision
}

/// The Pods by the ports that they serve the Service on: a port that is named can differ from Pod to Pod.
type Groups<'a> = BTreeMap<String, (Vec<Value>, Vec<&'a Value>)>;

fn group<'a>(service: &Value, selected: &[&'a Value]) -> Groups<'a> {
    let mut groups = Groups::new();
    for pod in selected {
        let ports = ports(service, pod);
        let key = Value::from(ports.clone()).to_string();
        groups.entry(key).or_insert_with(|| (ports, Vec::new())).1.push(pod);
    }
    groups
}

fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let found = list(service, "/spec/ports").iter().filter_map(|port| {
        let protocol = Some(text(port, "/protocol")).filter(|protocol| !protocol.is_empty()).unwrap_or("TCP");
        let target = match port.get("targetPort") {
            Some(Value::String(name)) => named_port(pod, name, protocol)?,
            Some(target) if target.as_i64().is_some_and(|target| target > 0) => target.as_i64()?,
            _ => number(port, "/port")?,
        };
        let mut found = json!({"name": text(port, "/name"), "port": target, "protocol": protocol});
        if let Some(application) = port.get("appProtocol") {
            metadata::as_map(&mut found).insert("appProtocol".to_owned(), application.clone());
        }
        Some(found)
    });
    found.collect()
}

fn named_port(pod: &Value, name: &str, protocol: &str) -> Option<i64> {
    let containers = list(pod, "/spec/containers").iter().chain(list(pod, "/spec/initContainers"));
    let mut ports = containers.flat_map(|container| list(container, "/ports"));
    let fits = |port: &&Value| {
        let stated = text(port, "/protocol");
        text(port, "/name") == name && (stated == protocol || (stated.is_empty() && protocol == "TCP"))
    };
    ports.find(fits).and_then(|port| number(port, "/containerPort"))
}

fn reference(pod: &Value) -> Value {
    json!({
        "kind": "Pod", "name": metadata::name(pod), "namespace": metadata::namespace(pod), "uid": metadata::uid(pod),
    })
}

/// The name by which a Pod is known under the Service, if it has one.
fn hostname<'a>(service: &Value, pod: &'a Value) -> Option<&'a str> {
    let is_under = text(pod, "/spec/subdomain") == metadata::name(service);
    Some(text(pod, "/spec/hostname")).filter(|name| is_under && !name.is_empty())
}

fn serves(service: &Value, pod: &Value) -> bool {
    pods::is_ready(pod) || flag(service, "/spec/publishNotReadyAddresses")
}

fn slices(world: &World<'_>, service: &Value, groups: &Groups<'_>, decision: &mut Decision) {
    let mut wanted: Vec<Value> = groups
        .values()
        .flat_map(|(ports, pods)| pods.chunks(SLICE).map(move |pods| (ports, pods)))
        .map(|(ports, pods)| {
            let endpoints: Vec<Value> = pods.iter().map(|pod| endpoint(service, pod)).collect();
            json!({"endpoints": endpoints, "ports": ports})
        })
        .collect();
    if wanted.is_empty() {
        // A Service without Pods has a slice too.
        wanted.push(json!({"endpoints": [], "ports": []}));
    }
    let known: Vec<&Value> = world
        .living(Kind::EndpointSlice, service)
        .into_iter()
        .filter(|slice| label(slice, MANAGED_BY) == SLICE_CONTROLLER)
        .collect();
    let mut labels = map(service, "/metadata/labels");
    labels.insert(SERVICE_NAME.to_owned(), metadata::name(service).into());
    labels.insert(MANAGED_BY.to_owned(), SLICE_CONTROLLER.into());
    if text(service, "/spec/clusterIP") == "None" {
        labels.insert(HEADLESS.to_owned(), "".into());
    }
    for (position, content) in wanted.iter().enumerate() {
        if let Some(slice) = known.get(position) {
            renew(Kind::EndpointSlice, slice, content, &labels, decision);
            continue;
        }
        let mut object = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "generateName": format!("{}-", metadata::name(service)),
                "namespace": metadata::namespace(service), "labels": labels,
                "ownerReferences": [controller_reference(Kind::Service, service)],
            },
        });
        metadata::as_map(&mut object).extend(map(content, ""));
        decision.push(Action::Create { kind: Kind::EndpointSlice, object, note: None, failure: None });
    }
    for surplus in known.iter().skip(wanted.len()) {
        decision.delete(Kind::EndpointSlice, surplus, None);
    }
}

fn endpoint(service: &Value, pod: &Value) -> Value {
    let (is_stopping, is_ready) = (metadata::is_deleting(pod), serves(service, pod));
    let mut endpoint = json!({
        "addresses": [text(pod, "/status/podIP")],
        "conditions": {"ready": is_ready && !is_stopping, "serving": is_ready, "terminating": is_stopping},
        "nodeName": text(pod, "/spec/nodeName"), "targetRef": reference(pod),
    });
    if let Some(hostname) = hostname(service, pod) {
        metadata::as_map(&mut endpoint).insert("hostname".to_owned(), hostname.into());
    }
    endpoint
}

fn endpoints(world: &World<'_>, service: &Value, groups: &Groups<'_>, decision: &mut Decision) {
    let address = |pod: &&&Value| {
        let mut address = json!({
            "ip": text(pod, "/status/podIP"), "nodeName": text(pod, "/spec/nodeName"), "targetRef": reference(pod),
        });
        if let Some(hostname) = hostname(service, pod) {
            metadata::as_map(&mut address).insert("hostname".to_owned(), hostname.into());
        }
        address
    };
    let subsets: Vec<Value> = groups
        .values()
        .map(|(ports, pods)| {
            let (ready, unready): (Vec<&&Value>, Vec<&&Value>) =
                pods.iter().filter(|pod| !metadata::is_deleting(pod)).partition(|pod| serves(service, pod));
            let mut subset = Map::new();
            for (field, pods) in [("addresses", ready), ("notReadyAddresses", unready)] {
                if !pods.is_empty() {
                    subset.insert(field.to_owned(), pods.iter().map(address).collect());
                }
            }
            let ports = ports.iter().cloned().map(|mut port| {
                // Omitted if empty in this kind, but not in slices.
                metadata::as_map(&mut port).retain(|_, value| value != "");
                port
            });
            subset.insert("ports".to_owned(), ports.collect());
            Value::Object(subset)
        })
        .collect();
    let mut labels = map(service, "/metadata/labels");
    labels.insert(MANAGED_ENDPOINTS.to_owned(), ENDPOINTS_CONTROLLER.into());
    if text(service, "/spec/clusterIP") == "None" {
        labels.insert(HEADLESS.to_owned(), "".into());
    }
    let content = if subsets.is_empty() { json!({}) } else { json!({"subsets": subsets}) };
    let (namespace, name) = (metadata::namespace(service), metadata::name(service));
    if let Some(known) = world.cache.find(Kind::Endpoints, namespace, name) {
        return renew(Kind::Endpoints, known, &content, &labels, decision);
    }
    let mut object = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
    });
    metadata::as_map(&mut object).extend(map(&content, ""));
    decision.push(Action::Create { kind: Kind::Endpoints, object, note: None, failure: None });
}

/// Brings content and labels of an object up to date.
fn renew(kind: Kind, known: &Value, content: &Value, labels: &Map<String, Value>, decision: &mut Decision) {
    let fields = ["endpoints", "ports", "subsets"];
    let filled = |object: &Value| -> Value {
        let filled = fields.iter().filter_map(|field| {
            let value = object.get(*field).filter(|value| value.as_array().is_some_and(|list| !list.is_empty()))?;
            Some(((*field).to_owned(), value.clone()))
        });
        Value::Object(filled.collect())
    };
    let mut change = difference(&filled(known), &filled(content));
    let known_labels = map(known, "/metadata/labels");
    if labels.iter().any(|(key, value)| known_labels.get(key) != Some(value)) {
        let change = change.get_or_insert_with(|| json!({}));
        metadata::of(change).insert("labels".to_owned(), labels.clone().into());
    }
    if let Some(change) = change {
        decision.change(kind, known, change);
    }
}

/// A LoadBalancer Service gets an address of TEST-NET-1 (RFC 5737), which leads nowhere.
fn expose(world: &World<'_>, service: &Value, decision: &mut Decision) {
    let behaviour = world.behaviour(Kind::Service, service);
    if text(service, "/spec/type") != "LoadBalancer" || !behaviour.is_healthy() {
        return;
    }
    if !list(service, "/status/loadBalancer/ingress").is_empty() {
        return;
    }
    let waited = world.since(super::fields::time(service, "/metadata/creationTimestamp"));
    let wait = world.delay(Step::Expose, Kind::Service, service).saturating_sub(waited);
    if !wait.is_zero() {
        return decision.look_again(wait);
    }
    let digest: [u8; 32] = Sha256::digest(metadata::uid(service)).into();
    let [host, ..] = digest;
    let address = format!("192.0.2.{}", host.clamp(1, 254));
    let mut status = service.get("status").cloned().unwrap_or_default();
    metadata::as_map(&mut status)
        .insert("loadBalancer".to_owned(), json!({"ingress": [{"ip": address, "ipMode": "VIP"}]}));
    decision.status(Kind::Service, service, &status);
}

/// Whether an Endpoints object or slice of a Service offers a port by this name.
pub(super) fn offers(world: &World<'_>, service: &Value, port: &str) -> bool {
    let key = Key::of(Kind::Endpoints, service);
    let Some(endpoints) = world.cache.get(&key) else { return false };
    list(endpoints, "/subsets").iter().any(|subset| {
        !list(subset, "/addresses").is_empty()
            && list(subset, "/ports").iter().any(|found| text(found, "/name") == port)
    })
}

/// The name of a Service's port of a number.
pub(super) fn port_name(service: &Value, wanted: i64) -> Option<&str> {
    let found = list(service, "/spec/ports").iter().find(|port| count(port, "/port") == wanted);
    found.map(|port| text(port, "/name"))
}
