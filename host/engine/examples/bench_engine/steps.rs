//! Measures the steps from files in memory to a finished release.

use std::{
    fmt,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::{Content, MemoryContent, Object, Release, Request, Target};
use chandler_engine::{CallError, Limits, Provisioner};
use chandler_registry::Registry;
use chandler_sdk::{Content as _, Location, ObjectId, Output, Probe, Provisioner as _, Refusal, testing::Bundle};
use serde_json::Map;

use crate::Result;

/// Each step is run this many times; the median counts.
const RUNS: usize = 15;

/// The cost of a bundle.
#[derive(Default)]
pub(crate) struct Steps {
    /// From files to a parsed bundle with its configuration schema.
    pub(crate) parse: Duration,
    /// From the bundle to objects as JSON.
    pub(crate) render: Duration,
    /// From JSON to validated, ordered objects with their digest: the host's part.
    pub(crate) emit: Duration,
    /// The number of allocations in all three steps.
    pub(crate) allocations: u64,
    /// The size of the manifests.
    pub(crate) bytes: u64,
}

impl Steps {
    pub(crate) fn total(&self) -> Duration {
        self.parse + self.render + self.emit
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.parse += other.parse;
        self.render += other.render;
        self.emit += other.emit;
        self.allocations += other.allocations;
        self.bytes += other.bytes;
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [parse, render, emit, total] =
            [self.parse, self.render, self.emit, self.total()].map(|time| time.as_secs_f64() * 1e3);
        write!(f, "{parse:>7.2} {render:>7.2} {emit:>7.2} {total:>7.2}")
    }
}

/// Measures the steps without the sandbox.
pub(crate) fn natively(bundle: &Bundle) -> Steps {
    let mut emitted = Emitted::default();
    let allocations = allocation_counter::measure(|| {
        emitted = run(bundle);
        black_box(finish(&emitted));
    });
    let mut parse = Vec::new();
    let mut render = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        let _ = black_box(Registry::config_schema(bundle));
        parse.push(start.elapsed());
        // The parsed bundle is kept between calls, as in an instance.
        let start = Instant::now();
        black_box(provision(bundle));
        render.push(start.elapsed());
    }
    Steps {
        parse: middle(parse),
        render: middle(render),
        emit: median(RUNS, || drop(black_box(finish(&emitted)))),
        allocations: allocations.count_total,
        bytes: bundle.files("manifests/").iter().map(|entry| entry.size).sum(),
    }
}

/// Measures the steps in the sandbox; creating the instance counts as parsing. The host's work on emitted objects is
/// the same in both cases.
pub(crate) async fn sandboxed(provisioner: &Provisioner, bundle: &Bundle, emit: Duration) -> Result<Steps> {
    let content = content(bundle)?;
    let limits = Limits::default();
    let parse =
        median_async(RUNS, async || provisioner.config_schema(Arc::clone(&content), &limits).await.map(drop)).await?;
    let target = Target { name: "bench".into(), namespace: "bench".into(), ..Target::default() };
    let request = Request { config: Map::new(), target };
    let whole =
        median_async(RUNS, async || match provisioner.provision(&request, Arc::clone(&content), &limits).await {
            // A rejection is a result too.
            Ok(_)
            | Err(
                CallError::InvalidContent(_) | CallError::InvalidConfiguration(_) | CallError::UnsupportedContent(_),
            ) => Ok(()),
            Err(error) => Err(error),
        })
        .await?;
    Ok(Steps { parse, render: whole.saturating_sub(parse).saturating_sub(emit), emit, ..Steps::default() })
}

/// The output of a provisioner.
#[derive(Default)]
struct Emitted(Vec<(Vec<u8>, Option<u32>)>);

impl Output for Emitted {
    fn emit(
        &mut self,
        object: &[u8],
        stage: Option<u32>,
        _origin: Option<Location>,
    ) -> std::result::Result<ObjectId, Refusal> {
        let id = u32::try_from(self.0.len()).map_err(|_| Refusal::TooMany)?;
        self.0.push((object.to_vec(), stage));
        Ok(ObjectId(id))
    }

    fn probe(&mut self, _probe: &Probe) -> std::result::Result<(), Refusal> {
        Ok(())
    }

    fn report(&mut self, _finding: &chandler_sdk::Diagnostic) {}
}

fn run(bundle: &Bundle) -> Emitted {
    let _ = black_box(Registry::config_schema(bundle));
    provision(bundle)
}

fn provision(bundle: &Bundle) -> Emitted {
    let request = chandler_sdk::Request::new().with_name("bench").with_namespace("bench");
    let mut emitted = Emitted::default();
    // A rejection is a result too.
    let _ = black_box(Registry::provision(&request, bundle, &mut emitted));
    emitted
}

fn finish(Emitted(objects): &Emitted) -> Release {
    let objects = objects.iter().filter_map(|(json, stage)| Object::parse(json, stage.unwrap_or(0), None).ok());
    Release::new(objects.collect(), vec![], vec![])
}

fn content(bundle: &Bundle) -> Result<Arc<dyn Content>> {
    let mut files = Vec::new();
    for entry in bundle.files("") {
        files.push((entry.path.clone(), bundle.read(&entry.path)?));
    }
    Ok(Arc::new(MemoryContent::new(files)))
}

fn median(count: usize, mut work: impl FnMut()) -> Duration {
    let times = (0..count).map(|_| {
        let start = Instant::now();
        work();
        start.elapsed()
    });
    middle(times.collect())
}

pub(crate) async fn median_async<E: Into<Box<dyn std::error::Error>>>(
    count: usize,
    work: impl AsyncFn() -> std::result::Result<(), E>,
) -> Result<Duration> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        work().await.map_err(Into::into)?;
        times.push(start.elapsed());
    }
    Ok(middle(times))
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
