//! Records the output, with the checks of the host.

use std::collections::BTreeMap;

use chandler_yaml::unique_json;
use serde_json::Value;

use super::Limits;
use crate::{Description, Diagnostic, Location, ObjectId, Output, Probe, Refusal};

/// The maximum number of bytes of one probe.
const PROBE_BYTES: usize = 16 << 10;

/// An emitted object.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// The object.
    pub value: Value,
    /// Its stage.
    pub stage: Option<u32>,
    /// Its location in the content.
    pub origin: Option<Location>,
}

/// Records the output, with the checks of the host: after a refusal it refuses everything, and [`run`](super::run)
/// fails.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// The objects, as emitted. The id of an object is its index.
    pub objects: Vec<Emitted>,
    /// The probes.
    pub probes: Vec<Probe>,
    /// The findings that do not block the release.
    pub findings: Vec<Diagnostic>,
    /// The last description.
    pub description: Description,
    limits: Limits,
    bytes: u64,
    identities: BTreeMap<Identity, usize>,
    refusal: Option<(Refusal, String)>,
}

impl Recorder {
    /// An empty recorder with these limits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The first refusal, if any.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_ref().map(|(_, reason)| reason.as_str())
    }

    fn refuse(&mut self, refusal: Refusal, reason: String) -> Refusal {
        self.refusal = Some((refusal.clone(), reason));
        refusal
    }

    /// Validates a probe.
    fn check(&self, probe: &Probe) -> Result<(), (Refusal, String)> {
        let Probe { selector, rule, message, message_expression } = probe;
        let labels = selector.labels.iter().flat_map(|(name, value)| [name, value]);
        let optional = [&selector.namespace, &selector.name, message, message_expression].into_iter().flatten();
        let texts = [&selector.group, &selector.kind, rule].into_iter().chain(optional).chain(labels);
        if self.probes.len() >= self.limits.probes as usize {
            return Err((Refusal::TooMany, format!("there are more than {} probes", self.limits.probes)));
        }
        if texts.map(String::len).sum::<usize>() > PROBE_BYTES {
            return Err((Refusal::TooLarge, format!("it has more than {PROBE_BYTES} bytes")));
        }
        let malformed = |reason| (Refusal::Malformed, reason);
        for (field, text) in [("kind", &selector.kind), ("rule", rule)] {
            if text.is_empty() {
                return Err(malformed(format!("it has no {field}")));
            }
        }
        #[cfg(feature = "checks")]
        for (field, text) in [("rule", Some(rule)), ("messageExpression", message_expression.as_ref())] {
            if let Some(error) = text.and_then(|text| cel::Program::compile(text).err()) {
                return Err(malformed(format!("its {field} is not CEL: {error}")));
            }
        }
        Ok(())
    }
}

impl Output for Recorder {
    fn emit(&mut self, object: &[u8], stage: Option<u32>, origin: Option<Location>) -> Result<ObjectId, Refusal> {
        if let Some((refusal, _)) = &self.refusal {
            return Err(refusal.clone());
        }
        let index = self.objects.len();
        let bytes = self.bytes.saturating_add(object.len() as u64);
        for (exceeded, refusal, limit, what) in [
            (index >= self.limits.objects as usize, Refusal::TooMany, self.limits.objects.into(), "objects"),
            (
                object.len() as u64 > self.limits.object_bytes,
                Refusal::TooLarge,
                self.limits.object_bytes,
                "bytes in one object",
            ),
            (bytes > self.limits.output_bytes, Refusal::TooMany, self.limits.output_bytes, "bytes in all objects"),
        ] {
            if exceeded {
                return Err(self.refuse(refusal, format!("object {index} exceeds the limit of {limit} {what}")));
            }
        }
        let read = unique_json::from_slice(object).map_err(|error| error.to_string());
        let (value, identity) = read
            .and_then(|value| identity(&value).map(|identity| (value, identity)))
            .map_err(|reason| self.refuse(Refusal::Malformed, format!("object {index} {reason}")))?;
        if let Some(first) = self.identities.get(&identity) {
            let [group, kind, namespace, name] = &identity;
            let reason = format!("object {index} duplicates object {first}: {kind}.{group} {namespace}/{name}");
            return Err(self.refuse(Refusal::Duplicate, reason));
        }
        self.identities.insert(identity, index);
        self.bytes = bytes;
        self.objects.push(Emitted { value, stage, origin });
        Ok(ObjectId(u32::try_from(index).unwrap_or(u32::MAX)))
    }

    fn probe(&mut self, probe: &Probe) -> Result<(), Refusal> {
        if let Some((refusal, _)) = &self.refusal {
            return Err(refusal.clone());
        }
        let index = self.probes.len();
        if let Err((refusal, reason)) = self.check(probe) {
            return Err(self.refuse(refusal, format!("probe {index}: {reason}")));
        }
        self.probes.push(probe.clone());
        Ok(())
    }

    fn report(&mut self, finding: &Diagnostic) {
        self.findings.push(finding.clone());
    }

    fn describe(&mut self, bundle: &Description) {
        self.description = bundle.clone();
    }
}

/// Group, kind, namespace and name: the identity of an object.
type Identity = [String; 4];

/// The identity of an object, or why the host refuses it.
fn identity(value: &Value) -> Result<Identity, String> {
    if !value.is_object() {
        return Err("is not a JSON object".to_owned());
    }
    let text = |pointer: &str| value.pointer(pointer)?.as_str().filter(|text| !text.is_empty());
    let required = |pointer: &str, field: &str| text(pointer).ok_or_else(|| format!("has no {field}"));
    let (api_version, kind) = (required("/apiVersion", "apiVersion")?, required("/kind", "kind")?);
    let name = required("/metadata/name", "metadata.name")?;
    let namespace = match value.pointer("/metadata/namespace") {
        None | Some(Value::Null) => "",
        Some(Value::String(namespace)) => namespace,
        Some(_) => return Err("has a metadata.namespace that is not a string".to_owned()),
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let legal = [
        ("apiVersion", api_version, (group.is_empty() || is_segment(group)) && is_segment(version)),
        ("kind", kind, kind.bytes().all(|byte| byte.is_ascii_alphanumeric())),
        ("metadata.name", name, is_segment(name)),
        ("metadata.namespace", namespace, namespace.is_empty() || is_segment(namespace)),
    ];
    match legal.iter().find(|(.., legal)| !legal) {
        Some((field, text, _)) => Err(format!("has an illegal {field}: {text:?}")),
        None => Ok([group, kind, namespace, name].map(str::to_owned)),
    }
}

/// Whether a name is valid in a URL: `IsValidPathSegmentName` in `k8s.io/apimachinery/pkg/api/validation/path`.
fn is_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && name.len() <= 253
        && !name.contains(['/', '%'])
        && !name.chars().any(char::is_control)
}
