//! Warnings about a rendered release.

use std::collections::BTreeSet;

use chandler_sdk::{Diagnostic, is_base64};
use chandler_yaml::Node;

use crate::{
    bundle::{Bundle, Locate as _},
    config::{Certificates, Config, UndeclaredConversions},
    generate::subjects_without_namespace,
    kinds,
    names::subdomain_errors,
    version_range,
};

/// The annotation with the versions that the bundle updates.
const SKIP_RANGE: &str = "olm.skipRange";

/// Findings that do not block the release.
pub(crate) fn advice(bundle: &Bundle, config: &Config) -> Vec<Diagnostic> {
    let mut findings = config.warnings.clone();
    findings.extend(header(bundle));
    if config.certificates == Certificates::Without {
        findings.extend(without_certificates(bundle, config));
    }
    for (index, webhook) in bundle.csv.spec.webhookdefinitions.iter().enumerate() {
        if webhook.webhook_kind().is_none() {
            let message = format!(
                "webhook {:?} has the unknown type {:?} and is not installed",
                webhook.generate_name, webhook.kind
            );
            let place = bundle.csv_place(&format!("/spec/webhookdefinitions/{index}/type"));
            let help = "use ValidatingAdmissionWebhook, MutatingAdmissionWebhook or ConversionWebhook";
            findings.push(place.warning("UnknownWebhookType", message).help(help));
        }
    }
    findings.extend(crds(bundle, config.undeclared_conversions));
    for other in &bundle.others {
        if config.compatibility.sets_subject_namespaces() && !subjects_without_namespace(other).is_empty() {
            let message = format!("{} {:?} binds a ServiceAccount without a namespace", other.kind, other.name);
            let help = "API servers reject that; the ServiceAccount in the install namespace is used";
            findings.push(other.place.part("").warning("SubjectNamespaceMissing", message).help(help));
        }
        let listed = config.compatibility.listed(other);
        if let Some(listed) = listed.filter(|_| other.api_version.is_empty()) {
            let message = format!("{} {:?} has no apiVersion", other.kind, other.name);
            let help = format!("{} is used, the API version of this kind; set it in the manifest", listed.api_version);
            findings.push(other.place.part("").warning("ApiVersionMissing", message).help(help));
        }
        if let Some(version) = config.compatibility.current_api_version(other) {
            let message = format!(
                "{} {:?} is of version {}, which is no longer served, and is installed as {version}",
                other.kind, other.name, other.api_version
            );
            findings.push(other.place.part("").warning("OldApiVersion", message).help("set it in the manifest"));
        }
        if listed.is_none() && kinds::supported(&other.kind).is_none() {
            let message = format!(
                "{} {:?} is of a kind that registry+v1 bundles may not contain, and is installed",
                other.kind, other.name
            );
            let help = "OLM refuses such a bundle, and so does compatibility: reference";
            findings.push(other.place.part("/kind").warning("UnlistedKind", message).help(help));
        }
    }
    findings
}

/// CRDs that the API server accepts, and that do not work as their authors expect.
fn crds(bundle: &Bundle, undeclared: UndeclaredConversions) -> Vec<Diagnostic> {
    let webhooks = bundle.csv.spec.webhookdefinitions.iter().filter(|webhook| webhook.is_conversion());
    let declared: BTreeSet<&str> = webhooks.flat_map(|webhook| &webhook.conversion_crds).map(String::as_str).collect();
    let mut findings = Vec::new();
    for crd in &bundle.crds {
        if let Some(converter) = crd.converter.as_ref().filter(|_| !declared.contains(crd.name.as_str())) {
            let message = format!(
                "the objects of CustomResourceDefinition {:?} are converted by {converter}, which no webhook definition of the \
                 ClusterServiceVersion declares",
                crd.name
            );
            let help = match undeclared {
                UndeclaredConversions::Keep => {
                    "declare a ConversionWebhook with conversionCRDs in spec.webhookdefinitions, or set strategy: None; until \
                     something else installs the converter, the installation waits for it, unless the configuration has \
                     undeclaredConversionWebhooks: remove"
                }
                UndeclaredConversions::Remove => {
                    "it is installed without a conversion, as undeclaredConversionWebhooks: remove in the configuration says"
                }
            };
            findings
                .push(crd.place.part("/spec/conversion").warning("UndeclaredConversionWebhook", message).help(help));
        }
        if !crd.redundant_short_names.is_empty() {
            let message = format!(
                "CustomResourceDefinition {:?} has {} as plural or singular and as a short name",
                crd.name,
                crd.redundant_short_names.join(", ")
            );
            let help = "remove the short name: an API server that has the CRD without it refuses it for good";
            findings.push(crd.place.part("/spec/names/shortNames").warning("RedundantShortName", message).help(help));
        }
    }
    findings
}

/// Fields of the ClusterServiceVersion that OLM v1 does not check, and other readers of bundles do.
fn header(bundle: &Bundle) -> Vec<Diagnostic> {
    let csv = &bundle.csv;
    let mut findings = Vec::new();
    let mut warn = |code: &str, pointer: &str, message: String, help: &str| {
        findings.push(bundle.csv_place(pointer).warning(code, message).help(help));
    };
    let name = &csv.metadata.name;
    if !subdomain_errors(name).is_empty() {
        let message = format!("ClusterServiceVersion {name:?} has a name that no API server accepts");
        let help = "use lowercase letters, digits, '-' and '.'; OLM v0 cannot install this bundle";
        warn("InvalidName", "/metadata/name", message, help);
    }
    let version = csv.spec.version.as_str().unwrap_or_default();
    if !version.is_empty() && semver::Version::parse(version).is_err() {
        let message = format!("version {version:?} is not a semantic version");
        let help = "use MAJOR.MINOR.PATCH, as in 1.4.0; catalogs and upgrades order versions by it";
        warn("InvalidVersion", "/spec/version", message, help);
    }
    let written = bundle.csv_node.at("/spec/version").filter(|node| !node.is_null() && node.as_str().is_none());
    if let Some(node) = written {
        let message =
            format!("the version of the ClusterServiceVersion is {}, and must be text", node.article_and_type());
        let help = "put it into quotes, with three parts: \"1.1.0\"; without quotes, YAML reads 1.10 as the number 1.1";
        warn("InvalidVersion", "/spec/version", message, help);
    }
    if let Some(range) = csv.metadata.annotations.get(SKIP_RANGE).filter(|range| !version_range::is_valid(range)) {
        let message = format!("{SKIP_RANGE} {range:?} is not a version range, and the bundle updates no version by it");
        let help = "write full versions without a leading v, with spaces between the comparisons: \">=1.0.0 <1.1.0\"";
        warn("InvalidSkipRange", "/metadata/annotations/olm.skipRange", message, help);
    }
    let icons = bundle.csv_node.at("/spec/icon").and_then(Node::as_sequence).unwrap_or_default();
    for (index, icon) in icons.iter().enumerate() {
        if icon.get("base64data").and_then(Node::as_str).is_some_and(|data| !is_base64(data)) {
            let message = "the icon is not base64, and is not shown".to_owned();
            let help = "write the output of `base64 -w0 FILE`, without quotes or a prefix such as data:image/png";
            warn("InvalidIcon", &format!("/spec/icon/{index}/base64data"), message, help);
        }
    }
    let strategy = &csv.spec.install.strategy;
    if !["", "deployment"].contains(&strategy.as_str()) {
        let message = format!("install strategy {strategy:?} is unknown and is read as \"deployment\"");
        let help = "set strategy: deployment; the Deployments of install.spec are installed, and nothing else";
        warn("UnknownInstallStrategy", "/spec/install/strategy", message, help);
    }
    findings
}

/// Without a certificate that the API server trusts, all its calls fail.
fn without_certificates(bundle: &Bundle, config: &Config) -> Vec<Diagnostic> {
    let help = "the API server only calls over TLS: mount a certificate and set the caBundle yourself";
    let webhooks = bundle.csv.spec.webhookdefinitions.iter().enumerate();
    let webhooks = webhooks.map(|(index, webhook)| {
        let message = format!("no provider issues a certificate for webhook {:?}", webhook.generate_name);
        let place = bundle.csv_place(&format!("/spec/webhookdefinitions/{index}"));
        place.warning("WebhookWithoutCertificate", message).help(help)
    });
    let services = bundle.csv.spec.apiservicedefinitions.owned.iter().enumerate();
    let services = services.filter(|_| config.compatibility.installs_api_services()).map(|(index, service)| {
        let message = format!("no provider issues a certificate for API service {:?}", service.object_name());
        let place = bundle.csv_place(&format!("/spec/apiservicedefinitions/owned/{index}"));
        place.warning("ApiServiceWithoutCertificate", message).help(help)
    });
    webhooks.chain(services).collect()
}
