//! `chandler plugin test`.

use std::path::{Path, PathBuf};

use chandler_conformance::Rendering;
use chandler_engine::{Limits, Provisioner};

use crate::{
    CommandError,
    arguments::format::DataFormat,
    read::{
        cache, plugin_call,
        plugin_cases::{self, StoredCase},
    },
    view::{
        output,
        plugin_test::{CaseReport, CaseResult, TestReport},
        terminal::Terminal,
        text::count,
    },
    write::component_file,
};

/// Compare what a provisioner returns with what its cases expect
///
/// A case is a directory with the files of a bundle in bundle/, perhaps a configuration (config.yaml) and a request (case.yaml), and what
/// the provisioner returns (expected.yaml): format, objects, stages, origins, probes, findings and description, or the failure. Each case
/// is rendered twice, in the same sandbox and with the same limits as in a controller; both calls must return the same.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A line for each case on standard output, and for a case that fails the lines that differ: those
  that are expected begin with `-`, those that the provisioner returned with `+`.

Exit codes: 0 all cases pass, 1 a case fails, 2 wrong usage

Examples:
  chandler plugin test sail.wasm
  One case:
    chandler plugin test sail.wasm cases/labels
  Write what the provisioner returns, to review it with `git diff`:
    chandler plugin test sail.wasm --bless")]
pub struct Test {
    /// The component: a file, or a built-in class
    #[arg(value_name = "COMPONENT")]
    pub component: String,

    /// The directory of a case, or of several
    #[arg(value_name = "DIRECTORY", default_value = "cases")]
    pub directory: PathBuf,

    /// Write what the provisioner returns into expected.yaml of each case that differs
    #[arg(long)]
    pub bless: bool,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// Directory for unpacked bundles and compiled components
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

impl Test {
    /// Runs the cases, and fails if one of them does.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let cache = cache::directory(self.cache_directory.as_deref())?;
        let directories = plugin_cases::directories(&self.directory)?;
        let provisioner = plugin_call::component(&self.component, &cache).await?;
        let mut cases = Vec::new();
        for directory in &directories {
            cases.push(self.case(&provisioner, directory, &cache).await?);
        }
        let report = TestReport::new(&provisioner, cases);
        let look = Terminal::output().look();
        output::print(&output::data(&report, self.output, || report.text(look))?)?;
        let summary =
            format!("{}: {} passed, {} failed", count(report.cases.len(), "case"), report.passed, report.failed);
        if report.failed > 0 {
            return Err(CommandError::failed(summary)
                .hint("correct the provisioner, or write what it returns with --bless and review the changes"));
        }
        terminal.line(summary);
        Ok(())
    }

    async fn case(
        &self,
        provisioner: &Provisioner,
        directory: &Path,
        cache: &Path,
    ) -> Result<CaseReport, CommandError> {
        let StoredCase { case, expected, file } = plugin_cases::read(directory, cache).await?;
        let name = case.name.clone();
        let rendering = match case.rendering(provisioner, &Limits::default()).await {
            Ok(rendering) => rendering,
            Err(differing) => {
                let (first, second) = (written(&differing.first)?, written(&differing.second)?);
                return Ok(CaseReport::new(name, CaseResult::NotDeterministic, &first, &second));
            }
        };
        let returned = written(&rendering)?;
        // As it would be read from the file: `1.0` is the integer 1 in YAML of Kubernetes.
        let read: Rendering = plugin_cases::document(returned.as_bytes())
            .map_err(|problem| CommandError::failed(format!("failed to compare the case {name}")).cause(problem))?;
        if expected.as_ref() == Some(&read) {
            return Ok(CaseReport::new(name, CaseResult::Passed, "", ""));
        }
        let before = expected.as_ref().map(written).transpose()?.unwrap_or_default();
        let result = match expected {
            _ if self.bless => {
                component_file::write(&file, returned.as_bytes())?;
                CaseResult::Written
            }
            Some(_) => CaseResult::Different,
            None => CaseResult::NoExpectation,
        };
        Ok(CaseReport::new(name, result, &before, &returned))
    }
}

/// A rendering as a file.
fn written(rendering: &Rendering) -> Result<String, CommandError> {
    let value = serde_json::to_value(rendering);
    output::yaml(&[
        value.map_err(|error| CommandError::failed("failed to write what the provisioner returned").because(&error))?
    ])
}
