//! The report of `chandler plugin run`.

use std::collections::BTreeSet;

use chandler_conformance::{Emitted, Rendering};
use chandler_core::{Content, Object, RecordedFacts, Target, text::count};
use chandler_engine::{Facts, Limits, LogLine};
use indicatif::HumanBytes;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    table::{self, Column, Fit},
    terminal::Terminal,
    text::one_line,
};

/// Everything that a provisioner did for one bundle.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunReport {
    /// The digest of the component.
    pub component: String,
    /// What it declares.
    pub facts: Facts,
    /// The bundle.
    pub bundle: BundleReport,
    /// The target of the request.
    pub target: Target,
    /// The configuration of the request.
    pub config: Map<String, Value>,
    /// The result of `detect`.
    pub detected: Detected,
    /// The result of `config-schema`.
    pub schema: Schema,
    /// What `provision` used.
    pub provisioned: Provisioned,
    /// What `provision` returned.
    pub result: Rendering,
    /// The log messages of `provision`.
    pub log: Vec<Logged>,
    /// How many log messages were dropped or cut at the limits.
    pub log_dropped: u64,
}

/// A bundle.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleReport {
    name: String,
    digest: String,
    bytes: u64,
}

impl BundleReport {
    /// A bundle with this name.
    pub fn new(name: String, content: &dyn Content) -> Self {
        Self { name, digest: content.digest().to_string(), bytes: content.total_bytes() }
    }
}

/// The result of `detect`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detected {
    /// The format.
    pub format: Option<String>,
    /// Why the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How long it took on the wall.
    pub milliseconds: f64,
}

/// The result of `config-schema`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schema {
    /// The size of the schema.
    pub bytes: Option<usize>,
    /// The schema.
    pub value: Option<Value>,
    /// Why the call failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// How long it took on the wall.
    pub milliseconds: f64,
}

/// What `provision` used.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Provisioned {
    /// The digest of the release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// How long it took on the wall.
    pub milliseconds: f64,
    /// What it computed, without waiting for a processor.
    pub computed_milliseconds: f64,
    /// Its largest memory.
    pub memory_bytes: u64,
    /// What it read of the bundle.
    pub read_bytes: u64,
    /// The objects that it returned.
    pub returned_bytes: u64,
    /// What it asked about its target.
    pub asked: RecordedFacts,
}

/// A log message.
#[derive(Debug, Serialize)]
pub struct Logged {
    level: String,
    message: String,
}

impl Logged {
    /// A line of a log.
    pub fn of(line: &LogLine) -> Self {
        Self { level: line.level.to_string(), message: line.message.clone() }
    }
}

const OBJECTS: [Column<Emitted>; 4] = [
    Column::new("STAGE", Fit::Full, |object| object.stage.to_string()),
    Column::new("OBJECT", Fit::Middle(30), name),
    Column::new("BYTES", Fit::Drop, |object| Value::Object(object.object.clone()).to_string().len().to_string()),
    Column::optional("ORIGIN", Fit::Middle(20), |object| {
        object.origin.as_ref().map(ToString::to_string).unwrap_or_default()
    }),
];

fn name(object: &Emitted) -> String {
    let object = Object::from_value(object.object.clone(), object.stage, None);
    object.map_or_else(|_| "unknown".to_owned(), |object| object.key.to_string())
}

impl RunReport {
    /// The report as text, without the findings.
    pub fn text(&self, terminal: &Terminal) -> String {
        let mut text = self.head();
        let Rendering { objects, probes, description, failure, .. } = &self.result;
        if !objects.is_empty() {
            text.extend(["\n", &table::text(&OBJECTS, objects, terminal.columns())]);
        }
        if !probes.is_empty() {
            text.push_str("\nprobes:\n");
            for probe in probes {
                let name = probe.selector.name.as_deref().unwrap_or("*");
                let subject = format!("{} {name}: {}", probe.selector.kind, probe.rule);
                text.extend(["  ", &one_line(&subject), "\n"]);
            }
        }
        if !description.is_empty() {
            let json = serde_json::to_string(description).unwrap_or_default();
            text.extend(["\ndescription: ", &one_line(&json), "\n"]);
        }
        if !self.log.is_empty() {
            text.push_str("\nlog:\n");
            for Logged { level, message } in &self.log {
                text.extend(["  ", level, " ", &one_line(message), "\n"]);
            }
        }
        if self.log_dropped > 0 {
            text.extend(["  ", &self.log_dropped.to_string(), " messages were dropped or cut\n"]);
        }
        if let Some(message) = failure.as_ref().and_then(|failure| failure.message.as_deref()) {
            text.extend(["\nfailed: ", &one_line(message), "\n"]);
        }
        text.push('\n');
        text
    }

    fn head(&self) -> String {
        let limits = Limits::default();
        let mut lines = String::new();
        let mut line = |name: &str, value: &str| lines.extend([format!("{name:<11}").as_str(), value, "\n"]);
        line("component", &one_line(&format!("{} {} ({})", self.facts.name, self.facts.version, self.component)));
        line("bundle", &one_line(&format!("{}, {}", self.bundle.name, HumanBytes(self.bundle.bytes))));
        line("target", &one_line(&format!("{} in namespace {}", self.target.name, self.target.namespace)));
        let Detected { format, problem, milliseconds } = &self.detected;
        let format =
            problem.as_deref().or(format.as_deref()).unwrap_or("not recognised: BundleDeployments must name the class");
        line("format", &format!("{} ({milliseconds} ms)", one_line(format)));
        let Schema { bytes, problem, milliseconds, .. } = &self.schema;
        let schema = match (problem, bytes) {
            (Some(problem), _) => one_line(problem),
            (None, Some(bytes)) => HumanBytes(*bytes as u64).to_string(),
            (None, None) => "none: every configuration is accepted".to_owned(),
        };
        line("schema", &format!("{schema} ({milliseconds} ms)"));
        let used = &self.provisioned;
        let stages: BTreeSet<u32> = self.result.objects.iter().map(|object| object.stage).collect();
        if let Some(release) = &used.release {
            let (objects, stages) = (count(self.result.objects.len(), "object"), count(stages.len(), "stage"));
            line("release", &format!("{objects} in {stages}, {release}"));
        }
        line(
            "time",
            &format!(
                "{} ms, computed {} ms of {} s",
                used.milliseconds,
                used.computed_milliseconds,
                limits.time.as_secs()
            ),
        );
        line("memory", &format!("{} of {}", HumanBytes(used.memory_bytes), HumanBytes(limits.memory)));
        line("read", &format!("{} of the bundle", HumanBytes(used.read_bytes)));
        line("returned", &format!("{} of {}", HumanBytes(used.returned_bytes), HumanBytes(limits.output_bytes)));
        line("asked", &asked(&used.asked));
        lines
    }
}

/// The facts that a provisioner read.
fn asked(facts: &RecordedFacts) -> String {
    let shown = |fact: &Value| match fact {
        Value::Object(fact) => {
            let values = |value: &Value| match value {
                Value::Object(map) => map.values().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
                other => other.to_string(),
            };
            fact.iter().map(|(name, value)| format!("{name} {}", values(value))).collect::<Vec<_>>().join(" ")
        }
        Value::String(name) => name.clone(),
        other => other.to_string(),
    };
    let facts = serde_json::to_value(facts).unwrap_or_default();
    let facts: Vec<String> = facts.as_array().into_iter().flatten().map(shown).collect();
    if facts.is_empty() { "nothing about the target".to_owned() } else { one_line(&facts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use chandler_core::Fact;

    use super::*;

    #[test]
    fn facts_are_listed_by_name() {
        let serves = Fact::Serves { api_version: "apps/v1".into(), kind: "Deployment".into() };
        let facts: RecordedFacts = [serves, Fact::Namespace].into_iter().collect();
        assert_eq!(asked(&facts), "namespace, serves apps/v1 Deployment");
        assert_eq!(asked(&RecordedFacts::default()), "nothing about the target");
    }
}
