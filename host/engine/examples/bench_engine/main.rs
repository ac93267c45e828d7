//! Measures the engine: `cargo xtask bench [directory of registry+v1 bundles]...`.
//!
//! Prints the cost of an instance, the start time of the engine with cached code, and for each bundle the time of each
//! step up to a finished release, in the sandbox and natively.

#![expect(clippy::print_stdout, reason = "a program that prints its results")]

mod samples;
mod steps;

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::{Content, MemoryContent};
use chandler_engine::{Engine, EngineOptions, Limits, Provisioner};

use crate::steps::Steps;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// This many of the largest bundles get a row of their own.
const ROWS: usize = 8;

#[tokio::main]
async fn main() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
    let path = target.join("plugins/registry.wasm");
    let wasm = fs::read(&path).map_err(|error| format!("{}: {error}; run `cargo xtask plugins`", path.display()))?;
    let directories: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();

    let cache = tempfile::tempdir()?;
    let options = EngineOptions { cache_directory: Some(cache.path().to_owned()), ..EngineOptions::default() };
    let start = Instant::now();
    let engine = Engine::new(options.clone())?;
    let provisioner = engine.load(&wasm).await?;
    println!("component                    {:>10} KiB", wasm.len() >> 10);
    println!("first start, with compiling  {}", milliseconds(start.elapsed()));
    let instance = instance(&provisioner).await?;
    println!("instance and an empty call   {:>10.1} µs", instance.as_secs_f64() * 1e6);
    bundles(&provisioner, &samples::find(&root, &directories)?).await?;

    drop((provisioner, engine));
    println!("start from the code cache    {}", milliseconds(cold_start(&options, &wasm).await?));
    Ok(())
}

async fn bundles(provisioner: &Provisioner, directories: &[PathBuf]) -> Result<()> {
    println!(
        "\nmilliseconds                                      natively            |          in the sandbox            |"
    );
    println!("  kB   parse  render    emit   total allocations |   parse  render    emit   total | ratio");
    let (mut native, mut sandboxed, mut ratios) = (Steps::default(), Steps::default(), Vec::new());
    for (index, directory) in directories.iter().enumerate() {
        let bundle = chandler_sdk::testing::Bundle::from_directory(directory)?;
        let (ours, theirs) = steps::measure(provisioner, &bundle).await?;
        ratios.push(ratio(&ours, &theirs));
        if index < ROWS {
            println!("{}", row(&ours, &theirs, name(directory)));
        }
        native.add(&ours);
        sandboxed.add(&theirs);
    }
    println!("{}", row(&native, &sandboxed, &format!("all {}", directories.len())));
    ratios.sort_by(f64::total_cmp);
    println!("the median of the ratios: {:.2}\n", ratios.get(ratios.len() / 2).copied().unwrap_or_default());
    Ok(())
}

fn row(native: &Steps, sandboxed: &Steps, name: &str) -> String {
    let ratio = ratio(native, sandboxed);
    let kilobytes = native.bytes / 1000;
    format!("{kilobytes:>5} {native} {:>11} | {sandboxed} | {ratio:>5.2} {name}", native.allocations)
}

fn ratio(native: &Steps, sandboxed: &Steps) -> f64 {
    sandboxed.total().as_secs_f64() / native.total().as_secs_f64().max(f64::EPSILON)
}

fn name(directory: &Path) -> &str {
    let root = directory.ancestors().nth(2).unwrap_or(directory);
    directory.strip_prefix(root).ok().and_then(Path::to_str).unwrap_or_default()
}

async fn instance(provisioner: &Provisioner) -> Result<Duration> {
    let (empty, limits) = (empty(), Limits::default());
    steps::least(200, async || provisioner.detect(Arc::clone(&empty), &limits).await.map(drop)).await
}

async fn cold_start(options: &EngineOptions, wasm: &[u8]) -> Result<Duration> {
    steps::least(20, async || {
        let engine = Engine::new(options.clone()).map_err(|error| error.to_string())?;
        let provisioner = engine.load(wasm).await.map_err(|error| error.to_string())?;
        provisioner.detect(empty(), &Limits::default()).await.map_err(|error| error.to_string())?;
        if engine.statistics().cache_hits == 1 { Ok(()) } else { Err("the code was not in the cache".to_owned()) }
    })
    .await
}

fn empty() -> Arc<dyn Content> {
    Arc::new(MemoryContent::new(Vec::<(String, Vec<u8>)>::new()))
}

fn milliseconds(duration: Duration) -> String {
    format!("{:>10.2} ms", duration.as_secs_f64() * 1e3)
}
