//! CustomResourceDefinitions: as in the bundle, except those with a conversion webhook.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Context, Generated, service_name};
use crate::{bundle::Crd, csv::Webhook, json::set};

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
        .map(|crd| match conversions.get(crd.name.as_str()).and_then(|webhook| convert(context, crd, webhook)) {
            Some(converted) => Generated::new(&converted, crd.place.object.clone()),
            None => Generated::crd(crd),
        })
        .collect()
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
