//! Validates a bundle before objects are generated.
//!
//! All rules run and all findings are collected, each list sorted as in OLM v1; the messages come from OLM v1, so that scripts that match
//! them keep working. Codes, locations and help are Chandler's.

mod serving;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

use chandler_sdk::Diagnostic;

use crate::{
    bundle::{Bundle, Locate as _},
    compatibility::Compatibility,
    kinds,
    names::subdomain_errors,
};

/// The errors of the bundle. If it could not be parsed completely, nothing is reported as missing.
pub(crate) fn validate(bundle: &Bundle, compatibility: Compatibility, complete: bool) -> Vec<Diagnostic> {
    let rules: &[fn(&Bundle) -> Vec<Diagnostic>] = &[
        unique_deployments,
        deployment_names,
        unique_crds,
        if complete { owned_crds_exist } else { nothing },
        package_name,
        webhooks::conversion_needs_all_namespaces,
        webhooks::deployments_exist,
        webhooks::unique_names,
        if compatibility.accepts_name_prefixes() { webhooks::prefixes } else { webhooks::names },
        webhooks::crds_have_one_conversion,
        webhooks::conversions_are_of_owned_crds,
        webhooks::rules,
        webhooks::converted_crds_prune,
        if compatibility.refuses_unlisted() { supported_kinds } else { nothing },
    ];
    let extended: &[fn(&Bundle) -> Vec<Diagnostic>] = &[
        serving::api_service_names,
        serving::api_service_deployments_exist,
        serving::api_services_agree,
        serving::ports_agree,
    ];
    let extended = if compatibility.installs_api_services() { extended } else { &[] };
    rules.iter().chain(extended).flat_map(|rule| rule(bundle)).collect()
}

/// A rule that does not apply.
fn nothing(_: &Bundle) -> Vec<Diagnostic> {
    Vec::new()
}

fn unique_deployments(bundle: &Bundle) -> Vec<Diagnostic> {
    let names = bundle.csv.spec.install.spec.deployments.iter().map(|deployment| deployment.name.as_str());
    repeated(names)
        .into_iter()
        .map(|(name, index)| {
            let message = format!("cluster service version contains duplicate strategy deployment spec '{name}'");
            bundle
                .csv_finding("DuplicateDeployment", message, &format!("/spec/install/spec/deployments/{index}/name"))
                .help("give each deployment of the install strategy its own name")
        })
        .collect()
}

/// The values that occur more than once, with the index of their second occurrence.
fn repeated<T: Ord>(values: impl Iterator<Item = T>) -> BTreeMap<T, usize> {
    let mut seen = BTreeSet::new();
    let mut repeated = BTreeMap::new();
    for (index, value) in values.enumerate() {
        if seen.contains(&value) {
            repeated.entry(value).or_insert(index);
        } else {
            seen.insert(value);
        }
    }
    repeated
}

fn deployment_names(bundle: &Bundle) -> Vec<Diagnostic> {
    let mut invalid = BTreeMap::new();
    for (index, deployment) in bundle.csv.spec.install.spec.deployments.iter().enumerate() {
        let errors = subdomain_errors(&deployment.name);
        if !errors.is_empty() {
            invalid.entry(deployment.name.as_str()).or_insert((index, errors));
        }
    }
    invalid
        .into_iter()
        .map(|(name, (index, errors))| {
            let message =
                format!("invalid cluster service version strategy deployment name '{name}': {}", errors.join(", "));
            bundle
                .csv_finding("InvalidDeploymentName", message, &format!("/spec/install/spec/deployments/{index}/name"))
                .help("rename the deployment, and the webhooks that refer to it")
        })
        .collect()
}

fn unique_crds(bundle: &Bundle) -> Vec<Diagnostic> {
    repeated(bundle.crds.iter().map(|crd| crd.name.as_str()))
        .into_iter()
        .filter_map(|(name, index)| {
            let message = format!("bundle contains duplicate custom resource definition '{name}'");
            let place = bundle.crds.get(index)?.place.part("/metadata/name");
            Some(place.error("DuplicateCustomResourceDefinition", message).help("keep one of them"))
        })
        .collect()
}

fn owned_crds_exist(bundle: &Bundle) -> Vec<Diagnostic> {
    let present: BTreeSet<&str> = bundle.crds.iter().map(|crd| crd.name.as_str()).collect();
    let mut missing = BTreeMap::new();
    for (index, owned) in bundle.csv.spec.customresourcedefinitions.owned.iter().enumerate() {
        if !present.contains(owned.name.as_str()) {
            missing.entry(owned.name.as_str()).or_insert(index);
        }
    }
    missing
        .into_iter()
        .map(|(name, index)| {
            let message = format!(
                "cluster service definition references owned custom resource definition '{name}' not found in bundle"
            );
            let pointer = format!("/spec/customresourcedefinitions/owned/{index}/name");
            bundle
                .csv_finding("OwnedCustomResourceDefinitionMissing", message, &pointer)
                .help("put the CRD into manifests/, or list it as required instead of owned")
        })
        .collect()
}

fn package_name(bundle: &Bundle) -> Vec<Diagnostic> {
    let package = bundle.package.as_ref().filter(|package| package.name.is_empty());
    let help = "set the annotation operators.operatorframework.io.bundle.package.v1";
    let finding = package.map(|package| package.place.error("PackageNameMissing", "package name is empty").help(help));
    finding.into_iter().collect()
}

fn supported_kinds(bundle: &Bundle) -> Vec<Diagnostic> {
    bundle
        .others
        .iter()
        .filter(|other| kinds::supported(&other.kind).is_none())
        .map(|other| {
            let message = format!("unsupported resource {:?} with kind {:?}", other.name, other.kind);
            other
                .place
                .part("/kind")
                .error("UnsupportedKind", message)
                .help("registry+v1 bundles allow a fixed list of kinds; compatibility: extended installs others, too")
        })
        .collect()
}
