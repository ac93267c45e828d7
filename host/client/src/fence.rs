//! Holds the writes of a client back while a deadline has passed.
//!
//! A leader whose Lease is not renewed may have a successor, although it does not know. So its writes wait until it has renewed the Lease.
//!
//! A process that was stopped for longer than its Lease, and then continues, finds writes that passed before: they are given up before
//! another byte of them is sent. The API server has no condition on a Lease for writes of other objects; what had left this process counts.

use std::{future::poll_fn, io, pin::pin, task::Poll};

use http::{Method, Request, Response};
use kube::{Client, client::Body};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// Moves the deadline of a [`Fence`]. When it is dropped, the writes wait forever.
#[derive(Debug)]
pub struct FenceKeeper(watch::Sender<Instant>);

/// Lets writes pass until a deadline. Clones share it.
#[derive(Clone, Debug)]
pub struct Fence(watch::Receiver<Instant>);

impl FenceKeeper {
    /// A fence that lets writes pass until this time.
    pub fn new(until: Instant) -> (Self, Fence) {
        let (keeper, fence) = watch::channel(until);
        (Self(keeper), Fence(fence))
    }

    /// Lets writes pass until this time.
    pub fn open_until(&self, until: Instant) {
        self.0.send_replace(until);
    }
}

impl Fence {
    /// Completes while writes may pass.
    async fn passed(&self) {
        let mut until = self.0.clone();
        let open = until.wait_for(|until| Instant::now() < *until).await.is_ok();
        if !open {
            std::future::pending::<()>().await;
        }
    }

    fn is_closed(&self) -> bool {
        Instant::now() >= *self.0.borrow()
    }

    /// Completes a write, unless the deadline passes first. The clock is read before the write gets on each time: after a pause of the process, a
    /// timer may be late.
    async fn while_open(
        &self,
        write: impl Future<Output = kube::Result<Response<Body>>>,
    ) -> kube::Result<Response<Body>> {
        let (mut write, mut closed) = (pin!(write), pin!(self.closed()));
        poll_fn(|context| {
            if self.is_closed() || closed.as_mut().poll(context).is_ready() {
                let text =
                    "the Lease was not renewed in time: the write was given up, and is tried again after its renewal";
                return Poll::Ready(Err(kube::Error::Service(io::Error::new(io::ErrorKind::TimedOut, text).into())));
            }
            write.as_mut().poll(context)
        })
        .await
    }

    /// Completes when the deadline has passed. A fence whose keeper is dropped counts as such at its deadline.
    pub async fn closed(&self) {
        loop {
            let until = *self.0.borrow();
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }
}

/// A client whose writes wait for the fence. Reads do not.
pub fn fenced(client: &Client, fence: Fence) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, fence) = (inner.clone(), fence.clone());
        async move {
            if matches!(*request.method(), Method::GET | Method::HEAD) {
                return inner.send(request).await;
            }
            fence.passed().await;
            fence.while_open(inner.send(request)).await
        }
    });
    Client::new(service, client.default_namespace())
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
        time::Duration,
    };

    use futures::{FutureExt as _, poll};

    use super::*;

    fn client(fence: Fence) -> Client {
        let service = tower::service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::empty())) });
        fenced(&Client::new(service, "default"), fence)
    }

    fn request(method: Method) -> Request<Body> {
        Request::builder().method(method).uri("/").body(Body::empty()).unwrap()
    }

    const HOUR: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn writes_wait_while_the_deadline_has_passed_and_reads_do_not() {
        let (keeper, fence) = FenceKeeper::new(Instant::now() + HOUR);
        let client = client(fence.clone());
        assert!(client.send(request(Method::PATCH)).await.is_ok(), "before the deadline");
        assert!(fence.closed().now_or_never().is_none());
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            keeper.open_until(Instant::now());
            fence.closed().await;
            assert!(client.send(request(Method::GET)).await.is_ok(), "a read");
            let mut write = pin!(client.send(request(method.clone())));
            assert!(poll!(&mut write).is_pending(), "{method}");
            keeper.open_until(Instant::now() + HOUR);
            assert!(write.await.is_ok(), "{method}");
        }
    }

    #[tokio::test]
    async fn a_write_that_passed_before_the_deadline_gets_on_no_further() {
        let sent = Arc::new(AtomicUsize::new(0));
        let (keeper, fence) = FenceKeeper::new(Instant::now() + HOUR);
        // Half of the request is sent, and the connection takes no more for now.
        let polls = Arc::clone(&sent);
        let service = tower::service_fn(move |_: Request<Body>| {
            let polls = Arc::clone(&polls);
            poll_fn(move |_| {
                polls.fetch_add(1, Ordering::Relaxed);
                Poll::<Result<Response<Body>, Infallible>>::Pending
            })
        });
        let client = fenced(&Client::new(service, "default"), fence);
        let mut write = pin!(client.send(request(Method::PATCH)));
        // The client hands requests to a task of its own.
        while sent.load(Ordering::Relaxed) == 0 {
            assert!(poll!(&mut write).is_pending());
            tokio::task::yield_now().await;
        }
        let before = sent.load(Ordering::Relaxed);
        keeper.open_until(Instant::now());
        let Err(error) = write.await else { panic!("it was answered") };
        assert!(error.to_string().contains("Lease"), "{error}");
        assert_eq!(sent.load(Ordering::Relaxed), before);
    }

    #[tokio::test]
    async fn without_a_keeper_no_write_passes_after_the_deadline() {
        let (keeper, fence) = FenceKeeper::new(Instant::now());
        drop(keeper);
        fence.closed().await;
        let client = client(fence);
        assert!(poll!(pin!(client.send(request(Method::POST)))).is_pending());
    }
}
