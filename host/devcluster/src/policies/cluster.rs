//! What policies read of this cluster.

use std::sync::Arc;

use chandler_devcluster_apimachinery::{
    access::{Attributes, Decision, User},
    policies::{Cluster, ParamScope, Resource as Named, model::LabelSelector},
    schema::{self, GroupVersionKind},
};
use serde_json::Value;

use super::subresource;
use crate::{
    api::{Api, view},
    convert,
    registry::{Resource, Snapshot},
    store::{Key, Scope},
};

/// This cluster, for a request about a resource.
#[derive(Debug)]
pub struct ThisCluster<'a> {
    api: &'a Api,
    snapshot: Arc<Snapshot>,
    resource: &'a Resource,
}

impl<'a> ThisCluster<'a> {
    /// The cluster as it is now.
    pub fn new(api: &'a Api, resource: &'a Resource) -> Self {
        Self { api, snapshot: api.registry.snapshot(), resource }
    }

    fn find(&self, named: &Named) -> Option<&Arc<Resource>> {
        self.snapshot.resource(&named.group, &named.version, &named.plural)
    }
}

impl Cluster for ThisCluster<'_> {
    fn namespace(&self, name: &str) -> Option<Value> {
        Some(self.api.store.get(&Key::new("namespaces".into(), "", name))?.value().clone())
    }

    fn equivalents(&self, named: &Named, subresource: &str) -> Vec<(Named, GroupVersionKind)> {
        let Some(own) = self.find(named) else { return Vec::new() };
        let same = self.snapshot.resources().iter().filter(|resource| resource.table == own.table);
        let named = same.filter_map(|resource| {
            let kind = resource.kind();
            let named = Named::new(kind.group.as_str(), kind.version.as_str(), resource.plural());
            Some((named, subresource::kind(resource, subresource)?))
        });
        named.collect()
    }

    fn convert(&self, object: &Value, to: &Named, subresource: &str) -> Option<Value> {
        if !matches!(subresource, "" | "status" | "finalize") {
            return Some(object.clone());
        }
        let to = self.find(to)?;
        let stored = convert::to_stored(self.resource, object.clone());
        let mut converted = convert::to_served(to, &stored);
        if let Some(custom) = &to.custom {
            if !custom.preserve_unknown_fields {
                schema::prune(to.schema(), &mut converted);
            }
            schema::default(to.schema(), &mut converted);
        }
        Some(converted)
    }

    fn scope(&self, kind: &GroupVersionKind) -> Option<ParamScope> {
        let resource = self.snapshot.kind(kind)?;
        Some(if resource.namespaced() { ParamScope::Namespaced } else { ParamScope::Cluster })
    }

    fn object(&self, kind: &GroupVersionKind, namespace: &str, name: &str) -> Option<Value> {
        let resource = self.snapshot.kind(kind)?;
        let object = self.api.store.get(&Key::new(Arc::clone(&resource.table), namespace, name))?;
        Some(view::served(resource, &object).into_owned())
    }

    fn objects(
        &self,
        kind: &GroupVersionKind,
        namespace: Option<&str>,
        selector: &LabelSelector,
        each: &mut dyn FnMut(&Value) -> bool,
    ) {
        let Some(resource) = self.snapshot.kind(kind) else { return };
        let scope = Scope { resource: Some(Arc::clone(&resource.table)), namespace: namespace.map(str::to_owned) };
        for (_, object) in self.api.store.list_now(&scope).objects {
            // The labels are known without parsing the object.
            if selector.selects_labels(|key| object.label(key)) && !each(&view::served(resource, &object)) {
                return;
            }
        }
    }

    fn authorize(&self, user: &User, access: &Attributes) -> Decision {
        self.api.authorizer.decide(&self.api.store, user, access)
    }
}
