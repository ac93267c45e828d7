//! `cargo xtask fuzz`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, bail};

use crate::{command, guests};

/// The memory limit of a target, with the fuzzer, its corpus and the engine: far above what inputs may take.
const MEBIBYTES: u32 = 2048;
/// The time limit of an input.
const SECONDS_PER_INPUT: u32 = 20;
/// Larger inputs rarely find more, and are slow.
const INPUT_BYTES: u32 = 64 << 10;

/// Fuzz everything that parses untrusted input.
#[derive(clap::Args)]
pub(crate) struct Fuzz {
    /// How long each target runs
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    seconds: u64,
    /// Only this target; may be given several times
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// The directory of bundles and other files from which the corpus is seeded
    #[arg(long, value_name = "DIR", default_value = "../shared/fixtures")]
    fixtures: PathBuf,
}

/// The result of one target.
struct Outcome {
    target: String,
    executions: String,
    mebibytes: String,
    findings: usize,
}

impl Fuzz {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        guests::build_all()?;
        ensure_cargo_fuzz()?;
        let project = command::root().join("tests/fuzz");
        let known = known_targets(&project)?;
        if let Some(unknown) = self.targets.iter().find(|target| !known.contains(target)) {
            bail!("there is no target {unknown}; there are {}", known.join(", "));
        }
        let targets = if self.targets.is_empty() { known } else { self.targets };
        let corpus = project.join("corpus");
        let seeds = ["run", "--quiet", "--locked", "--package", "chandler-properties", "--bin", "fuzz-seeds", "--"];
        command::run(command::cargo(seeds).arg(&corpus).arg(command::root().join(&self.fixtures)))?;
        let mut outcomes = Vec::new();
        for target in &targets {
            eprintln!("{target}: {} s", self.seconds);
            outcomes.push(fuzz(&project, target, self.seconds)?);
        }
        eprintln!("{:<16} {:>12} {:>9} {:>8}", "target", "executions", "peak MiB", "findings");
        for Outcome { target, executions, mebibytes, findings } in &outcomes {
            eprintln!("{target:<16} {executions:>12} {mebibytes:>9} {findings:>8}");
        }
        match outcomes.iter().map(|outcome| outcome.findings).sum::<usize>() {
            0 => Ok(()),
            findings => bail!("{findings} findings; they are in {}", project.join("artifacts").display()),
        }
    }
}

/// Installs cargo-fuzz if it is missing.
fn ensure_cargo_fuzz() -> anyhow::Result<()> {
    if command::output(&mut command::cargo(["fuzz", "--version"])).is_ok() {
        return Ok(());
    }
    eprintln!("installing cargo-fuzz");
    command::run(&mut command::cargo(["install", "--locked", "cargo-fuzz"]))
}

/// The targets of the project: one per file.
fn known_targets(project: &Path) -> anyhow::Result<Vec<String>> {
    let directory = project.join("fuzz_targets");
    let entries = fs::read_dir(&directory).with_context(|| format!("failed to list {}", directory.display()))?;
    let mut targets = Vec::new();
    for entry in entries {
        targets.extend(entry?.path().file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    targets.sort();
    Ok(targets)
}

/// Runs one target, in a separate process.
fn fuzz(project: &Path, target: &str, seconds: u64) -> anyhow::Result<Outcome> {
    let artifacts = project.join("artifacts").join(target);
    let before = count(&artifacts);
    let log = project.join("target").join(format!("{target}.log"));
    fs::create_dir_all(project.join("target"))?;
    // The targets look for panics; code without `unsafe` has no memory errors. So no sanitizer, and no nightly
    // compiler.
    let mut run = command::cargo(["fuzz", "run", "--sanitizer", "none", "--fuzz-dir"]);
    run.arg(project).arg(target).arg("--");
    run.args([
        format!("-max_total_time={seconds}"),
        format!("-rss_limit_mb={MEBIBYTES}"),
        format!("-timeout={SECONDS_PER_INPUT}"),
        format!("-max_len={INPUT_BYTES}"),
        "-print_final_stats=1".to_owned(),
    ]);
    run.env("CHANDLER_PLUGINS", command::target_directory().join("plugins"));
    run.stderr(fs::File::create(&log).with_context(|| format!("failed to write {}", log.display()))?);
    in_memory(&mut run);
    let status = run.status().context("failed to start cargo fuzz")?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let findings = count(&artifacts).saturating_sub(before);
    if !status.success() && findings == 0 {
        let last: Vec<&str> = text.lines().rev().take(20).collect();
        bail!("{target} ended with {status}:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
    }
    let statistic = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
        line.map_or_else(|| "?".to_owned(), |number| number.trim_start_matches(':').trim().to_owned())
    };
    Ok(Outcome {
        target: target.to_owned(),
        executions: statistic("number_of_executed_units"),
        mebibytes: statistic("peak_rss_mb"),
        findings,
    })
}

/// Temporary files in memory, if available: the disk is not under test.
fn in_memory(run: &mut Command) {
    let memory = Path::new("/dev/shm");
    if env::var_os("TMPDIR").is_none() && memory.is_dir() {
        run.env("TMPDIR", memory);
    }
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}
