//! The rules about aggregated APIs, and about the Services in front of Deployments. OLM v1 has none of them: it refuses
//! aggregated APIs, and leaves invalid Services to the API server.

use std::collections::BTreeMap;

use chandler_sdk::Diagnostic;

use crate::{
    bundle::Bundle,
    csv::ApiService,
    names::{is_label, subdomain_errors},
};

fn api_services(bundle: &Bundle) -> impl Iterator<Item = (String, &ApiService)> {
    let services = bundle.csv.spec.apiservicedefinitions.owned.iter().enumerate();
    services.map(|(index, service)| (format!("/spec/apiservicedefinitions/owned/{index}"), service))
}

/// An APIService is named after its version and group; API servers reject any other name.
pub(super) fn api_service_names(bundle: &Bundle) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for (pointer, service) in api_services(bundle) {
        let parts = [
            ("group", &service.group, service.group.contains('.') && subdomain_errors(&service.group).is_empty()),
            ("version", &service.version, is_label(&service.version)),
        ];
        for (field, value, _) in parts.into_iter().filter(|(.., legal)| !legal) {
            let message = format!("API service {:?} has an invalid {field} {value:?}", service.name);
            let finding = bundle.csv_finding("InvalidApiService", message, &format!("{pointer}/{field}"));
            findings.push(finding.help("a group is a domain such as example.com, a version is one such as v1alpha1"));
        }
    }
    findings
}

pub(super) fn api_service_deployments_exist(bundle: &Bundle) -> Vec<Diagnostic> {
    let deployments = &bundle.csv.spec.install.spec.deployments;
    api_services(bundle)
        .filter(|(_, service)| deployments.iter().all(|deployment| deployment.name != service.deployment_name))
        .map(|(pointer, service)| {
            let message = format!(
                "API service {:?} references non-existent deployment {:?}",
                service.name, service.deployment_name
            );
            bundle
                .csv_finding("ApiServiceDeploymentMissing", message, &format!("{pointer}/deploymentName"))
                .help("name a deployment of the install strategy")
        })
        .collect()
}

/// A version of a group has one server.
pub(super) fn api_services_agree(bundle: &Bundle) -> Vec<Diagnostic> {
    let mut first: BTreeMap<String, (&str, i32)> = BTreeMap::new();
    let mut findings = Vec::new();
    for (pointer, service) in api_services(bundle) {
        let place = (service.deployment_name.as_str(), service.service_port());
        if *first.entry(service.object_name()).or_insert(place) != place {
            let message = format!("{:?} is served by several deployments or ports", service.object_name());
            let finding = bundle.csv_finding("ConflictingApiServices", message, &pointer);
            findings.push(finding.help("serve all kinds of a version by one deployment and port"));
        }
    }
    findings
}

/// A port of a Service has one target.
pub(super) fn ports_agree(bundle: &Bundle) -> Vec<Diagnostic> {
    let mut first: BTreeMap<(&str, i32), String> = BTreeMap::new();
    let mut findings = Vec::new();
    let webhooks = bundle.csv.spec.webhookdefinitions.iter().enumerate().map(|(index, webhook)| {
        let target =
            webhook.target_port.as_ref().map_or_else(|| webhook.service_port().to_string(), ToString::to_string);
        (format!("/spec/webhookdefinitions/{index}"), webhook.deployment_name.as_str(), webhook.service_port(), target)
    });
    let services = api_services(bundle).map(|(pointer, service)| {
        (pointer, service.deployment_name.as_str(), service.service_port(), service.service_port().to_string())
    });
    for (pointer, deployment, port, target) in webhooks.chain(services) {
        let other = first.entry((deployment, port)).or_insert_with(|| target.clone());
        if *other != target {
            let message = format!(
                "port {port} in front of deployment {deployment:?} targets both {other} and {target} of its pods"
            );
            let finding = bundle.csv_finding("ConflictingPorts", message, &pointer);
            findings.push(finding.help("give them different containerPorts, or the same targetPort"));
        }
    }
    findings
}
