//! The kinds that an API server serves.

use kube::{Discovery, discovery::verbs};

/// The kinds that the cluster serves and that support `get`, as `group/version/Kind`, or `v1/Kind` for the core group, sorted.
pub fn kinds(discovery: &Discovery) -> Vec<String> {
    let mut kinds: Vec<String> = discovery
        .groups()
        .flat_map(|group| group.versions().flat_map(|version| group.versioned_resources(version)).collect::<Vec<_>>())
        .filter(|(_, capabilities)| capabilities.supports_operation(verbs::GET))
        .map(|(resource, _)| format!("{}/{}", resource.api_version, resource.kind))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}
