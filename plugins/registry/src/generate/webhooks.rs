//! ValidatingWebhookConfigurations and MutatingWebhookConfigurations: one for each webhook of the bundle.

use serde_json::{Map, Value, json};

use super::{Context, Generated, service_name};
use crate::{
    csv::{Webhook, WebhookKind},
    json::set,
    modes::ALL_NAMESPACES,
};

pub(super) fn validating<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    generate(context, WebhookKind::Validating)
}

pub(super) fn mutating<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    generate(context, WebhookKind::Mutating)
}

fn generate<'a>(context: &Context<'a>, kind: WebhookKind) -> Vec<Generated<'a>> {
    let webhooks = context.bundle.csv.spec.webhookdefinitions.iter().enumerate();
    webhooks
        .filter(|(_, webhook)| webhook.webhook_kind() == Some(kind))
        .map(|(index, webhook)| {
            let origin = context.bundle.csv_place(&format!("/spec/webhookdefinitions/{index}"));
            Generated::new(&configuration(context, webhook, kind), origin)
        })
        .collect()
}

fn configuration(context: &Context<'_>, webhook: &Webhook, kind: WebhookKind) -> Value {
    let name = webhook.object_name();
    let mut metadata = json!({"name": name});
    if context.compatibility.namespaces_webhook_configurations() {
        set(&mut metadata, ["namespace"], context.namespace);
    }
    let mut configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": match kind {
            WebhookKind::Mutating => "MutatingWebhookConfiguration",
            _ => "ValidatingWebhookConfiguration",
        },
        "metadata": metadata,
        "webhooks": [entry(context, webhook, name, kind)],
    });
    if let Some(provider) = context.certificates {
        provider.inject_ca(&mut configuration, context.namespace, &webhook.deployment_name);
    }
    configuration
}

fn entry(context: &Context<'_>, webhook: &Webhook, name: &str, kind: WebhookKind) -> Value {
    let mut service = json!({
        "namespace": context.namespace,
        "name": service_name(&webhook.deployment_name),
        "port": context.compatibility.webhook_port(webhook),
    });
    if let Some(path) = &webhook.path {
        set(&mut service, ["path"], path.as_str());
    }
    let mut entry = Map::new();
    entry.insert("name".to_owned(), json!(name));
    entry.insert("clientConfig".to_owned(), json!({"service": service}));
    if !webhook.rules.is_empty() {
        entry.insert("rules".to_owned(), json!(webhook.rules));
    }
    let reinvocation = webhook.reinvocation_policy.as_ref().filter(|_| kind == WebhookKind::Mutating);
    let optional = [
        ("failurePolicy", webhook.failure_policy.as_ref()),
        ("matchPolicy", webhook.match_policy.as_ref()),
        ("objectSelector", webhook.object_selector.as_ref()),
        ("sideEffects", webhook.side_effects.as_ref()),
        ("timeoutSeconds", webhook.timeout_seconds.as_ref()),
        ("admissionReviewVersions", webhook.admission_review_versions.as_ref()),
        ("reinvocationPolicy", reinvocation),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            entry.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(selector) = namespace_selector(context) {
        entry.insert("namespaceSelector".to_owned(), selector);
    }
    Value::Object(entry)
}

/// The watched namespaces, unless the operator watches all. Requests for cluster-scoped objects match every selector.
fn namespace_selector(context: &Context<'_>) -> Option<Value> {
    let all = context.targets.is_empty() || context.targets.iter().any(|target| target == ALL_NAMESPACES);
    (!all).then(|| {
        json!({"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": context.targets},
        ]})
    })
}
