//! A client that can parse every response, however deeply an object in it is nested.

use chandler_core::nesting::Shallow;
use http::{HeaderMap, Request, header::CONTENT_TYPE};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};

/// A client that replaces values that are nested too deeply, over the connections and with the credentials of another client.
/// Otherwise one such object would prevent all objects of its kind from being read.
pub fn readable(client: &Client) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let answer = inner.send(request).await?;
            let mut shallow = is_json(answer.headers()).then(Shallow::default);
            Ok::<_, kube::Error>(answer.map(|body| {
                body.map_frame(move |frame| {
                    frame.map_data(|piece| match shallow.as_mut().and_then(|shallow| shallow.next(&piece)) {
                        Some(changed) => changed.into(),
                        None => piece,
                    })
                })
            }))
        }
    });
    Client::new(service, client.default_namespace())
}

fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}
