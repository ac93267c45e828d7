//! A catalog with packages of the run, whose bundles have a ConfigMap each.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use chandler_api::Catalog;
use chandler_tests::{World, bundles::Bundle};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde_json::{Value, json};

use crate::catalogs;

/// A version of a package: its dependencies by package with their ranges, and the image.
pub(crate) struct Version {
    pub(crate) number: &'static str,
    needs: Vec<(String, String)>,
    pub(crate) image: String,
    /// Whether the versions after it skip it.
    is_skipped: bool,
}

/// Packages with names of the run, and their versions, oldest first: each replaces the one before.
pub(crate) struct Shop<'a> {
    pub(crate) world: &'a World,
    pub(crate) packages: BTreeMap<&'static str, Vec<Version>>,
    /// The last part of the name of its Catalog.
    title: &'static str,
    /// The namespaces that bundles suggest, by package.
    namespaces: BTreeMap<&'static str, String>,
    /// The highest version of OpenShift that bundles run on, by package.
    openshift: BTreeMap<&'static str, &'static str>,
    /// The packages that are platform operators.
    operators: BTreeSet<&'static str>,
    /// The registry that the catalog names, if it is not the run's.
    upstream: Option<&'static str>,
}

impl<'a> Shop<'a> {
    pub(crate) fn new(world: &'a World) -> Self {
        Self::titled(world, "shop")
    }

    /// The shop with these packages, after a change of the world that it belonged to.
    pub(crate) fn reopened(world: &'a World, packages: BTreeMap<&'static str, Vec<Version>>) -> Self {
        Self { packages, ..Self::new(world) }
    }

    /// One of several.
    pub(crate) fn titled(world: &'a World, title: &'static str) -> Self {
        let (packages, namespaces, openshift) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { world, packages, title, namespaces, openshift, operators: BTreeSet::new(), upstream: None }
    }

    /// The bundles of a package suggest a namespace.
    pub(crate) fn suggesting(mut self, package: &'static str, namespace: &str) -> Self {
        self.namespaces.insert(package, namespace.to_owned());
        self
    }

    /// A package is a platform operator.
    pub(crate) fn marking(mut self, package: &'static str) -> Self {
        self.operators.insert(package);
        self
    }

    /// The catalog names this registry instead of the run's.
    pub(crate) fn from(mut self, registry: &'static str) -> Self {
        self.upstream = Some(registry);
        self
    }

    /// The bundles of a package that are added from now on run on OpenShift up to this version.
    pub(crate) fn up_to(mut self, package: &'static str, openshift: &'static str) -> Self {
        self.openshift.insert(package, openshift);
        self
    }

    /// The name of a package, and of its BundleDeployment if no PlatformOperator wants it.
    pub(crate) fn name(&self, package: &str) -> String {
        format!("{}-{package}", self.world.run())
    }

    /// Adds a version whose bundle has one ConfigMap. It needs packages, or packages and ranges: `base`, `base <2.0.0`.
    pub(crate) async fn with(mut self, package: &'static str, version: &'static str, needs: &[&str]) -> Self {
        let image = self.world.push(&self.bundle(package, version)).await;
        self.add(package, version, needs, image);
        self
    }

    /// Adds a version whose operator can only watch its own namespace.
    pub(crate) async fn with_own_namespace(mut self, package: &'static str, version: &'static str) -> Self {
        let image = self.world.push(&self.bundle_with(package, version, "OwnNamespace", &json!({}))).await;
        self.add(package, version, &[], image);
        self
    }

    /// Adds a version whose image cannot be fetched.
    pub(crate) fn with_broken(mut self, package: &'static str, version: &'static str, needs: &[&str]) -> Self {
        self.add(package, version, needs, format!("{}/broken:v{version}", self.world.registry.address()));
        self
    }

    /// Adds a version whose bundle has a workload that never becomes healthy.
    pub(crate) async fn with_failing(mut self, package: &'static str, version: &'static str, needs: &[&str]) -> Self {
        let labels = json!({"app": package});
        let container = json!({"name": "main", "image": "registry.invalid/failing:v1"});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
        let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": template});
        let workload =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": package}, "spec": spec});
        let bundle = self.bundle(package, version).with("manifests/workload.json", &workload.to_string());
        let image = self.world.push(&bundle).await;
        self.add(package, version, needs, image);
        self
    }

    /// The versions of a package that are added from now on skip its last one.
    pub(crate) fn skipping(mut self, package: &'static str) -> Self {
        if let Some(version) = self.packages.entry(package).or_default().last_mut() {
            version.is_skipped = true;
        }
        self
    }

    /// Adds a version that needs a newer Kubernetes than there is. Only its image says so, not the catalog.
    pub(crate) async fn with_future(mut self, package: &'static str, version: &'static str) -> Self {
        let csv = json!({"minKubeVersion": "9.99.0"});
        let image = self.world.push(&self.bundle_with(package, version, "AllNamespaces", &csv)).await;
        self.add(package, version, &[], image);
        self
    }

    /// Adds a version whose bundle has a workload with one replica, which stops before the new one starts.
    pub(crate) async fn with_single(mut self, package: &'static str, version: &'static str) -> Self {
        let labels = json!({"app": package});
        let container = json!({"name": "main", "image": format!("registry.example.com/single:v{version}")});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
        let selector = json!({"matchLabels": labels});
        let spec = json!({"replicas": 1, "strategy": {"type": "Recreate"}, "selector": selector, "template": template});
        let workload =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": package}, "spec": spec});
        let bundle = self.bundle(package, version).with("manifests/workload.json", &workload.to_string());
        let image = self.world.push(&bundle).await;
        self.add(package, version, &[], image);
        self
    }

    /// Adds a version whose bundle also has a ConfigMap with this name.
    pub(crate) async fn with_map(self, package: &'static str, version: &'static str, name: &str) -> Self {
        self.with_map_and_needs(package, version, name, &[]).await
    }

    /// Like [`Shop::with_map`], with packages that it needs.
    pub(crate) async fn with_map_and_needs(
        mut self,
        package: &'static str,
        version: &'static str,
        name: &str,
        needs: &[&str],
    ) -> Self {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let image =
            self.world.push(&self.bundle(package, version).with("manifests/other.json", &map.to_string())).await;
        self.add(package, version, needs, image);
        self
    }

    /// Adds a version whose bundle is of the format plain+v0 and has its ConfigMap and these objects.
    pub(crate) async fn with_plain(
        mut self,
        package: &'static str,
        version: &'static str,
        needs: &[&str],
        objects: &[Value],
    ) -> Self {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": package}, "data": {"version": version}});
        let files = std::iter::once(&map).chain(objects).enumerate();
        let bundle = files.fold(Bundle::empty(), |bundle, (index, object)| {
            bundle.with(&format!("manifests/{index}.json"), &object.to_string())
        });
        let image = self.world.push(&bundle).await;
        self.add(package, version, needs, image);
        self
    }

    /// Pushes a bundle that calls itself a version of a package, and that no catalog has. It has a ConfigMap `impostor-PACKAGE`.
    pub(crate) async fn impostor(&self, package: &str, version: &str) -> String {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("impostor-{package}")}, "data": {"version": version}});
        self.world.push(&self.bundle(package, version).with("manifests/map.json", &map.to_string())).await
    }

    fn add(&mut self, package: &'static str, version: &'static str, needs: &[&str], image: String) {
        let needed = |text: &&str| {
            let (needed, range) = text.split_once(' ').unwrap_or((text, ">=0.0.0"));
            (self.name(needed), range.to_owned())
        };
        let needs = needs.iter().map(needed).collect();
        self.packages.entry(package).or_default().push(Version { number: version, needs, image, is_skipped: false });
    }

    /// The bundle of a version.
    pub(crate) fn bundle(&self, package: &str, version: &str) -> Bundle {
        self.bundle_with(package, version, "AllNamespaces", &json!({}))
    }

    /// The bundle of a version whose operator has this install mode, and whose ClusterServiceVersion has more fields of the spec.
    fn bundle_with(&self, package: &str, version: &str, mode: &str, further: &Value) -> Bundle {
        let name = self.name(package);
        let annotation =
            |key: &str, value: &str| format!("  operators.operatorframework.io.bundle.{key}.v1: {value}\n");
        let annotations = [
            annotation("mediatype", "registry+v1"),
            annotation("manifests", "manifests/"),
            annotation("metadata", "metadata/"),
            annotation("package", &name),
            annotation("channels", "stable"),
            annotation("channel.default", "stable"),
        ];
        let mut csv = json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
            "metadata": {"name": format!("{name}.v{version}")},
            "spec": {
                "version": version, "displayName": name,
                "installModes": [{"type": mode, "supported": true}],
                "install": {"strategy": "deployment", "spec": {"deployments": []}},
            },
        });
        for (field, value) in further.as_object().into_iter().flatten() {
            csv["spec"][field] = value.clone();
        }
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": package}, "data": {"version": version}});
        let limit = self.openshift.get(package).map(|most| json!([{"type": "olm.maxOpenShiftVersion", "value": most}]));
        let properties = json!({"properties": limit.unwrap_or_else(|| json!([]))});
        Bundle::empty()
            .with("metadata/properties.yaml", &properties.to_string())
            .with("metadata/annotations.yaml", &format!("annotations:\n{}", annotations.concat()))
            .with("manifests/csv.json", &csv.to_string())
            .with("manifests/map.json", &map.to_string())
    }

    /// The documents of the catalog.
    fn catalog(&self) -> String {
        let mut documents = String::new();
        for (package, versions) in &self.packages {
            let name = self.name(package);
            let mut entries = Vec::new();
            let (mut before, mut skipped): (Option<&str>, Vec<String>) = (None, Vec::new());
            for Version { number: version, needs, image, is_skipped } in versions {
                let replaces = before.map(|it| format!(", replaces: {name}.v{it}")).unwrap_or_default();
                let skips =
                    if skipped.is_empty() { String::new() } else { format!(", skips: [{}]", skipped.join(", ")) };
                entries.push(format!("{{name: {name}.v{version}{replaces}{skips}}}"));
                if *is_skipped {
                    skipped.push(format!("{name}.v{version}"));
                } else {
                    (before, skipped) = (Some(*version), Vec::new());
                }
                let mut more = needs.iter().fold(String::new(), |mut text, (needed, range)| {
                    let _ = write!(
                        text,
                        ", {{type: olm.package.required, value: {{packageName: {needed}, versionRange: '{range}'}}}}"
                    );
                    text
                });
                if let Some(most) = self.openshift.get(package) {
                    let _ = write!(more, ", {{type: olm.maxOpenShiftVersion, value: '{most}'}}");
                }
                if self.operators.contains(package) {
                    more.push_str(", {type: chandler.dev/platform-operator, value: true}");
                }
                let image = match self.upstream {
                    Some(upstream) => image.replace(&self.world.registry.address().to_string(), upstream),
                    None => image.clone(),
                };
                if let Some(namespace) = self.namespaces.get(package) {
                    let annotation = format!("{{operatorframework.io/suggested-namespace: {namespace}}}");
                    let _ = write!(more, ", {{type: olm.csv.metadata, value: {{annotations: {annotation}}}}}");
                }
                let _ = write!(
                    documents,
                    "---\nschema: olm.bundle\npackage: {name}\nname: {name}.v{version}\nimage: {image}\nproperties: \
                     [{{type: olm.package, value: {{packageName: {name}, version: {version}}}}}{more}]\n"
                );
            }
            let entries = entries.join(", ");
            let _ = write!(
                documents,
                "---\nschema: olm.package\nname: {name}\ndefaultChannel: stable\n---\nschema: olm.channel\npackage: \
                 {name}\nname: stable\nentries: [{entries}]\n"
            );
        }
        documents
    }

    /// Pushes the catalog; a Catalog of the cluster that polls it has it soon.
    pub(crate) async fn publish(&self) -> String {
        let repository = format!("catalogs/{}", self.title);
        catalogs::push_to(&self.world.registry, &repository, &[("catalog.yaml", &self.catalog())]).await
    }

    /// The version that the ConfigMap of a package has.
    pub(crate) async fn installed(&self, package: &str) -> Option<String> {
        self.installed_in(&self.world.namespace, package).await
    }

    /// The version that the ConfigMap of a package in this namespace has.
    pub(crate) async fn installed_in(&self, namespace: &str, package: &str) -> Option<String> {
        let maps: Api<ConfigMap> = Api::namespaced(self.world.client.clone(), namespace);
        let map = maps.get_opt(package).await.expect("the API server answers")?;
        map.data?.remove("version")
    }
}

/// Creates the Catalog, and waits until it can be used.
pub(crate) async fn catalog(shop: &Shop<'_>) -> String {
    let (world, name) = (shop.world, shop.name(shop.title));
    let reference = shop.publish().await;
    let source = json!({"type": "image", "image": {"ref": reference}});
    let spec = json!({"source": source, "pollInterval": "1s"});
    let _: Catalog = world.create(json!({"metadata": {"name": name}, "spec": spec})).await;
    catalogs::ready(world, &name).await;
    name
}
