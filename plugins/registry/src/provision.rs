//! The pipeline from a request to emitted objects.
//!
//! `load -> supported? -> config -> target -> rules -> targets -> generate -> unique -> emit`. A step with errors does
//! not stop later ones that do not need its result, so that an author sees all findings at once. The first step with
//! errors decides the kind of failure; the order follows OLM v1, so that a bundle with several errors is refused for
//! the same reason.

use chandler_sdk::{Content, Diagnostic, Failure, Location, Output, Request};

use crate::{
    advice::advice,
    bundle::{Bundle, Locate as _},
    compatibility::Compatibility,
    config::{self, Certificates, Config},
    describe::describe,
    generate::{Context, Identity, generate},
    load::load,
    modes::InstallModes,
    requirements,
    unique::{Unique, unique},
    validate::validate,
};

/// Emits the objects of a bundle.
pub(crate) fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
    let mut refusal = Refusal::default();
    let loaded = load(content, Compatibility::requested(request.config()));
    refusal.add(loaded.errors, Failure::InvalidContent);
    report(loaded.warnings, output);
    let Some(bundle) = &loaded.bundle else {
        return Err(refusal.failure.unwrap_or_else(|| Failure::internal("no bundle and no reason")));
    };
    let modes = InstallModes::of(&bundle.csv.spec.install_modes);
    let namespace = request.namespace();
    let (config, config_errors) = config::parse(request.config(), &modes, namespace);
    // An invalid configuration is reported as such, not as a missing provider.
    let lacks_provider = config_errors.is_empty() && config.certificates == Certificates::Unset;
    let names_several = request.config().get("watchNamespaces").is_some_and(|names| !names.is_null());
    // OLM v1 cannot configure several namespaces.
    let installable = modes.all() || modes.single() || modes.own() || modes.multi() && names_several;
    refusal.add(unsupported(bundle, &config, lacks_provider), Failure::Unsupported);
    refusal.add(if installable { Vec::new() } else { no_install_mode(bundle, &modes) }, Failure::Unsupported);
    let configured = installable && config_errors.is_empty();
    refusal.add(config_errors, Failure::InvalidConfig);
    let requirements = requirements::check(bundle, request, &config);
    refusal.add(requirements.errors, Failure::Unsupported);
    refusal.add(validate(bundle, config.compatibility, loaded.complete), Failure::InvalidContent);
    let targets = config.targets.clone().unwrap_or_else(|| modes.default_targets());
    if configured {
        refusal.add(check_targets(&modes, namespace, &targets), Failure::InvalidConfig);
    }
    // An author needs warnings together with errors.
    report(requirements.warnings, output);
    report(advice(bundle, &config), output);
    refusal.check()?;

    let certificates = match config.certificates {
        Certificates::By(provider) => Some(provider),
        Certificates::Unset | Certificates::Without => None,
    };
    let plan = Context {
        bundle,
        namespace,
        targets: &targets,
        certificates,
        environment: &config.environment,
        deployment_config: config.deployments.as_ref(),
        undeclared_conversions: config.undeclared_conversions,
        compatibility: config.compatibility,
    };
    let Unique { objects, warnings } =
        unique(generate(&plan), config.compatibility).map_err(Failure::InvalidContent)?;
    report(warnings, output);
    if objects.is_empty() {
        let place = Location::of(&bundle.csv_path, &bundle.csv_node);
        output.report(&place.warning("NothingToInstall", "the bundle describes nothing to install"));
    }
    output.describe(&describe(bundle));
    for object in objects {
        output.emit(&object.json, stage(&object.identity), Some(object.origin))?;
    }
    Ok(())
}

/// The stage of an object: admission objects come after everything else.
///
/// Otherwise a webhook that is called for pods would block the pods that serve it. OLM v1 has the last phase
/// `admission` for this.
fn stage(identity: &Identity) -> Option<u32> {
    const ADMISSION: u32 = 1;
    (identity.group == "admissionregistration.k8s.io").then_some(ADMISSION)
}

fn report(findings: Vec<Diagnostic>, output: &mut dyn Output) {
    for finding in &findings {
        output.report(finding);
    }
}

/// The findings of several steps, as the kind of failure of the first one.
#[derive(Default)]
struct Refusal {
    failure: Option<Failure>,
}

impl Refusal {
    fn add(&mut self, findings: Vec<Diagnostic>, failure: fn(Vec<Diagnostic>) -> Failure) {
        if findings.is_empty() {
            return;
        }
        match &mut self.failure {
            Some(Failure::InvalidContent(all) | Failure::InvalidConfig(all) | Failure::Unsupported(all)) => {
                all.extend(findings);
            }
            Some(_) => {}
            None => self.failure = Some(failure(findings)),
        }
    }

    fn check(self) -> Result<(), Failure> {
        self.failure.map_or(Ok(()), Err)
    }
}

/// Features that this provisioner does not support at all, or not without configuration.
fn unsupported(bundle: &Bundle, config: &Config, lacks_provider: bool) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let services = bundle.csv.spec.apiservicedefinitions.owned.iter().enumerate();
    for (index, service) in services {
        let pointer = format!("/spec/apiservicedefinitions/owned/{index}");
        if !config.compatibility.installs_api_services() {
            let message = "unsupported bundle: apiServiceDefintions are not supported";
            let help = format!("API service {:?} is installed with compatibility: extended", service.name);
            findings.push(bundle.csv_finding("ApiServicesUnsupported", message, &pointer).help(help));
        }
    }
    if lacks_provider {
        for (index, webhook) in bundle.csv.spec.webhookdefinitions.iter().enumerate() {
            let message = "unsupported bundle: webhookDefinitions are not supported: certificate provider is nil";
            let help = format!(
                "webhook {:?} needs a certificate: set certificateProvider to host, cert-manager or openshift-service-ca, or \
                 to none if you bring it yourself",
                webhook.generate_name
            );
            let pointer = format!("/spec/webhookdefinitions/{index}");
            findings.push(bundle.csv_finding("CertificateProviderMissing", message, &pointer).help(help));
        }
    }
    findings
}

fn no_install_mode(bundle: &Bundle, modes: &InstallModes) -> Vec<Diagnostic> {
    let message = "unsupported bundle: bundle must support at least one of [AllNamespaces SingleNamespace OwnNamespace] \
                   install modes";
    let help = if modes.multi() {
        "name the namespaces that the operator should watch in watchNamespaces"
    } else {
        "spec.installModes supports no known install mode"
    };
    vec![bundle.csv_finding("InstallModesUnsupported", message, "/spec/installModes").help(help)]
}

fn check_targets(modes: &InstallModes, namespace: &str, targets: &[String]) -> Vec<Diagnostic> {
    let Err(reason) = modes.check_targets(namespace, targets) else {
        return Vec::new();
    };
    let message = format!("invalid option(s): invalid target namespaces [{}]: {reason}", targets.join(" "));
    let pointer = if targets.len() > 1 { "/watchNamespaces" } else { "/watchNamespace" };
    let finding = Diagnostic::error("InvalidTargetNamespaces", message).at(Location::CONFIG).pointer(pointer);
    vec![finding.help("set watchNamespace, or watchNamespaces, to what the operator supports")]
}
