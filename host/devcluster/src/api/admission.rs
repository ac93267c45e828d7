//! Built-in admission: namespaces must exist, Services get addresses, Pods get a ServiceAccount.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::Api;
use crate::{
    metadata,
    registry::Resource,
    status::{GroupResource, Status},
    store::Key,
};

impl Api {
    /// Admits a new object: its namespace must exist and not be on its way out.
    pub(super) fn admit_create(&self, resource: &Resource, object: &mut Value) -> Result<(), Status> {
        if resource.namespaced() {
            let namespace = metadata::namespace(object);
            let namespaces = GroupResource { group: String::new(), plural: "namespaces".to_owned() };
            let found = self.store.get(&Key::new("namespaces".into(), "", namespace));
            let found = found.ok_or_else(|| Status::not_found(&namespaces, namespace))?;
            if metadata::is_deleting(found.value()) {
                let name = metadata::name(object);
                return Err(Status::namespace_terminating(&resource.group_resource(), name, namespace));
            }
        }
        if resource.is_core("services") {
            self.allocate(object, None)?;
        }
        if resource.is_core("pods") {
            default_account(object);
        }
        Ok(())
    }

    /// Admits a changed object.
    pub(super) fn admit_update(&self, resource: &Resource, object: &mut Value, old: &Value) -> Result<(), Status> {
        if resource.is_core("services") {
            self.allocate(object, Some(old))?;
        }
        Ok(())
    }

    /// Gives a Service its cluster IP and node ports; an update that leaves them out keeps those it has.
    fn allocate(&self, service: &mut Value, old: Option<&Value>) -> Result<(), Status> {
        let full = |what: &str| Status::internal(format!("failed to allocate a {what}: range is full"));
        self.addresses.take(&self.store, service);
        let spec = metadata::child(metadata::as_map(service), "spec");
        let service_type = spec.get("type").and_then(Value::as_str).unwrap_or("ClusterIP").to_owned();
        let old_spec = old.and_then(|old| old.get("spec"));
        if service_type == "ExternalName" {
            for field in ["clusterIP", "clusterIPs"] {
                spec.remove(field);
            }
            return Ok(());
        }
        let stated =
            spec.get("clusterIP").and_then(Value::as_str).filter(|address| !address.is_empty()).map(str::to_owned);
        let kept = old_spec.and_then(|spec| spec.get("clusterIP")).and_then(Value::as_str).map(str::to_owned);
        let address = match stated.or(kept) {
            Some(address) => address,
            None => self.addresses.address(&self.store).ok_or_else(|| full("serviceIP"))?,
        };
        spec.insert("clusterIP".to_owned(), address.as_str().into());
        spec.insert("clusterIPs".to_owned(), json!([address]));
        spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
        spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
        let local = spec.get("externalTrafficPolicy").and_then(Value::as_str) == Some("Local");
        if service_type == "LoadBalancer" && local && !spec.contains_key("healthCheckNodePort") {
            let kept = old_spec.and_then(|spec| spec.get("healthCheckNodePort")).cloned();
            let port = match kept {
                Some(port) => port,
                None => self.addresses.port(&self.store).ok_or_else(|| full("healthCheckNodePort"))?.into(),
            };
            spec.insert("healthCheckNodePort".to_owned(), port);
        }
        if matches!(service_type.as_str(), "NodePort" | "LoadBalancer")
            && spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false))
        {
            let old_ports = old_spec.and_then(|spec| spec.get("ports")).and_then(Value::as_array).into_iter().flatten();
            let known: HashMap<Option<i64>, Value> = old_ports
                .filter_map(|port| Some((port.get("port").and_then(Value::as_i64), port.get("nodePort")?.clone())))
                .collect();
            for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                let number = port.get("port").and_then(Value::as_i64);
                let port = metadata::as_map(port);
                if !port.contains_key("nodePort") {
                    let node_port = match known.get(&number) {
                        Some(port) => port.clone(),
                        None => self.addresses.port(&self.store).ok_or_else(|| full("nodePort"))?.into(),
                    };
                    port.insert("nodePort".to_owned(), node_port);
                }
            }
        }
        Ok(())
    }
}

/// A Pod that names no ServiceAccount runs as that which every namespace has.
fn default_account(pod: &mut Value) {
    let spec = metadata::child(metadata::as_map(pod), "spec");
    for field in ["serviceAccountName", "serviceAccount"] {
        if spec.get(field).and_then(Value::as_str).unwrap_or_default().is_empty() {
            spec.insert(field.to_owned(), "default".into());
        }
    }
}
