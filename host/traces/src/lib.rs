//! Traces of reconciles: their context, and their export over OTLP.
//!
//! Code that traces opens spans of `tracing` with the target `chandler::trace`. Without an [`Exporter`] these spans cost as much as a disabled
//! log line, and every function here does nothing.
//!
//! | module | what it has |
//! |---|---|
//! | [`context`] | the trace of the code that runs: its ID, the header for API requests, and spans that outlive a reconcile |
//! | [`exporter`] | which spans are exported, and how |
//! | `collector` | one request to the collector; a collector that fails is logged once |
//! | [`endpoint`] | the URL of a collector |
//! | [`format`](mod@format) | the ID of the trace in log lines |
//! | `sampler` | which traces are recorded |

pub mod context;
pub mod endpoint;
pub mod exporter;
pub mod format;

mod collector;
mod sampler;

pub use self::{
    context::{detached, inject, trace_id},
    endpoint::{Endpoint, EndpointError},
    exporter::{ExportError, ExportOptions, Exporter, TARGET},
    format::WithTraceId,
};
