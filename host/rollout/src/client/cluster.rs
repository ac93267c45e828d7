//! The requests that read. Bodies are JSON values, so no field is lost in a type.

use std::{collections::BTreeSet, sync::Arc};

use chandler_informers::{Informers, Reader};
use chandler_permissions::Account;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use kube::{
    Client, Resource as _,
    api::{ApiResource, DynamicObject, ListParams},
    client::Body,
    core::{Request, Status},
};
use serde_json::{Value, json};

use crate::{
    client::account::impersonating,
    pure::{error::ApiError, live},
};

/// The number of objects in one page of a list.
const PAGE: u32 = 500;
/// The number of objects in one page of metadata that may be large.
const METADATA_PAGE: u32 = 50;

/// One page of a list.
pub(crate) struct Page {
    pub(crate) objects: Vec<Value>,
    /// The number of objects after them, if the API server reports it.
    pub(crate) remaining: Option<u64>,
    /// The continue token; none for the last page.
    pub(crate) next: Option<String>,
}

/// Which objects of a list are kept in memory.
type Keeps<'a> = &'a (dyn Fn(&Value) -> bool + Sync);

/// Builds a list request, for whole objects or for their metadata.
type List = fn(&Request, &ListParams) -> Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// A client of the API server.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(super) client: Client,
    /// The informers that answer reads with the rights of this client, and see every write before the caller does, or `None` if the cluster
    /// is always read.
    pub(crate) reader: Option<Reader>,
}

impl Cluster {
    /// A cluster that is always read.
    pub(crate) fn new(client: Client) -> Self {
        Self { client, reader: None }
    }

    /// A cluster whose objects are read from informers where possible.
    pub(crate) fn with_informers(self, informers: &Arc<Informers>) -> Self {
        Self { reader: Some(informers.reader()), ..self }
    }

    /// This cluster with a ServiceAccount impersonated on behalf of an owner.
    pub(crate) fn on_behalf_of(&self, account: &Account, owner: &str) -> Result<Self, ApiError> {
        let client = impersonating(&self.client, account)?;
        let reader = self.reader.as_ref();
        let reader = reader.map(|reader| reader.on_behalf_of(account.clone(), client.clone(), owner.to_owned()));
        Ok(Self { client, reader })
    }

    /// Reads an object, if it exists.
    pub(crate) async fn get(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, ApiError> {
        let request = at(resource, namespace).get(name, &kube::api::GetParams::default()).map_err(built)?;
        self.existing(request).await
    }

    /// The object that a request reads, if it exists.
    async fn existing(&self, request: http::Request<Vec<u8>>) -> Result<Option<Value>, ApiError> {
        match self.client.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) => match ApiError::from(error) {
                ApiError::NotFound(_) => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Lists the objects of a kind that match the selector, in one or all namespaces. A kind that is not served has none.
    pub(crate) async fn list(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, ApiError> {
        let parameters = ListParams::default().labels(selector).limit(PAGE);
        self.all(resource, namespace, parameters, Request::list, &|_| true).await
    }

    /// Like [`list`](Self::list), only the objects that are kept; `None` if a page of them has more bytes than this. No more are read.
    pub(crate) async fn list_within(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        selector: &str,
        bytes: usize,
        keeps: Keeps<'_>,
    ) -> Result<Option<Vec<Value>>, ApiError> {
        let mut parameters = ListParams::default().labels(selector).limit(PAGE);
        let mut objects = Vec::new();
        loop {
            let request = at(resource, namespace).list(&parameters).map_err(built)?;
            let page = match self.answer_within(request, bytes).await {
                Ok(Some(page)) => paged(page, resource),
                Ok(None) => return Ok(None),
                Err(ApiError::NotFound(_)) => return Ok(Some(Vec::new())),
                Err(error) => return Err(error),
            };
            objects.extend(page.objects.into_iter().filter(keeps));
            match page.next {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(Some(objects)),
            }
        }
    }

    /// The metadata of the objects that match the selector and are kept, in one or all namespaces. A kind that is not served has none.
    pub(crate) async fn list_labelled_metadata(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        selector: &str,
        keeps: Keeps<'_>,
    ) -> Result<Vec<Value>, ApiError> {
        let parameters = ListParams::default().labels(selector).limit(METADATA_PAGE);
        self.all(resource, namespace, parameters, Request::list_metadata, keeps).await
    }

    /// Reads the metadata of an object, if it exists.
    pub(crate) async fn get_metadata(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, ApiError> {
        let request = at(resource, namespace).get_metadata(name, &kube::api::GetParams::default()).map_err(built)?;
        Ok(self.existing(request).await?.map(|object| typed(object, resource)))
    }

    /// The first page of the objects of a kind in a namespace. A kind that is not served has none.
    pub(crate) async fn first(
        &self,
        resource: &ApiResource,
        namespace: &str,
        parameters: &ListParams,
    ) -> Result<Vec<Value>, ApiError> {
        let page = self.served_part(resource, Some(namespace), parameters, Request::list).await?;
        Ok(page.map(|page| page.objects).unwrap_or_default())
    }

    /// One page of the objects of a kind in all namespaces, after a continue token.
    pub(crate) async fn page(&self, resource: &ApiResource, limit: u32, after: Option<&str>) -> Result<Page, ApiError> {
        self.part(resource, None, &after_place(limit, after), Request::list).await
    }

    /// One page of the objects' metadata.
    pub(crate) async fn metadata_page(
        &self,
        resource: &ApiResource,
        limit: u32,
        after: Option<&str>,
    ) -> Result<Page, ApiError> {
        self.part(resource, None, &after_place(limit, after), Request::list_metadata).await
    }

    /// Lists the metadata of all objects of a kind, in one or all namespaces. A kind that is not served has none.
    pub(crate) async fn list_metadata(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, ApiError> {
        self.all(resource, namespace, ListParams::default().limit(PAGE), Request::list_metadata, &|_| true).await
    }

    /// The names of all objects of a kind, in one namespace or cluster-scoped, or `None` if there are many more of them than
    /// `wanted`. A kind that is not served has none.
    pub(crate) async fn names(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        wanted: usize,
    ) -> Result<Option<BTreeSet<String>>, ApiError> {
        let mut names = BTreeSet::new();
        let mut next = None;
        loop {
            let place = after_place(PAGE, next.as_deref());
            let Some(page) = self.served_part(resource, namespace, &place, Request::list_metadata).await? else {
                return Ok(Some(names));
            };
            names.extend(page.objects.iter().map(|object| live::text(object, "/metadata/name").to_owned()));
            next = page.next;
            if next.is_none() {
                return Ok(Some(names));
            }
            // From here on, each page saves fewer requests than it costs.
            if names.len() > wanted.saturating_mul(PAGE as usize / 2) {
                return Ok(None);
            }
        }
    }

    /// The objects of all pages of a list that are kept. A kind that is not served has none.
    async fn all(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        mut parameters: ListParams,
        list: List,
        keeps: Keeps<'_>,
    ) -> Result<Vec<Value>, ApiError> {
        let mut objects = Vec::new();
        loop {
            let Some(page) = self.served_part(resource, namespace, &parameters, list).await? else {
                return Ok(Vec::new());
            };
            objects.extend(page.objects.into_iter().filter(keeps));
            match page.next {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }

    /// One page of a list; `None` if the kind is not served.
    async fn served_part(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        parameters: &ListParams,
        list: List,
    ) -> Result<Option<Page>, ApiError> {
        match self.part(resource, namespace, parameters, list).await {
            Ok(page) => Ok(Some(page)),
            Err(ApiError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One page of a list.
    async fn part(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        parameters: &ListParams,
        list: List,
    ) -> Result<Page, ApiError> {
        let request = list(&at(resource, namespace), parameters).map_err(built)?;
        Ok(paged(self.client.request(request).await?, resource))
    }

    /// Sends a review of the group `authorization.k8s.io`, and returns its status.
    pub(crate) async fn review(&self, resource: &str, review: &Value) -> Result<Value, ApiError> {
        let mut answer: Value = self.client.request(review_request(resource, review)?).await?;
        Ok(answer.get_mut("status").map(Value::take).unwrap_or_default())
    }

    /// Like [`review`](Self::review); `None` if the answer has more bytes than this. No more are read.
    pub(crate) async fn review_within(
        &self,
        resource: &str,
        review: &Value,
        bytes: usize,
    ) -> Result<Option<Value>, ApiError> {
        let answer = self.answer_within(review_request(resource, review)?, bytes).await?;
        Ok(answer.map(|mut answer| answer.get_mut("status").map(Value::take).unwrap_or_default()))
    }

    /// Sends a request, and parses the answer; `None` if it has more bytes than this. No more are read.
    async fn answer_within(&self, request: http::Request<Vec<u8>>, bytes: usize) -> Result<Option<Value>, ApiError> {
        let answer = self.client.send(request.map(Body::from)).await?;
        let code = answer.status();
        let body = match Limited::new(answer.into_body(), bytes).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Ok(None),
            Err(error) => return Err(ApiError::Unavailable(error.to_string())),
        };
        if !code.is_success() {
            let status = serde_json::from_slice(&body).unwrap_or_else(|_| {
                Status::failure(&String::from_utf8_lossy(&body), "InternalError").with_code(code.as_u16())
            });
            return Err(ApiError::of_status(&status));
        }
        let unreadable =
            |error: serde_json::Error| ApiError::Unavailable(format!("the answer is not readable: {error}"));
        Ok(Some(serde_json::from_slice(&body).map_err(unreadable)?))
    }
}

fn review_request(resource: &str, review: &Value) -> Result<http::Request<Vec<u8>>, ApiError> {
    let refused = |error: &dyn std::error::Error| ApiError::Refused(error.to_string());
    let body = serde_json::to_vec(review).map_err(|error| refused(&error))?;
    http::Request::post(format!("/apis/authorization.k8s.io/v1/{resource}"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| refused(&error))
}

pub(super) fn at(resource: &ApiResource, namespace: Option<&str>) -> Request {
    Request::new(DynamicObject::url_path(resource, namespace))
}

/// The parameters for the page after a continue token, or the first page.
fn after_place(limit: u32, place: Option<&str>) -> ListParams {
    let parameters = ListParams::default().limit(limit);
    match place {
        Some(token) => parameters.continue_token(token),
        None => parameters,
    }
}

fn paged(mut page: Value, resource: &ApiResource) -> Page {
    let remaining = page.pointer("/metadata/remainingItemCount").and_then(Value::as_u64);
    let next = page.pointer("/metadata/continue").and_then(Value::as_str).filter(|token| !token.is_empty());
    let next = next.map(str::to_owned);
    let objects = match page.get_mut("items").map(Value::take) {
        Some(Value::Array(objects)) => objects.into_iter().map(|object| typed(object, resource)).collect(),
        _ => Vec::new(),
    };
    Page { objects, remaining, next }
}

/// Sets API version and kind, which items of lists lack.
pub(super) fn typed(mut object: Value, resource: &ApiResource) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".to_owned(), json!(resource.api_version));
        map.insert("kind".to_owned(), json!(resource.kind));
    }
    object
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn built(error: kube::core::request::Error) -> ApiError {
    ApiError::Refused(error.to_string())
}
