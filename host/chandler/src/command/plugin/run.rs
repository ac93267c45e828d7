//! `chandler plugin run`.

use std::{sync::Arc, time::Instant};

use chandler_conformance::{Rendering, bench::milliseconds};
use chandler_engine::{CallError, Limits};
use serde_json::Value;

use crate::{
    CommandError,
    arguments::{format::DataFormat, plugin_call::CallArguments},
    read::{origin, plugin_call, rendering::OpenedBundle},
    view::{
        diagnostics, output,
        plugin_run::{BundleReport, Detected, Logged, Provisioned, RunReport, Schema},
        terminal::{self, Terminal},
    },
};

/// Call a provisioner once, and show everything that it does
///
/// Shows the detected format, the configuration schema, the objects with their stages and origins, probes, findings, the description,
/// log messages, what the provisioner asked about its target, and what the calls used of their limits. `chandler render` prints the
/// objects for kubectl, and `chandler lint` the findings for authors of bundles; this is for authors of provisioners.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The report on standard output. With -o json and yaml also the objects in full, and the schema.

Exit codes: 0 rendered, perhaps with warnings; 1 failed; 2 wrong usage

Examples:
  chandler plugin run sail.wasm ./bundle
  With a configuration and a cluster:
    chandler plugin run sail.wasm ./bundle --set replicas=2 --kubernetes-version 1.36 --api-kind v1/Pod
  The configuration schema:
    chandler plugin run sail.wasm ./bundle -o json | jq .schema.value")]
pub struct Run {
    /// The component, the bundle and the request.
    #[command(flatten)]
    pub call: CallArguments,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,
}

impl Run {
    /// Calls the functions of the provisioner, and prints the report.
    pub async fn run(&self) -> Result<(), CommandError> {
        let opened = plugin_call::open(&self.call.options()).await?;
        let failed = report(&opened, &self.call.bundle, self.output).await?;
        match failed {
            None => Ok(()),
            Some(error) => {
                Err(CommandError::failed(format!("the call failed with the reason {}", error.reason().as_str()))
                    .hint("the report has the cause"))
            }
        }
    }
}

/// Calls the functions of the provisioner, and prints the report. Returns the error of the last call.
pub(super) async fn report(
    opened: &OpenedBundle,
    bundle: &str,
    format: DataFormat,
) -> Result<Option<CallError>, CommandError> {
    let (report, failed) = called(opened, bundle).await;
    let mut text = output::data(&report, format, || report.text(&Terminal::output()))?;
    if format == DataFormat::Text {
        let findings = failed.as_ref().map_or(report.result.findings.as_slice(), CallError::diagnostics);
        let findings = diagnostics::findings(findings, &opened.sources());
        text.push_str(&terminal::drawn(&diagnostics::render(&findings, &Terminal::output())));
    }
    output::print(&text)?;
    Ok(failed)
}

/// What the three functions returned, and the error of the last one.
async fn called(opened: &OpenedBundle, bundle: &str) -> (RunReport, Option<CallError>) {
    let (provisioner, limits) = (&opened.chosen.provisioner, Limits::default());
    let begin = Instant::now();
    let format = provisioner.detect(Arc::clone(opened.content()), &limits).await;
    let detected = begin.elapsed();
    let schema = provisioner.config_schema(Arc::clone(opened.content()), &limits).await;
    let with_schema = begin.elapsed();
    let rendered = provisioner.provision_and_record(&opened.request, Arc::clone(opened.content()), &limits).await;
    let wall = begin.elapsed().saturating_sub(with_schema);
    let (text, problem) = match schema {
        Ok(text) => (text, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let digest = rendered.result.as_ref().ok().map(|release| release.digest().to_string());
    let report = RunReport {
        component: provisioner.digest().to_string(),
        facts: provisioner.facts().clone(),
        bundle: BundleReport::new(origin::shown(bundle), opened.content().as_ref()),
        target: opened.request.target.clone(),
        config: opened.request.config.clone(),
        detected: Detected {
            format: format.as_ref().ok().cloned().flatten(),
            problem: format.as_ref().err().map(ToString::to_string),
            milliseconds: milliseconds(detected),
        },
        schema: Schema {
            bytes: text.as_ref().map(String::len),
            value: text.and_then(|text| serde_json::from_str::<Value>(&text).ok()),
            problem,
            milliseconds: milliseconds(with_schema.saturating_sub(detected)),
        },
        provisioned: Provisioned {
            release: digest,
            milliseconds: milliseconds(wall),
            computed_milliseconds: milliseconds(rendered.usage.time),
            memory_bytes: rendered.usage.memory,
            read_bytes: rendered.usage.read,
            returned_bytes: rendered.usage.returned,
            asked: rendered.asked,
        },
        result: Rendering::of(None, &rendered.result),
        log: rendered.log.lines().iter().map(Logged::of).collect(),
        log_dropped: rendered.log.dropped(),
    };
    (report, rendered.result.err())
}
