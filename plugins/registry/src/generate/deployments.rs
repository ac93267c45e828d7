//! Deployments: the operator's workloads.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Context, Generated, certificate_name, certificates, deployment_config, environment};
use crate::{csv::DeploymentSpec, json::set};

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    let deployments = context.bundle.csv.spec.install.spec.deployments.iter().enumerate();
    let serving = context.serving_deployments();
    deployments
        .map(|(index, deployment)| {
            let origin = context.bundle.csv_place(&format!("/spec/install/spec/deployments/{index}"));
            let serves = serving.contains_key(deployment.name.as_str());
            Generated::new(&render(context, deployment, serves), origin)
        })
        .collect()
}

fn render(context: &Context<'_>, deployment: &DeploymentSpec, serves: bool) -> Value {
    let mut metadata = json!({"name": deployment.name, "namespace": context.namespace});
    if !deployment.label.is_empty() {
        set(&mut metadata, ["labels"], json!(deployment.label));
    }
    let mut spec = deployment.spec.clone();
    // One old ReplicaSet is kept, as in OLM: a bundle is rolled back by installing the older one.
    set(&mut spec, ["revisionHistoryLimit"], 1);
    annotate_template(context, &mut spec);
    if context.certificates.is_some() && serves {
        certificates::mount(&mut spec, &certificate_name(&deployment.name));
    }
    environment::set(&mut spec, context.environment);
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec});
    if let Some(config) = context.deployment_config {
        deployment_config::apply(&mut object, config);
    }
    object
}

/// All annotations of the ClusterServiceVersion are set on the pods; the template's own win, and then those from which
/// an operator reads what to watch. A change of any of them rolls the pods.
fn annotate_template(context: &Context<'_>, spec: &mut Value) {
    let mut annotations: BTreeMap<&str, Value> = BTreeMap::new();
    for (key, value) in &context.bundle.csv.metadata.annotations {
        annotations.insert(key, json!(value));
    }
    let own = spec.pointer("/template/metadata/annotations").and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, value) in &own {
        annotations.insert(key, value.clone());
    }
    annotations.insert("olm.targetNamespaces", json!(context.targets.join(",")));
    annotations.insert("olm.operatorNamespace", json!(context.namespace));
    let annotations: Map<String, Value> = annotations.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    set(spec, ["template", "metadata", "annotations"], Value::Object(annotations));
}
