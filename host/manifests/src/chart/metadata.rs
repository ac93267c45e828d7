//! What describes the chart.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::values::{OWN, PROFILE};
use crate::{
    ManifestsError, SETTINGS, Settings, VERSION,
    about::{DESCRIPTION, LICENSE, REPOSITORY},
    yaml::yaml,
};

/// What Helm prints after an installation.
pub(super) const NOTES: &str = "\
Chandler {{ .Chart.AppVersion }} is installed in the namespace {{ .Release.Namespace }}.

  kubectl rollout status -n {{ .Release.Namespace }} deployment/chandler
  chandler doctor
{{- if hasPrefix \"registry.example.com/\" .Values.image }}

The image {{ .Values.image }} is a placeholder: set the value `image` to yours.
{{- end }}
{{- if not .Values.createNamespace }}

The namespace should enforce the Pod Security Standard that the controller meets:

  kubectl label namespace {{ .Release.Namespace }} pod-security.kubernetes.io/enforce=restricted
{{- end }}

The first bundle: https://github.com/chandler-dev/chandler/blob/main/docs/install.md#the-account-of-a-bundle
";

/// `Chart.yaml`, with the annotations of Artifact Hub.
pub(super) fn chart(settings: &Settings) -> Result<String, ManifestsError> {
    let mut annotations = json!({
        "artifacthub.io/category": "integration-delivery",
        "artifacthub.io/crds": yaml(&crds()?)?,
        "artifacthub.io/license": LICENSE,
        "artifacthub.io/links": yaml(&json!([
            {"name": "Documentation", "url": format!("{REPOSITORY}/tree/main/docs")},
            {"name": "Changes", "url": format!("{REPOSITORY}/blob/main/CHANGELOG.md")},
        ]))?,
        "artifacthub.io/operator": "true",
        "artifacthub.io/operatorCapabilities": "Seamless Upgrades",
    });
    if let (Some(image), Some(annotations)) = (&settings.image, annotations.as_object_mut()) {
        let images = json!([{"name": "chandler", "image": image}]);
        annotations.insert("artifacthub.io/images".to_owned(), json!(yaml(&images)?));
    }
    let chart = json!({
        "apiVersion": "v2",
        "name": "chandler",
        "description": DESCRIPTION,
        "type": "application",
        "version": VERSION,
        "appVersion": format!("v{VERSION}"),
        "home": REPOSITORY,
        "sources": [REPOSITORY],
        "keywords": ["bundles", "operators", "olm", "packages", "webassembly"],
        "maintainers": [{"name": "The authors of Chandler", "url": REPOSITORY}],
        "annotations": annotations,
    });
    yaml(&chart)
}

/// The kinds, as Artifact Hub lists them.
fn crds() -> Result<Value, ManifestsError> {
    let mut listed = Vec::new();
    for crd in chandler_api::crds() {
        let crd = serde_json::to_value(&crd).map_err(ManifestsError::Crd)?;
        let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let description = text("/spec/versions/0/schema/openAPIV3Schema/description");
        listed.push(json!({
            "kind": text("/spec/names/kind"),
            "version": text("/spec/versions/0/name"),
            "name": text("/metadata/name"),
            "displayName": text("/spec/names/kind"),
            "description": description.lines().next().unwrap_or_default(),
        }));
    }
    Ok(Value::Array(listed))
}

/// `README.md`: the values.
pub(super) fn readme() -> String {
    let mut text = format!(
        "# Chandler\n\n{DESCRIPTION}.\n\n\
         `chandler manifests` of the same version makes this chart, and the same objects without Helm. {REPOSITORY}/blob/main/docs/install.md \
         describes both.\n\n\
         ```sh\nhelm install chandler . --namespace chandler-system --create-namespace --set image=registry.corp.example/chandler:v{VERSION}\n\
         ```\n\n\
         Cluster-scoped objects have fixed names: one release per cluster. An upgrade of the release upgrades the CRDs; removing the release \
         keeps them, and with them all BundleDeployments.\n\n## Values\n\n| value | default | what it does |\n|---|---|---|\n"
    );
    let mut row = |key: &str, default: &str, what: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| `{key}` | {} | {} |", default.replace('|', "\\|"), what.replace('|', "\\|"));
    };
    row("profile", "standalone", PROFILE);
    for setting in SETTINGS.iter().filter(|setting| !setting.chart.is_empty()) {
        row(setting.chart, setting.default, setting.chart_what());
    }
    for own in OWN {
        row(own.key, if own.default { "true" } else { "false" }, own.what);
    }
    text
}
