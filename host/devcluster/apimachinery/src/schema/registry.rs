//! Lookup of built-in resources.

use std::{collections::HashMap, sync::OnceLock};

use crate::schema::{
    model::Schema,
    resources::{self, GroupVersionKind, ResourceType},
    table,
};

/// The resources that a cluster of Kubernetes 1.36 serves without any CRD.
#[derive(Debug)]
pub struct Builtins {
    resources: Vec<ResourceType>,
    by_kind: HashMap<GroupVersionKind, usize>,
}

impl Builtins {
    /// The Kubernetes version whose types these are.
    pub const KUBERNETES_VERSION: &'static str = "v1.36.0";

    /// The table; decoded on first use (some ten milliseconds), then shared.
    pub fn get() -> &'static Self {
        static BUILTINS: OnceLock<Builtins> = OnceLock::new();
        BUILTINS.get_or_init(|| {
            let resources = resources::all();
            let by_kind = resources
                .iter()
                .enumerate()
                .map(|(index, resource)| (resource.group_version_kind.clone(), index))
                .collect();
            Self { resources, by_kind }
        })
    }

    /// Every resource, in discovery order of groups, with the preferred version of a group first.
    pub fn resources(&self) -> &[ResourceType] {
        &self.resources
    }

    /// The resource of a kind.
    pub fn kind(&self, kind: &GroupVersionKind) -> Option<&ResourceType> {
        self.by_kind.get(kind).and_then(|index| self.resources.get(*index))
    }

    /// The resource under a URL: `/apis/<group>/<version>/<plural>`; the core group is empty.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&ResourceType> {
        self.resources.iter().find(|resource| {
            let kind = &resource.group_version_kind;
            kind.group == group && kind.version == version && resource.plural == plural
        })
    }

    /// Groups in discovery order with their versions, the preferred one first; the core group is empty.
    pub fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
        for resource in &self.resources {
            let GroupVersionKind { group, version, .. } = &resource.group_version_kind;
            match groups.iter_mut().find(|(name, _)| name == group) {
                Some((_, versions)) if versions.contains(&version.as_str()) => {}
                Some((_, versions)) => versions.push(version),
                None => groups.push((group, vec![version])),
            }
        }
        groups
    }

    /// A type that is not a resource, by the name of its definition, e.g. `io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta`.
    pub fn definition(&self, name: &str) -> Option<Schema> {
        table::table().schema(name)
    }

    /// The type of `metadata`.
    pub fn object_meta(&self) -> Schema {
        self.definition("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").unwrap_or_else(Schema::any)
    }
}
