//! Checks before the tests write to a cluster: they must not disturb other users' objects, nor the CRDs that these depend on.

use std::{env, fmt::Debug};

use anyhow::{Context as _, bail};
use chandler_api::{
    Alert, BundleDeployment, Catalog, PlatformOperator, PlatformPolicy, ProvisionerClass, Receiver, Resolution,
};
use k8s_openapi::{
    api::{
        apps::v1::{DaemonSet, Deployment, StatefulSet},
        batch::v1::Job,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde::de::DeserializeOwned;

use crate::{run::Run, simulated_controllers, wait};

/// The variable that allows the tests to run on a cluster with objects of other users.
pub const SHARED_CLUSTER: &str = "CHANDLER_E2E_SHARED_CLUSTER";

/// How many objects an error message lists.
const LISTED: usize = 10;

/// Whether the environment allows the tests to run on a cluster with objects of other users.
pub fn is_allowed() -> bool {
    env::var(SHARED_CLUSTER).is_ok_and(|value| value == "1" || value == "true")
}

/// Fails if BundleDeployments, ProvisionerClasses, Catalogs, Resolutions, PlatformOperators, PlatformPolicies, Receivers or Alerts exist that no test created, unless that is allowed.
pub async fn check(client: &Client, allowed: bool) -> anyhow::Result<()> {
    let foreign = foreign(client).await?;
    if foreign.is_empty() || allowed {
        return Ok(());
    }
    bail!(
        "the end-to-end tests do not start on this cluster: it contains {}, which no test created. Use a dedicated cluster \
         with KUBECONFIG, or unset it to use the embedded control plane. {SHARED_CLUSTER}=1 allows sharing this one: \
         the tests change only objects that they created, but a controller that watches everything acts on those; run yours \
         with --watch-selector '!{}'",
        enumerate(&foreign),
        crate::run::LABEL
    )
}

/// Fails if workloads exist that no test created: on a server without a controller manager the tests simulate all workloads.
pub async fn check_workloads(client: &Client) -> anyhow::Result<()> {
    let mut found = not_created_by_tests::<Deployment>(client, simulated_controllers::belongs_to_test).await?;
    found.extend(not_created_by_tests::<StatefulSet>(client, simulated_controllers::belongs_to_test).await?);
    found.extend(not_created_by_tests::<DaemonSet>(client, simulated_controllers::belongs_to_test).await?);
    found.extend(not_created_by_tests::<Job>(client, simulated_controllers::belongs_to_test).await?);
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "the end-to-end tests do not start on this cluster: it has neither a controller manager nor nodes, so the tests \
         would simulate all workloads, and it contains {}, which no test created",
        enumerate(&found)
    )
}

/// Installs the CRDs of this version, and leaves those alone that are already up to date. If a CRD differs and objects of other
/// users depend on it, this fails before anything is written. CRDs are never removed: that would delete all their objects.
pub async fn install_crds(client: &Client) -> anyhow::Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let crds = chandler_api::crds();
    let mut missing = Vec::new();
    for crd in &crds {
        let Some(found) = api.get_opt(&crd.name_any()).await? else {
            missing.push(crd);
            continue;
        };
        let dry_run = PatchParams { dry_run: true, ..PatchParams::apply("e2e").force() };
        let wanted = api.patch(&crd.name_any(), &dry_run, &Patch::Apply(crd)).await?;
        if wanted.spec == found.spec {
            continue;
        }
        let foreign = foreign(client).await?;
        if !foreign.is_empty() {
            bail!(
                "the CRD {} of this cluster differs from this version, and {} depend on it: run the tests on another \
                 cluster, or update this one (`chandler crds | kubectl apply --server-side -f -`)",
                crd.name_any(),
                enumerate(&foreign)
            );
        }
        missing.push(crd);
    }
    for crd in missing {
        let parameters = PatchParams::apply("e2e").force();
        api.patch(&crd.name_any(), &parameters, &Patch::Apply(crd)).await?;
    }
    for crd in &crds {
        wait::until(&api, &crd.name_any(), "established", is_established).await;
    }
    Ok(())
}

/// Installs a CRD of another project, unless the cluster has it. It stays: others may have objects of it.
pub async fn install_foreign_crd(client: &Client, crd: &CustomResourceDefinition) -> Result<(), kube::Error> {
    let (api, name): (Api<CustomResourceDefinition>, _) = (Api::all(client.clone()), crd.name_any());
    if api.get_opt(&name).await?.is_none() {
        match api.create(&PostParams::default(), crd).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            created => drop(created?),
        }
    }
    wait::until(&api, &name, "established", is_established).await;
    Ok(())
}

fn is_established(crd: Option<&CustomResourceDefinition>) -> bool {
    let conditions = crd.and_then(|crd| crd.status.as_ref()?.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}

/// Objects of Chandler's kinds that no test created.
async fn foreign(client: &Client) -> anyhow::Result<Vec<String>> {
    let mut found = not_created_by_tests::<BundleDeployment>(client, |metadata| Run::of(metadata).is_some()).await?;
    found.extend(not_created_by_tests::<ProvisionerClass>(client, |metadata| Run::of(metadata).is_some()).await?);
    found.extend(not_created_by_tests::<Catalog>(client, |metadata| Run::of(metadata).is_some()).await?);
    found.extend(not_created_by_tests::<Resolution>(client, |metadata| Run::of(metadata).is_some()).await?);
    found.extend(not_created_by_tests::<PlatformOperator>(client, |metadata| Run::of(metadata).is_some()).await?);
    found.extend(not_created_by_tests::<PlatformPolicy>(client, |metadata| Run::of(metadata).is_some()).await?);
    found.extend(not_created_by_tests::<Receiver>(client, |metadata| Run::of(metadata).is_some()).await?);
    found.extend(not_created_by_tests::<Alert>(client, |metadata| Run::of(metadata).is_some()).await?);
    Ok(found)
}

/// The objects of a kind that do not belong to a test. Empty if the kind is not served.
async fn not_created_by_tests<K>(
    client: &Client,
    belongs_to_test: impl Fn(&ObjectMeta) -> bool,
) -> anyhow::Result<Vec<String>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let describe = |object: &K| match object.namespace() {
        Some(namespace) => format!("{} {namespace}/{}", K::kind(&()), object.name_any()),
        None => format!("{} {}", K::kind(&()), object.name_any()),
    };
    match Api::<K>::all(client.clone()).list(&ListParams::default()).await {
        Ok(list) => Ok(list.iter().filter(|object| !belongs_to_test(object.meta())).map(describe).collect()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error).context("failed to list the objects of the cluster"),
    }
}

fn enumerate(objects: &[String]) -> String {
    let named = objects.get(..LISTED.min(objects.len())).unwrap_or_default().join(", ");
    match objects.len().saturating_sub(LISTED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_message_lists_some_objects_and_counts_the_rest() {
        let objects = |count| (0..count).map(|number| format!("o{number}")).collect::<Vec<_>>();
        assert_eq!(enumerate(&objects(2)), "o0, o1");
        assert_eq!(enumerate(&objects(12)), "o0, o1, o2, o3, o4, o5, o6, o7, o8, o9 and 2 more");
    }
}
