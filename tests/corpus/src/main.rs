//! `cargo xtask corpus`.

#![expect(clippy::print_stdout, reason = "it is a program whose result is its output")]

use std::{
    fs,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use anyhow::Context as _;
use chandler_corpus::{
    bundles::{self, Case},
    render::Renderer,
    statistics::Statistics,
};
use chandler_expected::{Namespaces, Outcome, compare};
use chandler_sdk::{Content as _, testing::Bundle};
use clap::Parser;

/// Render a tree of registry+v1 bundles in every mode, and compare with expected results
#[derive(Parser)]
#[command(name = "corpus")]
struct Arguments {
    /// The tree of bundles, or a directory that holds it as `bundles`
    directory: PathBuf,
    /// The expected results: a file `<bundle>.<mode>.json` for each bundle and mode to try
    #[arg(long, value_name = "DIR")]
    expected: Option<PathBuf>,
    /// The component
    #[arg(long, value_name = "FILE", required_unless_present = "native")]
    component: Option<PathBuf>,
    /// Run the same code without the sandbox
    #[arg(long)]
    native: bool,
    /// The install namespace
    #[arg(long, default_value = "oracle-system")]
    namespace: String,
    /// The watched namespace in the mode `single`
    #[arg(long, default_value = "watched")]
    watched: String,
    /// The compatibility of the rendering; use `extended` without expected results
    #[arg(long, value_name = "COMPATIBILITY", default_value = "reference", conflicts_with = "expected")]
    compatibility: String,
    /// How many bundles are rendered in parallel; use 1 to measure speed, or the times include waiting
    /// [default: one for each core]
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<usize>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let cases = bundles::find(&arguments.directory, arguments.expected.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let renderer = match &arguments.component {
        Some(path) if !arguments.native => {
            let component = fs::read(path)
                .with_context(|| format!("failed to read {}; `cargo xtask plugins` makes it", path.display()))?;
            runtime.block_on(Renderer::sandboxed(&component))?
        }
        _ => Renderer::Native,
    };
    let namespaces = Namespaces { install: arguments.namespace, watched: arguments.watched };
    let before = cpu_time();
    let compatibility = arguments.compatibility;
    let run = Arc::new(Run { cases, renderer, namespaces, compatibility, next: AtomicUsize::new(0) });
    let jobs = arguments.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
    let handle = runtime.handle().clone();
    let workers: Vec<_> = (0..jobs)
        .map(|_| {
            let (run, handle) = (Arc::clone(&run), handle.clone());
            thread::spawn(move || run.work(&handle))
        })
        .collect();
    let mut statistics = Statistics::default();
    for worker in workers {
        statistics.merge(worker.join().map_err(|_| anyhow::anyhow!("a bundle made the renderer panic"))??);
    }
    println!("{statistics}");
    if let (Some(before), Some(after)) = (before, cpu_time()) {
        let (seconds, comparing) =
            (after - before, if arguments.expected.is_some() { ", comparing included" } else { "" });
        println!(
            "{:.1} MB per CPU second ({seconds:.1} s{comparing})",
            statistics.megabytes() / seconds.max(f64::EPSILON)
        );
    }
    if let Some(peak) = peak_memory() {
        println!("peak memory {peak}");
    }
    Ok(if statistics.different() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The state that all workers share.
struct Run {
    cases: Vec<Case>,
    renderer: Renderer,
    namespaces: Namespaces,
    compatibility: String,
    next: AtomicUsize,
}

impl Run {
    /// Renders one bundle after another until none is left.
    fn work(&self, runtime: &tokio::runtime::Handle) -> anyhow::Result<Statistics> {
        let mut statistics = Statistics::default();
        while let Some(case) = self.cases.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            self.bundle(case, runtime, &mut statistics).with_context(|| case.name.clone())?;
        }
        Ok(statistics)
    }

    fn bundle(&self, case: &Case, runtime: &tokio::runtime::Handle, statistics: &mut Statistics) -> anyhow::Result<()> {
        let bundle = Bundle::from_directory(&case.directory)
            .with_context(|| format!("failed to read {}", case.directory.display()))?;
        let bytes = bundle.files("manifests/").iter().map(|entry| entry.size).sum();
        statistics.bundle();
        for (mode, expected) in &case.modes {
            let mut config = mode.config(&self.namespaces);
            config.insert("compatibility".to_owned(), self.compatibility.as_str().into());
            let rendering = self.renderer.render(&bundle, &self.namespaces.install, config);
            let (outcome, time) = runtime.block_on(rendering);
            let count = match &outcome {
                Outcome::Objects(objects) => objects.len(),
                Outcome::Refused(refusal, findings) => {
                    statistics.refusal(*refusal, &case.name, *mode, findings);
                    0
                }
            };
            statistics.rendering(*mode, bytes, count, time);
            if let Some(path) = expected {
                let expected = fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
                let expected = serde_json::from_slice(&expected).with_context(|| path.display().to_string())?;
                statistics.verdict(&case.name, *mode, compare(expected, outcome));
            }
        }
        Ok(())
    }
}

/// The CPU time of this process in seconds, if the system reports it.
fn cpu_time() -> Option<f64> {
    /// Linux counts hundredths of a second (`USER_HZ`).
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, the program's name, may contain anything, but ends with the last parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index)?.parse::<f64>().ok();
    Some((ticks(11)? + ticks(12)?) / TICKS)
}

/// The peak memory of this process, if the system reports it.
fn peak_memory() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|peak| peak.trim().to_owned())
}
