//! The configuration of a BundleDeployment.
//!
//! | key | meaning |
//! |---|---|
//! | `watchNamespace` | the one namespace that the operator watches |
//! | `watchNamespaces` | several namespaces |
//! | `deploymentConfig` | changes to the operator's Deployments |
//! | `operatorConditionName`, `proxy` | variables in the operator's containers |
//! | `certificateProvider` | the provider of certificates for webhooks |
//! | `undeclaredConversionWebhooks` | whether CRDs keep a conversion webhook that the ClusterServiceVersion does not declare |
//! | `compatibility` | whether known errors of OLM v1 are kept |
//!
//! The host enforces [`schema`] before it requests objects. This module parses the configuration again, so that the
//! result does not depend on that, and because the schema does not know the install namespace.

mod environment;
pub(crate) mod schema;
mod watch;

pub(crate) use environment::Variable;

use chandler_sdk::{Diagnostic, Location};
use chandler_yaml::{Node, pointer_segment};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    compatibility::Compatibility,
    generate::CertificateProvider,
    modes::InstallModes,
    typed::{self, Conversion, Spelling, convert::Dropped, tables::pod::SUBSCRIPTION_CONFIG},
};

/// A parsed configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Config {
    /// The namespaces to watch; none for the default.
    pub(crate) targets: Option<Vec<String>>,
    /// Environment variables of the containers.
    pub(crate) environment: Vec<Variable>,
    /// Changes to the Deployments, in their typed form.
    pub(crate) deployments: Option<Value>,
    /// The certificate provider.
    pub(crate) certificates: Certificates,
    /// What happens to conversion webhooks that the ClusterServiceVersion does not declare.
    pub(crate) undeclared_conversions: UndeclaredConversions,
    /// Whether known errors of OLM v1 are kept.
    pub(crate) compatibility: Compatibility,
    /// Findings that do not block the release.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// `certificateProvider`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Certificates {
    /// Not set, and no default: bundles with webhooks are refused.
    #[default]
    Unset,
    /// `none`: the operator or the administrator provides certificates.
    Without,
    /// A provider issues them.
    By(CertificateProvider),
}

/// `undeclaredConversionWebhooks`: CRDs that name a converter which nothing in the bundle provides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UndeclaredConversions {
    /// They are installed as they are, and the installation waits for the converter.
    #[default]
    Keep,
    /// They are installed without a conversion, which the operator may set itself.
    Remove,
}

/// A field below `deploymentConfig` that the types do not know: a newer Kubernetes might, so it is only a warning.
fn dropped(field: &Dropped) -> Diagnostic {
    let name = field.pointer.rsplit('/').next().unwrap_or_default();
    let pointer = format!("/deploymentConfig{}", field.pointer);
    let finding = Diagnostic::warning("UnknownField", format!("unknown field {name:?} is dropped"));
    let finding = finding.at(Location::CONFIG).pointer(pointer);
    match field.suggested {
        Some(suggested) => finding.help(format!("field names are case-sensitive; did you mean {suggested:?}?")),
        None => finding,
    }
}

/// The top-level keys.
const KEYS: [&str; 8] = [
    "certificateProvider",
    "compatibility",
    "deploymentConfig",
    "operatorConditionName",
    "proxy",
    "undeclaredConversionWebhooks",
    "watchNamespace",
    "watchNamespaces",
];

/// A finding about the configuration.
fn finding(code: &str, message: impl Into<String>, pointer: &str) -> Diagnostic {
    Diagnostic::error(code, message).at(Location::CONFIG).pointer(pointer)
}

fn unknown_field(name: &str, pointer: &str) -> Diagnostic {
    finding("UnknownField", format!("unknown field {name:?}"), pointer)
}

/// Parses a configuration for an operator with these install modes: the valid part, and its errors.
pub(crate) fn parse(
    given: &Map<String, Value>,
    modes: &InstallModes,
    install_namespace: &str,
) -> (Config, Vec<Diagnostic>) {
    let mut findings = Vec::new();
    let mut config = Config::default();
    // As text again, so that it passes through the types in the same way as the bundle.
    let text = serde_json::to_vec(given).unwrap_or_default();
    match chandler_yaml::parse(&text, &chandler_yaml::Limits::default()) {
        Ok(documents) => {
            if let Some(document) = documents.first() {
                read(&document.root, modes, install_namespace, &mut config, &mut findings);
            }
        }
        Err(error) => {
            let finding = finding("InvalidConfiguration", error.to_string(), "");
            findings.push(finding.help("write it with fewer levels"));
        }
    }
    (config, findings)
}

fn read(
    root: &Node,
    modes: &InstallModes,
    install_namespace: &str,
    config: &mut Config,
    findings: &mut Vec<Diagnostic>,
) {
    let Some(entries) = root.as_mapping() else {
        let finding = finding("InvalidConfiguration", "input is not a valid JSON object", "");
        findings.push(finding.help(KEYS_HELP));
        return;
    };
    for key in entries.iter().map(|entry| &*entry.key) {
        if !KEYS.contains(&key) {
            findings.push(unknown_field(key, &format!("/{}", pointer_segment(key))).help(KEYS_HELP));
        }
    }
    match watch::targets(root, modes, install_namespace) {
        Ok(targets) => config.targets = targets,
        Err(wrong) => findings.extend(wrong),
    }
    match deployment_config(root) {
        Ok(changes) => {
            config.deployments = changes.as_ref().map(Conversion::value);
            config.warnings = changes.iter().flat_map(|changes| &changes.dropped).map(dropped).collect();
        }
        Err(wrong) => findings.extend(wrong),
    }
    match environment::read(root) {
        Ok(variables) => config.environment = variables,
        Err(wrong) => findings.extend(wrong),
    }
    match certificates(root) {
        Ok(certificates) => config.certificates = certificates,
        Err(wrong) => findings.push(*wrong),
    }
    match choice(root, "undeclaredConversionWebhooks", &["keep", "remove"]) {
        Ok(undeclared) => config.undeclared_conversions = undeclared.unwrap_or_default(),
        Err(wrong) => findings.push(*wrong),
    }
    match choice(root, "compatibility", &["reference", "extended"]) {
        Ok(compatibility) => config.compatibility = compatibility.unwrap_or_default(),
        Err(wrong) => findings.push(*wrong),
    }
    if config.certificates == Certificates::Unset && config.compatibility.defaults_to_host_certificates() {
        config.certificates = Certificates::By(CertificateProvider::Host);
    }
}

const KEYS_HELP: &str = "the keys are watchNamespace, watchNamespaces, deploymentConfig, certificateProvider, compatibility, proxy, \
     operatorConditionName and undeclaredConversionWebhooks";

/// The value of a key; null counts as absent.
fn value<'a>(root: &'a Node, key: &str) -> Option<&'a Node> {
    root.get(key).filter(|node| !node.is_null())
}

fn certificates(root: &Node) -> Result<Certificates, Box<Diagnostic>> {
    if value(root, "certificateProvider").and_then(Node::as_str) == Some("none") {
        return Ok(Certificates::Without);
    }
    let allowed = ["cert-manager", "openshift-service-ca", "host", "none"];
    let provider: Option<CertificateProvider> = choice(root, "certificateProvider", &allowed)?;
    Ok(provider.map_or(Certificates::Unset, Certificates::By))
}

/// A key with one of a few strings.
fn choice<T: for<'de> Deserialize<'de>>(
    root: &Node,
    key: &str,
    allowed: &[&str],
) -> Result<Option<T>, Box<Diagnostic>> {
    let Some(node) = value(root, key) else {
        return Ok(None);
    };
    let text = node.as_str().filter(|text| allowed.contains(text)).map(|text| Value::String(text.to_owned()));
    let choice = text.and_then(|text| serde_json::from_value(text).ok());
    choice.map(Some).ok_or_else(|| {
        let finding = finding("InvalidValue", format!("invalid value for field {key:?}"), &format!("/{key}"));
        Box::new(finding.help(format!("use one of {}", allowed.join(", "))))
    })
}

fn deployment_config(root: &Node) -> Result<Option<Conversion>, Vec<Diagnostic>> {
    let Some(node) = value(root, "deploymentConfig") else {
        return Ok(None);
    };
    let mut findings: Vec<Diagnostic> = node
        .as_mapping()
        .into_iter()
        .flatten()
        .map(|entry| &*entry.key)
        .filter(|key| SUBSCRIPTION_CONFIG.field(key).is_none())
        .map(|key| {
            let finding = unknown_field(key, &format!("/deploymentConfig/{}", pointer_segment(key)));
            finding.help("deploymentConfig has the keys of OLM's subscription configuration, except selector")
        })
        .collect();
    match typed::convert(node, &SUBSCRIPTION_CONFIG, Spelling::Exact) {
        Ok(conversion) if findings.is_empty() => return Ok(Some(conversion)),
        Ok(_) => {}
        Err(errors) => findings.extend(errors.iter().map(|error| {
            let pointer = format!("/deploymentConfig{}", error.pointer);
            let field = pointer.trim_start_matches('/').replace('/', ".");
            let message = format!("invalid type for field {field:?}: {}", error.mismatch());
            finding("InvalidType", message, &pointer).help("write it as in the specification of a Deployment")
        })),
    }
    Err(findings)
}
