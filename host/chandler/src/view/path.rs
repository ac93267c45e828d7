//! The path from what is wanted to the objects in the cluster, for `chandler explain`: wish, decision, set, members, objects.

mod actions;
mod packages;
mod steps;
mod text;

use std::collections::BTreeMap;

use chandler_api::{BundleDeployment, LeftOut, PlatformOperator, Resolution};
use serde::Serialize;

pub use self::{
    packages::Package,
    steps::{Step, StepState},
};
use super::olm_states::InstallPlan;

/// The objects that were read from the cluster.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The PlatformOperator that the question is about.
    pub operator: Option<PlatformOperator>,
    /// The Resolution that chose the packages.
    pub resolution: Option<Resolution>,
    /// The BundleDeployment that the question is about.
    pub deployment: Option<String>,
    /// BundleDeployments by name: the set, and the ones that have the packages.
    pub deployments: BTreeMap<String, BundleDeployment>,
}

impl Found {
    /// The BundleDeployment of the set.
    fn set(&self) -> Option<&BundleDeployment> {
        self.deployments.get(self.resolution.as_ref()?.status.as_ref()?.bundle_deployment.as_deref()?)
    }

    /// The package that the question is about, or `None` if it is about all packages.
    fn focus(&self) -> Option<&str> {
        if let Some(operator) = &self.operator {
            return Some(&operator.spec.package.name);
        }
        let (deployment, status) = (self.deployment.as_ref()?, self.resolution.as_ref()?.status.as_ref()?);
        let member = status.members.iter().find(|member| member.bundle_deployment.as_ref() == Some(deployment));
        member.map(|member| member.package.as_str())
    }

    /// The package that the question is about, if the set is without it.
    fn left_out(&self) -> Option<&LeftOut> {
        let (focus, status) = (self.focus()?, self.resolution.as_ref()?.status.as_ref()?);
        let is_member = status.members.iter().any(|member| member.package == focus);
        status.left_out.iter().find(|it| it.package == focus).filter(|_| !is_member)
    }
}

/// The path of one wish.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Path {
    /// The kind of the object that the question is about.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Whether all that is wanted is in the cluster and healthy, and no upgrade is left.
    pub complete: bool,
    /// The steps, from the wish to the objects.
    pub steps: Vec<Step>,
    /// The packages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<Package>,
    /// The phase of the InstallPlan that OLM v0 would have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install_plan: Option<InstallPlan>,
    /// What a pending decision would change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending_changes: Vec<String>,
    /// Why the packages have no answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<String>,
    /// Optional packages that do not fit, each with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOutPackage>,
    /// What would be chosen if something were different.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// What users should know of the decision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Suggested actions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next_steps: Vec<String>,
}

/// An optional package that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOutPackage {
    /// The package.
    pub package: String,
    /// Why, in a word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why.
    pub explanation: Vec<String>,
}

impl From<LeftOut> for LeftOutPackage {
    fn from(LeftOut { package, reason, explanation }: LeftOut) -> Self {
        Self { package, reason, explanation }
    }
}

impl LeftOutPackage {
    /// A line: the package, and why.
    pub fn line(&self) -> String {
        let prefix = format!("{}: ", self.package);
        let why = self.explanation.join("; ");
        // The checks name the BundleDeployment, which has the name of the package.
        if why.starts_with(&prefix) { why } else { prefix + &why }
    }
}

impl Path {
    /// The path of what was found. Nothing is found of a name that is nowhere; then all is empty.
    pub fn new(found: &Found) -> Self {
        let (kind, name) = subject(found);
        let packages = packages::packages(found);
        let steps = steps::steps(found, &packages);
        let status = found.resolution.as_ref().and_then(|resolution| resolution.status.clone()).unwrap_or_default();
        let deployment = found.deployment.as_ref().and_then(|name| found.deployments.get(name));
        let install_plan = match (found.left_out(), &found.resolution) {
            (Some(left_out), _) => super::olm_states::install_plan_without(left_out),
            (None, Some(resolution)) => super::olm_states::install_plan(resolution),
            (None, None) => deployment.map(super::olm_states::install_plan_of),
        };
        let is_about = |package: &str| found.focus().is_none_or(|focus| focus == package);
        let left_out = status.left_out.into_iter().filter(|it| is_about(&it.package));
        Self {
            kind,
            name,
            complete: steps.iter().all(|step| step.state == StepState::Done),
            next_steps: actions::actions(found, &packages),
            steps,
            packages,
            install_plan,
            pending_changes: status.pending.map(|pending| pending.changes).unwrap_or_default(),
            explanation: status.explanation,
            left_out: left_out.map(LeftOutPackage::from).collect(),
            alternatives: status.alternatives,
            notes: status.notes,
        }
    }
}

/// The object that the question is about.
fn subject(found: &Found) -> (&'static str, String) {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    match (&found.operator, &found.deployment, &found.resolution) {
        (Some(operator), _, _) => ("PlatformOperator", name(&operator.metadata.name)),
        (None, Some(deployment), _) => ("BundleDeployment", deployment.clone()),
        (None, None, Some(resolution)) => ("Resolution", name(&resolution.metadata.name)),
        (None, None, None) => ("", String::new()),
    }
}

#[cfg(test)]
mod tests;
