//! How often bundles were rendered: what controllers of this process say in their logs.

use std::{
    collections::HashMap,
    fmt,
    sync::{LazyLock, Mutex, PoisonError},
};

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{Layer, filter::filter_fn, layer::Context, registry::LookupSpan};

/// By BundleDeployment, whose names differ from test to test.
static RENDERS: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);

/// How often a provisioner was called for a BundleDeployment and made a release.
pub fn of(deployment: &str) -> usize {
    RENDERS.lock().unwrap_or_else(PoisonError::into_inner).get(deployment).copied().unwrap_or_default()
}

/// Counts what is logged of renders.
struct Counter;

/// Counts what is logged of renders, and looks at nothing else.
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
        let mut found = Found::default();
        event.record(&mut found);
        if found.message == "rendered" {
            *RENDERS.lock().unwrap_or_else(PoisonError::into_inner).entry(found.deployment).or_default() += 1;
        }
    }
}

/// The fields of an event.
#[derive(Default)]
struct Found {
    message: String,
    deployment: String,
}

impl Visit for Found {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "deployment" => self.deployment = format!("{value:?}"),
            _ => {}
        }
    }
}
