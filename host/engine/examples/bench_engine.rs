//! Measures the engine: `cargo xtask bench [path of a registry+v1 bundle]`.
//!
//! Prints what an instance costs, how much slower the sandbox is than the same code run natively, and how fast the engine
//! starts with the code in its cache. Both ways lead from the files in memory to a finished release; the part of it that is
//! the host's in either case is shown apart.

#![expect(clippy::print_stdout, reason = "it is a program whose result is its output")]

use std::{
    env, fs,
    hint::black_box,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::{Content, MemoryContent, Object, Release, Request, Target};
use chandler_engine::{Engine, EngineOptions, Limits, Provisioner};
use chandler_registry::Registry;
use chandler_sdk::{Content as _, EmitError, Output, Provisioner as _, testing};
use serde_json::Map;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bundle = env::args_os().nth(1).map_or_else(|| default_bundle(&root), PathBuf::from);
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |path| root.join(path));
    let path = target.join("plugins/registry.wasm");
    let wasm = fs::read(&path).map_err(|error| format!("{}: {error}; run `cargo xtask plugins`", path.display()))?;

    let cache = tempfile::tempdir()?;
    let options = EngineOptions { cache_directory: Some(cache.path().to_owned()), ..EngineOptions::default() };
    let start = Instant::now();
    let engine = Engine::new(options.clone())?;
    let provisioner = engine.load(&wasm).await?;
    println!("component                    {:>10} KiB", wasm.len() >> 10);
    println!("first start, with compiling  {}", milliseconds(start.elapsed()));
    let limits = Limits::default();

    let empty: Arc<dyn Content> = Arc::new(MemoryContent::new(Vec::<(String, Vec<u8>)>::new()));
    let call = median_async(200, async || provisioner.detect(Arc::clone(&empty), &limits).await.map(drop)).await?;
    println!("instance and an empty call   {:>10.1} µs", call.as_secs_f64() * 1e6);

    let bundle = testing::Bundle::from_directory(&bundle)?;
    let native = median(30, || run_natively(&bundle).map(|objects| drop(finish(objects))))?;
    let plugin = median(30, || run_natively(&bundle).map(drop))?;
    let content = content(&bundle)?;
    let sandboxed = median_async(30, async || run_sandboxed(&provisioner, &content, &limits).await).await?;
    println!("bundle, natively             {}", milliseconds(native));
    println!("  of which the provisioner   {}", milliseconds(plugin));
    println!("bundle, sandboxed            {}", milliseconds(sandboxed));
    println!("ratio                        {:>10.2}", sandboxed.as_secs_f64() / native.as_secs_f64());

    drop((provisioner, engine));
    let cold = median_async(20, async || {
        let engine = Engine::new(options.clone())?;
        let provisioner = engine.load(&wasm).await?;
        provisioner.detect(Arc::clone(&empty), &limits).await?;
        if engine.statistics().cache_hits == 1 { Ok(()) } else { Err("the code was not in the cache".into()) }
    });
    let cold: Duration = cold.await.map_err(|error: Box<dyn std::error::Error>| error)?;
    println!("start from the code cache    {}", milliseconds(cold));
    Ok(())
}

/// The largest sample that is there.
fn default_bundle(root: &std::path::Path) -> PathBuf {
    let large = root.join("../shared/fixtures/registry/argocd-operator.v0.6.0");
    if large.is_dir() { large } else { root.join("tests/fixtures/registry/harbour-operator.v0.2.0") }
}

/// What a provisioner emits, as bytes.
#[derive(Default)]
struct Emitted(Vec<(Vec<u8>, Option<u32>)>);

impl Output for Emitted {
    fn emit(
        &mut self,
        object: &[u8],
        stage: Option<u32>,
        _origin: Option<chandler_sdk::Location>,
    ) -> std::result::Result<(), EmitError> {
        self.0.push((object.to_vec(), stage));
        Ok(())
    }

    fn probe(&mut self, _probe: &chandler_sdk::Probe) -> std::result::Result<(), EmitError> {
        Ok(())
    }

    fn report(&mut self, _finding: &chandler_sdk::Diagnostic) {}
}

/// The provisioner's part: its schema and its objects.
fn run_natively(bundle: &testing::Bundle) -> Result<Emitted> {
    let target =
        chandler_sdk::Target { name: "bench".into(), namespace: "bench".into(), ..chandler_sdk::Target::default() };
    let request = chandler_sdk::Request { config: Map::new(), target };
    let mut emitted = Emitted::default();
    black_box(Registry::config_schema(bundle));
    Registry::provision(&request, bundle, &mut emitted)?;
    Ok(emitted)
}

/// The host's part: checked objects, sorted, with their digest.
fn finish(Emitted(objects): Emitted) -> Release {
    let objects = objects.iter().filter_map(|(json, stage)| Object::parse(json, stage.unwrap_or(0), None).ok());
    black_box(Release::new(objects.collect(), vec![], vec![]))
}

async fn run_sandboxed(provisioner: &Provisioner, content: &Arc<dyn Content>, limits: &Limits) -> Result<()> {
    let target = Target { name: "bench".into(), namespace: "bench".into(), ..Target::default() };
    let request = Request { config: Map::new(), target };
    black_box(provisioner.provision(&request, Arc::clone(content), limits).await?);
    Ok(())
}

fn content(bundle: &testing::Bundle) -> Result<Arc<dyn Content>> {
    let mut files = Vec::new();
    for entry in bundle.files("") {
        files.push((entry.path.clone(), bundle.read(&entry.path)?));
    }
    Ok(Arc::new(MemoryContent::new(files)))
}

fn median<E>(count: usize, mut work: impl FnMut() -> std::result::Result<(), E>) -> std::result::Result<Duration, E> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed());
    }
    Ok(middle(times))
}

async fn median_async<E>(
    count: usize,
    work: impl AsyncFn() -> std::result::Result<(), E>,
) -> std::result::Result<Duration, E> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        work().await?;
        times.push(start.elapsed());
    }
    Ok(middle(times))
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn milliseconds(duration: Duration) -> String {
    format!("{:>10.2} ms", duration.as_secs_f64() * 1e3)
}
