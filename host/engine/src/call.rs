//! One call: runs a fresh instance within its limits and turns the outcome into a result or a [`CallError`].

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::Content;
use chandler_turns::Requester;
use parking_lot::Mutex;
use tokio::time::timeout;
use tracing::{Instrument as _, Span, field};
use wasmtime::{Store, Trap, UpdateDeadline, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::{
    CallError, CallLog, LimitExceeded, LimitKind, Limits, Trapped,
    contract::bindings::Plugin,
    host::{Denied, Fault, State, Violation, record},
    meter::{Clocks, Meter, Metered},
    provisioner::Loaded,
    text::sanitize,
    threads::Slot,
};

/// How many guest functions the message of a crash lists.
const FRAMES: usize = 5;

/// How many bytes of a function name, and of the text of a trap, are kept.
const NAME_BYTES: usize = 200;
const TRAP_BYTES: usize = 1024;

/// What a call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The largest memory of its instance, in bytes.
    pub memory: u64,
    /// What it read of the content, in bytes.
    pub read: u64,
    /// The objects that it returned, in bytes of JSON.
    pub returned: u64,
    /// What counts towards [`Limits::time`]: what it computed, and what it waited for itself.
    pub time: Duration,
    /// Whether the provisioner returned a schema of the configuration.
    pub has_schema: bool,
}

/// What a call used and logged.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) usage: Usage,
    pub(crate) log: CallLog,
}

/// Gets what a call used and logged, also if the call failed.
pub(crate) type Used = Arc<Mutex<Account>>;

/// The work of a call, given its instance.
pub(crate) type Body<'a, T> = Pin<Box<dyn Future<Output = Result<T, BodyError>> + Send + 'a>>;

/// Why a call ended without a result.
pub(crate) enum BodyError {
    /// The guest trapped.
    Trap(wasmtime::Error),
    /// The guest returned a failure.
    Error(CallError),
}

/// Runs a call on a guest thread, in the turn of the requester, and returns its result together with the state of the instance.
pub(crate) async fn run<T, F>(
    (loaded, requester): (&Arc<Loaded>, &Requester),
    function: &'static str,
    content: Arc<dyn Content>,
    limits: &Limits,
    used: &Used,
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
    let slot = loaded.threads.slot(&loaded.share, requester).instrument(span.clone()).await;
    let slot = slot.ok_or_else(|| CallError::Internal("the engine is shutting down".into()))?;
    let (inner, limits, used) = (Arc::clone(loaded), limits.clone(), Arc::clone(used));
    let task = async move { execute(&inner, Arc::new(slot), content, &limits, &used, body).await };
    let result = loaded.threads.run(task.instrument(span)).await;
    // A panic of the host fails only this call.
    result.unwrap_or_else(|_| Err(CallError::Internal("the host panicked during the call".into())))
}

async fn execute<T, F>(
    loaded: &Loaded,
    slot: Arc<Slot>,
    content: Arc<dyn Content>,
    limits: &Limits,
    used: &Used,
    body: F,
) -> Result<(T, State), CallError>
where
    T: Send,
    F: for<'a> FnOnce(&'a mut Store<State>, Plugin) -> Body<'a, T> + Send,
{
    let started = Instant::now();
    let _ticking = loaded.ticker.tick();
    let meter = Meter::new(limits.time, Clocks::SYSTEM);
    let mut store = store(loaded, content, limits, Arc::clone(&meter));
    store.data_mut().slot = Some(slot);
    let guest = async {
        let plugin = loaded.plugin.instantiate_async(&mut store).await.map_err(BodyError::Trap)?;
        body(&mut store, plugin).await
    };
    // The meter stops a guest that waits; the epochs stop one that computes, and the timer a call for which the machine has no time.
    let result = timeout(meter.wall(), Metered::new(guest, Arc::clone(&meter))).await;
    let result = result.unwrap_or_else(|_| Err(Fault::Starved { used: meter.used(), wall: meter.wall() }));
    let result = result.unwrap_or_else(|fault| Err(BodyError::Trap(fault.into())));
    // Drops the instance.
    let state = store.into_data();
    let (memory, read) = (state.memory.peak(), state.reader.bytes_read());
    let (returned, has_schema) = (state.output.bytes(), state.has_schema);
    let usage = Usage { memory, read, returned, time: meter.used(), has_schema };
    let log = record(&state.log, super::host::Recorder::finish);
    *used.lock() = Account { usage, log: log.clone() };
    let result = resolve(result, &state, log, limits);
    let outcome = result.as_ref().err().map_or("Succeeded", |error| error.reason().as_str());
    observe(&state, outcome, started.elapsed());
    result.map(|value| (value, state))
}

fn store(loaded: &Loaded, content: Arc<dyn Content>, limits: &Limits, meter: Arc<Meter>) -> Store<State> {
    let state = State::new(&loaded.identity, content, limits);
    let mut store = Store::new(loaded.plugin.engine(), state);
    store.limiter(|state| &mut state.memory);
    store.set_hostcall_fuel(usize::try_from(limits.transfer_bytes).unwrap_or(usize::MAX));
    store.set_max_component_handles(limits.handles as usize);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| Ok(meter.interrupted().map(|()| UpdateDeadline::Yield(1))?));
    store
}

/// Turns the result of the guest into the result of the call. A refusal by the host takes precedence, since it caused the guest's next
/// steps; the guest's own report comes last.
fn resolve<T>(result: Result<T, BodyError>, state: &State, log: CallLog, limits: &Limits) -> Result<T, CallError> {
    let trap = match &result {
        Err(BodyError::Trap(error)) => Some(error),
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
        Err(BodyError::Error(error)) => Err(error),
        Err(BodyError::Trap(error)) => Err(classify(&error, state, log, limits)),
    }
}

/// Why a guest trapped.
fn classify(error: &wasmtime::Error, state: &State, log: CallLog, limits: &Limits) -> CallError {
    let trap = error.downcast_ref::<Trap>();
    match error.downcast_ref::<Fault>() {
        Some(fault @ (Fault::SecureRandomness | Fault::NotProvided(_))) => {
            return CallError::Trapped(Trapped { trap: fault.to_string(), frames: Vec::new(), log });
        }
        Some(Fault::Starved { used, wall }) => {
            return CallError::Starved { limit: limits.time, used: *used, wall: *wall };
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
    // The instances that wasmtime adds to connect components are not part of the earlier count.
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
    CallError::Trapped(Trapped { trap: sanitize(text, TRAP_BYTES), frames: frames(error), log })
}

/// Whether a guest passed more bytes in one host call than the transfer limit.
///
/// The error type is private to wasmtime, so only its text can be checked; a test fails when the text changes. Limits
/// that deserve a better message are lower and checked by the host itself.
fn is_transfer_limit(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains("fuel allocated for hostcalls has been exhausted")
}

/// Whether a guest held too many handles; again only the text can be checked.
fn is_handle_limit(error: &wasmtime::Error) -> bool {
    error.root_cause().to_string().contains("store handle limit exceeded")
}

/// Which count limit an instantiation exceeded, if any; again only the text can be checked.
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

/// Prefixes of the functions that every panic of a Rust guest passes through.
const PANIC_MACHINERY: &[&str] = &["__rust", "rust_", "std::panicking", "core::panicking", "std::sys::backtrace"];

/// The innermost guest functions that have a useful name.
fn frames(error: &wasmtime::Error) -> Vec<String> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    let names = backtrace.frames().iter().filter_map(|frame| frame.func_name());
    names
        .map(|name| format!("{:#}", rustc_demangle::demangle(name)))
        .filter(|name| !PANIC_MACHINERY.iter().any(|machinery| name.starts_with(machinery)))
        .take(FRAMES)
        .map(|name| sanitize(name, NAME_BYTES))
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
