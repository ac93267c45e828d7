//! The bundles that BundleDeployments have, and their description in the status.

use std::collections::BTreeSet;

use chandler_api::{BundleDeployment, ConditionType, find_condition};
use chandler_core::text;
use chandler_resolver::Installed;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use serde_json::{Map, Value, json};

/// The most characters of a name in a message: bundles choose theirs.
const CHARACTERS: usize = 100;
/// The most BundleDeployments of one package that messages name.
const NAMED: usize = 5;

/// What one BundleDeployment has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Installation {
    /// The name of the BundleDeployment.
    pub deployment: String,
    /// The bundle.
    pub bundle: Installed,
    /// Whether it is complete and healthy, as the current spec describes it.
    pub is_ready: bool,
    /// Where it is, if this Resolution takes it over from another one.
    pub placement: Option<Placement>,
}

/// Where a member of a set that another Resolution installed was placed. It stays there when the set of this Resolution takes it over: a move
/// would be an uninstallation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// `spec.installNamespace`.
    pub install_namespace: String,
    /// `spec.config`.
    pub config: Option<Map<String, Value>>,
    /// The image in `spec.source`; empty without one.
    pub image: String,
}

impl Placement {
    /// The placement of a BundleDeployment.
    pub fn of(deployment: &BundleDeployment) -> Self {
        let spec = &deployment.spec;
        let image = spec.source.image.as_ref().map(|image| image.reference.clone()).unwrap_or_default();
        Self { install_namespace: spec.install_namespace.clone(), config: spec.config.clone(), image }
    }
}

/// What the bundle of a BundleDeployment calls itself. Bundles choose their names and versions, so this alone decides nothing
/// ([`evidence`](crate::evidence)).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claim {
    /// The name of the BundleDeployment.
    pub deployment: String,
    /// The package.
    pub package: String,
    /// The version.
    pub version: String,
    /// Its properties, or `None` if not all of them are known: an incomplete list would hide some of the bundle's requirements.
    pub properties: Vec<Value>,
}

/// The condition Ready of a BundleDeployment.
pub fn ready(deployment: &BundleDeployment) -> Option<&Condition> {
    find_condition(&deployment.status.as_ref()?.conditions, ConditionType::Ready)
}

/// Whether a BundleDeployment is complete and healthy, as its current spec describes it.
pub fn is_ready(deployment: &BundleDeployment) -> bool {
    deployment.metadata.deletion_timestamp.is_none()
        && ready(deployment)
            .is_some_and(|ready| ready.status == "True" && ready.observed_generation == deployment.metadata.generation)
}

impl Claim {
    /// What the bundle of a BundleDeployment calls itself, if it names its package and version.
    pub fn of(deployment: &BundleDeployment) -> Option<Self> {
        let bundle = deployment.status.as_ref()?.bundle.as_ref()?;
        let property = |it: &chandler_api::BundleProperty| -> Value { json!({"type": it.kind, "value": it.value}) };
        let properties = match bundle.omitted_properties {
            Some(_) => Vec::new(),
            None => bundle.properties.iter().map(property).collect(),
        };
        let (package, version) = (bundle.package.clone()?, bundle.version.clone()?);
        Some(Self { deployment: deployment.name_any(), package, version, properties })
    }
}

impl Claim {
    /// Why it does not count: its image is not from these catalogs, as `a catalog of this Resolution`.
    pub fn does_not_count(&self, catalogs: &str) -> String {
        let Self { deployment, package, version, .. } = self;
        let (package, version) = (short(package), short(version));
        format!(
            "BundleDeployment {deployment} calls itself {package} {version}; it is not from {catalogs}, so it does not count"
        )
    }
}

/// A text that a bundle chose, for a message.
fn short(text: &str) -> String {
    text::one_line(&text.chars().take(CHARACTERS).collect::<String>())
}

/// Notes about bundles that claim to be one of these packages but are not from these catalogs: a line each, a few for each package.
pub fn not_counted(claims: &[Claim], packages: &BTreeSet<&str>, catalogs: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for package in packages {
        let mut of_package: Vec<&Claim> = claims.iter().filter(|claim| claim.package == *package).collect();
        of_package.sort_by(|one, other| one.deployment.cmp(&other.deployment));
        lines.extend(of_package.iter().take(NAMED).map(|claim| claim.does_not_count(catalogs)));
        if let Some(more) = of_package.len().checked_sub(NAMED).filter(|more| *more > 0) {
            let deployments = text::count(more, "more BundleDeployment");
            lines.push(format!("{deployments} with a bundle called {} that does not count", short(package)));
        }
    }
    lines
}
