//! Discovery of the kinds that the API server serves.
//!
//! One document per group and version is fetched when one of its kinds is first needed. A kind that was found is cached for ten
//! minutes, since neither its plural nor its scope ever changes; it is forgotten when the API server answers that it no longer serves it. A kind
//! that was not found is looked up again after a second: a CRD may define it at any time.

use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use chandler_core::{ObjectKey, is_custom_group};
use chandler_turns::KeyedLocks;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResourceList};
use kube::{Client, api::ApiResource};
use parking_lot::{Mutex, MutexGuard};

use crate::pure::{
    desired::Served,
    error::{ApiError, RolloutError},
};

/// How long a document is cached.
const TRUSTED: Duration = Duration::from_mins(10);
/// The bytes of the names in one document, and in all of them that are cached: the API server may be hostile. A large cluster has
/// some ten thousand.
const DOCUMENT: usize = 1 << 20;
const DOCUMENTS: usize = 8 << 20;
/// How long a missing kind is not looked up again.
const MISSING: Duration = Duration::from_secs(1);

/// The discovered kinds, shared by all owners.
pub(crate) struct Discovery {
    client: Client,
    documents: Mutex<Documents>,
    /// Locked while a document is fetched.
    fetches: KeyedLocks<String>,
}

#[derive(Default)]
struct Documents {
    by_api_version: HashMap<String, Document>,
    /// The bytes of their names.
    bytes: usize,
    /// How often documents were forgotten: one that was on its way then is not kept.
    forgotten: u64,
}

#[derive(Clone)]
struct Document {
    fetched: Instant,
    kinds: Vec<Served>,
}

impl Documents {
    /// Keeps a document, and only this one if all of them would be too large.
    fn keep(&mut self, api_version: String, document: Document) {
        self.bytes = self.bytes.saturating_add(document.bytes());
        if self.bytes > DOCUMENTS {
            self.by_api_version.clear();
            self.bytes = document.bytes();
        }
        self.by_api_version.insert(api_version, document);
    }
}

impl Document {
    fn bytes(&self) -> usize {
        self.kinds.iter().map(|served| served.resource.kind.len() + 3 * served.resource.plural.len()).sum()
    }

    fn kind(&self, kind: &str) -> Option<&Served> {
        self.kinds.iter().find(|served| served.resource.kind == kind)
    }
}

impl Discovery {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, documents: Mutex::default(), fetches: KeyedLocks::default() }
    }

    /// The API resource of a kind in this group and version, if it is served.
    pub(crate) async fn kind(&self, group: &str, version: &str, kind: &str) -> Result<Option<Served>, ApiError> {
        if let Some(document) = self.recent(group, version, kind) {
            return Ok(document.kind(kind).cloned());
        }
        // Many owners that begin at once need the same documents.
        let api_version = api_version(group, version);
        let _fetch = self.fetches.lock(&api_version).await;
        if let Some(document) = self.recent(group, version, kind) {
            return Ok(document.kind(kind).cloned());
        }
        let document = self.fetch(group, version).await?;
        Ok(document.kind(kind).cloned())
    }

    /// The cached document, if it is recent enough for what it says about the kind.
    fn recent(&self, group: &str, version: &str, kind: &str) -> Option<Document> {
        let document = self.remembered(group, version)?;
        let trusted = if document.kind(kind).is_some() { TRUSTED } else { MISSING };
        (document.fetched.elapsed() < trusted).then_some(document)
    }

    /// A kind as the cache has it, however old, without a request.
    pub(crate) fn known_kind(&self, group: &str, version: &str, kind: &str) -> Option<Served> {
        self.remembered(group, version)?.kind(kind).cloned()
    }

    /// The API resource of a kind in any version: one that is known to be served, else the preferred one first.
    pub(crate) async fn any_version(&self, group: &str, kind: &str) -> Result<Option<Served>, ApiError> {
        if let Some(served) = self.known_in_any_version(group, kind) {
            return Ok(Some(served));
        }
        for version in self.versions(group).await? {
            if let Some(served) = self.kind(group, &version, kind).await? {
                return Ok(Some(served));
            }
        }
        Ok(None)
    }

    fn known_in_any_version(&self, group: &str, kind: &str) -> Option<Served> {
        let documents = self.documents();
        let trusted = documents.by_api_version.values().filter(|document| document.fetched.elapsed() < TRUSTED);
        let served = trusted.filter_map(|document| document.kind(kind)).filter(|served| served.resource.group == group);
        // Any version will do, but always the same one.
        served.max_by(|a, b| a.resource.version.cmp(&b.resource.version)).cloned()
    }

    /// Every served kind in its preferred version.
    pub(crate) async fn every_kind(&self) -> Result<Vec<Served>, ApiError> {
        let groups = self.client.list_api_groups().await?;
        let mut names: Vec<String> = groups.groups.into_iter().map(|group| group.name).collect();
        names.push(String::new());
        let mut kinds = Vec::new();
        for group in names {
            let mut seen = BTreeSet::new();
            for version in self.versions(&group).await? {
                let document = self.fetch(&group, &version).await?;
                kinds.extend(document.kinds.into_iter().filter(|served| seen.insert(served.resource.kind.clone())));
            }
        }
        Ok(kinds)
    }

    /// Drops the cached documents of a group, since its kinds changed.
    pub(crate) fn forget(&self, group: &str) {
        let mut documents = self.documents();
        documents.forgotten = documents.forgotten.wrapping_add(1);
        documents
            .by_api_version
            .retain(|api_version, _| api_version.split_once('/').map_or("", |(group, _)| group) != group);
    }

    /// Drops the documents that an error casts doubt on, and returns whether it did: the API server found no place for an object of a kind that
    /// it served before. The CRD was deleted since.
    pub(crate) fn doubt(&self, error: &RolloutError) -> bool {
        let RolloutError::Objects(failures) = error else { return false };
        let is_known = |key: &ObjectKey| self.known_kind(&key.group, &key.version, &key.kind).is_some();
        let doubted: BTreeSet<&str> = failures
            .iter()
            .filter(|failure| matches!(failure.error, ApiError::NotFound(_)) && is_known(&failure.object))
            .map(|failure| failure.object.group.as_str())
            .filter(|group| is_custom_group(group))
            .collect();
        for group in &doubted {
            self.forget(group);
        }
        !doubted.is_empty()
    }

    fn remembered(&self, group: &str, version: &str) -> Option<Document> {
        self.documents().by_api_version.get(&api_version(group, version)).cloned()
    }

    fn documents(&self) -> MutexGuard<'_, Documents> {
        self.documents.lock()
    }

    async fn versions(&self, group: &str) -> Result<Vec<String>, ApiError> {
        if group.is_empty() {
            return Ok(self.client.list_core_api_versions().await?.versions);
        }
        let request = http_get(format!("/apis/{group}"))?;
        let found = match self.client.request::<APIGroup>(request).await {
            Ok(found) => found,
            Err(error) => {
                return match ApiError::from(error) {
                    ApiError::NotFound(_) => Ok(Vec::new()),
                    error => Err(error),
                };
            }
        };
        let preferred = found.preferred_version.map(|version| version.version);
        let mut versions: Vec<String> = found.versions.into_iter().map(|version| version.version).collect();
        versions.sort_by_key(|version| preferred.as_ref() != Some(version));
        Ok(versions)
    }

    async fn fetch(&self, group: &str, version: &str) -> Result<Document, ApiError> {
        let api_version = api_version(group, version);
        let root = if group.is_empty() { "api" } else { "apis" };
        let forgotten = self.documents().forgotten;
        let request = http_get(format!("/{root}/{api_version}"))?;
        let kinds = match self.client.request::<APIResourceList>(request).await {
            Ok(list) => list
                .resources
                .into_iter()
                // A name with a slash is a subresource.
                .filter(|resource| !resource.name.contains('/') && resource.verbs.iter().any(|verb| verb == "list"))
                .map(|resource| Served {
                    namespaced: resource.namespaced,
                    resource: ApiResource {
                        group: group.to_owned(),
                        version: version.to_owned(),
                        api_version: api_version.clone(),
                        kind: resource.kind,
                        plural: resource.name,
                    },
                })
                .collect(),
            Err(error) => match ApiError::from(error) {
                ApiError::NotFound(_) => Vec::new(),
                error => return Err(error),
            },
        };
        let document = Document { fetched: Instant::now(), kinds };
        if document.bytes() > DOCUMENT {
            return Err(ApiError::Refused(format!("the API server lists too many kinds in {api_version}")));
        }
        let mut documents = self.documents();
        if documents.forgotten == forgotten {
            documents.keep(api_version, document.clone());
        }
        Ok(document)
    }
}

fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

fn http_get(path: String) -> Result<http::Request<Vec<u8>>, ApiError> {
    http::Request::get(path).body(Vec::new()).map_err(|error| ApiError::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };

    use futures::future::join_all;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use tokio::task::yield_now;

    use super::*;

    /// A server with the kind Deployment, and the number of its requests.
    fn discovery() -> (Discovery, Arc<AtomicUsize>) {
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        let service = tower::service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            async {
                yield_now().await;
                let list = json!({
                    "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1",
                    "resources": [{
                        "name": "deployments", "singularName": "deployment", "kind": "Deployment", "namespaced": true,
                        "verbs": ["list"],
                    }],
                });
                Ok::<_, Infallible>(Response::new(Body::from(list.to_string().into_bytes())))
            }
        });
        (Discovery::new(Client::new(service, "default")), requests)
    }

    #[tokio::test]
    async fn owners_that_begin_at_once_fetch_a_document_once() {
        let (discovery, requests) = discovery();
        let found = join_all((0..20).map(|_| discovery.kind("apps", "v1", "Deployment"))).await;
        assert!(found.into_iter().all(|found| found.is_ok_and(|served| served.is_some())));
        let missing = join_all((0..20).map(|_| discovery.kind("apps", "v1", "Absent"))).await;
        assert!(missing.into_iter().all(|found| found.is_ok_and(|served| served.is_none())));
        assert_eq!(requests.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn the_documents_of_a_hostile_server_stay_small() {
        let served = |name: String| Served {
            namespaced: true,
            resource: ApiResource {
                group: String::new(),
                version: "v1".into(),
                api_version: "v1".into(),
                kind: name.clone(),
                plural: name,
            },
        };
        let mut documents = Documents::default();
        for number in 0..100 {
            let kinds = vec![served("x".repeat(DOCUMENT / 8)), served(number.to_string())];
            documents.keep(format!("group-{number}/v1"), Document { fetched: Instant::now(), kinds });
            let bytes: usize = documents.by_api_version.values().map(Document::bytes).sum();
            assert!(bytes <= DOCUMENTS && documents.by_api_version.contains_key(&format!("group-{number}/v1")));
        }
    }

    #[tokio::test]
    async fn a_document_that_was_on_its_way_when_its_group_was_forgotten_is_not_kept() {
        let (discovery, requests) = discovery();
        let (found, ()) = tokio::join!(discovery.kind("apps", "v1", "Deployment"), async { discovery.forget("apps") });
        assert!(found.is_ok_and(|served| served.is_some()));
        assert!(discovery.known_kind("apps", "v1", "Deployment").is_none());
        assert!(discovery.kind("apps", "v1", "Deployment").await.is_ok());
        assert!(discovery.known_kind("apps", "v1", "Deployment").is_some());
        assert_eq!(requests.load(Ordering::Relaxed), 2);
    }
}
