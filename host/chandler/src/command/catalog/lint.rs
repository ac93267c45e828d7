//! `chandler catalog lint`.

use chandler_core::Severity;

use crate::{
    CommandError,
    arguments::{catalogs::Fetching, format::DataFormat},
    command::lint::LintFormat,
    read::{
        cache,
        catalogs::{self, MOST_FINDINGS},
        origin,
    },
    view::{
        diagnostics::{self, Sources},
        output, sarif,
        terminal::{self, Terminal},
        text::count,
    },
};

/// Print all errors and warnings of a catalog
///
/// Checks the rules of `opm validate`, which stops at the first problem; this command prints all of them, each with its file and line.
/// The page docs/catalogs.md lists the rules.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The findings on standard output, a summary on standard error. With -o sarif: SARIF 2.1.0, which
  code hosts and editors read.

Exit codes: 0 no errors, 1 errors (with --strict, also warnings), 2 wrong usage

Examples:
  chandler catalog lint ./catalog
  In CI:
    chandler catalog lint ./catalog --strict -o sarif > catalog.sarif")]
pub struct Lint {
    /// The catalog: a directory, a file, an archive, a URL or an image
    #[arg(value_name = "CATALOG")]
    pub catalog: String,

    /// Also fail on warnings
    #[arg(long)]
    pub strict: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = LintFormat::Text)]
    pub output: LintFormat,

    /// How the catalog is fetched.
    #[command(flatten)]
    pub fetching: Fetching,
}

impl Lint {
    /// Prints the findings, and fails if there are errors.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let cache = cache::directory(self.fetching.cache_directory.as_deref())?;
        let opened = catalogs::content(&self.catalog, &cache, &self.fetching.options()).await?;
        let findings = catalogs::findings(&self.catalog, &*opened.content, &cache)?;
        let sources =
            Sources { content: Some(&*opened.content), directory: opened.directory.as_ref(), ..Sources::default() };
        let shown = origin::shown(&self.catalog);
        let report = serde_json::json!({"catalog": shown, "findings": findings});
        output::print(&match self.output {
            LintFormat::Text => {
                let text = diagnostics::render(&diagnostics::findings(&findings, &sources), &Terminal::output());
                terminal::drawn(&text).into_owned()
            }
            LintFormat::Json => output::json(&report)?,
            LintFormat::Yaml => output::data(&report, DataFormat::Yaml, String::new)?,
            LintFormat::Sarif => output::json(&sarif::log(&findings, &sources))?,
        })?;
        let number = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        let (errors, warnings) = (number(Severity::Error), number(Severity::Warning));
        let more = if findings.len() >= MOST_FINDINGS { " or more" } else { "" };
        let summary = format!("{}{more}, {} in {shown}", count(errors, "error"), count(warnings, "warning"));
        if errors > 0 || self.strict && warnings > 0 {
            return Err(CommandError::failed(summary));
        }
        terminal.line(summary);
        Ok(())
    }
}
