//! What happens around guests that are in the middle of a call.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as well")]

mod support;

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use chandler_core::{Content, Digest, Entry, MemoryContent, ReadError, Reason};
use chandler_engine::{Engine, EngineOptions, Limits};
use support::{content, plugin};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Content that tells when a guest reads it, and waits then until it may go on.
struct Gate {
    inner: MemoryContent,
    entered: tokio::sync::mpsc::UnboundedSender<()>,
    open: Mutex<Receiver<()>>,
}

impl Gate {
    fn closed(behaviour: &str) -> (Arc<dyn Content>, tokio::sync::mpsc::UnboundedReceiver<()>, Sender<()>) {
        let (entered, is_in) = tokio::sync::mpsc::unbounded_channel();
        let (opener, open) = channel();
        let inner = MemoryContent::new([("detect", behaviour)]);
        (Arc::new(Self { inner, entered, open: Mutex::new(open) }), is_in, opener)
    }
}

impl Content for Gate {
    fn digest(&self) -> &Digest {
        self.inner.digest()
    }

    fn total_bytes(&self) -> u64 {
        self.inner.total_bytes()
    }

    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry> {
        self.inner.entries(prefix, after, limit)
    }

    fn read(&self, path: &str, offset: u64, length: usize) -> Result<Vec<u8>, ReadError> {
        let _ = self.entered.send(());
        // Open for good once whoever opens it is gone.
        let _ = self.open.lock().unwrap().recv();
        self.inner.read(path, offset, length)
    }
}

/// The guest that misbehaves on demand, as another component.
fn another(number: u8) -> Vec<u8> {
    let mut wasm = plugin("test/hostile.wasm");
    wasm.extend([0, 3, 1, b'x', number]);
    wasm
}

/// A class that is deleted takes its provisioner and, at the end of the process, the engine with it. A call under way ends as
/// it would have.
#[tokio::test]
async fn a_provisioner_that_is_dropped_in_the_middle_of_a_call_finishes_it() {
    for (behaviour, want) in [("hostile+v0", Ok(Some("hostile+v0".to_owned()))), ("panic", Err(Reason::PluginTrapped))]
    {
        let engine = Engine::new(EngineOptions::default()).unwrap();
        let provisioner = engine.load(&plugin("test/hostile.wasm")).await.unwrap();
        let (content, mut is_in, opener) = Gate::closed(behaviour);
        let called = provisioner.clone();
        let limits = Limits { time: Duration::from_mins(10), ..Limits::default() };
        let call = tokio::spawn(async move { called.detect(content, &limits).await });
        is_in.recv().await.unwrap();
        drop(provisioner);
        drop(engine);
        drop(opener);
        let result = call.await.unwrap();
        assert_eq!(result.map_err(|error| error.reason()), want);
    }
}

/// Every slot of the engine is taken by a guest that spins: timers, tasks and connections of the host go on, which is what
/// renewing a lease takes.
#[tokio::test]
async fn the_host_works_while_every_slot_is_taken_by_a_guest_that_spins() {
    let engine = Engine::new(EngineOptions { concurrency: 2, ..EngineOptions::default() }).unwrap();
    let limits = Limits { time: Duration::from_mins(10), ..Limits::default() };
    let mut spinning = Vec::new();
    for number in 0..2 {
        let provisioner = engine.load(&another(number)).await.unwrap();
        let (content, mut is_in, opener) = Gate::closed("spin");
        let limits = limits.clone();
        spinning.push(tokio::spawn(async move { provisioner.detect(content, &limits).await }));
        is_in.recv().await.unwrap();
        drop(opener);
    }
    // No slot is left: a third component waits, whoever it is.
    let third = engine.load(&another(2)).await.unwrap();
    let waiting = {
        let limits = limits.clone();
        tokio::spawn(async move { third.detect(content([]), &limits).await })
    };
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap();
    let serve = tokio::spawn(async move {
        loop {
            let (mut connection, _) = server.accept().await.unwrap();
            connection.write_all(b"renewed").await.unwrap();
        }
    });
    for _ in 0..100 {
        let mut connection = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "renewed");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(spinning.iter().all(|call| !call.is_finished()) && !waiting.is_finished(), "they all still spin or wait");
    spinning.iter().for_each(tokio::task::JoinHandle::abort);
    serve.abort();
    // What they held is free again.
    assert_eq!(waiting.await.unwrap().unwrap(), None);
}
