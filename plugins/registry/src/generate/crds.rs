//! CustomResourceDefinitions: as in the bundle, except for conversion webhooks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Context, Generated, service_name};
use crate::{bundle::Crd, config::UndeclaredConversions, csv::Webhook, json::set};

pub(super) fn generate<'a>(context: &Context<'a>) -> Vec<Generated<'a>> {
    let bundle = context.bundle;
    let conversions: BTreeMap<&str, &Webhook> = bundle
        .csv
        .spec
        .webhookdefinitions
        .iter()
        .filter(|webhook| webhook.is_conversion())
        .flat_map(|webhook| webhook.conversion_crds.iter().map(move |crd| (crd.as_str(), webhook)))
        .collect();
    bundle
        .crds
        .iter()
        .map(|crd| match changed(context, crd, conversions.get(crd.name.as_str()).copied()) {
            Some(changed) => Generated::new(&changed, crd.place.object.clone()),
            None => Generated::crd(crd),
        })
        .collect()
}

/// The CRD, if it is not installed as it is in the bundle.
fn changed(context: &Context<'_>, crd: &Crd, webhook: Option<&Webhook>) -> Option<Value> {
    match webhook {
        Some(webhook) => convert(context, crd, webhook),
        None if crd.converter.is_some() && context.undeclared_conversions == UndeclaredConversions::Remove => {
            without_conversion(crd)
        }
        None => None,
    }
}

/// The CRD without a conversion. It is not `strategy: None`: what the operator sets later is not drift.
fn without_conversion(crd: &Crd) -> Option<Value> {
    let mut value: Value = serde_json::from_slice(&crd.json).ok()?;
    value.get_mut("spec")?.as_object_mut()?.remove("conversion");
    Some(value)
}

/// The CRD with the conversion webhook.
fn convert(context: &Context<'_>, crd: &Crd, webhook: &Webhook) -> Option<Value> {
    // The text was generated here; it is an object with a spec.
    let mut value: Value = serde_json::from_slice(&crd.json).ok()?;
    let mut conversion = json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "service": {
                    "namespace": context.namespace,
                    "name": service_name(&webhook.deployment_name),
                    "path": webhook.path.as_deref().unwrap_or("/"),
                    "port": context.compatibility.webhook_port(webhook),
                },
            },
        },
    });
    if let Some(versions) = &webhook.admission_review_versions {
        set(&mut conversion, ["webhook", "conversionReviewVersions"], versions.clone());
    }
    value.get_mut("spec")?.as_object_mut()?.insert("conversion".to_owned(), conversion);
    if let Some(provider) = context.certificates {
        provider.inject_ca(&mut value, context.namespace, &webhook.deployment_name);
    }
    Some(value)
}
