//! A client whose requests are measured.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::{Method, Request, header::CONTENT_TYPE};
use kube::{Client, client::Body};

use crate::repeated::Answers;

/// The resource of requests that read which kinds the API server has.
const DISCOVERY: &str = "discovery";
/// The beginning of the media types of server-side apply.
const APPLY: &[u8] = b"application/apply-patch";

/// What a request does, and to which resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestAttributes<'a> {
    /// The verb in an audit log, or `apply` for server-side apply, and `other` for methods that Kubernetes does not use.
    pub verb: &'static str,
    /// Whether nothing is written.
    pub is_dry_run: bool,
    /// The namespace.
    pub namespace: Option<&'a str>,
    /// Such as `configmaps`, or `discovery` for a path outside of the resources.
    pub resource: &'a str,
    /// Such as `status`.
    pub subresource: Option<&'a str>,
}

impl<'a> RequestAttributes<'a> {
    /// Reads the method, the path and the query of a request.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        let path = Path::parse(request.uri().path());
        let parameters = || request.uri().query().unwrap_or_default().split('&');
        let watches = || parameters().any(|parameter| ["watch=true", "watch=1"].contains(&parameter));
        let is_apply = request.headers().get(CONTENT_TYPE).is_some_and(|type_| type_.as_bytes().starts_with(APPLY));
        let verb = match (request.method(), path.name) {
            (&Method::GET, _) if watches() => "watch",
            (&Method::GET, None) if path.resource != DISCOVERY => "list",
            (&Method::GET, _) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) if is_apply => "apply",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, None) => "deletecollection",
            (&Method::DELETE, _) => "delete",
            _ => "other",
        };
        Self {
            verb,
            is_dry_run: parameters().any(|parameter| parameter.starts_with("dryRun=")),
            namespace: path.namespace,
            resource: path.resource,
            subresource: path.subresource,
        }
    }
}

/// The parts of a path of the Kubernetes API.
struct Path<'a> {
    namespace: Option<&'a str>,
    resource: &'a str,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> Path<'a> {
    fn parse(path: &'a str) -> Self {
        let mut segments = path.split('/').filter(|segment| !segment.is_empty());
        match segments.next() {
            Some("api") => _ = segments.next(),
            Some("apis") => _ = (segments.next(), segments.next()),
            _ => return Self { namespace: None, resource: DISCOVERY, name: None, subresource: None },
        }
        let mut rest: Vec<&str> = segments.collect();
        let mut namespace = None;
        if let ["namespaces", name, next, ..] = rest.as_slice()
            && !["status", "finalize"].contains(next)
        {
            namespace = Some(*name);
            rest.drain(..2);
        }
        let mut rest = rest.into_iter();
        Self { namespace, resource: rest.next().unwrap_or(DISCOVERY), name: rest.next(), subresource: rest.next() }
    }
}

/// Receives the attributes of each request, the status code of an answer (0: none), and the time until it. Without a time, the client sends
/// the request again after this answer, and the last answer follows.
pub type Observer = Arc<dyn Fn(&RequestAttributes<'_>, u16, Option<Duration>) + Send + Sync>;

/// A client whose requests are reported to an observer. The time of a watch is the time until its first byte.
pub fn measured(client: &Client, observer: Observer) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, observer) = (inner.clone(), Arc::clone(&observer));
        async move {
            let (mut parts, body) = request.into_parts();
            let answers = Answers::default();
            parts.extensions.insert(answers.clone());
            let copy = Request::from_parts(parts.clone(), ());
            let started = Instant::now();
            let answer = inner.send(Request::from_parts(parts, body)).await;
            let code = answer.as_ref().map_or(0, |response| response.status().as_u16());
            let attributes = RequestAttributes::of(&copy);
            for code in answers.repeated() {
                observer(&attributes, code, None);
            }
            observer(&attributes, code, Some(started.elapsed()));
            answer
        }
    });
    Client::new(service, client.default_namespace())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::Response;
    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn each_request_is_reported_with_its_answer() {
        let service = tower::service_fn(async |_: Request<Body>| {
            Ok::<_, Infallible>(Response::builder().status(409).body(Body::empty()).unwrap())
        });
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let client = measured(
            &Client::new(service, "default"),
            Arc::new(move |attributes, code, _| {
                let resource = attributes.resource.to_owned();
                kept.lock().push((attributes.verb, attributes.is_dry_run, resource, code));
            }),
        );
        for (method, uri) in [
            ("PATCH", "/api/v1/namespaces/a/configmaps/b?dryRun=All"),
            ("GET", "/api/v1/namespaces/a"),
            ("GET", "/api/v1/namespaces/a/status"),
            ("GET", "/apis/apps/v1/deployments?watch=true"),
            ("GET", "/apis"),
            ("BREW", "/"),
        ] {
            client.send(Request::builder().method(method).uri(uri).body(Body::empty()).unwrap()).await.unwrap();
        }
        let expected = [
            ("patch", true, "configmaps"),
            ("get", false, "namespaces"),
            ("get", false, "namespaces"),
            ("watch", false, "deployments"),
            ("get", false, "discovery"),
            ("other", false, "discovery"),
        ];
        assert_eq!(*seen.lock(), expected.map(|(verb, dry, resource)| (verb, dry, resource.to_owned(), 409)));
    }

    #[tokio::test]
    async fn answers_after_which_a_request_is_repeated_are_reported() {
        let codes = Arc::new(Mutex::new(vec![200, 503, 429]));
        let service = tower::service_fn(move |_: Request<Body>| {
            let code: u16 = codes.lock().pop().unwrap();
            async move { Ok::<_, tower::BoxError>(Response::builder().status(code).body(Body::empty()).unwrap()) }
        });
        let service = tower::ServiceBuilder::new()
            .layer(tower::retry::RetryLayer::new(kube::client::retry::RetryPolicy::server_retry()))
            .layer(crate::repeated::NoteAnswers)
            .service(service);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let client = measured(
            &Client::new(service, "default"),
            Arc::new(move |_, code, duration| kept.lock().push((code, duration.is_some()))),
        );
        client.send(Request::get("/api/v1/pods").body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(*seen.lock(), [(429, false), (503, false), (200, true)]);
    }
}
