//! The currently served resources: built-in ones and established CRDs.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use chandler_devcluster_apimachinery::schema::{
    Builtins, CustomResourceDefinition, CustomResourceVersion, GroupVersionKind, ResourceType, Schema,
};
use parking_lot::RwLock;

use crate::status::GroupResource;

/// A resource in one version, as served.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Names, scope, subresources, type.
    pub resource_type: ResourceType,
    /// The name of its table in the store, e.g. `deployments.apps`: one for all its versions.
    pub table: Arc<str>,
    /// The `apiVersion` in which objects are stored.
    pub storage_api_version: String,
    /// Set only for custom resources.
    pub custom: Option<Arc<Custom>>,
}

/// Set only for custom resources.
#[derive(Debug)]
pub struct Custom {
    /// The CRD's name.
    pub crd: String,
    /// Kind of a list.
    pub list_kind: String,
    /// The version.
    pub version: CustomResourceVersion,
    /// Whether objects keep unknown fields everywhere.
    pub preserve_unknown_fields: bool,
    /// Whether the schema may have changed since objects were stored, so that reading has to fill in defaults.
    pub default_on_read: bool,
    /// Whether the CRD is being deleted, so that nothing may be created.
    pub terminating: bool,
}

impl Resource {
    fn builtin(resource_type: &ResourceType) -> Self {
        let gvk = &resource_type.group_version_kind;
        // Two kinds are stored once and served under two versions or groups; see `convert`.
        let (table, storage_api_version) = match (gvk.group.as_str(), resource_type.plural.as_str()) {
            ("events.k8s.io" | "", "events") => (Arc::from("events"), "v1".to_owned()),
            ("autoscaling", plural) => (Arc::from(format!("{plural}.autoscaling")), "autoscaling/v2".to_owned()),
            (group, plural) => (table_name(group, plural), gvk.api_version()),
        };
        Self { resource_type: resource_type.clone(), table, storage_api_version, custom: None }
    }

    /// The kind.
    pub fn kind(&self) -> &GroupVersionKind {
        &self.resource_type.group_version_kind
    }

    /// The kind of a list.
    pub fn list_kind(&self) -> String {
        self.custom.as_ref().map_or_else(|| format!("{}List", self.kind().kind), |custom| custom.list_kind.clone())
    }

    /// Name in URLs.
    pub fn plural(&self) -> &str {
        &self.resource_type.plural
    }

    /// Group and name.
    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.kind().group.clone(), plural: self.resource_type.plural.clone() }
    }

    /// Whether objects live in namespaces.
    pub fn namespaced(&self) -> bool {
        self.resource_type.namespaced
    }

    /// The type.
    pub fn schema(&self) -> &Schema {
        &self.resource_type.schema
    }

    /// Whether this is the core group's resource with this name.
    pub fn is_core(&self, plural: &str) -> bool {
        self.kind().group.is_empty() && self.resource_type.plural == plural
    }

    /// Whether this is a CRD.
    pub fn is_crd(&self) -> bool {
        self.kind().group == "apiextensions.k8s.io" && self.kind().kind == "CustomResourceDefinition"
    }

    /// Whether this is a ValidatingAdmissionPolicy.
    pub fn is_policy(&self) -> bool {
        self.kind().group == "admissionregistration.k8s.io" && self.kind().kind == "ValidatingAdmissionPolicy"
    }

    /// Whether objects are served in the version in which they are stored.
    pub fn is_storage_version(&self) -> bool {
        self.kind().api_version() == self.storage_api_version
    }
}

/// The name of a resource's table.
pub fn table_name(group: &str, plural: &str) -> Arc<str> {
    if group.is_empty() { Arc::from(plural) } else { Arc::from(format!("{plural}.{group}")) }
}

/// A snapshot of the served resources. Immutable; a change of the CRDs creates a new one.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// In discovery order: groups as they first appear, within a group the preferred version first.
    resources: Vec<Arc<Resource>>,
    by_path: HashMap<(String, String, String), Arc<Resource>>,
    by_kind: HashMap<GroupVersionKind, Arc<Resource>>,
    group_versions: HashMap<(String, String), Arc<GroupVersion>>,
    groups: Vec<(String, Vec<String>)>,
    documents: Documents,
}

/// The resources of one group and version; snapshots in which they are the same share it.
#[derive(Debug, Default)]
struct GroupVersion {
    resources: Vec<Arc<Resource>>,
    documents: Documents,
}

/// Discovery and OpenAPI documents, rendered on first use.
#[derive(Debug, Default)]
struct Documents(RwLock<HashMap<String, Bytes>>);

impl Documents {
    fn get_or_render(&self, name: &str, render: impl FnOnce() -> Bytes) -> Bytes {
        if let Some(document) = self.0.read().get(name) {
            return document.clone();
        }
        let document = render();
        self.0.write().insert(name.to_owned(), document.clone());
        document
    }
}

impl GroupVersion {
    /// The resources to serve. Returns the previous value if they are unchanged.
    fn all(resources: &[Arc<Resource>], before: &Snapshot) -> HashMap<(String, String), Arc<Self>> {
        let mut all: HashMap<(String, String), Vec<Arc<Resource>>> = HashMap::new();
        for resource in resources {
            let kind = resource.kind();
            all.entry((kind.group.clone(), kind.version.clone())).or_default().push(Arc::clone(resource));
        }
        let same = |before: &Self, resources: &[Arc<Resource>]| {
            before.resources.len() == resources.len()
                && before.resources.iter().zip(resources).all(|(before, now)| Arc::ptr_eq(before, now))
        };
        let reused = |(name, resources): ((String, String), Vec<_>)| {
            let kept = before.group_versions.get(&name).filter(|kept| same(kept, &resources)).cloned();
            (name, kept.unwrap_or_else(|| Arc::new(Self { resources, documents: Documents::default() })))
        };
        all.into_iter().map(reused).collect()
    }
}

impl Snapshot {
    fn new(resources: Vec<Arc<Resource>>, before: &Self) -> Self {
        let by_path = resources.iter().map(|resource| {
            let kind = resource.kind();
            ((kind.group.clone(), kind.version.clone(), resource.plural().to_owned()), Arc::clone(resource))
        });
        let by_kind = resources.iter().map(|resource| (resource.kind().clone(), Arc::clone(resource)));
        Self {
            by_path: by_path.collect(),
            by_kind: by_kind.collect(),
            group_versions: GroupVersion::all(&resources, before),
            groups: groups(&resources),
            resources,
            documents: Documents::default(),
        }
    }

    /// A document that depends on nothing but this snapshot, rendered on first use.
    pub fn document(&self, name: &str, render: impl FnOnce() -> Bytes) -> Bytes {
        self.documents.get_or_render(name, render)
    }

    /// A document that depends on nothing but the resources of a group and version, rendered on first use: it stays when
    /// others change.
    pub fn document_of(&self, group: &str, version: &str, name: &str, render: impl FnOnce() -> Bytes) -> Bytes {
        match self.group_versions.get(&(group.to_owned(), version.to_owned())) {
            Some(found) => found.documents.get_or_render(name, render),
            None => render(),
        }
    }

    /// Every resource, in discovery order.
    pub fn resources(&self) -> &[Arc<Resource>] {
        &self.resources
    }

    /// The resource under a path.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// The resource of a kind.
    pub fn kind(&self, kind: &GroupVersionKind) -> Option<&Arc<Resource>> {
        self.by_kind.get(kind)
    }

    /// The resource of a table, in the version in which it is stored.
    pub fn table(&self, table: &str) -> Option<&Arc<Resource>> {
        self.resources
            .iter()
            .find(|resource| &*resource.table == table && resource.is_storage_version())
            .or_else(|| self.resources.iter().find(|resource| &*resource.table == table))
    }

    /// Groups in discovery order with their versions, the preferred one first.
    pub fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        self.groups
            .iter()
            .map(|(group, versions)| (group.as_str(), versions.iter().map(String::as_str).collect()))
            .collect()
    }

    /// Whether there are resources of a group and version.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        self.group_versions.contains_key(&(group.to_owned(), version.to_owned()))
    }

    /// The resources of one group and version.
    pub fn group_version<'a>(&'a self, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Arc<Resource>> {
        let found = self.group_versions.get(&(group.to_owned(), version.to_owned()));
        found.into_iter().flat_map(|found| &found.resources)
    }
}

/// Groups in the order in which they first appear, with their versions, the preferred one first.
fn groups(resources: &[Arc<Resource>]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut seen: HashSet<(&str, &str)> = HashSet::new();
    for resource in resources {
        let kind = resource.kind();
        if !seen.insert((&kind.group, &kind.version)) {
            continue;
        }
        let place = *places.entry(&kind.group).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, versions)) => versions.push(kind.version.clone()),
            None => groups.push((kind.group.clone(), vec![kind.version.clone()])),
        }
    }
    for (_, versions) in &mut groups {
        versions.sort_by_cached_key(|version| std::cmp::Reverse(version_priority(version)));
    }
    groups
}

/// The order of versions (`k8s.io/apimachinery/pkg/version.CompareKubeAwareVersionStrings`): GA before beta before alpha,
/// then the higher number; other names last.
fn version_priority(version: &str) -> (u8, u64, u64) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let split = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at(split);
        let major: u64 = major.parse().ok()?;
        let (stage, minor) = match rest {
            "" => (3, ""),
            _ => (
                if rest.starts_with("beta") { 2 } else { 1 },
                rest.strip_prefix("beta").or(rest.strip_prefix("alpha"))?,
            ),
        };
        let minor = if minor.is_empty() { 0 } else { minor.parse().ok()? };
        Some((stage, major, minor))
    };
    parse().unwrap_or_default()
}

/// The resources that are served; CRDs come and go.
#[derive(Debug)]
pub struct Registry {
    builtins: Vec<Arc<Resource>>,
    custom: RwLock<HashMap<String, Vec<Arc<Resource>>>>,
    snapshot: RwLock<Arc<Snapshot>>,
}

impl Default for Registry {
    fn default() -> Self {
        let builtins = Builtins::get().resources().iter().map(|resource| Arc::new(Resource::builtin(resource)));
        let registry = Self { builtins: builtins.collect(), custom: RwLock::default(), snapshot: RwLock::default() };
        registry.rebuild(&HashMap::new());
        registry
    }
}

impl Registry {
    /// The currently served resources.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshot.read())
    }

    /// Serves the versions of a CRD; see [`Custom`] for the flags.
    pub fn serve(&self, name: &str, crd: CustomResourceDefinition, default_on_read: bool, terminating: bool) {
        let storage = crd.storage_version().map(|version| version.name.clone()).unwrap_or_default();
        let table = table_name(&crd.group, &crd.plural);
        let storage_api_version = format!("{}/{storage}", crd.group);
        let versions = crd.versions.into_iter().filter(|version| version.served).map(|version| {
            Arc::new(Resource {
                resource_type: version.resource.clone(),
                table: Arc::clone(&table),
                storage_api_version: storage_api_version.clone(),
                custom: Some(Arc::new(Custom {
                    crd: name.to_owned(),
                    list_kind: crd.list_kind.clone(),
                    version,
                    preserve_unknown_fields: crd.preserve_unknown_fields,
                    default_on_read,
                    terminating,
                })),
            })
        });
        let versions: Vec<_> = versions.collect();
        self.change(|custom| {
            custom.insert(name.to_owned(), versions);
        });
    }

    /// Stops to serve a CRD.
    pub fn withdraw(&self, name: &str) {
        self.change(|custom| {
            custom.remove(name);
        });
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<String, Vec<Arc<Resource>>>)) {
        let mut custom = self.custom.write();
        change(&mut custom);
        self.rebuild(&custom);
    }

    fn rebuild(&self, custom: &HashMap<String, Vec<Arc<Resource>>>) {
        let mut resources = self.builtins.clone();
        let mut names: Vec<_> = custom.iter().collect();
        names.sort_by_key(|(name, _)| *name);
        resources.extend(names.into_iter().flat_map(|(_, versions)| versions).cloned());
        let snapshot = Arc::new(Snapshot::new(resources, &self.snapshot()));
        *self.snapshot.write() = snapshot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_kubernetes_orders_them() {
        let mut versions = ["v1alpha1", "foo1", "v2beta1", "v1", "v10", "v2", "v1beta2", "v11alpha2", "v3beta1"];
        versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
        assert_eq!(versions, ["v10", "v2", "v1", "v3beta1", "v2beta1", "v1beta2", "v11alpha2", "v1alpha1", "foo1"]);
    }

    #[test]
    fn a_crd_changes_the_documents_of_its_own_group_only() {
        let registry = Registry::default();
        let render = |snapshot: &Snapshot, group: &str, mark: &'static str| {
            snapshot.document_of(group, "v1", "test", || Bytes::from_static(mark.as_bytes()))
        };
        let before = registry.snapshot();
        render(&before, "apps", "first");
        let crd = CustomResourceDefinition::parse(&serde_json::json!({
            "metadata": {"name": "toys.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": {"plural": "toys", "kind": "Toy"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        }))
        .unwrap();
        registry.serve("toys.example.com", crd.clone(), false, false);
        let served = registry.snapshot();
        assert_eq!(render(&served, "example.com", "first"), "first");
        assert_eq!(render(&served, "apps", "second"), "first");
        registry.serve("toys.example.com", crd, true, false);
        let changed = registry.snapshot();
        assert_eq!(render(&changed, "example.com", "second"), "second");
        assert_eq!(render(&changed, "apps", "second"), "first");
    }

    #[test]
    fn events_of_both_groups_share_a_table() {
        let snapshot = Registry::default().snapshot();
        let core = snapshot.resource("", "v1", "events").unwrap();
        let grouped = snapshot.resource("events.k8s.io", "v1", "events").unwrap();
        assert_eq!(core.table, grouped.table);
        assert!(core.is_storage_version() && !grouped.is_storage_version());
        assert_eq!(&*snapshot.resource("apps", "v1", "deployments").unwrap().table, "deployments.apps");
    }
}
