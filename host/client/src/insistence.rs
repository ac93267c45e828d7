//! Sends a write again that met another one, where it does not depend on what was read.
//!
//! The API server tries a patch without a resource version several times before it answers with a conflict, and answers a creation with one
//! where a quota was counted meanwhile. Such a write succeeds a moment later. Without this, a whole reconcile would begin again after a
//! pause that doubles each time, although most of its writes have succeeded.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body, core::Status};
use memchr::memmem;

/// How often a write is sent.
const TRIES: usize = 5;
/// A write with this field is meant for one version of the object.
const VERSION: &[u8] = b"\"resourceVersion\"";

/// A client whose creations and patches are sent again after a conflict, unless they name a version of the object.
pub fn insistent(client: &Client) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            if !matches!(*request.method(), Method::POST | Method::PATCH) {
                return inner.send(request).await;
            }
            let (parts, body) = request.into_parts();
            let bytes = body.collect_bytes().await?;
            let is_conditional = memmem::find(&bytes, VERSION).is_some();
            let mut tries = 0;
            loop {
                tries += 1;
                let response = inner.send(Request::from_parts(parts.clone(), Body::from(bytes.clone()))).await?;
                if is_conditional || tries == TRIES || response.status() != StatusCode::CONFLICT {
                    return Ok(response);
                }
                let (head, body) = response.into_parts();
                let answer = body.collect_bytes().await?;
                if !passes(&answer) {
                    return Ok(Response::from_parts(head, Body::from(answer)));
                }
            }
        }
    });
    Client::new(service, client.default_namespace())
}

/// Whether a conflict is over when it is answered. An object that exists, another manager of a field and another UID stay.
fn passes(answer: &Bytes) -> bool {
    let Ok(Status { reason, message, details, .. }) = serde_json::from_slice(answer) else { return false };
    let is_about_fields =
        details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "FieldManagerConflict"));
    reason == "Conflict" && !is_about_fields && !message.contains("Precondition failed")
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

    use serde_json::{Value, json};

    use super::*;

    /// How often a write is sent to a server that answers like this, and then accepts it, and the status that its sender sees.
    async fn sent(method: Method, body: &Value, conflicts: usize, conflict: Value) -> (usize, StatusCode) {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let expected = body.to_string();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (number, conflict, expected) =
                (counted.fetch_add(1, Ordering::Relaxed), conflict.to_string(), expected.clone());
            async move {
                assert_eq!(request.into_body().collect_bytes().await.unwrap(), expected, "the whole body each time");
                let (status, body) = if number < conflicts {
                    (StatusCode::CONFLICT, conflict)
                } else {
                    (StatusCode::OK, "{}".to_owned())
                };
                Ok::<_, Infallible>(Response::builder().status(status).body(Body::from(body.into_bytes())).unwrap())
            }
        });
        let client = insistent(&Client::new(service, "default"));
        let request =
            Request::builder().method(method).uri("/").body(Body::from(body.to_string().into_bytes())).unwrap();
        let status = client.send(request).await.unwrap().status();
        (count.load(Ordering::Relaxed), status)
    }

    #[tokio::test]
    async fn a_write_of_any_version_is_sent_again_after_a_conflict() {
        let (body, conflict) =
            (json!({"metadata": {"uid": "1"}}), || json!({"reason": "Conflict", "message": "modified"}));
        for method in [Method::POST, Method::PATCH] {
            assert_eq!(sent(method.clone(), &body, 2, conflict()).await, (3, StatusCode::OK));
            assert_eq!(sent(method, &body, 9, conflict()).await, (TRIES, StatusCode::CONFLICT));
        }
        for method in [Method::PUT, Method::DELETE] {
            assert_eq!(sent(method, &body, 2, conflict()).await, (1, StatusCode::CONFLICT), "it names a version");
        }
        let versioned = json!({"metadata": {"resourceVersion": "7"}});
        assert_eq!(sent(Method::PATCH, &versioned, 2, conflict()).await, (1, StatusCode::CONFLICT));
    }

    #[tokio::test]
    async fn a_conflict_that_stays_is_answered_at_once() {
        let fields = json!({"causes": [{"reason": "FieldManagerConflict"}]});
        for conflict in [
            json!({"reason": "AlreadyExists"}),
            json!({"reason": "Conflict", "details": fields}),
            json!({"reason": "Conflict", "message": "Precondition failed: UID in precondition: 1, UID in object meta: 2"}),
            json!("of a proxy"),
        ] {
            let answer = sent(Method::PATCH, &json!({}), 2, conflict.clone()).await;
            assert_eq!(answer, (1, StatusCode::CONFLICT), "{conflict}");
        }
    }
}
