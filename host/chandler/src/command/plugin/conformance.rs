//! `chandler plugin conformance`.

use std::path::PathBuf;

use chandler_conformance::{badge::Badge, conformance};
use chandler_engine::Limits;

use crate::{
    CommandError,
    arguments::format::DataFormat,
    read::{cache, plugin_call, plugin_cases},
    view::{output, plugin_conformance, terminal::Terminal},
    write::component_file,
};

/// Check what every provisioner must do
///
/// Runs the provisioner with the bundles of cases, and with hostile variants of them: files that are cut, empty, not UTF-8, deeply nested,
/// huge or missing, odd names, many files, and files as large as the host allows. It must return the same for the same inputs, detect only
/// its own bundles and read little to do so, have a schema that is enforced, and refuse invalid content with findings that have a position,
/// never with a crash.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  A line for each check on standard output, with what the provisioner did instead.
  With -o json and yaml: {\"component\", \"facts\", \"checks\": [...]}; each check has \"name\",
  \"requirement\", \"verdict\", \"tried\" and \"problems\".

Exit codes: 0 all checks pass, 1 a check fails, 2 wrong usage

Examples:
  chandler plugin conformance sail.wasm --case cases/labels
  A badge for a README, which shields.io draws:
    chandler plugin conformance sail.wasm --case cases --badge conformance.json")]
pub struct Conformance {
    /// The component: a file, or a built-in class
    #[arg(value_name = "COMPONENT")]
    pub component: String,

    /// The directory of a case, or of several, that the provisioner renders (see `chandler plugin test`). Cases that expect a failure are
    /// left out. Repeatable
    #[arg(long = "case", value_name = "DIRECTORY")]
    pub cases: Vec<PathBuf>,

    /// File for a badge, as JSON for the endpoint of shields.io. It is replaced if it exists
    #[arg(long, value_name = "FILE")]
    pub badge: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// Directory for unpacked bundles and compiled components
    /// [default: $XDG_CACHE_HOME/chandler, else ~/.cache/chandler]
    #[arg(long, value_name = "DIR", env = "CHANDLER_CACHE_DIRECTORY", hide_env_values = true)]
    pub cache_directory: Option<PathBuf>,
}

impl Conformance {
    /// Runs the checks, and fails if one of them does.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let cache = cache::directory(self.cache_directory.as_deref())?;
        let provisioner = plugin_call::component(&self.component, &cache).await?;
        let mut cases = Vec::new();
        for directory in &self.cases {
            for case in plugin_cases::directories(directory)? {
                let stored = plugin_cases::read(&case, &cache).await?;
                let is_refused = stored.expected.as_ref().is_some_and(|expected| expected.failure.is_some());
                cases.extend((!is_refused).then_some(stored.case));
            }
        }
        let step = |group: &str| terminal.line(format!("checking {group}"));
        let report = conformance::check(&provisioner, &cases, &Limits::default(), step).await;
        if let Some(path) = &self.badge {
            component_file::write(path, output::json(&Badge::of(&report))?.as_bytes())?;
        }
        let look = Terminal::output().look();
        output::print(&output::data(&report, self.output, || plugin_conformance::text(&report, look))?)?;
        let summary = plugin_conformance::summary(&report);
        if report.failed() > 0 {
            return Err(CommandError::failed(summary));
        }
        terminal.line(summary);
        if cases.is_empty() {
            terminal.line("without --case, nothing was checked of what the provisioner does with its own bundles");
        }
        Ok(())
    }
}
