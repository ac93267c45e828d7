//! The state of other objects that the health of an object depends on: endpoints of Services and binding modes of storage
//! classes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::Value;

use crate::reader::Reader;

/// The label of an EndpointSlice that names its Service (`discovery.k8s.io/v1`, `LabelServiceName`).
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Service {}/{}", self.namespace, self.name)
    }
}

/// The state of objects that others depend on. An object is not unhealthy because of a dependency that was not read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependencies {
    /// The number of ready endpoints of each Service whose endpoints were read.
    endpoints: BTreeMap<ServiceName, usize>,
    /// Storage classes that bind a volume when the first pod uses the claim.
    waiting_classes: BTreeSet<String>,
    /// Whether Services without an entry are not due yet. Otherwise they were only not read.
    staged: bool,
}

impl Dependencies {
    /// Records that the endpoints of a Service are read. It has none until a slice is added.
    pub fn look_at(&mut self, service: ServiceName) {
        self.endpoints.entry(service).or_default();
    }

    /// Counts the ready endpoints of an EndpointSlice for its Service.
    ///
    /// A missing condition `ready` counts as true, as the API defines it.
    pub fn add_slice(&mut self, slice: &Value) {
        let slice = Reader(slice);
        let labels = slice.0.get("metadata").and_then(|metadata| metadata.get("labels"));
        let Some(name) = labels.and_then(|labels| labels.get(SERVICE_NAME)).and_then(Value::as_str) else { return };
        let service = ServiceName { namespace: slice.text("/metadata/namespace").to_owned(), name: name.to_owned() };
        let Some(count) = self.endpoints.get_mut(&service) else { return };
        let ready = |endpoint: &Reader<'_>| {
            endpoint.0.pointer("/conditions/ready").is_none_or(|ready| ready.as_bool() != Some(false))
        };
        *count = count.saturating_add(slice.list("/endpoints").filter(ready).count());
    }

    /// Records how a StorageClass binds volumes.
    pub fn add_storage_class(&mut self, class: &Value) {
        let class = Reader(class);
        if class.text("/volumeBindingMode") == "WaitForFirstConsumer" {
            self.waiting_classes.insert(class.text("/metadata/name").to_owned());
        }
    }

    /// A copy without the Services that need not have endpoints yet.
    #[must_use]
    pub fn only(&self, is_due: impl Fn(&ServiceName) -> bool) -> Self {
        let mut due = self.clone();
        due.endpoints.retain(|service, _| is_due(service));
        due.staged = true;
        due
    }

    /// Whether what calls a Service must be able to trust it by now. The controller that fills in CA bundles, and the Certificate that it
    /// takes them from, may be in the stage of the workload behind the Service.
    pub(crate) fn is_due(&self, service: &ServiceName) -> bool {
        !self.staged || self.endpoints.contains_key(service)
    }

    /// Whether a Service is known to have no ready endpoint.
    pub fn lacks_endpoints(&self, service: &ServiceName) -> bool {
        self.endpoints.get(service) == Some(&0)
    }

    pub(crate) fn waits_for_consumer(&self, class: &str) -> bool {
        self.waiting_classes.contains(class)
    }
}
