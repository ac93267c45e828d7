//! Compilations in progress.
//!
//! A compilation that began runs to its end, within its limits, and its code is stored in the cache, even if its caller stops waiting: a
//! reconcile that is cancelled, or a start that waits for some seconds only. The next caller waits for it instead of compiling again. So a
//! component that crashes the compiler or exceeds its limits is quarantined here, and not by the caller.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use chandler_core::Digest;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, watch};
use wasmtime::component::Component;

use super::compile;
use crate::{
    CompileError, CompileLimits, Compiler, LoadError,
    code::{Code, CodeCache, Quarantine},
};

/// The number of components that are remembered as too large for a quick attempt.
const OUTGROWN: usize = 64;

/// The compilations of an engine. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Attempts(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// A channel for each component that is being compiled; it closes at the end.
    running: Mutex<HashMap<Digest, watch::Receiver<()>>>,
    outgrown: Mutex<VecDeque<Digest>>,
    compiled: AtomicU64,
}

/// One compilation.
pub(crate) struct Attempt {
    pub(crate) component: Digest,
    pub(crate) wasm: Vec<u8>,
    pub(crate) compiler: Compiler,
    pub(crate) limits: CompileLimits,
    /// For a quick attempt, the limits of the next one.
    pub(crate) next: Option<CompileLimits>,
    pub(crate) engine: wasmtime::Engine,
    pub(crate) cache: Option<Arc<CodeCache>>,
    pub(crate) quarantine: Arc<Quarantine>,
    /// The turn of its lane, which others get at its end.
    pub(crate) turn: OwnedSemaphorePermit,
}

impl Attempts {
    /// Waits until the component is not being compiled. The caller holds the lock of the component, so that no other attempt begins.
    pub(crate) async fn ended(&self, component: &Digest) {
        let running = self.0.running.lock().get(component).cloned();
        if let Some(mut running) = running {
            // Nothing is sent: this is an error, once the channel closes.
            let _ = running.changed().await;
        }
    }

    /// The number of components that were compiled.
    pub(crate) fn compiled(&self) -> u64 {
        self.0.compiled.load(Ordering::Relaxed)
    }

    /// Notes a component that exceeded the limits of a quick attempt, for a caller that stopped waiting and asks again.
    fn outgrew(&self, component: &Digest) {
        let mut outgrown = self.0.outgrown.lock();
        outgrown.push_front(component.clone());
        outgrown.truncate(OUTGROWN);
    }

    /// Whether a quick attempt is known to be too small for a component.
    pub(crate) fn has_outgrown(&self, component: &Digest) -> bool {
        self.0.outgrown.lock().contains(component)
    }

    /// The work of an attempt, which counts as running from now on until it is dropped. It runs within the runtime of the guests.
    pub(crate) fn begin(&self, attempt: Attempt) -> impl Future<Output = Result<Component, LoadError>> + Send + use<> {
        let (end, running) = watch::channel(());
        self.0.running.lock().insert(attempt.component.clone(), running);
        let running = Running { attempts: self.clone(), component: attempt.component.clone(), _end: end };
        async move { attempt.run(&running).await }
    }
}

/// An attempt in [`Attempts`], until it is dropped.
struct Running {
    attempts: Attempts,
    component: Digest,
    /// Closed after the entry was removed.
    _end: watch::Sender<()>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.attempts.0.running.lock().remove(&self.component);
    }
}

impl Attempt {
    /// Compiles, loads the code, and stores it in the cache.
    async fn run(self, running: &Running) -> Result<Component, LoadError> {
        let Self { component, wasm, compiler, limits, next, engine, cache, quarantine, turn: _turn } = self;
        let code = match compile(compiler, limits.clone(), engine.clone(), wasm).await {
            Ok(code) => Code::compiled(code),
            Err(error) => {
                if next.is_some_and(|next| error.is_below(&limits, &next)) {
                    running.attempts.outgrew(&component);
                } else if error.needs_quarantine() {
                    return Err(quarantined(quarantine, component, &error).await.into());
                }
                return Err(error.into());
            }
        };
        running.attempts.0.compiled.fetch_add(1, Ordering::Relaxed);
        let load = move || {
            let loaded = code.load(&engine)?;
            if let Some(cache) = cache
                && let Err(error) = cache.store(&component, &code)
            {
                tracing::warn!(digest = %component.short(), %error, "failed to write compiled code to the cache");
            }
            Ok(loaded)
        };
        match tokio::task::spawn_blocking(load).await {
            Ok(Ok(loaded)) => Ok(loaded),
            Ok(Err(error)) => Err(internal(&error)),
            Err(error) => Err(LoadError::Internal(error.to_string())),
        }
    }
}

/// Quarantines a component, so that it is not compiled again for a while. Returns the same error that later attempts get, so that the status
/// does not change between them.
async fn quarantined(quarantine: Arc<Quarantine>, component: Digest, error: &CompileError) -> CompileError {
    let problem = error.to_string();
    let text = problem.clone();
    // If this fails, the next attempt compiles the component again, which is harmless.
    let _ = tokio::task::spawn_blocking(move || quarantine.add(&component, text, SystemTime::now())).await;
    CompileError::Quarantined(problem)
}

fn internal(error: &wasmtime::Error) -> LoadError {
    LoadError::Internal(format!("failed to load compiled code: {error:#}"))
}
