//! `chandler plugin bench`.

use std::{path::Path, sync::Arc, time::Instant};

use chandler_conformance::{
    Case,
    bench::{self, milliseconds},
};
use chandler_engine::{Engine, EngineOptions, Limits, Provisioner};

use crate::{
    CommandError,
    arguments::{format::DataFormat, plugin_call::CallArguments},
    read::{component, plugin_call, provisioner},
    view::{
        output,
        plugin_bench::{BenchReport, Compiled},
        terminal::Terminal,
        text::one_line,
    },
};

/// Measure how long the calls of a provisioner take
///
/// Compiles the component without a cache, as a controller does once for each component, and then renders the bundle repeatedly, each time
/// in a fresh instance, as a controller does for each change. Compare results on the same machine only, while it does nothing else.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  Times in milliseconds and sizes on standard output; with -o json and yaml unrounded.

Exit codes: 0 measured, 1 failed, 2 wrong usage

Examples:
  chandler plugin bench sail.wasm ./bundle
  chandler plugin bench sail.wasm ./bundle --calls 500 -o json > after.json")]
pub struct Bench {
    /// The component, the bundle and the request.
    #[command(flatten)]
    pub call: CallArguments,

    /// Number of calls
    #[arg(long, value_name = "NUMBER", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    pub calls: u16,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,
}

impl Bench {
    /// Measures the calls, and prints the result.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let opened = plugin_call::open(&self.call.options()).await?;
        let compiled = compiled(Path::new(&self.call.component)).await?;
        let (compile, provisioner) = match compiled {
            Some((compile, provisioner)) => (Some(compile), provisioner),
            None => (None, opened.chosen.provisioner.clone()),
        };
        let name = one_line(&self.call.bundle);
        let case = Case { name, content: Arc::clone(opened.content()), request: opened.request.clone() };
        terminal.line(format!("calling the provisioner {} times", self.calls));
        let measured = bench::measure(&provisioner, &case, self.calls.into(), &Limits::default()).await;
        let measurement =
            measured.map_err(|error| provisioner::call_failed(&self.call.component, &error, &opened.sources()))?;
        let report = BenchReport { component: provisioner.digest().to_string(), compile, measurement };
        output::print(&output::data(&report, self.output, || report.text())?)
    }
}

/// The component of a file, compiled without a cache; `None` for a built-in class.
async fn compiled(path: &Path) -> Result<Option<(Compiled, Provisioner)>, CommandError> {
    if !path.is_file() {
        return Ok(None);
    }
    let wasm = component::file(path)?;
    let options = EngineOptions { compiler: provisioner::compiler()?, ..EngineOptions::default() };
    let engine =
        Engine::new(options).map_err(|error| CommandError::failed("failed to start the engine").because(&error))?;
    let begin = Instant::now();
    let provisioner = engine.load(&wasm).await.map_err(|error| {
        CommandError::failed(format!("failed to load {}", one_line(&path.display().to_string()))).because(&error)
    })?;
    Ok(Some((Compiled { bytes: wasm.len(), milliseconds: milliseconds(begin.elapsed()) }, provisioner)))
}
