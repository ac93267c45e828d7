//! How long the calls of a provisioner take, and what they use.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use chandler_core::MemoryContent;
use chandler_engine::{CallError, Limits, Provisioner, Usage};
use serde::Serialize;

use crate::Case;

/// Times of several calls, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Times {
    /// The shortest.
    pub minimum: f64,
    /// Half of the calls took no longer.
    pub median: f64,
    /// 95 of 100 calls took no longer.
    pub p95: f64,
    /// The longest.
    pub maximum: f64,
}

impl Times {
    /// The distribution of these times. All are zero without a time.
    pub fn of(times: &[Duration]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let at = |percent: usize| {
            // The nearest rank.
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).map_or(0.0, |time| milliseconds(*time))
        };
        Self { minimum: at(0), median: at(50), p95: at(95), maximum: at(100) }
    }
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measurement {
    /// How many calls of `provision`.
    pub calls: usize,
    /// Calls of `detect` on an empty bundle: mostly the time to make an instance.
    pub smallest_call: Times,
    /// Calls of `detect` on the bundle.
    pub detect: Times,
    /// Calls of `provision`, which include the configuration schema and its validation.
    pub provision: Times,
    /// What `provision` computed, without waiting for a processor.
    pub computed: Times,
    /// The most memory that a call used, in bytes.
    pub peak_memory: u64,
    /// What a call read of the bundle, in bytes.
    pub bytes_read: u64,
    /// The objects that a call returned, in bytes of JSON.
    pub bytes_returned: u64,
    /// The size of the bundle, in bytes.
    pub content_bytes: u64,
    /// The median of `provision` for each 100 000 bytes of the bundle, in milliseconds; `None` for a
    /// bundle so small that other work counts more.
    pub per_100_kb: Option<f64>,
}

/// Calls that are not counted: they compile nothing, but fill caches.
const WARM_UP: usize = 3;
/// Smaller bundles say nothing about the time for each byte.
const SMALL_BYTES: u64 = 10_000;

/// Measures this number of calls, after a few that are not counted.
///
/// # Errors
/// The bundle cannot be rendered.
pub async fn measure(
    provisioner: &Provisioner,
    case: &Case,
    calls: usize,
    limits: &Limits,
) -> Result<Measurement, CallError> {
    let empty: Arc<MemoryContent> = Arc::new(MemoryContent::new::<&str, &str>([]));
    let (mut smallest, mut detect, mut provision, mut computed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut used, mut peak) = (Usage::default(), 0);
    for call in 0..WARM_UP + calls {
        let begin = Instant::now();
        provisioner.detect(empty.clone(), limits).await?;
        let after_smallest = Instant::now();
        provisioner.detect(Arc::clone(&case.content), limits).await?;
        let after_detect = Instant::now();
        let rendered = provisioner.provision_and_record(&case.request, Arc::clone(&case.content), limits).await;
        let after_provision = Instant::now();
        rendered.result?;
        if call >= WARM_UP {
            smallest.push(after_smallest - begin);
            detect.push(after_detect - after_smallest);
            provision.push(after_provision - after_detect);
            computed.push(rendered.usage.time);
        }
        used = rendered.usage;
        peak = peak.max(used.memory);
    }
    let (times, content_bytes) = (Times::of(&provision), case.content.total_bytes());
    #[expect(clippy::cast_precision_loss, reason = "a bundle has fewer than 2^52 bytes")]
    let per_100_kb = (content_bytes >= SMALL_BYTES).then(|| times.median * 100_000.0 / content_bytes as f64);
    Ok(Measurement {
        calls,
        smallest_call: Times::of(&smallest),
        detect: Times::of(&detect),
        provision: times,
        computed: Times::of(&computed),
        peak_memory: peak,
        bytes_read: used.read,
        bytes_returned: used.returned,
        content_bytes,
        per_100_kb,
    })
}

/// A time in milliseconds, with microseconds as its smallest unit.
pub fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_occurred() {
        let times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        let found = Times::of(&times);
        let expected = Times { minimum: 1.0, median: 50.0, p95: 95.0, maximum: 100.0 };
        assert_eq!(found, expected);
        let one = Times::of(&[Duration::from_micros(1_500)]);
        assert_eq!(one, Times { minimum: 1.5, median: 1.5, p95: 1.5, maximum: 1.5 });
        assert_eq!(Times::of(&[]), Times::default());
    }
}
