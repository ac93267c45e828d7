//! APIServices: whether what serves an aggregated API is there, in the words of kube-aggregator's availability controllers.

use serde_json::Value;

use super::{
    action::Decision,
    cache::Cache,
    conditions::Conditions,
    fields::{number, text},
    kind::{Key, Kind},
    services::{offers, port_name},
    world::World,
};
use crate::metadata;

const DEFAULT_PORT: i64 = 443;

pub(super) fn reconcile(world: &World<'_>, api_service: &Value) -> Decision {
    let mut decision = Decision::default();
    if metadata::is_deleting(api_service) {
        return decision;
    }
    let (status, reason, message) = judge(world, api_service);
    let mut conditions = Conditions::with_messages(api_service, &world.timestamp());
    conditions.set("Available", status, reason, &message);
    let mut wanted = api_service.get("status").cloned().unwrap_or_default();
    metadata::set(metadata::as_map(&mut wanted), "conditions", conditions.build());
    decision.status(Kind::ApiService, api_service, &wanted);
    decision
}

fn judge(world: &World<'_>, api_service: &Value) -> (&'static str, &'static str, String) {
    let (namespace, name) = (text(api_service, "/spec/service/namespace"), text(api_service, "/spec/service/name"));
    if name.is_empty() {
        return ("True", "Local", "Local APIServices are always available".to_owned());
    }
    let at = format!("service/{name} in {namespace:?}");
    if !world.behaviour(Kind::ApiService, api_service).is_healthy() {
        let version = text(api_service, "/spec/version");
        let group = text(api_service, "/spec/group");
        let address = format!("https://{name}.{namespace}.svc:443/apis/{group}/{version}");
        let message = format!("failing or missing response from {address}: Get {address:?}: context deadline exceeded");
        return ("False", "FailedDiscoveryCheck", message);
    }
    let Some(service) = world.cache.find(Kind::Service, namespace, name) else {
        return ("False", "ServiceNotFound", format!("{at} is not present"));
    };
    let wanted = number(api_service, "/spec/service/port").unwrap_or(DEFAULT_PORT);
    if text(service, "/spec/type") == "ExternalName" {
        return passed();
    }
    let Some(port) = port_name(service, wanted) else {
        return ("False", "ServicePortError", format!("{at} is not listening on port {wanted}"));
    };
    if world.cache.find(Kind::Endpoints, namespace, name).is_none() {
        return ("False", "EndpointsNotFound", format!("cannot find endpoints for {at}"));
    }
    if !offers(world, service, port) {
        let message = format!("endpoints for {at} have no addresses with port name {port:?}");
        return ("False", "MissingEndpoints", message);
    }
    passed()
}

fn passed() -> (&'static str, &'static str, String) {
    ("True", "Passed", "all checks passed".to_owned())
}

/// The APIServices that a Service serves.
pub(super) fn naming(cache: &Cache, service: &Key) -> Vec<Key> {
    let all = cache.namespace(Kind::ApiService, "");
    let named = all.filter(|api_service| {
        text(api_service, "/spec/service/name") == service.name
            && text(api_service, "/spec/service/namespace") == service.namespace
    });
    named.map(|api_service| Key::of(Kind::ApiService, api_service)).collect()
}
