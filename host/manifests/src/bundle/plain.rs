//! A plain+v0 bundle.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Bundle, PACKAGE};
use crate::{
    ManifestsError, Profile, Settings, objects,
    render::{ORDER, rank},
    yaml::yaml,
};

/// The run level of operators that no other component needs.
const LEVEL: u8 = 50;
/// The annotation without which the cluster-version operator omits a manifest.
const INCLUDE: &str = "include.release.openshift.io/self-managed-high-availability";

/// A plain+v0 bundle of Chandler: the printed objects, in files that the cluster-version operator and Chandler apply in the same order. With
/// the profile openshift, annotations include them in a release of OpenShift.
///
/// # Errors
/// The settings contradict each other.
pub fn plain(settings: &Settings) -> Result<Bundle, ManifestsError> {
    let mut files = BTreeMap::new();
    for mut object in objects(settings)? {
        let rank = rank(&object);
        let kind = ORDER.get(rank).map(|kind| kind.to_lowercase()).unwrap_or_default();
        if settings.profile == Profile::OpenShift {
            include(&mut object);
        }
        let file: &mut String =
            files.entry(format!("manifests/0000_{LEVEL}_{PACKAGE}_{rank:02}-{kind}.yaml")).or_default();
        file.push_str("---\n");
        file.push_str(&yaml(&object)?);
    }
    let annotations = json!({"annotations": {"operators.operatorframework.io.bundle.mediatype.v1": "plain+v0"}});
    files.insert("metadata/annotations.yaml".to_owned(), yaml(&annotations)?);
    Ok(Bundle { files, omitted: Vec::new() })
}

fn include(object: &mut Value) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let annotations = metadata.map(|metadata| metadata.entry("annotations").or_insert_with(|| json!({})));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.insert(INCLUDE.to_owned(), json!("true"));
    }
}
