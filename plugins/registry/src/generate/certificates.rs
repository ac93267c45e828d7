//! Certificates for webhooks and aggregated APIs, and their providers.

use chandler_sdk::certificates::{INJECT_CA, SERVING_SECRET};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Context, Generated, certificate_name, service_name};
use crate::names::object_name;

/// The provider of serving certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum CertificateProvider {
    /// cert-manager: a self-signed Issuer and a Certificate for each Deployment.
    #[serde(rename = "cert-manager")]
    CertManager,
    /// The service CA of OpenShift, by annotations.
    #[serde(rename = "openshift-service-ca")]
    OpenshiftServiceCa,
    /// The host, by annotations.
    #[serde(rename = "host")]
    Host,
}

/// Two years, and renewal a day before expiry: the values of OLM v0 and v1.
const DURATION: &str = "17520h0m0s";
const RENEW_BEFORE: &str = "24h0m0s";

/// A location where operators expect their certificate: volume, directory, and the file names of the certificate and
/// its key.
const VOLUMES: [(&str, &str, &str, &str); 2] = [
    ("webhook-cert", "/tmp/k8s-webhook-server/serving-certs", "tls.crt", "tls.key"),
    ("apiservice-cert", "/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"),
];

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    if context.certificates != Some(CertificateProvider::CertManager) {
        return Vec::new();
    }
    let mut objects = Vec::new();
    for (deployment, pointer) in context.serving_deployments() {
        let origin = context.bundle.csv_place(&pointer);
        for object in cert_manager(context.namespace, deployment) {
            objects.push(Generated::new(&object, origin.clone()));
        }
    }
    objects
}

fn cert_manager(namespace: &str, deployment: &str) -> [Value; 2] {
    let name = certificate_name(deployment);
    let issuer_name = object_name(&name, "selfsigned-issuer");
    let host = format!("{}.{namespace}", service_name(deployment));
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Issuer",
        "metadata": {"name": issuer_name, "namespace": namespace},
        "spec": {"selfSigned": {}},
    });
    let certificate = json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "secretName": name,
            "commonName": host,
            "dnsNames": [host, format!("{host}.svc"), format!("{host}.svc.cluster.local")],
            "usages": ["server auth"],
            "issuerRef": {"name": issuer_name},
            "duration": DURATION,
            "renewBefore": RENEW_BEFORE,
        },
    });
    [issuer, certificate]
}

impl CertificateProvider {
    /// Requests injection of the CA into a webhook configuration, an APIService or a CRD.
    pub(super) fn inject_ca(self, object: &mut Value, namespace: &str, deployment: &str) {
        match self {
            Self::CertManager => {
                let source = format!("{namespace}/{}", certificate_name(deployment));
                annotate(object, "cert-manager.io/inject-ca-from", &source);
            }
            Self::OpenshiftServiceCa => annotate(object, "service.beta.openshift.io/inject-cabundle", "true"),
            Self::Host => annotate(object, INJECT_CA, "true"),
        }
    }

    /// Requests a certificate for a Service, with providers that use annotations on the Service.
    pub(super) fn request_certificate(self, service: &mut Value, deployment: &str) {
        let annotation = match self {
            Self::CertManager => return,
            Self::OpenshiftServiceCa => "service.beta.openshift.io/serving-cert-secret-name",
            Self::Host => SERVING_SECRET,
        };
        annotate(service, annotation, &certificate_name(deployment));
    }
}

fn annotate(object: &mut Value, key: &str, value: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(key.to_owned(), json!(value));
    }
}

/// Mounts the Secret into every container of a Deployment's specification, replacing existing mounts.
pub(super) fn mount(spec: &mut Value, secret: &str) {
    let Some(pod) = spec.pointer_mut("/template/spec").and_then(Value::as_object_mut) else { return };
    let replaced = replaced_volumes(pod);
    let is_replaced =
        |item: &Value| item.get("name").and_then(Value::as_str).is_some_and(|name| replaced.iter().any(|r| r == name));

    if let Some(volumes) = pod.entry("volumes").or_insert_with(|| json!([])).as_array_mut() {
        volumes.retain(|volume| !is_replaced(volume));
        volumes.extend(VOLUMES.map(|(name, _, certificate, key)| {
            let items = json!([{"key": "tls.crt", "path": certificate}, {"key": "tls.key", "path": key}]);
            json!({"name": name, "secret": {"secretName": secret, "items": items}})
        }));
    }
    for container in pod.get_mut("containers").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(container) = container.as_object_mut() else { continue };
        if let Some(mounts) = container.entry("volumeMounts").or_insert_with(|| json!([])).as_array_mut() {
            mounts.retain(|mount| !is_replaced(mount));
            mounts.extend(VOLUMES.map(|(name, path, ..)| json!({"name": name, "mountPath": path})));
        }
    }
}

/// The volumes to remove: those with the generated names, and those that a container mounts at the generated paths.
fn replaced_volumes(pod: &Map<String, Value>) -> Vec<String> {
    let mut names: Vec<String> = VOLUMES.map(|(name, ..)| name.to_owned()).into();
    for container in pod.get("containers").and_then(Value::as_array).into_iter().flatten() {
        for mount in container.get("volumeMounts").and_then(Value::as_array).into_iter().flatten() {
            let text = |field: &str| mount.get(field).and_then(Value::as_str);
            if text("mountPath").is_some_and(|path| VOLUMES.iter().any(|(_, ours, ..)| path == *ours)) {
                names.extend(text("name").map(str::to_owned));
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_mounts_at_the_certificate_paths_are_replaced() {
        let mut spec = json!({"template": {"spec": {
            "volumes": [{"name": "old"}, {"name": "webhook-cert"}, {"name": "data"}],
            "containers": [
                {"name": "a", "volumeMounts": [{"name": "old", "mountPath": "/tmp/k8s-webhook-server/serving-certs"}]},
                {"name": "b", "volumeMounts": [{"name": "old", "mountPath": "/elsewhere"}, {"name": "data", "mountPath": "/d"}]},
            ],
            "initContainers": [{"name": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}],
        }}});
        mount(&mut spec, "s");
        let names = |list: &Value| -> Vec<String> {
            list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
        };
        let pod = &spec["template"]["spec"];
        assert_eq!(names(&pod["volumes"]), ["data", "webhook-cert", "apiservice-cert"]);
        assert_eq!(names(&pod["containers"][0]["volumeMounts"]), ["webhook-cert", "apiservice-cert"]);
        assert_eq!(names(&pod["containers"][1]["volumeMounts"]), ["data", "webhook-cert", "apiservice-cert"]);
        assert_eq!(names(&pod["initContainers"][0]["volumeMounts"]), ["data"]);
        assert_eq!(pod["volumes"][1]["secret"]["items"][0], json!({"key": "tls.crt", "path": "tls.crt"}));
        assert_eq!(pod["volumes"][2]["secret"]["items"][1], json!({"key": "tls.key", "path": "apiserver.key"}));
    }
}
