//! Bounds what an untrusted API server may answer: how many bytes, how much memory they take once they are parsed, and for how long.
//!
//! A server that another user names may send answers without end, or one byte now and then. All answers of one piece of work share an
//! [`Allowance`]; a request that finds it spent fails, and so the work ends. Answers are read whole: such a client cannot watch.
//!
//! Parsed JSON takes about ten times its bytes, and `[0],[0],` takes sixty times as much. So the memory is estimated from the structure while
//! an answer is read ([`Estimate`]). The work of all servers shares [`AnswerMemory`], beyond a small part that each has for itself; an answer
//! waits for what others use.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::BoxError;

use crate::estimate::Estimate;

/// The unit of [`AnswerMemory`], in bytes.
const UNIT: usize = 64 << 10;

/// The memory that the parsed answers of all untrusted servers share. Clones share it.
#[derive(Clone, Debug)]
pub struct AnswerMemory(Arc<Semaphore>);

impl AnswerMemory {
    /// So many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT)))
    }
}

/// What one piece of work may receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerLimits {
    /// The bytes of all answers.
    pub bytes: usize,
    /// The memory that all answers take once they are parsed, in bytes, as [`Estimate`] estimates it.
    pub memory: usize,
    /// How much of that memory the work has for itself; the rest is from [`AnswerMemory`].
    pub own: usize,
}

/// What the server may still answer.
#[derive(Debug)]
pub struct Allowance {
    shared: AnswerMemory,
    left: Mutex<Left>,
}

#[derive(Debug, Default)]
struct Left {
    limits: AnswerLimits,
    /// `None` before anything was allowed.
    until: Option<Instant>,
    /// The shared memory that the work has.
    held: Option<OwnedSemaphorePermit>,
    /// How many bytes of it no answer needed yet: it is taken in units, and small answers need less than one.
    spare: usize,
}

/// The server used up what it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowanceSpent {
    /// It sent too much, or data that takes too much memory.
    #[error("the server sent more data than the controller reads at a time")]
    Bytes,
    /// It took too long.
    #[error("the server did not answer in time")]
    Time,
}

impl Allowance {
    /// An allowance that is spent until it is renewed.
    pub fn new(shared: &AnswerMemory) -> Self {
        Self { shared: shared.clone(), left: Mutex::default() }
    }

    /// Begins a piece of work, whose answers have these limits together and come in this time. The memory of the work before it is free again.
    pub fn renew(&self, limits: AnswerLimits, time: Duration) {
        *self.left.lock() = Left { limits, until: Instant::now().checked_add(time), held: None, spare: 0 };
    }

    /// Ends the piece of work: the memory that it shared is free again.
    pub fn end(&self) {
        let mut left = self.left.lock();
        (left.held, left.spare) = (None, 0);
    }

    fn time_left(&self) -> Result<Duration, AllowanceSpent> {
        let until = self.left.lock().until.ok_or(AllowanceSpent::Time)?;
        until.checked_duration_since(Instant::now()).ok_or(AllowanceSpent::Time)
    }

    /// Takes so many bytes of an answer, and the memory for them. Returns how much of the memory is neither from the part of the work itself nor
    /// from the shared memory that it has already.
    fn take(&self, bytes: usize, memory: usize) -> Result<usize, AllowanceSpent> {
        let left = &mut *self.left.lock();
        let limits = &mut left.limits;
        limits.bytes = limits.bytes.checked_sub(bytes).ok_or(AllowanceSpent::Bytes)?;
        limits.memory = limits.memory.checked_sub(memory).ok_or(AllowanceSpent::Bytes)?;
        let own = limits.own.min(memory);
        limits.own -= own;
        let shared = memory - own;
        let reused = left.spare.min(shared);
        left.spare -= reused;
        Ok(shared - reused)
    }

    /// Waits for shared memory. Later answers of the same work use the rest of the last unit.
    async fn share(&self, bytes: usize) -> Result<(), AllowanceSpent> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).map_err(|_| AllowanceSpent::Bytes)?;
        let permit = Arc::clone(&self.shared.0).acquire_many_owned(units).await.map_err(|_| AllowanceSpent::Time)?;
        let mut left = self.left.lock();
        match &mut left.held {
            Some(held) => held.merge(permit),
            held => *held = Some(permit),
        }
        left.spare += bytes.next_multiple_of(UNIT) - bytes;
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
    let (mut whole, mut estimate) = (BytesMut::new(), Estimate::default());
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            let shared = allowance.take(data.len(), estimate.next(&data))?;
            if shared > 0 {
                allowance.share(shared).await?;
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok(Response::from_parts(head, Body::from(Bytes::from(whole))))
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use chandler_core::causes;
    use http_body_util::StreamBody;
    use hyper::body::Frame;

    use super::*;

    const EACH: Duration = Duration::from_mins(1);
    const MIB: usize = 1 << 20;

    fn allowance() -> Arc<Allowance> {
        Arc::new(Allowance::new(&AnswerMemory::new(MIB)))
    }

    fn bytes(bytes: usize) -> AnswerLimits {
        AnswerLimits { bytes, memory: MIB, own: MIB }
    }

    /// A server that answers this, in pieces.
    fn answering(text: String) -> Client {
        let pieces: Vec<Bytes> = text.into_bytes().chunks(7777).map(Bytes::copy_from_slice).collect();
        let service = tower::service_fn(move |_: Request<Body>| {
            let frames = pieces.clone().into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
            let body = StreamBody::new(futures::stream::iter(frames));
            async move { Ok::<_, Infallible>(Response::new(body)) }
        });
        Client::new(service, "default")
    }

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
        let allowance = allowance();
        let client = bounded(&server(10), &allowance, EACH);
        assert_eq!(ask(&client).await, Err(AllowanceSpent::Time), "nothing was allowed");
        allowance.renew(bytes(25), EACH);
        assert_eq!((ask(&client).await, ask(&client).await), (Ok(10), Ok(10)));
        assert_eq!(ask(&client).await, Err(AllowanceSpent::Bytes));
        allowance.renew(bytes(25), EACH);
        assert_eq!(ask(&client).await, Ok(10));
        allowance.renew(bytes(25), Duration::ZERO);
        assert_eq!(ask(&client).await, Err(AllowanceSpent::Time));
    }

    #[tokio::test]
    async fn an_answer_that_takes_much_memory_is_not_read_to_its_end() {
        let limits = AnswerLimits { bytes: 32 * MIB, memory: 256 * MIB, own: 256 * MIB };
        let object = r#"{"kind":"ConfigMap","metadata":{"name":"tides","labels":{"app":"harbour"}},"data":{"high":"noon and midnight"}},"#;
        let usual = format!("{{\"items\":[{}null]}}", object.repeat(4 * MIB / object.len()));
        for (text, expected) in [
            (format!("{{\"x\":[{}0]}}", "[0],".repeat(2 * MIB)), Err(AllowanceSpent::Bytes)),
            (format!("[{}0]", "{\"\":0},".repeat(MIB)), Err(AllowanceSpent::Bytes)),
            (usual.clone(), Ok(usual.len())),
            ("x".repeat(8 * MIB), Ok(8 * MIB)),
        ] {
            let allowance = allowance();
            let client = bounded(&answering(text), &allowance, EACH);
            allowance.renew(limits, EACH);
            assert_eq!(ask(&client).await, expected);
        }
    }

    #[tokio::test]
    async fn small_answers_share_a_unit_of_memory() {
        let shared = AnswerMemory::new(2 * UNIT);
        let allowance = Arc::new(Allowance::new(&shared));
        allowance.renew(AnswerLimits { bytes: MIB, memory: MIB, own: 0 }, EACH);
        let client = bounded(&server(10), &allowance, EACH);
        for _ in 0..100 {
            assert_eq!(ask(&client).await, Ok(10));
        }
        assert_eq!(shared.0.available_permits(), 1);
        allowance.end();
        assert_eq!(shared.0.available_permits(), 2);
    }

    #[tokio::test]
    async fn the_answers_of_all_servers_share_memory() {
        let shared = AnswerMemory::new(MIB);
        let limits = AnswerLimits { bytes: 32 * MIB, memory: 32 * MIB, own: 64 << 10 };
        let with = |text: String, each| {
            let allowance = Arc::new(Allowance::new(&shared));
            allowance.renew(limits, EACH);
            (bounded(&answering(text), &allowance, each), allowance)
        };
        let (large, small) = ("1".repeat(400 << 10), "1".repeat(16 << 10));
        let (first, held) = with(large.clone(), EACH);
        assert_eq!(ask(&first).await, Ok(large.len()));
        let (second, waiting) = with(large.clone(), Duration::from_millis(1));
        assert_eq!(ask(&second).await, Err(AllowanceSpent::Time), "it waits for the first one");
        let (third, _) = with(small.clone(), EACH);
        assert_eq!(ask(&third).await, Ok(small.len()), "each has some memory for itself");
        waiting.end();
        held.end();
        let (fourth, last) = with(large.clone(), EACH);
        assert_eq!(ask(&fourth).await, Ok(large.len()));
        last.end();
        assert_eq!(shared.0.available_permits(), MIB / UNIT);
    }

    #[tokio::test]
    async fn a_server_that_never_answers_ends_with_the_request() {
        let service = tower::service_fn(|_: Request<Body>| pending::<Result<Response<Body>, Infallible>>());
        let allowance = allowance();
        allowance.renew(bytes(1000), EACH);
        let client = bounded(&Client::new(service, "default"), &allowance, Duration::from_millis(1));
        assert_eq!(ask(&client).await, Err(AllowanceSpent::Time));
    }
}
