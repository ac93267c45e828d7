//! Keeps the tests from a cluster that others use, and from the CRDs that their objects depend on.

use std::{env, fmt::Debug};

use anyhow::{Context as _, bail};
use chandler_api::{BundleDeployment, ProvisionerClass};
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
    api::{ListParams, Patch, PatchParams},
};
use serde::de::DeserializeOwned;

use crate::{run::Run, stand_in, wait};

/// The variable that lets the tests onto a cluster with objects of others.
pub const SHARED_CLUSTER: &str = "CHANDLER_E2E_SHARED_CLUSTER";

/// How many objects a refusal names.
const NAMED: usize = 10;

/// Whether the environment lets the tests onto a cluster with objects of others.
pub fn is_allowed() -> bool {
    env::var(SHARED_CLUSTER).is_ok_and(|value| value == "1" || value == "true")
}

/// Fails where BundleDeployments or ProvisionerClasses exist that no test made, unless that is allowed.
pub async fn admit(client: &Client, allowed: bool) -> anyhow::Result<()> {
    let foreign = foreign(client).await?;
    if foreign.is_empty() || allowed {
        return Ok(());
    }
    bail!(
        "the end-to-end tests do not start on this cluster: it holds {}, which no test made. Name a cluster of the tests' own \
         with KUBECONFIG, or run them without it on the embedded control plane. {SHARED_CLUSTER}=1 lets them share this one: \
         they leave alone what they did not make, but a controller that watches everything acts on what they make; run yours \
         with --watch-selector '!{}'",
        enumerate(&foreign),
        crate::run::LABEL
    )
}

/// Fails where workloads exist that no test made: on a server without a controller manager the tests pretend that all workloads
/// run.
pub async fn admit_stand_in(client: &Client) -> anyhow::Result<()> {
    let mut found = others::<Deployment>(client, stand_in::is_of_a_test).await?;
    found.extend(others::<StatefulSet>(client, stand_in::is_of_a_test).await?);
    found.extend(others::<DaemonSet>(client, stand_in::is_of_a_test).await?);
    found.extend(others::<Job>(client, stand_in::is_of_a_test).await?);
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "the end-to-end tests do not start on this cluster: it has neither a controller manager nor nodes, so that the tests \
         would have to pretend that workloads run, and it holds {}, which no test made",
        enumerate(&found)
    )
}

/// Serves our CRDs as this version has them. Those that are so already are not written. Where they differ and objects of
/// others depend on them, it fails before anything is written. They are never removed: every object of theirs would go.
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
                "the CRD {} of this cluster is not that of this version, and {} depend on it: run the tests on another \
                 cluster, or bring this one up to date (`chandler crds | kubectl apply --server-side -f -`)",
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

fn is_established(crd: Option<&CustomResourceDefinition>) -> bool {
    let conditions = crd.and_then(|crd| crd.status.as_ref()?.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}

/// Objects of our kinds that no test made.
async fn foreign(client: &Client) -> anyhow::Result<Vec<String>> {
    let mut found = others::<BundleDeployment>(client, |metadata| Run::of(metadata).is_some()).await?;
    found.extend(others::<ProvisionerClass>(client, |metadata| Run::of(metadata).is_some()).await?);
    Ok(found)
}

/// The objects of a kind that are not of a test; none where the kind is not served.
async fn others<K>(client: &Client, is_ours: impl Fn(&ObjectMeta) -> bool) -> anyhow::Result<Vec<String>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let told = |object: &K| match object.namespace() {
        Some(namespace) => format!("{} {namespace}/{}", K::kind(&()), object.name_any()),
        None => format!("{} {}", K::kind(&()), object.name_any()),
    };
    match Api::<K>::all(client.clone()).list(&ListParams::default()).await {
        Ok(list) => Ok(list.iter().filter(|object| !is_ours(object.meta())).map(told).collect()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
        Err(error) => Err(error).context("what is on the cluster cannot be listed"),
    }
}

fn enumerate(objects: &[String]) -> String {
    let named = objects.get(..NAMED.min(objects.len())).unwrap_or_default().join(", ");
    match objects.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_some_and_counts_the_rest() {
        let objects = |count| (0..count).map(|number| format!("o{number}")).collect::<Vec<_>>();
        assert_eq!(enumerate(&objects(2)), "o0, o1");
        assert_eq!(enumerate(&objects(12)), "o0, o1, o2, o3, o4, o5, o6, o7, o8, o9 and 2 more");
    }
}
