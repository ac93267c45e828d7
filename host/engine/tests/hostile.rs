//! A misbehaving guest fails with the error for its misbehaviour, and nothing else is affected.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::{Content, Digest, Entry, MemoryContent, ReadError, Reason};
use chandler_engine::{CallError, Limits, Provisioner, Retry};
use serde_json::json;

use crate::support::{self, content, engine, engine_for_two, failure, hostile, request, served};

/// Limits that stop a spinning guest early.
fn short() -> Limits {
    Limits { time: Duration::from_millis(200), ..Limits::default() }
}

#[tokio::test]
async fn a_well_behaved_guest_succeeds() {
    let provisioner = hostile(&engine()).await;
    assert_eq!(provisioner.facts().name, "hostile");
    assert_eq!(provisioner.facts().version, "1.2.3");
    assert_eq!(provisioner.facts().formats, ["hostile+v0"]);
    let limits = Limits::default();
    let files = content([("detect", "hostile+v0"), ("config-schema", "{}")]);
    assert_eq!(provisioner.detect(Arc::clone(&files), &limits).await.unwrap().as_deref(), Some("hostile+v0"));
    assert_eq!(provisioner.config_schema(Arc::clone(&files), &limits).await.unwrap().as_deref(), Some("{}"));
    let release = provisioner.provision(&request(json!({"a": [1, "x"]})), files, &limits).await.unwrap();
    assert_eq!(release.objects().len(), 1);
    assert_eq!(release.objects()[0].value["data"], json!({"config": r#"{"a":[1,"x"]}"#}));
    assert_eq!(provisioner.detect(content([]), &limits).await.unwrap(), None);
}

#[tokio::test]
async fn a_spinning_guest_times_out_in_every_function() {
    let provisioner = hostile(&engine()).await;
    let limits = short();
    let (files, nothing) = (content([("detect", "spin"), ("config-schema", "spin")]), request(json!({})));
    let detect = served(async || provisioner.detect(Arc::clone(&files), &limits).await).await.unwrap_err();
    let schema = served(async || provisioner.config_schema(Arc::clone(&files), &limits).await).await.unwrap_err();
    let before = served(async || provisioner.provision(&nothing, Arc::clone(&files), &limits).await).await.unwrap_err();
    let provision = failure(&provisioner, "spin", &limits).await;
    for error in [detect, schema, before, provision] {
        assert_eq!((error.reason(), error.retry()), (Reason::PluginTimeout, Retry::BackOff));
        assert_eq!(error.to_string(), "the provisioner did not finish within 200 ms");
    }
}

#[tokio::test]
async fn out_of_memory_panics_and_aborts_have_their_own_errors() {
    let provisioner = hostile(&engine()).await;
    let limits = Limits { memory: 32 << 20, ..Limits::default() };
    let error = failure(&provisioner, "allocate", &limits).await;
    assert_eq!((error.reason(), error.retry()), (Reason::PluginOutOfMemory, Retry::BackOff));
    assert_eq!(error.to_string(), "the provisioner needs more than 32 MiB of memory");

    let error = failure(&provisioner, "panic", &limits).await;
    assert_eq!((error.reason(), error.retry()), (Reason::PluginTrapped, Retry::BackOff));
    let text = error.to_string();
    assert!(text.contains("unreachable"), "{text}");
    assert!(text.contains("the hold is on fire"), "{text}");
    assert_eq!(text, failure(&provisioner, "panic", &limits).await.to_string(), "the text is stable");

    let error = failure(&provisioner, "abort", &limits).await;
    assert_eq!(error.reason(), Reason::PluginTrapped);
    assert!(!error.to_string().contains("on fire"), "state of an earlier call is left: {error}");
}

#[tokio::test]
async fn a_stack_overflow_is_reported_as_a_trap() {
    let provisioner = hostile(&engine()).await;
    let error = failure(&provisioner, "recurse", &Limits::default()).await;
    assert_eq!(error.reason(), Reason::PluginTrapped);
    assert!(
        error.to_string().contains("call stack exhausted") || error.to_string().contains("out of bounds"),
        "{error}"
    );
}

#[tokio::test]
async fn an_instance_is_never_reused() {
    let provisioner = hostile(&engine()).await;
    let limits = Limits::default();
    let files = content([("detect", "count-calls")]);
    for _ in 0..3 {
        let format = provisioner.detect(Arc::clone(&files), &limits).await.unwrap();
        assert_eq!(format.as_deref(), Some("count-calls"));
        failure(&provisioner, "panic", &limits).await;
    }
}

#[tokio::test]
async fn exceeding_an_output_limit_fails_the_call() {
    let provisioner = hostile(&engine()).await;
    let limits = Limits { time: Duration::from_mins(1), objects: 1000, ..Limits::default() };
    let mut lines = Vec::new();
    for behaviour in ["emit-million", "emit-huge", "probe-million", "transfer-huge", "read-forever"] {
        let error = failure(&provisioner, behaviour, &limits).await;
        assert_eq!(
            (error.reason(), error.retry()),
            (Reason::PluginLimitExceeded, Retry::OnChange),
            "{behaviour}: {error}"
        );
        lines.push(format!("{behaviour}: {error}"));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    emit-million: the provisioner exceeded the limit of 1000 objects with object 1000
    emit-huge: the provisioner exceeded the limit of 3145728 bytes in one object with object 1 (from manifests/a.yaml:7)
    probe-million: the provisioner exceeded the limit of 200 probes
    transfer-huge: the provisioner exceeded the limit of 8388608 bytes in one transfer to the host
    read-forever: the provisioner exceeded the limit of 67108864 bytes read from the bundle
    ");
}

#[tokio::test]
async fn an_invalid_object_fails_the_call() {
    let provisioner = hostile(&engine()).await;
    let mut lines = Vec::new();
    for behaviour in ["emit-garbage", "emit-nameless", "emit-deep", "emit-twice", "emit-bad-and-panic"] {
        let error = failure(&provisioner, behaviour, &Limits::default()).await;
        assert_eq!((error.reason(), error.retry()), (Reason::InvalidOutput, Retry::OnChange), "{behaviour}: {error}");
        lines.push(format!("{behaviour}: {error}"));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    emit-garbage: the output of the provisioner is invalid: object 1 (from manifests/a.yaml:7) is not JSON: expected value at line 1 column 1
    emit-nameless: the output of the provisioner is invalid: object 1 (from manifests/a.yaml:7) has no metadata.name
    emit-deep: the output of the provisioner is invalid: object 1 (from manifests/a.yaml:7) is not JSON: recursion limit exceeded at line 1 column 128
    emit-twice: the output of the provisioner is invalid: object 1 (ConfigMap first, from manifests/a.yaml:7) is the same object as object 0
    emit-bad-and-panic: the output of the provisioner is invalid: object 1 (from manifests/a.yaml:7) is not JSON: expected value at line 1 column 1
    ");
}

#[tokio::test]
async fn excess_logs_and_findings_are_dropped_without_failing_the_call() {
    let provisioner = hostile(&engine()).await;
    let limits = Limits { time: Duration::from_mins(1), ..Limits::default() };
    for behaviour in ["log-forever", "log-huge", "report-million", "read-oddly"] {
        let files = content([("provision", behaviour), ("large", &"x".repeat(2 << 20))]);
        let release = provisioner.provision(&request(json!({})), files, &limits).await.unwrap();
        if behaviour == "report-million" {
            assert_eq!(release.findings().len(), 201);
            assert!(release.findings().iter().all(|finding| finding.message.len() <= 2048));
            assert_eq!(release.findings()[200].code, "FindingsDropped");
        }
    }
}

#[tokio::test]
async fn failures_of_the_guest_keep_their_kind_and_are_bounded() {
    let provisioner = hostile(&engine()).await;
    let limits = Limits::default();
    let mut lines = Vec::new();
    for behaviour in ["invalid-content", "invalid-config", "unsupported", "internal", "other", "nothing-found"] {
        let error = failure(&provisioner, behaviour, &limits).await;
        lines.push(format!("{} {:?} {error}", error.reason(), error.retry()));
    }
    insta::assert_snapshot!(lines.join("\n"), @r"
    InvalidContent OnChange invalid content: manifests/a.yaml: it is so
    InvalidConfiguration OnChange invalid configuration: manifests/a.yaml: it is so
    UnsupportedContent OnChange unsupported content: manifests/a.yaml: it is so
    ProvisionFailed BackOff the provisioner failed: manifests/a.yaml: it is so
    ProvisionFailed BackOff the provisioner failed (LicenceExpired): manifests/a.yaml: it is so
    InvalidOutput OnChange the output of the provisioner is invalid: the provisioner returned a failure without findings
    ");
    let error = failure(&provisioner, "huge-diagnostic", &limits).await;
    assert_eq!(error.reason(), Reason::InvalidContent);
    assert!(error.to_string().len() < 8192, "{}", error.to_string().len());
    // The SDK itself returns 200 at most.
    let limits = Limits { diagnostics: 50, ..limits };
    let error = failure(&provisioner, "many-diagnostics", &limits).await;
    assert_eq!(error.diagnostics().len(), 51);
    assert!(error.to_string().ends_with("  - and 40 more"), "{error}");
}

#[tokio::test]
async fn a_failure_of_config_schema_fails_the_call() {
    let provisioner = hostile(&engine()).await;
    let files = || content([("config-schema", "invalid-content"), ("provision", "panic"), ("argument", "no index")]);
    let limits = Limits::default();
    let schema = provisioner.config_schema(files(), &limits).await.unwrap_err();
    let provision = provisioner.provision(&request(json!({})), files(), &limits).await.unwrap_err();
    for error in [schema, provision] {
        assert_eq!((error.reason(), error.retry()), (Reason::InvalidContent, Retry::OnChange));
        assert_eq!(error.to_string(), "invalid content: manifests/a.yaml: no index");
    }
}

#[tokio::test]
async fn results_are_bounded() {
    let provisioner = hostile(&engine()).await;
    let limits = Limits::default();
    let error = provisioner.detect(content([("detect", "long-name")]), &limits).await.unwrap_err();
    assert_eq!(error.reason(), Reason::InvalidOutput);
    let error = provisioner.config_schema(content([("config-schema", "huge")]), &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "the provisioner exceeded the limit of 1048576 bytes in the configuration schema");
}

#[tokio::test]
async fn an_invalid_configuration_is_rejected_whatever_the_guest_returns() {
    let provisioner = hostile(&engine()).await;
    let limits = Limits::default();
    let schema = r#"{"type": "object", "required": ["size"], "properties": {"size": {"type": "integer"}}}"#;
    let mut lines = Vec::new();
    for behaviour in ["panic", "honest", "internal", "invalid-config", "invalid-content", "unsupported"] {
        let files = content([("config-schema", schema), ("provision", behaviour), ("argument", "it is so")]);
        let error = provisioner.provision(&request(json!({})), files, &limits).await.unwrap_err();
        assert!(error.diagnostics().iter().any(|finding| finding.location.as_ref().unwrap().path == "config"));
        lines.push(format!("{behaviour}: {error}"));
    }
    // If the content cannot be installed with any configuration, that is the more useful reason.
    insta::assert_snapshot!(lines.join("\n"), @r#"
    panic: invalid configuration: config: required field "size" is missing
    honest: invalid configuration: config: required field "size" is missing
    internal: invalid configuration: config: required field "size" is missing
    invalid-config: invalid configuration: multiple errors found:
      - manifests/a.yaml: it is so
      - config: required field "size" is missing
    invalid-content: invalid content: multiple errors found:
      - manifests/a.yaml: it is so
      - config: required field "size" is missing
    unsupported: unsupported content: multiple errors found:
      - manifests/a.yaml: it is so
      - config: required field "size" is missing
    "#);
    let files = content([("config-schema", schema), ("provision", "panic")]);
    let error = provisioner.provision(&request(json!({"size": 3})), files, &limits).await.unwrap_err();
    assert_eq!(error.reason(), Reason::PluginTrapped);
    let files = content([("config-schema", "no schema")]);
    let error = provisioner.provision(&request(json!({})), files, &limits).await.unwrap_err();
    assert_eq!(error.reason(), Reason::InvalidOutput);
}

/// Content that fails to be read.
struct Broken(MemoryContent);

impl Content for Broken {
    fn digest(&self) -> &chandler_core::Digest {
        self.0.digest()
    }

    fn total_bytes(&self) -> u64 {
        self.0.total_bytes()
    }

    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<chandler_core::Entry> {
        self.0.entries(prefix, after, limit)
    }

    fn read(&self, path: &str, _: u64, _: usize) -> Result<Vec<u8>, chandler_core::ReadError> {
        assert_ne!(path, "config-schema", "the host panics here");
        let source = std::io::Error::other("the disk is gone");
        Err(chandler_core::ReadError::Io { path: path.to_owned(), source })
    }
}

#[tokio::test]
async fn a_failure_of_the_host_is_an_internal_error() {
    let provisioner = hostile(&engine()).await;
    let broken: Arc<dyn Content> = Arc::new(Broken(MemoryContent::new([("detect", "x")])));
    let limits = Limits::default();
    let error = provisioner.detect(Arc::clone(&broken), &limits).await.unwrap_err();
    assert_eq!((error.reason(), error.retry()), (Reason::InternalError, Retry::BackOff));
    assert_eq!(error.to_string(), "internal error: failed to read the content of the bundle: detect: the disk is gone");
    let error = provisioner.config_schema(broken, &limits).await.unwrap_err();
    assert_eq!(error.to_string(), "internal error: the host panicked during the call");
    assert_eq!(provisioner.detect(content([]), &limits).await.unwrap(), None, "other calls still work");
}

/// While guests spin on all of their threads, the threads of the host stay free, and a dropped call releases its slot.
#[tokio::test]
async fn spinning_guests_do_not_block_the_host() {
    let engine = engine_for_two();
    let provisioner = hostile(&engine).await;
    let limits = Limits { time: Duration::from_mins(10), ..Limits::default() };
    let spin = |provisioner: &Provisioner| {
        let (provisioner, limits) = (provisioner.clone(), limits.clone());
        tokio::spawn(async move { provisioner.detect(content([("detect", "spin")]), &limits).await })
    };
    let spinning: Vec<_> = (0..4).map(|_| spin(&provisioner)).collect();
    // Timers of the host's runtime, as used to renew a lease.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(spinning.iter().all(|task| !task.is_finished()), "a guest stopped spinning");
    // This provisioner uses only its share of the slots, so another one need not wait.
    let other = engine.load(&support::plugin("plain.wasm")).await.unwrap();
    assert_eq!(other.detect(content([]), &limits).await.unwrap(), None);
    for task in &spinning {
        task.abort();
    }
    assert_eq!(provisioner.detect(content([]), &limits).await.unwrap(), None, "the slots are free again");
}

#[tokio::test]
async fn a_trap_shows_the_log_and_the_functions_of_the_guest() {
    let provisioner = hostile(&engine()).await;
    let CallError::Trapped(trapped) = failure(&provisioner, "panic", &Limits::default()).await else {
        panic!("not a trap")
    };
    assert!(trapped.frames[0].contains("hostile"), "{:?}", trapped.frames);
    assert!(trapped.log.crash_message().unwrap().contains("panicked at"), "{:?}", trapped.log);
}

/// Files whose reads hold the guest's thread off the processor until more wall time has passed than the guest may use.
struct Held {
    files: MemoryContent,
    limit: Duration,
}

impl Content for Held {
    fn digest(&self) -> &Digest {
        self.files.digest()
    }

    fn total_bytes(&self) -> u64 {
        self.files.total_bytes()
    }

    fn entries(&self, prefix: &str, after: Option<&str>, limit: usize) -> Vec<Entry> {
        self.files.entries(prefix, after, limit)
    }

    fn read(&self, path: &str, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        let began = Instant::now();
        while began.elapsed() <= self.limit {
            std::thread::park_timeout(self.limit);
        }
        self.files.read(path, offset, len)
    }
}

/// Beside a guest that computes without end, which is.
#[tokio::test]
async fn a_guest_without_a_processor_is_not_out_of_time() {
    let provisioner = hostile(&engine()).await;
    let limits = short();
    let held = Held { files: MemoryContent::new([("detect", "hostile+v0")]), limit: limits.time };
    let (held, files): (Arc<dyn Content>, _) = (Arc::new(held), content([("detect", "spin")]));
    let starved = served(async || provisioner.detect(Arc::clone(&held), &limits).await);
    let spinning = served(async || provisioner.detect(Arc::clone(&files), &limits).await);
    let (starved, spinning) = tokio::join!(starved, spinning);
    assert_eq!(starved.unwrap().as_deref(), Some("hostile+v0"));
    assert_eq!(spinning.unwrap_err().reason(), Reason::PluginTimeout);
}

#[test]
fn a_machine_without_time_is_no_fault_of_a_provisioner() {
    let seconds = Duration::from_secs;
    let error = CallError::Starved { limit: seconds(10), used: seconds(2), wall: seconds(300) };
    let text = "the machine is too busy to run the provisioner: it got 2 s of its 10 s in 300 s; Chandler retries";
    assert_eq!(error.to_string(), text);
    assert_eq!((error.reason(), error.retry()), (Reason::MachineBusy, Retry::BackOff));
}
