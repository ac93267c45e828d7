//! Measures the steps from files in memory to a finished release.

use std::{fmt, hint::black_box, sync::Arc, time::Duration};

use chandler_core::{Content, MemoryContent, Object, Release, Request, Target};
use chandler_engine::{CallError, Limits, Provisioner};
use chandler_registry::Registry;
use chandler_sdk::{Content as _, Location, ObjectId, Output, Probe, Provisioner as _, Refusal, testing::Bundle};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Map;

use crate::Result;

/// Each step is run this many times; the shortest counts, since other work on the machine only adds to it.
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

/// Measures the steps natively and in the sandbox, in turns, so that both meet the same machine. Creating the instance
/// counts as parsing; the host's work on emitted objects is the same in both cases.
pub(crate) async fn measure(provisioner: &Provisioner, bundle: &Bundle) -> Result<(Steps, Steps)> {
    let mut emitted = Emitted::default();
    let allocations = allocation_counter::measure(|| {
        emitted = run(bundle);
        black_box(finish(&emitted));
    });
    let (content, limits) = (content(bundle)?, Limits::default());
    let target = Target { name: "bench".into(), namespace: "bench".into(), ..Target::default() };
    let request = Request { config: Map::new(), target };
    let mut least = [Duration::MAX; 5];
    let [parse, render, emit, parse_inside, whole_inside] = &mut least;
    for _ in 0..RUNS {
        let start = now();
        let _ = black_box(Registry::config_schema(bundle));
        lap(parse, start);
        // The parsed bundle is kept between calls, as in an instance.
        let start = now();
        black_box(provision(bundle));
        lap(render, start);
        let start = now();
        drop(black_box(finish(&emitted)));
        lap(emit, start);
        let start = now();
        provisioner.config_schema(Arc::clone(&content), &limits).await?;
        lap(parse_inside, start);
        let start = now();
        match provisioner.provision(&request, Arc::clone(&content), &limits).await {
            // A rejection is a result too.
            Ok(_)
            | Err(
                CallError::InvalidContent(_) | CallError::InvalidConfiguration(_) | CallError::UnsupportedContent(_),
            ) => {}
            Err(error) => return Err(error.into()),
        }
        lap(whole_inside, start);
    }
    let [parse, render, emit, parse_inside, whole_inside] = least;
    let bytes = bundle.files("manifests/").iter().map(|entry| entry.size).sum();
    let native = Steps { parse, render, emit, allocations: allocations.count_total, bytes };
    let rest = whole_inside.saturating_sub(parse_inside).saturating_sub(emit);
    Ok((native, Steps { parse: parse_inside, render: rest, emit, ..Steps::default() }))
}

/// The processor time of this process. The time on the clock would include what other processes take.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn lap(least: &mut Duration, start: Duration) {
    *least = (*least).min(now().saturating_sub(start));
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

/// The least processor time of many runs.
pub(crate) async fn least<E: Into<Box<dyn std::error::Error>>>(
    count: usize,
    work: impl AsyncFn() -> std::result::Result<(), E>,
) -> Result<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..count {
        let start = now();
        work().await.map_err(Into::into)?;
        lap(&mut least, start);
    }
    Ok(least)
}
