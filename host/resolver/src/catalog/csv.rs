//! What a ClusterServiceVersion says about kinds and versions.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::kind::Kind;

/// The subjects of a ClusterServiceVersion that a resolver reads.
#[derive(Clone, Debug, Default)]
pub struct Csv {
    /// The kinds that it provides.
    pub owned: BTreeSet<Kind>,
    /// The kinds that it requires.
    pub required: BTreeSet<Kind>,
    /// The lowest version of Kubernetes.
    pub min_kubernetes: Option<String>,
}

impl Csv {
    /// Reads a manifest.
    pub fn of_manifest(manifest: &Value) -> Self {
        let spec = manifest.get("spec").unwrap_or(&Value::Null);
        Self::of(spec, "customresourcedefinitions", "apiservicedefinitions")
    }

    /// Reads the value of a property `olm.csv.metadata`.
    pub fn of_metadata(value: &Value) -> Self {
        Self::of(value, "crdDescriptions", "apiServiceDefinitions")
    }

    /// Reads the value of a property `olm.bundle.object` that holds a ClusterServiceVersion.
    pub fn of_object(value: &Value) -> Option<Self> {
        let data = STANDARD.decode(value.get("data")?.as_str()?).ok()?;
        let manifest: Value = serde_json::from_slice(&data).ok()?;
        (manifest.get("kind")?.as_str()? == "ClusterServiceVersion").then(|| Self::of_manifest(&manifest))
    }

    fn of(spec: &Value, crds: &str, services: &str) -> Self {
        let list = |section: &str, name: &str| {
            spec.get(section).and_then(|section| section.get(name)).and_then(Value::as_array).into_iter().flatten()
        };
        let kinds = |name: &str| {
            list(crds, name).filter_map(of_crd).chain(list(services, name).filter_map(of_service)).collect()
        };
        let min_kubernetes = spec.get("minKubeVersion").and_then(Value::as_str).map(str::to_owned);
        Self { owned: kinds("owned"), required: kinds("required"), min_kubernetes }
    }
}

/// A CRD is described by its name, `plural.group`.
fn of_crd(description: &Value) -> Option<Kind> {
    let text = |field: &str| description.get(field).and_then(Value::as_str);
    let (_, group) = text("name")?.split_once('.')?;
    Some(Kind::new(group, text("version")?, text("kind")?))
}

fn of_service(description: &Value) -> Option<Kind> {
    let text = |field: &str| description.get(field).and_then(Value::as_str);
    Some(Kind::new(text("group")?, text("version")?, text("kind")?))
}
