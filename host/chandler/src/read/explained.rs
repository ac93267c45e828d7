//! Finds what `chandler explain` is about: the object, the Resolution that chose it, and the BundleDeployments that install it.

use std::collections::BTreeMap;

use chandler_api::{BundleDeployment, PlatformOperator, ReportingKind, Resolution, names::OWNER_NAME_LABEL};
use kube::{Api, Client, Resource, ResourceExt as _, api::ListParams};
use serde::de::DeserializeOwned;

use super::{cluster, reported};
use crate::{
    CommandError,
    view::{api_error, newest::Decider, path::Found, subject::Subject},
};

/// Marks the Resolution that the controller makes from PlatformOperators.
const MANAGED: &str = "platform.chandler.dev/managed";

/// The kinds that are explained, in the order in which a name without a kind is looked for.
const EXPLAINED: [ReportingKind; 3] =
    [ReportingKind::BundleDeployment, ReportingKind::Resolution, ReportingKind::PlatformOperator];

/// Finds the object. Without a kind, only one object may have the name.
pub async fn find(client: &Client, kind: Option<ReportingKind>, name: &str) -> Result<Found, CommandError> {
    let kind = if let Some(kind) = kind {
        kind
    } else {
        let kinds = named(client, name).await?;
        if kinds.is_empty() {
            readable(client, name).await?;
        }
        only(name, &kinds)?
    };
    match kind {
        ReportingKind::BundleDeployment => of_deployment(client, cluster::deployment(client, name).await?).await,
        ReportingKind::Resolution => of_resolution(client, reported::get::<Resolution>(client, name).await?).await,
        ReportingKind::PlatformOperator => of_operator(client, name).await,
        ReportingKind::Catalog
        | ReportingKind::ProvisionerClass
        | ReportingKind::PlatformPolicy
        | ReportingKind::Receiver
        | ReportingKind::Alert => {
            let subject = Subject::new(kind, name);
            Err(CommandError::usage(format!("{subject} has no packages to explain"))
                .hint(format!("`chandler status {subject}` shows its conditions")))
        }
    }
}

/// A Resolution, with its BundleDeployments.
pub async fn of_resolution(client: &Client, resolution: Resolution) -> Result<Found, CommandError> {
    let mut found = Found { resolution: Some(resolution), ..Found::default() };
    add_deployments(client, &mut found).await?;
    Ok(found)
}

async fn of_deployment(client: &Client, deployment: BundleDeployment) -> Result<Found, CommandError> {
    let name = deployment.name_any();
    let set = deployment.labels().get(OWNER_NAME_LABEL).unwrap_or(&name);
    let resolution = resolution_of(client, set).await?;
    let mut found = Found { resolution, deployment: Some(name.clone()), ..Found::default() };
    add_deployments(client, &mut found).await?;
    found.deployments.insert(name, deployment);
    Ok(found)
}

async fn of_operator(client: &Client, name: &str) -> Result<Found, CommandError> {
    let operators: Api<PlatformOperator> = Api::all(client.clone());
    let operator = operators.get(name).await.map_err(|error| {
        CommandError::failed(format!("failed to read PlatformOperator {name}"))
            .because(&error)
            .hint("`kubectl get platformoperators` lists them all")
    })?;
    let resolution = platform_resolution(client, &operator).await?;
    let mut found = Found { operator: Some(operator), resolution, ..Found::default() };
    add_deployments(client, &mut found).await?;
    Ok(found)
}

/// The Resolution that chooses the package of a PlatformOperator, or `None` if there is none or the user may not list them.
pub async fn platform_resolution(
    client: &Client,
    operator: &PlatformOperator,
) -> Result<Option<Resolution>, CommandError> {
    let package = &operator.spec.package.name;
    let of_package = |resolution: &Resolution| {
        is_managed(resolution) && resolution.spec.packages.iter().any(|request| request.name == *package)
    };
    Ok(all::<Resolution>(client, "Resolutions").await?.into_iter().find(of_package))
}

/// The object that decides which version a BundleDeployment has, or `None` if its own spec does.
pub async fn decider(client: &Client, deployment: &BundleDeployment) -> Result<Option<Decider>, CommandError> {
    let name = deployment.name_any();
    let set = deployment.labels().get(OWNER_NAME_LABEL);
    let decider = |kind, name: String| Ok(Some(Decider { kind, name }));
    if let Some(resolution) = resolution_of(client, set.unwrap_or(&name)).await? {
        let is_installed_as = |operator: &PlatformOperator| {
            let active = operator.status.as_ref().and_then(|status| status.active_bundle_deployment.as_ref());
            active.is_some_and(|active| active.name == name)
        };
        let operators: Vec<PlatformOperator> =
            if is_managed(&resolution) { all(client, "PlatformOperators").await? } else { Vec::new() };
        return match operators.into_iter().find(is_installed_as) {
            Some(operator) => decider(ReportingKind::PlatformOperator, operator.name_any()),
            None => decider(ReportingKind::Resolution, resolution.name_any()),
        };
    }
    match set {
        // A copy of an object has its labels.
        Some(set) if *set != name && exists::<BundleDeployment>(client, set).await.is_ok_and(|exists| exists) => {
            decider(ReportingKind::BundleDeployment, set.clone())
        }
        _ => Ok(None),
    }
}

/// The Resolution whose set is the BundleDeployment of this name, or `None` if there is none or the user may not list them.
async fn resolution_of(client: &Client, set: &String) -> Result<Option<Resolution>, CommandError> {
    let of_set = |resolution: &Resolution| {
        resolution.status.as_ref().is_some_and(|status| status.bundle_deployment.as_ref() == Some(set))
    };
    Ok(all::<Resolution>(client, "Resolutions").await?.into_iter().find(of_set))
}

/// Whether the controller makes the Resolution from PlatformOperators.
fn is_managed(resolution: &Resolution) -> bool {
    resolution.annotations().get(MANAGED).is_some_and(|managed| managed == "true")
}

/// Adds the BundleDeployments that the status of the Resolution names.
async fn add_deployments(client: &Client, found: &mut Found) -> Result<(), CommandError> {
    let Some(status) = found.resolution.as_ref().and_then(|resolution| resolution.status.as_ref()) else {
        return Ok(());
    };
    let members = status.members.iter().filter_map(|member| member.bundle_deployment.as_ref());
    let wanted: Vec<&String> = members.chain(&status.bundle_deployment).collect();
    let listed = all::<BundleDeployment>(client, "BundleDeployments").await?;
    let listed = listed.into_iter().map(|deployment| (deployment.name_any(), deployment));
    let deployments: BTreeMap<String, BundleDeployment> = listed.filter(|(name, _)| wanted.contains(&name)).collect();
    found.deployments = deployments;
    Ok(())
}

/// The kinds that have an object of this name.
async fn named(client: &Client, name: &str) -> Result<Vec<ReportingKind>, CommandError> {
    let mut kinds = Vec::new();
    for kind in EXPLAINED {
        let exists = match kind {
            ReportingKind::BundleDeployment => exists::<BundleDeployment>(client, name).await,
            ReportingKind::Resolution => exists::<Resolution>(client, name).await,
            _ => exists::<PlatformOperator>(client, name).await,
        };
        let exists =
            exists.map_err(|error| CommandError::failed(format!("failed to read {kind} {name}")).because(&error))?;
        if exists {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

/// Fails if the user may not read BundleDeployments, or the cluster does not serve them: the reason why nothing has the name.
async fn readable(client: &Client, name: &str) -> Result<(), CommandError> {
    match Api::<BundleDeployment>::all(client.clone()).get(name).await {
        Err(kube::Error::Api(status)) if status.is_not_found() && !api_error::is_unserved(&status) => Ok(()),
        Err(error) => Err(cluster::not_read(name, &error)),
        Ok(_) => Ok(()),
    }
}

/// The one kind that has an object of this name.
fn only(name: &str, kinds: &[ReportingKind]) -> Result<ReportingKind, CommandError> {
    match kinds {
        [one] => Ok(*one),
        [] => {
            Err(CommandError::not_found(format!("no BundleDeployment, Resolution or PlatformOperator is named {name}"))
                .hint("`kubectl get bundledeployments,resolutions,platformoperators` lists them all"))
        }
        several => {
            let articles: Vec<String> = several.iter().map(|kind| format!("a {kind}")).collect();
            let written: Vec<String> =
                several.iter().map(|kind| format!("`{}/{name}`", kind.as_str().to_lowercase())).collect();
            Err(CommandError::usage(format!("{name} is the name of {}", articles.join(" and of ")))
                .hint(format!("write {}", written.join(" or "))))
        }
    }
}

/// Whether an object exists. One that the user may not read, or whose kind the cluster does not serve, does not.
async fn exists<K>(client: &Client, name: &str) -> Result<bool, kube::Error>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope> + Clone + DeserializeOwned,
    K: std::fmt::Debug,
{
    match Api::<K>::all(client.clone()).get_metadata_opt(name).await {
        Ok(found) => Ok(found.is_some()),
        Err(kube::Error::Api(status)) if status.is_forbidden() => Ok(false),
        Err(error) => Err(error),
    }
}

/// All objects of a kind, or an empty list if the user may not list them or the cluster does not serve the kind.
async fn all<K>(client: &Client, kind: &str) -> Result<Vec<K>, CommandError>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope> + Clone + DeserializeOwned,
    K: std::fmt::Debug,
{
    match Api::<K>::all(client.clone()).list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.is_forbidden() || status.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(CommandError::failed(format!("failed to list {kind}")).because(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_kind_must_be_that_of_one_object() {
        use ReportingKind::{BundleDeployment as B, Resolution as R};
        assert_eq!(only("shop", &[R]).unwrap(), R);
        insta::assert_snapshot!(only("shop", &[B, R]).unwrap_err(), @r"
        error: shop is the name of a BundleDeployment and of a Resolution
          hint: write `bundledeployment/shop` or `resolution/shop`
        ");
        insta::assert_snapshot!(only("shop", &[]).unwrap_err(), @r"
        error: no BundleDeployment, Resolution or PlatformOperator is named shop
          hint: `kubectl get bundledeployments,resolutions,platformoperators` lists them all
        ");
    }
}
