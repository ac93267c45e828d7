//! The objects that a provisioner rendered from a bundle.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer, ser::Error as _};
use serde_json::{Map, Value};

use crate::{Description, Diagnostic, Digest, Object, order, size};

/// A rule that objects of a release must meet before the rollout continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// The objects of the release that the rule applies to.
    pub selector: ProbeSelector,
    /// A CEL expression over `self`, the live object, that must be true.
    pub rule: String,
    /// The message in the status while the rule is not met; a text about the rule if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A CEL expression over `self` that returns the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
}

/// Selects objects of a release. Every field that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSelector {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name; none for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels that the object has in the cluster.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The objects that a provisioner returned, validated and in the order of application.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    digest: Digest,
    objects: Vec<Object>,
    probes: Vec<Probe>,
    findings: Vec<Diagnostic>,
    description: Description,
    memory: usize,
}

impl Release {
    /// Sorts the objects and computes the digest of objects, stages and probes.
    pub fn new(mut objects: Vec<Object>, probes: Vec<Probe>, findings: Vec<Diagnostic>) -> Self {
        order::sort(&mut objects);
        let digest = digest(&objects, &probes);
        let memory = size_of::<Self>() + size::of(&objects, &probes, &findings);
        Self { digest, objects, probes, findings, description: Description::default(), memory }
    }

    /// This release with the metadata of its bundle.
    pub fn described(mut self, description: Description) -> Self {
        self.memory -= size::of_description(&self.description);
        self.memory += size::of_description(&description);
        self.description = description;
        self
    }

    /// The digest of the canonical JSON of stages, objects and probes. Origins, findings and the description do not count,
    /// since they change nothing in the cluster.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The objects in the order of application: by stage, then by kind ([`order`]).
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The probes, as emitted.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// The findings that the provisioner reported without refusing the bundle.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// An estimate of the memory of the release in bytes: about ten times its JSON, and more with many small maps.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The metadata of the bundle, as far as the provisioner reported it.
    pub fn description(&self) -> &Description {
        &self.description
    }
}

fn digest(objects: &[Object], probes: &[Probe]) -> Digest {
    // The text is canonical: serde_json keeps maps sorted (the feature `preserve_order` is off), and the fields of the types below are in
    // alphabetical order.
    Digest::of_json(&Canonical {
        objects: objects.iter().map(|object| (object.stage, &object.value)).collect(),
        probes,
    })
}

/// The input of the digest of a release.
#[derive(Serialize)]
struct Canonical<'a> {
    objects: Vec<(u32, &'a Map<String, Value>)>,
    #[serde(serialize_with = "sorted")]
    probes: &'a [Probe],
}

/// Serializes probes through JSON values, whose fields are sorted.
fn sorted<S: Serializer>(probes: &[Probe], serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::to_value(probes).map_err(S::Error::custom)?.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, stage: u32) -> Object {
        let value = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}});
        Object::parse(value.to_string().as_bytes(), stage, None).unwrap()
    }

    #[test]
    fn the_digest_is_that_of_the_canonical_json() {
        let selector = ProbeSelector { kind: "Service".into(), name: Some("x".into()), ..ProbeSelector::default() };
        let probe = Probe { selector, rule: "true".into(), message: Some("never".into()), ..Probe::default() };
        let release = Release::new(vec![object("Service", 1), object("ConfigMap", 0)], vec![probe], vec![]);
        let text = r#"{"objects":[[0,{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}],[1,{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"}}]],"probes":[{"message":"never","rule":"true","selector":{"group":"","kind":"Service","name":"x"}}]}"#;
        assert_eq!(release.digest(), &Digest::of(text.as_bytes()));
    }

    #[test]
    fn the_digest_does_not_depend_on_the_order_of_emission() {
        let one = Release::new(vec![object("Service", 0), object("ConfigMap", 0)], vec![], vec![]);
        let two = Release::new(vec![object("ConfigMap", 0), object("Service", 0)], vec![], vec![]);
        let staged = Release::new(vec![object("ConfigMap", 1), object("Service", 0)], vec![], vec![]);
        assert_eq!(one, two);
        assert_ne!(one.digest(), staged.digest());
        assert_eq!(staged.objects()[0].key.kind, "Service");
    }
}
