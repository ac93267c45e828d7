//! Everything that a provisioner returned for one bundle, in a form that is written to a file and compared.

use chandler_core::{Description, Diagnostic, Location, Object, Probe, Release};
use chandler_engine::CallError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a provisioner returned. An author may write it by hand, so unknown fields are errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rendering {
    /// The format that `detect` returned; `None` if the provisioner does not recognise the bundle.
    pub format: Option<String>,
    /// Why the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The objects, in the order of application.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<Emitted>,
    /// The probes, as emitted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// The findings that do not block the release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Diagnostic>,
    /// The metadata of the bundle.
    #[serde(default, skip_serializing_if = "Description::is_empty")]
    pub description: Description,
}

/// An object of the release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Emitted {
    /// Its stage.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stage: u32,
    /// Where in the bundle it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Location>,
    /// The object.
    pub object: Map<String, Value>,
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Failure {
    /// The reason of the condition in a status, such as `InvalidContent`.
    pub reason: String,
    /// The host's message, if the provisioner reported no findings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The findings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Diagnostic>,
}

impl Rendering {
    /// A release of content with this format.
    pub fn released(format: Option<String>, release: &Release) -> Self {
        Self {
            format,
            failure: None,
            objects: release.objects().iter().map(Emitted::of).collect(),
            probes: release.probes().to_vec(),
            findings: release.findings().to_vec(),
            description: release.description().clone(),
        }
    }

    /// A call that failed, for content with this format.
    pub fn failed(format: Option<String>, error: &CallError) -> Self {
        Self { format, failure: Some(Failure::of(error)), ..Self::default() }
    }

    /// The outcome of a call.
    pub fn of(format: Option<String>, outcome: &Result<Release, CallError>) -> Self {
        match outcome {
            Ok(release) => Self::released(format, release),
            Err(error) => Self::failed(format, error),
        }
    }
}

impl Emitted {
    fn of(object: &Object) -> Self {
        Self { stage: object.stage, origin: object.origin.clone(), object: object.value.clone() }
    }
}

impl Failure {
    /// The failure that an error reports.
    pub fn of(error: &CallError) -> Self {
        let findings = error.diagnostics().to_vec();
        let message = findings.is_empty().then(|| error.to_string());
        Self { reason: error.reason().as_str().to_owned(), message, findings }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference to skip_serializing_if")]
fn is_zero(stage: &u32) -> bool {
    *stage == 0
}

#[cfg(test)]
mod tests {
    use chandler_core::Severity;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rendering_is_written_without_what_is_empty_and_read_back() {
        let value = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
        let origin = Location { path: "a.yaml".into(), line: Some(1), ..Location::default() };
        let object = Object::from_value(value.as_object().unwrap().clone(), 2, Some(origin)).unwrap();
        let release = Release::new(vec![object], Vec::new(), Vec::new());
        let rendering = Rendering::of(Some("a+v0".into()), &Ok(release));
        let written = serde_json::to_value(&rendering).unwrap();
        assert_eq!(
            written,
            json!({"format": "a+v0", "objects": [{"stage": 2, "origin": {"path": "a.yaml", "line": 1}, "object": value}]})
        );
        assert_eq!(serde_json::from_value::<Rendering>(written).unwrap(), rendering);
    }

    #[test]
    fn a_failure_has_findings_or_the_message_of_the_host() {
        let finding = Diagnostic::new(Severity::Error, "Bad", "it is bad");
        let failed = Rendering::failed(None, &CallError::InvalidContent(vec![finding.clone()])).failure.unwrap();
        assert_eq!((failed.reason.as_str(), failed.message, failed.findings), ("InvalidContent", None, vec![finding]));
        let failed = Rendering::failed(None, &CallError::OutOfMemory { limit: 1 << 20 }).failure.unwrap();
        assert_eq!(failed.reason, "PluginOutOfMemory");
        assert_eq!(failed.message.unwrap(), "the provisioner needs more than 1 MiB of memory");
    }

    #[test]
    fn a_field_that_does_not_exist_is_an_error() {
        let error = serde_json::from_value::<Rendering>(json!({"format": null, "object": []})).unwrap_err();
        assert!(error.to_string().contains("unknown field `object`"), "{error}");
    }
}
