//! Bounds what an untrusted API server may answer: how many bytes, and for how long.
//!
//! A server that another user names may send answers without end, or one byte now and then. All answers of one piece of work share an
//! [`Allowance`]; a request that finds it spent fails, and so the work ends. Answers are read whole: such a client cannot watch.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tower::BoxError;

/// What the server may still answer.
#[derive(Debug, Default)]
pub struct Allowance(Mutex<Left>);

#[derive(Clone, Copy, Debug, Default)]
struct Left {
    bytes: usize,
    /// `None` before anything was allowed.
    until: Option<Instant>,
}

/// The server used up what it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowanceSpent {
    /// It sent too much.
    #[error("the server sent more data than the controller reads at a time")]
    Bytes,
    /// It took too long.
    #[error("the server did not answer in time")]
    Time,
}

impl Allowance {
    /// Begins a piece of work, whose answers have so many bytes together and come in this time.
    pub fn renew(&self, bytes: usize, time: Duration) {
        *self.0.lock() = Left { bytes, until: Instant::now().checked_add(time) };
    }

    fn time_left(&self) -> Result<Duration, AllowanceSpent> {
        let until = self.0.lock().until.ok_or(AllowanceSpent::Time)?;
        until.checked_duration_since(Instant::now()).ok_or(AllowanceSpent::Time)
    }

    fn take(&self, bytes: usize) -> Result<(), AllowanceSpent> {
        let mut left = self.0.lock();
        left.bytes = left.bytes.checked_sub(bytes).ok_or(AllowanceSpent::Bytes)?;
        Ok(())
    }
}

/// A client whose requests take at most this time each, and whose answers share an allowance.
pub fn bounded(client: &Client, allowance: &Arc<Allowance>, each: Duration) -> Client {
    let (inner, allowance) = (client.clone(), Arc::clone(allowance));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, allowance) = (inner.clone(), Arc::clone(&allowance));
        async move {
            let time = allowance.time_left()?.min(each);
            let answer = tokio::time::timeout(time, answer(&inner, request, &allowance)).await;
            answer.map_err(|_| BoxError::from(AllowanceSpent::Time))?
        }
    });
    Client::new(service, client.default_namespace())
}

async fn answer(client: &Client, request: Request<Body>, allowance: &Allowance) -> Result<Response<Body>, BoxError> {
    let (head, mut body) = client.send(request).await?.into_parts();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            allowance.take(data.len())?;
            whole.extend_from_slice(&data);
        }
    }
    Ok(Response::from_parts(head, Body::from(Bytes::from(whole))))
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use chandler_core::causes;

    use super::*;

    const EACH: Duration = Duration::from_mins(1);

    /// A server whose answers have so many bytes.
    fn server(bytes: usize) -> Client {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            Ok::<_, Infallible>(Response::new(Body::from(vec![b'1'; bytes])))
        });
        Client::new(service, "default")
    }

    async fn ask(client: &Client) -> Result<usize, AllowanceSpent> {
        let request = Request::get("/version").body(Body::empty()).unwrap();
        match client.send(request).await {
            Ok(response) => Ok(response.into_body().collect_bytes().await.unwrap().len()),
            Err(error) => Err(*causes(&error).find_map(|cause| cause.downcast_ref::<AllowanceSpent>()).unwrap()),
        }
    }

    #[tokio::test]
    async fn the_answers_of_one_piece_of_work_share_an_allowance() {
        let allowance = Arc::<Allowance>::default();
        let client = bounded(&server(10), &allowance, EACH);
        assert_eq!(ask(&client).await, Err(AllowanceSpent::Time), "nothing was allowed");
        allowance.renew(25, EACH);
        assert_eq!((ask(&client).await, ask(&client).await), (Ok(10), Ok(10)));
        assert_eq!(ask(&client).await, Err(AllowanceSpent::Bytes));
        allowance.renew(25, EACH);
        assert_eq!(ask(&client).await, Ok(10));
        allowance.renew(25, Duration::ZERO);
        assert_eq!(ask(&client).await, Err(AllowanceSpent::Time));
    }

    #[tokio::test]
    async fn a_server_that_never_answers_ends_with_the_request() {
        let service = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
        let allowance = Arc::<Allowance>::default();
        allowance.renew(1000, EACH);
        let client = bounded(&Client::new(service, "default"), &allowance, Duration::from_millis(1));
        assert_eq!(ask(&client).await, Err(AllowanceSpent::Time));
    }
}
