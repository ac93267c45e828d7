//! Paths, and who may ask for them.

use std::sync::Arc;

use axum::{
    Extension, Router,
    body::Body,
    extract::{DefaultBodyLimit, Path, RawQuery, Request, State},
    middleware::{self, Next},
    response::Response,
    routing::{get, put},
};
use http::{HeaderMap, Method};
use tower_http::compression::CompressionLayer;

use crate::{
    bundles::Bundles,
    callers::Callers,
    catalogs::{Catalogs, Wanted},
    places::Caller,
    refusal::Refusal,
    server::{Holding, Holdings},
    uploads::Uploads,
};

/// What the routes share.
pub(crate) struct Service {
    pub(crate) callers: Callers,
    pub(crate) holdings: Arc<dyn Holdings>,
    pub(crate) bundles: Bundles,
    pub(crate) catalogs: Catalogs,
    pub(crate) uploads: Uploads,
}

type Answer = Result<Response, Refusal>;

/// All routes, each behind a check of the caller. Paths without a route are checked, too.
pub(crate) fn router(service: Arc<Service>) -> Router {
    let catalogs = Router::new()
        .route("/catalogs/{name}/api/v1/all", get(all))
        .route("/catalogs/{name}/api/v1/metas", get(metas))
        .layer(CompressionLayer::new());
    let paths = Router::new()
        .route("/bundles/{file}", get(bundle))
        .merge(catalogs)
        .fallback(nothing)
        .layer(middleware::from_fn_with_state(Arc::clone(&service), checked));
    // The permissions are for the BundleDeployment and its account, and the limit for downloads applies.
    let uploads = put(upload).layer(DefaultBodyLimit::disable());
    Router::new().route("/uploads/{file}", uploads).merge(paths).with_state(service)
}

/// Answers only callers that may get the path.
async fn checked(State(service): State<Arc<Service>>, mut request: Request, next: Next) -> Answer {
    let caller = service.callers.may_get(request.headers(), request.uri().path()).await?;
    request.extensions_mut().insert(caller);
    Ok(next.run(request).await)
}

async fn nothing() -> Refusal {
    Refusal::Absent("there is nothing at this path".to_owned())
}

async fn bundle(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Path(file): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Answer {
    match file.strip_suffix(".tgz").map_or(Holding::Nothing, |name| service.holdings.bundle(name)) {
        Holding::Content(digest) => service.bundles.answer(&caller, &method, &headers, &digest).await,
        Holding::Unknown => Err(Refusal::Unavailable("the controller has just started, and not looked at it yet")),
        Holding::Nothing => {
            Err(Refusal::Absent(format!("no BundleDeployment with unpacked content has the path {}", printable(&file))))
        }
    }
}

async fn upload(
    State(service): State<Arc<Service>>,
    Path(file): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let name = file.strip_suffix(".tgz").unwrap_or(&file);
    let (caller, user) = service.callers.may_update(&headers, name).await?;
    if name == file {
        return Err(Refusal::Absent("the path of an upload is /uploads/NAME.tgz".to_owned()));
    }
    let wanted = service.uploads.wanted(name)?;
    service.callers.may_install(&user, name, wanted.account.as_ref()).await?;
    service.uploads.receive(&caller, name, &wanted, body).await
}

async fn all(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Answer {
    documents(&service, &caller, &name, &method, &headers, Wanted::default()).await
}

async fn metas(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Answer {
    documents(&service, &caller, &name, &method, &headers, Wanted::parse(&query.unwrap_or_default())?).await
}

async fn documents(
    service: &Service,
    caller: &Caller,
    name: &str,
    method: &Method,
    headers: &HeaderMap,
    wanted: Wanted,
) -> Answer {
    let absent = || Refusal::Absent(format!("there is no Catalog {} with content in use", printable(name)));
    let digest = service.holdings.catalog(name).ok_or_else(absent)?;
    service.catalogs.answer(caller, method, headers, &digest, wanted).await
}

fn printable(text: &str) -> String {
    chandler_core::text::printable(text).to_string()
}
