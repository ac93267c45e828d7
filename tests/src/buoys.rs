//! A small bundle with many kinds of objects, in three stages: a CRD and a custom resource, a workload behind a webhook with a
//! certificate from the host, and configuration.

use crate::bundles::Bundle;

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: buoys.moorings.example.com}
spec:
  group: moorings.example.com
  names: {kind: Buoy, listKind: BuoyList, plural: buoys, singular: buoy}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {colour: {type: string}}}}
";

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: keeper, annotations: {certificates.chandler.dev/serving-secret: keeper-tls}}
spec: {selector: {app: keeper}, ports: [{port: 443, targetPort: 8443}]}
";

/// The API server never calls it: no object of this resource exists.
const WEBHOOK: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: buoys.moorings.example.com, annotations: {certificates.chandler.dev/inject-ca: 'true'}}
webhooks:
- name: nothing.moorings.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: keeper, namespace: NAMESPACE}}
  rules: [{apiGroups: [moorings.example.com], apiVersions: [v1], resources: [nothings], operations: [CREATE]}]
";

const KEEPER: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: keeper}
spec:
  selector: {matchLabels: {app: keeper}}
  template:
    metadata: {labels: {app: keeper}}
    spec: {containers: [{name: keeper, image: IMAGE}]}
";

const PAUSE: &str = "registry.k8s.io/pause:3.10";

fn map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{depth: '{value}'}}\n")
}

fn buoy(colour: &str) -> String {
    format!("apiVersion: moorings.example.com/v1\nkind: Buoy\nmetadata: {{name: outer}}\nspec: {{colour: {colour}}}\n")
}

fn bundle(namespace: &str, depth: &str, image: &str, colour: &str) -> Bundle {
    Bundle::empty()
        .with("manifests/0000_10_buoys_01_definition.yaml", CRD)
        .with("manifests/0000_10_buoys_02_chart.yaml", &map("chart", depth))
        .with("manifests/0000_10_buoys_03_steady.yaml", &map("steady", "5"))
        .with("manifests/0000_20_buoys_01_service.yaml", SERVICE)
        .with("manifests/0000_20_buoys_02_webhook.yaml", &WEBHOOK.replace("NAMESPACE", namespace))
        .with("manifests/0000_20_buoys_03_keeper.yaml", &KEEPER.replace("IMAGE", image))
        .with("manifests/0000_30_buoys_01_outer.yaml", &buoy(colour))
}

/// The only object of its kind in the bundle: the controller must find it without another object of that kind.
fn only_object_of_its_kind(api_version: &str, kind: &str, name: &str) -> String {
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}}}\n")
}

/// The first version, for an installation into this namespace.
pub fn first(namespace: &str) -> Bundle {
    bundle(namespace, "10", PAUSE, "red")
        .with("manifests/0000_30_buoys_02_old.yaml", &map("old", "1"))
        .with("manifests/0000_30_buoys_03_old_kind.yaml", &only_object_of_its_kind("v1", "ServiceAccount", "old"))
}

/// The first version with another selector of its workload, which is immutable.
pub fn with_other_selector(namespace: &str) -> Bundle {
    let keeper = KEEPER.replace("IMAGE", PAUSE).replace("{app: keeper}", "{app: keeper, berth: outer}");
    first(namespace).with("manifests/0000_20_buoys_03_keeper.yaml", &keeper)
}

/// The second version, which changes objects in each stage, adds two and removes two.
pub fn second(namespace: &str) -> Bundle {
    bundle(namespace, "20", "registry.k8s.io/pause:3.11", "green")
        .with("manifests/0000_30_buoys_02_new.yaml", &map("new", "1"))
        .with(
            "manifests/0000_30_buoys_03_new_kind.yaml",
            &only_object_of_its_kind("coordination.k8s.io/v1", "Lease", "new"),
        )
}

/// A third version that never becomes healthy and stops in its second stage.
pub fn broken(namespace: &str) -> Bundle {
    bundle(namespace, "30", "registry.invalid/keeper:v3", "black")
        .with("manifests/0000_10_buoys_04_early.yaml", &map("early", "1"))
        .with(
            "manifests/0000_10_buoys_05_early_kind.yaml",
            &only_object_of_its_kind("rbac.authorization.k8s.io/v1", "Role", "early"),
        )
        .with("manifests/0000_30_buoys_04_late.yaml", &map("late", "1"))
}
