//! The rules about webhooks.

use std::collections::{BTreeMap, BTreeSet};

use chandler_sdk::Diagnostic;

use super::repeated;
use crate::{
    bundle::{Bundle, Locate as _},
    csv::Webhook,
    modes::InstallModes,
    names::subdomain_errors,
};

/// The webhooks with their pointers in the ClusterServiceVersion.
fn webhooks(bundle: &Bundle) -> impl Iterator<Item = (String, &Webhook)> {
    let webhooks = bundle.csv.spec.webhookdefinitions.iter().enumerate();
    webhooks.map(|(index, webhook)| (format!("/spec/webhookdefinitions/{index}"), webhook))
}

fn conversions(bundle: &Bundle) -> impl Iterator<Item = (String, &Webhook)> {
    webhooks(bundle).filter(|(_, webhook)| webhook.is_conversion())
}

/// A CRD is cluster-scoped, and so is its conversion webhook.
pub(super) fn conversion_needs_all_namespaces(bundle: &Bundle) -> Vec<Diagnostic> {
    let modes = InstallModes::of(&bundle.csv.spec.install_modes);
    if modes.only_all() {
        return Vec::new();
    }
    conversions(bundle)
        .map(|(pointer, webhook)| {
            let message = format!(
                "bundle contains conversion webhook {:?} and supports install modes {modes} - conversion webhooks are \
                 only supported for bundles that only support AllNamespaces install mode",
                webhook.generate_name
            );
            bundle
                .csv_finding("ConversionWebhookNeedsAllNamespaces", message, &pointer)
                .help("support AllNamespaces alone in spec.installModes")
        })
        .collect()
}

pub(super) fn deployments_exist(bundle: &Bundle) -> Vec<Diagnostic> {
    let deployments: BTreeSet<&str> =
        bundle.csv.spec.install.spec.deployments.iter().map(|deployment| deployment.name.as_str()).collect();
    let mut dangling: Vec<_> =
        webhooks(bundle).filter(|(_, webhook)| !deployments.contains(webhook.deployment_name.as_str())).collect();
    dangling.sort_by_key(|(_, webhook)| (&webhook.deployment_name, &webhook.kind, &webhook.generate_name));
    dangling
        .into_iter()
        .map(|(pointer, webhook)| {
            let Webhook { kind, generate_name, deployment_name, .. } = webhook;
            let message = format!(
                "webhook of type '{kind}' with name '{generate_name}' references non-existent deployment \
                 '{deployment_name}'"
            );
            bundle
                .csv_finding("WebhookDeploymentMissing", message, &format!("{pointer}/deploymentName"))
                .help("name a deployment of the install strategy")
        })
        .collect()
}

pub(super) fn unique_names(bundle: &Bundle) -> Vec<Diagnostic> {
    let names = webhooks(bundle).map(|(_, webhook)| (webhook.kind.as_str(), webhook.generate_name.as_str()));
    repeated(names)
        .into_iter()
        .map(|((kind, name), index)| {
            let message = format!("duplicate webhook '{name}' of type '{kind}'");
            let pointer = format!("/spec/webhookdefinitions/{index}/generateName");
            bundle.csv_finding("DuplicateWebhook", message, &pointer).help("give each webhook of a type its own name")
        })
        .collect()
}

/// Checks the name as written: a trailing dash, a prefix in OLM v0, is refused.
pub(super) fn names(bundle: &Bundle) -> Vec<Diagnostic> {
    invalid_names(bundle, |webhook| &webhook.generate_name)
}

/// Checks the name as used: without a trailing dash.
pub(super) fn prefixes(bundle: &Bundle) -> Vec<Diagnostic> {
    invalid_names(bundle, Webhook::object_name)
}

fn invalid_names(bundle: &Bundle, name: fn(&Webhook) -> &str) -> Vec<Diagnostic> {
    let mut invalid = BTreeMap::new();
    for (pointer, webhook) in webhooks(bundle) {
        let errors = subdomain_errors(name(webhook));
        if !errors.is_empty() {
            invalid.entry((&webhook.kind, &webhook.generate_name)).or_insert((pointer, errors));
        }
    }
    invalid
        .into_iter()
        .map(|((kind, name), (pointer, errors))| {
            let message = format!("webhook of type '{kind}' has invalid name '{name}': {}", errors.join(","));
            bundle
                .csv_finding("InvalidWebhookName", message, &format!("{pointer}/generateName"))
                .help("use a name such as validate.example.com")
        })
        .collect()
}

pub(super) fn crds_have_one_conversion(bundle: &Bundle) -> Vec<Diagnostic> {
    let mut by_crd: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for (pointer, webhook) in conversions(bundle) {
        for crd in &webhook.conversion_crds {
            by_crd.entry(crd).or_default().push((&webhook.generate_name, pointer.clone()));
        }
    }
    by_crd
        .into_iter()
        .filter(|(_, webhooks)| webhooks.len() > 1)
        .map(|(crd, mut webhooks)| {
            webhooks.sort();
            let names: Vec<&str> = webhooks.iter().map(|(name, _)| *name).collect();
            let message =
                format!("conversion webhooks [{}] reference same custom resource definition '{crd}'", names.join(","));
            let pointer = webhooks.last().map_or("", |(_, pointer)| pointer);
            bundle
                .csv_finding("ConflictingConversionWebhooks", message, &format!("{pointer}/conversionCRDs"))
                .help("let one webhook convert the CRD")
        })
        .collect()
}

pub(super) fn conversions_are_of_owned_crds(bundle: &Bundle) -> Vec<Diagnostic> {
    let owned: BTreeSet<&str> =
        bundle.csv.spec.customresourcedefinitions.owned.iter().map(|crd| crd.name.as_str()).collect();
    let mut foreign: Vec<_> = conversions(bundle)
        .flat_map(|(pointer, webhook)| {
            webhook.conversion_crds.iter().map(move |crd| (&webhook.generate_name, crd, pointer.clone()))
        })
        .filter(|(_, crd, _)| !owned.contains(crd.as_str()))
        .collect();
    foreign.sort();
    foreign
        .into_iter()
        .map(|(name, crd, pointer)| {
            let message =
                format!("conversion webhook '{name}' references custom resource definition '{crd}' not owned bundle");
            bundle
                .csv_finding(
                    "ConversionOfForeignCustomResourceDefinition",
                    message,
                    &format!("{pointer}/conversionCRDs"),
                )
                .help("list the CRD in spec.customresourcedefinitions.owned, or leave it to the bundle that owns it")
        })
        .collect()
}

/// A webhook that could intercept everything, or the webhook configurations themselves, could lock out the cluster's
/// administrator.
pub(super) fn rules(bundle: &Bundle) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    for (pointer, webhook) in webhooks(bundle).filter(|(_, webhook)| !webhook.is_conversion()) {
        let name = &webhook.generate_name;
        for (index, rule) in webhook.rules.iter().enumerate() {
            let mut refuse = |what: String| {
                let message = format!(
                    "webhook {name:?} contains forbidden rule: admission webhook rules cannot reference {what}"
                );
                let finding = bundle.csv_finding("ForbiddenWebhookRule", message, &format!("{pointer}/rules/{index}"));
                findings.push(finding.help("name the API groups and resources that the webhook is for"));
            };
            for group in &rule.api_groups {
                if matches!(group.as_str(), "*" | "olm.operatorframework.io") {
                    refuse(format!("API group {group:?}"));
                }
                if group == "admissionregistration.k8s.io" {
                    for resource in rule.resources.iter().filter(|resource| is_webhook_configuration(resource)) {
                        refuse(format!("resource {resource:?} for API group {group:?}"));
                    }
                }
            }
        }
    }
    findings
}

fn is_webhook_configuration(resource: &str) -> bool {
    matches!(
        resource.to_lowercase().as_str(),
        "*" | "mutatingwebhookconfiguration"
            | "mutatingwebhookconfigurations"
            | "validatingwebhookconfiguration"
            | "validatingwebhookconfigurations"
    )
}

/// The API server calls no webhook for a CRD that keeps unknown fields.
pub(super) fn converted_crds_prune(bundle: &Bundle) -> Vec<Diagnostic> {
    let converted: BTreeSet<&str> =
        conversions(bundle).flat_map(|(_, webhook)| &webhook.conversion_crds).map(String::as_str).collect();
    bundle
        .crds
        .iter()
        .filter(|crd| crd.preserves_unknown_fields && converted.contains(crd.name.as_str()))
        .map(|crd| {
            let message = format!(
                "custom resource definition '{}' must have .spec.preserveUnknownFields set to false to let API Server \
                 call webhook to do the conversion",
                crd.name
            );
            let place = crd.place.part("/spec/preserveUnknownFields");
            place.error("ConvertedCustomResourceDefinitionKeepsUnknownFields", message).help(
                "remove spec.preserveUnknownFields and mark the fields that need it with \
                 x-kubernetes-preserve-unknown-fields",
            )
        })
        .collect()
}
