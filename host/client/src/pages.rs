//! Bounds the memory of the pages of lists.
//!
//! The size of a page is a number of objects, and any user of the cluster may create objects of more than a mebibyte that a list has: fifty of
//! them take hundreds of mebibytes once they are parsed. So the memory of a page is estimated while it is read ([`Estimate`]). A page that takes too
//! much is not read to its end, and the list begins again with fewer objects in a page. The pages of all lists share [`PageMemory`]: each may take a
//! little, and a few at a time may take more. What a page takes is free with the next one, or when the list ends ([`Pages::free`]).

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

/// The numbers of objects in a page, one after the other.
const SIZES: [u32; 3] = [50, 8, 1];
/// How long the body of a page may take.
const TIME: Duration = Duration::from_mins(1);

/// How much memory the pages of lists may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLimits {
    /// The bytes that every page may take.
    pub small: usize,
    /// The number of pages that are read at a time.
    pub pages: usize,
    /// The bytes that a large page may take.
    pub large: usize,
    /// The number of large pages that are read at a time. A page of one object may take as much as all of them.
    pub large_pages: u8,
}

impl Default for PageLimits {
    /// At most 192 MiB, estimated. Objects are parsed one by one, so that lists of usual objects take a tenth of that.
    fn default() -> Self {
        Self { small: 1 << 20, pages: 64, large: 64 << 20, large_pages: 2 }
    }
}

/// The memory that the pages of several lists share. Clones share it.
#[derive(Clone, Debug)]
pub struct PageMemory {
    limits: PageLimits,
    pages: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

impl PageMemory {
    /// So much memory.
    pub fn new(limits: PageLimits) -> Self {
        let (pages, large) = (Semaphore::new(limits.pages), Semaphore::new(usize::from(limits.large_pages)));
        Self { limits, pages: Arc::new(pages), large: Arc::new(large) }
    }
}

impl Default for PageMemory {
    fn default() -> Self {
        Self::new(PageLimits::default())
    }
}

/// A page was not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageRefused {
    /// It takes too much memory.
    #[error("a page of the list takes more memory than the controller has for it")]
    TooLarge,
    /// It took too long.
    #[error("a page of the list did not arrive in time")]
    TooSlow,
}

/// The pages of one list after the other.
#[derive(Debug)]
pub struct Pages {
    memory: PageMemory,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The index in [`SIZES`].
    size: usize,
    /// Whether a page was too large since it was asked last.
    is_too_large: bool,
    /// What the last page takes.
    held: Vec<OwnedSemaphorePermit>,
}

impl Pages {
    /// Pages in this memory.
    pub fn new(memory: &PageMemory) -> Self {
        Self { memory: memory.clone(), state: Mutex::default() }
    }

    /// The number of objects in a page.
    pub fn size(&self) -> u32 {
        SIZES.get(self.state.lock().size).copied().unwrap_or(1)
    }

    /// Frees the memory of the last page: its objects are elsewhere.
    pub fn free(&self) {
        self.state.lock().held.clear();
    }

    /// After an error: whether a page was too large, and the list can begin again at once, with fewer objects in a page.
    pub fn shrink(&self) -> bool {
        let mut state = self.state.lock();
        let shrinks = std::mem::take(&mut state.is_too_large) && state.size + 1 < SIZES.len();
        state.size += usize::from(shrinks);
        shrinks
    }

    /// Waits for memory.
    async fn hold(&self, memory: &Arc<Semaphore>, permits: u32) -> Result<(), BoxError> {
        let permit = Arc::clone(memory).acquire_many_owned(permits).await?;
        self.state.lock().held.push(permit);
        Ok(())
    }

    /// Reads the body of a page. It takes large memory at once or not at all, so that no two pages wait for each other.
    async fn read(&self, mut body: Body) -> Result<Bytes, BoxError> {
        let PageMemory { limits, pages, large } = &self.memory;
        let large_pages = if self.size() == 1 { limits.large_pages } else { 1 };
        let most = limits.large.saturating_mul(usize::from(large_pages));
        self.hold(pages, 1).await?;
        let (mut whole, mut estimate) = (BytesMut::new(), Estimate::default());
        let (mut memory, mut is_large, mut time) = (0_usize, false, TIME);
        loop {
            let began = Instant::now();
            let frame = tokio::time::timeout(time, body.frame()).await.map_err(|_| PageRefused::TooSlow)?;
            time = time.saturating_sub(began.elapsed());
            let Some(frame) = frame else { return Ok(whole.freeze()) };
            let Ok(data) = frame?.into_data() else { continue };
            memory = memory.saturating_add(estimate.next(&data));
            if memory > most {
                self.state.lock().is_too_large = true;
                return Err(PageRefused::TooLarge.into());
            }
            if memory > limits.small && !is_large {
                is_large = true;
                self.hold(large, u32::from(large_pages)).await?;
            }
            whole.extend_from_slice(&data);
        }
    }
}

/// A client whose lists are read as these pages. Other requests pass, and so do watches.
pub fn paged(client: &Client, pages: &Arc<Pages>) -> Client {
    let (inner, pages) = (client.clone(), Arc::clone(pages));
    let service = tower::service_fn(move |request: Request<Body>| {
        let (inner, pages) = (inner.clone(), Arc::clone(&pages));
        async move { answer(&inner, request, &pages).await }
    });
    Client::new(service, client.default_namespace())
}

async fn answer(client: &Client, request: Request<Body>, pages: &Pages) -> Result<Response<Body>, BoxError> {
    if !is_page(&request) {
        return Ok(client.send(request).await?);
    }
    pages.free();
    let answer = client.send(request).await?;
    if !answer.status().is_success() {
        return Ok(answer);
    }
    let (head, body) = answer.into_parts();
    let read = pages.read(body).await.inspect_err(|_| pages.free())?;
    Ok(Response::from_parts(head, Body::from(read)))
}

/// Whether a request is for a page of a list.
fn is_page(request: &Request<Body>) -> bool {
    let has = |name: &str| {
        let query = request.uri().query().unwrap_or_default();
        query.split('&').any(|pair| pair.split('=').next() == Some(name))
    };
    request.method() == http::Method::GET && has("limit") && !has("watch")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use chandler_core::causes;

    use super::*;

    const KIB: usize = 1 << 10;
    const LIMITS: PageLimits = PageLimits { small: KIB, pages: 2, large: 64 * KIB, large_pages: 2 };

    /// A server whose answers have so many bytes, of which the estimate is twice as much.
    fn server(bytes: usize) -> Client {
        let service = tower::service_fn(move |_: Request<Body>| async move {
            Ok::<_, Infallible>(Response::new(Body::from(vec![b'1'; bytes])))
        });
        Client::new(service, "default")
    }

    async fn ask(client: &Client, query: &str) -> Result<usize, PageRefused> {
        let request = Request::get(format!("/api/v1/configmaps?{query}")).body(Body::empty()).unwrap();
        match client.send(request).await {
            Ok(response) => Ok(response.into_body().collect_bytes().await.unwrap().len()),
            Err(error) => Err(*causes(&error).find_map(|cause| cause.downcast_ref::<PageRefused>()).unwrap()),
        }
    }

    #[tokio::test]
    async fn a_page_that_is_too_large_is_not_read_and_the_next_ones_have_fewer_objects() {
        let memory = PageMemory::new(LIMITS);
        let pages = Arc::new(Pages::new(&memory));
        let (usual, large, huge) = (10 * KIB, 40 * KIB, 100 * KIB);
        assert_eq!((ask(&paged(&server(usual), &pages), "limit=50").await, pages.shrink()), (Ok(usual), false));
        let client = paged(&server(large), &pages);
        for size in [8, 1] {
            assert_eq!(ask(&client, "limit=50").await, Err(PageRefused::TooLarge));
            assert!(pages.shrink() && !pages.shrink());
            assert_eq!(pages.size(), size);
        }
        assert_eq!(ask(&client, "limit=1").await, Ok(large), "one object may take all");
        assert_eq!(ask(&paged(&server(huge), &pages), "limit=1").await, Err(PageRefused::TooLarge));
        assert!(!pages.shrink(), "there is nothing smaller");
        // Neither a watch nor another request is a page.
        for query in ["limit=50&watch=true", "watch=1", "labelSelector=limit"] {
            assert_eq!(ask(&paged(&server(huge), &pages), query).await, Ok(huge), "{query}");
        }
    }

    #[tokio::test]
    async fn the_pages_of_all_lists_share_memory_until_they_are_free() {
        let memory = PageMemory::new(LIMITS);
        let lists: Vec<Arc<Pages>> = (0..3).map(|_| Arc::new(Pages::new(&memory))).collect();
        let ask_large = |list: usize| {
            let client = paged(&server(10 * KIB), &lists[list]);
            async move { ask(&client, "limit=50").await }
        };
        assert_eq!((ask_large(0).await, ask_large(1).await), (Ok(10 * KIB), Ok(10 * KIB)));
        let waiting = tokio::spawn(ask_large(2));
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!waiting.is_finished());
        lists[1].free();
        assert_eq!(waiting.await.unwrap(), Ok(10 * KIB));
        // The next page of a list takes the place of its last one.
        assert_eq!(ask_large(0).await, Ok(10 * KIB));
        for list in &lists {
            list.free();
        }
        assert_eq!((memory.pages.available_permits(), memory.large.available_permits()), (2, 2));
    }
}
