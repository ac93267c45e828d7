//! Deletes the namespace of a package that is uninstalled, if nothing is left in it.

use std::collections::BTreeMap;

use chandler_records::MANAGED_BY;
use chandler_resolution::platform::namespace::{is_content, is_made_for};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    core::v1::Namespace,
};
use kube::{
    Api, Client, Discovery, ResourceExt as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, PostParams, Preconditions},
    discovery::{ApiGroup, Scope, verbs},
};

/// The maximum number of kinds that are listed at once.
const AT_ONCE: usize = 8;
/// The maximum number of objects of a kind that are read. A kind with more has content.
const OBJECTS: u32 = 50;

/// Deletes a namespace if the controller created it for the package and nothing is left in it. `own` is the client of the controller;
/// `installer` lists what is in the namespace and deletes it. Returns whether it was deleted.
///
/// # Errors
/// A request failed: a kind cannot be listed, for example. Then the namespace stays.
pub(super) async fn remove_if_empty(
    own: &Client,
    installer: &Client,
    name: &str,
    package: &str,
) -> Result<bool, kube::Error> {
    let Some(namespace) = Api::<Namespace>::all(own.clone()).get_opt(name).await? else { return Ok(false) };
    let is_made = is_made_for(namespace.metadata.labels.as_ref(), MANAGED_BY, package);
    if !is_made || namespace.metadata.deletion_timestamp.is_some() || !may_delete(installer, name).await? {
        return Ok(false);
    }
    let kinds = Discovery::new(own.clone()).run_aggregated().await?;
    // A kind that only an older version of its group has also counts.
    let of_group = |group: &ApiGroup| group.versions().flat_map(|it| group.versioned_resources(it)).collect::<Vec<_>>();
    let all = kinds.groups().flat_map(of_group);
    let all = all.filter(|(_, it)| it.scope == Scope::Namespaced && it.supports_operation(verbs::LIST));
    let listed: BTreeMap<(String, String), ApiResource> =
        all.map(|(kind, _)| ((kind.group.clone(), kind.plural.clone()), kind)).collect();
    let has_content = futures::stream::iter(listed.into_values())
        .map(|kind| has_content(installer, name, kind))
        .buffer_unordered(AT_ONCE);
    let has_content = has_content.try_any(|has_content| async move { has_content }).await?;
    if has_content {
        return Ok(false);
    }
    let preconditions = Preconditions { uid: namespace.uid(), resource_version: namespace.resource_version() };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    Api::<Namespace>::all(installer.clone()).delete(name, &parameters).await?;
    Ok(true)
}

/// Whether the installer may delete the namespace: nothing is listed if it may not.
async fn may_delete(installer: &Client, name: &str) -> Result<bool, kube::Error> {
    let attributes = ResourceAttributes {
        verb: Some("delete".to_owned()),
        resource: Some("namespaces".to_owned()),
        name: Some(name.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let answer = Api::<SelfSubjectAccessReview>::all(installer.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

async fn has_content(installer: &Client, namespace: &str, kind: ApiResource) -> Result<bool, kube::Error> {
    let api: Api<DynamicObject> = Api::namespaced_with(installer.clone(), namespace, &kind);
    let found = api.list_metadata(&ListParams::default().limit(OBJECTS)).await?;
    let is_content = |metadata| is_content(&kind.group, &kind.kind, metadata);
    Ok(found.metadata.continue_.is_some_and(|it| !it.is_empty())
        || found.items.iter().any(|it| is_content(&it.metadata)))
}
