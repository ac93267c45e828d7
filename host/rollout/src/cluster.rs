//! The requests. Bodies are JSON values: nothing is lost on the way through a type.

use std::collections::BTreeSet;

use chandler_core::ObjectKey;
use chandler_permissions::Account;
use kube::{
    Client, Resource as _,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::Request,
};
use serde_json::{Value, json};

use crate::{
    account::impersonating,
    desired::Desired,
    error::{ObjectFailure, Problem},
    live,
    untyped::{self, Untyped},
};

/// The name under which the API server records what is changed here.
pub(crate) const FIELD_MANAGER: &str = "chandler";
/// How many objects one page of a list holds.
const PAGE: u32 = 500;

/// What became of a deletion.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deleted {
    /// It is gone.
    Gone,
    /// It was accepted; the object is still there, in this state.
    Accepted(Value),
}

/// Some objects of a list.
pub(crate) struct Page {
    pub(crate) objects: Vec<Value>,
    /// How many come after them, where the API server says so.
    pub(crate) remaining: Option<u64>,
    /// The place after them; none where they are the last ones.
    pub(crate) next: Option<String>,
}

/// Why an apply was refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) problem: Problem,
    /// The fields that the API server names, as in `spec.ports[1].name`.
    pub(crate) fields: Vec<String>,
    /// The values of the stored object that are not of their type.
    pub(crate) untyped: Vec<Untyped>,
}

impl Refusal {
    /// Whether it may be what others wrote that makes the apply impossible.
    pub(crate) fn is_about_stored(&self) -> bool {
        matches!(&self.problem, Problem::Invalid(message) if !untyped::is_applied(message))
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, fields: Vec::new(), untyped: Vec::new() }
    }
}

impl From<kube::Error> for Refusal {
    fn from(error: kube::Error) -> Self {
        let causes = match &error {
            kube::Error::Api(status) => status.details.as_ref().map(|details| details.causes.as_slice()),
            _ => None,
        };
        let fields = causes.unwrap_or_default().iter().map(|cause| cause.field.clone()).collect();
        let problem = Problem::from(error);
        let untyped = match &problem {
            Problem::Invalid(message) => untyped::named(message),
            _ => Vec::new(),
        };
        Self { problem, fields, untyped }
    }
}

/// Builds the request for a list: of whole objects, or of their metadata.
type List = fn(&Request, &ListParams) -> Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// Talks to the API server.
#[derive(Clone)]
pub(crate) struct Cluster {
    client: Client,
}

impl Cluster {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// The same cluster, on behalf of a ServiceAccount.
    pub(crate) fn on_behalf_of(&self, account: &Account) -> Result<Self, Problem> {
        impersonating(&self.client, account).map(Self::new)
    }

    /// One object, if it exists.
    pub(crate) async fn get(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>, Problem> {
        let request = at(resource, namespace).get(name, &kube::api::GetParams::default()).map_err(built)?;
        match self.client.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) => match Problem::from(error) {
                Problem::NotFound(_) => Ok(None),
                problem => Err(problem),
            },
        }
    }

    /// The objects of a kind that match the selector, in one or all namespaces. A kind that is not served has none.
    pub(crate) async fn list(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, Problem> {
        let parameters = ListParams::default().labels(selector).limit(PAGE);
        self.all(resource, namespace, parameters, Request::list).await
    }

    /// Some objects of a kind in all namespaces: those after the place that the page before names.
    pub(crate) async fn page(&self, resource: &ApiResource, limit: u32, after: Option<&str>) -> Result<Page, Problem> {
        self.part(resource, None, &after_place(limit, after), Request::list).await
    }

    /// The same, with nothing of the objects but their metadata.
    pub(crate) async fn metadata_page(
        &self,
        resource: &ApiResource,
        limit: u32,
        after: Option<&str>,
    ) -> Result<Page, Problem> {
        self.part(resource, None, &after_place(limit, after), Request::list_metadata).await
    }

    /// The metadata of all objects of a kind, in one or all namespaces. A kind that is not served has none.
    pub(crate) async fn list_metadata(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
    ) -> Result<Vec<Value>, Problem> {
        self.all(resource, namespace, ListParams::default().limit(PAGE), Request::list_metadata).await
    }

    /// The names of all objects of a kind, in one namespace or of a kind without; none where there are many more of them than
    /// `wanted`.
    pub(crate) async fn names(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        wanted: usize,
    ) -> Result<Option<BTreeSet<String>>, Problem> {
        let mut names = BTreeSet::new();
        let mut next = None;
        loop {
            let place = after_place(PAGE, next.as_deref());
            let page = self.part(resource, namespace, &place, Request::list_metadata).await?;
            names.extend(page.objects.iter().map(|object| live::text(object, "/metadata/name").to_owned()));
            next = page.next;
            if next.is_none() {
                return Ok(Some(names));
            }
            // Where each page spares fewer requests than it takes.
            if names.len() > wanted.saturating_mul(PAGE as usize / 2) {
                return Ok(None);
            }
        }
    }

    /// All pages of a list. A kind that is not served has no objects.
    async fn all(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        mut parameters: ListParams,
        list: List,
    ) -> Result<Vec<Value>, Problem> {
        let mut objects = Vec::new();
        loop {
            let page = match self.part(resource, namespace, &parameters, list).await {
                Ok(page) => page,
                Err(Problem::NotFound(_)) => return Ok(Vec::new()),
                Err(problem) => return Err(problem),
            };
            objects.extend(page.objects);
            match page.next {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(objects),
            }
        }
    }

    /// One page of a list.
    async fn part(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        parameters: &ListParams,
        list: List,
    ) -> Result<Page, Problem> {
        let request = list(&at(resource, namespace), parameters).map_err(built)?;
        Ok(paged(self.client.request(request).await?, resource))
    }

    /// Creates an object that must not exist. A field that its kind does not have is refused: no later apply could have it.
    pub(crate) async fn create(&self, desired: &Desired, dry_run: bool) -> Result<Value, Problem> {
        let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let body = serde_json::to_vec(&desired.value).map_err(|error| Problem::Refused(error.to_string()))?;
        let request =
            at(&desired.resource, desired.key.namespace.as_deref()).create(&parameters, body).map_err(built)?;
        Ok(self.client.request(with_strict_fields(request)?).await?)
    }

    /// Applies an object that nobody changed since it was read: its UID keeps another one from being adopted, or a deleted one
    /// from being created, and its version keeps one that was orphaned meanwhile from being taken back.
    pub(crate) async fn apply(&self, desired: &Desired, live: &Value) -> Result<Value, Problem> {
        self.try_apply(desired, live).await.map_err(|refusal| refusal.problem)
    }

    /// The same; a refusal names the fields that it is about.
    pub(crate) async fn try_apply(&self, desired: &Desired, live: &Value) -> Result<Value, Refusal> {
        let version = live::resource_version(live);
        self.apply_to(desired, json!({"uid": live::uid(live), "resourceVersion": version}), false).await
    }

    /// What an object would become, whatever version it has by then.
    pub(crate) async fn dry_run(&self, desired: &Desired, live: &Value) -> Result<Value, Problem> {
        self.try_dry_run(desired, live).await.map_err(|refusal| refusal.problem)
    }

    /// The same; a refusal names the fields that it is about.
    pub(crate) async fn try_dry_run(&self, desired: &Desired, live: &Value) -> Result<Value, Refusal> {
        self.apply_to(desired, json!({"uid": live::uid(live)}), true).await
    }

    async fn apply_to(&self, desired: &Desired, preconditions: Value, dry_run: bool) -> Result<Value, Refusal> {
        let mut body = desired.value.clone();
        if let (Some(metadata), Value::Object(preconditions)) =
            (body.get_mut("metadata").and_then(Value::as_object_mut), preconditions)
        {
            metadata.extend(preconditions);
        }
        let mut parameters = PatchParams::apply(FIELD_MANAGER).force();
        parameters.dry_run = dry_run;
        let path = at(&desired.resource, desired.key.namespace.as_deref());
        let request = path.patch(&desired.key.name, &parameters, &Patch::Apply(body)).map_err(built)?;
        Ok(self.client.request(request).await?)
    }

    /// Replaces an object that nobody changed since it was read by what is desired of it.
    pub(crate) async fn replace(&self, desired: &Desired, live: &Value, dry_run: bool) -> Result<Value, Problem> {
        let mut body = desired.value.clone();
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("uid".to_owned(), json!(live::uid(live)));
            metadata.insert("resourceVersion".to_owned(), json!(live::resource_version(live)));
        }
        let parameters = PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let body = serde_json::to_vec(&body).map_err(|error| Problem::Refused(error.to_string()))?;
        let path = at(&desired.resource, desired.key.namespace.as_deref());
        let request = path.replace(&desired.key.name, &parameters, body).map_err(built)?;
        Ok(self.client.request(request).await?)
    }

    /// Changes an object (a merge patch) that nobody changed since it was read.
    pub(crate) async fn merge(
        &self,
        desired: &Desired,
        live: &Value,
        mut changes: Value,
        dry_run: bool,
    ) -> Result<Value, Problem> {
        if let Some(changes) = changes.as_object_mut() {
            let read = json!({"uid": live::uid(live), "resourceVersion": live::resource_version(live)});
            changes.insert("metadata".to_owned(), read);
        }
        let parameters =
            PatchParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let path = at(&desired.resource, desired.key.namespace.as_deref());
        let request = path.patch(&desired.key.name, &parameters, &Patch::Merge(changes)).map_err(built)?;
        Ok(self.client.request(request).await?)
    }

    /// Applies a part of the parent's metadata under a field manager of its own.
    pub(crate) async fn apply_part(
        &self,
        resource: &ApiResource,
        name: &str,
        manager: &str,
        body: &Value,
    ) -> Result<Value, Problem> {
        let parameters = PatchParams::apply(manager).force();
        let request = at(resource, None).patch(name, &parameters, &Patch::Apply(body)).map_err(built)?;
        Ok(self.client.request(request).await?)
    }

    /// Replaces the records of the field managers of an object that nobody changed since it was read.
    pub(crate) async fn replace_managed_fields(
        &self,
        desired: &Desired,
        resource_version: &str,
        managed_fields: &Value,
    ) -> Result<Value, Problem> {
        let body = json!({"metadata": {"managedFields": managed_fields, "resourceVersion": resource_version}});
        let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let path = at(&desired.resource, desired.key.namespace.as_deref());
        let request = path.patch(&desired.key.name, &parameters, &Patch::Merge(body)).map_err(built)?;
        Ok(self.client.request(request).await?)
    }

    /// Changes a part of the metadata of an object (a merge patch) that nobody changed since it was read.
    pub(crate) async fn patch_metadata(
        &self,
        resource: &ApiResource,
        object: &Value,
        mut metadata: Value,
        manager: &str,
    ) -> Result<Value, Problem> {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("uid".to_owned(), json!(live::uid(object)));
            metadata.insert("resourceVersion".to_owned(), json!(live::resource_version(object)));
        }
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let key = live::key(object, resource);
        let path = at(resource, key.namespace.as_deref());
        let body = Patch::Merge(json!({"metadata": metadata}));
        let request = path.patch(&key.name, &parameters, &body).map_err(built)?;
        Ok(self.client.request(request).await?)
    }

    /// Has a review of the group `authorization.k8s.io` answered: its status.
    pub(crate) async fn review(&self, resource: &str, review: &Value) -> Result<Value, Problem> {
        let body = serde_json::to_vec(review).map_err(|error| Problem::Refused(error.to_string()))?;
        let request = http::Request::post(format!("/apis/authorization.k8s.io/v1/{resource}"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| Problem::Refused(error.to_string()))?;
        let mut answer: Value = self.client.request(request).await?;
        Ok(answer.get_mut("status").map(Value::take).unwrap_or_default())
    }

    /// Deletes an object if it is still the one that was read, unchanged.
    pub(crate) async fn delete(&self, resource: &ApiResource, object: &Value) -> Result<Deleted, Problem> {
        let parameters = DeleteParams::background().preconditions(Preconditions {
            uid: Some(live::uid(object).to_owned()),
            resource_version: Some(live::resource_version(object).to_owned()),
        });
        let key = live::key(object, resource);
        let request = at(resource, key.namespace.as_deref()).delete(&key.name, &parameters).map_err(built)?;
        match self.client.request::<Value>(request).await {
            // Either the object, while something holds it back, or a status. Some kinds answer with the object although it
            // is gone, and then it carries no time of deletion.
            Ok(answer) if live::is_terminating(&answer) => Ok(Deleted::Accepted(typed(answer, resource))),
            Ok(_) => Ok(Deleted::Gone),
            Err(error) => match Problem::from(error) {
                Problem::NotFound(_) => Ok(Deleted::Gone),
                problem => Err(problem),
            },
        }
    }
}

/// A problem as one with an object.
pub(crate) fn about(object: &ObjectKey, action: &'static str) -> impl FnOnce(Problem) -> ObjectFailure {
    let object = object.clone();
    move |problem| ObjectFailure { object, action, problem }
}

fn at(resource: &ApiResource, namespace: Option<&str>) -> Request {
    Request::new(DynamicObject::url_path(resource, namespace))
}

/// The objects after a place, or the first ones.
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

/// Items of lists do not say what they are.
fn typed(mut object: Value, resource: &ApiResource) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.insert("apiVersion".to_owned(), json!(resource.api_version));
        map.insert("kind".to_owned(), json!(resource.kind));
    }
    object
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn built(error: kube::core::request::Error) -> Problem {
    Problem::Refused(error.to_string())
}

/// The request, refused where the object has fields that its kind does not have. Parameters of kube have no such member.
fn with_strict_fields(request: http::Request<Vec<u8>>) -> Result<http::Request<Vec<u8>>, Problem> {
    let (mut parts, body) = request.into_parts();
    let separator = if parts.uri.query().is_some() { '&' } else { '?' };
    let uri = format!("{}{separator}fieldValidation=Strict", parts.uri);
    parts.uri = uri.parse().map_err(|error: http::uri::InvalidUri| Problem::Refused(error.to_string()))?;
    Ok(http::Request::from_parts(parts, body))
}
