//! A loaded provisioner and its three calls.

use std::{sync::Arc, time::Instant};

use chandler_core::{Content, Diagnostic, Digest, RecordedFacts, Release, Request, Severity, text::is_deceptive};
use chandler_turns::Requester;
use serde_json::Value;
use wasmtime::Store;

use crate::{
    CallError, CallLog, Facts, InvalidOutput, LimitExceeded, LimitKind, Limits,
    call::{self, Account, BodyError, Usage, Used},
    contract::bindings::{
        Plugin, PluginPre,
        chandler::provisioner::types::{Diagnostic as GuestDiagnostic, Failure},
    },
    host::{Asked, Identity, Requested, State, diagnostics},
    schema::{self, Schemas},
    size::Size,
    text::sanitize,
    threads::{ShareOfSlots, Threads},
    ticker::Ticker,
};

/// The longest name of a format, in bytes.
const FORMAT_BYTES: usize = 256;

/// The largest configuration schema, in bytes.
const SCHEMA_BYTES: u64 = 1 << 20;

/// How many bytes of a failure's reason are kept.
const REASON_BYTES: usize = 64;

/// A loaded provisioner. Cheap to clone; concurrent calls run in separate instances.
///
/// Every call gets a fresh instance, which is dropped when the call ends: no call leaves state for the next one, and an
/// instance that trapped or timed out is never reused.
#[derive(Clone)]
pub struct Provisioner {
    loaded: Arc<Loaded>,
    requester: Requester,
}

/// The outcome of a request.
#[derive(Debug)]
pub struct Provisioned {
    /// The release, or why there is none.
    pub result: Result<Release, CallError>,
    /// The facts about the target that the provisioner read. A target with the same values gets the same result.
    pub asked: RecordedFacts,
    /// What the call used; zero if it did not begin.
    pub usage: Usage,
    /// What the call logged.
    pub log: CallLog,
}

/// A loaded component.
pub(crate) struct Loaded {
    pub(crate) identity: Identity,
    facts: Facts,
    pub(crate) size: Size,
    pub(crate) plugin: PluginPre<State>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) ticker: Arc<Ticker>,
    pub(crate) share: ShareOfSlots,
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
        let share = threads.share(identity.digest.as_str());
        Self { identity, facts, size, plugin, threads, ticker, share, schemas: Arc::default() }
    }
}

impl Provisioner {
    pub(crate) fn new(loaded: Arc<Loaded>) -> Self {
        Self { loaded, requester: Requester::controller() }
    }

    /// This provisioner, called on behalf of a requester: those that wait for a component take turns.
    #[must_use]
    pub fn on_behalf_of(&self, requester: &Requester) -> Self {
        Self { loaded: Arc::clone(&self.loaded), requester: requester.clone() }
    }

    /// The digest of the component's bytes.
    pub fn digest(&self) -> &Digest {
        &self.loaded.identity.digest
    }

    /// The metadata of the component.
    pub fn facts(&self) -> &Facts {
        &self.loaded.facts
    }

    /// The name of the format, if the provisioner recognises the content.
    pub async fn detect(&self, content: Arc<dyn Content>, limits: &Limits) -> Result<Option<String>, CallError> {
        let (format, _) =
            call::run((&self.loaded, &self.requester), "detect", content, limits, &Used::default(), |store, plugin| {
                Box::pin(async move {
                    let interface = plugin.chandler_provisioner_provisioner();
                    interface.call_detect(store).await.map_err(BodyError::Trap)
                })
            })
            .await?;
        let invalid = |format: &str| format.is_empty() || format.len() > FORMAT_BYTES || format.contains(is_deceptive);
        if format.as_deref().is_some_and(invalid) {
            let problem =
                format!("detect must return a format name of 1 to {FORMAT_BYTES} bytes without control characters");
            return Err(CallError::InvalidOutput(Box::new(InvalidOutput::Contract(problem))));
        }
        Ok(format)
    }

    /// The JSON Schema of the configuration for this content, if there is one.
    pub async fn config_schema(&self, content: Arc<dyn Content>, limits: &Limits) -> Result<Option<String>, CallError> {
        let findings = limits.diagnostics;
        let used = Used::default();
        let (schema, _) = call::run(
            (&self.loaded, &self.requester),
            "config-schema",
            content,
            limits,
            &used,
            move |store, plugin| Box::pin(async move { config_schema(store, &plugin, findings).await }),
        )
        .await?;
        Ok(schema)
    }

    /// Renders the objects for a request. The configuration is first validated against the schema for this content, in
    /// the same call and within the same limits. If it is invalid, no objects are returned, and the provisioner is
    /// called only for further findings.
    pub async fn provision(
        &self,
        request: &Request,
        content: Arc<dyn Content>,
        limits: &Limits,
    ) -> Result<Release, CallError> {
        self.provision_and_record(request, content, limits).await.result
    }

    /// Like [`provision`](Self::provision), and also returns what the provisioner asked about its target.
    pub async fn provision_and_record(
        &self,
        request: &Request,
        content: Arc<dyn Content>,
        limits: &Limits,
    ) -> Provisioned {
        let (asked, used) = (Asked::default(), Used::default());
        let result = self.provision_recording(request, content, limits, &asked, &used).await;
        // A call that timed out may still hold the lock; questions that it asks from now on do not affect this result.
        let asked = asked.lock().clone();
        let Account { usage, log } = std::mem::take(&mut *used.lock());
        Provisioned { result, asked, usage, log }
    }

    async fn provision_recording(
        &self,
        request: &Request,
        content: Arc<dyn Content>,
        limits: &Limits,
        asked: &Asked,
        used: &Used,
    ) -> Result<Release, CallError> {
        let (findings, time) = (limits.diagnostics, limits.time);
        let (config, requested) = (request.config.clone(), Requested::new(request.clone()));
        let asked = Arc::clone(asked);
        let schemas = Arc::clone(&self.loaded.schemas);
        let ((), state) =
            call::run((&self.loaded, &self.requester), "provision", content, limits, used, move |store, plugin| {
                Box::pin(async move {
                    // Before the schema is read: `config-schema` may query features.
                    store.data_mut().asked = asked;
                    let config =
                        ConfigCheck { config: Value::Object(config), schemas, deadline: Instant::now() + time };
                    provision(store, &plugin, config, requested, findings).await
                })
            })
            .await?;
        // Sorting and hashing megabytes also belongs on a blocking thread.
        let release = self.loaded.threads.run_blocking(move || state.output.into_release()).await;
        release.map_err(|_| CallError::Internal("the host panicked while it assembled the release".into()))
    }
}

async fn config_schema(
    store: &mut Store<State>,
    plugin: &Plugin,
    findings_limit: u32,
) -> Result<Option<String>, BodyError> {
    let interface = plugin.chandler_provisioner_provisioner();
    let schema = interface.call_config_schema(store).await.map_err(BodyError::Trap)?;
    let schema = schema.map_err(|failure| BodyError::Error(failure_error(failure, Vec::new(), findings_limit)))?;
    if schema.as_ref().is_some_and(|schema| schema.len() as u64 > SCHEMA_BYTES) {
        let exceeded = LimitExceeded { kind: LimitKind::SchemaBytes, limit: SCHEMA_BYTES, object: None };
        return Err(BodyError::Error(CallError::LimitExceeded(Box::new(exceeded))));
    }
    Ok(schema)
}

/// What checks the configuration of a request.
struct ConfigCheck {
    config: Value,
    schemas: Arc<Schemas>,
    /// When reading the schema must end.
    deadline: Instant,
}

async fn provision(
    store: &mut Store<State>,
    plugin: &Plugin,
    ConfigCheck { config, schemas, deadline }: ConfigCheck,
    requested: Requested,
    findings_limit: u32,
) -> Result<(), BodyError> {
    let mismatch = match config_schema(store, plugin, findings_limit).await? {
        Some(schema) => {
            store.data_mut().has_schema = true;
            // Evaluating an untrusted schema may take a while even within its limits, and a panic in the validator
            // fails only this call. It cannot be interrupted, so it holds the slot of the call until it ends: there are
            // never more evaluations than slots, even after their calls ended.
            let slot = store.data().slot.clone();
            let check = tokio::task::spawn_blocking(move || {
                let _slot = slot;
                schemas.read(&schema, deadline)?.check(&config)
            });
            let check = check.await;
            let panicked = |_| schema::unusable("could not be evaluated".into());
            check.unwrap_or_else(|error| Err(panicked(error))).map_err(BodyError::Error)?
        }
        None => Vec::new(),
    };
    store.data_mut().request = Some(requested);
    let interface = plugin.chandler_provisioner_provisioner();
    let outcome = interface.call_provision(&mut *store).await;
    let refusal = outcome.map(|outcome| {
        let failure = outcome.err()?;
        Some(failure_error(failure, store.data_mut().output.take_findings(), findings_limit))
    });
    if !mismatch.is_empty() {
        return Err(BodyError::Error(configuration_error(mismatch, refusal.ok().flatten())));
    }
    match refusal.map_err(BodyError::Trap)? {
        None => Ok(()),
        Some(error) => Err(BodyError::Error(error)),
    }
}

/// The error for a failure: its own findings, followed by those reported before it.
fn failure_error(failure: Failure, reported: Vec<Diagnostic>, findings_limit: u32) -> CallError {
    let (failed, findings): (fn(Vec<Diagnostic>) -> CallError, _) = match failure {
        Failure::InvalidContent(findings) => (CallError::InvalidContent, findings),
        Failure::InvalidConfig(findings) => (CallError::InvalidConfiguration, findings),
        Failure::Unsupported(findings) => (CallError::UnsupportedContent, findings),
        Failure::Internal(findings) => (|findings| CallError::Failed { reason: None, findings }, findings),
        Failure::Other(other) => {
            let reason = Some(sanitize(other.reason, REASON_BYTES));
            let findings = combine_findings(other.findings, reported, findings_limit);
            return findings.map_or_else(|error| error, |findings| CallError::Failed { reason, findings });
        }
    };
    combine_findings(findings, reported, findings_limit).map_or_else(|error| error, failed)
}

/// The findings of a failure, followed by those reported before it. A failure must have at least one finding of its
/// own.
fn combine_findings(
    findings: Vec<GuestDiagnostic>,
    reported: Vec<Diagnostic>,
    findings_limit: u32,
) -> Result<Vec<Diagnostic>, CallError> {
    if findings.is_empty() {
        let problem = InvalidOutput::Contract("the provisioner returned a failure without findings".to_owned());
        return Err(CallError::InvalidOutput(Box::new(problem)));
    }
    let mut findings = diagnostics(findings, findings_limit);
    findings.extend(reported);
    Ok(findings)
}

/// The error for a configuration that does not match its schema. The provisioner was called anyway for further
/// findings: if the content cannot be installed with any configuration, that reason is more useful. Any other outcome
/// is ignored, since a provisioner need not handle an invalid configuration.
fn configuration_error(mismatch: Vec<Diagnostic>, refusal: Option<CallError>) -> CallError {
    // A provisioner that validates the configuration itself reports the same fields, often with a better location and a
    // help text.
    let with = |mut findings: Vec<Diagnostic>| {
        let new: Vec<_> = mismatch.iter().filter(|new| !findings.iter().any(|known| same_field(known, new))).collect();
        findings.extend(new.into_iter().cloned());
        findings
    };
    match refusal {
        Some(CallError::InvalidContent(findings)) => CallError::InvalidContent(with(findings)),
        Some(CallError::UnsupportedContent(findings)) => CallError::UnsupportedContent(with(findings)),
        Some(CallError::InvalidConfiguration(findings)) => CallError::InvalidConfiguration(with(findings)),
        _ => CallError::InvalidConfiguration(mismatch),
    }
}

/// Whether two findings are errors about the same field of the configuration.
fn same_field(known: &Diagnostic, new: &Diagnostic) -> bool {
    let field = |finding: &Diagnostic| {
        finding.location.as_ref().map(|place| (place.path.clone(), place.pointer.clone().unwrap_or_default()))
    };
    known.severity == Severity::Error && field(known) == field(new)
}

#[cfg(test)]
mod tests {
    use chandler_core::{Diagnostic, Location, Severity};

    use super::{CallError, configuration_error};

    fn finding(severity: Severity, pointer: &str, message: &str) -> Diagnostic {
        let place = Location { path: "config".into(), pointer: Some(pointer.to_owned()), ..Location::default() };
        Diagnostic { location: Some(place), ..Diagnostic::new(severity, "InvalidConfiguration", message.to_owned()) }
    }

    #[test]
    fn a_field_that_the_provisioner_refuses_is_reported_once() {
        let mismatch = vec![
            finding(Severity::Error, "/replicas", "got number, want string"),
            finding(Severity::Error, "/image", "got number, want string"),
            finding(Severity::Error, "/other", "unknown field"),
        ];
        let refusal = CallError::InvalidConfiguration(vec![
            finding(Severity::Error, "/replicas", "put the number of replicas into quotes"),
            finding(Severity::Warning, "/image", "the image has no digest"),
        ]);
        let findings = match configuration_error(mismatch, Some(refusal)) {
            CallError::InvalidConfiguration(findings) => findings,
            _ => Vec::new(),
        };
        let messages: Vec<_> = findings.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "put the number of replicas into quotes",
                "the image has no digest",
                "got number, want string",
                "unknown field"
            ]
        );
    }
}
