//! The bundles that BundleDeployments have.

use chandler_api::{BundleDeployment, ConditionType, Outcome, find_condition};
use chandler_resolver::Installed;
use kube::ResourceExt as _;
use serde_json::{Value, json};

/// What one BundleDeployment has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Installation {
    /// The name of the BundleDeployment.
    pub deployment: String,
    /// The bundle.
    pub bundle: Installed,
    /// Whether it is complete and healthy, as the current spec describes it.
    pub is_ready: bool,
}

/// Whether a BundleDeployment is complete and healthy, as its current spec describes it.
pub fn is_ready(deployment: &BundleDeployment) -> bool {
    let Some(status) = &deployment.status else { return false };
    let ready = find_condition(&status.conditions, ConditionType::Ready);
    deployment.metadata.deletion_timestamp.is_none()
        && ready
            .is_some_and(|ready| ready.status == "True" && ready.observed_generation == deployment.metadata.generation)
}

impl Installation {
    /// What a BundleDeployment has installed, if its bundle names its package. One that never became healthy has nothing installed: any
    /// version may take its place.
    pub fn of(deployment: &BundleDeployment) -> Option<Self> {
        let status = deployment.status.as_ref()?;
        let is_ready = is_ready(deployment);
        let succeeded = status.history.iter().any(|revision| revision.outcome == Outcome::Succeeded);
        let bundle = status.bundle.as_ref().filter(|_| succeeded || is_ready)?;
        let (package, version) = (bundle.package.clone()?, bundle.version.clone()?);
        let name = bundle.name.clone().unwrap_or_else(|| format!("{package}.v{version}"));
        let property = |it: &chandler_api::BundleProperty| -> Value { json!({"type": it.kind, "value": it.value}) };
        // An incomplete list would be taken for what the bundle does not need.
        let properties = match bundle.omitted_properties {
            Some(_) => Vec::new(),
            None => bundle.properties.iter().map(property).collect(),
        };
        let bundle = Installed { package, name, version, properties, ..Installed::default() };
        Some(Self { deployment: deployment.name_any(), bundle, is_ready })
    }
}
