//! Prints the counts of one measurement, and of several sizes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Display, Formatter, Write as _},
};

use serde_json::{Value, json};

use crate::requests::{Step, Workload, request::RequestKind};

/// The counts of one measurement, as a table in Markdown with a column for each step.
pub struct Table<'a> {
    /// What was installed.
    pub workload: Workload,
    /// The steps.
    pub steps: &'a [Step],
}

impl Display for Table<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Workload { bundles, accounts } = self.workload;
        let rights = if accounts { "a ServiceAccount each" } else { "the rights of the controller" };
        writeln!(f, "{bundles} bundles of {} objects, {rights}\n", crate::requests::sample::OBJECTS)?;
        self.row(f, "", |step| step.name.to_owned())?;
        self.row(f, "---", |_| "---:".to_owned())?;
        self.row(f, "**requests**", |step| step.total().to_string())?;
        self.row(f, "for each bundle", |step| per_bundle(step.total(), bundles))?;
        let kinds: BTreeSet<&RequestKind> = self.steps.iter().flat_map(|step| step.requests.keys()).collect();
        let verbs: BTreeSet<&str> = kinds.iter().map(|kind| kind.verb.as_str()).collect();
        for verb in verbs {
            self.row(f, &format!("**{verb}**"), |step| {
                let of_verb = step.requests.iter().filter(|(kind, _)| kind.verb == verb);
                count(of_verb.map(|(_, count)| count).sum())
            })?;
            for kind in kinds.iter().filter(|kind| kind.verb == verb) {
                self.row(f, &kind.to_string(), |step| count(step.requests.get(kind).copied().unwrap_or_default()))?;
            }
        }
        self.row(f, "**reconciles**", |step| count(step.reconciles.total()))?;
        self.row(f, "that wrote objects", |step| count(step.reconciles.with_object_writes))?;
        self.row(f, "that wrote only status, Events or records", |step| count(step.reconciles.with_other_writes))?;
        self.row(f, "that wrote nothing", |step| count(step.reconciles.without_writes))?;
        self.row(f, "processor time of the controller", |step| seconds(step.processor.controller))?;
        self.row(f, "processor time of everything else", |step| seconds(step.processor.others))?;
        if self.steps.iter().any(|step| step.processor.server.is_some()) {
            self.row(f, "processor time of the API server", |step| seconds(step.processor.server.unwrap_or_default()))?;
        }
        self.row(f, "duration", |step| seconds(step.time.as_secs_f64()))
    }
}

impl Table<'_> {
    fn row(&self, f: &mut Formatter<'_>, name: &str, cell: impl Fn(&Step) -> String) -> fmt::Result {
        write!(f, "| {name:<42} |")?;
        for step in self.steps {
            write!(f, " {:>9} |", cell(step))?;
        }
        writeln!(f)
    }

    /// The table as JSON.
    pub fn to_json(&self) -> Value {
        let steps = self.steps.iter().map(|step| {
            json!({
                "name": step.name,
                "seconds": step.time.as_secs_f64(),
                "total": step.total(),
                "requests": by_name(step),
                "reconciles": step.reconciles,
                "controllerProcessorSeconds": step.processor.controller,
                "otherProcessorSeconds": step.processor.others,
                "serverProcessorSeconds": step.processor.server,
            })
        });
        json!({
            "bundles": self.workload.bundles,
            "accounts": self.workload.accounts,
            "steps": steps.collect::<Vec<_>>(),
        })
    }
}

/// The requests for each bundle of several measurements, one line for each.
pub fn comparison(measurements: &[(Workload, Vec<Step>)]) -> String {
    // The start costs the same for every number of bundles.
    let names = measurements.first().into_iter().flat_map(|(_, steps)| steps.iter().skip(1).map(|step| step.name));
    let names: Vec<&str> = names.collect();
    let heads = "---:|".repeat(names.len());
    let mut text = format!("| requests for each bundle | {} |\n|---:|{heads}\n", names.join(" | "));
    for (workload, steps) in measurements {
        let cells = steps.iter().skip(1).map(|step| per_bundle(step.total(), workload.bundles));
        let _ = writeln!(text, "| {} bundles | {} |", workload.bundles, cells.collect::<Vec<_>>().join(" | "));
    }
    text
}

/// The requests of a step by `verb resource`.
pub fn by_name(step: &Step) -> BTreeMap<String, u64> {
    step.requests.iter().map(|(kind, count)| (kind.to_string(), *count)).collect()
}

fn count(count: u64) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.2} s")
}

#[expect(clippy::cast_precision_loss, reason = "it is rounded anyway")]
fn per_bundle(count: u64, bundles: usize) -> String {
    format!("{:.1}", count as f64 / bundles.max(1) as f64)
}
