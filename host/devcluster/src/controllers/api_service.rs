//! The Service `default/kubernetes` and its endpoints: how clients in a cluster find its API server.
//!
//! kube-apiserver publishes them itself and repairs them every ten seconds. Here they are repaired at once.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use serde_json::{Value, json};

use super::object::change;
use crate::{
    api::Api,
    metadata,
    pipeline::{refine, strategy},
    store::{Expected, Key, Scope},
};

const NAMESPACE: &str = "default";
const NAME: &str = "kubernetes";
/// The first address of the range of Services, as kube-apiserver takes it.
const CLUSTER_IP: &str = "10.96.0.1";

/// Publishes where the API server listens.
#[derive(Debug)]
pub struct ApiService {
    api: Arc<Api>,
    address: SocketAddr,
}

impl ApiService {
    /// An API server that listens on this address.
    pub fn new(api: Arc<Api>, address: SocketAddr) -> Self {
        Self { api, address }
    }

    /// Creates what is missing, and replaces what is different, such as the port of an earlier run.
    pub fn publish(&self) {
        for (group, version, plural, object) in objects(self.address) {
            let Some(resource) = self.api.registry.snapshot().resource(group, version, plural).cloned() else {
                continue;
            };
            let key = Key::new(Arc::clone(&resource.table), NAMESPACE, NAME);
            let mut created = object.clone();
            strategy::prepare_create(
                &resource,
                &mut created,
                &self.api.identities.uid(&key),
                &self.api.clock.timestamp(),
            );
            refine::default(&resource, &mut created);
            if self.api.store.get(&key).is_none() && self.api.store.put(key.clone(), Expected::Absent, created).is_ok()
            {
                continue;
            }
            change(&self.api, &resource, &key, |live| repair(live, &object));
        }
    }

    /// Repairs the objects until dropped.
    pub async fn run(self) {
        let scope = Scope { resource: None, namespace: Some(NAMESPACE.into()) };
        loop {
            let (_, mut watch) = self.api.store.list_and_watch(scope.clone());
            self.publish();
            while let Ok(batch) = watch.next().await {
                if batch.events.iter().any(|event| &*event.key.name == NAME) {
                    self.publish();
                }
            }
        }
    }
}

/// Sets the fields of `wanted` whose values decide where clients connect to. Labels that users added stay.
fn repair(live: &mut Value, wanted: &Value) {
    for field in ["subsets", "endpoints", "ports"] {
        if let Some(value) = wanted.get(field) {
            metadata::as_map(live).insert(field.to_owned(), value.clone());
        }
    }
    if let Some(ports) = wanted.pointer("/spec/ports") {
        metadata::child(metadata::as_map(live), "spec").insert("ports".to_owned(), ports.clone());
    }
}

/// The objects by group, version and plural name.
fn objects(address: SocketAddr) -> [(&'static str, &'static str, &'static str, Value); 3] {
    let ip = match address.ip() {
        // Clients on this machine reach a server that listens on all addresses there.
        ip if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        ip => ip,
    };
    let ports = json!([{"name": "https", "port": address.port(), "protocol": "TCP"}]);
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "type": "ClusterIP", "clusterIP": CLUSTER_IP, "clusterIPs": [CLUSTER_IP],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            "sessionAffinity": "None",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": address.port()}],
        },
        "status": {"loadBalancer": {}},
    });
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        "metadata": {
            "name": NAME, "namespace": NAMESPACE, "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": ip}], "ports": ports}],
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": if ip.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        "ports": ports,
    });
    [
        ("", "v1", "services", service),
        ("", "v1", "endpoints", endpoints),
        ("discovery.k8s.io", "v1", "endpointslices", slice),
    ]
}
