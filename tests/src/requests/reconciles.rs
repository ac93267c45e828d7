//! Counts reconciles by what they wrote.
//!
//! kube runs every reconcile in a span with the name of the object, and sends the requests of the reconcile in that span.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        LazyLock,
        atomic::{AtomicU8, Ordering},
    },
};

use parking_lot::Mutex;
use tracing::{
    Level, Span, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Layer, Registry,
    filter::filter_fn,
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

use crate::requests::request::RequestKind;

/// The name of the span of a reconcile.
const SPAN: &str = "reconciling object";

/// The kind of the objects that are counted.
const KIND: &str = "BundleDeployment.";

/// The counts by BundleDeployment. Each test uses different names.
static RECONCILES: LazyLock<Mutex<HashMap<String, Reconciles>>> = LazyLock::new(Mutex::default);

/// The number of reconciles that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconciles {
    /// Reconciles that wrote an object of a release.
    pub with_object_writes: u64,
    /// Reconciles that wrote only something else: the status, Events or records.
    pub with_other_writes: u64,
    /// Reconciles that wrote nothing.
    pub without_writes: u64,
}

impl Reconciles {
    /// The reconciles so far of all BundleDeployments whose names start with this.
    pub fn of(prefix: &str) -> Self {
        let all = RECONCILES.lock();
        all.iter().filter(|(name, _)| name.starts_with(prefix)).fold(Self::default(), |sum, (_, one)| Self {
            with_object_writes: sum.with_object_writes + one.with_object_writes,
            with_other_writes: sum.with_other_writes + one.with_other_writes,
            without_writes: sum.without_writes + one.without_writes,
        })
    }

    /// The reconciles since an earlier count.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            with_object_writes: self.with_object_writes - before.with_object_writes,
            with_other_writes: self.with_other_writes - before.with_other_writes,
            without_writes: self.without_writes - before.without_writes,
        }
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.with_object_writes + self.with_other_writes + self.without_writes
    }
}

/// A reconcile in progress: the data of its span.
struct Reconcile {
    name: String,
    /// The largest of the values below.
    wrote: AtomicU8,
}

const NOTHING: u8 = 0;
const OTHER: u8 = 1;
const OBJECT: u8 = 2;

/// Records a request of the reconcile in whose span this is called, if any.
pub(crate) fn record(request: &RequestKind) {
    let wrote = match request {
        object if object.writes_object() => OBJECT,
        other if other.writes() => OTHER,
        _ => return,
    };
    Span::current().with_subscriber(|(id, dispatch)| {
        let span = dispatch.downcast_ref::<Registry>().and_then(|registry| registry.span(id));
        for span in span.iter().flat_map(SpanRef::scope) {
            if let Some(reconcile) = span.extensions().get::<Reconcile>() {
                reconcile.wrote.fetch_max(wrote, Ordering::Relaxed);
            }
        }
    });
}

/// Counts reconciles.
struct Counter;

/// A layer that counts the reconciles of all controllers in this process.
pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    let filter =
        filter_fn(|metadata| metadata.is_span() && *metadata.level() == Level::INFO && metadata.name() == SPAN);
    Counter.with_filter(filter.with_max_level_hint(LevelFilter::INFO))
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Counter {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut object = ObjectRef::default();
        attributes.record(&mut object);
        if let Some(span) = context.span(id).filter(|_| object.0.starts_with(KIND)) {
            let name = object.0.rsplit('/').next().unwrap_or_default().to_owned();
            span.extensions_mut().insert(Reconcile { name, wrote: AtomicU8::new(NOTHING) });
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(Reconcile { name, wrote }) = span.extensions_mut().remove::<Reconcile>() else { return };
        let mut all = RECONCILES.lock();
        let counts = all.entry(name).or_default();
        *match wrote.into_inner() {
            OBJECT => &mut counts.with_object_writes,
            OTHER => &mut counts.with_other_writes,
            _ => &mut counts.without_writes,
        } += 1;
    }
}

/// The field that names the object: `BundleDeployment.v1alpha2.core.rukpak.io/name`.
#[derive(Default)]
struct ObjectRef(String);

impl Visit for ObjectRef {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "object.ref" {
            self.0 = format!("{value:?}");
        }
    }
}
