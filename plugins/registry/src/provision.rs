//! The way from a request to emitted objects.
//!
//! `load -> supported? -> config -> validate -> targets -> generate -> unique -> emit`: each step needs the one before, and
//! each reports everything that it finds. The order is that of the reference, so that a bundle with several faults is
//! refused for the same one.

use std::collections::{BTreeMap, btree_map::Entry};

use chandler_sdk::{Content, Diagnostic, Failure, Location, Output, Request};

use crate::{
    bundle::{Bundle, Locate as _},
    config::{self, Certificates, Config},
    generate::{Context, Generated, Source, generate},
    kinds,
    load::load,
    modes::InstallModes,
    validate::validate,
};

/// Emits the objects of a bundle.
pub(crate) fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
    let loaded = load(content)?;
    let bundle = &loaded.bundle;
    let modes = InstallModes::of(&bundle.csv.spec.install_modes);
    let namespace = request.target.namespace.as_str();
    // Read early for the certificate provider; refused late, after what no configuration could mend.
    let config = config::parse(&request.config, &modes, namespace);
    let names_several = request.config.get("watchNamespaces").is_some_and(|names| !names.is_null());
    refuse_unsupported(bundle, &modes, config.as_ref().ok(), names_several)?;
    let config = config?;
    refuse(validate(bundle), Failure::InvalidContent)?;
    let targets = config.targets.clone().unwrap_or_else(|| modes.default_targets());
    check_targets(&modes, namespace, &targets)?;

    let certificates = match config.certificates {
        Certificates::By(provider) => Some(provider),
        Certificates::Unset | Certificates::Without => None,
    };
    let plan = Context {
        bundle,
        namespace,
        targets: &targets,
        certificates,
        deployment_config: config.deployments.as_ref(),
        compatibility: config.compatibility,
    };
    let objects = unique(generate(&plan))?;
    let nothing = objects.is_empty().then(|| {
        let place = Location::of(&bundle.csv_path, &bundle.csv_node);
        place.warning("NothingToInstall", "the bundle describes nothing to install")
    });
    for finding in loaded.warnings.into_iter().chain(advice(&plan, &config)).chain(nothing) {
        output.report(&finding);
    }
    for object in objects {
        output.emit(&object.json, None, Some(object.origin))?;
    }
    Ok(())
}

fn refuse(findings: Vec<Diagnostic>, failure: fn(Vec<Diagnostic>) -> Failure) -> Result<(), Failure> {
    if findings.is_empty() { Ok(()) } else { Err(failure(findings)) }
}

/// What this provisioner does not do, whatever the configuration says; and what it does not do without being told how.
fn refuse_unsupported(
    bundle: &Bundle,
    modes: &InstallModes,
    config: Option<&Config>,
    names_several: bool,
) -> Result<(), Failure> {
    let mut findings = Vec::new();
    for (index, service) in bundle.csv.spec.apiservicedefinitions.owned.iter().enumerate() {
        let pointer = format!("/spec/apiservicedefinitions/owned/{index}");
        let help =
            format!("serve {:?} by a CustomResourceDefinition instead of an aggregated API server", service.name);
        let message = "unsupported bundle: apiServiceDefintions are not supported";
        findings.push(bundle.csv_finding("ApiServicesUnsupported", message, &pointer).help(help));
    }
    // An invalid configuration is reported as such, not as one that lacks a provider.
    if config.is_some_and(|config| config.certificates == Certificates::Unset) {
        for (index, webhook) in bundle.csv.spec.webhookdefinitions.iter().enumerate() {
            let message =
                "unsupported bundle: webhookDefinitions are not supported: certificate provider is nil".to_owned();
            let help = format!(
                "webhook {:?} needs a certificate: set certificateProvider to cert-manager or openshift-service-ca, or \
                 to none if you bring it yourself",
                webhook.generate_name
            );
            let pointer = format!("/spec/webhookdefinitions/{index}");
            findings.push(bundle.csv_finding("CertificateProviderMissing", message, &pointer).help(help));
        }
    }
    // The reference has no way to name several namespaces.
    let several = modes.multi() && names_several;
    if !modes.all() && !modes.single() && !modes.own() && !several {
        let message = "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace \
                       OwnNamespace] install modes";
        let help = if modes.multi() {
            "name the namespaces that the operator should watch in watchNamespaces"
        } else {
            "spec.installModes supports no known install mode"
        };
        findings.push(bundle.csv_finding("InstallModesUnsupported", message, "/spec/installModes").help(help));
    }
    refuse(findings, Failure::Unsupported)
}

fn check_targets(modes: &InstallModes, namespace: &str, targets: &[String]) -> Result<(), Failure> {
    modes.check_targets(namespace, targets).map_err(|reason| {
        let message = format!("invalid option(s): invalid target namespaces [{}]: {reason}", targets.join(" "));
        let finding = Diagnostic::error("InvalidTargetNamespaces", message).at(Location::CONFIG);
        Failure::InvalidConfig(vec![
            finding.help("set watchNamespace, or watchNamespaces, to what the operator supports"),
        ])
    })
}

/// Each object once.
///
/// - Bundles repeat permissions, which gives the same role twice: once is enough.
/// - Bundles bring a ServiceAccount that is also generated: theirs may say more, and the generated one gives way.
/// - Two other objects with one identity are refused, since one of them would silently win.
fn unique(objects: Vec<Generated<'_>>) -> Result<Vec<Generated<'_>>, Failure> {
    let mut unique: Vec<Generated<'_>> = Vec::with_capacity(objects.len());
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut findings = Vec::new();
    for object in objects {
        let entry = match seen.entry(object.identity.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(unique.len());
                unique.push(object);
                continue;
            }
            Entry::Occupied(entry) => entry,
        };
        let Some(first) = unique.get_mut(*entry.get()).filter(|first| first.json != object.json) else {
            continue;
        };
        if first.source == Source::ServiceAccount {
            *first = object;
            continue;
        }
        let message = format!("bundle contains two different objects {}", object.identity);
        let help = format!(
            "the other is at {}; namespaced objects all go into the install namespace, whatever they say",
            first.origin
        );
        findings.push(object.origin.error("DuplicateObject", message).help(help));
    }
    refuse(findings, Failure::InvalidContent)?;
    Ok(unique)
}

/// What an administrator should know about a release that is made.
fn advice(context: &Context<'_>, config: &Config) -> Vec<Diagnostic> {
    let bundle = context.bundle;
    let mut findings = config.warnings.clone();
    if config.certificates == Certificates::Without {
        for (index, webhook) in bundle.csv.spec.webhookdefinitions.iter().enumerate() {
            let message = format!("nobody makes a certificate for webhook {:?}", webhook.generate_name);
            let place = bundle.csv_place(&format!("/spec/webhookdefinitions/{index}"));
            findings.push(
                place.warning("WebhookWithoutCertificate", message).help(
                    "the API server calls webhooks by TLS only: mount a certificate and set the caBundle yourself",
                ),
            );
        }
    }
    for other in bundle.others.iter().filter(|other| other.api_version.is_empty()) {
        let message = format!("{} {:?} has no apiVersion", other.kind, other.name);
        let version = kinds::supported(&other.kind).map_or("", |kind| kind.api_version);
        let help = format!("it is taken for {version}, where objects of this kind belong; say so in the manifest");
        findings.push(other.place.warning("ApiVersionMissing", message).help(help));
    }
    findings
}
