//! One call: a fresh instance with limits, run to its end, and what became of it.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::Content;
use tokio::time::timeout;
use tracing::{Instrument as _, Span, field};
use wasmtime::{Store, Trap, UpdateDeadline, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::{
    CallError, CallLog, LimitExceeded, LimitKind, Limits, Trapped,
    contract::bindings::Plugin,
    host::{Denied, Fault, State, Violation, record},
    provisioner::Loaded,
    text::tame,
    threads::Slot,
};

/// How many functions of the guest a message about a crash names.
const FRAMES: usize = 5;

/// How much of the name of a function, and of the text of a trap, is kept.
const NAME_BYTES: usize = 200;
const TRAP_BYTES: usize = 1024;

/// What a call does with its instance.
pub(crate) type Body<'a, T> = Pin<Box<dyn Future<Output = Result<T, Stop>> + Send + 'a>>;

/// Why a call ended without a result.
pub(crate) enum Stop {
    /// The guest did not return.
    Trap(wasmtime::Error),
    /// It did, but what it returned is a failure.
    Error(CallError),
}

/// Runs a call on a thread for guests and returns its result with the state that it left.
pub(crate) async fn run<T, F>(
    loaded: &Arc<Loaded>,
    function: &'static str,
    content: Arc<dyn Content>,
    limits: &Limits,
    body: F,
) -> Result<(T, State), CallError>
where
    T: Send + 'static,
    F: for<'a> FnOnce(&'a mut Store<State>, Plugin) -> Body<'a, T> + Send + 'static,
{
    if let Some(exceeded) = loaded.size.excess_in_call(limits) {
        return Err(CallError::LimitExceeded(Box::new(exceeded)));
    }
    let span = tracing::info_span!(
        "provisioner",
        function,
        plugin = %loaded.identity.name,
        version = %loaded.identity.version,
        digest = %loaded.identity.digest.short(),
        outcome = field::Empty,
        duration_ms = field::Empty,
        peak_memory = field::Empty,
        bytes_read = field::Empty,
        objects = field::Empty,
    );
    let slot = loaded.threads.slot(&loaded.share).instrument(span.clone()).await;
    let slot = slot.ok_or_else(|| CallError::Internal("the engine is shutting down".into()))?;
    let (inner, limits) = (Arc::clone(loaded), limits.clone());
    let task = async move { execute(&inner, Arc::new(slot), content, &limits, body).await };
    let result = loaded.threads.run(task.instrument(span)).await;
    // The host's part of a call must not panic either; where it does, only this call fails.
    result.unwrap_or_else(|_| Err(CallError::Internal("the host panicked during the call".into())))
}

async fn execute<T, F>(
    loaded: &Loaded,
    slot: Arc<Slot>,
    content: Arc<dyn Content>,
    limits: &Limits,
    body: F,
) -> Result<(T, State), CallError>
where
    F: for<'a> FnOnce(&'a mut Store<State>, Plugin) -> Body<'a, T>,
{
    let started = Instant::now();
    let _ticking = loaded.ticker.tick();
    let mut store = store(loaded, content, limits, started);
    store.data_mut().slot = Some(slot);
    let guest = async {
        let plugin = loaded.plugin.instantiate_async(&mut store).await.map_err(Stop::Trap)?;
        body(&mut store, plugin).await
    };
    // The timer reaches a guest that waits, the epochs one that runs.
    let result = timeout(limits.time, guest).await.unwrap_or_else(|_| Err(Stop::Trap(Fault::TimedOut.into())));
    // The instance ends here, whatever became of it.
    let state = store.into_data();
    let log = record(&state.log, super::host::Recorder::finish);
    let result = judge(result, &state, log, limits);
    let outcome = result.as_ref().err().map_or("Succeeded", |error| error.reason().as_str());
    observe(&state, outcome, started.elapsed());
    result.map(|value| (value, state))
}

fn store(loaded: &Loaded, content: Arc<dyn Content>, limits: &Limits, started: Instant) -> Store<State> {
    let state = State::new(&loaded.identity, content, limits);
    let mut store = Store::new(loaded.plugin.engine(), state);
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(usize::try_from(limits.transfer_bytes).unwrap_or(usize::MAX));
    store.set_max_component_handles(limits.handles as usize);
    store.set_epoch_deadline(1);
    let time = limits.time;
    store.epoch_deadline_callback(move |_| {
        if started.elapsed() < time { Ok(UpdateDeadline::Yield(1)) } else { Err(Fault::TimedOut.into()) }
    });
    store
}

/// What became of a call. What the host refused comes first, since it is why the guest failed then; what the guest says of
/// itself comes last.
fn judge<T>(result: Result<T, Stop>, state: &State, log: CallLog, limits: &Limits) -> Result<T, CallError> {
    let trap = match &result {
        Err(Stop::Trap(error)) => Some(error),
        _ => None,
    };
    if let Some(Fault::Content(problem)) = trap.and_then(|error| error.downcast_ref::<Fault>()) {
        return Err(CallError::Internal(format!("failed to read the content of the bundle: {problem}")));
    }
    match state.output.violation() {
        Some(Violation::Limit(exceeded)) => return Err(CallError::LimitExceeded(Box::new(exceeded.clone()))),
        Some(Violation::Invalid(problem)) => return Err(CallError::InvalidOutput(Box::new(problem.clone()))),
        None => {}
    }
    if let Some((kind, limit)) = state.reader.exceeded() {
        return Err(CallError::LimitExceeded(Box::new(LimitExceeded { kind, limit, object: None })));
    }
    match result {
        Ok(value) => Ok(value),
        Err(Stop::Error(error)) => Err(error),
        Err(Stop::Trap(error)) => Err(classify(&error, state, log, limits)),
    }
}

/// Why a guest did not return.
fn classify(error: &wasmtime::Error, state: &State, log: CallLog, limits: &Limits) -> CallError {
    let trap = error.downcast_ref::<Trap>();
    match error.downcast_ref::<Fault>() {
        Some(fault @ Fault::SecureRandomness) => {
            return CallError::Trapped(Trapped { trap: fault.to_string(), frames: Vec::new(), log });
        }
        Some(_) => return CallError::Timeout { limit: limits.time },
        None if trap == Some(&Trap::Interrupt) => return CallError::Timeout { limit: limits.time },
        None => {}
    }
    match state.memory.denied() {
        Some(Denied::Memory) => return CallError::OutOfMemory { limit: limits.memory },
        Some(Denied::Other(kind, limit)) => {
            return CallError::LimitExceeded(Box::new(LimitExceeded { kind, limit, object: None }));
        }
        None => {}
    }
    // Those that wasmtime adds between components are not in what was counted beforehand.
    if let Some(kind) = exceeded_count(error) {
        let limit = if kind == LimitKind::Instances { limits.instances } else { limits.memories };
        return CallError::LimitExceeded(Box::new(LimitExceeded { kind, limit: limit.into(), object: None }));
    }
    if is_handle_limit(error) {
        let (kind, limit) = (LimitKind::Handles, limits.handles.into());
        return CallError::LimitExceeded(Box::new(LimitExceeded { kind, limit, object: None }));
    }
    if is_transfer_limit(error) {
        let kind = LimitKind::TransferBytes;
        return CallError::LimitExceeded(Box::new(LimitExceeded { kind, limit: limits.transfer_bytes, object: None }));
    }
    let text = match (trap, error.downcast_ref::<I32Exit>()) {
        (Some(trap), _) => trap.to_string(),
        (_, Some(exit)) => format!("it exited with code {}", exit.0),
        _ => error.root_cause().to_string(),
    };
    CallError::Trapped(Trapped { trap: tame(text, TRAP_BYTES), frames: frames(error), log })
}

/// Whether a guest passed more in one call than the limit on transfers.
///
/// The error's type is private to wasmtime, so that its text is all there is; a test fails when it changes. The host's own
/// limits are lower for all that is worth a better message.
fn is_transfer_limit(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains("fuel allocated for hostcalls has been exhausted")
}

/// Whether a guest held more handles than it may; a text is all there is here, too.
fn is_handle_limit(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains("store handle limit exceeded")
}

/// Which limit on counts an instantiation exceeded, if one. A text is all there is here, too.
fn exceeded_count(error: &wasmtime::Error) -> Option<LimitKind> {
    let text = error.root_cause().to_string();
    let counted = text.strip_prefix("resource limit exceeded: ")?.split(" count too high").next()?;
    match counted {
        "instance" => Some(LimitKind::Instances),
        "memory" => Some(LimitKind::Memories),
        "table" => Some(LimitKind::Tables),
        _ => None,
    }
}

/// How the names of functions begin that every panic of a Rust guest goes through.
const PANIC_MACHINERY: &[&str] = &["__rust", "rust_", "std::panicking", "core::panicking", "std::sys::backtrace"];

/// The innermost functions of the guest that have names and say something.
fn frames(error: &wasmtime::Error) -> Vec<String> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    let names = backtrace.frames().iter().filter_map(|frame| frame.func_name());
    names
        .map(|name| format!("{:#}", rustc_demangle::demangle(name)))
        .filter(|name| !PANIC_MACHINERY.iter().any(|machinery| name.starts_with(machinery)))
        .take(FRAMES)
        .map(|name| tame(name, NAME_BYTES))
        .collect()
}

fn observe(state: &State, outcome: &'static str, duration: Duration) {
    let span = Span::current();
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    span.record("outcome", outcome);
    span.record("duration_ms", milliseconds);
    span.record("peak_memory", state.memory.peak());
    span.record("bytes_read", state.reader.bytes_read());
    span.record("objects", state.output.object_count());
    tracing::debug!(outcome, "provisioner returned");
}
