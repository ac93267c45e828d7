//! The `output` interface: objects that a guest emits, validated as they arrive.

use std::collections::{HashMap, hash_map};

use chandler_core::{Description, Diagnostic, Object, ObjectKey, Probe, ProbeSelector, Release, Severity};
use serde_json::Value;

use super::{
    State,
    description::bounded,
    findings::{FindingList, location},
};
use crate::{
    Emitted, InvalidOutput, LimitExceeded, LimitKind, Limits,
    contract::bindings::chandler::provisioner::{
        output::{Description as GuestDescription, Host, Probe as GuestProbe, Refusal},
        types::{Diagnostic as GuestDiagnostic, Location as GuestLocation},
    },
    text::sanitize,
};

/// The most values (numbers, texts, lists, objects) in all objects together. A value takes two bytes of JSON but about
/// seventy bytes of the host's memory, so the byte limit alone would not bound that memory.
const VALUES: u64 = 2_000_000;

/// How many finalizers a finding names, and the bytes of these names.
const FINALIZERS: usize = 3;
const FINALIZER_BYTES: usize = 256;

/// The byte limit of one probe.
const PROBE_BYTES: u64 = 16 << 10;

/// The output of a guest during one call.
pub(crate) struct Output {
    limits: Limits,
    objects: Vec<Object>,
    indices: HashMap<(String, String, Option<String>, String), usize>,
    bytes: u64,
    values: u64,
    probes: Vec<Probe>,
    findings: FindingList,
    description: Description,
    refusal: Option<(Violation, Refusal)>,
}

/// Why something was rejected. The first violation fails the call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Violation {
    Limit(LimitExceeded),
    Invalid(InvalidOutput),
}

impl Output {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            limits: limits.clone(),
            objects: Vec::new(),
            indices: HashMap::new(),
            bytes: 0,
            values: 0,
            probes: Vec::new(),
            findings: FindingList::new(limits.diagnostics),
            description: Description::default(),
            refusal: None,
        }
    }

    /// The first violation, if any.
    pub(crate) fn violation(&self) -> Option<&Violation> {
        self.refusal.as_ref().map(|(violation, _)| violation)
    }

    /// The bytes of the accepted objects.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of accepted objects.
    pub(crate) fn object_count(&self) -> usize {
        self.objects.len()
    }

    /// Removes and returns the reported findings.
    pub(crate) fn take_findings(&mut self) -> Vec<Diagnostic> {
        std::mem::replace(&mut self.findings, FindingList::new(0)).finish()
    }

    /// Assembles the release.
    pub(crate) fn into_release(self) -> Release {
        Release::new(self.objects, self.probes, self.findings.finish()).described(self.description)
    }

    fn emit(&mut self, json: &[u8], stage: Option<u32>, origin: Option<GuestLocation>) -> Result<u32, Refusal> {
        if let Some((_, refusal)) = &self.refusal {
            return Err(refusal.clone());
        }
        let mut emitted = Emitted { index: self.objects.len(), key: None, origin: origin.map(location) };
        let (size, values) = (json.len() as u64, count_values(json));
        for (kind, value, limit, refusal) in [
            (LimitKind::Objects, self.objects.len() as u64 + 1, u64::from(self.limits.objects), Refusal::TooMany),
            (LimitKind::ObjectBytes, size, self.limits.object_bytes, Refusal::TooLarge),
            (LimitKind::OutputBytes, self.bytes.saturating_add(size), self.limits.output_bytes, Refusal::TooMany),
            (LimitKind::OutputValues, self.values.saturating_add(values), VALUES, Refusal::TooMany),
        ] {
            if value > limit {
                return Err(
                    self.refuse(refusal, Violation::Limit(LimitExceeded { kind, limit, object: Some(emitted) }))
                );
            }
        }
        let object = match Object::parse(json, stage.unwrap_or(0), emitted.origin.clone()) {
            Ok(object) => object,
            Err(problem) => {
                let problem = InvalidOutput::Object { object: emitted, problem };
                return Err(self.refuse(Refusal::Malformed, Violation::Invalid(problem)));
            }
        };
        match self.indices.entry(identity(&object.key)) {
            hash_map::Entry::Occupied(first) => {
                emitted.key = Some(object.key);
                let problem = InvalidOutput::Duplicate { object: emitted, first: *first.get() };
                return Err(self.refuse(Refusal::Duplicate, Violation::Invalid(problem)));
            }
            hash_map::Entry::Vacant(entry) => {
                entry.insert(emitted.index);
            }
        }
        if let Some(finalizers) = finalizers(&object) {
            self.findings.add(|| holds_finalizers(&object, finalizers));
        }
        let id = u32::try_from(emitted.index).unwrap_or(u32::MAX);
        self.bytes = self.bytes.saturating_add(size);
        self.values = self.values.saturating_add(values);
        self.objects.push(object);
        Ok(id)
    }

    fn probe(&mut self, probe: GuestProbe) -> Result<(), Refusal> {
        if let Some((_, refusal)) = &self.refusal {
            return Err(refusal.clone());
        }
        let index = self.probes.len();
        for (kind, value, limit, refusal) in [
            (LimitKind::Probes, index as u64 + 1, u64::from(self.limits.probes), Refusal::TooMany),
            (LimitKind::ProbeBytes, probe_bytes(&probe), PROBE_BYTES, Refusal::TooLarge),
        ] {
            if value > limit {
                return Err(self.refuse(refusal, Violation::Limit(LimitExceeded { kind, limit, object: None })));
            }
        }
        for (field, text) in [("kind", &probe.selector.kind), ("rule", &probe.rule)] {
            if text.is_empty() {
                let problem = InvalidOutput::Probe { index, problem: format!("has no {field}") };
                return Err(self.refuse(Refusal::Malformed, Violation::Invalid(problem)));
            }
        }
        let GuestProbe { selector, rule, message, message_expression } = probe;
        let selector = ProbeSelector {
            group: selector.group,
            kind: selector.kind,
            namespace: selector.namespace,
            name: selector.name,
            labels: selector.labels.into_iter().collect(),
        };
        self.probes.push(Probe { selector, rule, message, message_expression });
        Ok(())
    }

    /// Rejects output from `detect` and `config-schema`, which may only read the content.
    fn not_allowed(&mut self, what: &str) -> Refusal {
        let problem = format!("detect or config-schema called {what}, which only provision may call");
        self.refuse(Refusal::Other(problem.clone()), Violation::Invalid(InvalidOutput::Contract(problem)))
    }

    fn refuse(&mut self, refusal: Refusal, violation: Violation) -> Refusal {
        self.refusal.get_or_insert((violation, refusal)).1.clone()
    }
}

/// The finalizers of an object, if it has any.
fn finalizers(object: &Object) -> Option<&Vec<Value>> {
    let finalizers = object.value.get("metadata")?.get("finalizers")?.as_array()?;
    Some(finalizers).filter(|finalizers| !finalizers.is_empty())
}

/// An API server deletes an object only when a controller has removed its finalizers, so a bundle that sets one that no controller removes
/// cannot be uninstalled.
fn holds_finalizers(object: &Object, finalizers: &[Value]) -> Diagnostic {
    let names: Vec<&str> = finalizers.iter().filter_map(Value::as_str).take(FINALIZERS).collect();
    let more = if finalizers.len() > names.len() { ", ..." } else { "" };
    let names = sanitize(format!("{}{more}", names.join(", ")), FINALIZER_BYTES);
    let message = format!("{} has finalizers ({names}): it is deleted only when a controller removes them", object.key);
    let mut finding = Diagnostic::new(Severity::Warning, "Finalizers", message);
    finding.location.clone_from(&object.origin);
    finding.help =
        Some("remove metadata.finalizers from the bundle: a controller that needs a finalizer adds it".to_owned());
    finding
}

fn probe_bytes(probe: &GuestProbe) -> u64 {
    let GuestProbe { selector, rule, message, message_expression } = probe;
    let labels = selector.labels.iter().flat_map(|(name, value)| [name, value]);
    let optional = [&selector.namespace, &selector.name, message, message_expression].into_iter().flatten();
    let texts = [&selector.group, &selector.kind, rule].into_iter().chain(optional).chain(labels);
    texts.map(|text| text.len() as u64).fold(0, u64::saturating_add)
}

fn identity(key: &ObjectKey) -> (String, String, Option<String>, String) {
    (key.group.clone(), key.kind.clone(), key.namespace.clone(), key.name.clone())
}

/// An upper bound of the number of values in a JSON text: one, plus one for each bracket, comma and colon outside
/// strings.
fn count_values(json: &[u8]) -> u64 {
    let (mut count, mut in_string, mut escaped) = (1_u64, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' | b',' | b':' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

impl Host for State {
    fn emit(
        &mut self,
        object: Vec<u8>,
        stage: Option<u32>,
        origin: Option<GuestLocation>,
    ) -> wasmtime::Result<Result<u32, Refusal>> {
        if self.request.is_none() {
            return Ok(Err(self.output.not_allowed("emit")));
        }
        Ok(self.output.emit(&object, stage, origin))
    }

    fn add_probe(&mut self, probe: GuestProbe) -> wasmtime::Result<Result<(), Refusal>> {
        if self.request.is_none() {
            return Ok(Err(self.output.not_allowed("add-probe")));
        }
        Ok(self.output.probe(probe))
    }

    fn report(&mut self, finding: GuestDiagnostic) -> wasmtime::Result<()> {
        if self.request.is_some() {
            self.output.findings.push(finding);
        }
        Ok(())
    }

    fn describe(&mut self, description: GuestDescription) -> wasmtime::Result<()> {
        if self.request.is_some() {
            self.output.description = bounded(description);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::bindings::chandler::provisioner::{output::Selector, types::Position as GuestPosition};

    fn named(name: &str) -> Vec<u8> {
        format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#).into_bytes()
    }

    fn refusal<T: std::fmt::Debug>(
        limits: &Limits,
        emit: impl FnOnce(&mut Output) -> Result<T, Refusal>,
    ) -> (Refusal, String) {
        let mut output = Output::new(limits);
        assert_eq!(output.emit(&named("first"), None, None), Ok(0), "the id of the first object");
        let error = emit(&mut output).unwrap_err();
        // Everything after a violation is rejected, and the first violation is kept.
        let violation = output.violation().unwrap().clone();
        assert_eq!(output.emit(&named("last"), None, None), Err(error.clone()));
        assert_eq!(output.violation(), Some(&violation));
        let text = match violation {
            Violation::Limit(limit) => limit.to_string(),
            Violation::Invalid(problem) => problem.to_string(),
        };
        (error, text)
    }

    #[test]
    fn invalid_objects_are_rejected() {
        let origin = GuestLocation {
            path: "manifests/a.yaml".into(),
            start: Some(GuestPosition { line: 3, column: 0 }),
            end: None,
            pointer: None,
        };
        let limits = Limits::default();
        let (error, text) = refusal(&limits, |output| output.emit(b"nonsense", None, Some(origin)));
        assert_eq!(error, Refusal::Malformed);
        insta::assert_snapshot!(text, @"object 1 (from manifests/a.yaml:3) is not JSON: expected ident at line 1 column 2");
        let (error, text) = refusal(&limits, |output| output.emit(&named("first"), Some(3), None));
        assert_eq!(error, Refusal::Duplicate);
        insta::assert_snapshot!(text, @"object 1 (ConfigMap first) is the same object as object 0");
        let twice =
            br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"x":[{"image":"a","image":"b"}]}}"#;
        let (error, text) = refusal(&limits, |output| output.emit(twice, None, None));
        assert_eq!(error, Refusal::Malformed);
        insta::assert_snapshot!(text, @r#"object 1 has the key "image" twice, at "/spec/x/0/image""#);
        let deep = [b"[".repeat(1000), b"]".repeat(1000)].concat();
        let (error, text) = refusal(&limits, |output| output.emit(&deep, None, None));
        assert_eq!(error, Refusal::Malformed);
        insta::assert_snapshot!(text, @"object 1 is not JSON: recursion limit exceeded at line 1 column 128");
    }

    #[test]
    fn objects_with_finalizers_are_reported() {
        let mut output = Output::new(&Limits { diagnostics: 2, ..Limits::default() });
        let held = |name: &str, finalizers: &str| {
            let metadata = format!(r#"{{"name":"{name}","finalizers":{finalizers}}}"#);
            format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{metadata}}}"#).into_bytes()
        };
        for (name, finalizers) in [
            ("a", "[]"),
            ("b", "null"),
            ("c", r#"["example.com/x"]"#),
            ("d", r#"["a","b\u001b","c","d"]"#),
            ("e", r#"["a"]"#),
        ] {
            output.emit(&held(name, finalizers), None, None).unwrap();
        }
        let findings: Vec<String> = output.into_release().findings().iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(findings.join("\n"), @r"
        ConfigMap c has finalizers (example.com/x): it is deleted only when a controller removes them (help: remove metadata.finalizers from the bundle: a controller that needs a finalizer adds it)
        ConfigMap d has finalizers (a, b\u{001B}, c, ...): it is deleted only when a controller removes them (help: remove metadata.finalizers from the bundle: a controller that needs a finalizer adds it)
        1 more findings were dropped: the limit is 2
        ");
    }

    #[test]
    fn exceeded_limits_are_reported() {
        let second = |output: &mut Output| output.emit(&named("second"), None, None);
        let (error, text) = refusal(&Limits { objects: 1, ..Limits::default() }, second);
        assert_eq!(error, Refusal::TooMany);
        insta::assert_snapshot!(text, @"the provisioner exceeded the limit of 1 objects with object 1");
        let (error, text) = refusal(&Limits { object_bytes: 70, ..Limits::default() }, |output| {
            output.emit(&named(&"x".repeat(100)), None, None)
        });
        assert_eq!(error, Refusal::TooLarge);
        insta::assert_snapshot!(text, @"the provisioner exceeded the limit of 70 bytes in one object with object 1");
        let (error, text) = refusal(&Limits { output_bytes: 70, ..Limits::default() }, second);
        assert_eq!(error, Refusal::TooMany);
        insta::assert_snapshot!(text, @"the provisioner exceeded the limit of 70 bytes in all objects with object 1");
    }

    #[test]
    fn the_number_of_values_is_bounded() {
        assert_eq!(count_values(br#"{"a,[":"\",,","b":[1,2]}"#), 7);
        let limits = Limits { object_bytes: u64::MAX, ..Limits::default() };
        let many = format!("[{}0]", "0,".repeat(2_000_000));
        let (error, text) = refusal(&limits, |output| output.emit(many.as_bytes(), None, None));
        assert_eq!(error, Refusal::TooMany);
        insta::assert_snapshot!(text, @"the provisioner exceeded the limit of 2000000 values in all objects with object 1");
    }

    #[test]
    fn probes_are_checked() {
        let selector = Selector {
            group: String::new(),
            kind: "Pod".into(),
            namespace: None,
            name: None,
            labels: vec![("app".into(), "a".into())],
        };
        let good = GuestProbe { selector, rule: "true".into(), message: None, message_expression: None };
        let probe = GuestProbe { rule: String::new(), ..good.clone() };
        let large = GuestProbe { rule: "x".repeat(20_000), ..probe.clone() };
        let limits = Limits { probes: 1, ..Limits::default() };
        let (error, text) = refusal(&limits, |output| output.probe(probe));
        assert_eq!((error, text.as_str()), (Refusal::Malformed, "probe 0 has no rule"));
        let (error, text) = refusal(&limits, |output| output.probe(large));
        assert_eq!(error, Refusal::TooLarge);
        insta::assert_snapshot!(text, @"the provisioner exceeded the limit of 16384 bytes in one probe");
        let (error, text) = refusal(&limits, |output| {
            output.probe(good.clone()).unwrap();
            output.probe(good)
        });
        assert_eq!(error, Refusal::TooMany);
        insta::assert_snapshot!(text, @"the provisioner exceeded the limit of 1 probes");
    }
}
