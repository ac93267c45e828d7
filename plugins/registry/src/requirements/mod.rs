//! The requirements of a bundle on its cluster.
//!
//! OLM v1 renders without checking the cluster, and an operator that cannot run there fails later, in its pods. Here
//! all requirements of the ClusterServiceVersion, `properties.yaml` and `dependencies.yaml` are compared with the
//! cluster information of the contract.
//!
//! Only a Kubernetes that is too old is an error. A missing kind is a warning, since kinds come and go, and operators
//! can often wait for one.

mod constraint;
mod properties;
mod version;

use std::collections::BTreeSet;

use chandler_sdk::{Diagnostic, Location, Request};

use self::version::Version;
use crate::{
    bundle::{Bundle, Locate as _},
    compatibility::Compatibility,
    config::{Certificates, Config},
    csv::{GroupVersionKind, group_of},
    generate::CertificateProvider,
};

/// The result of the comparison.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Errors.
    pub(crate) errors: Vec<Diagnostic>,
    /// Findings that do not block the release.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// Compares a bundle with its cluster, with no more queries than the bundle needs: it is rendered again only when one
/// of the answers changes.
pub(crate) fn check(bundle: &Bundle, request: &Request, config: &Config) -> Findings {
    let compatibility = config.compatibility;
    let kinds = Kinds::new(bundle, request);
    let mut findings = Findings::default();
    if let Some(finding) = kubernetes_version(bundle, request) {
        let refused = compatibility.refuses_old_kubernetes() && finding.severity == chandler_sdk::Severity::Error;
        let list = if refused { &mut findings.errors } else { &mut findings.warnings };
        list.push(if refused { finding } else { Diagnostic { severity: chandler_sdk::Severity::Warning, ..finding } });
    }
    findings.warnings.extend(required_crds(bundle, &kinds));
    findings.warnings.extend(required_api_services(bundle, &kinds));
    findings.warnings.extend(native_apis(bundle, &kinds));
    findings.warnings.extend(installed(bundle, compatibility, &kinds));
    findings.warnings.extend(cert_manager(bundle, config, &kinds));
    findings.warnings.extend(properties::check(bundle, request, &kinds));
    findings
}

/// The available kinds of the cluster and the bundle.
pub(super) struct Kinds<'a> {
    /// The source of the cluster's kinds.
    request: &'a Request,
    /// `group/version/Kind` of the bundle's kinds.
    brought: Vec<String>,
}

impl<'a> Kinds<'a> {
    fn new(bundle: &Bundle, request: &'a Request) -> Self {
        let spec = &bundle.csv.spec;
        let crds =
            spec.customresourcedefinitions.owned.iter().map(|crd| path(group_of(&crd.name), &crd.version, &crd.kind));
        let services = spec
            .apiservicedefinitions
            .owned
            .iter()
            .map(|service| path(&service.group, &service.version, &service.kind));
        Self { request, brought: crds.chain(services).collect() }
    }

    /// Whether a kind is served or will be, or `None` if unknown.
    fn has(&self, wanted: &GroupVersionKind) -> Option<bool> {
        let path = path(&wanted.group, &wanted.version, &wanted.kind);
        if self.brought.contains(&path) {
            return Some(true);
        }
        let (api_version, kind) = path.rsplit_once('/')?;
        self.request.serves(api_version, kind).filter(|served| *served || !is_invisible(wanted))
    }

    /// Whether the cluster is an OpenShift.
    fn is_openshift(&self) -> bool {
        self.request.serves("config.openshift.io/v1", "ClusterVersion") == Some(true)
    }
}

/// Kinds that can only be created are not in the contract's list.
fn is_invisible(kind: &GroupVersionKind) -> bool {
    matches!(kind.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io")
        || kind.group.is_empty() && kind.kind == "Binding"
        || matches!(kind.kind.as_str(), "Eviction" | "Scale" | "TokenRequest")
}

/// `group/version/Kind`, and `version/Kind` for the core group.
fn path(group: &str, version: &str, kind: &str) -> String {
    if group.is_empty() { format!("{version}/{kind}") } else { format!("{group}/{version}/{kind}") }
}

fn kubernetes_version(bundle: &Bundle, request: &Request) -> Option<Diagnostic> {
    let least = &bundle.csv.spec.min_kube_version;
    if least.is_empty() {
        return None;
    }
    let place = bundle.csv_place("/spec/minKubeVersion");
    let Some(wanted) = Version::parse(least) else {
        let finding = place.warning("InvalidMinKubeVersion", format!("minKubeVersion {least:?} is not a version"));
        return Some(finding.help("write it as 1.29.0"));
    };
    let running = Version::parse(request.kubernetes_version()?)?;
    (running < wanted).then(|| {
        let message = format!("the operator needs Kubernetes {wanted}, and the cluster runs {running}");
        let help = "upgrade the cluster or use an older version of the operator; compatibility: reference installs it \
                    all the same";
        place.error("KubernetesTooOld", message).help(help)
    })
}

fn required_crds(bundle: &Bundle, kinds: &Kinds<'_>) -> Vec<Diagnostic> {
    let required = bundle.csv.spec.customresourcedefinitions.required.iter().enumerate();
    let missing = required.filter(|(_, crd)| {
        let kind = GroupVersionKind {
            group: group_of(&crd.name).to_owned(),
            version: crd.version.clone(),
            kind: crd.kind.clone(),
        };
        kinds.has(&kind) == Some(false) && bundle.crds.iter().all(|own| own.name != crd.name)
    });
    missing
        .map(|(index, crd)| {
            let message = format!(
                "the operator needs the CustomResourceDefinition {:?} with version {} of kind {}, and the cluster does \
                 not serve it",
                crd.name, crd.version, crd.kind
            );
            let place = bundle.csv_place(&format!("/spec/customresourcedefinitions/required/{index}"));
            place.warning("RequiredApiMissing", message).help("install the operator that owns it")
        })
        .collect()
}

fn required_api_services(bundle: &Bundle, kinds: &Kinds<'_>) -> Vec<Diagnostic> {
    let required = bundle.csv.spec.apiservicedefinitions.required.iter().enumerate();
    required
        .filter_map(|(index, service)| {
            let kind = GroupVersionKind {
                group: service.group.clone(),
                version: service.version.clone(),
                kind: service.kind.clone(),
            };
            (kinds.has(&kind) == Some(false)).then(|| {
                let kind = path(&service.group, &service.version, &service.kind);
                let message =
                    format!("the operator needs the aggregated API {kind}, and the cluster does not serve it");
                let place = bundle.csv_place(&format!("/spec/apiservicedefinitions/required/{index}"));
                place.warning("RequiredApiMissing", message).help("install the operator that serves it")
            })
        })
        .collect()
}

/// Objects of the bundle whose kind the cluster does not serve: they block the rollout until it does.
fn installed(bundle: &Bundle, compatibility: Compatibility, kinds: &Kinds<'_>) -> Vec<Diagnostic> {
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for other in bundle.others.iter().filter(|other| !other.api_version.is_empty()) {
        let api_version = compatibility.current_api_version(other).unwrap_or(&other.api_version);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: other.kind.clone() };
        // A CRD need not be listed as owned to be installed.
        let own = bundle.crds.iter().any(|crd| group_of(&crd.name) == group);
        if !own && kinds.has(&kind) == Some(false) && seen.insert((api_version, other.kind.as_str())) {
            let message = format!(
                "{} {:?} is of the API {api_version}, which the cluster does not serve",
                other.kind, other.name
            );
            let finding = other.place.part("").warning("ApiNotServed", message);
            findings.push(finding.help("the rollout waits until it does; install a provider of the API"));
        }
    }
    findings
}

/// Whether the configured certificate provider is available.
fn cert_manager(bundle: &Bundle, config: &Config, kinds: &Kinds<'_>) -> Option<Diagnostic> {
    let services = &bundle.csv.spec.apiservicedefinitions.owned;
    let served = config.compatibility.installs_api_services() && !services.is_empty();
    let needed = served || !bundle.csv.spec.webhookdefinitions.is_empty();
    let asked = config.certificates == Certificates::By(CertificateProvider::CertManager);
    let kind = GroupVersionKind { group: "cert-manager.io".into(), version: "v1".into(), kind: "Certificate".into() };
    (needed && asked && kinds.has(&kind) == Some(false)).then(|| {
        let message = "cert-manager is the certificate provider, and the cluster does not serve its API";
        let finding = Diagnostic::warning("ApiNotServed", message).at(Location::CONFIG);
        finding.pointer("/certificateProvider").help("install cert-manager")
    })
}

fn native_apis(bundle: &Bundle, kinds: &Kinds<'_>) -> Vec<Diagnostic> {
    let native = bundle.csv.spec.native_apis.iter().enumerate();
    native
        .filter(|(_, kind)| kinds.has(kind) == Some(false))
        .map(|(index, kind)| {
            let kind = path(&kind.group, &kind.version, &kind.kind);
            let message = format!("the operator needs the API {kind}, and the cluster does not serve it");
            let place = bundle.csv_place(&format!("/spec/nativeAPIs/{index}"));
            place.warning("NativeApiMissing", message).help("use a version of the operator for this Kubernetes")
        })
        .collect()
}
