//! `/healthz`, `/livez`, `/readyz`: a server that responds is healthy; a check that is requested by name must exist.

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::request::query::Query;
use crate::respond::{self, Body};

const TEXT: &str = "text/plain; charset=utf-8";

/// The components that are started before the first request is served, with the names of kube-apiserver.
const CHECKS: &[&str] = &[
    "ping",
    "log",
    "etcd",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/start-system-namespaces-controller",
];

/// Answers `/livez`, `/livez/ping`, `/livez?verbose&exclude=ping` and the like.
pub fn answer(path: &str, query: &Query) -> Response<Body> {
    let path = path.trim_matches('/');
    let (endpoint, check) = path.split_once('/').unwrap_or((path, ""));
    if !check.is_empty() && !CHECKS.contains(&check) {
        return respond::with_type(StatusCode::NOT_FOUND, TEXT, Bytes::from_static(b"404 page not found\n"));
    }
    // `?verbose` without a value asks for it too.
    if !check.is_empty() || query.all("verbose").next().is_none() {
        return respond::with_type(StatusCode::OK, TEXT, Bytes::from_static(b"ok"));
    }
    let excluded = |check: &str| query.all("exclude").any(|name| name == check);
    let lines = CHECKS.iter().map(|check| {
        let state = if excluded(check) { "excluded: ok" } else { "ok" };
        format!("[+]{check} {state}\n")
    });
    let body = lines.chain([format!("{endpoint} check passed\n")]).collect::<String>();
    respond::with_type(StatusCode::OK, TEXT, body.into())
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn checks_are_named_on_request() {
        let cases = [
            ("/livez", "", 200, "ok"),
            ("/readyz/ping", "", 200, "ok"),
            ("/healthz/nothing", "", 404, "404 page not found\n"),
            (
                "/livez",
                "verbose&exclude=log",
                200,
                "[+]ping ok\n[+]log excluded: ok\n[+]etcd ok\n[+]poststarthook/crd-informer-synced ok\n\
                 [+]poststarthook/start-apiextensions-controllers ok\n\
                 [+]poststarthook/start-system-namespaces-controller ok\nlivez check passed\n",
            ),
        ];
        for (path, query, status, expected) in cases {
            let response = answer(path, &Query::parse(query));
            assert_eq!(response.status(), status, "{path}?{query}");
            let Ok(body) = response.into_body().collect().await else { panic!("the body breaks off") };
            assert_eq!(body.to_bytes(), expected, "{path}?{query}");
        }
    }
}
