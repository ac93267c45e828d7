//! The engine: compiles components and runs them.

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use chandler_core::Digest;
use chandler_turns::KeyedLocks;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Semaphore;
use wasmtime::component::{Component, HasSelf, Linker};

use crate::{
    CompileError, CompileLimits, Compiler, EngineError, EngineOptions, LoadError, MissingImport, Provisioner,
    code::{Code, CodeCache, Lookup, Quarantine},
    compile, config,
    contract::bindings::{Plugin, PluginPre},
    facts::{self, Outline},
    host::State,
    imports,
    provisioner::Loaded,
    size,
    text::sanitize,
    threads::Threads,
    ticker::Ticker,
};

/// Compiles and runs provisioners. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    options: EngineOptions,
    wasm: wasmtime::Engine,
    linker: Linker<State>,
    cache: Option<Arc<CodeCache>>,
    quarantine: Arc<Quarantine>,
    threads: Arc<Threads>,
    ticker: Arc<Ticker>,
    /// Components that are loaded.
    loaded: Mutex<HashMap<Digest, Weak<Loaded>>>,
    /// Locked while a component is loaded, so each component is compiled once and no task waits for the compilation of another component.
    loads: KeyedLocks<Digest>,
    /// One compiler of each lane runs at a time, since it may use all the memory of its limit.
    compilers: Lanes,
    compiled: AtomicU64,
    hits: AtomicU64,
    rejected: AtomicU64,
}

/// The queues of compilations. A component that compiles for minutes delays only those that do, too.
struct Lanes {
    /// First attempts, with low limits.
    quick: Semaphore,
    /// What a first attempt could not compile, and large components.
    slow: Semaphore,
}

/// Counters of an engine; they only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    /// Components that were compiled.
    pub compiled: u64,
    /// Components whose code was read from the cache.
    pub cache_hits: u64,
    /// Cache files that were rejected as corrupt or untrusted.
    pub cache_rejects: u64,
}

impl Engine {
    /// Creates an engine with its threads, its clock and its code cache.
    pub fn new(options: EngineOptions) -> Result<Self, EngineError> {
        let wasmtime = |error: wasmtime::Error| EngineError::Wasmtime(error.to_string());
        let wasm = config::engine(options.stack_bytes).map_err(wasmtime)?;
        let linker = linker(&wasm).map_err(wasmtime)?;
        let cache = match &options.cache_directory {
            Some(directory) => Some(Arc::new(CodeCache::open(directory, config::fingerprint(&wasm))?)),
            None => None,
        };
        let beside = cache.as_ref().map(|cache| cache.directory().to_owned());
        let quarantine = Arc::new(Quarantine::new(beside, config::fingerprint(&wasm)));
        let threads = Arc::new(Threads::start(options.concurrency).map_err(EngineError::Threads)?);
        let epochs = wasm.clone();
        let ticker = Ticker::start(move || epochs.increment_epoch()).map_err(EngineError::Threads)?;
        let inner = Inner {
            options,
            wasm,
            linker,
            cache,
            quarantine,
            threads,
            ticker: Arc::new(ticker),
            loaded: Mutex::default(),
            loads: KeyedLocks::default(),
            compilers: Lanes { quick: Semaphore::new(1), slow: Semaphore::new(1) },
            compiled: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Loads a component: checks its metadata and imports, compiles it or reads its code from the cache, and links it.
    ///
    /// A component that is already loaded is reused.
    pub async fn load(&self, wasm: &[u8]) -> Result<Provisioner, LoadError> {
        self.inner.load(wasm).await
    }

    /// Removes a component from quarantine: the next load compiles it again, although it crashed the compiler or exceeded its limits
    /// before.
    pub async fn release_from_quarantine(&self, component: &Digest) {
        let (quarantine, digest) = (Arc::clone(&self.inner.quarantine), component.clone());
        // If this fails, the component stays quarantined, and the next load says so.
        let _ = self.inner.threads.run_blocking(move || quarantine.remove(&digest)).await;
    }

    /// The counters of this engine.
    pub fn statistics(&self) -> EngineStatistics {
        EngineStatistics {
            compiled: self.inner.compiled.load(Ordering::Relaxed),
            cache_hits: self.inner.hits.load(Ordering::Relaxed),
            cache_rejects: self.inner.rejected.load(Ordering::Relaxed),
        }
    }
}

impl Inner {
    async fn load(&self, wasm: &[u8]) -> Result<Provisioner, LoadError> {
        let limit = self.options.component_bytes;
        if wasm.len() as u64 > limit {
            return Err(LoadError::TooLarge { limit });
        }
        let digest = Digest::of(wasm);
        let _load = self.loads.lock(&digest).await;
        if let Some(loaded) = self.loaded().get(&digest).and_then(Weak::upgrade) {
            return Ok(Provisioner::new(loaded));
        }
        let Outline { facts, imports, .. } = facts::outline(wasm)?;
        refuse(imports::missing_interfaces(&imports))?;
        let size = size::measure(wasm)?;
        let component = self.component(&digest, wasm).await?;
        let unknown = imports::unknown(&self.wasm, &component);
        refuse(imports::required(&unknown, &facts.optional))?;
        let incompatible =
            |error: wasmtime::Error| LoadError::UnsupportedContract(sanitize(format!("{error:#}"), 1024));
        let instance = if unknown.is_empty() {
            self.linker.instantiate_pre(&component)
        } else {
            imports::with_traps(&self.linker, &unknown).and_then(|linker| linker.instantiate_pre(&component))
        };
        let instance = instance.map_err(incompatible)?;
        let plugin = PluginPre::new(instance).map_err(incompatible)?;
        let (threads, ticker) = (Arc::clone(&self.threads), Arc::clone(&self.ticker));
        let loaded = Arc::new(Loaded::new(digest.clone(), facts, size, plugin, threads, ticker));
        let mut all = self.loaded();
        all.retain(|_, other| other.strong_count() > 0);
        all.insert(digest, Arc::downgrade(&loaded));
        Ok(Provisioner::new(loaded))
    }

    fn loaded(&self) -> MutexGuard<'_, HashMap<Digest, Weak<Loaded>>> {
        self.loaded.lock()
    }

    /// The component, from the cache or the compiler.
    async fn component(&self, digest: &Digest, wasm: &[u8]) -> Result<Component, LoadError> {
        if let Some(component) = self.cached(digest).await? {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(component);
        }
        if let Some(problem) = self.quarantined(digest).await? {
            return Err(CompileError::Quarantined(problem).into());
        }
        let span = tracing::debug_span!("compile", digest = %digest.short(), bytes = wasm.len());
        let code = match tracing::Instrument::instrument(self.compile(wasm), span).await {
            Ok(code) => Code::compiled(code),
            Err(error) if error.needs_quarantine() => {
                return Err(self.quarantine_component(digest, &error).await.into());
            }
            Err(error) => return Err(error.into()),
        };
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let (engine, cache, key) = (self.wasm.clone(), self.cache.clone(), digest.clone());
        let load = move || {
            let component = code.load(&engine)?;
            if let Some(cache) = cache
                && let Err(error) = cache.store(&key, &code)
            {
                tracing::warn!(digest = %key.short(), %error, "failed to write compiled code to the cache");
            }
            Ok(component)
        };
        match self.threads.run_blocking(load).await {
            Ok(Ok(component)) => Ok(component),
            Ok(Err(error)) => Err(internal(error)),
            Err(error) => Err(LoadError::Internal(error.to_string())),
        }
    }

    /// Compiles a component: a small one in a quick attempt first.
    async fn compile(&self, wasm: &[u8]) -> Result<Vec<u8>, CompileError> {
        let EngineOptions { compiler, compile_limits, .. } = &self.options;
        let compile = async |lane: &Semaphore, limits: &CompileLimits| {
            let _turn = lane.acquire().await.map_err(|error| CompileError::Unavailable(error.to_string()))?;
            compile::compile(compiler, limits, &self.threads, &self.wasm, wasm).await
        };
        // In this process there are no limits, so that an attempt would not end.
        let quick = compile_limits.quick(wasm.len()).filter(|_| *compiler != Compiler::InProcess);
        if let Some(limits) = quick {
            match compile(&self.compilers.quick, &limits).await {
                Err(error) if error.is_below(&limits, compile_limits) => {
                    tracing::debug!(%error, "a component is compiled again with higher limits");
                }
                result => return result,
            }
        }
        compile(&self.compilers.slow, compile_limits).await
    }

    /// Why the component is quarantined, if it is.
    async fn quarantined(&self, digest: &Digest) -> Result<Option<String>, LoadError> {
        let (quarantine, digest) = (Arc::clone(&self.quarantine), digest.clone());
        let look = move || quarantine.problem(&digest, SystemTime::now());
        self.threads.run_blocking(look).await.map_err(|error| LoadError::Internal(error.to_string()))
    }

    /// Quarantines a component, so that it is not compiled again for a while. Returns the same error that later
    /// attempts get, so that the status does not change between them.
    async fn quarantine_component(&self, digest: &Digest, error: &CompileError) -> CompileError {
        let problem = error.to_string();
        let (quarantine, digest, text) = (Arc::clone(&self.quarantine), digest.clone(), problem.clone());
        // If this fails, the next attempt compiles the component again, which is harmless.
        let _ = self.threads.run_blocking(move || quarantine.add(&digest, text, SystemTime::now())).await;
        CompileError::Quarantined(problem)
    }

    async fn cached(&self, digest: &Digest) -> Result<Option<Component>, LoadError> {
        let Some(cache) = self.cache.clone() else { return Ok(None) };
        let (engine, key) = (self.wasm.clone(), digest.clone());
        let look = move || match cache.load(&key) {
            Lookup::Hit(code) => code.load(&engine).map(Some).map_err(|error| error.to_string()),
            Lookup::Miss => Ok(None),
            Lookup::Rejected(why) => Err(why),
        };
        match self.threads.run_blocking(look).await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(why)) => {
                self.rejected.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(digest = %digest.short(), why, "rejected compiled code from the cache; compiling again");
                Ok(None)
            }
            Err(error) => Err(LoadError::Internal(error.to_string())),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "passed to map_err")]
fn internal(error: wasmtime::Error) -> LoadError {
    LoadError::Internal(format!("failed to load compiled code: {error:#}"))
}

fn refuse(missing: Vec<MissingImport>) -> Result<(), LoadError> {
    if missing.is_empty() { Ok(()) } else { Err(LoadError::MissingImports(missing)) }
}

/// Everything that a component may import.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    Plugin::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    linker.allow_shadowing(true);
    wasmtime_wasi::p2::bindings::random::random::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    linker.allow_shadowing(false);
    Ok(linker)
}
