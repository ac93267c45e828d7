//! Cluster IPs and node ports.

use std::collections::{HashSet, VecDeque};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use crate::store::{Scope, Store};

/// The first and the last host of 10.96.0.0/16 that are given out; the first ten are left to well-known services.
const HOSTS: (u16, u16) = (11, u16::MAX - 1);
/// The node ports of kube-apiserver's default.
const PORTS: (u16, u16) = (30_000, 32_767);
/// How many that were given out last are taken for used although no Service has them yet.
const RECENT: usize = 64;

/// The allocated addresses. The addresses of Services are read from the store when they are first needed, and again when no address seems
/// to be left, since Services are deleted.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<Allocators>);

#[derive(Debug, Default)]
struct Allocators {
    is_loaded: bool,
    hosts: Allocator,
    ports: Allocator,
}

/// Numbers of a range, given out in turn.
#[derive(Debug, Default)]
struct Allocator {
    last: u16,
    used: HashSet<u16>,
    recent: VecDeque<u16>,
}

impl Allocator {
    /// The next number of a range that is not used.
    fn next(&mut self, (first, end): (u16, u16)) -> Option<u16> {
        let length = end - first + 1;
        let start = if (first..end).contains(&self.last) { self.last + 1 - first } else { 0 };
        let candidate = (0..length).map(|step| first + wrapping(start, step, length));
        let found = candidate.into_iter().find(|number| !self.used.contains(number))?;
        self.last = found;
        self.take(found);
        Some(found)
    }

    fn take(&mut self, number: u16) {
        self.used.insert(number);
        self.recent.push_back(number);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    fn reload(&mut self, used: impl Iterator<Item = u16>) {
        self.used = used.chain(self.recent.iter().copied()).collect();
    }
}

fn wrapping(start: u16, step: u16, length: u16) -> u16 {
    u16::try_from((u32::from(start) + u32::from(step)) % u32::from(length)).unwrap_or_default()
}

impl Addresses {
    /// A cluster IP of 10.96.0.0/16; `None` when all are used.
    pub(crate) fn address(&self, store: &Store) -> Option<String> {
        let mut allocators = self.loaded(store);
        let host = allocators.hosts.next(HOSTS).or_else(|| {
            allocators.load(store);
            allocators.hosts.next(HOSTS)
        })?;
        let [high, low] = host.to_be_bytes();
        Some(format!("10.96.{high}.{low}"))
    }

    /// A node port; `None` when all are used.
    pub(crate) fn port(&self, store: &Store) -> Option<u16> {
        let mut allocators = self.loaded(store);
        allocators.ports.next(PORTS).or_else(|| {
            allocators.load(store);
            allocators.ports.next(PORTS)
        })
    }

    /// Takes an address and ports that a Service states.
    pub(crate) fn take(&self, store: &Store, service: &Value) {
        let mut allocators = self.loaded(store);
        if let Some(host) = host(service) {
            allocators.hosts.take(host);
        }
        ports(service).for_each(|port| allocators.ports.take(port));
    }

    fn loaded(&self, store: &Store) -> MutexGuard<'_, Allocators> {
        let mut allocators = self.0.lock();
        if !allocators.is_loaded {
            allocators.load(store);
        }
        allocators
    }
}

impl Allocators {
    fn load(&mut self, store: &Store) {
        let scope = Scope { resource: Some("services".into()), namespace: None };
        let services = store.list_now(&scope).objects;
        let used =
            |numbers: fn(&Value) -> Vec<u16>| services.iter().flat_map(move |(_, object)| numbers(&object.peek()));
        self.hosts.reload(used(|service| host(service).into_iter().collect()));
        self.ports.reload(used(|service| ports(service).collect()));
        self.is_loaded = true;
    }
}

/// The host part of a Service's cluster IP, if it is in the range that this server allocates.
fn host(service: &Value) -> Option<u16> {
    let address = service.pointer("/spec/clusterIP")?.as_str()?.parse::<std::net::Ipv4Addr>().ok()?;
    let [10, 96, high, low] = address.octets() else { return None };
    Some(u16::from_be_bytes([high, low]))
}

/// The node ports of a Service.
fn ports(service: &Value) -> impl Iterator<Item = u16> {
    let ports = service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let ports = ports.filter_map(|port| port.get("nodePort")?.as_u64());
    let health = service.pointer("/spec/healthCheckNodePort").and_then(Value::as_u64);
    ports.chain(health).filter_map(|port| u16::try_from(port).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::{Expected, Key};

    fn service(store: &Store, name: &str, address: &str, port: u16) {
        let value = json!({"spec": {"clusterIP": address, "ports": [{"port": 80, "nodePort": port}]}});
        store.put(Key::new("services".into(), "default", name), Expected::Absent, value).unwrap();
    }

    #[test]
    fn addresses_of_stored_services_are_not_allocated() {
        let store = Store::default();
        service(&store, "a", "10.96.0.11", 30_001);
        service(&store, "b", "10.96.0.13", 30_000);
        service(&store, "c", "None", 99);
        let addresses = Addresses::default();
        let next = || (addresses.address(&store).unwrap(), addresses.port(&store).unwrap());
        assert_eq!(next(), ("10.96.0.12".to_owned(), 30_002));
        assert_eq!(next(), ("10.96.0.14".to_owned(), 30_003));
        addresses.take(&store, &json!({"spec": {"clusterIP": "10.96.0.15", "healthCheckNodePort": 30_004}}));
        assert_eq!(next(), ("10.96.0.16".to_owned(), 30_005));
    }

    #[test]
    fn node_ports_are_reused_only_after_their_services_are_deleted() {
        let store = Store::default();
        let addresses = Addresses::default();
        let all = usize::from(PORTS.1 - PORTS.0) + 1;
        let first: Vec<u16> = (0..all).map(|_| addresses.port(&store).unwrap()).collect();
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), all);
        // No Service has any of them, but the last ones may be about to be stored.
        let again = addresses.port(&store).unwrap();
        assert!(!first[all - RECENT..].contains(&again));
        for (index, port) in first.iter().enumerate() {
            service(&store, &index.to_string(), "None", *port);
        }
        while addresses.port(&store).is_some() {}
    }
}
