//! The engine: compiles components and runs them.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use chandler_core::Digest;
use tokio::sync::{Mutex, Semaphore};
use wasmtime::component::{Component, HasSelf, Linker};

use crate::{
    CompileError, EngineError, EngineOptions, LoadError, MissingImport, Provisioner,
    code::{Code, CodeCache, Lookup, Quarantine},
    compile, config,
    contract::bindings::{Plugin, PluginPre},
    facts::{self, Outline},
    host::State,
    imports,
    provisioner::Loaded,
    size,
    text::tame,
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
    /// What is loaded or being loaded at the moment. Whoever loads a component holds its place, so that each is compiled
    /// once, and nobody waits for the compiler of another.
    places: std::sync::Mutex<HashMap<Digest, Place>>,
    /// One compiler runs at a time: each may take as much memory as its limit.
    compilers: Semaphore,
    compiled: AtomicU64,
    hits: AtomicU64,
    rejected: AtomicU64,
}

/// What is loaded of a component, behind the lock of whoever loads it.
type Place = Arc<Mutex<Weak<Loaded>>>;

/// What an engine has done so far; the numbers only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineStatistics {
    /// Components that were compiled.
    pub compiled: u64,
    /// Components whose code was in the cache.
    pub cache_hits: u64,
    /// Files of the cache that could not be trusted.
    pub cache_rejects: u64,
}

impl Engine {
    /// Sets up an engine: its threads, its clock and its code cache.
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
            places: std::sync::Mutex::default(),
            compilers: Semaphore::new(1),
            compiled: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Loads a component: checks what it says and imports, compiles it or takes its code from the cache, and links it.
    ///
    /// A component that is already loaded is not loaded again.
    pub async fn load(&self, wasm: &[u8]) -> Result<Provisioner, LoadError> {
        self.inner.load(wasm).await
    }

    /// What this engine has done so far.
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
        let place = self.place(&digest);
        let mut place = place.lock().await;
        if let Some(loaded) = place.upgrade() {
            return Ok(Provisioner::new(loaded));
        }
        let Outline { facts, imports } = facts::outline(wasm)?;
        refuse(imports::missing_interfaces(&imports))?;
        let size = size::measure(wasm)?;
        let component = self.component(&digest, wasm).await?;
        refuse(imports::missing_functions(&self.wasm, &component))?;
        let incompatible = |error: wasmtime::Error| LoadError::UnsupportedContract(tame(format!("{error:#}"), 1024));
        let instance = self.linker.instantiate_pre(&component).map_err(incompatible)?;
        let plugin = PluginPre::new(instance).map_err(incompatible)?;
        let loaded = Loaded::new(digest, facts, size, plugin, Arc::clone(&self.threads), Arc::clone(&self.ticker));
        let loaded = Arc::new(loaded);
        *place = Arc::downgrade(&loaded);
        Ok(Provisioner::new(loaded))
    }

    /// The place of a component. Places where nothing is loaded and nobody loads are cleared away.
    fn place(&self, digest: &Digest) -> Place {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.retain(|_, place| {
            Arc::strong_count(place) > 1 || place.try_lock().is_ok_and(|loaded| loaded.strong_count() > 0)
        });
        Arc::clone(places.entry(digest.clone()).or_default())
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
        let _compiler = self.compilers.acquire().await.map_err(|error| LoadError::Internal(error.to_string()))?;
        let span = tracing::debug_span!("compile", digest = %digest.short(), bytes = wasm.len());
        let options = &self.options;
        let compile = compile::compile(&options.compiler, &options.compile_limits, &self.threads, &self.wasm, wasm);
        let code = match tracing::Instrument::instrument(compile, span).await {
            Ok(code) => Code::compiled(code),
            Err(error) if error.harms() => return Err(self.keep_away(digest, &error).await.into()),
            Err(error) => return Err(error.into()),
        };
        self.compiled.fetch_add(1, Ordering::Relaxed);
        let (engine, cache, key) = (self.wasm.clone(), self.cache.clone(), digest.clone());
        let load = move || {
            let component = code.load(&engine)?;
            if let Some(cache) = cache
                && let Err(error) = cache.store(&key, &code)
            {
                tracing::warn!(digest = %key.short(), %error, "failed to keep compiled code");
            }
            Ok(component)
        };
        match self.threads.run_blocking(load).await {
            Ok(Ok(component)) => Ok(component),
            Ok(Err(error)) => Err(internal(error)),
            Err(error) => Err(LoadError::Internal(error.to_string())),
        }
    }

    /// Why a component is not compiled for now, if it is not.
    async fn quarantined(&self, digest: &Digest) -> Result<Option<String>, LoadError> {
        let (quarantine, digest) = (Arc::clone(&self.quarantine), digest.clone());
        let look = move || quarantine.problem(&digest, SystemTime::now());
        self.threads.run_blocking(look).await.map_err(|error| LoadError::Internal(error.to_string()))
    }

    /// Keeps a component away from the compiler for a while. The error is the one that further attempts get, too, so that it
    /// is told once.
    async fn keep_away(&self, digest: &Digest, error: &CompileError) -> CompileError {
        let problem = error.to_string();
        let (quarantine, digest, text) = (Arc::clone(&self.quarantine), digest.clone(), problem.clone());
        // What cannot be kept is tried again, no worse.
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
                tracing::warn!(digest = %digest.short(), why, "compiled code in the cache is refused; compiling again");
                Ok(None)
            }
            Err(error) => Err(LoadError::Internal(error.to_string())),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is a function for map_err")]
fn internal(error: wasmtime::Error) -> LoadError {
    LoadError::Internal(format!("failed to load compiled code: {error:#}"))
}

fn refuse(missing: Vec<MissingImport>) -> Result<(), LoadError> {
    if missing.is_empty() { Ok(()) } else { Err(LoadError::MissingImports(missing)) }
}

/// Everything that any component can import.
pub(crate) fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    Plugin::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    linker.allow_shadowing(true);
    wasmtime_wasi::p2::bindings::random::random::add_to_linker::<State, HasSelf<State>>(&mut linker, |state| state)?;
    linker.allow_shadowing(false);
    Ok(linker)
}
