//! A small operator in memory, which tests modify.

use chandler_registry::Registry;
use chandler_sdk::{
    Diagnostic, Failure, Location, Request, Severity,
    testing::{Bundle, Recorder, run},
};
use serde_json::{Value, json};

/// The files of a bundle, as JSON.
pub(crate) struct Small {
    /// Its ClusterServiceVersion.
    pub csv: Value,
    /// Other files.
    pub files: Vec<(String, String)>,
}

/// A CRD with an unknown field.
pub(crate) const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: berths.example.com
spec:
  group: example.com
  names: {kind: Berth, plural: berths}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - name: Age
      type: date
      JSONPath: .metadata.creationTimestamp
    schema:
      openAPIV3Schema: {type: object, nullable: false}
";

impl Small {
    /// An operator with one Deployment that supports these install modes.
    pub(crate) fn new(modes: &[&str]) -> Self {
        let modes: Vec<Value> = modes.iter().map(|mode| json!({"type": mode, "supported": true})).collect();
        let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
        let permissions = json!([{"serviceAccountName": "op", "rules": rules}]);
        let csv = json!({
            "apiVersion": "operators.coreos.com/v1alpha1",
            "kind": "ClusterServiceVersion",
            "metadata": {"name": "op.v1", "annotations": {"a": "b"}},
            "spec": {
                "displayName": "Op",
                "installModes": modes,
                "install": {"strategy": "deployment", "spec": {
                    "permissions": permissions,
                    "deployments": [{"name": "op.main", "spec": {
                        "selector": {"matchLabels": {"app": "op"}},
                        "template": {
                            "metadata": {"labels": {"app": "op"}},
                            "spec": {"containers": [{"name": "op", "image": "example.com/op"}]},
                        },
                    }}],
                }},
            },
        });
        let annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: op\n".to_owned();
        Self { csv, files: vec![("metadata/annotations.yaml".to_owned(), annotations)] }
    }

    /// This bundle with one more file.
    pub(crate) fn file(mut self, path: &str, text: &str) -> Self {
        self.files.push((path.to_owned(), text.to_owned()));
        self
    }

    /// This bundle with a webhook of this type.
    pub(crate) fn webhook(mut self, kind: &str, name: &str) -> Self {
        let webhook = json!({
            "type": kind,
            "generateName": name,
            "deploymentName": "op.main",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "targetPort": 9443,
            "webhookPath": "/hook",
        });
        match self.csv["spec"]["webhookdefinitions"].as_array_mut() {
            Some(webhooks) => webhooks.push(webhook),
            None => self.csv["spec"]["webhookdefinitions"] = json!([webhook]),
        }
        self
    }

    /// Provisions it into the namespace `ns` without a cluster.
    pub(crate) fn render(&self, config: &Value) -> Result<Recorder, Failure> {
        self.render_for(config, Request::new())
    }

    /// Provisions it for a cluster.
    pub(crate) fn render_for(&self, config: &Value, target: Request) -> Result<Recorder, Failure> {
        let csv = ("manifests/csv.yaml".to_owned(), serde_json::to_string_pretty(&self.csv).unwrap());
        let bundle = Bundle::new(self.files.iter().cloned().chain([csv]));
        let request = target.with_name("test").with_namespace("ns");
        run::<Registry>(&bundle, &request.with_config(config.as_object().unwrap().clone()))
    }

    /// The findings of a refusal: each as `Code location: message`, and its help.
    pub(crate) fn refusal(&self, config: &Value) -> String {
        let failure = self.render(config).expect_err("the bundle should be refused");
        let kind = match &failure {
            Failure::InvalidContent(_) => "content",
            Failure::InvalidConfig(_) => "config",
            Failure::Unsupported(_) => "unsupported",
            _ => "internal",
        };
        failure.diagnostics().iter().for_each(assert_explained);
        let findings = failure.diagnostics().iter().map(|finding| {
            let place = finding.location.as_ref().map(ToString::to_string).unwrap_or_default();
            format!(
                "\n{} {place}: {}\n  {}",
                finding.code,
                finding.message,
                finding.help.as_deref().unwrap_or_default()
            )
        });
        format!("{kind}{}", findings.collect::<String>())
    }
}

/// Every refusal has a location and help.
pub(crate) fn assert_explained(finding: &Diagnostic) {
    assert_eq!(finding.severity, Severity::Error, "{finding}");
    assert!(finding.help.as_ref().is_some_and(|help| !help.is_empty()), "no help: {finding}");
    let place = finding.location.as_ref().unwrap_or_else(|| panic!("no place: {finding}"));
    // Missing files have no lines, invalid YAML has no pointers, and only the host knows the lines of the
    // configuration.
    if place.start.is_some() && finding.code != "InvalidYaml" || place.path == Location::CONFIG {
        assert!(place.pointer.is_some(), "no pointer: {finding}");
    }
    if place.pointer.is_some() && place.path != Location::CONFIG {
        assert!(place.start.is_some_and(|start| start.column > 0), "no line: {finding}");
    }
}

/// The names of all objects, as `Kind namespace/name`, sorted.
pub(crate) fn names(release: &Recorder) -> Vec<String> {
    let mut names: Vec<String> = release
        .objects
        .iter()
        .map(|object| {
            let text = |pointer| object.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
        })
        .collect();
    names.sort();
    names
}

/// The one object of a kind.
pub(crate) fn one<'a>(release: &'a Recorder, kind: &str) -> &'a Value {
    let mut found = release.objects.iter().filter(|object| object.value["kind"] == kind);
    let object = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "several {kind}");
    &object.value
}
