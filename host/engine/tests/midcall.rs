//! Events during a call: a dropped provisioner, and all slots taken.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as well")]

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use chandler_core::{Content, Digest, Entry, MemoryContent, ReadError, Reason};
use chandler_engine::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{content, engine, engine_for_two, plugin};

/// Content that reports when the guest reads it, and then blocks until the test opens the gate.
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
        // Stays open once the sender is dropped.
        let _ = self.open.lock().unwrap().recv();
        self.inner.read(path, offset, length)
    }
}

/// A distinct component with the behaviour of the hostile guest.
fn distinct_hostile(number: u8) -> Vec<u8> {
    let mut wasm = plugin("test/hostile.wasm");
    wasm.extend([0, 3, 1, b'x', number]);
    wasm
}

/// Deleting a class drops its provisioner and, at shutdown, the engine. A call in progress still completes.
#[tokio::test]
async fn a_call_completes_although_its_provisioner_is_dropped() {
    for (behaviour, want) in [("hostile+v0", Ok(Some("hostile+v0".to_owned()))), ("panic", Err(Reason::PluginTrapped))]
    {
        let engine = engine();
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

/// While every slot is taken by a spinning guest, timers, tasks and connections of the host still run, as needed to
/// renew a lease.
#[tokio::test]
async fn the_host_runs_while_spinning_guests_take_every_slot() {
    let engine = engine_for_two();
    let limits = Limits { time: Duration::from_mins(10), ..Limits::default() };
    let mut spinning = Vec::new();
    for number in 0..2 {
        let provisioner = engine.load(&distinct_hostile(number)).await.unwrap();
        let (content, mut is_in, opener) = Gate::closed("spin");
        let limits = limits.clone();
        spinning.push(tokio::spawn(async move { provisioner.detect(content, &limits).await }));
        is_in.recv().await.unwrap();
        drop(opener);
    }
    // No slot is left: a third component must wait.
    let third = engine.load(&distinct_hostile(2)).await.unwrap();
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
    assert!(spinning.iter().all(|call| !call.is_finished()) && !waiting.is_finished(), "a call ended early");
    spinning.iter().for_each(tokio::task::JoinHandle::abort);
    serve.abort();
    // Their slots are free again.
    assert_eq!(waiting.await.unwrap().unwrap(), None);
}

/// Counted in calls: two components that use up their time in each of many calls, and a third one.
#[tokio::test]
async fn looping_components_leave_a_turn_to_a_third_one() {
    const CALLS: usize = 20;
    let engine = engine_for_two();
    let limits = Limits { time: Duration::from_millis(50), ..Limits::default() };
    let (ended, mut ends) = tokio::sync::mpsc::unbounded_channel();
    // All are loaded before the first call, since calls end while a component is compiled.
    let mut provisioners = Vec::new();
    for number in 0..2 {
        provisioners.push(engine.load(&distinct_hostile(number)).await.unwrap());
    }
    let third = engine.load(&distinct_hostile(2)).await.unwrap();
    for provisioner in &provisioners {
        for _ in 0..CALLS {
            let (provisioner, limits, ended) = (provisioner.clone(), limits.clone(), ended.clone());
            tokio::spawn(async move {
                let result = provisioner.detect(content([("detect", "spin")]), &limits).await;
                ended.send(result.is_ok()).unwrap();
            });
        }
    }
    tokio::spawn(async move { ended.send(third.detect(content([]), &Limits::default()).await.is_ok()) });
    let mut before = 0;
    while ends.recv().await == Some(false) {
        before += 1;
    }
    // Those that began before it, one of each component in turn, and those that end while it runs.
    assert!(before < CALLS, "{before} calls of others ended before the third component had its turn");
}
