//! Provisioners without a sandbox, on any bundle.

use chandler_core::Object;
use chandler_sdk::{
    Failure, Provisioner,
    testing::{Bundle, Recorder, run},
};
use serde_json::Value;

use crate::{archive::Archive, findings::assert_explained, memory};

/// The memory that a bundle may take: type tables and a few copies of each object for each byte of YAML, and expanded aliases.
const FIXED: usize = 64 << 20;
const PER_BYTE: usize = 2000;

/// Asserts that the result is objects that the host accepts, or findings that explain themselves; always the same, in bounded memory.
pub(crate) fn holds<P: Provisioner>(archive: &Archive, input: &[u8]) {
    let bundle = Bundle::new(archive.files.clone());
    let request = archive.guest_request();
    let once = memory::bounded(input, FIXED, PER_BYTE, || run::<P>(&bundle, &request));
    match &once {
        Ok(release) => {
            assert!(!release.objects.is_empty() || !release.findings.is_empty(), "neither objects nor findings");
            release.findings.iter().for_each(|finding| assert_explained(finding, &archive.files));
            release.objects.iter().for_each(assert_object);
        }
        Err(failure @ Failure::Internal(_)) => panic!("an internal failure: {failure}"),
        Err(failure) => {
            assert!(!failure.diagnostics().is_empty(), "a failure without findings");
            failure.diagnostics().iter().for_each(|finding| assert_explained(finding, &archive.files));
        }
    }
    let again = run::<P>(&bundle, &request);
    assert_eq!(fingerprint(once), fingerprint(again), "another result for the same input");
}

/// Asserts that the format is detected and the schema created without a panic, always the same, and that the schema is valid.
///
pub(crate) fn looks<P: Provisioner>(archive: &Archive, input: &[u8]) {
    let bundle = Bundle::new(archive.files.clone());
    let (format, schema) = memory::bounded(input, FIXED, PER_BYTE, || (P::detect(&bundle), P::config_schema(&bundle)));
    assert_eq!(format, P::detect(&bundle));
    assert_eq!(schema, P::config_schema(&bundle));
    if let Ok(Some(schema)) = schema {
        let schema: Value = serde_json::from_str(&schema).expect("a schema is JSON");
        assert!(schema.is_object(), "a schema is an object: {schema}");
    }
    // A bundle must be detected before it is provisioned, and a detected format must have a schema.
    if let Some(format) = format {
        assert!(!format.is_empty() && format.len() < 256, "{format:?}");
    }
}

fn assert_object(object: &chandler_sdk::testing::Emitted) {
    let text = object.value.to_string();
    let parsed = Object::parse(text.as_bytes(), object.stage.unwrap_or_default(), None);
    let parsed = parsed.unwrap_or_else(|error| panic!("the host refuses an object that the harness took: {error}"));
    assert_eq!(Some(parsed.key.kind.as_str()), object.value["kind"].as_str());
}

fn fingerprint(result: Result<Recorder, Failure>) -> Result<String, Failure> {
    result.map(|release| format!("{:?} {:?} {:?}", release.objects, release.probes, release.findings))
}
