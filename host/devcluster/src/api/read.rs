//! Get and list.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::{BufMut as _, Bytes, BytesMut};
use chandler_devcluster_apimachinery::schema::FieldError;
use serde_json::{Value, json};
use std::sync::Arc;

use super::{Api, Target, view};
use crate::{
    convert,
    request::{negotiate::Representation, query::invalid_options},
    selector::Selector,
    status::Status,
    store::{Compacted, Key, Listing, Object, object::render},
    table,
};

/// Where a page begins: after a place, at a revision.
struct Continue {
    revision: u64,
    namespace: String,
    name: String,
}

impl Continue {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(json!({"rv": self.revision, "ns": self.namespace, "name": self.name}).to_string())
    }

    fn decode(token: &str) -> Result<Self, Status> {
        let decode = || {
            let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
            let value: Value = serde_json::from_slice(&bytes).ok()?;
            let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
            Some(Self { revision: value.get("rv")?.as_u64()?, namespace: text("ns")?, name: text("name")? })
        };
        decode().ok_or_else(|| Status::bad_request("continue key is not valid"))
    }
}

/// One page of a list.
struct Page {
    objects: Vec<Arc<Object>>,
    revision: u64,
    next: Option<Continue>,
    remaining: Option<usize>,
}

impl Api {
    /// One object.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn get(&self, target: &Target) -> Result<Bytes, Status> {
        let missing = || Status::not_found(&target.resource.group_resource(), &target.name);
        self.check_not_future(target.query.number("resourceVersion")?)?;
        let key = target.key();
        let object = if target.lag > 0 {
            let listing = self.lagging(target, target.query.number("resourceVersion")?);
            listing.objects.into_iter().find(|(found, _)| *found == key).map(|(_, object)| object)
        } else {
            self.store.get(&key)
        };
        let object = object.ok_or_else(missing)?;
        Ok(view::represent(target, &object, self.clock.now()))
    }

    /// A list.
    ///
    /// # Errors
    /// If a parameter is invalid, or the requested revision is no longer or not yet known.
    pub fn list(&self, target: &Target) -> Result<Bytes, Status> {
        let selector = selector(target)?;
        let page = self.page(target, &selector)?;
        let objects = || page.objects.iter().map(|object| view::served(&target.resource, object));
        let metadata = table::ListMetadata {
            resource_version: page.revision.to_string(),
            continue_token: page.next.as_ref().map(Continue::encode),
            remaining: page.remaining,
        };
        Ok(match target.representation {
            Representation::Table { beta, include } => {
                let rows: Vec<_> = objects().collect();
                let rows = rows.iter().map(AsRef::as_ref);
                render(&table::render(&target.resource, rows, &metadata, include, beta, true, self.clock.now()))
            }
            Representation::PartialMetadata => {
                let items: Vec<_> = objects().map(|object| render(&convert::partial_metadata(&object))).collect();
                join("meta.k8s.io/v1", "PartialObjectMetadataList", &metadata, &items)
            }
            Representation::Object => {
                let items: Vec<_> =
                    page.objects.iter().map(|object| view::item_json(&target.resource, object)).collect();
                join(&target.resource.kind().api_version(), &target.resource.list_kind(), &metadata, &items)
            }
        })
    }

    fn page(&self, target: &Target, selector: &Selector) -> Result<Page, Status> {
        let query = &target.query;
        let limit =
            query.number("limit")?.filter(|limit| *limit > 0).map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let (listing, after) = match query.get("continue") {
            Some(token) => {
                if query.get("resourceVersionMatch").is_some()
                    || query.number("resourceVersion")?.is_some_and(|version| version > 0)
                {
                    return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
                }
                let from = Continue::decode(token)?;
                if from.revision > self.store.revision() {
                    return Err(Status::continue_expired());
                }
                let listing =
                    self.store.list(&target.scope(), Some(from.revision)).map_err(|_| Status::continue_expired())?;
                (listing, Some(from))
            }
            None => (self.list_at(target)?, None),
        };
        let Listing { objects, revision } = listing;
        let is_after =
            |key: &Key| after.as_ref().is_none_or(|from| (&key.namespace, &key.name) > (&from.namespace, &from.name));
        // Checks that need no parsed object come first.
        let selected = |key: &Key, object: &Object| {
            !selector.excludes_name(&key.name)
                && selector.matches_labels(|label| object.label(label))
                && (selector.is_by_labels() || selector.matches(&view::served(&target.resource, object)))
        };
        let mut rest = objects.into_iter().filter(|(key, object)| is_after(key) && selected(key, object)).peekable();
        let mut taken: Vec<(Key, Arc<Object>)> = rest.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
        let next = if rest.peek().is_some() {
            taken.last().map(|(key, _)| Continue { revision, namespace: key.namespace.clone(), name: key.name.clone() })
        } else {
            None
        };
        let remaining = (next.is_some() && selector.is_everything()).then(|| rest.count());
        Ok(Page { objects: taken.drain(..).map(|(_, object)| object).collect(), revision, next, remaining })
    }

    fn list_at(&self, target: &Target) -> Result<Listing, Status> {
        let query = &target.query;
        let version = query.get("resourceVersion");
        let requested = version.map(str::parse::<u64>).transpose().map_err(|_| {
            Status::bad_request(format!(
                "invalid resource version {:?}: not a whole number",
                version.unwrap_or_default()
            ))
        })?;
        if query.get("sendInitialEvents").is_some() {
            let error = FieldError::forbidden(&"sendInitialEvents", "sendInitialEvents is forbidden for list");
            return Err(invalid_options("ListOptions", &[error]));
        }
        let refused =
            |why: &str| invalid_options("ListOptions", &[FieldError::forbidden(&"resourceVersionMatch", why)]);
        let exact = match query.get("resourceVersionMatch") {
            None => false,
            Some("NotOlderThan") if requested.is_some() => false,
            Some("Exact") if requested.is_some_and(|requested| requested > 0) => true,
            Some("Exact") if requested == Some(0) => {
                return Err(refused("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\""));
            }
            Some("Exact" | "NotOlderThan") => {
                return Err(refused("resourceVersionMatch is forbidden unless resourceVersion is provided"));
            }
            Some(other) => {
                let error = FieldError::not_supported(&"resourceVersionMatch", other, ["Exact", "NotOlderThan"]);
                return Err(invalid_options("ListOptions", &[error]));
            }
        };
        self.check_not_future(requested)?;
        if target.lag > 0 && !exact {
            return Ok(self.lagging(target, requested));
        }
        // Whatever is not exact may be newer than requested: the current state always is.
        let listing = self.store.list(&target.scope(), requested.filter(|_| exact));
        listing.map_err(|Compacted { requested, oldest }| Status::expired(requested, oldest))
    }

    /// The collection as a cache shows it that lags behind, but not behind what is requested, nor behind the history.
    pub(super) fn lagging(&self, target: &Target, requested: Option<u64>) -> Listing {
        let scope = target.scope();
        let revision = self.store.revision().saturating_sub(target.lag).max(requested.unwrap_or(0)).max(1);
        self.store
            .list(&scope, Some(revision))
            .or_else(|Compacted { oldest, .. }| self.store.list(&scope, Some(oldest)))
            .unwrap_or_else(|_| self.store.list_now(&scope))
    }

    pub(super) fn check_not_future(&self, requested: Option<u64>) -> Result<(), Status> {
        let current = self.store.revision();
        match requested {
            Some(requested) if requested > current => Err(Status::revision_too_large(requested, current)),
            _ => Ok(()),
        }
    }
}

/// The selector of a collection request; a path with a name selects that name.
pub(super) fn selector(target: &Target) -> Result<Selector, Status> {
    Selector::parse(&target.resource, target.query.get("labelSelector"), target.query.get("fieldSelector"))
}

fn join(api_version: &str, kind: &str, metadata: &table::ListMetadata, items: &[Bytes]) -> Bytes {
    let head = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata.to_value()}).to_string();
    let mut body = BytesMut::with_capacity(head.len() + 16 + items.iter().map(|item| item.len() + 1).sum::<usize>());
    body.put_slice(head.strip_suffix('}').unwrap_or_default().as_bytes());
    body.put_slice(b",\"items\":[");
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            body.put_u8(b',');
        }
        body.put_slice(item);
    }
    body.put_slice(b"]}");
    body.freeze()
}
