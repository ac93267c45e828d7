//! A client whose requests are spans of the trace of their caller.

use http::{HeaderMap, Request};
use kube::{Client, client::Body};
use tracing::{Instrument as _, field::Empty};

use crate::RequestAttributes;

/// A client whose requests each have a span, and the headers that `inject` adds in it, such as `traceparent`. The span has the verb and the
/// resource of the request, and neither its URL nor its body.
pub fn traced(client: &Client, inject: fn(&mut HeaderMap)) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let RequestAttributes { verb, is_dry_run, namespace, resource, subresource } = RequestAttributes::of(&request);
        let span = tracing::info_span!(
            target: "chandler::trace",
            "request",
            otel.kind = "client",
            otel.name = %format_args!("{verb} {resource}"),
            verb,
            resource,
            subresource,
            namespace,
            dry_run = is_dry_run,
            http.response.status_code = Empty,
            otel.status_code = Empty,
        );
        span.in_scope(|| inject(request.headers_mut()));
        let (inner, current) = (inner.clone(), span.clone());
        let sent = async move {
            let answer = inner.send(request).await;
            match &answer {
                Ok(response) => current.record("http.response.status_code", response.status().as_u16()),
                Err(_) => current.record("otel.status_code", "ERROR"),
            };
            answer
        };
        sent.instrument(span)
    });
    Client::new(service, client.default_namespace())
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use http::{HeaderValue, Response};
    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn each_request_has_the_headers_that_are_injected() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let service = tower::service_fn(move |request: Request<Body>| {
            kept.lock().push(request.headers().get("traceparent").cloned());
            async { Ok::<_, Infallible>(Response::new(Body::empty())) }
        });
        let client = Client::new(service, "default");
        let inject = |headers: &mut HeaderMap| drop(headers.insert("traceparent", HeaderValue::from_static("00")));
        for client in [traced(&client, inject), traced(&client, |_| {})] {
            client.send(Request::get("/api/v1/namespaces/a").body(Body::empty()).unwrap()).await.unwrap();
        }
        assert_eq!(*seen.lock(), [Some(HeaderValue::from_static("00")), None]);
    }
}
