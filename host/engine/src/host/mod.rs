//! What a guest can reach during one call: the bundle, the request, the output and the log of the contract, and an empty WASI world.

mod content;
mod description;
mod findings;
mod log;
mod memory;
mod output;
mod request;
mod wasi;

use std::sync::{Arc, Mutex, PoisonError};

use chandler_core::{Content, Digest};
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

/// The representation of the `bundle` resource. All handles are of the one bundle of the call, so that nothing is kept for
/// them; wasmtime bounds how many a guest holds.
#[expect(unreachable_pub, reason = "the generated bindings name it")]
pub struct Bundle;

/// A failure of the host in the middle of a call. It travels through the guest as the cause of a trap.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum Fault {
    /// The time limit was found to be passed while the guest ran.
    #[error("the time limit has passed")]
    TimedOut,
    /// The guest asked for what only the host may make.
    #[error(
        "it asked for secure randomness (wasi:random/random), which no provisioner has: it makes the same of the same bundle \
         for everyone, its secrets included. The host makes secrets: see the annotation secrets.chandler.dev/generate in \
         docs/generated-secrets.md. Seeds of hash tables come from wasi:random/insecure-seed"
    )]
    SecureRandomness,
    /// The bundle's content could not be read.
    #[error("failed to read the content of the bundle: {0}")]
    Content(String),
}

/// Who is called, for logs and randomness.
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
    /// What is asked of `provision`. Without one nothing is emitted either.
    pub(crate) request: Option<Requested>,
    /// The right of this call to run; work that outlives the call holds it, too.
    pub(crate) slot: Option<Arc<Slot>>,
    table: ResourceTable,
    wasi: WasiCtx,
}

/// The recorder is shared with the standard streams.
pub(crate) type SharedRecorder = Arc<Mutex<Recorder>>;

/// Runs something on the recorder.
pub(crate) fn record<T>(recorder: &SharedRecorder, f: impl FnOnce(&mut Recorder) -> T) -> T {
    f(&mut recorder.lock().unwrap_or_else(PoisonError::into_inner))
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
