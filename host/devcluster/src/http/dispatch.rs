//! Dispatches path and method to a handler.

use std::sync::Arc;

use bytes::Bytes;
use chandler_devcluster_apimachinery::access::User;
use futures::StreamExt as _;
use http::{Method, Request, Response, StatusCode, header};

use super::{
    fault_injection, faults, health, heavy, logs,
    route::{ObjectPath, Route},
};
use crate::{
    api::{self, Api, Input, Target, delete::Deleted, write::Written},
    authentication::openid,
    discovery,
    faults::{
        Strike,
        watch::{Reset, disturb},
    },
    openapi,
    registry::{Resource, Snapshot},
    request::{negotiate, query::Query},
    respond::{self, Body},
    status::Status,
    store::object::render,
    version,
};

/// Handles an authorized request whose body has been read; its user is in the extensions.
///
/// # Errors
/// If a fault suppresses the response.
pub async fn handle(api: &Arc<Api>, request: &Request<Bytes>) -> Result<Response<Body>, Reset> {
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let route = Route::parse(request.uri().path());
    let strike = fault_injection::strike(api, request, &route, &query);
    let answered = async || {
        if heavy::is(api, request, &route) {
            heavy::answer(api, request, &route, query.clone(), &strike).await
        } else {
            answer(api, request, &route, query.clone(), &strike)
        }
    };
    if strike.faults.is_empty() {
        return Ok(answered().await);
    }
    tracing::debug!(method = %request.method(), uri = %request.uri(), faults = ?strike.faults, "struck");
    fault_injection::answer(api, &route, &query, &strike, answered).await
}

pub(super) fn answer(
    api: &Arc<Api>,
    request: &Request<Bytes>,
    route: &Route,
    query: Query,
    strike: &Strike,
) -> Response<Body> {
    let snapshot = api.registry.snapshot();
    let accept = header_text(request, header::ACCEPT);
    let read_only = matches!(*request.method(), Method::GET | Method::HEAD);
    let result = match route {
        Route::Faults(id) => faults::answer(api, request, id.as_deref()),
        Route::Objects(path) => objects(api, &snapshot, path, request, query, strike),
        _ if !read_only => Err(not_allowed()),
        Route::Health => return health::answer(request.uri().path(), &query),
        Route::Version => Ok(respond::value(StatusCode::OK, &version::document())),
        Route::LegacyVersions => Ok(discovery::legacy_versions(&snapshot, accept)),
        Route::Groups => Ok(discovery::groups(&snapshot, accept)),
        Route::Group(group) => discovery::group(&snapshot, group),
        Route::GroupVersion(group, version) => discovery::group_version(&snapshot, group, version),
        Route::OpenIdConfiguration => Ok(respond::value(StatusCode::OK, &openid::configuration(&api.authenticator))),
        Route::OpenIdKeys => {
            let keys = render(&openid::keys(&api.authenticator));
            Ok(respond::with_type(StatusCode::OK, openid::KEYS_TYPE, keys))
        }
        Route::OpenApiIndex => Ok(openapi::index(&snapshot)),
        Route::OpenApi(path) => openapi::document(&snapshot, path, query.get("hash"), api.clock.now()),
        Route::Unknown => Err(Status::no_such_resource()),
    };
    result.unwrap_or_else(|status| respond::status(&status))
}

fn header_text(request: &Request<Bytes>, name: header::HeaderName) -> &str {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn objects(
    api: &Arc<Api>,
    snapshot: &Snapshot,
    path: &ObjectPath,
    request: &Request<Bytes>,
    query: Query,
    strike: &Strike,
) -> Result<Response<Body>, Status> {
    let resource = snapshot.resource(&path.group, &path.version, &path.plural).ok_or_else(Status::no_such_resource)?;
    let target = Target { lag: strike.lag, ..target(resource, path, request, query)? };
    let content_type = header_text(request, header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    let input = Input { body: request.body().clone(), content_type: content_type.to_owned() };
    if resource.resource_type.virtual_resource {
        return match *request.method() {
            Method::POST => Ok(respond::json(StatusCode::CREATED, api.review(&target, &input)?)),
            _ => Err(not_allowed()),
        };
    }
    match (target.subresource.as_deref(), target.name.is_empty()) {
        (None, true) => collection(api, target, &input, request, strike),
        (None, false) => single(api, target, &input, request, strike),
        (Some("status"), _) if resource.resource_type.status => single(api, target, &input, request, strike),
        (Some("finalize"), _) if resource.is_core("namespaces") => single(api, target, &input, request, strike),
        (Some("token"), false) if resource.is_core("serviceaccounts") => match *request.method() {
            Method::POST => Ok(written(api.request_token(&target, &input)?)),
            _ => Err(not_allowed()),
        },
        (Some("binding"), false) if resource.is_core("pods") => match *request.method() {
            Method::POST => Ok(written(api.bind(&target, &input)?)),
            _ => Err(not_allowed()),
        },
        (Some("log"), false) if resource.is_core("pods") => match *request.method() {
            Method::GET => logs::answer(api, &target),
            _ => Err(not_allowed()),
        },
        (Some("scale"), _) => match *request.method() {
            Method::GET => Ok(respond::json(StatusCode::OK, api.scale(&target)?)),
            Method::PUT | Method::PATCH => Ok(written(api.set_scale(&target, &input)?)),
            _ => Err(not_allowed()),
        },
        (Some(other), _) => {
            let first = other.split('/').next().unwrap_or_default();
            if resource.resource_type.subresources.iter().any(|known| known == first) {
                Err(Status::not_implemented(&format!("the subresource {first} of {}", resource.plural())))
            } else {
                Err(Status::no_such_resource())
            }
        }
    }
}

fn target(
    resource: &Arc<Resource>,
    path: &ObjectPath,
    request: &Request<Bytes>,
    query: Query,
) -> Result<Target, Status> {
    if !resource.namespaced() && path.namespace.is_some() {
        return Err(Status::no_such_resource());
    }
    let creates = *request.method() == Method::POST;
    if resource.namespaced() && path.namespace.is_none() && (path.name.is_some() || creates) {
        return Err(Status::bad_request(
            "an empty namespace may not be set when a resource name is provided or an object is created",
        ));
    }
    let user = request.extensions().get::<Arc<User>>().cloned();
    Ok(Target {
        user: user.unwrap_or_else(|| Arc::new(User::anonymous())),
        resource: Arc::clone(resource),
        namespace: path.namespace.clone().unwrap_or_default(),
        name: path.name.clone().unwrap_or_default(),
        subresource: path.subresource.clone(),
        representation: negotiate::representation(header_text(request, header::ACCEPT), query.get("includeObject"))?,
        query,
        lag: 0,
        user_agent: header_text(request, header::USER_AGENT).to_owned(),
    })
}

fn collection(
    api: &Arc<Api>,
    target: Target,
    input: &Input,
    request: &Request<Bytes>,
    strike: &Strike,
) -> Result<Response<Body>, Status> {
    match *request.method() {
        Method::GET if target.query.flag("watch") => watch(api, target, strike),
        Method::GET => Ok(respond::json(StatusCode::OK, api.list(&target)?)),
        Method::POST => Ok(written(api.create(&target, input)?)),
        Method::DELETE => Ok(deleted(api.delete_collection(&target, input)?)),
        _ => Err(not_allowed()),
    }
}

fn single(
    api: &Arc<Api>,
    target: Target,
    input: &Input,
    request: &Request<Bytes>,
    strike: &Strike,
) -> Result<Response<Body>, Status> {
    let main = target.subresource.is_none();
    match *request.method() {
        // Watching one object is watching the collection for its name.
        Method::GET if main && target.query.flag("watch") => watch(api, target, strike),
        Method::GET => Ok(respond::json(StatusCode::OK, api.get(&target)?)),
        Method::PUT => Ok(written(api.update(&target, input)?)),
        Method::PATCH => Ok(written(api.patch(&target, input)?)),
        Method::DELETE if main => Ok(deleted(api.delete(&target, input)?)),
        _ => Err(not_allowed()),
    }
}

fn watch(api: &Api, target: Target, strike: &Strike) -> Result<Response<Body>, Status> {
    let expired = fault_injection::expired(api, &target.query);
    let lines = api.watch(target)?;
    if strike.watch.is_nothing() {
        return Ok(respond::stream(lines.map(Ok)));
    }
    let expired = api::watch::failure(&expired).bytes;
    Ok(respond::stream(disturb(lines, strike.watch.clone(), api.clock.clone(), expired)))
}

fn written(written: Written) -> Response<Body> {
    let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
    let mut response = respond::json(code, written.body);
    respond::warn(&mut response, &written.warnings);
    response
}

fn deleted(deleted: Deleted) -> Response<Body> {
    let code = if deleted.accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
    let mut response = respond::json(code, deleted.body);
    respond::warn(&mut response, &deleted.warnings);
    response
}

fn not_allowed() -> Status {
    Status::method_not_allowed("the server does not allow this method on the requested resource")
}
