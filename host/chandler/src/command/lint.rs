//! `chandler lint`.

use chandler_core::{Diagnostic, Severity};
use clap::ValueEnum;
use serde::Serialize;

use crate::{
    CommandError,
    diagnostics::{self, Sources},
    output, provision,
    rendering::{Opened, Rendering},
    sarif,
    terminal::Terminal,
    text::count,
};

/// Print everything that is wrong or odd about a bundle
///
/// Renders the bundle as `render` does, but prints what is found instead of the objects: all of it at once, each with file,
/// line, column and JSON pointer, and with what would mend it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The findings on standard output, a summary line on standard error.
  With -o json: {\"bundle\", \"provisioner\", \"format\", \"findings\": [{\"severity\", \"code\", \"message\", \"location\", \"help\"}]}.
  With -o sarif: SARIF 2.1.0, as code hosts and editors read it.

Exit codes: 0 no errors (perhaps warnings), 1 errors (with --strict: or warnings), 2 wrong usage

Examples:
  chandler lint ./my-operator
  With the configuration that it will get, for a version of Kubernetes:
    chandler lint ./my-operator --config values.yaml --kubernetes-version 1.36
  In CI:
    chandler lint ./my-operator --strict -o sarif > chandler.sarif")]
pub struct Lint {
    /// Which bundle, and how.
    #[command(flatten)]
    pub rendering: Rendering,

    /// Fail for warnings, too
    #[arg(long)]
    pub strict: bool,

    /// The form of the output
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Form::Text)]
    pub output: Form,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For people, with the lines that they are about
    Text,
    /// JSON
    Json,
    /// SARIF 2.1.0
    Sarif,
}

/// All that was found.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    bundle: &'a str,
    provisioner: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a str>,
    findings: Vec<Diagnostic>,
}

impl Lint {
    /// Looks for what is wrong.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let opened = self.rendering.open().await?;
        let sources = opened.sources();
        let report = Report {
            bundle: &self.rendering.bundle,
            provisioner: &opened.chosen.name,
            format: opened.chosen.format.as_deref(),
            findings: findings(&opened, &sources).await?,
        };
        output::print(&self.text(&report, &sources)?)?;
        let number = |severity| report.findings.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
        let summary = format!("{}, {} in {}", count(errors, "error"), count(warnings, "warning"), report.bundle);
        if errors > 0 || self.strict && warnings > 0 {
            return Err(CommandError::failed(summary));
        }
        terminal.line(summary);
        Ok(())
    }

    fn text(&self, report: &Report<'_>, sources: &Sources<'_>) -> Result<String, CommandError> {
        match self.output {
            Form::Text => {
                Ok(diagnostics::render(&diagnostics::findings(&report.findings, sources), &Terminal::output()))
            }
            Form::Json => output::json(report),
            Form::Sarif => output::json(&sarif::log(&report.findings, sources)),
        }
    }
}

/// What is found when the bundle is rendered: why it is refused, or what is odd about it.
async fn findings(opened: &Opened, sources: &Sources<'_>) -> Result<Vec<Diagnostic>, CommandError> {
    let mut all: Vec<Diagnostic> = opened.oddities().cloned().collect();
    match opened.provision().await {
        Ok(release) => all.extend_from_slice(release.findings()),
        // A provisioner that failed has found nothing.
        Err(error) if error.diagnostics().is_empty() => {
            return Err(provision::call_failed(&opened.chosen.name, &error, sources));
        }
        Err(error) => all.extend_from_slice(error.diagnostics()),
    }
    Ok(all)
}
