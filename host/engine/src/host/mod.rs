//! The interfaces that a guest can call: bundle, request, output and log of the contract, and an empty WASI 0.2.

mod content;
mod description;
mod findings;
mod log;
mod memory;
mod output;
mod request;
mod wasi;

use std::{sync::Arc, time::Duration};

use chandler_core::{Content, Digest};
use parking_lot::Mutex;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

pub(crate) use self::{
    content::Reader,
    findings::diagnostics,
    log::Recorder,
    memory::{Denied, Memory},
    output::{Output, Violation},
    request::{Asked, Requested},
};
use crate::{Limits, threads::Slot};

/// The representation of the `bundle` resource. All handles refer to the one bundle of the call, so no state is kept
/// per handle; wasmtime limits how many a guest holds.
#[expect(unreachable_pub, reason = "the generated bindings name it")]
pub struct Bundle;

/// A failure of the host during a call. It passes through the guest as the cause of a trap.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Fault {
    /// The machine had no time for the guest.
    #[error("the guest got {used:?} of the processor in {wall:?}")]
    Starved {
        /// What the guest used.
        used: Duration,
        /// The wall time that passed.
        wall: Duration,
    },
    /// The guest used up its time.
    #[error("the time limit has passed")]
    TimedOut,
    /// The guest called a function of secure randomness, which provisioners do not have.
    #[error(
        "it called wasi:random/random, but provisioners have no secure randomness: all users of the bundle get the same \
         output, so a secret in it would not be secret. Let Chandler generate secrets: see the annotation \
         secrets.chandler.dev/generate in docs/generated-secrets.md. To seed hash tables, use wasi:random/insecure-seed"
    )]
    SecureRandomness,
    /// The guest called an optional function that this host lacks.
    #[error(
        "it called {0}, which this host does not provide: a provisioner that declares a function as optional must query \
         request.supports before it calls the function; upgrade Chandler, or fix the provisioner"
    )]
    NotProvided(String),
    /// The bundle could not be read.
    #[error("failed to read the content of the bundle: {0}")]
    Content(String),
}

/// Identifies the provisioner in logs and in the seed of randomness.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) digest: Digest,
}

/// The state of one call.
pub(crate) struct State {
    pub(crate) reader: Reader,
    pub(crate) output: Output,
    pub(crate) memory: Memory,
    pub(crate) log: SharedRecorder,
    /// The request of `provision`. Without a request the guest cannot emit anything.
    pub(crate) request: Option<Requested>,
    /// The facts that the guest reads.
    pub(crate) asked: Asked,
    /// Whether the guest returned a schema of the configuration.
    pub(crate) has_schema: bool,
    /// The slot of this call; work that outlives the call holds it too.
    pub(crate) slot: Option<Arc<Slot>>,
    table: ResourceTable,
    wasi: WasiCtx,
}

/// The recorder, shared with the standard streams.
pub(crate) type SharedRecorder = Arc<Mutex<Recorder>>;

/// Runs a function on the recorder.
pub(crate) fn record<T>(recorder: &SharedRecorder, f: impl FnOnce(&mut Recorder) -> T) -> T {
    f(&mut recorder.lock())
}

impl State {
    pub(crate) fn new(identity: &Identity, content: Arc<dyn Content>, limits: &Limits) -> Self {
        let log = Arc::new(Mutex::new(Recorder::new(identity.clone(), limits)));
        let wasi = wasi::empty_world(&identity.digest, content.digest(), &log);
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles as usize);
        Self {
            reader: Reader::new(content, limits),
            output: Output::new(limits),
            memory: Memory::new(limits),
            log,
            request: None,
            asked: Asked::default(),
            has_schema: false,
            slot: None,
            table,
            wasi,
        }
    }
}

impl crate::contract::bindings::chandler::provisioner::types::Host for State {}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}
