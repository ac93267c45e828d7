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
    code::{CodeCache, EMBEDDED, Embedded, Lookup, Quarantine},
    compile::{Attempt, Attempts},
    config,
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
    attempts: Attempts,
    /// The code that this program contains.
    embedded: &'static [Embedded],
    hits: AtomicU64,
    rejected: AtomicU64,
}

/// The queues of compilations. A component that compiles for minutes delays only those that do, too.
struct Lanes {
    /// First attempts, with low limits.
    quick: Arc<Semaphore>,
    /// What a first attempt could not compile, and large components.
    slow: Arc<Semaphore>,
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
        Self::with_embedded(options, EMBEDDED)
    }

    /// Like [`new`](Self::new), with this code in place of what the program contains.
    pub(crate) fn with_embedded(options: EngineOptions, embedded: &'static [Embedded]) -> Result<Self, EngineError> {
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
            compilers: Lanes { quick: Arc::new(Semaphore::new(1)), slow: Arc::new(Semaphore::new(1)) },
            attempts: Attempts::default(),
            embedded,
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
            compiled: self.inner.attempts.compiled(),
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

    /// The component, from this program, the cache or the compiler.
    async fn component(&self, digest: &Digest, wasm: &[u8]) -> Result<Component, LoadError> {
        if let Some(component) = self.embedded(digest).await? {
            return Ok(component);
        }
        // One that its caller does not wait for.
        self.attempts.ended(digest).await;
        if let Some(component) = self.cached(digest).await? {
            self.hits.fetch_add(1, Ordering::Relaxed);
            return Ok(component);
        }
        if let Some(problem) = self.quarantined(digest).await? {
            return Err(CompileError::Quarantined(problem).into());
        }
        let span = tracing::debug_span!("compile", digest = %digest.short(), bytes = wasm.len());
        tracing::Instrument::instrument(self.compile(digest, wasm), span).await
    }

    /// Compiles a component: a small one in a quick attempt first.
    async fn compile(&self, digest: &Digest, wasm: &[u8]) -> Result<Component, LoadError> {
        let EngineOptions { compiler, compile_limits, .. } = &self.options;
        let compile = async |lane: &Arc<Semaphore>, limits: &CompileLimits, next: Option<&CompileLimits>| {
            let unavailable = |error: String| LoadError::from(CompileError::Unavailable(error));
            let turn = Arc::clone(lane).acquire_owned().await.map_err(|error| unavailable(error.to_string()))?;
            let attempt = self.attempts.begin(Attempt {
                component: digest.clone(),
                wasm: wasm.to_vec(),
                compiler: compiler.clone(),
                limits: limits.clone(),
                next: next.cloned(),
                engine: self.wasm.clone(),
                cache: self.cache.clone(),
                quarantine: Arc::clone(&self.quarantine),
                turn,
            });
            let ended = self.threads.run_to_end(tracing::Instrument::in_current_span(attempt)).await;
            ended.unwrap_or_else(|error| Err(unavailable(error.to_string())))
        };
        // In this process there are no limits, so that an attempt would not end.
        let quick = compile_limits.quick(wasm.len()).filter(|_| *compiler != Compiler::InProcess);
        if let Some(limits) = quick.filter(|_| !self.attempts.has_outgrown(digest)) {
            match compile(&self.compilers.quick, &limits, Some(compile_limits)).await {
                Err(LoadError::Compile(error)) if error.is_below(&limits, compile_limits) => {
                    tracing::debug!(%error, "a component is compiled again with higher limits");
                }
                result => return result,
            }
        }
        compile(&self.compilers.slow, compile_limits, None).await
    }

    /// The component from the code that this program contains.
    async fn embedded(&self, digest: &Digest) -> Result<Option<Component>, LoadError> {
        let Some(embedded) = Embedded::find(self.embedded, digest) else { return Ok(None) };
        let (engine, key) = (self.wasm.clone(), digest.clone());
        let load = move || match embedded.code().map_err(|error| error.to_string()) {
            Ok(code) => code.load(&engine).map_err(|error| format!("{error:#}")),
            Err(error) => Err(error),
        };
        match self.threads.run_blocking(load).await {
            Ok(Ok(component)) => Ok(Some(component)),
            Ok(Err(why)) => {
                tracing::warn!(digest = %key.short(), why, "the compiled code in this program does not run here; compiling");
                Ok(None)
            }
            Err(error) => Err(LoadError::Internal(error.to_string())),
        }
    }

    /// Why the component is quarantined, if it is.
    async fn quarantined(&self, digest: &Digest) -> Result<Option<String>, LoadError> {
        let (quarantine, digest) = (Arc::clone(&self.quarantine), digest.clone());
        let look = move || quarantine.problem(&digest, SystemTime::now());
        self.threads.run_blocking(look).await.map_err(|error| LoadError::Internal(error.to_string()))
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
