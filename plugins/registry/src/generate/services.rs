//! Services: one in front of each Deployment that serves webhooks or an aggregated API.

use serde_json::{Value, json};

use super::{Context, Generated, Source, service_name};
use crate::json::set;

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    let serving = context.serving_deployments();
    let deployments = context.bundle.csv.spec.install.spec.deployments.iter().enumerate();
    deployments
        .filter(|(_, deployment)| serving.contains_key(deployment.name.as_str()))
        .map(|(index, deployment)| {
            let mut spec = json!({"ports": ports(context, &deployment.name)});
            if let Some(labels) = deployment.spec.pointer("/selector/matchLabels") {
                set(&mut spec, ["selector"], labels.clone());
            }
            let mut service = json!({
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": service_name(&deployment.name), "namespace": context.namespace},
                "spec": spec,
            });
            if let Some(provider) = context.certificates {
                provider.request_certificate(&mut service, &deployment.name);
            }
            let origin = context.bundle.csv_place(&format!("/spec/install/spec/deployments/{index}"));
            Generated { source: Source::Service, ..Generated::new(&service, origin) }
        })
        .collect()
}

/// The distinct ports, sorted by port and then by target port.
fn ports(context: &Context<'_>, deployment: &str) -> Vec<Value> {
    let webhooks = context.bundle.csv.spec.webhookdefinitions.iter();
    let webhooks = webhooks.filter(|webhook| webhook.deployment_name == deployment).map(|webhook| {
        let port = webhook.service_port();
        (port, webhook.target_port.clone().unwrap_or_else(|| json!(port)))
    });
    let services = context.api_services().iter().filter(|service| service.deployment_name == deployment);
    let services = services.map(|service| (service.service_port(), json!(service.service_port())));
    let mut ports: Vec<(i32, Value)> = Vec::new();
    for port in webhooks.chain(services) {
        if !ports.contains(&port) {
            ports.push(port);
        }
    }
    // Named targets sort by their number, which is mostly zero; the text makes the order total.
    ports.sort_by_cached_key(|(port, target)| (*port, number(target), target.to_string()));
    let port = |(port, target): (i32, Value)| json!({"name": port.to_string(), "port": port, "targetPort": target});
    ports.into_iter().map(port).collect()
}

fn number(target: &Value) -> i64 {
    target.as_i64().or_else(|| target.as_str()?.parse().ok()).unwrap_or_default()
}
