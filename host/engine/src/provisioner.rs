//! A loaded provisioner and its three calls.

use std::{
    sync::{Arc, PoisonError},
    time::Instant,
};

use chandler_core::{Content, Diagnostic, Digest, RecordedFacts, Release, Request, text::is_deceptive};
use serde_json::Value;
use tokio::sync::Semaphore;
use wasmtime::Store;

use crate::{
    CallError, Facts, InvalidOutput, LimitExceeded, LimitKind, Limits,
    call::{self, Stop},
    contract::bindings::{
        Plugin, PluginPre,
        chandler::provisioner::types::{Diagnostic as GuestDiagnostic, Failure},
    },
    host::{Asked, Identity, Requested, State, diagnostics},
    schema::{self, Schemas},
    size::Size,
    text::tame,
    threads::Threads,
    ticker::Ticker,
};

/// The longest name of a format.
const FORMAT_BYTES: usize = 256;

/// The largest configuration schema.
const SCHEMA_BYTES: u64 = 1 << 20;

/// How much of the reason for a failure is kept.
const REASON_BYTES: usize = 64;

/// A loaded provisioner. Cheap to clone; calls on it run side by side, each in an instance of its own.
///
/// Every call gets a fresh instance, which is dropped with the call: nothing is left behind by one call for the next, and
/// nothing of an instance that trapped or ran out of time is used again.
#[derive(Clone)]
pub struct Provisioner {
    loaded: Arc<Loaded>,
}

/// What became of a request.
#[derive(Debug)]
pub struct Provisioned {
    /// The release, or why there is none.
    pub result: Result<Release, CallError>,
    /// The facts about the target that the provisioner read. A target with the same values gets the same result.
    pub asked: RecordedFacts,
}

/// What is kept of a component.
pub(crate) struct Loaded {
    pub(crate) identity: Identity,
    facts: Facts,
    pub(crate) size: Size,
    pub(crate) plugin: PluginPre<State>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) share: Arc<Semaphore>,
    schemas: Arc<Schemas>,
}

impl Loaded {
    pub(crate) fn new(
        digest: Digest,
        facts: Facts,
        size: Size,
        plugin: PluginPre<State>,
        threads: Arc<Threads>,
        ticker: Arc<Ticker>,
    ) -> Self {
        let identity = Identity { name: facts.name.clone(), version: facts.version.clone(), digest };
        let share = threads.share();
        Self { identity, facts, size, plugin, threads, ticker, share, schemas: Arc::default() }
    }
}

impl Provisioner {
    pub(crate) fn new(loaded: Arc<Loaded>) -> Self {
        Self { loaded }
    }

    /// The digest of the component's bytes.
    pub fn digest(&self) -> &Digest {
        &self.loaded.identity.digest
    }

    /// What the component says about itself.
    pub fn facts(&self) -> &Facts {
        &self.loaded.facts
    }

    /// The name of the format, if the provisioner recognises the content.
    pub async fn detect(&self, content: Arc<dyn Content>, limits: &Limits) -> Result<Option<String>, CallError> {
        let (format, _) = call::run(&self.loaded, "detect", content, limits, |store, plugin| {
            Box::pin(async move {
                let interface = plugin.chandler_provisioner_provisioner();
                interface.call_detect(store).await.map_err(Stop::Trap)
            })
        })
        .await?;
        let odd = |format: &str| format.is_empty() || format.len() > FORMAT_BYTES || format.contains(is_deceptive);
        if format.as_deref().is_some_and(odd) {
            let problem = format!("the name of the format is not 1 to {FORMAT_BYTES} bytes without control characters");
            return Err(CallError::InvalidOutput(Box::new(InvalidOutput::Contract(problem))));
        }
        Ok(format)
    }

    /// The JSON Schema of the configuration for this content, if there is one.
    pub async fn config_schema(&self, content: Arc<dyn Content>, limits: &Limits) -> Result<Option<String>, CallError> {
        let findings = limits.diagnostics;
        let (schema, _) = call::run(&self.loaded, "config-schema", content, limits, move |store, plugin| {
            Box::pin(async move { config_schema(store, &plugin, findings).await })
        })
        .await?;
        Ok(schema)
    }

    /// The objects for the request. The configuration is checked against the schema for this content first, in the same
    /// call and within the same limits. Where it does not match there are no objects, and the provisioner is asked only for
    /// what else is wrong.
    pub async fn provision(
        &self,
        request: &Request,
        content: Arc<dyn Content>,
        limits: &Limits,
    ) -> Result<Release, CallError> {
        self.provision_and_record(request, content, limits).await.result
    }

    /// The same together with what the provisioner asked about its target.
    pub async fn provision_and_record(
        &self,
        request: &Request,
        content: Arc<dyn Content>,
        limits: &Limits,
    ) -> Provisioned {
        let asked = Asked::default();
        let result = self.provision_noting(request, content, limits, &asked).await;
        // A call that ran out of time may still hold it; what it asks from now on does not matter to this result.
        let asked = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Provisioned { result, asked }
    }

    async fn provision_noting(
        &self,
        request: &Request,
        content: Arc<dyn Content>,
        limits: &Limits,
        asked: &Asked,
    ) -> Result<Release, CallError> {
        let (findings, time) = (limits.diagnostics, limits.time);
        let (config, requested) = (request.config.clone(), Requested::new(request.clone(), Arc::clone(asked)));
        let schemas = Arc::clone(&self.loaded.schemas);
        let ((), state) = call::run(&self.loaded, "provision", content, limits, move |store, plugin| {
            Box::pin(async move {
                let schemas = (schemas, Instant::now() + time);
                provision(store, &plugin, (Value::Object(config), requested), schemas, findings).await
            })
        })
        .await?;
        // Sorting and hashing some megabytes is work for a thread of its own, too.
        let release = self.loaded.threads.run_blocking(move || state.output.into_release()).await;
        release.map_err(|_| CallError::Internal("the host panicked while it put the release together".into()))
    }
}

async fn config_schema(store: &mut Store<State>, plugin: &Plugin, findings_limit: u32) -> Result<Option<String>, Stop> {
    let interface = plugin.chandler_provisioner_provisioner();
    let schema = interface.call_config_schema(store).await.map_err(Stop::Trap)?;
    let schema = schema.map_err(|failure| Stop::Error(refusal(failure, Vec::new(), findings_limit)))?;
    if schema.as_ref().is_some_and(|schema| schema.len() as u64 > SCHEMA_BYTES) {
        let exceeded = LimitExceeded { kind: LimitKind::SchemaBytes, limit: SCHEMA_BYTES, object: None };
        return Err(Stop::Error(CallError::LimitExceeded(Box::new(exceeded))));
    }
    Ok(schema)
}

async fn provision(
    store: &mut Store<State>,
    plugin: &Plugin,
    (config, requested): (Value, Requested),
    (schemas, deadline): (Arc<Schemas>, Instant),
    findings_limit: u32,
) -> Result<(), Stop> {
    let mismatch = match config_schema(store, plugin, findings_limit).await? {
        Some(schema) => {
            // A foreign schema may take a while even within its limits, and a panic in its reader ends this call alone.
            // It cannot be interrupted: the slot of the call is taken until it ends, so that no more of them run than slots
            // there are, whatever becomes of their calls.
            let slot = store.data().slot.clone();
            let check = tokio::task::spawn_blocking(move || {
                let _slot = slot;
                schemas.read(&schema, deadline)?.check(&config)
            });
            let check = check.await;
            let panicked = |_| schema::unusable("could not be evaluated".into());
            check.unwrap_or_else(|error| Err(panicked(error))).map_err(Stop::Error)?
        }
        None => Vec::new(),
    };
    store.data_mut().request = Some(requested);
    let interface = plugin.chandler_provisioner_provisioner();
    let outcome = interface.call_provision(&mut *store).await;
    let refusal = outcome.map(|outcome| {
        let failure = outcome.err()?;
        Some(refusal(failure, store.data_mut().output.take_findings(), findings_limit))
    });
    if !mismatch.is_empty() {
        return Err(Stop::Error(mismatched(mismatch, refusal.ok().flatten())));
    }
    match refusal.map_err(Stop::Trap)? {
        None => Ok(()),
        Some(error) => Err(Stop::Error(error)),
    }
}

/// A failure, with what was reported before it behind its own findings.
fn refusal(failure: Failure, reported: Vec<Diagnostic>, findings_limit: u32) -> CallError {
    let (failed, findings): (fn(Vec<Diagnostic>) -> CallError, _) = match failure {
        Failure::InvalidContent(findings) => (CallError::InvalidContent, findings),
        Failure::InvalidConfig(findings) => (CallError::InvalidConfiguration, findings),
        Failure::Unsupported(findings) => (CallError::UnsupportedContent, findings),
        Failure::Internal(findings) => (|findings| CallError::Failed { reason: None, findings }, findings),
        Failure::Other(other) => {
            let reason = Some(tame(other.reason, REASON_BYTES));
            let findings = all(other.findings, reported, findings_limit);
            return findings.map_or_else(|error| error, |findings| CallError::Failed { reason, findings });
        }
    };
    all(findings, reported, findings_limit).map_or_else(|error| error, failed)
}

/// Findings and what was reported before them; a failure has at least one of its own.
fn all(
    findings: Vec<GuestDiagnostic>,
    reported: Vec<Diagnostic>,
    findings_limit: u32,
) -> Result<Vec<Diagnostic>, CallError> {
    if findings.is_empty() {
        let problem = InvalidOutput::Contract("a failure has no findings".to_owned());
        return Err(CallError::InvalidOutput(Box::new(problem)));
    }
    let mut findings = diagnostics(findings, findings_limit);
    findings.extend(reported);
    Ok(findings)
}

/// Why a configuration that does not match its schema is refused. The provisioner was asked all the same, for what else is
/// wrong: of content that cannot be installed at all, that is the more useful reason. Anything else that came of it is no
/// matter, since a provisioner need not be ready for such a configuration.
fn mismatched(mismatch: Vec<Diagnostic>, refusal: Option<CallError>) -> CallError {
    let with = |mut findings: Vec<Diagnostic>| {
        // A provisioner that checks again says the same, often with a better place and with what would help.
        let told = |new: &Diagnostic, known: &Diagnostic| {
            let path = |finding: &Diagnostic| finding.location.as_ref().map(|place| place.path.clone());
            new.message == known.message && path(new) == path(known)
        };
        for new in &mismatch {
            if !findings.iter().any(|known| told(new, known)) {
                findings.push(new.clone());
            }
        }
        findings
    };
    match refusal {
        Some(CallError::InvalidContent(findings)) => CallError::InvalidContent(with(findings)),
        Some(CallError::UnsupportedContent(findings)) => CallError::UnsupportedContent(with(findings)),
        Some(CallError::InvalidConfiguration(findings)) => CallError::InvalidConfiguration(with(findings)),
        _ => CallError::InvalidConfiguration(mismatch),
    }
}
