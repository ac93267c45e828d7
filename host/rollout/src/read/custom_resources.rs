//! Counts the custom resources that would be deleted with their CRDs.
//!
//! Only metadata is listed, in a bounded number of pages; the API server reports the number of further objects.

use std::collections::{BTreeMap, BTreeSet};

use chandler_core::ObjectKey;
use futures::FutureExt as _;
use kube::api::ApiResource;

use crate::{
    client::{
        cluster::{Cluster, Page},
        concurrent::all,
    },
    pure::{
        crd::{custom_resource, is_crd},
        deletion_plan::CrdInUse,
        error::{ApiError, RolloutError},
        live,
        member::Member,
    },
};

/// The number of custom resources in one page.
const PAGE: u32 = 500;
/// The number of pages that are read for one kind when counting.
const PAGES: usize = 4;
/// The number of custom resources that are named.
const NAMED: usize = 5;

/// How to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CountMode {
    /// Only whether one exists. If the list fails, one is assumed.
    Existence,
    /// How many exist and where. If the list fails, an error is returned.
    Count,
}

/// The CRDs among these objects that have custom resources which are not among them, apart from those that are being deleted.
pub(crate) async fn in_use(
    cluster: &Cluster,
    members: &[Member],
    custom_resources: CountMode,
) -> Result<Vec<CrdInUse>, RolloutError> {
    let mut own: BTreeMap<(String, String), BTreeSet<&str>> = BTreeMap::new();
    for member in members {
        let kind = (member.key.group.clone(), member.key.kind.clone());
        own.entry(kind).or_default().insert(live::uid(&member.object));
    }
    // One that is being deleted takes its custom resources along, whatever is decided here.
    let crds = members.iter().filter(|member| is_crd(&member.key) && !live::is_terminating(&member.object));
    let lists = crds.map(|crd| {
        let resource = custom_resource(&crd.object);
        let kind = resource.as_ref().map(|resource| (resource.group.clone(), resource.kind.clone()));
        let own = kind.and_then(|kind| own.get(&kind).cloned()).unwrap_or_default();
        async move {
            let Some(resource) = resource else { return Ok(Some(uncountable(&crd.key))) };
            match count(cluster, &crd.key, &resource, &own, custom_resources).await {
                Ok(found) => Ok(found),
                Err(_) if custom_resources == CountMode::Existence => Ok(Some(uncountable(&crd.key))),
                Err(error) => {
                    let action = format!("check for custom resources of {}", crd.key);
                    Err(RolloutError::Request { action, error })
                }
            }
        }
        .boxed()
    });
    let found = all(lists.collect()).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(found.into_iter().flatten().collect())
}

fn uncountable(crd: &ObjectKey) -> CrdInUse {
    CrdInUse { crd: crd.clone(), count: None, more: false, namespaces: 0, examples: Vec::new() }
}

async fn count(
    cluster: &Cluster,
    crd: &ObjectKey,
    resource: &ApiResource,
    own: &BTreeSet<&str>,
    custom_resources: CountMode,
) -> Result<Option<CrdInUse>, ApiError> {
    let (limit, pages) = match custom_resources {
        CountMode::Existence => (u32::try_from(own.len()).unwrap_or(PAGE).saturating_add(1).min(PAGE), usize::MAX),
        CountMode::Count => (PAGE, PAGES),
    };
    let mut resource_count = ResourceCount::default();
    let mut after = None;
    for _ in 0..pages {
        let page = match cluster.metadata_page(resource, limit, after.as_deref()).await {
            Ok(page) => page,
            // The kind is not served, so it has no objects.
            Err(ApiError::NotFound(_)) => break,
            Err(error) => return Err(error),
        };
        after.clone_from(&page.next);
        resource_count.add(page, own);
        if after.is_none() || custom_resources == CountMode::Existence && resource_count.others > 0 {
            break;
        }
    }
    Ok(resource_count.summary(crd, own.len()))
}

/// The counted custom resources of a kind.
#[derive(Default)]
struct ResourceCount {
    others: u64,
    own: usize,
    namespaces: BTreeSet<String>,
    examples: Vec<String>,
    /// The number of objects that were not read: `None` if it is unknown, zero if all were read.
    unseen: Option<u64>,
}

impl ResourceCount {
    fn add(&mut self, page: Page, own: &BTreeSet<&str>) {
        self.unseen = if page.next.is_some() { page.remaining } else { Some(0) };
        for object in page.objects {
            if own.contains(live::uid(&object)) {
                self.own += 1;
                continue;
            }
            self.others += 1;
            let (namespace, name) = (live::text(&object, "/metadata/namespace"), live::text(&object, "/metadata/name"));
            if self.examples.len() < NAMED {
                let example = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
                self.examples.push(example);
            }
            if !namespace.is_empty() {
                self.namespaces.insert(namespace.to_owned());
            }
        }
    }

    fn summary(self, crd: &ObjectKey, own: usize) -> Option<CrdInUse> {
        let unseen_own = u64::try_from(own.saturating_sub(self.own)).unwrap_or(u64::MAX);
        let count = self.others + self.unseen.unwrap_or_default().saturating_sub(unseen_own);
        (count > 0).then(|| CrdInUse {
            crd: crd.clone(),
            count: Some(count),
            more: self.others > 0 && self.unseen.is_none(),
            namespaces: self.namespaces.len(),
            examples: self.examples,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(names: &[(&str, &str)], next: bool, remaining: Option<u64>) -> Page {
        let object = |(namespace, name): &(&str, &str)| json!({"metadata": {"name": name, "namespace": namespace, "uid": format!("{namespace}-{name}")}});
        Page { objects: names.iter().map(object).collect(), remaining, next: next.then(|| "token".to_owned()) }
    }

    fn summary(pages: Vec<Page>, own: &[&str]) -> Option<String> {
        let key = ObjectKey {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            kind: "CustomResourceDefinition".into(),
            namespace: None,
            name: "oxen.example.com".into(),
        };
        let own: BTreeSet<&str> = own.iter().copied().collect();
        let mut resource_count = ResourceCount::default();
        for page in pages {
            resource_count.add(page, &own);
        }
        resource_count.summary(&key, own.len()).map(|in_use| in_use.to_string())
    }

    #[test]
    fn custom_resources_of_others_are_counted() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(summary(vec![page(&[], false, None)], &[]), None);
        assert_eq!(summary(vec![page(&[("a", "x")], false, None)], &["a-x"]), None, "it is deleted anyway");
        let two = vec![page(&[("a", "x"), ("a", "y")], false, None)];
        assert_eq!(summary(two, &["a-x"]), some("oxen.example.com: 1 in 1 namespace (a/y)"));
        let more = vec![page(&[("a", "x"), ("b", "y")], true, Some(7))];
        assert_eq!(summary(more, &["c-z"]), some("oxen.example.com: 8 in 2 namespaces (a/x, b/y, …)"));
        let unknown = vec![page(&[("a", "x")], true, None)];
        assert_eq!(summary(unknown, &[]), some("oxen.example.com: at least 1 in 1 namespace (a/x, …)"));
        let pages = vec![page(&[("a", "x")], true, Some(1)), page(&[("a", "y")], false, None)];
        assert_eq!(summary(pages, &[]), some("oxen.example.com: 2 in 1 namespace (a/x, a/y)"));
    }
}
