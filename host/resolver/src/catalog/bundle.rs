//! A bundle of a catalog.

use std::collections::BTreeSet;

use semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::csv::Csv;
use crate::{kind::Kind, need::Need, platform::OpenShift, version::VersionRelease};

/// A bundle as a candidate: what it provides, requires and tolerates.
#[derive(Clone, Debug, Default)]
pub struct Bundle {
    /// The name.
    pub name: String,
    /// The image.
    pub image: String,
    /// The version; `None` if the property `olm.package` is missing or malformed, and then the bundle is not a candidate.
    pub version: Option<VersionRelease>,
    /// The kinds that it provides.
    pub provides: BTreeSet<Kind>,
    /// What it requires.
    pub needs: Vec<Need>,
    /// The lowest version of Kubernetes that it runs on.
    pub min_kubernetes: Option<Version>,
    /// The highest version of OpenShift that it runs on.
    pub max_openshift: Option<OpenShift>,
    /// The labels that it has for others that require one.
    pub labels: BTreeSet<String>,
    /// Whether it must not be installed any more: the property `olm.deprecated`.
    pub withdrawn: bool,
    /// The properties as written, for CEL rules.
    pub properties: Vec<Value>,
    /// The malformed properties. A bundle with faults is not a candidate, since its requirements are unknown.
    pub faults: Vec<String>,
}

/// What the files of a bundle say. It counts where the catalog says nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// The package.
    pub package: String,
    /// The name of the bundle.
    pub bundle: String,
    /// The ClusterServiceVersion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv: Option<Value>,
    /// The list `dependencies` of `metadata/dependencies.yaml`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Value>,
    /// The list `properties` of `metadata/properties.yaml`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<Value>,
}

/// What a source says about a bundle, apart by subject.
#[derive(Debug, Default)]
struct Facts {
    provides: BTreeSet<Kind>,
    kinds: Vec<Need>,
    packages: Vec<Need>,
    constraints: Vec<Need>,
    labels: Vec<Need>,
    max_openshift: Vec<OpenShift>,
    csv: Option<Csv>,
}

impl Bundle {
    /// Reads a meta `olm.bundle`; `None` if it has no name.
    pub fn from_meta(meta: &Value) -> Option<Self> {
        let text = |field: &str| meta.get(field).and_then(Value::as_str);
        let properties = meta.get("properties").and_then(Value::as_array).cloned().unwrap_or_default();
        let image = text("image").unwrap_or_default();
        Some(Self::new(text("name")?, image, text("package").unwrap_or_default(), properties))
    }

    /// A bundle with these properties.
    pub fn new(name: &str, image: &str, package: &str, properties: Vec<Value>) -> Self {
        Self::with_csv(name, image, package, properties, None)
    }

    /// A bundle with these properties, and a ClusterServiceVersion that counts where none of them holds one. Catalogs that keep
    /// manifests apart from properties use it.
    pub fn with_csv(name: &str, image: &str, package: &str, properties: Vec<Value>, csv: Option<Csv>) -> Self {
        let mut bundle = Self { name: name.to_owned(), image: image.to_owned(), ..Self::default() };
        let mut facts = bundle.read(package, &properties, Source::Catalog);
        facts.csv = facts.csv.or(csv);
        bundle.properties = properties;
        bundle.fill(facts);
        bundle
    }

    /// The bundle with what its files say where the catalog says nothing.
    #[must_use]
    pub fn with_content(&self, content: &Content) -> Self {
        let mut bundle = self.clone();
        let mut facts = bundle.read(&content.package, &content.properties, Source::Files);
        bundle.dependencies(&content.dependencies, &mut facts);
        if let Some(csv) = &content.csv {
            facts.csv = Some(Csv::of_manifest(csv));
        }
        let said = Said::by(self);
        let mut filled = Self { name: bundle.name.clone(), faults: Vec::new(), ..Self::default() };
        filled.fill(facts);
        if !said.provides {
            bundle.provides = filled.provides;
        }
        if !said.needs {
            bundle.needs = filled.needs;
        }
        bundle.min_kubernetes = bundle.min_kubernetes.or(filled.min_kubernetes);
        bundle.max_openshift = bundle.max_openshift.or(filled.max_openshift);
        bundle.faults.extend(filled.faults);
        bundle
    }

    fn fault(&mut self, what: &str, message: &str) {
        if self.faults.len() < 8 {
            self.faults.push(format!("{what}: {}", message.chars().take(160).collect::<String>()));
        }
    }

    fn read(&mut self, package: &str, properties: &[Value], source: Source) -> Facts {
        let mut facts = Facts::default();
        let mut versions = Vec::new();
        for property in properties {
            let kind = property.get("type").and_then(Value::as_str);
            self.withdrawn |= kind == Some("olm.deprecated");
            let (Some(kind), Some(value)) = (kind, property.get("value")) else { continue };
            let need = match kind {
                "olm.package" if source == Source::Catalog => {
                    versions.push(version(package, value));
                    continue;
                }
                "olm.gvk" => {
                    match Kind::read(value) {
                        Ok(kind) => drop(facts.provides.insert(kind)),
                        Err(error) => self.fault("olm.gvk", &error),
                    }
                    continue;
                }
                "olm.label" => {
                    match label(value) {
                        Ok(label) => drop(self.labels.insert(label)),
                        Err(error) => self.fault("olm.label", &error),
                    }
                    continue;
                }
                "olm.maxOpenShiftVersion" => {
                    match OpenShift::from_property(value) {
                        Ok(most) => facts.max_openshift.push(most),
                        Err(error) => self.fault("olm.maxOpenShiftVersion", &error),
                    }
                    continue;
                }
                "olm.csv.metadata" => {
                    facts.csv.get_or_insert_with(|| Csv::of_metadata(value));
                    continue;
                }
                "olm.bundle.object" => {
                    if let Some(csv) = Csv::of_object(value) {
                        facts.csv.get_or_insert(csv);
                    }
                    continue;
                }
                "olm.package.required" => Need::package(value).map(|need| facts.packages.push(need)),
                "olm.gvk.required" => Need::kind(value).map(|need| facts.kinds.push(need)),
                "olm.label.required" => label(value).map(|label| facts.labels.push(Need::of_label(label))),
                "olm.constraint" => Need::constraint(value).map(|need| facts.constraints.push(need)),
                _ => continue,
            };
            if let Err(error) = need {
                self.fault(kind, &error);
            }
        }
        if source == Source::Catalog {
            match (versions.pop(), versions.pop()) {
                (Some(Ok(version)), None) => self.version = Some(version),
                (Some(Err(error)), None) => self.fault("olm.package", &error),
                (None, _) => self.fault("olm.package", "the property is missing"),
                (Some(_), Some(_)) => self.fault("olm.package", "the property is there twice"),
            }
        }
        facts
    }

    fn dependencies(&mut self, dependencies: &[Value], facts: &mut Facts) {
        for dependency in dependencies {
            let (Some(kind), Some(value)) = (dependency.get("type").and_then(Value::as_str), dependency.get("value"))
            else {
                continue;
            };
            let need = match kind {
                "olm.package" => Need::package(value).map(|need| facts.packages.push(need)),
                "olm.gvk" => Need::kind(value).map(|need| facts.kinds.push(need)),
                "olm.label" => label(value).map(|label| facts.labels.push(Need::of_label(label))),
                "olm.constraint" => Need::constraint(value).map(|need| facts.constraints.push(need)),
                _ => continue,
            };
            if let Err(error) = need {
                self.fault(&format!("dependency {kind}"), &error);
            }
        }
    }

    fn fill(&mut self, facts: Facts) {
        let Facts { provides, kinds, packages, constraints, labels, mut max_openshift, csv } = facts;
        let csv = csv.unwrap_or_default();
        self.provides = if provides.is_empty() { csv.owned } else { provides };
        let required = csv.required.into_iter().map(Need::of_kind);
        self.needs = if kinds.is_empty() { required.collect() } else { kinds };
        self.needs.extend(packages);
        self.needs.extend(labels);
        self.needs.extend(constraints);
        if let Some(text) = csv.min_kubernetes.filter(|text| !text.is_empty()) {
            match crate::platform::kubernetes(&text) {
                Some(version) => self.min_kubernetes = Some(version),
                None => self.fault("minKubeVersion", &format!("{text:?} is not a version")),
            }
        }
        let most = max_openshift.pop();
        if !max_openshift.is_empty() {
            self.fault("olm.maxOpenShiftVersion", "the property is there twice");
        }
        self.max_openshift = most;
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Source {
    Catalog,
    Files,
}

/// The subjects that a catalog speaks of.
struct Said {
    provides: bool,
    needs: bool,
}

impl Said {
    fn by(bundle: &Bundle) -> Self {
        Self { provides: !bundle.provides.is_empty(), needs: !bundle.needs.is_empty() }
    }
}

/// The label of a property `olm.label` or `olm.label.required`.
fn label(value: &Value) -> Result<String, String> {
    let label = value.get("label").and_then(Value::as_str).filter(|label| !label.is_empty());
    label.map(str::to_owned).ok_or_else(|| "it has no label".to_owned())
}

fn version(package: &str, value: &Value) -> Result<VersionRelease, String> {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let name = text("packageName").ok_or("it has no packageName")?;
    if name != package {
        return Err(format!("it names package {name:?}"));
    }
    let release = text("release").filter(|release| !release.is_empty());
    VersionRelease::parse(text("version").ok_or("it has no version")?, release).map_err(|error| error.to_string())
}
