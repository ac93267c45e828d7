//! Durations and their statistics.

use std::time::{Duration, Instant};

/// How long things took.
#[derive(Default)]
pub(crate) struct Sample {
    took: Vec<Duration>,
    all: Duration,
}

impl Sample {
    /// A running time measurement.
    pub(crate) fn new(took: Vec<Duration>, begun: Instant) -> Self {
        Self { took, all: begun.elapsed() }
    }

    pub(crate) fn print(mut self, what: &str) {
        self.took.sort_unstable();
        let milliseconds = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let at = |percent: usize| {
            let index = (self.took.len() * percent / 100).min(self.took.len().saturating_sub(1));
            self.took.get(index).copied().map_or(0.0, milliseconds)
        };
        #[expect(clippy::cast_precision_loss, reason = "there are few")]
        let rate = self.took.len() as f64 / self.all.as_secs_f64();
        println!("    {what:<32}{:>10.2}{:>10.2}{:>10.2}{rate:>12.0}", at(50), at(99), at(100));
    }
}
