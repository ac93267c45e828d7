//! `chandler lint`.

use chandler_core::{Diagnostic, Object, Probe, Severity};
use chandler_yaml::list_keys::{self, ACCEPTED_ONCE, DuplicateItem};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::{
    CommandError,
    arguments::{bundle::BundleArguments, connection::Connection, format::DataFormat},
    read::{
        classes::ClusterClasses,
        origin, provisioner, release_check,
        rendering::{self, OpenedBundle},
    },
    view::{
        diagnostics::{self, Sources},
        output, sarif,
        terminal::{self, Terminal},
        text::count,
    },
};

/// Print all errors and warnings of a bundle
///
/// Renders the bundle as `chandler render` does, but prints the findings instead of the objects. Each finding has the file, line, column
/// and JSON pointer, and a suggested fix, as far as they are known.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The findings on standard output, a summary on standard error.
  With -o json: {\"bundle\", \"provisioner\", \"format\", \"findings\": [...], \"probes\": [...]}; each
  finding has \"severity\", \"code\", \"message\", \"location\" and \"help\".
  With -o sarif: SARIF 2.1.0, which code hosts and editors read.

Exit codes: 0 no errors, 1 errors (with --strict, also warnings), 2 wrong usage

Examples:
  chandler lint ./my-operator
  With a configuration and a Kubernetes version:
    chandler lint ./my-operator --config values.yaml --kubernetes-version 1.36
  In CI:
    chandler lint ./my-operator --strict -o sarif > chandler.sarif")]
pub struct Lint {
    /// The bundle, and how to render it.
    #[command(flatten)]
    pub bundle: BundleArguments,

    /// Also fail on warnings
    #[arg(long)]
    pub strict: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = LintFormat::Text)]
    pub output: LintFormat,

    /// The cluster that a class is in that is not built in.
    #[command(flatten)]
    pub connection: Connection,
}

/// The format of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LintFormat {
    /// Human-readable text, with an excerpt of the file
    Text,
    /// JSON
    Json,
    /// YAML, as JSON
    Yaml,
    /// SARIF 2.1.0
    Sarif,
}

/// The findings of a bundle.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LintReport<'a> {
    bundle: String,
    provisioner: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a str>,
    findings: Vec<Diagnostic>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    probes: Vec<Probe>,
}

impl Lint {
    /// Prints the findings, and fails if there are errors.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let mut opened =
            rendering::open(&self.bundle.options(), ClusterClasses::At(&self.connection.options())).await?;
        let unrecognised = opened.recognise().await?;
        let sources = opened.sources();
        let (found, probes) = findings(&opened, &sources).await?;
        let report = LintReport {
            bundle: origin::shown(&self.bundle.bundle),
            provisioner: &opened.chosen.name,
            format: opened.chosen.format.as_deref(),
            findings: unrecognised.into_iter().chain(found).collect(),
            probes,
        };
        output::print(&self.text(&report, &sources)?)?;
        let number = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
        let summary = format!("{}, {} in {}", count(errors, "error"), count(warnings, "warning"), report.bundle);
        if errors > 0 || self.strict && warnings > 0 {
            return Err(CommandError::failed(summary));
        }
        for probe in &report.probes {
            terminal.line(format!("probe: {}", release_check::probe(probe)));
        }
        terminal.line(summary);
        Ok(())
    }

    fn text(&self, report: &LintReport<'_>, sources: &Sources<'_>) -> Result<String, CommandError> {
        match self.output {
            LintFormat::Text => {
                let text = diagnostics::render(&diagnostics::findings(&report.findings, sources), &Terminal::output());
                Ok(terminal::drawn(&text).into_owned())
            }
            LintFormat::Json => output::json(report),
            LintFormat::Yaml => output::data(report, DataFormat::Yaml, String::new),
            LintFormat::Sarif => output::json(&sarif::log(&report.findings, sources)),
        }
    }
}

/// The errors and warnings of the configuration, the provisioner and its release, and the probes of the release.
async fn findings(opened: &OpenedBundle, sources: &Sources<'_>) -> Result<(Vec<Diagnostic>, Vec<Probe>), CommandError> {
    let mut all: Vec<Diagnostic> = opened.configuration_warnings().cloned().collect();
    let mut probes = Vec::new();
    match opened.provision().await {
        Ok(release) => {
            all.extend_from_slice(release.findings());
            all.extend(release.objects().iter().filter_map(invalid_name));
            all.extend(release.objects().iter().flat_map(duplicate_items));
            all.extend(release_check::probes(&release));
            probes = release.probes().to_vec();
        }
        // The provisioner itself failed.
        Err(error) if error.diagnostics().is_empty() => {
            return Err(provisioner::call_failed(&opened.chosen.name, &error, sources));
        }
        Err(error) => all.extend_from_slice(error.diagnostics()),
    }
    Ok((all, probes))
}

/// Duplicates that the host refuses to create. The built-in provisioners report them with their line.
fn duplicate_items(object: &Object) -> Vec<Diagnostic> {
    let found = list_keys::duplicate_items(&Value::Object(object.value.clone()));
    let finding = |duplicate: &DuplicateItem| {
        let message = format!("{}: {duplicate}: {ACCEPTED_ONCE}", object.key);
        let mut finding = Diagnostic::new(Severity::Error, "DuplicateListKey", message);
        finding.location.clone_from(&object.origin);
        finding.help = Some("remove one of the items".into());
        finding
    };
    found.iter().map(finding).collect()
}

/// The API server would refuse the object, but there is none to ask.
fn invalid_name(object: &Object) -> Option<Diagnostic> {
    if object.key.has_valid_name() {
        return None;
    }
    let message = format!("{} has a name that API servers refuse", object.key);
    let mut finding = Diagnostic::new(Severity::Error, "InvalidObjectName", message);
    finding.location.clone_from(&object.origin);
    finding.help = Some("use lowercase letters, digits, '-' and '.', and a letter or digit at both ends".into());
    Some(finding)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicates_that_the_host_refuses_are_errors() {
        let object = |names: [&str; 2]| {
            let env = names.map(|name| json!({"name": name, "value": "x"}));
            let value = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pilot"},
                "spec": {"containers": [{"name": "a", "env": env}]}});
            Object::from_value(value.as_object().unwrap().clone(), 0, None).unwrap()
        };
        assert_eq!(duplicate_items(&object(["MODE", "LEVEL"])), []);
        let found = duplicate_items(&object(["MODE", "MODE"]));
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(texts.join("\n"), @r#"Pod pilot: spec.containers[0].env: duplicate entries for key [name="MODE"]: an API server accepts it once and refuses each later update (help: remove one of the items)"#);
        assert!(found.iter().all(|finding| finding.severity == Severity::Error));
    }
}
