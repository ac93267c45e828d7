//! Which spans are exported, and how.

use std::{path::PathBuf, time::Duration};

use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchSpanProcessor, SdkTracerProvider},
};
use rustls::{
    ClientConfig,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio::runtime::Handle;
use tracing::{Metadata, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{Layer, filter::filter_fn, registry::LookupSpan};

use crate::{Endpoint, collector::Collector, sampler::Reconciles};

/// The target of spans that are there for traces. Log lines do not show them.
pub const TARGET: &str = "chandler::trace";

/// The span of a call of a provisioner, which log lines show as well.
const PROVISIONER: &str = "provisioner";

/// How long one request to the collector may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Attributes of a span that are kept. No span of ours has more.
const ATTRIBUTES: u32 = 16;

/// Where traces go, and which.
#[derive(Clone, Debug)]
pub struct ExportOptions {
    /// The collector.
    pub endpoint: Endpoint,
    /// The share of the reconciles that is recorded, from 0 to 1.
    pub ratio: f64,
    /// A file with PEM certificates of authorities that are trusted beside the system's.
    pub certificate_authority: Option<PathBuf>,
    /// The version of the program.
    pub version: &'static str,
}

/// Traces cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The certificates of the collector's authority cannot be read.
    #[error("failed to read certificates in {}: {source}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// A certificate is not valid, or TLS cannot be set up.
    #[error("failed to set up TLS for the collector of traces: {0}")]
    Tls(#[from] rustls::Error),
    /// The client cannot be built.
    #[error("failed to set up the client for the collector of traces: {0}")]
    Client(#[from] reqwest::Error),
    /// A variable of the environment, such as `OTEL_EXPORTER_OTLP_TIMEOUT`, is not valid.
    #[error("failed to set up the export of traces: the environment variables OTEL_EXPORTER_OTLP_* are not valid")]
    Settings,
}

/// Exports spans in the background, in batches. The queue is bounded (`OTEL_BSP_MAX_QUEUE_SIZE`, 2048 spans): while the collector does not
/// answer, further spans are dropped, and no reconcile waits.
#[derive(Debug)]
pub struct Exporter(SdkTracerProvider);

impl Exporter {
    /// An exporter whose requests run on this runtime. It sends headers of `OTEL_EXPORTER_OTLP_HEADERS`, and the service is called
    /// `OTEL_SERVICE_NAME`, or `chandler`.
    pub fn start(options: &ExportOptions, runtime: Handle) -> Result<Self, ExportError> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(options)?)
            // Headers with credentials are for this collector only.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(TIMEOUT)
            .user_agent(concat!("chandler/", env!("CARGO_PKG_VERSION")))
            .build()?;
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(Collector::new(client, runtime))
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(options.endpoint.traces())
            .build()
            // The error could repeat headers.
            .map_err(|_| ExportError::Settings)?;
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).build())
            .with_sampler(Reconciles::new(options.ratio))
            .with_max_attributes_per_span(ATTRIBUTES)
            .with_resource(resource(options.version))
            .build();
        Ok(Self(provider))
    }

    /// The layer that records spans. It records no log lines, whose values are not meant for a collector.
    pub fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("chandler"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_level(false)
            .with_filter(filter_fn(is_exported).with_max_level_hint(LevelFilter::INFO))
    }

    /// Exports what is recorded and stops, within this time. Blocks; the runtime must still run on other threads.
    pub fn shut_down(self, within: Duration) {
        // A collector that fails was logged.
        let _ = self.0.shutdown_with_timeout(within);
    }
}

fn is_exported(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && (metadata.target() == TARGET || metadata.name() == PROVISIONER)
}

fn resource(version: &'static str) -> Resource {
    let resource = || Resource::builder().with_attribute(KeyValue::new("service.version", version));
    let named = resource().build();
    let name = named.get(&"service.name".into()).map(|name| name.to_string()).unwrap_or_default();
    let is_named = !name.is_empty() && !name.starts_with("unknown_service");
    if is_named { named } else { resource().with_service_name("chandler").build() }
}

/// TLS within the settings of the process, with the certificates of the system and the given ones.
fn tls(options: &ExportOptions) -> Result<ClientConfig, ExportError> {
    let mut roots = chandler_tls::system_roots();
    if let Some(path) = &options.certificate_authority {
        let failed = |source| ExportError::Certificates { path: path.clone(), source };
        for certificate in CertificateDer::pem_file_iter(path).map_err(failed)? {
            roots.add(certificate.map_err(failed)?)?;
        }
    }
    let builder = ClientConfig::builder_with_provider(chandler_tls::provider());
    Ok(builder.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests;
