//! Counts how often bundles were rendered, from the log events of the controllers in this process.

use std::{collections::HashMap, fmt, sync::LazyLock};

use parking_lot::Mutex;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{Layer, filter::filter_fn, layer::Context, registry::LookupSpan};

/// The counts by BundleDeployment. Each test uses different names.
static RENDERS: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);

/// How often a provisioner rendered a release for a BundleDeployment.
pub fn of(deployment: &str) -> usize {
    RENDERS.lock().get(deployment).copied().unwrap_or_default()
}

/// Counts log events about renders.
struct Counter;

/// A layer that counts log events about renders, and filters out all others.
pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    Counter.with_filter(filter_fn(is_render).with_max_level_hint(LevelFilter::INFO))
}

fn is_render(metadata: &Metadata<'_>) -> bool {
    metadata.is_event()
        && *metadata.level() == Level::INFO
        && metadata.target().starts_with("chandler_controller::bundle_deployment::steps::render")
}

impl<S: Subscriber> Layer<S> for Counter {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = EventFields::default();
        event.record(&mut fields);
        if fields.message == "rendered" {
            *RENDERS.lock().entry(fields.deployment).or_default() += 1;
        }
    }
}

/// The relevant fields of a log event.
#[derive(Default)]
struct EventFields {
    message: String,
    deployment: String,
}

impl Visit for EventFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "deployment" => self.deployment = format!("{value:?}"),
            _ => {}
        }
    }
}
