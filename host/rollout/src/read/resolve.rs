//! Resolves a release into desired objects, and refuses what can be refused before any write.

use std::collections::HashMap;

use chandler_core::Release;
use kube::api::ApiResource;

use crate::{
    pure::{
        crd::{DefinedKinds, crds, id_of},
        desired::{Desired, Served},
        error::{ApiError, RolloutError},
        owner::Owner,
        refusals::{Refusals, refuse_duplicates},
    },
    read::discovery::Discovery,
};

/// The desired objects of the release, in its order. The kinds `before` it are taken for served. If checks continue after a refusal, objects
/// of unknown kinds are left out.
pub(crate) async fn resolve(
    discovery: &Discovery,
    owner: &Owner,
    release: &Release,
    before: Option<&DefinedKinds>,
    refusals: &mut Refusals,
) -> Result<Vec<Desired>, RolloutError> {
    let defined = crds(release.objects());
    let mut kinds: HashMap<(&str, &str, &str), Option<Served>> = HashMap::new();
    let mut desired = Vec::with_capacity(release.objects().len());
    let mut unknown = Vec::new();
    for object in release.objects() {
        let key = &object.key;
        let id = (key.group.as_str(), key.version.as_str(), key.kind.as_str());
        let served = if let Some(served) = kinds.get(&id) {
            served.clone()
        } else {
            let served = discovery.kind(id.0, id.1, id.2).await.map_err(cannot_discover)?;
            kinds.insert(id, served.clone());
            served
        };
        // A kind that a later stage defines cannot be awaited: that stage waits for this one.
        let promised = || defined.get(&id_of(key)).filter(|defined| defined.stage <= object.stage);
        let promised = || promised().or_else(|| before?.get(key));
        match (served, promised()) {
            (Some(kind), _) => desired.push(Desired::new(object, kind, true, owner)),
            (None, Some(defined)) => desired.push(Desired::new(object, defined.kind.clone(), false, owner)),
            (None, None) => unknown.push((key.api_version(), key.kind.clone(), key.clone())),
        }
    }
    if !unknown.is_empty() {
        refusals.add(RolloutError::UnknownKinds(unknown))?;
    }
    refusals.check(refuse_duplicates(&desired))?;
    Ok(desired)
}

/// The kinds of the release that the API server is known to serve, each once.
pub(crate) fn known_kinds(discovery: &Discovery, release: &Release) -> Vec<ApiResource> {
    let ids: std::collections::BTreeSet<_> = release.objects().iter().map(|object| id_of(&object.key)).collect();
    ids.iter()
        .filter_map(|(group, version, kind)| discovery.known_kind(group, version, kind))
        .map(|served| served.resource)
        .collect()
}

/// The kinds of the release that the API server is known to serve, once for every namespace with an object of the kind.
pub(crate) fn known_places(
    discovery: &Discovery,
    owner: &Owner,
    release: &Release,
) -> Vec<(ApiResource, Option<String>)> {
    let places: std::collections::BTreeSet<_> = release
        .objects()
        .iter()
        .map(|object| (id_of(&object.key), object.key.namespace.as_ref().unwrap_or(&owner.install_namespace)))
        .collect();
    let known = places.into_iter().filter_map(|((group, version, kind), namespace)| {
        let served = discovery.known_kind(&group, &version, &kind)?;
        Some((served.resource, served.namespaced.then(|| namespace.clone())))
    });
    let mut known: Vec<(ApiResource, Option<String>)> = known.collect();
    // A cluster-scoped kind is listed once, regardless of the namespaces of its objects.
    known.dedup();
    known
}

/// The error for a failed discovery.
pub(crate) fn cannot_discover(error: ApiError) -> RolloutError {
    RolloutError::Request { action: "discover the kinds of the API server".to_owned(), error }
}
